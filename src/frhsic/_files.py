"""Files that are written: one place for models, reports, tables and records.

A path is checked before the work that fills it, by :func:`require_writable`. The content then goes to a temporary file
beside the path, is forced to the disk, and takes the place of the old file in one step.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import stat
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TextIO

UNFINISHED = ".part"
"""Ending of the name of a file that is being written."""

_UNFINISHED_NAME = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(UNFINISHED)}")


def require_writable(files: Mapping[str, Path], inputs: Mapping[str, Path] | None = None) -> None:
    """Raise if a file cannot be written. Call it before the work that the file is for.

    A path is refused if it is a folder, a device or a pipe; if it is one of the inputs or the path of another file;
    and if its folder is missing or takes no new files, which is tried.

    Parameters
    ----------
    files
        Paths, by the words that messages use for them, such as "report".
    inputs
        Files that the work reads, which must not be overwritten, by their words.
    """
    seen: dict[Path, str] = {}
    for kind, path in files.items():
        target = _target(path, kind)
        for what, read in (inputs or {}).items():
            if target.exists() and read.exists() and target.samefile(read):
                raise ValueError(f"the {kind} would overwrite the {what} {str(read)!r}; choose another path.")
        if target in seen:
            raise ValueError(f"{seen[target]} and {kind} would be the same file, {str(path)!r}; choose another path.")
        seen[target] = kind
        if not target.parent.is_dir():
            raise ValueError(f"the folder {str(path.parent)!r} of the {kind} is not there; make it first.")
        trial = _beside(target)
        try:
            trial.open("xb").close()
        except OSError as error:
            raise ValueError(f"the {kind} {str(path)!r} cannot be written: {error.strerror}.") from error
        finally:
            _remove(trial)


def write_whole(path: Path, data: bytes) -> None:
    """Write one file, completely or not at all."""
    write_together({path: data})


@contextlib.contextmanager
def writing(path: Path) -> Iterator[TextIO]:
    """Open a text file to be written piece by piece; it takes its place only if the block ends without an error."""
    target = _target(path, "file")
    unfinished = _beside(target)
    try:
        with _naming(path), open(unfinished, "x", encoding="utf-8", newline="") as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, target)
        _sync_folder(target.parent)
    finally:
        _remove(unfinished)


def write_together(contents: Mapping[Path, bytes]) -> None:
    """Write some files: all of them or, if anything fails on the way, none. An old file then stays as it was.

    Only a loss of power or a kill in the instant between two renames can leave some files new and others old, each of
    them whole.
    """
    targets = {_target(path, "file"): data for path, data in contents.items()}
    unfinished = {target: _beside(target) for target in targets}
    previous: dict[Path, Path] = {}  # copies of the old files, until all new ones are in place
    placed: list[Path] = []
    try:
        for target, data in targets.items():
            with _naming(target), open(unfinished[target], "xb") as stream:
                stream.write(data)
                stream.flush()
                os.fsync(stream.fileno())
        if len(targets) > 1:
            for target in targets:
                if target.exists():
                    previous[target] = _beside(target)
                    _copy(target, previous[target])
        for target in targets:
            placed.append(target)
            os.replace(unfinished[target], target)
        for folder in {target.parent for target in targets}:
            _sync_folder(folder)
    except BaseException:
        if len(targets) > 1:
            for target in placed:
                if target in previous and previous[target].exists():
                    os.replace(previous[target], target)
                elif not unfinished[target].exists():
                    target.unlink(missing_ok=True)
        raise
    finally:
        _remove(*unfinished.values(), *previous.values())


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Let no second process that asks for the same lock work in a folder; raise if one does already.

    The system releases the lock when the process ends, in whatever way. Where it has no such locks, nothing is locked.
    """
    try:
        import fcntl
    except ImportError:  # Windows
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"another process is writing to {str(folder)!r}. Wait until it is done, or choose another folder."
            ) from error
        yield
    finally:
        os.close(handle)


def remove_unfinished(folder: Path) -> None:
    """Remove what writes that were killed have left in a folder and below it. Call it under a lock."""
    for path in folder.rglob(f".*{UNFINISHED}"):
        if _UNFINISHED_NAME.fullmatch(path.name):
            path.unlink(missing_ok=True)


@contextlib.contextmanager
def _naming(path: Path) -> Iterator[None]:
    """Name the file in an error of the system that does not, such as that of a full disk."""
    try:
        yield
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def _target(path: Path, kind: str) -> Path:
    """Return the file that a path leads to; raise unless it is a regular file or can become one."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        return Path(os.path.realpath(path))
    except OSError as error:  # a loop of links, or a file where a folder should be
        raise ValueError(f"the {kind} {str(path)!r} cannot be written: {error.strerror}.") from error
    if stat.S_ISDIR(mode):
        raise ValueError(f"the {kind} is to be written to {str(path)!r}, which is a folder; name a file in it.")
    if not stat.S_ISREG(mode):
        raise ValueError(f"the {kind} is to be written to {str(path)!r}, a device or a pipe; name a file.")
    if not os.access(path, os.W_OK):
        raise ValueError(f"the {kind} {str(path)!r} cannot be written: the file is read-only.")
    return Path(os.path.realpath(path))


def _beside(path: Path) -> Path:
    return path.with_name(f".{uuid.uuid4().hex}{UNFINISHED}")


def _remove(*paths: Path) -> None:
    """Remove files that may be there, also if a signal comes in the middle of it."""
    try:
        for path in paths:
            path.unlink(missing_ok=True)
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


def _copy(path: Path, to: Path) -> None:
    try:
        os.link(path, to)
    except OSError:  # a file system without links
        shutil.copy2(path, to)


def _sync_folder(folder: Path) -> None:
    """Force a rename to the disk, where the system can."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
