"""Print the oldest versions of the dependencies that pyproject.toml allows, extras included, as
pins for pip.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTRAS = ("torch", "polars", "dask")


def bounds() -> dict[str, str]:
    """Return the lower bound of each dependency."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [
        *project["dependencies"],
        *(line for name in EXTRAS for line in project["optional-dependencies"][name]),
    ]
    found = [
        re.fullmatch(r"([\w-]+)(?:\[[\w,]+\])?>=([\d.]+)(?:,<[\d.]+)?", line) for line in asked
    ]
    return {match[1]: match[2] for match in found if match is not None}


if __name__ == "__main__":
    print(*(f"{name}=={version}" for name, version in bounds().items()), sep="\n")
