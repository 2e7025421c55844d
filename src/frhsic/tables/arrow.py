"""Files whose columns have types, Parquet and Arrow (IPC, Feather): their batches, once it is known
that they do not unpack to far more than the file is large.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from frhsic.tables.unpacking import check_size

Opened = tuple[Any, Callable[[list[str]], Iterable[Any]]]
"""The schema of a file, and what reads batches of some columns."""


def open_parquet(path: Path) -> Opened:
    """Open a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    buffer = _mapped(path)
    metadata = pq.read_metadata(pa.BufferReader(buffer))
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    check_size(path, sum(group.total_byte_size for group in groups))
    schema = metadata.schema.to_arrow_schema()
    # as it is stored: one long text may stand for all rows
    text = [field.name for field in schema if field.type in (pa.string(), pa.binary())]
    reader = pq.ParquetFile(pa.BufferReader(buffer), metadata=metadata, read_dictionary=text)

    def batches(columns: list[str]) -> Iterable[Any]:
        check_size(path, 8 * metadata.num_rows * len(columns))
        return _unpacked(path, schema, reader.iter_batches(columns=columns))

    return schema, batches


def open_arrow(path: Path) -> Opened:
    """Open an Arrow file, or a stream in a file."""
    import pyarrow as pa

    buffer = _mapped(path)
    check_size(path, sum(map(_unpacked_bytes, _messages(buffer))))
    if _is_arrow_file(buffer):
        reader = pa.ipc.open_file(buffer)
        every: Iterable[Any] = map(reader.get_batch, range(reader.num_record_batches))
    else:
        every = reader = pa.ipc.open_stream(buffer)
    schema = reader.schema
    return schema, lambda columns: _unpacked(path, schema, (b.select(columns) for b in every))


def _mapped(path: Path) -> Any:
    """Return the bytes of a file; pyarrow takes no name that is not UTF-8."""
    import pyarrow as pa

    with path.open("rb") as file:
        return pa.py_buffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))


def _unpacked(path: Path, schema: Any, batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches with the types of a schema, once it is known that their offsets lie within
    their buffers and that they do not stand for far more than the file is large.
    """
    import pyarrow as pa

    size = 0
    for batch in batches:
        batch.validate(full=True)
        # a column of nothing has any number of rows
        size += 8 * batch.num_rows * batch.num_columns + sum(map(_text_bytes, batch.columns))
        check_size(path, size)
        columns = [
            column if schema.field(name).type == column.type else column.dictionary_decode()
            for name, column in zip(batch.schema.names, batch.columns)
        ]
        yield pa.RecordBatch.from_arrays(columns, batch.schema.names)


def _text_bytes(column: Any) -> int:
    """Return how long the text of all cells is in a column that may point to one text many
    times.
    """
    import pyarrow as pa
    from pyarrow import compute

    views = (pa.string_view(), pa.binary_view())
    several = pa.types.is_dictionary(column.type)
    text = column.dictionary if several else column
    if text.type in views:  # the length of a text stands before its place
        lengths = np.frombuffer(text.buffers()[1], np.int32)[::4][text.offset :][: len(text)]
    elif several and text.type in (pa.string(), pa.large_string(), pa.binary(), pa.large_binary()):
        lengths = compute.binary_length(text).fill_null(0).to_numpy(zero_copy_only=False)
    else:
        return 0
    cells = lengths[column.indices.drop_null().to_numpy()] if several else lengths
    return int(cells.sum(dtype=np.int64))


# The format of Arrow files, as far as it says how large they are (Message.fbs and File.fbs of
# Arrow). A table of FlatBuffers has the offsets of its fields before it.


def _is_arrow_file(buffer: Any) -> bool:
    """Return whether a file has a footer, and is not a stream."""
    return bool(buffer[:6].to_pybytes() == b"ARROW1")


def _messages(buffer: Any) -> Iterator[Any]:
    """Yield the messages of a stream, or those that the footer of a file names."""
    import pyarrow as pa

    if not _is_arrow_file(buffer):
        yield from pa.ipc.MessageReader.open_stream(buffer)
        return
    end = buffer.size - 10
    (length,) = struct.unpack_from("<i", buffer, end)
    footer = buffer[end - length : end].to_pybytes()
    for blocks in (2, 3):  # of dictionaries and of rows
        for start, _, _ in _vector(footer, _field(footer, _follow(footer, 0), blocks), "<qi4xq"):
            yield pa.ipc.read_message(buffer[start:])


def _unpacked_bytes(message: Any) -> int:
    """Return to how many bytes the compressed buffers of a message say that they unpack."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    head = message.metadata.to_pybytes()
    batch = _follow(head, _field(head, _follow(head, 0), 2))
    if message.type == "dictionary":
        batch = _follow(head, _field(head, batch, 1))
    if not _field(head, batch, 3):  # not compressed
        return 0
    buffers = _vector(head, _field(head, batch, 2), "<qq")
    return sum(
        max(struct.unpack_from("<q", message.body, start)[0], length)
        for start, length in buffers
        if length
    )


def _field(table: bytes, place: int, number: int) -> int:
    """Return the place of a field of the table at a place, 0 if it has none."""
    offsets = place - struct.unpack_from("<i", table, place)[0]
    slot = 4 + 2 * number
    (length,) = struct.unpack_from("<H", table, offsets)
    (offset,) = struct.unpack_from("<H", table, offsets + slot) if slot < length else (0,)
    return place + offset if offset else 0


def _follow(table: bytes, place: int) -> int:
    return place + int(struct.unpack_from("<I", table, place)[0])


def _vector(table: bytes, place: int, form: str) -> Iterator[tuple[int, ...]]:
    """Yield the records of a vector."""
    if place:
        start = _follow(table, place)
        (count,) = struct.unpack_from("<I", table, start)
        yield from struct.iter_unpack(form, table[start + 4 :][: count * struct.calcsize(form)])
