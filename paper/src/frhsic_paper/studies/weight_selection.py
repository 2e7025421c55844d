r"""Choosing λ by a test of independence.

Part "tests" of the records, one for each model:

``dataset``, ``method``, ``weight``, ``repeat``   as in the part "models"
``n``            validation rows (at most 1,000)
``hsic``         statistic on them; ``n_hsic`` n times that
``published_threshold`` (of n·HSIC), ``published_pvalue``, ``published_rejected``
``threshold`` (of n·HSIC), ``pvalue``, ``rejected``            exact permutation moments
``gretton_threshold``, ``gretton_pvalue``, ``gretton_rejected``
``performance``, ``gdp``   of the model, on test rows, by the protocol's own convention

:func:`selection` gives for each dataset and repeat the model of the smallest λ that is not
rejected, or None.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from frhsic.kernels import Gaussian, median_bandwidth
from frhsic_paper.claim import (
    NOT_RUN,
    Case,
    Outcome,
    case_rule,
    claim,
    outcome_from_cases,
    protocol_rule,
)
from frhsic_paper.frontier import is_within_band
from frhsic_paper.frontiers import column_values, is_error, record_datasets, record_weights
from frhsic_paper.grid import Grid, Splits, methods_by_name
from frhsic_paper.models import Model, store_all
from frhsic_paper.plot import FAINT, SPARE, finish, page_style, panels, protocol_figures
from frhsic_paper.printed import DATASET_NAMES, dataset_name, published_numbers
from frhsic_paper.protocol import PAPER_WEIGHTS, PROTOCOLS, Protocol
from frhsic_paper.records import Record, matching
from frhsic_paper.results import Results
from frhsic_paper.splits import Split
from frhsic_paper.statistics.published import gamma_test_two_moments, published_gamma_test
from frhsic_paper.steps import Measurement, Training, each
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Column, Table, protocol_tables

ROWS, BANDWIDTH_ROWS = 1000, 500

EPSILON = 1e-3
"""The paper's example of a threshold for HSIC."""

COLLAPSED = 1e-5
"""Bandwidth that is used if half of the rows coincide, so that their median distance is 0."""


def grid(protocol: Protocol) -> Grid:
    """Return the grid of models among which a weight is chosen."""
    splits = Splits(train=0.7, validation=0.15, scaling=protocol.scaling)
    return Grid(
        "weight-selection",
        ("adult", "crime", "compas"),
        methods_by_name("frhsic"),
        PAPER_WEIGHTS,
        3,
        splits,
    )


def tests(model: Model, split: Split, protocol: Protocol) -> list[Record]:
    """Test the representation of the validation rows."""
    part = split.validation
    assert part is not None  # the grid's splits have three parts
    outcome = _tests(model.encode(part.x[:ROWS]), part.s[:ROWS])
    return [
        {**outcome, "performance": model.record["performance"], "gdp": model.record[protocol.gdp]}
    ]


def _tests(z: Tensor, s: Tensor) -> Record:
    z, s = z.to(torch.float64), s.to(torch.float64)
    kernels = _kernel(z), _kernel(s)
    published = published_gamma_test(z, s, *kernels)
    exact, gretton = (
        gamma_test_two_moments(z, s, *kernels, moments=moments)
        for moments in ("permutation", "gretton")
    )
    n = len(z)
    record: Record = {"n": n, "hsic": exact.statistic, "n_hsic": n * exact.statistic}
    for name, test in {"published_": published, "": exact, "gretton_": gretton}.items():
        record[f"{name}threshold"] = n * test.threshold
        record |= {f"{name}pvalue": test.pvalue, f"{name}rejected": test.rejected}
    return record


def _kernel(rows: Tensor) -> Gaussian:
    try:
        return Gaussian(median_bandwidth(rows[:BANDWIDTH_ROWS]))
    except ValueError:  # half of the rows coincide, since the encoder has collapsed
        return Gaussian(COLLAPSED)


TRAIN = Training(grid, (store_all,))

MEASURE = Measurement(
    "weight-selection",
    "tests",
    grid,
    dict.fromkeys(PROTOCOLS, each(tests)),
    (ROWS, BANDWIDTH_ROWS, COLLAPSED),
)


TESTS = "weight-selection/tests"

REJECTED = {"published": "published_rejected", "corrected": "rejected"}
"""The column with the decision of each protocol's test: the published test, or the one with exact
moments.
"""

HUES = {"published": SPARE[0], "corrected": SPARE[2]}

QUANTITIES = ("λ", "performance", "GDP")
"""Columns of a selected model."""

SplitKey = tuple[str, int]
"""Dataset and repeat."""

CLAIMED = ("crime", "compas")
"""Datasets for which the paper says that a weight is selected."""


