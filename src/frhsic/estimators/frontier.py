"""The trade-offs of one fit, measured out of fold, and the choice of a trade-off that meets a
limit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from frhsic._pictures import card, tradeoff_svg
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.formatting import rows_needed_phrase
from frhsic.parity import ParityResult
from frhsic.parity.column import GapOptions
from frhsic.parity.gap import (
    GAP_RESAMPLES,
    gap_of_rows,
    gaps_by_column,
    independence_test,
    measured_gap,
)
from frhsic.parity.limits import (
    Limit,
    LimitLike,
    limits_by_attribute,
    measure_name,
    parse_limits,
    rows_to_settle,
)
from frhsic.parity.rows import check_rows

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

Aim = Literal["score", "rank", "decision"]
Condition = Literal["positive", "both"]

# The gap that is limited for each aim.
AIM_MEASURES = {"score": "gdp", "rank": "rank_gap", "decision": "decision_gdp"}

# Resamples for the interval of each gap (a few are enough, since they only show how much uncertain
# signs add to the variance), for each of the nine decisions of a rank gap, and for the p-value of
# the unconstrained gap.
RESAMPLES = 49
RANK_RESAMPLES = 16
TEST_RESAMPLES = 199

# Gaps that differ by less are treated as equal; among these, the upper end of the interval counts
# with this weight relative to the estimate.
TIE = 1e-6

# Share of the path at which the second search for a limit starts; the target there is about a fifth
# of the gap. With few distinct rows, the strictest trade-offs can have larger gaps than less strict
# ones, and the first search then stops immediately (benchmarks/promise.py).
SECOND_START = 0.75

# Level of the test for an unconstrained gap of 0.
DISTINCT = 0.05


class UnmetLimitWarning(UserWarning):
    """No trade-off meets the limit, so the estimator uses the closest trade-off.

    Examples
    --------
    To raise an error instead, change the warning filter.

    >>> import warnings
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic import ParityRegressor
    >>> age = np.random.default_rng(0).uniform(20, 60, size=200)
    >>> model = ParityRegressor(LinearRegression(), limit=1e-6, random_state=0)
    >>> model = model.set_params(attribute_estimator=LinearRegression())
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", UnmetLimitWarning)
    ...     model.fit(age[:, None], age, sensitive_features=age)
    Traceback (most recent call last):
    frhsic.estimators.frontier.UnmetLimitWarning: The gap by sensitive goes from ...
    """


class IndistinctGapWarning(UserWarning):
    """The unconstrained gap is not significant, so a limit given as a share of this gap is not
    applied.

    Examples
    --------
    A share of a gap that may be zero is not a useful limit. Pass a number instead.

    >>> import warnings
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic import ParityRegressor
    >>> x, age = np.random.default_rng(1).uniform(size=(2, 200))
    >>> line = LinearRegression()
    >>> model = ParityRegressor(line, attribute_estimator=line, limit="50%", random_state=0)
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model = model.fit(x[:, None], x, sensitive_features=age)
    >>> caught[0].category.__name__, model.choice_.indistinct
    ('IndistinctGapWarning', ('sensitive',))
    """


def limited_measure(aim: str, condition: str | None) -> str:
    """Return the name, as used in limits, of the gap that an aim and a condition refer to.

    Examples
    --------
    >>> limited_measure("rank", None), limited_measure("score", "positive")
    ('rank_gap', 'eo')
    """
    if condition == "both":
        return "equalized_odds"
    return measure_name(AIM_MEASURES.get(aim, "gdp"), "all" if condition is None else "favourable")


def aimed_gap(
    aim: Aim,
    scores: Any,
    s: Any,
    weights: Any,
    groups: Any,
    *,
    strata: np.ndarray | None = None,
    confidence: float = 0.95,
    resamples: int = GAP_RESAMPLES,
    random_state: int = 0,
) -> ParityResult:
    """Return the gap for an aim, which is the GDP of scores or 0/1 decisions, or the rank gap. If
    strata are given, the gap is measured within strata.
    """
    rows = check_rows(np.asarray(scores, dtype=np.float64), s, None, weights, groups, strata)
    options = GapOptions(confidence, resamples, random_state)
    return gap_of_rows(rows, options, ranks=aim == "rank")


@dataclass(frozen=True)
class Gap:
    """An estimated gap with its interval."""

    value: float
    low: float
    high: float

    def maximum(self, other: Gap) -> Gap:
        """Return the elementwise maximum of two gaps in value, low and high."""
        return Gap(*map(max, astuple(self), astuple(other)))

    def __str__(self) -> str:
        return f"{self.value:.3g} ({self.low:.3g} to {self.high:.3g})"


@dataclass(frozen=True, eq=False)
class Frontier:
    """Every trade-off of one fit, from no constraint to almost no gap.

    Performance and gaps are measured out of fold: each row is scored by models and coefficients
    that were fitted on the other folds. However, the folds share a few quantities that depend on
    all rows: the functions of the attributes, the units and the ridge of the coefficients, and the
    end of the path. In addition, the coefficients are fitted to predictions from models that were
    trained on the held-out fold. With custom folds, ranks and decisions are measured only on the
    first fold. :meth:`choose` compares these gaps with a limit. The lower ends of their intervals
    don't take into account the test for a gap of zero. `benchmarks/promise.py` measures the
    combined effect: among limits met by the upper end of a 95 % interval, the population gap was
    larger than the limit for 16 of 1,116 (scores), 16 of 1,084 (ranks) and 46 of 1,800 (decisions),
    and at most 13 of 200 for one distribution and number of rows.

    Attributes
    ----------
    aim : str
        The gap that is constrained: "score", "rank", "decision" or, for an encoder, "heads".
    measure : str
        Name of this gap, as used in limits.
    performance : dict of str to ndarray
        For each measure, one value per trade-off. Scores have "log_loss" or "squared_error", with a
        standard error that ignores groups. Classifiers also have "accuracy" and, for two classes,
        "auc" and "balanced_accuracy". An encoder has the measures of its targets.
    gaps : dict of str to tuple of Gap
        For each attribute, the gap at each trade-off.
    pvalues : dict of str to float
        For each attribute, the p-value of the hypothesis that the unconstrained predictor has no
        gap. With two conditions, this is the smaller of two p-values without a correction, because
        a limit given as a share is applied if either gap is significant.
    confidence : float
        Confidence level of the intervals.
    base_rate : float or None
        Mean of y, of which a limit can be a share.
    rows : int
        Number of rows.
    resolution : float or None
        For an encoder, the share of the rows in a window of the attribute. The bound does not cover
        heads that vary within a window.
    controls : str or None
        Names of the controls, such as "education and sex". With controls, gaps are measured among
        people with the same values of the controls.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=200)
    >>> X = np.column_stack([age, rng.normal(size=200)]) + rng.normal(size=(200, 2))
    >>> y = X[:, 0] / 10 + X[:, 1]
    >>> line = LinearRegression()
    >>> model = ParityRegressor(line, attribute_estimator=line, random_state=0)
    >>> frontier = model.fit(X, y, sensitive_features=age).frontier_
    >>> table = frontier.to_frame()  # a row for each trade-off
    >>> bool(table["gap_sensitive"].iloc[-1] < table["gap_sensitive"].iloc[0] / 2)
    True
    >>> bool(table["squared_error"].is_monotonic_increasing)
    True
    """

    aim: str
    measure: str
    performance: dict[str, np.ndarray]
    gaps: dict[str, tuple[Gap, ...]]
    pvalues: dict[str, float]
    confidence: float
    base_rate: float | None
    rows: int
    resolution: float | None = None
    controls: str | None = None

    @property
    def _yardstick(self) -> str:
        """Name of the performance measure that is reported for the aim."""
        name = {"rank": "auc", "decision": "accuracy"}.get(self.aim, "")
        return name if name in self.performance else next(iter(self.performance))

    def __repr__(self) -> str:
        values = self.performance[self._yardstick]
        gaps = [
            f"gap by {name} {every[0].value:.3g} to {every[-1].value:.3g}"
            for name, every in self.gaps.items()
        ]
        size = f"{self._yardstick} {values[0]:.3g} to {values[-1]:.3g}"
        among = "" if self.controls is None else f" among people with the same {self.controls}"
        return f"<Frontier of {len(values)} trade-offs{among}: {', '.join([*gaps, size])}>"

    def _repr_html_(self) -> str:
        name, gaps = max(self.gaps.items(), key=lambda item: item[1][0].value)
        points = [*zip((gap.value for gap in gaps), self.performance[self._yardstick].tolist())]
        names = f"gap by {name}", self._yardstick.replace("_", " ")
        return card([repr(self)[1:-1]], tradeoff_svg(points, names))

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row for each trade-off."""
        import pandas as pd

        ends = {"": "value", "_low": "low", "_high": "high"}
        gaps = {
            f"gap_{name}{end}": [getattr(gap, field) for gap in gaps]
            for name, gaps in self.gaps.items()
            for end, field in ends.items()
        }
        return pd.DataFrame({**self.performance, **gaps})

    def plot(self, ax: Axes | None = None) -> Axes:
        """Plot performance against the gap for each attribute. Performance is the AUC for the aim
        "rank", the accuracy for "decision", and otherwise the loss.
        """
        import matplotlib.pyplot as plt

        ax = plt.gca() if ax is None else ax
        name = self._yardstick
        for attribute, gaps in self.gaps.items():
            value = np.array([gap.value for gap in gaps])
            reach = np.array([[gap.value - gap.low, gap.high - gap.value] for gap in gaps]).T
            ax.errorbar(
                value, self.performance[name], xerr=reach, marker="o", capsize=2, label=attribute
            )
        ax.set_xlabel({"rank": "rank gap", "decision": "GDP of decisions"}.get(self.aim, "GDP"))
        ax.set_ylabel(name.replace("_", " "))
        ax.legend()
        return ax

    def limits(self, limit: LimitLike) -> dict[str, tuple[Limit, ...]]:
        """Return the limits for each attribute, given the user's limit."""
        return limits_by_attribute(parse_limits(limit, [self.measure]), [*self.gaps])

    def choose(self, limit: LimitLike, by_upper_end: bool) -> Choice:
        """Return the loosest trade-off that meets a limit or, if there is none, the closest
        trade-off.

        A number, or a share of the base rate, is compared with the upper end of the interval if
        `by_upper_end` is true. Two searches, which start from the strictest trade-off and from
        `SECOND_START`, move to looser trade-offs until an upper end exceeds the limit. A choice is
        therefore wrong only if, in one of the searches, the upper end is too low at the first
        trade-off whose gap exceeds the limit. For a two-sided interval, this happens half as often
        as `confidence` allows, which leaves room for two searches. The intervals of an encoder have
        one-sided ends, so its second search is skipped. A share of the gap, or 0, is compared with
        the estimate. If no upper end meets a numeric limit, trade-offs whose estimates meet the
        limit are preferred, even to a constant predictor, which meets every limit. A limit of 0
        selects the trade-off with the smallest ratio of the gap to the unconstrained gap; with
        several attributes, the trade-off whose largest ratio is smallest.
        """
        limits = self.limits(limit)
        indistinct = tuple(
            name
            for name, each in limits.items()
            if self.pvalues[name] > DISTINCT and any(parsed.base == "gap" for parsed in each)
        )
        applied = [
            (name, parsed)
            for name, each in limits.items()
            for parsed in each
            if parsed.base != "gap" or name not in indistinct
        ]
        estimates = self._excess(applied, "value")
        excess = self._excess(applied, "high") if by_upper_end else estimates
        bounds = [pair for pair in applied if by_upper_end and not pair[1].is_aim]
        keeps = (excess <= 0) & self._reached(self._excess(bounds, "high") > 0)
        position, met = _best_place(keeps, estimates <= 0, excess, self._constant)
        rows = None
        if not met and estimates[position] <= 0:
            rows = max(self._rows_to_settle(position, name, one) for name, one in applied)
        return Choice(
            limit,
            position,
            met,
            {name: every[position] for name, every in self.gaps.items()},
            {name: every[0] for name, every in self.gaps.items()},
            indistinct,
            rows,
            self.resolution,
            self.controls,
        )

    def _reached(self, breaks: np.ndarray) -> np.ndarray:
        """Return a mask of the trade-offs that the searches reach, given a mask of those that
        exceed a limit.
        """
        strictest = len(breaks) - 1
        starts = [strictest]
        if self.aim != "heads":
            starts.append(round(SECOND_START * strictest))
        reached = np.full(len(breaks), False)
        for start in starts:
            failures = np.cumsum(breaks[start::-1])[::-1]
            reached[: start + 1] |= failures == 0
        return reached

    def _bound(self, name: str, limit: Limit) -> float:
        return limit.bound(self.gaps[name][0].value, self.base_rate)

    @property
    def _constant(self) -> np.ndarray:
        """Mask of the trade-offs, except the first, that make the same prediction for everybody."""
        ends = [[gap.high for gap in every] for every in self.gaps.values()]
        highest = np.max(ends, axis=0) if ends else np.full(1, np.inf)
        return np.asarray((highest < TIE) & (np.arange(len(highest)) > 0))

    def _excess(self, limits: Sequence[tuple[str, Limit]], end: str) -> np.ndarray:
        """Return, for each trade-off, the largest amount by which a gap exceeds its limit, relative
        to the unconstrained gap. `end` is the name of the field of :class:`Gap` that is compared
        with a numeric limit. With limits of 0, the ratio of the gap to the unconstrained gap is
        compared with the smallest such ratio of all trade-offs, taking the largest ratio if there
        are several attributes.
        """
        excess = [np.full(len(self._constant), -np.inf)]
        shares = []
        for name, limit in limits:
            gaps = self.gaps[name]
            whole = max(gaps[0].value, 1e-12)
            measured = np.array([getattr(gap, "value" if limit.is_aim else end) for gap in gaps])
            if limit.value == 0:
                # ties are broken by the smaller upper end, then by the stricter trade-off
                ends = np.array([gap.high for gap in gaps]) - TIE * np.arange(len(gaps))
                shares.append((measured + TIE * ends) / whole)
            else:
                excess.append((measured - self._bound(name, limit)) / whole)
        if shares:
            largest = np.max(shares, axis=0)
            excess.append(largest - largest.min())
        return np.asarray(np.max(excess, axis=0))

    def _rows_to_settle(self, place: int, name: str, limit: Limit) -> int:
        """Return how many rows would be needed to show that a trade-off meets a numeric limit, or 0
        if the limit is a target for the estimate.
        """
        if limit.is_aim:
            return 0
        gap = self.gaps[name][place]
        return rows_to_settle(self.rows, gap.value, gap.high, self._bound(name, limit)) or 0


