r"""Generalized demographic parity with its interval, and with what it would be under independence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.parity._resampling import Gaps, Scale, check_resampling, sample, spread, unscaled
from frhsic.parity.smoothing import Weighting, check_weighting

__all__ = ["ParityResult", "gdp", "gdp_by_attribute", "standardized_gdp"]


@dataclass(frozen=True)
class ParityResult:
    """A gap in mean scores, and what is needed to read it. ``float(result)`` is its value.

    Attributes
    ----------
    value
        The gap; of several columns of scores, the largest.
    interval
        Confidence interval for the population's gap *at this bandwidth*; NaN without bootstrap.
    expected_under_independence
        Mean of the value over permutations of s; NaN without them. The value cannot be compared with zero, since it
        is a mean of absolute values and positive even if scores and s are independent.
    pvalue
        Share of permutations with a value at least as large, the sample itself counted; NaN without them.
    per_column
        The gap of each column of scores.
    column
        Which column has the largest.
    n, bandwidth, weighting, confidence, bootstrap, permutations, seed
        How it was computed; the seed reproduces it.
    unit
        ``"score"``, or ``"standard deviation of the score"``.
    """

    value: float
    interval: tuple[float, float]
    expected_under_independence: float
    pvalue: float
    per_column: tuple[float, ...]
    column: int
    n: int
    bandwidth: float
    weighting: Weighting
    confidence: float
    bootstrap: int
    permutations: int
    seed: int
    unit: str

    def __float__(self) -> float:
        return self.value


def gdp(
    scores: Any,
    s: Any,
    *,
    bandwidth: float | None = None,
    weighting: Weighting = "population",
    where: Any = None,
    confidence: float = 0.95,
    bootstrap: int = 500,
    permutations: int = 500,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity: the mean distance of the conditional mean score from the mean score.

    .. math:: \widehat\Delta = \sum_g v_g \bigl| \hat m(s_g) - \bar f \bigr|, \qquad
        \hat m(s) = \frac{\sum_j f_j \exp(-(s - s_j)^2 / 2h^2)}{\sum_j \exp(-(s - s_j)^2 / 2h^2)},

    an estimate of :math:`\mathbb E_S |\mathbb E[f | S] - \mathbb E f|`. Zero in the population when the mean score does
    not depend on s, whatever else of the scores does. It scales with the scores, see :func:`standardized_gdp`, and
    is positive on any sample, see `expected_under_independence` of the result.

    Parameters
    ----------
    scores
        What the predictor puts out, one row per observation: probabilities, logits, decisions, predictions. Of several
        columns (classes) each is measured and the largest gap reported.
    s
        One sensitive attribute; for several see :func:`gdp_by_attribute`.
    bandwidth
        The h of the smoother, in units of s. None is a tenth of the range of s, over all rows. The published
        numbers have 0.1 on s scaled to [0, 1] by the training rows: a tenth of the training range.
    weighting
        ``"population"``, the definition: the average is over the values of s in the sample. ``"uniform"``: over 50
        equispaced points of its range, as the published numbers were made; sparse regions then count as much as
        dense ones.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    confidence
        Of the interval.
    bootstrap
        Resamples for the interval; 0 for none.
    permutations
        Of s, for the value expected under independence and the p-value; 0 for none.
    random_state
        Decides the resamples.

    Notes
    -----
    More than 1,024 distinct values of s are binned linearly onto nodes a 64th of the bandwidth apart, which changes
    each kernel weight by at most 3e-5; memory is O(n) and no resample costs more than O(n). Where that would take
    more than 4,096 nodes, because the bandwidth is below a 64th of the range, they lie wider apart, up to a
    quarter of the bandwidth (0.8 % of a weight); a bandwidth too small even for that is refused.

    The gap is not differentiable where the conditional mean meets the mean, so percentiles of the bootstrap would
    not cover. The interval uses the directional derivative: where the gap at a point is within
    :math:`\sqrt{\log n}` standard errors of zero, its absolute noise counts (Fang and Santos, 2019). It is
    conservative near independence. With several columns each is given its share of the error (Bonferroni). The
    interval is for the smoothed gap: the bias of smoothing, :math:`O(h^2)`, is not in it.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its equation of GDP. Fang and
    Santos (2019), *Inference on directionally differentiable functions*.

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6, one row in four in the second: 0.75 * 0.1 + 0.25 * 0.3.

    >>> result = gdp([0.1, 0.2, 0.3, 0.6], [0.0, 0.0, 0.0, 1.0])
    >>> round(float(result), 4)
    0.15
    """
    return _measured(
        scores, s, bandwidth, weighting, where, confidence, bootstrap, permutations, random_state, unscaled, "score"
    )


