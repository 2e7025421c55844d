"""Files that one version of scikit-learn, NumPy, skops and LightGBM wrote and another reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from trust.lowest import bounds
from trust.upgrading import OWN

PROGRAM = Path(__file__).with_name("upgrading.py")
SOURCE = PROGRAM.parents[2] / "src"
# What differs between the environments: the libraries in question, and those that old ones need.
LIBRARIES = (
    "numpy",
    "scipy",
    "pandas",
    "scikit-learn",
    "joblib",
    "skops",
    "lightgbm",
    "safetensors",
    "pyarrow",
)


def environment(folder: Path, requirements: list[str]) -> Path:
    """Return the Python of an environment with these packages before those of this one."""
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    command = [python, "-m", "pip", "install", "-q", "--no-deps", *requirements, "pytz"]
    installed = subprocess.run(command, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(f"packages cannot be installed: {installed.stderr[-300:]}")
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return python


def run(python: Path, *arguments: str | Path) -> str:
    settings = {**os.environ, "PYTHONPATH": str(SOURCE), "OMP_NUM_THREADS": "1"}
    command = [python, PROGRAM, *arguments]
    done = subprocess.run(command, env=settings, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="environments have another layout")
def test_files_of_the_oldest_and_the_newest_versions_load_in_the_other(tmp_path: Path):
    """Own models have the same scores; others have, too, or `load` names both versions."""
    pins = bounds()
    pythons = {
        "oldest": environment(tmp_path / "oldest", [f"{name}=={pins[name]}" for name in LIBRARIES]),
        "newest": environment(tmp_path / "newest", ["-U", *LIBRARIES]),
    }
    for name, python in pythons.items():
        (tmp_path / f"files of {name}").mkdir()
        run(python, "save", tmp_path / f"files of {name}")
    for writer in pythons:
        for reader, python in pythons.items():
            results = json.loads(run(python, "load", tmp_path / f"files of {writer}"))
            assert results.keys() > OWN
            for model, result in results.items():
                equal = model in OWN or reader == writer
                assert result == "equal" or (not equal and "It was saved with" in result), (
                    f"{model} of {writer} in {reader}: {result}"
                )
