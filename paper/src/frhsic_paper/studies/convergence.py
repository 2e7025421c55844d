r"""Rates at which estimates of HSIC and EIPM converge.

:math:`Z \sim N(0, 1),\ S = Z/2 + \sqrt{3/4}\,\varepsilon`, kernels of bandwidth 1.

Part "errors" of the records, one for each statistic, n and repeat:

``protocol``    "published": fixed γ = 1, the "truth" is one draw of 20,000 rows, and every draw is
                the published one. "corrected": exact values as truths, and γ = n^(−1/5) beside the
                fixed one
``statistic``   "hsic"; "eipm" (γ = 1); under "corrected" also "eipm-shrinking" (γ = n^(−1/5),
                against the true EIPM)
``n``, ``repeat``
``estimate``, ``truth``, ``error``   error is the absolute difference

:func:`slopes` fits the rates: {statistic: Slope(value, low, high)}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

import numpy as np
import torch
from matplotlib.figure import Figure
from torch import Tensor

from frhsic.dependence import hsic
from frhsic.dependence.grams import pivoted_cholesky
from frhsic.kernels import Gaussian
from frhsic_paper.claim import NOT_RUN, Outcome, claim, protocol_rule
from frhsic_paper.options import Options
from frhsic_paper.plot import GRAY, curve, finish, page_style, panels, protocol_figures, variant
from frhsic_paper.printed import printed_records
from frhsic_paper.products import gram_times
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit, grouped, matching
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study
from frhsic_paper.synthetic import gaussian_pair
from frhsic_paper.table import Cell, Column, Table, protocol_tables

SIZES = (50, 100, 200, 500, 1000, 2000, 5000)

CORRELATION = 0.5

REFERENCE_ROWS, REFERENCE_SEED = 20000, 999

RESAMPLES = 2000


@dataclass(frozen=True)
class Sampling:
    """The samples of a protocol, their statistics, and how the true values are computed."""

    repeats: int
    statistics: tuple[str, ...]
    truths: Callable[[], dict[str, float]]


@dataclass(frozen=True)
class Slope:
    """Slope of log mean error against log n, with its 95 % bootstrap interval over repeats."""

    value: float
    low: float
    high: float


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the sample sizes, with the number of records of each."""
    sampling = SETTINGS[protocol.name]
    return {(n,): options.limit_repeats(sampling.repeats) * len(sampling.statistics) for n in SIZES}


