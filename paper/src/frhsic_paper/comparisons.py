"""Tests over splits that share rows, and the areas of variants."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.stats import t

from frhsic_paper.frontiers import (
    chosen,
    finite,
    frontier,
    in_print,
    methods_of,
    naup_by_repeat,
    paper_scale,
    printed_name,
    swept,
    with_contraction,
)
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.protocol import BASELINE, CONTRACTED
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.table import Cell, Listed, Table, mean_and_deviation, mean_and_error, tables_of

LEVEL = 0.05


@dataclass(frozen=True)
class Corrected:
    """A mean difference over splits that share rows: its standard error, 95 % interval and two-sided p-value."""

    mean: float
    error: float
    low: float
    high: float
    pvalue: float


def corrected_t(differences: Sequence[float] | np.ndarray, test_per_training: float) -> Corrected:
    r"""Return the corrected resampled t-test of Nadeau and Bengio (2003).

    :math:`t = \bar d \big/ \sqrt{(1/J + n_{\mathrm{test}}/n_{\mathrm{train}})\, s^2}` with J − 1 degrees of freedom,
    where :math:`\bar d` and :math:`s^2` are mean and variance of the differences of J splits. The second term is for
    rows that splits share; with 0 this is the paired t-test. One split allows no test: its p-value is 1.

    Examples
    --------
    >>> test = corrected_t([0.01, 0.03, 0.02, 0.04], 0.25)
    >>> round(test.mean, 3), round(test.error, 4), round(test.pvalue, 2)
    (0.025, 0.0091, 0.07)
    """
    d = np.asarray(differences, dtype=float)
    if test_per_training < 0:
        raise ValueError(f"test_per_training={test_per_training}; pass test rows divided by training rows.")
    mean, splits = float(d.mean()), len(d)
    if splits < 2:
        return Corrected(mean, math.nan, -math.inf, math.inf, 1.0)
    error = math.sqrt((1 / splits + test_per_training) * float(d.var(ddof=1)))
    if error == 0:
        return Corrected(mean, 0.0, mean, mean, 1.0 if mean == 0 else 0.0)
    half = error * float(t.ppf(1 - LEVEL / 2, splits - 1))
    return Corrected(mean, error, mean - half, mean + half, float(2 * t.sf(abs(mean) / error, splits - 1)))


def probe_table(records: Sequence[Record], gdp: str) -> Table:
    """R² of probes for S on the chosen models of every split."""
    rows: list[tuple[Cell, ...]] = []
    columns = ("performance", gdp, "probe_r2_linear", "probe_r2_cosines")
    for dataset in swept(records):
        choices = chosen(records, dataset, gdp)
        for number, method in enumerate(m for m in (BASELINE, *methods_of(records)) if m in choices):
            models = [r for r, _ in choices[method]]
            cells = [mean_and_deviation([r[c] for r in models if r.get(c) is not None]) for c in columns]
            name = printed_name(dataset) if number == 0 else ""
            rows.append((name, method_name(method), in_print(cells[0], dataset), *cells[1:]))
    return Table.of(["dataset", "method", "performance", "GDP", "R², linear probe", "R², probe on cosines"], rows)


def variants_table(records: Sequence[Record], gdp: str) -> Table:
    """Areas of the variants of one study, variants by datasets, with standard errors over its splits."""
    records = with_contraction(records)
    areas = {d: _areas_by_repeat(records, d, gdp) for d in swept(records)}
    rows: list[list[Cell]] = []
    for method in methods_of(records):
        cells: list[Cell] = [method_name(method)]
        for by_method in areas.values():
            best = max(float(values.mean()) for name, values in by_method.items() if name != CONTRACTED)
            mean = mean_and_error(by_method.get(method, ()))
            cells.append(mean and replace(mean, bold=mean.mean == best))
        rows.append(cells)
    return Table.of(["nAUP ± SE", *map(dataset_name, areas)], rows)


def tables_of_variants(name: str) -> Callable[[Results], list[Listed]]:
    """Return the tables of a study that compares the areas of variants."""
    return tables_of(name, "nAUP of the variants", lambda records, protocol: variants_table(records, protocol.gdp))


def holm(pvalues: Sequence[float]) -> list[float]:
    """Return Holm's step-down adjusted p-values, in the order given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    adjusted = [1.0] * len(pvalues)
    running = 0.0
    for rank, index in enumerate(sorted(range(len(pvalues)), key=lambda i: pvalues[i])):
        running = max(running, min(1.0, (len(pvalues) - rank) * pvalues[index]))
        adjusted[index] = running
    return adjusted


def _areas_by_repeat(records: Sequence[Record], dataset: str, gdp: str) -> dict[str, np.ndarray]:
    """Return the areas of each method over the repeats that all methods have."""
    usable = [r for r in finite(records, "performance", gdp) if r["dataset"] == dataset]
    wanted = set(methods_of(usable)) | {BASELINE}
    by_repeat: dict[int, set[str]] = {}
    for record in usable:
        by_repeat.setdefault(record["repeat"], set()).add(record["method"])
    common = {repeat for repeat, present in by_repeat.items() if present >= wanted}
    full = frontier([r for r in usable if r["repeat"] in common], dataset, gdp)
    return naup_by_repeat(full, paper_scale(full))
