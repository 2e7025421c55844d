"""Every Python block of the pages and the README runs, in order, on a small table and with short
training.
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import matplotlib as mpl
import pytest
from threadpoolctl import threadpool_limits

import frhsic
from frhsic.training import Training
from real_data import raw_folder

ROOT = Path(__file__).resolve().parents[1]

README = ROOT / "README.md"
FOLDERS = (".", "evidence")
ALL = [
    README,
    *sorted(path for folder in FOLDERS for path in (ROOT / "docs" / folder).glob("*.md")),
]
BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```(python|py|pycon)\n(.*?)```", re.DOTALL)
"""A Python block, and the package that it needs beyond those of the tests, if its page says so."""
SCHEDULER = 'cluster("local")'
"""The cluster of the pages. Here one in this process takes its place."""
FEWER_ROWS = ".sample(4000,", ".sample(1000,"
"""Rows of the README, and those of the test."""


class Wording(doctest.OutputChecker):
    """Compares what is printed but for its numbers, which differ on a small table."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        """Return whether both have the same words."""
        return re.sub(r"[\d.,]*\d", "#", want) == re.sub(r"[\d.,]*\d", "#", got)


def blocks(page: Path) -> list[tuple[str, str]]:
    """Return the Python blocks of a page in order, each with the package that it needs, or an empty
    text.
    """
    return [(package, code) for package, _, code in BLOCK.findall(page.read_text(encoding="utf-8"))]


PAGES = [path for path in ALL if blocks(path)]
NEEDED = [
    (path, name)
    for path in PAGES
    for name in sorted({package for package, _ in blocks(path) if package})
]


ROWS = slice(0, 300), slice(300, 500), slice(500, 700)
"""Rows of the table of the quickstart: those that are fitted on, held-out ones and new ones."""


def world(folder: Path) -> dict[str, Any]:
    """Names that the pages use without making them: the table of the quickstart, scores, and a file
    of a model.
    """
    table: dict[str, Any] = {}
    for example in doctest.DocTestParser().get_examples(blocks(ROOT / "docs" / "start.md")[0][1]):
        exec(example.source, table)
    columns = {"X": table["X"], "y": table["hired"], "age": table["age"]}
    known, test, new = (
        {name: c[rows].reset_index(drop=True) for name, c in columns.items()} for rows in ROWS
    )
    model = frhsic.FRHSICClassifier(penalty_weight=1, training=Training(epochs=5), random_state=0)
    model.fit(known["X"], known["y"], sensitive_features=known["age"])
    frhsic.save(model, folder / "model.frhsic")
    named = {f"{name}_test": column for name, column in test.items()}
    named |= {f"{name}_new": column for name, column in new.items()}
    return known | named | {"rows": new["X"], "scores_new": model.predict_proba(new["X"])[:, 1]}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    folder = tmp_path_factory.mktemp("pages")
    return folder, world(folder)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    """The address of a cluster whose worker is a thread of this process."""
    from distributed import LocalCluster

    options = {"processes": False, "protocol": "tcp", "dashboard_address": None}
    with LocalCluster(n_workers=1, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


def run(page: Path, packages: set[str], names: dict[str, Any], scheduler: str) -> None:
    """Run the blocks of a page that need one of these packages, or none of their own, which is the
    empty text.
    """
    for number, (package, code) in enumerate(blocks(page)):
        if package not in packages:
            continue
        code = code.replace(SCHEDULER, f'cluster("{scheduler}")').replace(*FEWER_ROWS)
        if ">>>" in code:
            example = doctest.DocTestParser().get_doctest(
                code, names, f"{page.name}, block {number}", None, 0
            )
            said: list[str] = []
            failed = doctest.DocTestRunner(Wording()).run(
                example, out=said.append, clear_globs=False
            )
            assert not failed.failed, "".join(said)
            names.update(example.globs)
        else:
            exec(compile(code, f"{page.name}, block {number}", "exec"), names)


@pytest.fixture
def at_work(
    prepared: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, Any]]:
    """The names of the pages, in their folder, with short training, on one thread."""
    folder, names = prepared
    monkeypatch.chdir(folder)
    monkeypatch.setattr("frhsic.training.recipe.AUTO_EPOCHS", (2, 2))
    monkeypatch.setitem(frhsic.select_weight.__kwdefaults__, "penalty_weights", (0.0, 1.0, 100.0))
    with threadpool_limits(1), mpl.rc_context({"backend": "agg"}):
        yield dict(names)


@pytest.mark.filterwarnings("ignore::UserWarning")  # of small tables, which the pages are not about
@pytest.mark.filterwarnings("ignore:Setting an? :DeprecationWarning")  # fairlearn with new pandas
@pytest.mark.usefixtures("few_trees", "few_epochs")  # the pages show no number of the tree probe
@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, marks=[pytest.mark.slow] * (page.stem != "README"), id=page.stem)
        for page in PAGES
    ],
)
def test_the_code_of_a_page_runs(
    page: Path,
    at_work: dict[str, Any],
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
):
    text = page.read_text(encoding="utf-8")
    if "load_dataset" in text and "FRHSIC_DATA" not in os.environ:
        if raw_folder() is None:
            pytest.skip("the raw data are not here")
        monkeypatch.setenv("FRHSIC_DATA", str(raw_folder()))
    run(page, {""}, at_work, request.getfixturevalue("scheduler") if SCHEDULER in text else "")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of other libraries
@pytest.mark.parametrize(
    ("page", "package"), NEEDED, ids=lambda value: getattr(value, "stem", value)
)
def test_code_for_another_library_runs_where_it_is_installed(
    page: Path, package: str, at_work: dict[str, Any]
):
    if importlib.util.find_spec(package) is None:
        pytest.skip(
            f"{package} is not installed; pip install {package} to run these lines of {page.name}"
        )
    run(page, {"", package}, at_work, "")


@pytest.mark.parametrize("page", ALL, ids=lambda path: path.stem)
def test_every_link_of_a_page_leads_somewhere(page: Path):
    text = page.read_text(encoding="utf-8")
    for file, anchor in re.findall(r"\]\((?!https?:)([^)#\s]*)(?:#([^)]*))?\)", text):
        target = (page.parent / file) if file else page
        assert target.exists(), f"{page.name} links to {file}"
        if anchor and target.suffix == ".md" and target.exists():
            assert anchor in anchors(target), f"{page.name} links to {file}#{anchor}"


@pytest.mark.parametrize("page", ALL, ids=lambda path: path.stem)
def test_every_picture_of_a_page_has_an_alternative_text(page: Path):
    text = page.read_text(encoding="utf-8")
    assert not re.search(r"!\[\s*\]\(|<img (?![^>]*alt=\"\w)|\{image\}[^\n]*\n(?!:alt: \w)", text)


def anchors(page: Path) -> set[str]:
    """Anchors of headings, as GitHub and the site make them, and those that a page sets by
    itself.
    """
    text = page.read_text(encoding="utf-8")
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    slugs = {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}
    return slugs | set(re.findall(r'<a id="([\w-]+)">', text))
