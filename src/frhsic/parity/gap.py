r"""Generalized demographic parity (GDP) and the rank gap, with an interval and a test of no gap.

Steps from rows to a gap, with the shapes of intermediate results:

===================================  ==========================  ================================
:func:`.rows.check_rows`             scores, s, weights          (rows, columns), (rows,), (rows,)
:meth:`.sums.Cells.score_sums`       sums over cells             (4, 5, cells), each column
:meth:`.sums.ScoreSums.group_sums`   sums over nodes             (4, 5, nodes), each column
:class:`.local_means.Windows`        who is averaged with whom   (nodes, nodes)
:class:`.local_means.LocalMeans`     means, their variances      (nodes,), (nodes,)
                                     draws of their noise        (nodes, draws)
:class:`.column.Signs`               soft signs, gap, slopes     (nodes,), one number, (nodes,)
:meth:`.column.ColumnGap.estimates`  two `GapEstimate`           numbers, of each end and column
:func:`.interval.corrected_ends`     two `Ends`                  numbers, after each correction
:meth:`.column.ColumnGap.null`       draws without a gap         (draws,), each column
:func:`largest_gaps`                 `ParityResult`              the largest over the columns
===================================  ==========================  ================================

A node is a value of s, or several neighboring values if there are many. :class:`.ranks.RankGap` has
a column of decisions for each distinct decile, nine at most, and represents the mean gap over the
deciles. ``docs/intervals.md`` derives each step.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic import _arrays
from frhsic._pictures import card
from frhsic.formatting import chance, figure, format_interval, percent
from frhsic.intervals import agreed_low
from frhsic.parity.column import ColumnGap, GapOptions, column_gap
from frhsic.parity.interval import corrected_ends
from frhsic.parity.ranks import RankGap
from frhsic.parity.rows import Array, Integers, ScoreRows, check_rows, one_column
from frhsic.parity.sums import Cells

if TYPE_CHECKING:
    from frhsic.parity.strata import Strata

GAP_RESAMPLES = 999

NUMBERS_AT_ONCE = 4_000_000
"""Approximate number of entries in an array for a batch of columns; it limits memory."""


@dataclass(frozen=True)
class ParityResult:
    r"""A gap in mean scores, with its uncertainty and settings. ``float(result)`` is the value.
    With ``resamples=0``, the fields for the uncertainty are NaN.

    Attributes
    ----------
    value
        The gap; for several columns of scores, the largest.
    interval
        Confidence interval for the gap in the population.
    standard_error
        Standard error of the value.
    expected_under_independence
        Expected value if the mean score did not depend on s.
    pvalue
        p-value for the hypothesis that the mean score does not depend on s; the spread of the
        scores may depend on s.
    per_column
        The gap of each column of scores.
    n
        Number of rows.
    resolution
        Share of the people whose scores are averaged to estimate the mean score at a value of s;
        the value and the interval refer to such means. 0 if s has few values, which are then
        compared directly.
    confidence
        Confidence of the interval.
    seed
        Seed that reproduces the result.
    controls
        The strata, for a gap among people with the same controls.

    Examples
    --------
    >>> age = np.repeat([20.0, 60.0], 50)
    >>> result = gdp(age / 100, age)
    >>> round(float(result), 3), result.n, result.interval[0] > 0
    (0.2, 100, True)
    """

    value: float
    interval: tuple[float, float]
    standard_error: float
    expected_under_independence: float
    pvalue: float
    per_column: tuple[float, ...]
    n: int
    resolution: float
    confidence: float
    seed: int
    controls: Strata | None = None

    def __float__(self) -> float:
        return self.value

    def __repr__(self) -> str:
        ends = ", ".join(f"{end:.4g}" for end in self.interval)
        among = "" if self.controls is None else f", equal={self.controls.label!r}"
        return (
            f"ParityResult(value={self.value:.4g}, interval=({ends}), pvalue={self.pvalue:.3g},"
            f" n={self.n}, resolution={self.resolution:.3g}{among})"
        )

    def _repr_html_(self) -> str:
        over = f", over the nearest {percent(self.resolution)} of people" if self.resolution else ""
        ends = f"{percent(self.confidence)} confidence, {self.n:,} rows{over}"
        among = (
            "" if self.controls is None else f" among people with the same {self.controls.label}"
        )
        size = f"gap{among} {figure(self.value)}"
        if self.pvalue == self.pvalue:  # not NaN, so there were draws
            gap = format_interval(self.value, *self.interval)
            size = f"gap{among} {gap}, p {chance(self.pvalue)}"
        return card([size, ends])


def gdp(
    scores: Any,
    s: Any,
    *,
    control_features: Any = None,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = GAP_RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity: the mean distance of the conditional mean score from the
    overall mean.

    .. math:: \Delta = \mathbb E_S \bigl| \mathbb E[f | S] - \mathbb E f \bigr|
        = \mathbb E \bigl[ \operatorname{sign}(\mathbb E[f | S] - \mathbb E f) \, (f - \mathbb E f)
        \bigr]

    Zero in the population when the mean score does not depend on s, even if other properties of the
    scores do. Like its definition, the estimate does not change under increasing maps of s, such as
    the logarithm. The gap scales with the scores; use :func:`standardized_gdp` to compare models
    whose scores differ in scale.

    Parameters
    ----------
    scores
        Output of the predictor, one row per observation: probabilities, logits, decisions or
        predictions. With several columns (classes), the value is the largest gap.
    s
        One sensitive attribute.
    control_features
        One or several columns W, such as the occupation: people are compared only with people who
        have the same W. The gap is :math:`\sum_w P(w) E[|g_w(S)| \mid w]` with :math:`g_w(s) = E[f
        | S = s, w] - E[f | w]`. Several columns are crossed. Numbers with more than five values are
        binned into fifths; strata with fewer than 50 rows, and rows with missing values, are merged
        into "other". The attribute `controls` of the result describes the strata.
    where
        Rows to keep: a boolean mask, or a 0/1 target for equal opportunity.
    sample_weight
        Weights of the rows, such as those of a survey.
    groups
        Labels of rows that belong together, such as several rows of one person. Standard errors
        and the test count the rows of such a cluster as one.
    resolution
        Share of the people whose scores are averaged to estimate the mean score at a value of s,
        between 0 and 1. None means 5 % at 1,000 (effective) rows or clusters, 3.4 % at 10,000, and
        23 % at 100. It does not depend on the scores.
    confidence
        Confidence of the interval.
    resamples
        Number of random draws of the noise, used for the interval and the p-value; 0 computes only
        the value.
    random_state
        Seed of the draws. The value does not depend on it.

    Notes
    -----
    The mean score at s is averaged over the people whose rank along s is within half of the
    resolution, and the gap is computed from these means, so faster oscillations are averaged out. A
    value of s shared by more people is compared on its own. If `resolution` is None and s has few
    values, all values are compared on their own: at most 20 values, or one for each such share if
    that is more (29 at 10,000 rows, never more than 64), with five rows or more on average. More
    than 256 distinct values are replaced by 256 ranges of equal weight.

    The sign is estimated by the soft sign :math:`g = 2\Phi(2x) - 1`, where x is the mean over the
    people nearby, minus the overall mean, in standard errors. That mean covers up to four times as
    many people as the local mean, provided that such means differ from the local means by no more
    than noise (James and Stein). Each local mean m adds :math:`g m` minus the covariance of g and m
    due to noise. The expectation of this term is :math:`m\,E g` (Stein's identity): zero if the
    mean does not depend on s, and never more than the gap. The upper end is the higher of two: one
    with these signs, one with the signs of the local means.

    The interval is Student's t interval, with few degrees of freedom if a few rows dominate, and
    with corrections (`frhsic.parity.interval.CORRECTIONS`): skewness (Hall, 1992); the loss due to
    uncertain signs; and, if one of two decisions is rare, the largest gap :math:`2\mu(1 - \mu)`
    that its rate μ allows (Clopper and Pearson, 1934). With several columns, the error probability
    is divided among the columns (Bonferroni).

    The p-value is based on random draws whose mean does not vary with s. Their sums at each value
    of s have the spread and skewness of the scores nearby; with clusters, the sums of each cluster
    are multiplied by random numbers. An exponential tail is fitted beyond the draws, so that
    arbitrarily small p-values are possible. The lower end of the interval is above 0 if and only if
    the p-value is at most one minus the confidence.

    References
    ----------
    Jiang et al. (2022), *Generalized demographic parity for group fairness*; the paper, its
    equation of GDP. Hall (1992), *On the removal of skewness by transformation*.

    Examples
    --------
    Two groups with mean scores 0.2 and 0.6; one row in four is in the second. The gap is 0.75 * 0.1
    + 0.25 * 0.3.

    >>> result = gdp([0.1, 0.2, 0.3, 0.6] * 50, [0.0, 0.0, 0.0, 1.0] * 50)
    >>> round(float(result), 4)
    0.15

    Nurses have higher scores than cooks and are older; among people with the same occupation, age
    does not matter.

    >>> job = ["cook"] * 80 + ["nurse"] * 80
    >>> age = [30.0] * 60 + [50.0] * 20 + [30.0] * 20 + [50.0] * 60
    >>> score = [0.2] * 80 + [0.6] * 80
    >>> round(float(gdp(score, age)), 4), float(gdp(score, age, control_features=job))
    (0.1, 0.0)
    """
    controls = None
    strata = None
    if control_features is not None:
        from frhsic.parity.strata import Strata  # needs pandas

        _arrays.require_same_rows((scores, "scores"), (control_features, "control_features"))
        controls = Strata.fit(control_features)
        strata = controls.codes(control_features)
    rows = check_rows(scores, s, where, sample_weight, groups, strata)
    options = GapOptions(confidence, resamples, _arrays.integer_seed(random_state))
    return replace(gap_of_rows(rows, options, resolution=resolution), controls=controls)


