"""Mutation testing of the library: which small changes of the code do the tests notice?

mutmut changes one thing in a function: a sign, a number, a comparison, an argument. Each mutant of
a random sample of each room meets the tests that reach its function, in a process of its own, and
the processes that these tests start meet it too. Left out are the paper's tests, those that read
the library's sources, tests that take longer than `--slowest` seconds and, once the tests of a
mutant take `--longest` seconds together, those that reach most other functions: the share of killed
mutants is a lower bound. A mutant that no test reaches has survived. A mutant with which a test
file cannot be read is killed.

    pip install mutmut
    python benchmarks/mutants.py --jobs 16
    python benchmarks/mutants.py --jobs 2 --room persistence cli

Each room has a result, written after each mutant, with all outcomes and what each survivor changes.
The same command goes on where it was cut off; to try the same mutants with other tests, remove
`mutants/` and the results, and give the earlier commit as `--seed`. Write the reason why a mutant
survived in place of "survived": a later run keeps it for the same change.

The seed of the sample is the commit. `mutants/` holds the mutated copy, and in `reached/` what each
test reaches, for one commit and choice of rooms; with others it is made again. One mutant is tried
there with

    MUTANT_UNDER_TEST=NAME PYTHONPATH=src python -m pytest -x tests/test_hsic.py
"""

from __future__ import annotations

import argparse
import compileall
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import redirect_stderr, redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from mutmut import __main__ as mutmut
from mutmut.configuration import config
from mutmut.mutation.diff_apply import get_diff_for_mutant
from scipy import stats

ROOMS = (
    "dependence",
    "parity",
    "independence",
    "estimators",
    "auditing",
    "tables",
    "report",
    "persistence",
    "cli",
)
RESULTS = Path(__file__).resolve().parent / "results" / "mutants"
COPY = Path("mutants").resolve()
READS_SOURCES = ("test_guides.py", "test_names.py")  # of which mutants make megabytes
NOT_COPIED = (".git", ".venv", ".carry", ".*_cache", "__pycache__", "mutants", "build", "dist")
OUTCOMES = {
    pytest.ExitCode.OK: "survived",
    pytest.ExitCode.TESTS_FAILED: "killed",
    pytest.ExitCode.INTERRUPTED: "error at collection",
    pytest.ExitCode.INTERNAL_ERROR: "killed",
    pytest.ExitCode.USAGE_ERROR: "error at collection",  # of conftest.py, or a test is gone
}
SURVIVED = ("survived", "no tests")

# Python runs this first in each process, and so also in those that tests start.
NOTE_WHAT_IS_REACHED = """
import os

if os.environ.get("MUTANT_UNDER_TEST") == "stats":
    from mutmut.mutation import trampoline

    def note(function, caller=None):
        path = os.path.join(os.environ["MUTANTS_REACHED"], function)
        if not os.path.exists(path):
            os.close(os.open(path, os.O_CREAT))

    trampoline.record_trampoline_hit = note
"""


def make_mutants(rooms: list[str], seed: str, jobs: int) -> list[str]:
    """Write a copy of the project with all mutants of the rooms, and return their names."""
    config().only_mutate = [f"src/frhsic/{room}/*.py" for room in rooms]
    made = COPY / "made.json"
    if made.exists():
        earlier = json.loads(made.read_text())
        if earlier["seed"] == seed and earlier["rooms"] == rooms:
            return earlier["names"]
    shutil.rmtree(COPY, ignore_errors=True)
    shutil.copytree(".", COPY, ignore=shutil.ignore_patterns(*NOT_COPIED))
    (COPY / "src" / "sitecustomize.py").write_text(NOTE_WHAT_IS_REACHED)
    with redirect_stdout(None):
        mutmut.create_mutants(jobs)
    compileall.compile_dir(COPY / "src", quiet=1, workers=jobs)  # files of megabytes
    mutants, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    names = sorted(name.replace("__init__.", "") for _, name, _ in mutants)
    made.write_text(json.dumps({"seed": seed, "rooms": rooms, "names": names}))
    return names


def environment(**more: str) -> dict[str, str]:
    """Return the variables of a process that imports the mutated copy."""
    folders = [str(COPY / "src"), os.environ.get("PYTHONPATH", "")]
    paths = {"PYTHONPATH": os.pathsep.join(folders), "PYTHONDONTWRITEBYTECODE": ""}
    return {**os.environ, **paths, "OMP_NUM_THREADS": "1", **more}


