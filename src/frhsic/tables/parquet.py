"""Parquet files, read in batches; their memory is deducted from a budget before it is allocated."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from frhsic._files import TABLE_TIMES, Budget

# Most bytes of text in a row, and in a piece without its last row.
PIECE_BYTES = 2**24


@dataclass(frozen=True)
class ParquetReader:
    """A Parquet file whose header has been read."""

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
                    f"column {name!r} contains lists or records ({kind}); split it into columns or"
                    " drop it"
                )
        with self.path.open("rb") as file:
            # text stays encoded as in the file: one long text may stand for all rows
            reader = parquet.ParquetFile(file, metadata=self.metadata, read_dictionary=text)
            for batch in reader.iter_batches(columns=columns):
                batch.validate(full=True)
                lengths = np.full(len(batch), 8 * len(text))
                for name in text:
                    cells = batch[name]
                    own = compute.binary_length(cells.dictionary).take(cells.indices)
                    lengths += own.fill_null(0).to_numpy(zero_copy_only=False)
                budget.charge(int(lengths.sum()))
                if lengths.max(initial=0) > PIECE_BYTES:
                    raise ValueError(f"it has a row with more than {PIECE_BYTES:,} bytes of text")
                blocks = np.diff(lengths.cumsum() // PIECE_BYTES, prepend=-1)
                for start, end in pairwise([*np.flatnonzero(blocks), len(batch)]):
                    piece = dict(zip(columns, batch.select(columns).slice(start, end - start)))
                    decoded = {name: piece[name].dictionary_decode() for name in text}
                    yield pa.RecordBatch.from_pydict(piece | decoded)


def _is_fixed(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_decimal(kind) or pa.types.is_fixed_size_binary(kind))
