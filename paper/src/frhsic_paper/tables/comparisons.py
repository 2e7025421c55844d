"""Paired comparisons over splits: one method against the others, by areas and by matched points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from frhsic_paper.printed import DATASET_NAMES, method_name
from frhsic_paper.protocol import BASELINE, METHODS
from frhsic_paper.records import Record
from frhsic_paper.tables.frontiers import (
    chosen,
    datasets_of,
    finite,
    frontier,
    in_print,
    methods_of,
    printed_name,
    swept,
)
from frhsic_paper.tables.table import Cell, Column, Spread, Table

__all__ = [
    "LEVEL",
    "Paired",
    "area_rows",
    "area_table",
    "holm",
    "leak_table",
    "matched_gdp_table",
    "paired_areas",
    "paired_matched",
    "probe_table",
    "summary_of_areas",
    "variants_table",
]

LEVEL = 0.05


@dataclass(frozen=True)
class Paired:
    """One method against another over the same splits.

    `difference` is the mean of first − second with its standard error; `pvalue` that of the two-sided Wilcoxon
    signed-rank test, `adjusted` the same after Holm's correction for the comparisons made on this dataset.
    """

    dataset: str
    first: str
    second: str
    first_mean: Spread
    second_mean: Spread
    difference: Spread
    wins: int
    splits: int
    pvalue: float
    adjusted: float
    larger_is_better: bool

    @property
    def advantage(self) -> float:
        """The difference, positive where the first is better."""
        return self.difference.mean if self.larger_is_better else -self.difference.mean

    @property
    def not_worse(self) -> bool:
        """Whether the first is at least as good within one standard error of the difference."""
        return self.advantage >= -(self.difference.deviation or 0.0)

    @property
    def better(self) -> bool:
        """Whether the first is better, with a p-value below the level."""
        return self.advantage > 0 and self.pvalue < LEVEL


def paired_areas(records: Sequence[Record], dataset: str, gdp: str, first: str) -> list[Paired]:
    """Compare areas of each split's own envelope, on the scale that all methods and splits share."""
    areas = _aligned(records, dataset, gdp)
    return _pairs(dataset, areas, first, larger_is_better=True)


def paired_matched(records: Sequence[Record], dataset: str, gdp: str, first: str) -> list[Paired]:
    """Compare GDP on test rows of the models that validation rows choose within 1 % of performance."""
    picks = chosen(records, dataset, gdp)
    common = set.intersection(*({r["repeat"] for r, _ in rows} for rows in picks.values()))
    values = {
        method: np.array([r[gdp] for r, _ in picks[method] if r["repeat"] in common])
        for method in methods_of(records)
        if method in picks
    }
    return _pairs(dataset, values, first, larger_is_better=False)


def area_rows(records: Sequence[Record], gdp: str, first: str) -> dict[str, list[Paired]]:
    """Return the comparisons of areas of every dataset."""
    return {d: paired_areas(records, d, gdp, first) for d in swept(records)}


def area_table(compared: Mapping[str, Sequence[Paired]]) -> Table:
    """Areas of all methods, methods by datasets, with standard errors; the p-value against the first in brackets."""
    return _compared_table(compared, "nAUP")


def matched_gdp_table(compared: Mapping[str, Sequence[Paired]]) -> Table:
    """GDP at the 1 % band of all methods, methods by datasets; the p-value against the first in brackets."""
    return _compared_table(compared, "GDP at the 1 % band")


def summary_of_areas(compared: Mapping[str, Sequence[Paired]], against: Sequence[str] = METHODS) -> Table:
    """For each dataset: whether the first is nowhere worse than one standard error, and better than each."""
    rows: list[tuple[Cell, ...]] = []
    for dataset, pairs in compared.items():
        of = [p for p in pairs if p.second in against]
        if not of:
            continue
        hardest = min(of, key=lambda p: p.advantage)
        rows.append(
            (
                DATASET_NAMES[dataset],
                method_name(hardest.second),
                Spread(hardest.difference.mean, hardest.difference.deviation),
                hardest.pvalue,
                hardest.adjusted,
                all(p.not_worse for p in of),
                all(p.better for p in of),
                all(p.advantage > 0 and p.adjusted < LEVEL for p in of),
            )
        )
    return Table(
        (
            Column("dataset"),
            Column("closest of the paper's"),
            Column("ours less it ± SE", 3),
            Column("p", None),
            Column("p, Holm", None),
            Column("nowhere worse by more than one SE"),
            Column("better than each, p < .05"),
            Column("also after Holm"),
        ),
        tuple(rows),
    )


def leak_table(records: Sequence[Record]) -> Table:
    """What is left of S in the representations that validation rows chose: heads trained afresh, probes, worst head."""
    rows: list[tuple[Cell, ...]] = []
    columns = ("performance", "gdp", "worst_gdp", "worst_gdp_standardized", "best_probe_r2", "worst_head_gap")
    for dataset in datasets_of(records):
        of = [r for r in records if r["dataset"] == dataset]
        for number, method in enumerate((BASELINE, *methods_of(of))):
            mine = [r for r in of if r["method"] == method]
            if mine:
                cells = [_spread([r[c] for r in mine if r.get(c) is not None]) for c in columns]
                cells[0] = in_print(cells[0], dataset)
                rows.append((printed_name(dataset) if number == 0 else "", method_name(method), *cells))
    return Table(
        (
            Column("dataset"),
            Column("method"),
            Column("performance"),
            Column("GDP, deployed head"),
            Column("GDP, worst of five fresh heads"),
            Column("the same, scale-free"),
            Column("R² of the best probe for S"),
            Column("worst head of norm 1"),
        ),
        tuple(rows),
    )


