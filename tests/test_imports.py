"""What is slow to import is imported late: the heavy packages of each command and of each name."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from cli_samples import people
from frhsic import ParityClassifier, save

HEAVY = ("torch", "sklearn", "scipy.stats", "scipy", "pandas", "lightgbm", "matplotlib", "skops")
SOLVED = {"sklearn", "scipy.stats", "scipy", "pandas", "lightgbm"}

RUN = """
import sys
from frhsic.cli import main
sys.argv = ["frhsic", {arguments}]
try:
    main()
except SystemExit as end:
    print(end.code)
"""


def outcome(code: str, folder: Path) -> tuple[str, set[str]]:
    """Return the last line that Python printed, and the heavy packages that it imported."""
    code += f"\nimport sys\nprint(*sorted(set({HEAVY}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env=os.environ | {"NO_COLOR": "1"},
    )
    *printed, heavy = done.stdout.splitlines()
    return printed[-1] if printed else "", set(heavy.split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("imports")
    rows = people()
    rows.to_csv(place / "t.csv", index=False)
    model = ParityClassifier(cv=2, random_state=0, n_jobs=1)
    model.fit(rows[["skill", "rank", "job"]], rows["repaid"], sensitive_features=rows["age"])
    save(model, place / "model.frhsic")
    return place


@pytest.mark.parametrize(
    ("arguments", "code", "heavy"),
    [
        ("--help", 0, set()),
        ("audit t.csv", 2, set()),
        ("audit t.csv -s age --score score --out missing/report.html", 2, {"scipy"}),
        ("audit t.csv -s agee --score score", 2, {"scipy", "pandas"}),
        ("predict model.frhsic missing.csv", 2, {"pandas"}),
        ("predict model.frhsic t.csv", 0, SOLVED),
        ("datasets list", 0, {"pandas"}),
    ],
)
def test_a_command_imports_what_it_uses(folder, arguments, code, heavy):
    quoted = ", ".join(map(repr, arguments.split()))
    assert outcome(RUN.format(arguments=quoted), folder) == (str(code), heavy)


@pytest.mark.parametrize(
    ("code", "heavy"),
    [
        ("import frhsic; frhsic.gdp([0.1, 0.2, 0.3, 0.6] * 50, [0, 0, 0, 1] * 50)", {"scipy"}),
        ("import frhsic.parity, frhsic.auditing", {"scipy"}),
        (
            "import numpy as np\n"
            "from frhsic import ParityClassifier, ParityCoupling\n"
            "x = np.random.default_rng(0).normal(size=(60, 2))\n"
            "model = ParityClassifier(cv=2, random_state=0, limit=None)\n"
            "model.fit(x, x[:, 0] > 0, sensitive_features=x[:, 1]).predict(x)\n"
            "ParityCoupling(cv=2, random_state=0).fit_transform(x, sensitive_features=x[:, 1])",
            SOLVED,
        ),
    ],
    ids=["gdp", "parity", "solved"],
)
def test_a_name_imports_what_it_uses(folder, code, heavy):
    assert outcome(code, folder)[1] == heavy


def test_no_test_of_the_library_imports_the_paper():
    statement = re.compile(r"^\s*(import|from) frhsic_paper|importorskip\(.frhsic_paper", re.M)
    files = list(Path(__file__).parent.rglob("*.py"))
    assert len(files) > 50
    assert [path for path in files if statement.search(path.read_text("utf-8"))] == []


NEED_TORCH = {
    "FRHSICClassifier": "import frhsic; frhsic.FRHSICClassifier",
    "select_weight": "import frhsic; frhsic.select_weight",
    "hsic": "import frhsic; frhsic.hsic([1, 2], [1, 2])",
    "gamma_test": "from frhsic.independence import gamma_test",
    "frhsic.penalties": "from frhsic.penalties import HSIC",
    "frhsic.training": "from frhsic.training import Training",
    "frhsic.kernels": "from frhsic.kernels import Gaussian",
}


def test_what_needs_torch_says_in_one_line_how_to_install_it(tmp_path):
    missing = "raise ModuleNotFoundError(\"No module named 'torch'\", name='torch')"
    (tmp_path / "torch.py").write_text(missing)
    lines = [
        f"try:\n    {line}\nexcept ModuleNotFoundError as error:\n    print(error)"
        for line in NEED_TORCH.values()
    ]
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,
    )
    asked = "torch, which is not installed; run `pip install torch`."
    assert done.stdout.splitlines() == [f"{name} needs {asked}" for name in NEED_TORCH]
