"""The fair comparison, read from its records: performance at a share of the reference GDP, and what is significant.

The records are frozen: this version has no boosted trees with a penalty, no transport of scores and no base models.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from frhsic_paper.comparisons import LEVEL, Corrected, corrected_t, holm
from frhsic_paper.records import Record

TAG = "before-closed-form"
"""Tag of the repository at which the records were made."""

LEVELS = (0.75, 0.5, 0.25)
"""Shares of the reference GDP at which performance is read; the search maximized its mean over them."""

UNTUNED = ", untuned"
"""Ends the name of a row that shows a method at its first trial, whatever the search says."""

WIDE = "default, 50 columns"
"""The default with the Z of 50 columns and the low variance floor that it had when the test folds were first seen."""

RIVALS = ("frhsic", "frem", "reg-gdp", "mmd", "dcor", "adv", "laftr")

METHODS = (
    "default",
    "default, no base",
    WIDE,
    f"{WIDE}, no base",
    "default before",
    *(f"{name}{base}" for name in RIVALS for base in ("", ", base")),
    "boosting",
    "transport (needs S)",
)
"""The methods, in the order of the tables."""

CONFIRMATORY = ("support", "pension", "wages")
SEEN = ("crime", "compas", "adult", "acs_income", "meps")

LOOKS = dict.fromkeys(CONFIRMATORY, 1) | dict.fromkeys(SEEN, 5)
"""Number of looks at test rows of a table, this study included; four generations of defaults came before."""

REFERENCE = "reference"
"""Boosted trees without penalty, whose GDP is the measure of all levels."""


def read_off(performance: np.ndarray, gdp: np.ndarray, level: float) -> np.ndarray | None:
    """Return the performance of each split where the mean GDP over splits first falls to a level.

    Both are weights by splits. In between neighbouring weights it is interpolated. A path that begins below the level
    is read at its beginning; one that never gets there gives None.

    Examples
    --------
    The mean GDP goes 1, .6, .1: the level .7 is three quarters of the way to the second weight.

    >>> gdp = np.array([[0.9, 1.1], [0.5, 0.7], [0.1, 0.1]])
    >>> read_off(np.array([[0.8, 0.9], [0.7, 0.8], [0.1, 0.2]]), gdp, 0.7).tolist()
    [0.725, 0.825]
    """
    finite = np.isfinite(gdp).all(axis=1)
    performance, mean = performance[finite], gdp[finite].mean(axis=1)
    below = np.flatnonzero(mean <= level)
    if not len(below):
        return None
    i = int(below[0])
    if i == 0:
        return np.asarray(performance[0])
    share = (mean[i - 1] - level) / (mean[i - 1] - mean[i])
    return np.asarray((1 - share) * performance[i - 1] + share * performance[i])


@dataclass(frozen=True, eq=False)
class Tested:
    """A method on the test folds of a dataset: performance at each level, levels by folds, and which were reached."""

    dataset: str
    method: str
    trial: int
    at_levels: np.ndarray
    reached: tuple[bool, ...]
    test_per_training: float

    @property
    def scores(self) -> np.ndarray:
        """Mean performance over the levels, for each fold."""
        return np.asarray(self.at_levels.mean(axis=0))


def tested(records: Sequence[Record]) -> dict[str, dict[str, Tested]]:
    """Return what the final records say, by dataset and method; a dataset without its reference is left out."""
    found: dict[str, dict[str, Tested]] = {}
    for dataset in dict.fromkeys(r["dataset"] for r in records):
        of_method: dict[str, list[Record]] = {}
        for record in sorted((r for r in records if r["dataset"] == dataset), key=lambda r: r["split"]):
            of_method.setdefault(record["method"], []).append(record)
        reference = of_method.pop(REFERENCE, [])
        if reference:
            gdp = float(np.mean([r["gdp"] for r in reference]))
            constants = np.array([r["constant"] for r in reference])
            found[dataset] = {m: _tested(dataset, m, some, gdp, constants) for m, some in of_method.items()}
    return found


def _tested(dataset: str, method: str, records: Sequence[Record], reference: float, constants: np.ndarray) -> Tested:
    performance, gdp = (
        np.array([[np.nan if v is None else v for v in r[name]] for r in records]).T
        for name in ("path_performance", "path_gdp")
    )
    read = [read_off(performance, gdp, level * reference) for level in LEVELS]
    at_levels = np.array([constants[: len(records)] if values is None else values for values in read])
    ratio = records[0]["test_rows"] / records[0]["training_rows"]
    return Tested(dataset, method, records[0]["trial"], at_levels, tuple(v is not None for v in read), ratio)


@dataclass(frozen=True)
class Comparison:
    """The default against another method on one dataset; p adjusted by Holm for all comparisons of the study."""

    dataset: str
    method: str
    test: Corrected
    adjusted: float

    @property
    def verdict(self) -> str:
        """Whether the default is better or worse, or neither can be told."""
        if self.adjusted >= LEVEL:
            return "="
        return "better" if self.test.mean > 0 else "worse"


def comparisons(results: Mapping[str, Mapping[str, Tested]], first: str = "default") -> list[Comparison]:
    """Compare one method with all others on each dataset, by the t-test that knows about shared rows."""
    pairs = [
        (dataset, other, corrected_t(methods[first].scores - methods[other].scores, methods[other].test_per_training))
        for dataset, methods in results.items()
        if first in methods
        for other in methods
        if other != first and not other.endswith(UNTUNED)
    ]
    adjusted = holm([test.pvalue for *_, test in pairs])
    return [Comparison(dataset, other, test, p) for (dataset, other, test), p in zip(pairs, adjusted)]
