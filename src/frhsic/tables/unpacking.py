"""How much a file may unpack to: what every reader asks before it takes memory."""

from __future__ import annotations

from pathlib import Path

# A file may unpack to this many times its size, and to this many bytes in any case.
MOST_TIMES = 200
ALWAYS_BYTES = 2**28


def check_size(path: Path, size: int) -> None:
    """Raise if a file unpacks to far more bytes than it has."""
    if size > max(MOST_TIMES * path.stat().st_size, ALWAYS_BYTES):
        raise ValueError(
            f"it unpacks to more than {MOST_TIMES} times its size; if that is right, unpack it"
            " first"
        )
