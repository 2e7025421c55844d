"""Mutation testing of the statistics: which small changes of the code do the tests notice?

mutmut changes one thing in a function: a sign, a number, a comparison, an argument. Each mutant of
a random sample of `dependence`, `parity` and `independence` meets the tests that reach its
function. Tests that take longer than `--slowest` seconds are left out, so the share of killed
mutants is a lower bound. A mutant that no test reaches has survived. A mutant with which a test
file cannot be read is killed.

    pip install mutmut
    python benchmarks/mutants.py --sample 200 --jobs 8

The result is written after each mutant, so a run that is cut off leaves what it found. It shows
what each survivor changes. Write the reason why it survived in place of "survived": a later run
keeps it for the same change.

The copies of the code stay in `mutants/`, where one mutant is tried with
`MUTANT_UNDER_TEST=NAME python -m pytest -x tests/test_hsic.py`.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
from collections import defaultdict
from contextlib import redirect_stderr, redirect_stdout
from functools import cache, partial
from math import ceil
from multiprocessing import Pool
from pathlib import Path
from typing import Any

import pytest
from mutmut import __main__ as mutmut
from mutmut.configuration import config
from mutmut.mutation.diff_apply import get_diff_for_mutant
from mutmut.mutation.trampoline import set_mutant_under_test
from mutmut.runners.harness import PytestRunner
from mutmut.state import state
from mutmut.stats import status_by_exit_code
from mutmut.utils.file_utils import change_cwd
from mutmut.utils.format_utils import mangled_name_from_mutant_name
from mutmut.workers.isolation import ForkRunner
from scipy import stats

RESULTS = Path(__file__).resolve().parent / "results" / "mutants.json"
UNREADABLE = "error at collection"
KILLED = ("killed", "timeout", "segfault", UNREADABLE)


@cache
def change_of(mutant: str) -> str:
    """Return the lines that a mutant removes and adds."""
    lines = get_diff_for_mutant(mutant).splitlines()[2:]
    return "\n".join(line for line in lines if line.startswith(("+", "-")))


def reasons_in(result: Path) -> dict[tuple[str, str], str]:
    """Return why mutants survived, by function and change, as written into an earlier result."""
    survived = json.loads(result.read_text(encoding="utf-8"))["survived"] if result.exists() else {}
    return {(_function(name), one["change"]): one["reason"] for name, one in survived.items()}


def _function(mutant: str) -> str:
    return mutant.rpartition("__mutmut_")[0]


def summary(
    outcomes: dict[str, str],
    total: int,
    seed: int,
    slowest: float,
    failing: list[str],
    reasons: dict[tuple[str, str], str],
) -> dict[str, Any]:
    """Return how many mutants were killed, with a 95 % interval (Clopper and Pearson), and who
    survived.
    """
    killed = sum(outcome in KILLED for outcome in outcomes.values())
    interval = stats.binomtest(killed, len(outcomes)).proportion_ci(0.95)
    by_package = {
        package: [sum(outcome in KILLED for outcome in of_package), len(of_package)]
        for package in ("dependence", "parity", "independence")
        if (
            of_package := [
                outcome for name, outcome in outcomes.items() if name.split(".")[1] == package
            ]
        )
    }
    return {
        "seed": seed,
        "slowest test, seconds": slowest,
        "tests left out, which fail or are skipped without a mutant": failing,
        "mutants in all": total,
        "mutants": len(outcomes),
        "killed": killed,
        "share": round(killed / len(outcomes), 3),
        "interval": [round(interval.low, 3), round(interval.high, 3)],
        "killed and tried by package": by_package,
        "killed by a time limit": sum(outcome == "timeout" for outcome in outcomes.values()),
        "survived": {
            name: {
                "change": change_of(name),
                "reason": reasons.get((_function(name), change_of(name)), outcome),
            }
            for name, outcome in sorted(outcomes.items())
            if outcome not in KILLED
        },
    }


class _Reached:
    """Plugin of pytest: run one part of the tests, and note which functions each reaches."""

    def __init__(self, part: int, parts: int) -> None:
        self.part, self.parts = part, parts
        self.seconds: dict[str, float] = {}
        self.failing: set[str] = set()
        self.functions: dict[str, set[str]] = {}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        items[:] = items[self.part :: self.parts]

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0) + report.duration
        if not report.passed:
            self.failing.add(report.nodeid)

    def pytest_runtest_teardown(self, item: Any) -> None:
        self.functions[item.nodeid] = set(state()._stats)
        state()._stats.clear()


def _reached(part: int, parts: int) -> _Reached:
    set_mutant_under_test("stats")
    reached, runner = _Reached(part, parts), PytestRunner()
    with (
        Path(os.devnull).open("w") as nowhere,
        redirect_stdout(nowhere),
        redirect_stderr(nowhere),
        change_cwd("mutants"),
    ):
        runner.execute_pytest(
            ["-q", *config().pytest_add_cli_args_test_selection], plugins=[reached]
        )
    return reached


def time_tests(jobs: int, slowest: float) -> list[str]:
    """Note which quick tests reach which function. Return the tests that do not pass without a
    mutant.
    """
    tests_of, failing = defaultdict(set), []
    with Pool(jobs) as pool:
        for reached in pool.imap_unordered(partial(_reached, parts=jobs), range(jobs)):
            failing.extend(reached.failing)
            state().duration_by_test.update(reached.seconds)
            for test, functions in reached.functions.items():
                if test not in reached.failing and reached.seconds[test] < slowest:
                    for function in functions:
                        tests_of[function].add(test)
    state().tests_by_mangled_function_name = tests_of
    return sorted(failing)


def make_mutants(jobs: int) -> list[str]:
    """Write the mutants of all functions to mutants/ and return their names."""
    set_mutant_under_test("mutant_generation")
    Path("mutants").mkdir(exist_ok=True)
    with mutmut.CatchOutput():
        mutmut.copy_src_dir()
        mutmut.copy_also_copy_files()
        mutmut.setup_source_paths()
        mutmut.create_mutants(jobs)
    mutants, _ = mutmut.collect_source_file_mutation_data(mutant_names=())
    return sorted(name.replace("__init__.", "") for _, name, _ in mutants)


def try_mutants(names: list[str], jobs: int, write: Any) -> None:
    """Run the tests of each mutant, `jobs` at a time, and write the outcomes after each."""
    outcomes: dict[str, str] = {}
    runner = ForkRunner(max_workers=jobs, test_runner=PytestRunner())

    def note() -> None:
        result = runner.wait_for_result()
        unreadable = (
            result.exit_code == pytest.ExitCode.INTERRUPTED
        )  # as pytest says of an error at collection
        outcomes[result.mutant_name] = (
            UNREADABLE if unreadable else status_by_exit_code[result.exit_code]
        )
        write(outcomes)

    set_mutant_under_test("")
    runner.run_clean_tests(["tests/test_grams.py"])  # imports what every child needs
    runner.startup()
    limits = config()
    for name in names:
        tests = state().tests_by_mangled_function_name[mangled_name_from_mutant_name(name)]
        seconds = sum(state().duration_by_test[test] for test in tests)
        while not runner.has_capacity():
            note()
        limit = ceil((seconds + limits.timeout_constant) * limits.timeout_multiplier)
        runner.submit(name, list(tests), limit, seconds)
    while runner.pending_count():
        note()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--slowest", type=float, default=2.0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    sys.argv = sys.argv[:1]
    mutants = make_mutants(options.jobs)
    sample = random.Random(options.seed).sample(mutants, min(options.sample, len(mutants)))
    failing, reasons = time_tests(options.jobs, options.slowest), reasons_in(RESULTS)

    def write(outcomes: dict[str, str]) -> None:
        result = summary(outcomes, len(mutants), options.seed, options.slowest, failing, reasons)
        options.output.write_text(json.dumps(result, indent=1, ensure_ascii=False) + "\n")

    try_mutants(sample, options.jobs, write)


if __name__ == "__main__":
    main()