def standardized_gdp(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    resolution: float | None = None,
    confidence: float = 0.95,
    resamples: int = GAP_RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Generalized demographic parity in standard deviations of the scores, :math:`\Delta /
    \mathrm{sd}(f)`.

    This gap does not change when the scores are shifted or scaled, whereas :func:`gdp` falls when
    the scores shrink. It is at most one. The standard deviation has the divisor n and is computed
    on the rows that `where` keeps; the standard error of the gap takes the estimation of the
    standard deviation into account (delta method).

    Parameters
    ----------
    scores, s, where, sample_weight, groups, resolution, confidence, resamples, random_state
        As in :func:`gdp`. Each column is divided by its own standard deviation.

    Examples
    --------
    Scores that are a function of two equally large groups: the gap is one standard deviation.

    >>> round(float(standardized_gdp([0.2, 0.2, 0.6, 0.6] * 25, [0.0, 0.0, 1.0, 1.0] * 25)), 4)
    1.0
    """
    rows = check_rows(scores, s, where, sample_weight, groups)
    gap = measured_gap(rows, resolution=resolution)
    assert isinstance(gap, ColumnGap)
    if (gap.sums.variance == 0).any():
        raise ValueError(
            "scores are constant, so their standard deviation is 0. Use gdp instead, whose"
            " value is 0 for constant scores."
        )
    options = GapOptions(confidence, resamples, _arrays.integer_seed(random_state))
    return largest_gap(gap.standardized_gap(), options)


def gdp_difference(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""Mean distance of the conditional mean prediction from the overall mean, :math:`E_S |E[f | S]
    - E f|`, for the attribute with the largest distance.

    Zero in the population when the mean prediction does not depend on s. Use it in scorers and
    searches; :func:`frhsic.parity.gdp` adds an interval and the value under independence.

    Parameters
    ----------
    y_true
        Ignored; present because metrics have this argument.
    y_pred
        Probabilities, decisions 0/1, or predictions. With several columns, the largest gap is
        returned.
    sensitive_features
        One or several numeric attributes.

    Examples
    --------
    >>> round(
    ...     gdp_difference(
    ...         None, [0.1, 0.2, 0.3, 0.6] * 50, sensitive_features=[0.0, 0.0, 0.0, 1.0] * 50
    ...     ),
    ...     4,
    ... )
    0.15

    A scorer for a search; lower is better:

    >>> from sklearn.metrics import make_scorer
    >>> scorer = make_scorer(
    ...     gdp_difference, greater_is_better=False, response_method="predict_proba"
    ... )
    """
    s = _arrays.matrix(sensitive_features, "sensitive_features")
    return max(float(gdp(y_pred, column, resamples=0)) for column in s.T)


def equal_opportunity_gdp(y_true: Any, y_pred: Any, *, sensitive_features: Any) -> float:
    r"""Like :func:`gdp_difference`, but among the rows with y = 1: :math:`E |E[f | S, Y=1] - E[f |
    Y=1]|`.

    Examples
    --------
    >>> s, y = [0.0, 0.0, 1.0, 1.0] * 25, [1, 1, 1, 0] * 25
    >>> round(equal_opportunity_gdp(y, [0.2, 0.2, 0.8, 0.0] * 25, sensitive_features=s), 4)
    0.2667
    """
    s = _arrays.matrix(sensitive_features, "sensitive_features")
    return max(float(gdp(y_pred, column, where=y_true, resamples=0)) for column in s.T)


def rank_gap(
    scores: Any,
    s: Any,
    *,
    where: Any = None,
    sample_weight: Any = None,
    groups: Any = None,
    confidence: float = 0.95,
    resamples: int = GAP_RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> ParityResult:
    r"""Mean generalized demographic parity of the decisions at the score's own deciles.

    .. math:: \frac19 \sum_{k=1}^9 \mathbb E_S \bigl| P(f > q_k | S) - P(f > q_k) \bigr|

    where :math:`q_k` is the k-th decile of the scores, the smallest score that at least a share
    k/10 of the rows does not exceed. Coinciding deciles are counted separately; a decile that no
    score exceeds counts as zero. Zero in the population when the score is independent of s. It
    depends only on the order of the scores, so strictly increasing maps of them, such as a logit or
    a contraction towards one half, don't change it. Use it to compare models at equal AUC.

    Parameters
    ----------
    scores
        One column.
    groups
        Labels of rows that belong together, as in :func:`gdp`.
    s, where, sample_weight, confidence, resamples, random_state
        As in :func:`gdp`. With ``resamples=0`` only the value is computed.

    Notes
    -----
    Each of the nine gaps is estimated as in :func:`gdp`; `per_column` of the result contains them.
    The standard error takes into account that deciles are estimated: moving a decile changes the
    gap by the mean sign of the rows near it. The interval is corrected as in :func:`gdp`, but not
    for rare decisions.

    Examples
    --------
    A score with one value in each of two equally large groups. Five deciles equal the lower value,
    with a gap of 0.5 each; no score exceeds the other four.

    >>> result = rank_gap([0.2] * 50 + [0.7] * 50, [0.0] * 50 + [1.0] * 50)
    >>> round(float(result), 4)
    0.2778
    """
    rows = one_column(check_rows(scores, s, where, sample_weight, groups))
    options = GapOptions(confidence, resamples, _arrays.integer_seed(random_state))
    return gap_of_rows(rows, options, ranks=True)


def gap_of_rows(
    rows: ScoreRows, options: GapOptions, *, ranks: bool = False, resolution: float | None = None
) -> ParityResult:
    """Return the result of :func:`gdp` or :func:`rank_gap` for validated rows, within strata if
    there are any.
    """
    gap = measured_gap(rows, ranks=ranks, resolution=resolution)
    if isinstance(gap, ColumnGap):
        return largest_gap(gap, options)
    per_column = tuple(np.maximum(gap.gaps, 0.0).tolist())
    return replace(largest_gap(gap, options), per_column=per_column)


def measured_gap(
    rows: ScoreRows, *, ranks: bool = False, resolution: float | None = None
) -> ColumnGap | RankGap:
    """Return the gaps of all columns of scores, with separate random numbers for each column, or
    the gap of ranks.
    """
    if ranks:
        return RankGap(rows)
    scores = np.ascontiguousarray(rows.scores.T)
    return column_gap(rows, scores, resolution, numbers=range(len(scores)))


def gaps_by_column(
    scores: Any,
    s: Any,
    *,
    ranks: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    strata: Integers | None = None,
    confidence: float = 0.95,
    resamples: int = GAP_RESAMPLES,
    random_state: _arrays.RandomState = 0,
) -> list[ParityResult]:
    """Return the result of :func:`gdp` (or :func:`rank_gap`) for each column of scores, without the
    test of no gap.

    The columns share windows and random numbers, so many columns take little more time than one.
    `strata` has the stratum of each row. `expected_under_independence` and `pvalue` are NaN, and
    the lower end is not adjusted to agree with a test.
    """
    rows = check_rows(scores, s, None, sample_weight, groups, strata)
    options = GapOptions(confidence, resamples, _arrays.integer_seed(random_state), test=False)
    cells = Cells.from_rows(rows)
    windows = None
    results = []
    columns = rows.scores.T
    nodes = len(cells.stratum_nodes if cells.strata else cells.nodes)
    size = max(len(rows.s), nodes**2)  # of scores, and of covariances of clusters
    parts = min(math.ceil(size * len(columns) / NUMBERS_AT_ONCE), len(columns))
    for part in np.array_split(columns, parts):
        if ranks:
            for column in part:
                ranked = RankGap(replace(rows, scores=column[:, None]), cells, windows)
                windows = ranked.windows
                results += largest_gaps(ranked, options)
        else:
            gap = column_gap(rows, part[:, None], None, cells, windows)
            windows = gap.windows
            results += largest_gaps(gap, options)
    return results


def largest_gap(gap: ColumnGap | RankGap, options: GapOptions) -> ParityResult:
    """Return the largest gap among the columns, with its interval and test."""
    (result,) = largest_gaps(gap, options)
    return result


def largest_gaps(gap: ColumnGap | RankGap, options: GapOptions) -> list[ParityResult]:
    """Return the largest gap along the last axis of a batch, with its interval and test;
    :func:`.intervals.agreed_low` makes the lower end consistent with the test.
    """
    values = np.atleast_2d(gap.value)
    place = np.arange(len(values)), values.argmax(axis=1)
    largest = np.maximum(values[place], 0.0).tolist()
    low, high, error, expected, pvalue = [[math.nan] * len(values)] * 5
    if options.resamples > 0:
        tail = (1 - options.confidence) / 2 / values.shape[1]
        lower, upper = gap.estimates(options)
        ends = corrected_ends(lower, tail)
        highest = np.maximum(ends.high, corrected_ends(upper, tail).high)
        low, high = (
            np.reshape(np.minimum(end / gap.scale, gap.most), values.shape).max(axis=1).tolist()
            for end in (ends.low, highest)
        )
        error = np.reshape(lower.error / gap.scale, values.shape)[place].tolist()
        if options.test:
            pvalue, expected = independence_test(gap, options)
            low = [agreed_low(*own, options.confidence) for own in zip(low, largest, pvalue)]
    numbers = zip(values, largest, low, high, error, expected, pvalue)
    return [
        ParityResult(
            value=value,
            interval=(low, high),
            standard_error=error,
            expected_under_independence=expected,
            pvalue=pvalue,
            per_column=tuple(np.maximum(columns, 0.0).tolist()),
            n=gap.n,
            resolution=gap.resolution,
            confidence=options.confidence,
            seed=options.seed,
        )
        for columns, value, low, high, error, expected, pvalue in numbers
    ]


def independence_test(
    gap: ColumnGap | RankGap, options: GapOptions
) -> tuple[list[float], list[float]]:
    """Return the p-value of the largest gap along the last axis of a batch, and the expected value
    of this gap if the mean score did not depend on s.
    """
    values = np.atleast_2d(gap.value)
    null = gap.null(options).reshape(*values.shape, -1).max(axis=1)
    slack = 100 * float(np.finfo(np.float64).eps) * gap.magnitude
    # 1 for an estimate that is not above 0
    pvalues = [
        tail_share(draws, value - slack) if value > 0 else 1.0
        for draws, value in zip(null, values.max(axis=1).tolist())
    ]
    return pvalues, np.maximum(null, 0).mean(axis=1).tolist()


def tail_share(null: Array, value: float) -> float:
    r"""Return the p-value of an estimate: the share of draws that are at least as large, counting
    the sample as one more draw.

    If fewer than ten of B draws are as large, the tail is fitted to the largest k = B/10 draws.
    Their excesses over the next smaller draw are treated as exponential, with an unknown mean that
    is estimated by :math:`\bar x`. The probability of an excess x is then :math:`(1 + x / k \bar
    x)^{-k}`, which is :math:`e^{-x / \bar x}` for many draws, and the p-value is :math:`\frac{k +
    1}{B + 1}` times this probability. Normal draws have lighter tails than an exponential
    distribution; draws of Student's t with few degrees of freedom have heavier ones.
    """
    draws = len(null)
    count = int((null >= value).sum())
    counted = (1 + count) / (1 + draws)
    k = draws // 10
    if count >= 10 or k < 5:
        return counted
    top = np.sort(null)[-k - 1 :]
    start = float(top[0])
    excess = float(top[1:].mean() - start)
    if excess <= 0 or value <= start:
        return counted
    # even if `counted` is smaller: the smaller of the two would reject about a tenth more often
    beyond: float = (k + 1) / (draws + 1) * (1 + (value - start) / (k * excess)) ** -k
    return beyond
