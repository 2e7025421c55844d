"""What each correction of a gap's interval is worth: how often the truth lies outside without it.

    python benchmarks/corrections.py --laws 1000 --jobs 2

The laws are those of `laws.py`, up to 4,000 rows. Each gap is estimated once; its ends are then
made with all corrections, and without each of them. Printed are the shares of laws whose gap lies
above the upper end, and below the lower end before the test moves it, over all laws and over those
that the correction is for.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from functools import partial

import numpy as np
from laws import RESAMPLES, SLACK, Law

from frhsic.parity.column import GapOptions, column_gap
from frhsic.parity.interval import (
    CORRECTIONS,
    Ends,
    GapEstimate,
    corrected_ends,
    decision_rates,
    skewness,
    uncertain_signs,
)
from frhsic.parity.rows import check_rows

MOST_ROWS = 4_000
ALL = "all corrections"
Outside = dict[str, tuple[bool, bool]]


# The laws of `laws.py` that each correction is for.
LAWS = {
    skewness: "scores: heavy tails",
    uncertain_signs: "curve: up to 12 waves",
    decision_rates: "scores: 0/1, rate below .1",
}


def without(name: str, estimate: GapEstimate) -> Ends:
    """Return the ends of a 95 % interval without a correction."""
    others = tuple(correction for correction in CORRECTIONS if correction.__name__ != name)
    return corrected_ends(estimate, 0.025, others)


def outside(seed: int, number: int) -> tuple[set[str], Outside]:
    """Draw a law and a sample; return its ingredients, and whether its gap is above or below the
    ends without each correction.
    """
    rng = np.random.default_rng([seed, number])
    law = Law.random(rng)
    while law.n > MOST_ROWS:
        law = Law.random(rng)
    f, s, design = law.sample(rng)
    rows = check_rows(f, s, None, design.get("sample_weight"), design.get("groups"))
    column = column_gap(rows, rows.scores[:, 0])
    lower, upper = column.estimates(GapOptions(0.95, RESAMPLES, number))
    found = {}
    for name in (ALL, *(correction.__name__ for correction in CORRECTIONS)):
        low = without(name, lower)
        high = max(low.high, without(name, upper).high)
        above = law.gap(column.resolution) > high + SLACK
        found[name] = (above, law.gap() < low.low - SLACK)
    return {f"{key}: {value}" for key, value in law.ingredients.items()}, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--laws", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=9173)
    options = parser.parse_args()
    with ProcessPoolExecutor(options.jobs) as pool:
        run = partial(outside, options.seed)
        every = list(pool.map(run, range(options.laws), chunksize=20))
    print("| without | data | draws | above, all | above, without | below, all | below, without |")
    print("|---|---|---|---|---|---|---|")
    for correction in CORRECTIONS:
        name = correction.__name__
        for laws in ("all", LAWS[correction]):
            some = [found for names, found in every if laws in (*names, "all")]
            rates = np.array([(found[ALL], found[name]) for found in some]).mean(axis=0)
            cells = [f"{rates[i, side]:.3f}" for side in (0, 1) for i in (0, 1)]
            print("| " + " | ".join([name.replace("_", " "), laws, str(len(some)), *cells]) + " |")


if __name__ == "__main__":
    main()
