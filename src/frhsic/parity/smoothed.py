"""The gap of the kernel-smoothed mean score at a given bandwidth, with an interval and its value under independence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from frhsic import _arrays
from frhsic.parity._resampling import Gaps, Resampling, scored_rows
from frhsic.parity.smoothing import Weighting, check_weighting


@dataclass(frozen=True)
class SmoothedGap:
    """A gap in smoothed mean scores, with its uncertainty and settings. ``float(result)`` is its value.

    Attributes
    ----------
    value
        The gap; for several columns of scores, the largest.
    interval
        Confidence interval for the gap in the population *at this bandwidth*; NaN without bootstrap.
    expected_under_independence
        Mean of the value over permutations of s; NaN without them. Compare the value with this number, not with zero:
        it is a mean of absolute values, so it is positive even if scores and s are independent.
    pvalue
        Share of permutations with a value at least as large, the sample itself included; NaN without permutations.
    per_column
        The gap of each column of scores.
    column
        Number of the column with the largest gap.
    n, bandwidth, weighting, confidence, bootstrap, permutations, seed
        Settings of the computation; the seed reproduces it.
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

    def __float__(self) -> float:
        return self.value


def smoothed_gdp(
    scores: Any,
    s: Any,
    *,
    bandwidth: float,
    weighting: Weighting = "population",
    where: Any = None,
    confidence: float = 0.95,
    bootstrap: int = 500,
    permutations: int = 500,
    random_state: _arrays.RandomState = 0,
) -> SmoothedGap:
    r"""Mean distance of the kernel-smoothed mean score from the mean score.

    .. math:: \widehat\Delta = \sum_g v_g \bigl| \hat m(s_g) - \bar f \bigr|, \qquad
        \hat m(s) = \frac{\sum_j f_j \exp(-(s - s_j)^2 / 2h^2)}{\sum_j \exp(-(s - s_j)^2 / 2h^2)},

    Zero in the population when the mean score does not depend on s. It differs from :func:`gdp` by the bias of
    smoothing, which is large where s is skewed or has outliers and the bandwidth is a share of its range. The penalty
    Reg-GDP minimizes it, and the published numbers report it with uniform weighting. On a sample it is positive:
    compare it with `expected_under_independence` of the result.

    Parameters
    ----------
    scores
        Output of the predictor, one row per observation: probabilities, logits, decisions or predictions. With several
        columns (classes) the value is the largest gap.
    s
        One sensitive attribute.
    bandwidth
        The h of the smoother, in units of s. The published numbers use a tenth of the range of the training rows.
    weighting
        ``"population"``: average over the values of s in the sample. ``"uniform"``, as in the published
        numbers: average over 50 equispaced points of its range, so that sparse regions count as much as dense ones.
    where
        Rows to keep: a boolean mask, or a 0/1 target for Equal Opportunity.
    confidence
        Confidence of the interval.
    bootstrap
        Number of resamples for the interval; 0 for none.
    permutations
        Number of permutations of s for the value expected under independence and the p-value; 0 for none.
    random_state
        Seed of the resamples.

    Notes
    -----
    More than 1,024 distinct values of s are binned linearly onto nodes a 64th of the bandwidth apart, which changes
    each kernel weight by at most 3e-5; memory, and the time of each resample, are O(n). If that needs more than 4,096
    nodes, because the bandwidth is below a 64th of the range, the nodes lie farther apart, up to a quarter of the
    bandwidth (0.8 % of a weight); a still smaller bandwidth raises an error.

    The gap is not differentiable where the conditional mean equals the mean, so percentiles of the bootstrap do not
    cover. The interval uses the directional derivative: where the gap at a point is within :math:`\sqrt{\log n}`
    standard errors of zero, the absolute value of its noise enters (Fang and Santos, 2019). It is conservative near
    independence. With several columns the error probability is divided among them (Bonferroni). The interval is for
    the smoothed gap and does not include the bias of smoothing, :math:`O(h^2)`.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its equation of GDP. Fang and
    Santos (2019), *Inference on directionally differentiable functions*.

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6, one row in four in the second: 0.75 * 0.1 + 0.25 * 0.3.

    >>> result = smoothed_gdp([0.1, 0.2, 0.3, 0.6], [0.0, 0.0, 0.0, 1.0], bandwidth=0.1)
    >>> round(float(result), 4)
    0.15
    """
    check_weighting(weighting)
    resampling = Resampling(confidence, bootstrap, permutations, random_state)
    data = scored_rows(scores, s, bandwidth, where)
    seed = _arrays.seed_of(random_state)
    gaps = Gaps(data, weighting)
    column = int(gaps.values.argmax())
    expected, pvalue = gaps.under_permutation(np.random.default_rng([seed, 0]), resampling.permutations)
    return SmoothedGap(
        value=float(gaps.values[column]),
        interval=gaps.interval(np.random.default_rng([seed, 1]), resampling.bootstrap, resampling.confidence),
        expected_under_independence=expected,
        pvalue=pvalue,
        per_column=tuple(float(v) for v in gaps.values),
        column=column,
        n=len(data.s),
        bandwidth=bandwidth,
        weighting=weighting,
        confidence=confidence,
        bootstrap=bootstrap,
        permutations=permutations,
        seed=seed,
    )