class _Reached:
    """Plugin of pytest: note which functions each test reaches, and how long it takes."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.seconds: dict[str, float] = {}
        self.failing: set[str] = set()
        self.functions: dict[str, set[str]] = {}
        self.by_import: set[str] = set()
        self.by_fixture: dict[Any, set[str]] = {}

    def _taken(self) -> set[str]:
        paths = list(self.folder.iterdir())
        for path in paths:
            path.unlink()
        return {path.name for path in paths}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the examples in docstrings of mutants, which are those of the function."""
        items[:] = [item for item in items if "__mutmut_" not in item.nodeid]

    def pytest_collection_finish(self) -> None:
        """Note what is reached by imports, for all tests of the file."""
        self.by_import = self._taken()

    def pytest_runtest_setup(self, item: Any) -> None:
        """Forget what was computed for an earlier test, so that this one reaches it too."""
        self.functions[item.nodeid] = self.by_import | self._taken()
        for module in list(sys.modules.values()):
            if str(COPY) in (getattr(module, "__file__", None) or ""):
                for value in vars(module).values():
                    if isinstance(value, functools._lru_cache_wrapper):
                        value.cache_clear()

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Iterator[None]:
        """Note what a fixture reaches, for all tests that use it."""
        self.functions[request._pyfuncitem.nodeid] |= self._taken()
        try:
            return (yield)
        finally:
            self.by_fixture.setdefault(fixturedef, set()).update(self._taken())

    def pytest_runtest_teardown(self, item: Any) -> None:
        functions = self.functions[item.nodeid]
        functions |= self._taken()
        fixtures = getattr(item, "_fixtureinfo", None)
        for definitions in fixtures.name2fixturedefs.values() if fixtures else ():
            for definition in definitions:
                functions |= self.by_fixture.get(definition, set())

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if not report.passed:
            self.failing.add(report.nodeid)


def note_reached(path: str) -> str:
    """Run a file of tests, write what each test reaches to `reached/` and return the path."""
    os.chdir(COPY)
    sys.path.insert(0, str(COPY / "src"))  # before the paths of the process that started this one
    with (
        tempfile.TemporaryDirectory() as folder,
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
    ):
        os.environ["MUTANTS_REACHED"] = folder
        reached = _Reached(folder)
        code = pytest.main(["-q", "-p", "no:cacheprovider", path], plugins=[reached])
        os.environ["MUTANT_UNDER_TEST"] = ""  # what runs on after the tests notes nothing
    result = {
        "exit code": int(code),
        "failing": sorted(reached.failing),
        "tests": {
            test: {"seconds": round(reached.seconds[test], 2), "functions": sorted(functions)}
            for test, functions in reached.functions.items()
            if test not in reached.failing
        },
    }
    _file_of(path).write_text(json.dumps(result))
    return path


def _file_of(path: str) -> Path:
    return COPY / "reached" / f"{path.replace('/', '.')}.json"


def reached_by_tests(tests: list[str], jobs: int) -> dict[str, Any]:
    """Return what the tests of each file reach; files that were run before are not run again."""
    (COPY / "reached").mkdir(exist_ok=True)
    paths = sorted({path for test in tests for path in _files_of(COPY / test)})
    missing = [path for path in paths if not _file_of(path).exists()]
    missing.sort(key=lambda path: -(COPY / path).stat().st_size)
    os.environ.update(environment(MUTANT_UNDER_TEST="stats"))
    with get_context("spawn").Pool(jobs, maxtasksperchild=1) as pool:
        for path in pool.imap_unordered(note_reached, missing):
            print(path, flush=True)
    return {path: json.loads(_file_of(path).read_text()) for path in paths}


def _files_of(test: Path) -> list[str]:
    if test.is_file():
        return [str(test.relative_to(COPY))]
    return [
        str(path.relative_to(COPY))
        for path in test.rglob("*.py")
        if path.name not in READS_SOURCES
        and (path.name.startswith("test_") or ">>> " in path.read_text(encoding="utf-8"))
    ]


def tests_by_function(files: dict[str, Any], slowest: float) -> dict[str, list[Any]]:
    """Return the tests that reach each function, with their seconds, the closest first: those that
    reach the fewest functions.
    """
    tests = defaultdict(list)
    for reached in files.values():
        for name, test in reached["tests"].items():
            if test["seconds"] < slowest:
                for function in test["functions"]:
                    tests[function].append((len(test["functions"]), test["seconds"], name))
    return {
        function: [(name, seconds) for _, seconds, name in sorted(reaching)]
        for function, reaching in tests.items()
    }


def closest(tests: list[Any], longest: float) -> dict[str, float]:
    """Return the closest of some tests that take no longer together, the quickest first."""
    chosen: dict[str, float] = {}
    for name, seconds in tests:
        if sum(chosen.values()) + seconds <= longest:
            chosen[name] = seconds
    return dict(sorted(chosen.items(), key=lambda one: one[1]))


