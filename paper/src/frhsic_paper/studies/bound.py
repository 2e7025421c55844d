r"""The finite-sample bound: both sides on trained models.

Part "sides" of the records, one for each model (and rule for the number m of directions, if
corrected):

``dataset``, ``method``, ``weight``, ``repeat``   as in the part "models"
``hsic``         with bandwidth 1 on Z and the median on S, test rows
``rhs``          HSIC / λ̂
published: ``lambda_hat``, ``kept``; ``lhs_mean``, ``lhs_max`` over 64 anchors, of the variance over
the full sample, ``trivial`` corrected: ``rule`` ("1", "2", "5", "1e-3", "1e-6"), ``directions``
(m), ``lambda_hat``; ``lhs_mean``, ``lhs_max`` of the projected variance of the same anchors,
``trace`` and ``tight`` forms of the bound, ``trivial`` (a bound that holds for all data), all for
heads of norm 1
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from frhsic.dependence import hsic
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic_paper.certificates import gdp_certificate
from frhsic_paper.claim import Outcome, claim, outcome_from_cases, protocol_rule
from frhsic_paper.directions import DirectionRule, NumericalRank
from frhsic_paper.frontiers import record_datasets
from frhsic_paper.grid import SMALL_REPEATS, Grid, Splits, methods_by_name, small_table
from frhsic_paper.models import Key, Model, store_all
from frhsic_paper.plot import finish, page_style, panels, protocol_figures, variant
from frhsic_paper.printed import DATASET_NAMES
from frhsic_paper.protocol import CORRECTED, OWN, Protocol
from frhsic_paper.records import Record, matching
from frhsic_paper.results import Results
from frhsic_paper.splits import Split
from frhsic_paper.steps import Measurement, Training, each
from frhsic_paper.studies.bandwidth_scaling import spectrum
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Column, Table, protocol_tables

ANCHORS = 64

PUBLISHED_CUT = 1e-6

RULES: dict[str, DirectionRule] = {
    "1": 1,
    "2": 2,
    "5": 5,
    "1e-3": NumericalRank(1e-3),
    "1e-6": NumericalRank(1e-6),
}
"""The number of directions of S, fixed in advance or determined by the size of their
eigenvalues.
"""


def grid(protocol: Protocol) -> Grid:
    """Return the grid of models for which bounds are computed."""
    return Grid(
        "bound",
        ("adult", "crime"),
        methods_by_name("frhsic", OWN),
        (0.1, 1.0, 10.0, 100.0, 1000.0),
        SMALL_REPEATS[protocol.name],
        Splits(scaling=protocol.scaling),
        source=partial(small_table, 1500),
    )


def sides(model: Model, split: Split, protocol: Protocol) -> list[Record]:
    """Return both sides of the bound on the test rows."""
    return SIDES[protocol.name](model.encode(split.test.x).to(torch.float64), split.test.s)


def published_sides(z: Tensor, s: Tensor) -> list[Record]:
    """Return both sides as published, with variances over the whole sample and the eigenvalue from
    float32.

    Examples
    --------
    For a constant representation, both sides are zero.

    >>> published_sides(torch.zeros(5, 2, dtype=torch.float64), torch.arange(5.0))[0]["rhs"]
    0.0
    """
    kernel_s = Gaussian(median_bandwidth(s, name="s"))
    eigenvalues = spectrum(s.to(torch.float32), float(kernel_s.bandwidth), PUBLISHED_CUT)
    dependence = float(hsic(z, s.to(z), Gaussian(1.0), kernel_s))
    variances = Gaussian(1.0)(z[:ANCHORS], z).var(1, correction=0)
    return [
        {
            "hsic": dependence,
            "lambda_hat": eigenvalues["smallest"],
            "kept": eigenvalues["kept"],
            "rhs": dependence / eigenvalues["smallest"],
            "lhs_mean": float(variances.mean()),
            "lhs_max": float(variances.max()),
            "trivial": float(1 - Gaussian(1.0)(z, z).mean()),
        }
    ]


def corrected_sides(z: Tensor, s: Tensor) -> list[Record]:
    r"""Return both sides as in the theorem: :math:`\|P_m \delta\|^2/n` of the same heads, for
    several m.
    """
    kernel_s = Gaussian(median_bandwidth(s, name="s"))
    heads = Gaussian(1.0)(z[:ANCHORS], z)
    rows = []
    for name, rule in RULES.items():
        certificate = gdp_certificate(
            z, s, kernel_z=Gaussian(1.0), kernel_s=kernel_s, directions=rule
        )
        gaps = [certificate.gap(scores) for scores in heads]
        details = certificate.details
        rows.append(
            {
                "rule": name,
                "directions": details["directions"],
                "hsic": details["hsic"],
                "lambda_hat": float(certificate.directions.eigenvalues[-1]),
                "rhs": details["published"],
                "trace": details["trace"],
                "tight": details["tight"],
                "trivial": certificate.trivial,
                "lhs_mean": sum(gaps) / len(gaps),
                "lhs_max": max(gaps),
            }
        )
    return rows


SIDES = {"published": published_sides, "corrected": corrected_sides}

TRAIN = Training(grid, (store_all,))

MEASURE = Measurement(
    "bound",
    "sides",
    grid,
    dict.fromkeys(SIDES, each(sides)),
    (ANCHORS, PUBLISHED_CUT, RULES),
    of_model={"published": 1, "corrected": len(RULES)},
)


RECORDS = "bound/sides"

VACUOUS = 0.25
"""Largest variance of a function with values in [0, 1], such as k(z₀, ·); a bound above it is
vacuous.
"""

ONE, ALL = "1", "1e-6"
"""Rules of the corrected protocol: the direction of largest variance alone, and every direction
above 1e-6.
"""


def sides_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of both sides of the bound; `trivial` is a bound for every head of norm 1, for
    any data.
    """
    resolved = any(r.get("rule") for r in records)
    columns = {
        "directions": "directions" if resolved else "kept",
        "left side, mean": "lhs_mean",
        "left side, largest": "lhs_max",
        "right side, HSIC / λ̂": "rhs",
    }
    if resolved:
        columns |= {"tight form": "tight", "trivial, any head of norm 1": "trivial"}
    rows: list[list[Cell]] = [
        [DATASET_NAMES[r["dataset"]], f"{r['weight']:g}", *(r[c] for c in columns.values())]
        for r in matching(records, method="frhsic", repeat=0)
    ]
    return Table.from_rows([Column(name, None) for name in ("dataset", "λ", *columns)], rows)