@dataclass(frozen=True)
class Choice:
    """The chosen trade-off.

    Attributes
    ----------
    limit
        The limit, as it was passed.
    position : int
        Position of the row in ``frontier_.to_frame()``; 0 is unconstrained.
    met : bool
        Whether the limit is met. A number, or a share of the base rate, is met if the upper end of
        the gap's interval is within the limit, or the estimate with ``confidence=None``. A share of
        the gap is met if the estimate is within the limit. A limit of 0 is met by the trade-off
        that :meth:`Frontier.choose` selects for it. A share that is not applied (see `indistinct`)
        counts as met.
    gaps : dict of str to Gap
        For each attribute, the gap at this trade-off.
    unconstrained : dict of str to Gap
        For each attribute, the unconstrained gap.
    indistinct : tuple of str
        Attributes with an unconstrained gap that is not significant, so that a limit given as a
        share of this gap is not applied. For several classes, the largest gap of a class is
        compared with the largest gap expected by chance. The intervals of these attributes are
        printed with a lower end of 0.
    rows_needed : int or None
        If only the estimate meets the limit, the approximate number of rows needed to show whether
        the gap meets it, too. The width of an interval is assumed to be proportional to one over
        the square root of the number of rows.
    resolution : float or None
        For an encoder, the share of the rows in a window of the attribute.
    controls : str or None
        Names of the controls. People are compared only with people who have the same values of the
        controls.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=200)
    >>> X = np.column_stack([age, rng.normal(size=200)]) + rng.normal(size=(200, 2))
    >>> line = LinearRegression()
    >>> model = ParityRegressor(line, attribute_estimator=line, limit="50%", random_state=0)
    >>> model = model.fit(X, X[:, 0] / 10 + X[:, 1], sensitive_features=age)
    >>> print(model.choice_)
    The gap by sensitive goes from 0.96... to 0.47...
    >>> model.choice_.met
    True
    """

    limit: Any
    position: int
    met: bool
    gaps: dict[str, Gap]
    unconstrained: dict[str, Gap]
    indistinct: tuple[str, ...]
    rows_needed: int | None = None
    resolution: float | None = None
    controls: str | None = None

    def __repr__(self) -> str:
        return f"<Choice at {self.position}: {self}>"

    def _repr_html_(self) -> str:
        return card([str(self)])

    def __str__(self) -> str:
        among = "" if self.controls is None else f" among people with the same {self.controls}"
        parts = []
        for name, gap in self.gaps.items():
            was = self.unconstrained[name]
            if name in self.indistinct:
                gap = replace(gap, low=0.0)
                was = replace(was, low=0.0)
            moved = f"goes from {was} to {gap}" if gap != was else f"stays at {gap}"
            parts.append(f"the gap by {name}{among} {moved}")
        text = "; ".join(parts) or "no gap is limited"
        if self.resolution is not None:
            text += f", at a resolution of {self.resolution:.0%} of the rows"
        if self.indistinct:
            text += f". The unconstrained gap by {', '.join(self.indistinct)} is not significant"
        if self.rows_needed is not None:
            text += (
                f". The limit {self.limit!r} is probably met, but not certainly;"
                f" {rows_needed_phrase(self.rows_needed)}"
            )
        elif not self.met:
            text += f". The limit {self.limit!r} is not met: this is the closest trade-off"
        return f"{text[0].upper()}{text[1:]}."