def errors(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the errors at each sample size."""
    sampling = SETTINGS[protocol.name]
    truths = sampling.truths()
    for (n,) in missing:
        yield [
            error_record(truths[name], name, repeat, estimate)
            for repeat in range(options.limit_repeats(sampling.repeats))
            for name, estimate in _estimates(*sample(n, repeat), sampling.statistics).items()
        ]


def error_record(truth: float, statistic: str, repeat: int, estimate: float) -> Record:
    """Return the record of an estimate whose true value is known."""
    known = {"statistic": statistic, "repeat": repeat, "estimate": estimate, "truth": truth}
    return {**known, "error": abs(estimate - truth)}


def sample(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """Return a sample, drawn as for the published figure: by NumPy's legacy generator, and rounded
    to float32.
    """
    draw = np.random.RandomState(seed)
    z = draw.standard_normal(n)
    s = CORRELATION * z + math.sqrt(1 - CORRELATION**2) * draw.standard_normal(n)
    rounded = (
        torch.from_numpy(values.astype(np.float32)).to(torch.float64)[:, None] for values in (z, s)
    )
    return next(rounded), next(rounded)


def eipm_by_factor(z: Tensor, s: Tensor, bandwidth: float) -> float:
    r"""Return the EIPM of one-dimensional float64 rows under a Gaussian kernel of bandwidth 1 on z,
    in O(n² r) time.

    With :math:`K = GG^\top` up to 1e-12 of its trace, and r some thirty columns of G,
    :math:`\|(w_i - u)^\top K^{1/2}\| = \|w_i^\top G - u^\top G\|`:
    :func:`frhsic_paper.statistics.eipm` in less time.
    """
    factor, _ = pivoted_cholesky(Gaussian(1.0), z)
    ones = torch.ones_like(z)
    # the sums over all rows, minus the row itself, whose weight is 1
    sums = gram_times(Gaussian(bandwidth), s, torch.cat([factor, ones], dim=1)) - torch.cat(
        [factor, ones], dim=1
    )
    means = sums[:, :-1] / sums[:, -1:]
    return float((means - factor.mean(0)).norm(dim=1).mean())


def _estimates(z: Tensor, s: Tensor, statistics: Sequence[str]) -> dict[str, float]:
    estimators = {
        "hsic": lambda: float(hsic(z, s, Gaussian(1.0), Gaussian(1.0))),
        "eipm": lambda: eipm_by_factor(z, s, 1.0),
        "eipm-shrinking": lambda: eipm_by_factor(z, s, float(len(z) ** -0.2)),
    }
    return {name: estimators[name]() for name in statistics}


def _references() -> dict[str, float]:
    """Return the "true" values of the published figure: estimates from one draw of 20,000 rows."""
    return _estimates(*sample(REFERENCE_ROWS, REFERENCE_SEED), ("hsic", "eipm"))


def _exact() -> dict[str, float]:
    pair = gaussian_pair(2, correlation=CORRELATION, random_state=0)
    return {"hsic": pair.hsic(), "eipm": pair.eipm(1.0), "eipm-shrinking": pair.eipm()}


SETTINGS = {
    "published": Sampling(20, ("hsic", "eipm"), _references),
    "corrected": Sampling(40, ("hsic", "eipm", "eipm-shrinking"), _exact),
}

MEASURE = Computation("convergence", "errors", ("n",), units, errors, SETTINGS)


def slopes(measured: Sequence[Record]) -> dict[str, Slope]:
    """Return the slope for each statistic, from a least squares fit of log mean absolute error on
    log n.

    The interval resamples repeats, with the same ones for every n, since these share a seed in the
    published draws.

    Examples
    --------
    >>> made = [
    ...     {"statistic": "hsic", "n": n, "repeat": 0, "error": n**-0.5} for n in (50, 200, 800)
    ... ]
    >>> round(slopes(made)["hsic"].value, 6)
    -0.5
    """
    fitted = {}
    for (statistic,), own in grouped(measured, "statistic").items():
        by_size = grouped(sorted(own, key=itemgetter("n", "repeat")), "n")
        sizes = [n for (n,) in by_size]
        errors = np.array([[r["error"] for r in some] for some in by_size.values()])
        picks = np.random.default_rng(0).integers(
            errors.shape[1], size=(RESAMPLES, errors.shape[1])
        )
        means = np.concatenate([errors.mean(1)[None], errors[:, picks].mean(2).T])
        x = np.log(sizes)
        x = x - x.mean()
        every = np.log(means) @ x / (x @ x)
        low, high = np.quantile(every[1:], [0.025, 0.975])
        fitted[statistic] = Slope(float(every[0]), float(low), float(high))
    return fitted


STATISTICS = {
    "hsic": "HSIC",
    "hsic-unbiased": "HSIC, unbiased",
    "eipm": "EIPM, γ = 1",
    "eipm-shrinking": "EIPM, γ = n^(−1/5)",
}

EIPM = {"published": "eipm", "corrected": "eipm-shrinking"}
"""The estimator of EIPM by which the claim about its rate is judged."""


def slope_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of the slopes of the mean absolute error over n, with bootstrap intervals and
    the printed slopes.
    """
    in_paper = {r["estimator"]: r["slope"] for r in printed_records("convergence_slopes")}
    truths = {r["statistic"]: r["truth"] for r in records}
    rows: list[list[Cell]] = []
    for name, slope in slopes(records).items():
        interval = f"[{slope.low:.2f}, {slope.high:.2f}]"
        rows.append(
            [STATISTICS[name], in_paper.get(name.upper()), slope.value, interval, truths[name]]
        )
    headings = ("estimator", Column("printed slope", 2, printed=True), "slope", "95 % interval")
    return Table.from_rows([*headings, Column("reference value", 5)], rows)


@page_style()
def draw(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Draw the mean absolute error against n, with fitted slopes and reference lines of slope −1/2
    and −2/5.
    """
    guide, top = np.array([1.0]), 1.0
    figure, (ax,) = panels(1, 2.8)
    ax.set(xscale="log", yscale="log")
    for index, (name, slope) in enumerate(slopes(records).items()):
        mine = matching(records, statistic=name)
        sizes = np.array(sorted({r["n"] for r in mine}))
        errors = [[r["error"] for r in matching(mine, n=n)] for n in sizes]
        label = f"{STATISTICS[name]}: slope {slope.value:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
        curve(ax, sizes.tolist(), errors, **variant(index), label=label.replace("-", "−"))
        if index == 0:
            guide, top = sizes, float(np.mean(errors[0])) * 1.6
    for power, style, name in ((-0.5, "--", "slope −1/2"), (-0.4, ":", "slope −2/5")):
        ax.loglog(
            guide, top * (guide / guide[0]) ** power, style, color=GRAY, linewidth=1, label=name
        )
    ax.set_xlabel("rows n")
    ax.set_ylabel("mean absolute error (lower is better)")
    finish(figure, [ax])
    return figure


def _text(slope: Slope) -> str:
    return f"{slope.value:.3f} [{slope.low:.2f}, {slope.high:.2f}]"


@claim("hsic-rate", "Section 5.2", "Empirical HSIC converges at n^(−1/2).", "slope −0.46")
@protocol_rule("convergence")
def _hsic_rate(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """Slope with a bootstrap 95 % interval; the claim holds if the interval contains −1/2.
    Published: errors relative to one draw of 20,000 rows, which is 5 % off the exact value;
    corrected: relative to the exact value.
    """
    slope = slopes(records).get("hsic")
    return NOT_RUN if slope is None else Outcome(slope.low <= -0.5 <= slope.high, _text(slope))


@claim(
    "eipm-rate",
    "Section 5.2",
    "The EIPM estimator converges more slowly, at n^(−2/5).",
    "slope −0.44",
)
@protocol_rule("convergence")
def _eipm_rate(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """The claim holds if the interval contains −2/5 and lies above HSIC's. With γ fixed, as in the
    published run, EIPM estimates a smoothed quantity (.0977, not .1996) at the same rate as HSIC;
    with a bandwidth that shrinks, it approaches the true value more slowly.
    """
    fitted = slopes(records)
    name = EIPM[protocol.name]
    if name not in fitted or "hsic" not in fitted:
        return NOT_RUN
    slope = fitted[name]
    text = (
        _text(slope)
        if name == "eipm"
        else f"γ = n^(−1/5): {_text(slope)}; γ = 1: {_text(fitted['eipm'])}"
    )
    return Outcome(slope.low <= -0.4 <= slope.high and slope.low > fitted["hsic"].high, text)


STUDY = Study(
    name="convergence",
    about="figure: convergence of HSIC and EIPM",
    title="Convergence of the estimators",
    words="""
        Z standard Gaussian, S = Z/2 + noise, n from 50 to 5,000, 20 repeats, bandwidths 1.
        Published: single precision, γ = 1, one draw of 20,000 rows for the truth. Corrected: double
        precision, exact truths, and a γ that shrinks as n^(−1/5).
    """,
    measure=(MEASURE,),
    tables=protocol_tables("convergence", "Slopes", slope_table),
    figures=protocol_figures("convergence", "Mean absolute error against n", draw),
    claims=(_hsic_rate, _eipm_rate),
)