def probe_table(records: Sequence[Record], gdp: str) -> Table:
    """R² of probes for S on the chosen models of every split."""
    rows: list[tuple[Cell, ...]] = []
    for dataset in swept(records):
        picks = chosen(records, dataset, gdp)
        for number, method in enumerate(m for m in (BASELINE, *methods_of(records)) if m in picks):
            of = [r for r, _ in picks[method]]
            rows.append(
                (
                    printed_name(dataset) if number == 0 else "",
                    method_name(method),
                    in_print(_spread([r["performance"] for r in of]), dataset),
                    _spread([r[gdp] for r in of]),
                    _spread([r["probe_r2_linear"] for r in of if r.get("probe_r2_linear") is not None]),
                    _spread([r["probe_r2_cosines"] for r in of if r.get("probe_r2_cosines") is not None]),
                )
            )
    return Table(
        (
            Column("dataset"),
            Column("method"),
            Column("performance"),
            Column("GDP"),
            Column("R², linear probe"),
            Column("R², probe on cosines"),
        ),
        tuple(rows),
    )


def variants_table(records: Sequence[Record], gdp: str) -> Table:
    """Areas of the variants of one experiment, variants by datasets, with standard errors over its splits."""
    datasets = swept(records)
    areas = {d: _aligned(records, d, gdp) for d in datasets}
    rows: list[tuple[Cell, ...]] = []
    for method in methods_of(records):
        cells: list[Cell] = [method_name(method)]
        for dataset in datasets:
            values = areas[dataset].get(method)
            if values is None:
                cells.append(None)
            else:
                best = max(float(v.mean()) for v in areas[dataset].values())
                cells.append(replace(_error(values), bold=float(values.mean()) == best))
        rows.append(tuple(cells))
    return Table((Column("nAUP ± SE"), *(Column(DATASET_NAMES[d]) for d in datasets)), tuple(rows))


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


def _aligned(records: Sequence[Record], dataset: str, gdp: str) -> dict[str, np.ndarray]:
    of = [r for r in finite(records, "performance", gdp) if r["dataset"] == dataset]
    wanted = set(methods_of(of)) | {BASELINE}
    by_repeat: dict[int, set[str]] = {}
    for record in of:
        by_repeat.setdefault(record["repeat"], set()).add(record["method"])
    common = {repeat for repeat, present in by_repeat.items() if present >= wanted}
    return frontier([r for r in of if r["repeat"] in common], dataset, gdp).naup_by_repeat()


def _pairs(dataset: str, values: Mapping[str, np.ndarray], first: str, *, larger_is_better: bool) -> list[Paired]:
    if first not in values:
        raise ValueError(f"no run on {dataset} is of the method {first!r}; the methods are {sorted(values)}.")
    others = [method for method in values if method != first]
    pvalues = [_wilcoxon(values[first] - values[other]) for other in others]
    sign = 1.0 if larger_is_better else -1.0
    return [
        Paired(
            dataset,
            first,
            other,
            _error(values[first]),
            _error(values[other]),
            _error(values[first] - values[other]),
            int((sign * (values[first] - values[other]) > 0).sum()),
            len(values[first]),
            pvalue,
            adjusted,
            larger_is_better,
        )
        for other, pvalue, adjusted in zip(others, pvalues, holm(pvalues))
    ]


def _wilcoxon(differences: np.ndarray) -> float:
    from scipy.stats import wilcoxon

    return 1.0 if not np.any(differences) else float(wilcoxon(differences).pvalue)


def _compared_table(compared: Mapping[str, Sequence[Paired]], heading: str) -> Table:
    datasets = [d for d in compared if compared[d]]
    first = compared[datasets[0]][0].first if datasets else ""
    seconds = list(dict.fromkeys(p.second for d in datasets for p in compared[d]))
    rows: list[tuple[Cell, ...]] = [(method_name(first), *(_text(compared[d][0].first_mean) for d in datasets))]
    for second in seconds:
        cells: list[Cell] = [method_name(second)]
        for dataset in datasets:
            pair = next((p for p in compared[dataset] if p.second == second), None)
            cells.append(
                None if pair is None else f"{_text(pair.second_mean)} ({_probability(pair.pvalue)}{_mark(pair)})"
            )
        rows.append(tuple(cells))
    names = tuple(Column(DATASET_NAMES[d]) for d in datasets)
    return Table((Column(f"{heading} ± SE (p)"), *names), tuple(rows))


def _mark(pair: Paired) -> str:
    if pair.pvalue >= LEVEL:
        return ", =" if pair.not_worse else ", –"
    return ", worse" if pair.advantage > 0 else ", better"


def _text(value: Spread) -> str:
    return f"{value.mean:.3f} ± {value.deviation or 0.0:.3f}"


def _probability(value: float) -> str:
    return "<.001" if value < 0.001 else f"{value:.3f}".lstrip("0")


def _error(values: np.ndarray) -> Spread:
    error = float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None
    return Spread(float(values.mean()), error)


def _spread(values: Sequence[float]) -> Spread | None:
    if not values:
        return None
    array = np.array(values, dtype=float)
    return Spread(float(array.mean()), float(array.std(ddof=1)) if len(array) > 1 else None)
