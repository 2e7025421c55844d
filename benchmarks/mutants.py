"""Mutation testing of the statistics: which small changes of the code do the tests notice?

mutmut changes one thing in a function (a sign, a number, a comparison) and runs the tests that reach the function. A
random sample of the mutants of `dependence`, `parity` and `independence` is tried. Tests that take longer than
`--slowest` seconds are left out, so the share of killed mutants is a lower bound.

    pip install mutmut
    python benchmarks/mutants.py --sample 200

A second run goes on where the first was cut off. The result is written to results/mutants.json; `mutmut show NAME`
shows a mutant.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
from mutmut import __main__ as mutmut
from scipy import stats

RESULTS = Path(__file__).resolve().parent / "results" / "mutants.json"
SURVIVED = 0


def summary(outcomes: dict[str, int], seed: int, slowest: float) -> dict[str, Any]:
    """Return how many mutants were killed, with a 95 % interval (Clopper and Pearson), and who survived."""
    killed = sum(code != SURVIVED for code in outcomes.values())
    interval = stats.binomtest(killed, len(outcomes)).proportion_ci(0.95)
    by_package = {
        package: [sum(code != SURVIVED for code in codes), len(codes)]
        for package in ("dependence", "parity", "independence")
        if (codes := [code for name, code in outcomes.items() if name.split(".")[1] == package])
    }
    return {
        "seed": seed,
        "slowest test, seconds": slowest,
        "mutants": len(outcomes),
        "killed": killed,
        "share": round(killed / len(outcomes), 3),
        "interval": [round(interval.low, 3), round(interval.high, 3)],
        "killed and tried by package": by_package,
        "survived": sorted(name for name, code in outcomes.items() if code == SURVIVED),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20)
    parser.add_argument("--slowest", type=float, default=2.0)
    parser.add_argument("--jobs", type=int, default=1)
    options = parser.parse_args()
    if not hasattr(pytest.Item, "_nodeid"):  # which mutmut 3.8 reads, and pytest 9.2 has not
        pytest.Item._nodeid = property(lambda item: item.nodeid)
    collect, register = mutmut.collect_source_file_mutation_data, mutmut._register_mutant_result
    chosen: list[str] = []

    def sampled(*, mutant_names: Any) -> Any:
        mutants, by_path = collect(mutant_names=mutant_names)
        mutants.sort(key=lambda mutant: mutant[1])
        random.Random(options.seed).shuffle(mutants)
        known = mutmut.state()
        for function, tests in known.tests_by_mangled_function_name.items():
            quick = {test for test in tests if known.duration_by_test[test] < options.slowest}
            known.tests_by_mangled_function_name[function] = quick
        chosen.extend(name for _, name, _ in mutants[: options.sample])
        return mutants[: options.sample], by_path

    def registered(result: Any, data: Any) -> None:
        register(result, data)
        outcomes = {
            name: code
            for one in data.values()
            for name, code in one.exit_code_by_key.items()
            if name in chosen and code is not None
        }
        RESULTS.write_text(json.dumps(summary(outcomes, options.seed, options.slowest), indent=1) + "\n")

    mutmut.collect_source_file_mutation_data = sampled
    mutmut._register_mutant_result = registered
    mutmut.estimated_worst_case_time = lambda name: 0  # keep the random order
    mutmut.tests_for_mutant_names = lambda names: ["tests/test_grams.py"]  # all tests have passed when they were timed
    sys.argv = ["mutmut", "run", "--max-children", str(options.jobs)]
    mutmut.cli()


if __name__ == "__main__":
    main()
