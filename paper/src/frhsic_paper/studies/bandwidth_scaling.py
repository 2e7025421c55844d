r"""The smallest positive eigenvalue of the Gram matrix of S as a function of the kernel's
bandwidth.

Part "spectra" of the records, one for each dataset and bandwidth:

``protocol``     "published": float32, smallest eigenvalue above 1e-6 of the largest. "corrected":
                 float64
``dataset``      "adult", "crime" (1,500 rows); under "corrected" also "distinct": 200 different
                 values, for the limits
``sigma``, ``n``, ``distinct``   bandwidth, rows, different values of S ``largest``      largest
eigenvalue of HLH/n ``smallest``     λ̂_S: the smallest above ``cut`` times the largest, ``kept``
how many are above ``cut``          1e-6 under "published", 1e-12 under "corrected" ``floor``
1e-6 · largest: the limit of the published rule, whatever the data ``eigenvalues``  the twelve
largest ``last``         the smallest of the distinct − 1 eigenvalues that are not zero by
construction

Part "ranks" (protocol "corrected"), one for each of the five datasets: the same at the median
bandwidth in double precision, cut at 1e-6, and ``single``: λ̂_S in single precision

:func:`scaling_slope` is the slope of log smallest on log sigma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from operator import itemgetter

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from frhsic.dependence.grams import centered_gram
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
from frhsic_paper.datasets import load_variant
from frhsic_paper.grid import FIRST_SEED
from frhsic_paper.options import Options
from frhsic_paper.plot import GRAY, Drawn, finish, page_style, panels, variant
from frhsic_paper.printed import DATASET_NAMES, dataset_name, published_numbers
from frhsic_paper.protocol import CORRECTED, PUBLISHED, Protocol
from frhsic_paper.protocol import DATASETS as ALL_DATASETS
from frhsic_paper.records import Record, Unit, matching
from frhsic_paper.results import Results
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study
from frhsic_paper.table import Column, Listed, Table, protocol_tables

DATASETS = ("adult", "crime")
"""Datasets for which the paper shows its bound; it omits COMPAS because of its rank."""

ROWS = 1500

LIMIT_SIGMAS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Bandwidths for 200 distinct values in [0, 1], which are at least 1e-5 apart."""

LIMIT_ROWS = 200

PUBLISHED_CUT = 1e-6

SHOWN = 12

SPECTRA = "bandwidth-scaling/spectra"

STABLE = 2.0
"""An eigenvalue is called stable if its values in two precisions differ by at most this factor."""


@dataclass(frozen=True)
class Scan:
    """Bandwidths, precision, and the share of the largest eigenvalue below which eigenvalues are
    cut off.

    `limits` are the bandwidths for the distinct values, which show the limits.
    """

    sigmas: tuple[float, ...]
    dtype: torch.dtype
    cut: float
    limits: tuple[float, ...] = ()


SETTINGS = {
    "published": Scan((0.1, 0.3, 1.0, 3.0, 10.0), torch.float32, PUBLISHED_CUT),
    "corrected": Scan(
        (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0),
        torch.float64,
        1e-12,
        LIMIT_SIGMAS,
    ),
}


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the datasets and bandwidths."""
    scan = SETTINGS[protocol.name]
    pairs = [(name, sigma) for name in options.chosen_datasets(DATASETS) for sigma in scan.sigmas]
    if options.datasets is None:
        pairs += [("distinct", sigma) for sigma in scan.limits]
    return dict.fromkeys(pairs, 1)


def spectra(
    missing: Sequence[Unit], protocol: Protocol, options: Options
) -> Iterator[list[Record]]:
    """Yield the spectrum of each dataset and bandwidth."""
    scan = SETTINGS[protocol.name]
    for name, group in groupby(missing, key=itemgetter(0)):
        s = _distinct_values() if name == "distinct" else sensitive(name, protocol)
        for _, sigma in group:
            yield [spectrum(s.to(scan.dtype), sigma, scan.cut)]


MEASURE = Computation(
    "bandwidth-scaling", "spectra", ("dataset", "sigma"), units, spectra, SETTINGS
)


def rank_units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the datasets."""
    return {(name,): 1 for name in options.chosen_datasets(ALL_DATASETS)}


