"""Write a file as a whole."""

from __future__ import annotations

import os
import uuid
from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Write under a temporary name, then rename: a reader sees the whole file or none, and a failure leaves none."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        with open(unfinished, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