def measure_path(
    aim: Aim,
    path: np.ndarray,
    sample: LabelledRows,
    constraints: Sequence[Constraint],
    confidence: float,
) -> tuple[dict[str, tuple[Gap, ...]], dict[str, float]]:
    """Return the gaps at every trade-off, keyed by attribute, and the p-values of the first
    trade-off. With two conditions, the larger value, low and high are returned.

    The scores of rows at each trade-off, from the predictor of each row's fold, are given as
    `path`, (n, G), or (n, G, C) for several classes.
    """
    ranks = aim == "rank"
    gaps: dict[str, tuple[Gap, ...]] = {}
    pvalues: dict[str, float] = {}
    for one in constraints:
        name = sample.names[one.attribute]
        kept = one.rows(sample.s, sample.y)
        s = sample.s[kept, one.attribute]
        weights = sample.row_weights(kept)
        groups = sample.row_groups(kept)
        design = s, None, weights, groups, sample.row_strata(kept)
        if path.ndim == 2:
            found = gaps_by_column(
                path[kept],
                s,
                ranks=ranks,
                sample_weight=weights,
                groups=groups,
                strata=design[-1],
                confidence=confidence,
                resamples=RANK_RESAMPLES if ranks else RESAMPLES,
            )
        else:
            options = GapOptions(confidence, RESAMPLES, seed=0, test=False)
            classes = (check_rows(path[kept, at], *design) for at in range(path.shape[1]))
            found = [gap_of_rows(each, options) for each in classes]
        each = [Gap(gap.value, *gap.interval) for gap in found]
        gaps[name] = tuple(map(Gap.maximum, gaps.get(name, each), each))
        free = measured_gap(check_rows(path[kept, 0], *design), ranks=ranks)
        (pvalue,), _ = independence_test(free, GapOptions(confidence, TEST_RESAMPLES, seed=0))
        pvalues[name] = min(pvalues.get(name, 1.0), pvalue)
    return gaps, pvalues


def _best_place(
    keeps: np.ndarray, likely: np.ndarray, excess: np.ndarray, constant: np.ndarray
) -> tuple[int, bool]:
    """Return the position of the first trade-off that meets a limit, and whether there is one. A
    constant is returned only if no other trade-off is likely to meet the limit. If no trade-off
    meets the limit, return the one with the smallest excess, if possible among those that are
    likely to meet it.

    Examples
    --------
    >>> excess = np.array([3.0, -0.1, 1.0, -0.5])
    >>> none = np.full(4, False)
    >>> last = np.arange(4) == 3
    >>> _best_place(excess <= 0, none, excess, none), _best_place(last, none, excess, last)
    ((1, True), (3, True))
    >>> _best_place(last, excess > 0, excess, last), _best_place(none, none, excess, last)
    ((2, False), (3, False))
    """
    likely = likely & ~constant
    for kept in (keeps & ~constant, keeps & ~likely.any()):
        if kept.any():
            return int(np.argmax(kept)), True
    return int(np.argmin(np.where(likely | ~likely.any(), excess, np.inf))), False