def selection(records: Sequence[Record], column: str) -> dict[SplitKey, Record | None]:
    """Return, for each dataset and repeat, the model of the smallest λ whose independence is not
    rejected.

    `column` contains the test's decision. None if every λ is rejected.

    Examples
    --------
    >>> made = [
    ...     {"dataset": "crime", "repeat": 0, "method": "frhsic", "weight": w, "rejected": w < 5}
    ...     for w in (1, 5, 10)
    ... ]
    >>> selection(made, "rejected")["crime", 0]["weight"]
    5
    """
    selected: dict[SplitKey, Record | None] = {}
    for r in sorted(records, key=lambda r: float(r["weight"])):
        key = (r["dataset"], r["repeat"])
        if selected.setdefault(key, None) is None and r["method"] == "frhsic" and not r[column]:
            selected[key] = r
    return selected


def text_selection(
    records: Sequence[Record], column: str, threshold: float
) -> dict[SplitKey, Record]:
    """Return, for each dataset and repeat, the model that the text's algorithm selects: the one
    with the smallest λ for which HSIC is below a threshold *or* independence is not rejected, or
    with the largest λ if there is none.

    Examples
    --------
    >>> made = [
    ...     {"dataset": "crime", "repeat": 0, "method": "frhsic", "weight": w, "rejected": True}
    ...     | {"hsic": 0.01 / w}
    ...     for w in (1, 5, 10)
    ... ]
    >>> [
    ...     text_selection(made, "rejected", threshold)["crime", 0]["weight"]
    ...     for threshold in (0.0, 0.003)
    ... ]
    [10, 5]
    """
    stopped = [r | {"above": bool(r[column]) and r["hsic"] >= threshold} for r in records]
    ordered = sorted(records, key=lambda r: float(r["weight"]))
    largest = {(r["dataset"], r["repeat"]): r for r in ordered if r["method"] == "frhsic"}
    found = selection(stopped, "above")
    return {key: found[key] or record for key, record in largest.items()}


def _least(records: Sequence[Record], methods: Sequence[str]) -> dict[SplitKey, Record]:
    """Return the model with the smallest λ for each dataset and repeat."""
    ordered = sorted(records, key=lambda r: -float(r["weight"]))
    return {(r["dataset"], r["repeat"]): r for r in ordered if r["method"] in methods}


def selection_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of the λ selected in each split by each test, with performance and GDP at this
    λ.
    """
    in_paper = {
        (r["dataset"], r["repeat"]): r["selected_lambda"]
        for r in published_numbers("lambda_selection")
    }
    selected = [selection(records, column) for column in REJECTED.values()]
    base = _least(records, ("none", "frhsic"))
    rows: list[list[Cell]] = []
    for key in sorted(base, key=lambda key: (list(DATASET_NAMES).index(key[0]), key[1])):
        row: list[Cell] = [dataset_name(key[0]), key[1], _weight(in_paper.get(key))]
        row.append(base[key]["performance"])
        for by_test in selected:
            record = by_test[key] or {}
            row += [_weight(record.get("weight")), record.get("performance"), record.get("gdp")]
        rows.append(row)
    tests = ("the published test", "permutation moments")
    headings = [f"{quantity} by {test}" for test in tests for quantity in QUANTITIES]
    theirs = Column("λ in the paper's files", printed=True)
    return Table.from_rows(["dataset", "split", theirs, "performance, least λ", *headings], rows)


def _weight(value: float | None) -> str | None:
    return None if value is None else f"{value:g}"


@page_style()
def draw(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Draw n·HSIC against λ, with the published threshold and the one from exact null moments;
    below, the selected weights.
    """
    ours = matching(records, method="frhsic")
    datasets = record_datasets(ours)
    figure, axes = panels(len(datasets), 2.2)
    for ax, dataset in zip(axes, datasets):
        here = matching(ours, dataset=dataset)
        weights = record_weights(here)
        ax.set(xscale="log", yscale="log")
        for column, hue, marker, label in (
            ("n_hsic", SPARE[3], "o", "n · HSIC on validation rows"),
            ("published_threshold", HUES["published"], "s", "published threshold"),
            ("threshold", HUES["corrected"], "^", "threshold, exact null moments"),
        ):
            groups = [column_values(matching(here, weight=w), column) for w in weights]
            look: dict[str, Any] = {"color": hue, "marker": marker}
            ax.plot(
                weights, [np.mean(group) for group in groups], **look, markersize=3.5, label=label
            )
            if column == "n_hsic":
                for repeat in zip(*groups):
                    ax.plot(weights, repeat, color=hue, linewidth=0.6, alpha=FAINT)
        for number, (name, rejected) in enumerate(REJECTED.items()):
            places = ax.get_xaxis_transform()
            label = f"λ selected in a split, {name} test"
            values = [r["weight"] for r in selection(here, rejected).values() if r is not None]
            heights = [0.03 + 0.05 * number] * len(values)
            look = {"color": HUES[name], "marker": "|", "markersize": 8, "markeredgewidth": 1.6}
            ax.plot(values, heights, transform=places, linestyle="none", **look, label=label)
        ax.margins(y=0.14)
        ax.set_title(dataset_name(dataset))
        ax.set_xlabel("penalty weight λ")
        ax.set_ylabel("n · HSIC (lower: less of S is left)")
    finish(figure, axes)
    return figure


