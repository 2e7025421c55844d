"""The wheel: what is in it, what its code must not do, and that it runs alone without a network."""

from __future__ import annotations

import ast
import doctest
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from lowest import EXTRAS, bounds
from sklearn.utils.fixes import parse_version

from real_data import raw_folder

ROOT = Path(__file__).resolve().parents[2]
DATA = {"frhsic/py.typed", "frhsic/datasets/catalogue.toml"}
CALLS = {"eval", "exec", "compile", "__import__"}
MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "marshal", "shelve"}
ATTRIBUTES = {"os.system", "os.popen", "torch.load", "joblib.load", "np.load", "yaml.load"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel from a copy of what goes into it, so that nothing is left in the
    repository.
    """
    folder = tmp_path_factory.mktemp("wheel")
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder)
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--no-deps",
        "--no-input",
        "-q",
        "-w",
        str(folder),
        str(folder),
    ]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"the wheel cannot be built here: {built.stderr.strip().splitlines()[-1:]}")
    return next(folder.glob("*.whl"))


def sources() -> dict[str, str]:
    """Return the names that the wheel must have for the code of the library, and where they come
    from.
    """
    return {
        str(path.relative_to(ROOT / "src")): str(path)
        for path in (ROOT / "src" / "frhsic").rglob("*.py")
    }


@pytest.mark.slow
def test_the_wheel_holds_the_library_and_nothing_else(wheel: Path):
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        about = {
            name.partition(".dist-info/")[2] for name in archive.namelist() if ".dist-info/" in name
        }
    assets = {
        str(path.relative_to(ROOT / "src"))
        for path in (ROOT / "src" / "frhsic" / "report" / "assets").iterdir()
    }
    assert names == sources().keys() | DATA | assets
    assert about == {
        "METADATA",
        "WHEEL",
        "RECORD",
        "entry_points.txt",
        "top_level.txt",
        "licenses/LICENSE",
    }


def forbidden(tree: ast.AST) -> Iterator[str]:
    """Yield what code must not do: unpickle, run text as code, or start a shell."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (
                alias.name for alias in node.names if alias.name.partition(".")[0] in MODULES
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in MODULES:
            yield f"from {node.module}"
        elif isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id in CALLS:
                yield called.id
            if isinstance(called, ast.Attribute) and ast.unparse(called) in ATTRIBUTES:
                yield ast.unparse(called)
            for word in node.keywords:
                if word.arg in ("shell", "allow_pickle") and ast.unparse(word.value) != "False":
                    yield f"{word.arg}="


@pytest.mark.parametrize(
    "code",
    [
        "import pickle",
        "from pickle import loads",
        "import marshal",
        "eval('1')",
        "exec('1')",
        "__import__('os')",
        "subprocess.run('ls', shell=True)",
        "os.system('ls')",
        "np.load(path, allow_pickle=True)",
        "torch.load(path)",
    ],
)
def test_the_search_finds_what_it_looks_for(code: str):
    assert list(forbidden(ast.parse(code)))


def test_no_code_of_the_library_unpickles_evaluates_or_starts_a_shell():
    for name, path in sources().items():
        assert list(forbidden(ast.parse(Path(path).read_text(encoding="utf-8")))) == [], name


@pytest.mark.slow
def test_the_wheel_runs_the_readme_and_the_demo_alone_and_without_a_network(
    wheel: Path, tmp_path: Path
):
    """A new environment with the dependencies and no extras; addresses that nobody answers stand
    for no network.
    """
    folder = raw_folder()
    if folder is None:
        pytest.skip("the raw data are not here")
    environment = tmp_path / "environment"
    python = environment / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    install = [
        str(python),
        "-m",
        "pip",
        "install",
        "-q",
        "--no-input",
        "-c",
        str(ROOT / "constraints.txt"),
        str(wheel),
    ]
    # a path to the sources would pass for an installed library
    alone = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    installed = subprocess.run(install, env=alone, capture_output=True, text=True, check=False)
    if installed.returncode:
        pytest.skip(
            f"the dependencies cannot be had here: {installed.stderr.strip().splitlines()[-1:]}"
        )
    extras = (
        "import importlib.util as u; print([n for n in ('lightgbm', 'skops', 'polars', 'dask') if"
        " u.find_spec(n)])"
    )
    nowhere = "http://127.0.0.1:9"
    offline = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "FRHSIC_DATA": str(folder),
        "OMP_NUM_THREADS": "1",
        "http_proxy": nowhere,
        "https_proxy": nowhere,
        "PIP_INDEX_URL": nowhere,
        "PIP_NO_INDEX": "1",
    }

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [str(python), *arguments], cwd=tmp_path, env=offline, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    assert run("-c", extras).strip() == "[]"
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    quickstart = (
        f"import doctest; r = doctest.testfile({str(ROOT / 'README.md')!r}, False,"
        f" optionflags={flags}); "
    )
    run("-c", quickstart + "raise SystemExit(r.failed or r.attempted <= 5)")
    run("-m", "frhsic", "demo")
    assert any(path.suffix == ".html" for path in tmp_path.iterdir())


def test_the_pins_with_hashes_are_the_pinned_versions():
    """torch is left out: its wheel for the CPU comes from an index of its own, with other
    hashes.
    """
    pinned = {
        line.lower().replace("_", "-")
        for line in (ROOT / "constraints.txt").read_text().splitlines()[1:]
    }
    hashed = (ROOT / "hashes.txt").read_text()
    versions = {line.split(" ")[0] for line in hashed.splitlines() if "==" in line}
    assert versions == {pin for pin in pinned if not pin.startswith("torch==")}
    assert "://" not in hashed


def test_every_dependency_has_a_lower_bound_that_the_pinned_version_keeps():
    """The tests run with the pinned versions, `make lowest` runs them with the lower bounds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    least = bounds()
    assert len(least) == len(project["dependencies"]) + sum(len(extras[name]) for name in EXTRAS)
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()[1:]
    pinned = {
        name.lower(): parse_version(version)
        for name, _, version in (line.partition("==") for line in lines)
    }
    assert {name for name, bound in least.items() if pinned[name] < parse_version(bound)} == set()