@page_style()
def draw(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Draw both sides of the bound against λ for each resolution, and the trivial bound, for the
    first split and so without intervals.
    """
    models = matching(records, method="frhsic", repeat=0)
    datasets = record_datasets(models)
    figure, axes = panels(len(datasets), 2.8)
    for ax, dataset in zip(axes, datasets):
        here = matching(models, dataset=dataset)
        rules = [rule for rule in dict.fromkeys(r.get("rule") or "" for r in here) if rule in DRAWN]
        for index, rule in enumerate(rules):
            rows = sorted(
                (r for r in here if (r.get("rule") or "") == rule), key=lambda r: float(r["weight"])
            )
            weights, hue = [float(r["weight"]) for r in rows], variant(index)["color"]
            for column, style, marker, name in (
                ("rhs", "--", "s", "HSIC / λ̂"),
                ("lhs_max", "-", "o", "largest gap"),
            ):
                values, label = [r[column] for r in rows], f"{name}{_resolution(rule)}"
                ax.loglog(weights, values, style, marker=marker, color=hue, label=label)
        trivial = {float(r["weight"]): r["trivial"] for r in here}
        weights, label = sorted(trivial), "trivial bound: above it, a bound says nothing"
        values = [min(trivial[w], VACUOUS) for w in weights]
        ax.loglog(weights, values, ":", color="#000000", linewidth=1.4, label=label)
        ax.set_title(DATASET_NAMES[dataset])
        ax.set_xlabel("penalty weight λ")
        ax.set_ylabel("mean-square gap of a head of norm 1\n(lower is better)")
    finish(figure, axes)
    return figure


DRAWN = ("", "1", "5", "1e-6")
"""Rules shown in the figure; the table has all of them."""


def _resolution(rule: str) -> str:
    if not rule:
        return ""
    return f", eigenvalues above {rule}" if "e" in rule else f", m = {rule}"


@claim("bound-valid", "Figure bound", "The right side bounds the left side at every λ.")
@protocol_rule(RECORDS, splits=0)
def _valid(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """Published: variance over the full sample, which is not the theorem's left side once
    directions are dropped. Corrected: the projected variance at several resolutions, in double
    precision.
    """
    below = [r["lhs_max"] <= r["rhs"] for r in matching(records, method="frhsic")]
    return outcome_from_cases(below, f"in {sum(below)} of {len(below)} cases")


@claim(
    "bound-non-vacuous",
    "Figure bound",
    "The bound is non-vacuous at full resolution.",
    "right side .76 to 17,000 in the files",
)
@protocol_rule(RECORDS, splits=0)
def _not_vacuous(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """A bound is informative if it is below the trivial one. A head of norm 1 has a variance of at
    most tr(K̃)/n on these rows, and of at most 0.5 on any rows (the column “trivial”); the heads in
    the figure, k(z₀, ·), have values in [0, 1] and so a variance of at most 0.25. The smallest of
    the three counts. Full resolution: all directions above 1e-6 of the largest.
    """
    full = [r for r in matching(records, method="frhsic") if r.get("rule", ALL) == ALL]
    right, times = [r["rhs"] for r in full], [r["rhs"] / r["trivial"] for r in full]
    text = (
        f"right side {min(right):.3g} to {max(right):.3g}, {min(times):,.0f} to {max(times):,.0f}"
        " times the trivial "
    )
    # a bound above the largest possible variance says nothing, whatever the trivial bound is
    useful = [r["rhs"] < min(r["trivial"], VACUOUS) for r in full]
    return outcome_from_cases(useful, f"{text}bound (median {np.median(times):,.0f})")


def _why_tightens(results: Results) -> str:
    one = matching(results.records(RECORDS, CORRECTED.name), method="frhsic", rule=ONE)
    useful = sum(r["rhs"] < r["trivial"] for r in one)
    return f"""
        With the single direction of largest variance the bound is below the trivial one in {useful}
        of {len(one)} models: the price is that only that direction of S is resolved.
    """


@claim(
    "bound-tightens",
    "Appendix, bound",
    "Fewer directions tighten the bound.",
    reason=_why_tightens,
    published=False,
)
@protocol_rule(RECORDS, splits=0)
def _tightens(records: Sequence[Record], protocol: Protocol) -> Outcome:
    one, every = (
        {Key.from_record(r): r["rhs"] for r in matching(records, method="frhsic", rule=rule)}
        for rule in (ONE, ALL)
    )
    pairs = [(one[model], every[model]) for model in one if model in every]
    medians = " against ".join(f"{value:.3g}" for value in np.median(pairs, axis=0))
    return outcome_from_cases(
        [a < b for a, b in pairs], f"m = 1 against all directions: median {medians}"
    )


STUDY = Study(
    name="bound",
    about="figure: tightness of the bound",
    title="The finite-sample bound",
    words="""
        FRHSIC on 1,500 rows of Adult and Crime, 300 test rows. Published: variance over the full
        sample against HSIC/λ̂_S, single precision. Corrected: the theorem's projected left side at
        several resolutions, double precision, and a tighter form.
        Claims count all splits; tables and figures show the first.
    """,
    train=(TRAIN,),
    measure=(MEASURE,),
    tables=protocol_tables(RECORDS, "Both sides", sides_table, folded=True),
    figures=protocol_figures(
        RECORDS, "Both sides of the bound against λ, the first split", draw, None
    ),
    claims=(_valid, _not_vacuous, _tightens),
)
