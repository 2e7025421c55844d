"""The smallest positive eigenvalue of the Gram matrix of S against the kernel's bandwidth."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from frhsic_paper import spectrum
from frhsic_paper.claim import NOT_RUN, Claim, Outcome, by_protocol, outcome_of
from frhsic_paper.plot import Drawn, legend_below, panels, styled
from frhsic_paper.printed import DATASET_NAMES, cached, dataset_name
from frhsic_paper.protocol import CORRECTED, PUBLISHED, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.spectrum import DATASETS, scaling_slope
from frhsic_paper.study import Study
from frhsic_paper.table import Column, Table, tables_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["STUDY"]


def _of(records: Sequence[Record], dataset: str) -> list[Record]:
    return sorted((r for r in records if r["dataset"] == dataset), key=lambda r: r["sigma"])


def eigenvalue_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """The smallest eigenvalue kept, and the cut-off that it may merely follow."""
    in_paper = {(r["dataset"], float(r["sigma"])): r["hat_lambda_S"] for r in cached("lambda2_vs_sigma")}
    rows = [
        (
            DATASET_NAMES.get(r["dataset"], f"{r['n']} distinct values"),
            f"{r['sigma']:g}",
            in_paper.get((r["dataset"], float(r["sigma"]))),
            *(r[column] for column in ("smallest", "floor", "kept", "last")),
        )
        for r in sorted(records, key=lambda r: (r["dataset"], r["sigma"]))
    ]
    names = ("λ̂_S of the paper's files", "λ̂_S", "1e-6 of the largest", "eigenvalues above the cut")
    last = "smallest that is not zero by construction"
    return Table.of(["S of", "σ", *(Column(name, None) for name in (*names, last))], rows)


def figures(results: Results) -> list[Drawn]:
    """One figure for both protocols."""
    published, corrected = (results.of("bandwidth-scaling", protocol.name) for protocol in (PUBLISHED, CORRECTED))
    if not published and not corrected:
        return []
    return [Drawn("bandwidth-scaling", "λ̂_S against the bandwidth, by both rules", draw(published, corrected))]


@styled()
def draw(published: Sequence[Record], corrected: Sequence[Record]) -> Figure:
    """λ̂_S against the bandwidth by the published rule and in double precision, with the cut-off that stops it."""
    datasets = [d for d in DATASETS if _of([*published, *corrected], d)]
    figure, axes = panels(len(datasets) + 1, 3, 3.4, 3.1)
    for ax, dataset in zip(axes, datasets):
        theirs = [r for r in cached("lambda2_vs_sigma") if r["dataset"] == dataset]
        values = [r["hat_lambda_S"] for r in theirs]
        ax.loglog([r["sigma"] for r in theirs], values, "kx", label="the paper's files", zorder=5)
        ours, double = _of(published, dataset), _of(corrected, dataset)
        sigmas, floor = [r["sigma"] for r in ours], "10⁻⁶ of the largest eigenvalue"
        label = "published rule (float32)"
        ax.loglog(sigmas, [r["smallest"] for r in ours], marker="o", color="#0072B2", label=label)
        ax.loglog(sigmas, [r["floor"] for r in ours], ":", color="#888888", label=floor)
        values = [r["smallest"] for r in double]
        ax.loglog([r["sigma"] for r in double], values, marker="o", color="#D55E00", label="float64")
        ax.set_title(dataset_name(dataset))
    distinct = _of(corrected, "distinct")
    if distinct:
        ax = axes[-1]
        values = [max(r["last"], 1e-18) for r in distinct]
        ax.loglog([r["sigma"] for r in distinct], values, marker="o", color="#D55E00")
        ax.axhline(1 / distinct[0]["n"], color="#888888", linestyle="--", linewidth=1, label="1/n")
        ax.set_title(f"{distinct[0]['n']} distinct values (0 drawn at 1e-18)")
        ax.legend()
    for ax in axes:
        ax.set_xlabel("σ of the kernel on S")
        ax.set_ylabel(r"$\hat\lambda_S$")
    legend_below(figure, axes[:-1], 4)
    return figure


@by_protocol("bandwidth-scaling")
def _scaling(records: Sequence[Record], protocol: Protocol) -> Outcome:
    good, parts = [], []
    for dataset in DATASETS:
        rows = _of(records, dataset)
        if not rows:
            continue
        stuck = sum(r["smallest"] < 10 * r["floor"] for r in rows) if protocol.printed else 0
        monotone = all(b["smallest"] <= a["smallest"] for a, b in pairwise(rows))
        good.append(monotone and stuck < 2)
        parts.append(
            f"{dataset_name(dataset)} slope {scaling_slope(rows, dataset):.2f}"
            + (f", {stuck} of {len(rows)} values within 10× of the cut-off" if stuck else "")
            + ("" if monotone else ", not monotone")
        )
    return outcome_of(good, "; ".join(parts))


@by_protocol("bandwidth-scaling")
def _limits(records: Sequence[Record], protocol: Protocol) -> Outcome:
    rows = _of(records, "distinct")
    if len(rows) < 2:
        return NOT_RUN
    small, large = rows[0]["last"] * rows[0]["n"], rows[-1]["last"] * rows[-1]["n"]
    return Outcome(
        abs(small - 1) < 0.01 and abs(large) < 1e-6,
        f"n λ̂_S = {small:.4f} at σ = {rows[0]['sigma']:g}, {large:.1e} at σ = {rows[-1]['sigma']:g}",
    )


STUDY = Study(
    name="bandwidth-scaling",
    about="figure: smallest eigenvalue and bandwidth",
    title="λ̂_S and the bandwidth",
    words="""
        Smallest positive eigenvalue of the centred Gram matrix of S, 1,500 rows. Published: single precision, cut at
        1e-6 of the largest. Corrected: double precision; 200 distinct values for the two limits.
    """,
    measure=(spectrum.MEASURE,),
    tables=tables_of("bandwidth-scaling", "Eigenvalues", eigenvalue_table, folded=True),
    figures=figures,
    claims=(
        Claim(
            name="eigenvalue-scaling",
            place="Figure λ̂_S",
            statement="λ̂_S scales polynomially with the bandwidth.",
            printed="slopes −1.70, −1.68",
            rule=_scaling,
            reason="""
                By the published rule λ̂_S is the first eigenvalue above 1e-6 of the largest, in float32: it follows the
                largest eigenvalue, about Var(S)/σ², whatever the smallest one does. In double precision it falls by
                many orders of magnitude over a small range of σ, then follows that precision's own cut-off.
            """,
        ),
        Claim(
            name="eigenvalue-limits",
            place="Remark on λ̂_S",
            statement="λ̂_S → 1/n for small and → 0 for large bandwidths.",
            printed="no number",
            rule=_limits,
            reason="""
                With distinct values of S; ties, as in age, make the smallest eigenvalue zero at every σ.
            """,
            published=False,
        ),
    ),
)
