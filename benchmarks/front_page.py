"""The picture of the README: the first page of a report.

    python benchmarks/front_page.py            # into docs/figures; needs Chromium on the PATH

The report is that of `examples/credit.py`, on a made-up table.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from PIL import Image

from frhsic.report.page import find_browser

ROOT = Path(__file__).resolve().parents[1]


def report(path: Path, width: int = 900, height: int = 1150) -> None:
    """Run the credit example and take a picture of the first page of its report."""
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "credit.py", folder], cwd=ROOT / "examples", check=True)
        page, picture = Path(folder, "credit.html"), Path(folder, "page.png")
        command = [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        more = [f"--window-size={width},{height}", f"--user-data-dir={folder}/browser", f"--screenshot={picture}"]
        subprocess.run([*command, *more, page.as_uri()], check=True, capture_output=True, timeout=120)
        Image.open(picture).convert("RGB").quantize(48, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    report(ROOT / "docs" / "figures" / "front-report.png")
