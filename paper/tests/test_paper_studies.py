"""A study is one file: the one in the README is found, run, tabled, drawn and judged without
touching another.
"""

import re
import subprocess
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
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import run, select_studies


@pytest.fixture
def every_study(tmp_path, monkeypatch):
    """The studies of the package, and the toy study of the README in a file of its own."""
    folder = tmp_path / "more"
    folder.mkdir()
    readme = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
    (code,) = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    (folder / "coin.py").write_text(code, encoding="utf-8")
    monkeypatch.setattr(studies, "__path__", [*studies.__path__, str(folder)])
    yield studies.collect_studies(studies.modules())
    sys.modules.pop("frhsic_paper.studies.coin", None)


def test_a_toy_study_in_one_file_is_run_tabled_drawn_and_judged(every_study, tmp_path):
    assert [study.name for study in every_study] == [*(study.name for study in STUDIES), "coin"]
    (coin,) = select_studies(every_study, ["coin"])
    lines, docs = [], tmp_path / "docs"
    options = Options(tmp_path / "out", watch=lines.append)
    run(coin, PUBLISHED, options)
    assert lines == ["coin is not in the paper, so it has no published protocol"]
    run(coin, CORRECTED, options)
    records = read(tmp_path / "out" / "coin-corrected.parquet")
    assert (len(records), {r["n"] for r in records}) == (3 * 50, {10, 100, 1000})
    done = len(lines)
    run(coin, CORRECTED, options)
    assert len(lines) == done  # nothing is computed twice
    paths = [
        path.relative_to(docs).as_posix() for path in write(tmp_path / "out", docs, every_study)
    ]
    assert {"figures/coin-corrected.svg", "reproduction.md", "evidence/claims.md"} < set(paths)
    page, index = (
        (docs / "evidence" / f"{name}.md").read_text(encoding="utf-8")
        for name in ("coin", "claims")
    )
    for part in (
        r"\A# Tosses of a coin\n",
        r"`frhsic reproduce coin`",
        r"\| `paper/results/coin-corrected.parquet` \| 150 \|",
        r"\*\*✓ Holds\.\*\*",
        r"\| slope −0.5 \| slope -0.5",
        r"!\[Tosses of a coin\]\(\.\./figures/coin-corrected\.svg\)\n\n\*Error against tosses",
        (
            r"\*\*Errors, corrected protocol\*\*\n\n\| tosses \| error ± SE \|\n.*\n\| 10 \| 0\.\d+"
            r" ± 0\.\d+ \|"
        ),
    ):
        assert re.search(part, page), part
    assert "(coin.md#coin-rate)" in index


def test_studies_are_known_by_name_and_the_command_lists_them():
    with pytest.raises(ValueError, match="'convergense'"):
        select_studies(STUDIES, ["bound", "convergense"])
    assert select_studies(STUDIES, ["all"]) == list(STUDIES)
    assert all(study.train or study.measure for study in STUDIES)
    listed = CliRunner().invoke(app, ["reproduce"]).output.splitlines()
    assert [line.split()[0] for line in listed] == [study.name for study in STUDIES]


def test_the_command_is_found_without_importing_anything_heavy():
    heavy = {"torch", "numpy", "pandas", "pyarrow", "sklearn", "joblib", "rich"}
    code = f"import sys, frhsic_paper.command; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_names_are_unique_and_each_study_has_a_module_of_its_name():
    names = [study.name for study in STUDIES]
    assert len(names) == len(set(names))
    assert set(studies.PAGE) <= set(names)  # a study that is named nowhere comes last
    for module in studies.modules():
        if hasattr(module, "STUDY"):
            assert module.STUDY.name == module.__name__.rpartition(".")[2].replace("_", "-")