def standardized_gdp(
    scores: Any,
    s: Any,
    *,
    bandwidth: float | None = None,
    weighting: Weighting = "population",
    where: Any = None,
    confidence: float = 0.95,
    bootstrap: int = 500,
    permutations: int = 500,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity in standard deviations of the scores, :math:`\widehat\Delta / \mathrm{sd}(f)`.

    It does not change when the scores are shifted or scaled: :func:`gdp` falls when scores merely shrink, this does
    not. In the population, and without smoothing, it is at most one. The standard deviation divides by n, is of the
    rows that `where` keeps, and is resampled with the rest.

    Parameters
    ----------
    scores, s, bandwidth, weighting, where, confidence, bootstrap, permutations, random_state
        As in :func:`gdp`. Of several columns each is divided by its own standard deviation.

    Examples
    --------
    Scores that are a function of two equally large groups: the gap is one standard deviation.

    >>> round(float(standardized_gdp([0.2, 0.2, 0.6, 0.6], [0.0, 0.0, 1.0, 1.0])), 4)
    1.0
    """
    return _measured(
        scores,
        s,
        bandwidth,
        weighting,
        where,
        confidence,
        bootstrap,
        permutations,
        random_state,
        spread,
        "standard deviation of the score",
    )


def gdp_by_attribute(
    scores: Any,
    s: Any,
    *,
    bandwidth: float | None = None,
    weighting: Weighting = "population",
    where: Any = None,
    confidence: float = 0.95,
    bootstrap: int = 500,
    permutations: int = 500,
    random_state: _arrays.RandomState = 0,
) -> dict[str, ParityResult]:
    """:func:`gdp` of each column of s by itself, under the column's name (or s, or s_1, s_2, ...).

    Dependence on several attributes jointly, beyond each alone, is not in these numbers.

    Parameters
    ----------
    scores, s, bandwidth, weighting, where, confidence, bootstrap, permutations, random_state
        As in :func:`gdp`; s may have several columns. A bandwidth is used for all of them.

    Examples
    --------
    >>> by = gdp_by_attribute([0.0, 0.0, 1.0, 1.0], [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    >>> {name: round(float(result), 4) for name, result in by.items()}
    {'s_1': 0.5, 's_2': 0.0}
    """
    columns = _arrays.matrix(s, "s")
    names = _arrays.column_names(s, "s", columns.shape[1])
    if len(set(names)) < len(names):
        raise ValueError(f"the columns of s are named {names}; give each its own name.")
    seed = _arrays.seed_of(random_state)
    return {
        name: gdp(
            scores,
            columns[:, i],
            bandwidth=bandwidth,
            weighting=weighting,
            where=where,
            confidence=confidence,
            bootstrap=bootstrap,
            permutations=permutations,
            random_state=seed,
        )
        for i, name in enumerate(names)
    }


def _measured(
    scores: Any,
    s: Any,
    bandwidth: float | None,
    weighting: Weighting,
    where: Any,
    confidence: float,
    bootstrap: int,
    permutations: int,
    random_state: _arrays.RandomState,
    scale: Scale,
    unit: str,
) -> ParityResult:
    check_weighting(weighting)
    check_resampling(confidence, bootstrap, permutations)
    data = sample(scores, s, bandwidth, where)
    if scale is spread and bool((data.scores == data.scores[0]).all(axis=0).any()):
        raise ValueError("scores are constant: their standard deviation is 0. Use gdp, whose value is then 0.")
    seed = _arrays.seed_of(random_state)
    gaps = Gaps(data, weighting, scale)
    values = gaps.values
    column = int(values.argmax())
    expected, pvalue = gaps.under_permutation(np.random.default_rng([seed, 0]), permutations)
    return ParityResult(
        value=float(values[column]),
        interval=gaps.interval(np.random.default_rng([seed, 1]), bootstrap, confidence),
        expected_under_independence=expected,
        pvalue=pvalue,
        per_column=tuple(float(v) for v in values),
        column=column,
        n=len(data.s),
        bandwidth=data.bandwidth,
        weighting=weighting,
        confidence=confidence,
        bootstrap=bootstrap,
        permutations=permutations,
        seed=seed,
        unit=unit,
    )