def ranks(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the spectrum of each dataset at the median bandwidth."""
    for (name,) in missing:
        s = sensitive(name, protocol)
        sigma = float(median_bandwidth(s, name="s"))
        single = spectrum(s.to(torch.float32), sigma, PUBLISHED_CUT)
        yield [{"sigma": sigma, **spectrum(s, sigma, PUBLISHED_CUT), "single": single["smallest"]}]


RANKS = Computation(
    "bandwidth-scaling",
    "ranks",
    ("dataset",),
    rank_units,
    ranks,
    {"corrected": (ROWS, PUBLISHED_CUT)},
)


def spectrum(s: Tensor, sigma: float, cut: float) -> Record:
    r"""Eigenvalues of :math:`HLH/n` for a Gaussian of bandwidth σ on s, of shape (n,), in its own
    precision.

    Examples
    --------
    For two values that are far apart, HLH/2 = [[1, −1], [−1, 1]]/4 has the eigenvalues 1/2 and 0.

    >>> found = spectrum(torch.tensor([0.0, 9.0], dtype=torch.float64), 1.0, 1e-6)
    >>> found["kept"], round(found["smallest"], 6), found["distinct"]
    (1, 0.5, 2)
    """
    n = len(s)
    gram = centered_gram(Gaussian(sigma)(s[:, None], s[:, None])) / n
    values = torch.linalg.eigvalsh((gram + gram.T) / 2).flip(0)
    largest, distinct = float(values[0]), int(torch.unique(s).numel())
    above = values[values > cut * largest]
    return {
        "n": n,
        "distinct": distinct,
        "largest": largest,
        "smallest": float(above[-1]),
        "kept": len(above),
        "cut": cut,
        "floor": PUBLISHED_CUT * largest,
        "eigenvalues": values[:SHOWN].tolist(),
        "last": float(values[distinct - 2]),
    }


def scaling_slope(scanned: Sequence[Record], dataset: str) -> float:
    """Return the slope of log λ̂ on log σ over the published bandwidths.

    Examples
    --------
    >>> made = [{"dataset": "adult", "sigma": x, "smallest": x**-2} for x in (0.1, 1.0, 10.0)]
    >>> round(scaling_slope(made, "adult"), 6)
    -2.0
    """
    published = SETTINGS["published"].sigmas
    own = [r for r in matching(scanned, dataset=dataset) if r["sigma"] in published]
    sigmas, values = np.log([(r["sigma"], r["smallest"]) for r in own]).T
    return float(np.polyfit(sigmas, values, 1)[0])


def sensitive(name: str, protocol: Protocol) -> Tensor:
    """Return 1,500 values of S, scaled to [0, 1] by all rows of the dataset."""
    data = load_variant(name, protocol)
    s = torch.from_numpy(data.s.to_numpy(np.float64).copy())
    scaled = (s - s.min()) / (s.max() - s.min())
    rows = np.random.RandomState(FIRST_SEED).permutation(data.n)[: min(ROWS, data.n)]
    return scaled[torch.from_numpy(rows)]


def _distinct_values() -> Tensor:
    """Return 200 values in [0, 1], one in each of 200 intervals of equal length."""
    draw = np.random.default_rng(FIRST_SEED)
    return torch.from_numpy(
        (np.arange(LIMIT_ROWS) + draw.uniform(0.1, 0.9, LIMIT_ROWS)) / LIMIT_ROWS
    )


def _of(records: Sequence[Record], dataset: str) -> list[Record]:
    return sorted(matching(records, dataset=dataset), key=itemgetter("sigma"))


def eigenvalue_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of the smallest eigenvalue that is kept, and the cut-off, which may alone
    determine it.
    """
    in_paper = {
        (r["dataset"], float(r["sigma"])): r["hat_lambda_S"]
        for r in published_numbers("lambda2_vs_sigma")
    }
    rows = [
        (
            DATASET_NAMES.get(r["dataset"], f"{r['n']} distinct values"),
            f"{r['sigma']:g}",
            in_paper.get((r["dataset"], float(r["sigma"]))),
            *(r[column] for column in ("smallest", "floor", "kept", "last")),
        )
        for r in sorted(records, key=lambda r: (r["dataset"], r["sigma"]))
    ]
    theirs = Column("λ̂_S of the paper's files", None, printed=True)
    names = (
        "λ̂_S",
        "1e-6 of the largest",
        "eigenvalues above the cut",
        "smallest that is not zero by construction",
    )
    return Table.from_rows(["S of", "σ", theirs, *(Column(name, None) for name in names)], rows)


def rank_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of the number of distinct values, the directions above the cut-off, and λ̂_S
    in both precisions.
    """
    columns = ("n", "distinct", "kept", "smallest", "single")
    rows = [[dataset_name(r["dataset"]), *(r[column] for column in columns)] for r in records]
    names = ("directions above 1e-6", Column("λ̂_S, double", None), Column("λ̂_S, single", None))
    return Table.from_rows(["S of", "rows", "different values", *names], rows)


def tables(results: Results) -> list[Listed]:
    """Return the eigenvalues under each protocol, and the directions of each dataset."""
    eigenvalues = protocol_tables(SPECTRA, "Eigenvalues", eigenvalue_table, folded=True)
    return [
        *eigenvalues(results),
        *protocol_tables("bandwidth-scaling/ranks", "Directions of S", rank_table)(results),
    ]


def figures(results: Results) -> list[Drawn]:
    """Return one figure for both protocols."""
    published, corrected = (
        results.records(SPECTRA, protocol.name) for protocol in (PUBLISHED, CORRECTED)
    )
    if not published and not corrected:
        return []
    caption = "λ̂_S against the bandwidth, by both rules; one sample, so there are no bars"
    return [Drawn("bandwidth-scaling", caption, draw(published, corrected))]


@page_style()
def draw(published: Sequence[Record], corrected: Sequence[Record]) -> Figure:
    """Draw λ̂_S against the bandwidth, computed by the published rule and in double precision, with
    the cut-offs.
    """
    datasets = [d for d in DATASETS if _of([*published, *corrected], d)]
    figure, axes = panels(len(datasets) + 1)
    for ax, dataset in zip(axes, datasets):
        theirs = matching(published_numbers("lambda2_vs_sigma"), dataset=dataset)
        values = [r["hat_lambda_S"] for r in theirs]
        ax.loglog([r["sigma"] for r in theirs], values, "kx", label="the paper's files", zorder=5)
        ours, double = _of(published, dataset), _of(corrected, dataset)
        sigmas, floor = [r["sigma"] for r in ours], "10⁻⁶ of the largest eigenvalue"
        label = "published rule (float32)"
        ax.loglog(sigmas, [r["smallest"] for r in ours], **variant(0), label=label)
        ax.loglog(sigmas, [r["floor"] for r in ours], ":", color=GRAY, label=floor)
        values = [r["smallest"] for r in double]
        ax.loglog([r["sigma"] for r in double], values, **variant(3), label="float64")
        ax.set_title(dataset_name(dataset))
    distinct = _of(corrected, "distinct")
    if distinct:
        ax = axes[-1]
        values = [max(r["last"], 1e-18) for r in distinct]
        ax.loglog([r["sigma"] for r in distinct], values, **variant(3), label="float64")
        ax.axhline(1 / distinct[0]["n"], color=GRAY, linestyle="--", linewidth=1, label="1/n")
        ax.set_title(f"{distinct[0]['n']} distinct values\n(0 drawn at 1e-18)")
    for ax in axes:
        ax.set_xlabel("σ of the kernel on S")
        ax.set_ylabel(r"$\hat\lambda_S$")
    finish(figure, axes)
    return figure


@claim(
    "eigenvalue-scaling",
    "Figure λ̂_S",
    "λ̂_S scales polynomially with the bandwidth.",
    "slopes −1.70, −1.68",
)
@case_rule(SPECTRA, splits=0)
def _scaling(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """By the published rule λ̂_S is the first eigenvalue above 1e-6 of the largest, in float32: it
    follows the largest eigenvalue, about Var(S)/σ², whatever the smallest one does. In double
    precision it falls by many orders of magnitude over a small range of σ, then follows that
    precision's own cut-off.
    """
    for dataset, rows in ((d, rows) for d in DATASETS if (rows := _of(records, d))):
        stuck = sum(r["smallest"] < 10 * r["floor"] for r in rows) if protocol.printed else 0
        monotone = all(b["smallest"] <= a["smallest"] for a, b in pairwise(rows))
        text = f"{dataset_name(dataset)} slope {scaling_slope(rows, dataset):.2f}"
        text += f", {stuck} of {len(rows)} values within 10× of the cut-off" if stuck else ""
        yield monotone and stuck < 2, text + ("" if monotone else ", not monotone")


@claim(
    "eigenvalue-limits",
    "Remark on λ̂_S",
    "λ̂_S → 1/n for small and → 0 for large bandwidths.",
    published=False,
)
@protocol_rule(SPECTRA, splits=0)
def _limits(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """The rule uses distinct values of S; ties, as in age, make the smallest eigenvalue zero at
    every σ.
    """
    rows = _of(records, "distinct")
    if len(rows) < 2:
        return NOT_RUN
    small, large = rows[0]["last"] * rows[0]["n"], rows[-1]["last"] * rows[-1]["n"]
    return Outcome(
        abs(small - 1) < 0.01 and abs(large) < 1e-6,
        f"n λ̂_S = {small:.4f} at σ = {rows[0]['sigma']:g}, {large:.1e} at σ ="
        f" {rows[-1]['sigma']:g}",
    )


@claim(
    "compas-rank",
    "Section 5.3 and Appendix, bound",
    "COMPAS' age has few distinct values, so that its Gram matrix has small rank and λ̂_S is"
    " unstable, unlike Adult and Crime.",
    reason=f"""
        Three cases: fewer directions than Adult, fewer than Crime, and λ̂_S that differs by more
        than {STABLE:g}× between single and double precision on COMPAS alone.
    """,
    published=False,
)
@protocol_rule("bandwidth-scaling/ranks", splits=0)
def _lower_rank(records: Sequence[Record], protocol: Protocol) -> Outcome:
    found = {r["dataset"]: r for r in records}
    if not {"compas", *DATASETS} <= set(found):
        return outcome_from_cases([], "")
    factors = {
        d: max(r["single"] / r["smallest"], r["smallest"] / r["single"]) for d, r in found.items()
    }
    lower = [found["compas"]["kept"] < found[d]["kept"] for d in DATASETS]
    unstable = factors["compas"] > STABLE >= max(factors[d] for d in DATASETS)
    cases = [
        f"{dataset_name(d)} {r['kept']} directions, {r['distinct']} values, λ̂_S off by"
        f" {factors[d]:.1f}×"
        for d, r in found.items()
    ]
    return outcome_from_cases([*lower, unstable], "", cases)


STUDY = Study(
    name="bandwidth-scaling",
    about="figure: smallest eigenvalue and bandwidth",
    title="λ̂_S and the bandwidth",
    words="""
        Smallest positive eigenvalue of the centred Gram matrix of S, 1,500 rows. Published: single
        precision, cut at 1e-6 of the largest. Corrected: double precision; 200 distinct values for
        the two limits. One draw of rows each.
    """,
    measure=(MEASURE, RANKS),
    tables=tables,
    figures=figures,
    claims=(_scaling, _limits, _lower_rank),
)
