"""The command of the reproduction: what it knows before anything is run."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from frhsic.cli import app
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import named


def test_unknown_studies_are_named():
    with pytest.raises(ValueError, match="no study 'convergense'"):
        named(STUDIES, ["bound", "convergense"])
    assert named(STUDIES, ["all"]) == [study for study in STUDIES if study.train or study.measure]


def test_the_command_is_found_without_importing_anything_heavy():
    heavy = {"torch", "numpy", "pandas", "pyarrow", "sklearn", "joblib", "rich"}
    code = f"import sys, frhsic_paper.command; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_command_lists_the_studies():
    shown = CliRunner().invoke(app, ["reproduce"])
    assert shown.exit_code == 0
    assert all(s.name in shown.output for s in STUDIES)
