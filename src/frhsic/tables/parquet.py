"""Parquet files: their batches, once it is known that they do not unpack to far more than the file
is large.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from frhsic.tables.unpacking import check_size

TEXT_TYPES = {"string", "large_string", "string_view", "binary", "large_binary", "binary_view"}


@dataclass(frozen=True)
class ParquetReader:
    """A Parquet file whose header was read."""

    path: Path
    metadata: Any
    decimal = None
    separator = ""
    notes = ()

    @classmethod
    def open(cls, path: Path) -> ParquetReader:
        """Read the header of a file."""
        from pyarrow import parquet

        with path.open("rb") as file:
            metadata = parquet.read_metadata(file)
        groups = map(metadata.row_group, range(metadata.num_row_groups))
        check_size(path, sum(group.total_byte_size for group in groups))
        return cls(path, metadata)

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

        # a column of nothing has any number of rows
        size = 8 * self.row_count() * len(columns)
        check_size(self.path, size)
        schema = self.metadata.schema.to_arrow_schema()
        text = [field.name for field in schema if str(field.type) in TEXT_TYPES]
        with self.path.open("rb") as file:
            # as it is stored: one long text may stand for all rows
            reader = parquet.ParquetFile(file, metadata=self.metadata, read_dictionary=text)
            for batch in reader.iter_batches(columns=columns):
                batch.validate(full=True)
                cells = dict(zip(batch.schema.names, batch.columns))
                for name in cells.keys() & set(text):
                    lengths = compute.binary_length(cells[name].dictionary)
                    size += compute.sum(lengths.take(cells[name].indices)).as_py() or 0
                    check_size(self.path, size)
                    cells[name] = cells[name].dictionary_decode()
                yield pa.RecordBatch.from_pydict(cells)
