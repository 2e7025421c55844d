"""A study is one file: the one in the README is found, run, tabled, drawn and judged without touching another."""

import re
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from frhsic.cli import app
from frhsic_paper import studies
from frhsic_paper.options import Options
from frhsic_paper.page import write
from frhsic_paper.protocol import CORRECTED, PUBLISHED
from frhsic_paper.records import read
from frhsic_paper.study import named, run

ROOT = Path(__file__).parents[1]


@pytest.fixture
def every_study(tmp_path, monkeypatch):
    """The studies of the package, and the toy study of the README in a file of its own."""
    folder = tmp_path / "more"
    folder.mkdir()
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    (folder / "coin.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(folder)])
    yield studies.collected(studies.modules())
    sys.modules.pop("frhsic_paper.studies.coin", None)


def test_a_toy_study_in_one_file_is_run_tabled_drawn_and_judged(every_study, tmp_path):
    assert every_study[-1].name == "coin"
    assert [study.name for study in every_study[:-1]] == [study.name for study in studies.STUDIES]
    (coin,) = named(every_study, ["coin"])
    lines = []
    options = Options(tmp_path / "out", watch=lines.append)
    run(coin, PUBLISHED, options)
    assert lines == ["coin is not in the paper: it has no published protocol"]
    run(coin, CORRECTED, options)
    records = read(tmp_path / "out" / "coin-corrected.parquet")
    assert len(records) == 3 * 50
    assert {r["n"] for r in records} == {10, 100, 1000}
    done = len(lines)
    run(coin, CORRECTED, options)
    assert len(lines) == done  # nothing is computed twice
    paths = write(tmp_path / "out", tmp_path / "docs", every_study)
    names = [path.relative_to(tmp_path / "docs").as_posix() for path in paths]
    assert names[:3] == ["figures/coin-corrected.svg", "reproduction.md", "reproduction/claims.md"]
    assert names[-1] == "reproduction/coin.md"
    page = (tmp_path / "docs" / "reproduction" / "coin.md").read_text(encoding="utf-8")
    assert page.startswith("# Tosses of a coin\n")
    assert "Errors of the mean of 10, 100 and 1,000 tosses of a fair coin, 50 repeats." in page
    assert "Command: `frhsic reproduce coin`." in page
    assert re.search(r"\| `results/coin-corrected.parquet` \| 150 \| — \| — \| \S+", page)
    assert "**✓ Holds.** Slope of the mean error" in page
    assert "| slope −0.5 | not measured there | slope -0.5" in page
    assert "![Error against tosses, corrected protocol. Bars are 95 % intervals](../figures/coin-corrected.svg)" in page
    assert re.search(
        r"\*\*Errors, corrected protocol\*\*\n\n\| tosses \| error ± SE \|\n.*\n\| 10 \| 0\.\d+ ± 0\.\d+ \|", page
    )
    index = (tmp_path / "docs" / "reproduction" / "claims.md").read_text(encoding="utf-8")
    assert "[The mean settles at n^(−1/2).](coin.md#coin-rate)" in index


def test_the_command_line_lists_every_study_that_can_be_run():
    listed = CliRunner().invoke(app, ["reproduce"]).output.splitlines()
    assert [line.split()[0] for line in listed] == [study.name for study in studies.STUDIES if not study.made_by]


def test_the_order_of_the_pages_names_studies_that_exist():
    names = [study.name for study in studies.STUDIES]
    assert len(names) == len(set(names))
    assert set(studies.PAGE) <= set(names)  # a study that is named nowhere comes last


def test_every_study_has_a_module_of_its_name():
    modules = {module.__name__.rpartition(".")[2]: module for module in studies.modules()}
    for name, module in modules.items():
        if hasattr(module, "STUDY"):
            assert module.STUDY.name == name.replace("_", "-")
