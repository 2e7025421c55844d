"""Parquet files: their batches, whose memory is charged before it is taken."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frhsic._files import TABLE_TIMES, Budget


@dataclass(frozen=True)
class ParquetReader:
    """A Parquet file whose header was read."""

    path: Path
    metadata: Any
    max_bytes: int | None
    decimal = None
    separator = ""
    notes = ()

    @classmethod
    def open(cls, path: Path, max_bytes: int | None = None) -> ParquetReader:
        """Read the header of a file."""
        from pyarrow import parquet

        with path.open("rb") as file:
            metadata = parquet.read_metadata(file)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        budget = Budget.of_file(path, TABLE_TIMES, max_bytes)
        budget.charge(sum(group.total_byte_size for group in groups))
        return cls(path, metadata, max_bytes)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self.metadata.schema.to_arrow_schema().names)

    def row_count(self) -> int:
        """Return the number of rows."""
        return int(self.metadata.num_rows)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield batches of some columns."""
        import pyarrow as pa
        from pyarrow import compute, parquet

        budget = Budget.of_file(self.path, TABLE_TIMES, self.max_bytes)
        schema = self.metadata.schema.to_arrow_schema()
        text = []
        for name in columns:
            kind = schema.field(name).type
            if pa.types.is_dictionary(kind):
                kind = kind.value_type
            if str(kind).startswith(("string", "binary", "large_")):
                text.append(name)
            elif pa.types.is_null(kind) or pa.types.is_primitive(kind) or _is_fixed(kind):
                # one value may stand for all rows
                width = 8 if pa.types.is_null(kind) else max(kind.bit_width // 8, 8)
                budget.charge(width * self.row_count())
            else:
                raise ValueError(
                    f"column {name!r} holds lists or records ({kind}); take it apart or drop it"
                )
        with self.path.open("rb") as file:
            # as it is stored: one long text may stand for all rows
            reader = parquet.ParquetFile(file, metadata=self.metadata, read_dictionary=text)
            for batch in reader.iter_batches(columns=columns):
                batch.validate(full=True)
                cells = dict(zip(batch.schema.names, batch.columns))
                for name in text:
                    lengths = compute.binary_length(cells[name].dictionary)
                    size = compute.sum(lengths.take(cells[name].indices)).as_py() or 0
                    budget.charge(size + 8 * len(batch))
                    cells[name] = cells[name].dictionary_decode()
                yield pa.RecordBatch.from_pydict(cells)


def _is_fixed(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))