def try_mutant(name: str, tests: dict[str, float]) -> str:
    """Return what becomes of a mutant with its tests, in a process of its own."""
    if not tests:
        return "no tests"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    with subprocess.Popen(
        command,
        cwd=COPY,
        env=environment(MUTANT_UNDER_TEST=name),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    ) as process:
        try:
            code = process.wait(60 + 3 * sum(tests.values()))
        except subprocess.TimeoutExpired:
            return "timeout"
        finally:
            _end_all(process.pid)
    return OUTCOMES.get(code, "crash")  # type: ignore[call-overload]


def _end_all(group: int) -> None:
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        return


@functools.cache
def change_of(mutant: str) -> str:
    """Return the lines that a mutant removes and adds."""
    lines = get_diff_for_mutant(mutant).splitlines()[2:]
    return "\n".join(line for line in lines if line.startswith(("+", "-")))


def _function(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


def _read(result: Path) -> dict[str, Any]:
    return json.loads(result.read_text(encoding="utf-8")) if result.exists() else {}


def summary(
    outcomes: dict[str, str], total: int, reasons: dict[tuple[str, str], str]
) -> dict[str, Any]:
    """Return how many mutants were killed, with a 95 % interval (Clopper and Pearson), and who
    survived.
    """
    killed = sum(outcome not in SURVIVED for outcome in outcomes.values())
    interval = stats.binomtest(killed, len(outcomes)).proportion_ci(0.95)
    return {
        "mutants in all": total,
        "mutants": len(outcomes),
        "killed": killed,
        "share": round(killed / len(outcomes), 3),
        "interval": [round(interval.low, 3), round(interval.high, 3)],
        "survived": {
            name: {
                "change": change_of(name),
                "reason": reasons.get((_function(name), change_of(name)), outcome),
            }
            for name, outcome in sorted(outcomes.items())
            if outcome in SURVIVED
        },
        "outcomes": outcomes,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--room", nargs="+", choices=ROOMS, default=list(ROOMS))
    parser.add_argument("--sample", type=int, default=40, help="mutants of each room")
    parser.add_argument("--seed", help="the tested commit (that of git)")
    parser.add_argument("--slowest", type=float, default=30.0, help="seconds of one test")
    parser.add_argument("--longest", type=float, default=120.0, help="seconds of a mutant's tests")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--tests", nargs="+", default=["tests", "src/frhsic"])
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    git = ["git", "rev-parse", "HEAD"]
    seed = options.seed or subprocess.check_output(git, text=True).strip()
    names = make_mutants(options.room, seed, options.jobs)
    files = reached_by_tests(options.tests, options.jobs)
    tests = tests_by_function(files, options.slowest)
    about = {
        "commit": seed,
        "slowest test, seconds": options.slowest,
        "tests of a mutant, seconds": options.longest,
        "files that cannot be read": [
            path for path, reached in files.items() if reached["exit code"] in (2, 3, 4)
        ],
        "tests left out, which fail or are skipped without a mutant": [
            test for reached in files.values() for test in reached["failing"]
        ],
    }
    mutants: dict[str, list[str]] = {}
    results: dict[str, dict[str, str]] = {}
    reasons: dict[tuple[str, str], str] = {}
    options.output.mkdir(parents=True, exist_ok=True)
    for room in options.room:
        earlier = _read(options.output / f"{room}.json")
        committed = _read(RESULTS / f"{room}.json")
        for name, one in (committed | earlier).get("survived", {}).items():
            if one["reason"] not in SURVIVED:
                reasons[_function(name), one["change"]] = one["reason"]
        results[room] = earlier["outcomes"] if earlier.get("commit") == seed else {}
        mutants[room] = [name for name in names if name.startswith(f"frhsic.{room}.")]
        random.Random(f"{seed} {room}").shuffle(mutants[room])
    with ThreadPoolExecutor(options.jobs) as pool:
        running = {}
        for turn in range(options.sample):  # one mutant of each room after the other
            for room in options.room:
                for name in mutants[room][turn : turn + 1]:
                    if name not in results[room]:
                        own = closest(tests.get(_function(name), []), options.longest)
                        running[pool.submit(try_mutant, name, own)] = room, name
        for done in as_completed(running):
            room, name = running[done]
            results[room][name] = done.result()
            print(f"{name}: {results[room][name]}", flush=True)
            found = summary(results[room], len(mutants[room]), reasons)
            result = {"room": room, **about, **found}
            text = json.dumps(result, indent=1, ensure_ascii=False)
            (options.output / f"{room}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
