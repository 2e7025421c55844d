"""Write models, reports, tables and records safely.

:func:`require_writable` checks a path before the content is computed. The content is then written
to a temporary file in the same folder and flushed to disk, and this file replaces the old one in
one step. On Linux, the temporary file has no name until it is complete, so a killed process leaves
nothing behind. The file keeps the mode, owner and group of the old one; a new file is readable only
by users who can read all of its `inputs`.
"""

from __future__ import annotations

import contextlib
import io
import os
import stat
import uuid
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import BinaryIO, TextIO

# Memory that reading a file may take: a multiple of its size, or at least this many bytes. Tables
# are read in pieces, and a column with a single value takes few bytes in a file.
MODEL_TIMES = 25
TABLE_TIMES = 200
ALWAYS_BYTES = 2**27
# Memory for copies of a text while it is parsed; one wide character widens all characters to four
# bytes.
PARSED_TIMES = 8


class Budget:
    """Number of bytes of memory that may be used to read one file. Readers charge memory to the
    budget before they allocate it.

    Examples
    --------
    >>> budget = Budget(100)
    >>> budget.charge(80)
    >>> budget.charge(80)
    Traceback (most recent call last):
    ValueError: it takes more than 100 bytes of memory. If you trust the file, raise max_bytes ...
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.charged = 0

    @classmethod
    def of_file(cls, path: Path, times: int, max_bytes: int | None = None) -> Budget:
        """Return the budget for a file: `max_bytes` if given, otherwise a multiple of the file's
        size.
        """
        if max_bytes is None:
            max_bytes = max(times * path.stat().st_size, ALWAYS_BYTES)
        return cls(max_bytes)

    def charge(self, size: int) -> None:
        """Charge a number of bytes to the budget; raise if it is exceeded."""
        self.charged += size
        if self.charged > self.max_bytes:
            raise ValueError(
                f"it takes more than {self.max_bytes:,} bytes of memory. If you trust the file, "
                "raise max_bytes (--max-bytes)"
            )

    def charge_text(self, text: bytes, signs: Mapping[bytes, int]) -> None:
        """Charge the largest amount of memory that a parsed text may use: a multiple of its size,
        plus the memory for the values that it encodes.
        """
        self.charge(
            PARSED_TIMES * len(text) + sum(n * text.count(sign) for sign, n in signs.items())
        )


def require_regular(path: Path, kind: str) -> None:
    """Raise unless a path is a regular file, which can be read more than once."""
    if not path.exists():
        raise FileNotFoundError(f"there is no {kind} {str(path)!r}.")
    if not path.is_file():
        raise ValueError(f"the {kind} {str(path)!r} is a folder, a pipe or a device; pass a file.")


def require_writable(files: Mapping[str, Path], inputs: Mapping[str, Path] | None = None) -> None:
    """Raise if a file cannot be written. Call this function before computing the content.

    A path is rejected if it is a folder, a device or a pipe, if it is also an input or another
    output, or if its folder does not exist or is not writable, which is tested by creating a file
    in it.

    Parameters
    ----------
    files
        Paths, keyed by their names for messages, such as "report".
    inputs
        Files that are read and must not be overwritten, keyed by their names for messages.
    """
    seen: dict[Path, str] = {}
    for kind, path in files.items():
        target = _target(path, kind)
        for what, read in (inputs or {}).items():
            if target.exists() and read.exists() and target.samefile(read):
                raise ValueError(
                    f"the {kind} would overwrite the {what} {str(read)!r}; choose another path."
                )
        if target in seen:
            raise ValueError(
                f"{seen[target]} and {kind} would be the same file, {str(path)!r}; choose different"
                " paths."
            )
        seen[target] = kind
        if not target.parent.is_dir():
            raise ValueError(
                f"the folder {str(path.parent)!r} of the {kind} does not exist; create it first."
            )
        trial = _beside(target)
        try:
            trial.open("xb").close()
        except OSError as error:
            raise ValueError(
                f"the {kind} {str(path)!r} cannot be written: {error.strerror}."
            ) from error
        finally:
            trial.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """Write one file, completely or not at all."""
    write_together({path: data})


@contextlib.contextmanager
def open_whole(path: Path, inputs: Collection[Path] = ()) -> Iterator[TextIO]:
    """Open a text file to be written piece by piece; it replaces the old file if the block
    succeeds.
    """
    target = _target(path, "file")
    unfinished = _beside(target)
    try:
        with _synced(unfinished, target, inputs) as stream:
            text = io.TextIOWrapper(stream, "utf-8", newline="")
            yield text
            text.detach()  # flushes the rest
        os.replace(unfinished, target)
    finally:
        unfinished.unlink(missing_ok=True)


def write_together(contents: Mapping[Path, bytes], inputs: Collection[Path] = ()) -> None:
    """Write several files, or none if anything fails, in which case all old files stay unchanged.

    Only a crash between two renames can leave a mix of new and old files, all of them complete.
    """
    targets = {_target(path, "file"): data for path, data in contents.items()}
    previous = {target: target.read_bytes() for target in targets if target.exists()}
    unfinished = {target: _beside(target) for target in targets}
    placed: list[Path] = []
    try:
        for target, data in targets.items():
            with _synced(unfinished[target], target, inputs) as stream:
                stream.write(data)
        for target in targets:
            placed.append(target)
            os.replace(unfinished[target], target)
    except BaseException:
        for target in placed:
            if unfinished[target].exists():  # it was not renamed
                continue
            if target in previous:
                with _synced(unfinished[target], target) as stream:
                    stream.write(previous[target])
                os.replace(unfinished[target], target)
            else:
                target.unlink()
        raise
    finally:
        for path in unfinished.values():
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _synced(unfinished: Path, target: Path, inputs: Collection[Path] = ()) -> Iterator[BinaryIO]:
    """Open a temporary file that will replace the target and has the target's mode, and flush it to
    disk at the end. Errors that don't name a file, such as those for a full disk, name the target.
    """
    old = target.stat() if target.exists() else None
    mode = _new_mode(inputs) if old is None else 0o600
    try:
        nameless = _nameless(target.parent, mode)
        named = os.O_WRONLY | os.O_CREAT | os.O_EXCL
        with open(
            os.open(unfinished, named, mode) if nameless is None else nameless, "wb"
        ) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
            if nameless is not None:
                # passing a descriptor, though a full path doesn't need one, makes the call follow
                # the link
                os.link(f"/proc/self/fd/{nameless}", unfinished, src_dir_fd=nameless)
        if old is not None:
            _keep_access(unfinished, old)
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(target)) from error


def _nameless(folder: Path, mode: int) -> int | None:
    """Open a new file without a name; return None if the system doesn't support this."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(folder, os.O_WRONLY | os.O_TMPFILE, mode)
    except OSError:  # unsupported, or no file can be created, which is reported elsewhere
        return None