def _selected(
    records: Sequence[Record], protocol: Protocol
) -> Iterator[tuple[str, Record | None, Record]]:
    """Yield the dataset, the selected model and the model with the smallest λ for each split."""
    least = _least(records, ("frhsic",))
    for key, record in sorted(
        selection(records, REJECTED[protocol.name]).items(), key=lambda item: item[0]
    ):
        if key[0] in CLAIMED:
            yield dataset_name(key[0]), record, least[key]


@claim(
    "selection-range",
    "Figure λ selection",
    "On Crime and COMPAS the test selects λ of about 5–100.",
    "5–100",
)
@case_rule(TESTS, "λ by split")
def _in_range(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """Published: a null mean and variance that are not those of the statistic. Corrected: exact
    moments of the permutation null.
    """
    for name, record, _ in _selected(records, protocol):
        weight = None if record is None else float(record["weight"])
        yield weight is not None and 5 <= weight <= 100, f"{name} {_weight(weight) or 'none'}"


@claim(
    "selection-performance",
    "Appendix, λ selection",
    "At the selected λ prediction performance is preserved.",
)
@case_rule(TESTS)
def _preserved(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """The lines give the performance on test rows at the smallest λ and at the selected one;
    preserved means within 5 %. In the paper's own files, the loss is larger in four of six splits.
    """
    for name, record, least in _selected(records, protocol):
        if record is None:
            yield False, f"{name} none"
        else:
            error = is_error(record["dataset"], [record])
            value, base, digits = (
                float(record["performance"]),
                float(least["performance"]),
                4 if error else 3,
            )
            good = is_within_band(value, base, 0.05, higher_is_better=not error)
            yield good, f"{name} {base:.{digits}f} → {value:.{digits}f}"


@claim(
    "practical-threshold",
    "Appendix, λ selection",
    "Stopping also at the first λ with HSIC < ε keeps the selection useful for every sample size.",
    "ε = 10⁻³",
)
@case_rule(TESTS, "selected λ; GDP and performance at the smallest λ → at the selected one")
def _threshold(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """The smallest λ at which HSIC on validation rows is below 10⁻³ or the test does not reject, on
    each dataset and split. Useful means at most half of the GDP at the smallest λ, and a
    performance within 5 % of that at the smallest λ. HSIC can be this small where GDP has hardly
    changed.
    """
    least = _least(records, ("frhsic",))
    selected = text_selection(records, REJECTED[protocol.name], EPSILON)
    for (dataset, repeat), record in sorted(selected.items()):
        base = least[dataset, repeat]
        higher = not is_error(dataset, [record])
        kept = is_within_band(record["performance"], base["performance"], 0.05, higher)
        yield (
            kept and record["gdp"] <= base["gdp"] / 2,
            f"{dataset_name(dataset)} {_weight(record['weight'])}: GDP {base['gdp']:.3f} →"
            f" {record['gdp']:.3f}, performance {base['performance']:.3f} →"
            f" {record['performance']:.3f}",
        )


def _why_adult_rejects(results: Results) -> str:
    rows = {
        r["n"]
        for name in PROTOCOLS
        for r in matching(results.records(TESTS, name), dataset="adult")
    }
    return f"""
        Two parts: every λ is rejected, and GDP at λ = 500 is near zero (5 % of that at the least
        λ). The sample is not large: the test uses {max(rows, default=1000):,} validation rows.
    """


@claim(
    "adult-rejects",
    "Appendix, λ selection",
    "On Adult the test rejects at every λ, even at 500 where GDP is near zero, because n is large.",
    "n ≈ 30,000",
    reason=_why_adult_rejects,
)
@protocol_rule(TESTS)
def _adult_rejects(records: Sequence[Record], protocol: Protocol) -> Outcome:
    models = matching(records, dataset="adult", method="frhsic")
    if not models:
        return NOT_RUN
    weights = record_weights(models)
    last, first = (
        float(np.mean(column_values(matching(models, weight=w), "gdp")))
        for w in (weights[-1], weights[0])
    )
    rejected = sum(bool(r[REJECTED[protocol.name]]) for r in models)
    text = (
        f"rejected {rejected} of {len(models)}; GDP at the largest λ {last:.3f}, at the least"
        f" {first:.3f}"
    )
    return outcome_from_cases([rejected == len(models), last < 0.05 * first], text)


STUDY = Study(
    name="weight-selection",
    about="figure: choosing the weight",
    title="Choosing λ by a test of independence",
    words="""
        Adult, Crime, COMPAS, three splits, at most 1,000 validation rows; the smallest λ that is
        not rejected at 5 %.
    """,
    train=(TRAIN,),
    measure=(MEASURE,),
    tables=protocol_tables(TESTS, "Selected λ", selection_table),
    figures=protocol_figures(
        TESTS,
        "n·HSIC and thresholds, means over splits; thin lines are single splits",
        draw,
        None,
    ),
    claims=(_in_range, _preserved, _threshold, _adult_rejects),
)
