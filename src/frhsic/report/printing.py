"""The page as PDF, printed by a browser without a window."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from frhsic._files import require_writable, write_whole
from frhsic.auditing import Audit
from frhsic.report.model import Report
from frhsic.report.page import render

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
"""Programs that can print a page, by the order in which they are looked for."""
SECONDS = 120


def find_browser() -> str:
    """Return the path of a browser that can print; raise if there is none."""
    for name in BROWSERS:
        path = shutil.which(name)
        if path is not None:
            return path
    raise ValueError(
        f"a PDF is printed by a browser, and none of {', '.join(BROWSERS)} is on the PATH. Install one (on Debian: "
        "apt-get install chromium), or print the HTML report from a browser of your own."
    )


def write_pdf(report: Report | Audit, path: str | os.PathLike[str]) -> Path:
    """Print the page of a report to `path` on A4, completely or not at all, and return the path.

    It needs Chromium, Chrome or Edge on the PATH; nothing is fetched.
    """
    target = Path(path)
    require_writable({"PDF": target})
    write_whole(target, printed(report))
    return target


def page_bytes(report: Report | Audit, kind: str) -> bytes:
    """Return a report as the content of a file: an HTML page, or a "PDF"."""
    return printed(report) if kind == "PDF" else render(report).encode()


def printed(report: Report | Audit) -> bytes:
    """Return the page of a report as PDF."""
    browser = find_browser()
    with tempfile.TemporaryDirectory() as folder:
        page, document = Path(folder, "report.html"), Path(folder, "report.pdf")
        page.write_text(render(report), encoding="utf-8")
        command = [
            browser,
            "--headless=new",
            "--disable-gpu",
            "--no-first-run",
            "--disable-background-networking",
            "--no-pdf-header-footer",
            "--virtual-time-budget=10000",
            f"--user-data-dir={Path(folder, 'profile')}",
            f"--print-to-pdf={document}",
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.append("--no-sandbox")  # Chromium refuses to run as root with its sandbox
        try:
            done = subprocess.run([*command, page.as_uri()], capture_output=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise ValueError(f"{browser} did not print the report within {SECONDS} seconds.") from None
        if not document.is_file() or not document.read_bytes().startswith(b"%PDF"):
            said = done.stderr.decode(errors="replace").strip().splitlines()
            raise ValueError(f"{browser} did not print the report: {said[-1] if said else 'it gave no reason'}")
        return document.read_bytes()