def _new_mode(inputs: Collection[Path]) -> int:
    """Return the mode of a new file, which is readable only by users who can read each of the
    inputs.
    """
    mode = 0o666
    for path in inputs:
        if not path.exists():  # a pattern of names
            continue
        state = path.stat()
        if not state.st_mode & stat.S_IROTH:
            shared = state.st_mode & stat.S_IRGRP and state.st_gid == os.getegid()
            mode &= 0o660 if shared else 0o600
    return mode


def _keep_access(path: Path, old: os.stat_result) -> None:
    """Copy the owner, group and mode of the old file; if the group cannot be kept, remove the
    group's access.
    """
    mode = stat.S_IMODE(old.st_mode)
    new = path.stat()
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        try:
            os.chown(path, old.st_uid, old.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG
    path.chmod(mode)


def _target(path: Path, kind: str) -> Path:
    """Return the file that a path leads to; raise unless this file is a regular file or doesn't
    exist yet.
    """
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    except OSError as error:  # a loop of links, or a file in place of a folder
        raise ValueError(
            f"the {kind} {str(path)!r} cannot be written: {error.strerror}."
        ) from error
    if not stat.S_ISREG(mode):
        raise ValueError(
            f"the {kind} cannot be written to {str(path)!r}, which is a folder, device or pipe; "
            "pass the path of a file."
        )
    if not os.access(path, os.W_OK):
        raise ValueError(f"the {kind} {str(path)!r} cannot be written: the file is read-only.")
    return Path(os.path.realpath(path))


def _beside(path: Path) -> Path:
    return path.with_name(f".{uuid.uuid4().hex}.part")
