"""Paired comparisons over splits: one method against the others, by areas and by matched points."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

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
from frhsic_paper.protocol import BASELINE, CONTRACTED, METHODS
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.table import Cell, Column, Listed, Spread, Table, mean_and_deviation, mean_and_error, tables_of

LEVEL = 0.05

TEST_PER_TRAINING = 0.2 / 0.65
"""Test rows for each training row in the splits of the sweep; 15 % of the rows validate."""

AREA_MARGIN = 0.02
"""Largest loss of nAUP that counts as level."""

GDP_MARGIN = 0.05
"""Largest loss of GDP that counts as level, as a share of the GDP of the unpenalized model."""


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
    from scipy.stats import t

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


@dataclass(frozen=True)
class Paired:
    """One method against another over the same splits.

    `difference` is the mean of first − second with its corrected standard error, see :func:`corrected_t`; `low` and
    `high` are its 95 % interval and `pvalue` its test. `adjusted` is the p-value after Holm's correction for everything
    that was tested together. `margin` is the loss that counts as level.
    """

    dataset: str
    first: str
    second: str
    first_mean: Spread
    second_mean: Spread
    difference: Spread
    low: float
    high: float
    wins: int
    splits: int
    pvalue: float
    adjusted: float
    larger_is_better: bool
    margin: float

    @property
    def advantage(self) -> float:
        """The difference, positive where the first is better."""
        return self.difference.mean if self.larger_is_better else -self.difference.mean

    @property
    def not_behind(self) -> bool:
        """Whether the interval rules out that the first is behind by more than the margin; noise does not help."""
        return (self.low if self.larger_is_better else -self.high) > -self.margin

    @property
    def better(self) -> bool:
        """Whether the first is better, with an adjusted p-value below the level."""
        return self.advantage > 0 and self.adjusted < LEVEL

    @property
    def worse(self) -> bool:
        """Whether the first is worse, with an adjusted p-value below the level."""
        return self.advantage < 0 and self.adjusted < LEVEL


def paired_areas(
    records: Sequence[Record], dataset: str, gdp: str, first: str, test_per_training: float = TEST_PER_TRAINING
) -> list[Paired]:
    """Compare areas of each split's own envelope, on the scale of the paper's six methods, shared by all splits."""
    areas = _areas_by_repeat(records, dataset, gdp)
    return _pairs(dataset, areas, first, test_per_training, margin=AREA_MARGIN, larger_is_better=True)


def paired_matched(
    records: Sequence[Record], dataset: str, gdp: str, first: str, test_per_training: float = TEST_PER_TRAINING
) -> list[Paired]:
    """Compare GDP on test rows of the models that validation rows choose within 1 % of performance."""
    choices = chosen(records, dataset, gdp)
    common = set.intersection(*({r["repeat"] for r, _ in rows} for rows in choices.values()))
    values = {
        method: np.array([r[gdp] for r, _ in choices[method] if r["repeat"] in common])
        for method in methods_of(records)
        if method in choices
    }
    margin = GDP_MARGIN * float(np.mean([r[gdp] for r, _ in choices[BASELINE]]))
    return _pairs(dataset, values, first, test_per_training, margin=margin, larger_is_better=False)


Compared = dict[str, list[Paired]]
"""Comparisons of one method with the others, by dataset."""


def adjusted_together(families: Sequence[Compared]) -> list[Compared]:
    """Return the same comparisons with p-values adjusted by Holm for all of them at once."""
    pairs = [pair for family in families for some in family.values() for pair in some]
    values = iter(holm([pair.pvalue for pair in pairs]))
    return [{d: [replace(pair, adjusted=next(values)) for pair in some] for d, some in f.items()} for f in families]


def compared_table(compared: Mapping[str, Sequence[Paired]], heading: str) -> Table:
    """Means of all methods with standard errors, methods by datasets; the p-value against the first in brackets."""
    datasets = [d for d in compared if compared[d]]
    first = compared[datasets[0]][0].first if datasets else ""
    rows: list[list[Cell]] = [[method_name(first), *(_text(compared[d][0].first_mean) for d in datasets)]]
    for second in dict.fromkeys(p.second for d in datasets for p in compared[d]):
        pairs = [next((p for p in compared[d] if p.second == second), None) for d in datasets]
        rows.append([method_name(second), *(None if pair is None else _compared(pair) for pair in pairs)])
    return Table.of([f"{heading} ± SE (p)", *map(dataset_name, datasets)], rows)


def summary_of_areas(compared: Mapping[str, Sequence[Paired]], against: Sequence[str] = METHODS) -> Table:
    """For each dataset: the closest rival, with the interval, and whether the first is level with each or better."""
    rows: list[tuple[Cell, ...]] = []
    for dataset, pairs in compared.items():
        rivals = [p for p in pairs if p.second in against]
        if not rivals:
            continue
        closest = min(rivals, key=lambda p: p.advantage)
        rows.append(
            (
                dataset_name(dataset),
                method_name(closest.second),
                closest.difference,
                f"{closest.low:.3f} to {closest.high:.3f}",
                closest.pvalue,
                closest.adjusted,
                all(p.not_behind for p in rivals),
                all(p.better for p in rivals),
            )
        )
    headings = ("dataset", "closest of the paper's", "ours less it ± SE", "95 % interval")
    said = (Column("p", None), Column("p, Holm", None), "behind none by more than the margin", "better than each")
    return Table.of([*headings, *said], rows)


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


def _pairs(
    dataset: str,
    values: Mapping[str, np.ndarray],
    first: str,
    test_per_training: float,
    *,
    margin: float,
    larger_is_better: bool,
) -> list[Paired]:
    if first not in values:
        raise ValueError(f"no run on {dataset} is of the method {first!r}; the methods are {sorted(values)}.")
    differences = {other: values[first] - values[other] for other in values if other != first}
    tests = [corrected_t(difference, test_per_training) for difference in differences.values()]
    sign = 1.0 if larger_is_better else -1.0
    return [
        Paired(
            dataset,
            first,
            other,
            _error(values[first]),
            _error(values[other]),
            Spread(test.mean, test.error),
            test.low,
            test.high,
            int((sign * difference > 0).sum()),
            len(difference),
            test.pvalue,
            adjusted,
            larger_is_better,
            margin,
        )
        for (other, difference), test, adjusted in zip(differences.items(), tests, holm([t.pvalue for t in tests]))
    ]


def _mark(pair: Paired) -> str:
    if pair.better or pair.worse:
        return "worse" if pair.better else "better"
    return "=" if pair.not_behind else "?"


def _compared(pair: Paired) -> str:
    return f"{_text(pair.second_mean)} ({_probability(pair.adjusted)}, {_mark(pair)})"


def _text(value: Spread) -> str:
    return f"{value.mean:.3f} ± {value.deviation or 0.0:.3f}"


def _probability(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _error(values: np.ndarray) -> Spread:
    return mean_and_error(values) or Spread(math.nan)
