"""The contents of an audit: frozen dataclasses of numbers and keys, which convert to JSON and back
without loss.

:mod:`frhsic.report` turns them into text.
"""

from __future__ import annotations

import hashlib
import math
import platform
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Literal

import numpy as np

from frhsic._lazy import has_torch
from frhsic._pictures import Line, card, curve_svg
from frhsic.auditing.documents import Document
from frhsic.formatting import amount, format_exact, format_interval
from frhsic.intervals import Interval
from frhsic.parity.limits import measure_name, rows_to_settle

# version of the JSON form of an :class:`Audit`; increased if the meaning of a field changes or a
# field is removed
FORMAT = 14
PACKAGES = ("frhsic", "numpy", "scikit-learn")
# If each local mean covers a larger share of the people, any two of them share people, so a gap is
# averaged out (completely, at a share of 1).
COARSE = 0.5
SPARSE = 30  # groups of a curve, and strata, with fewer rows are unreliable
POINTS = 200  # most values at which a variable's distribution is stored

ROUNDING = 0.005  # targets, and the reductions compared with them, are rounded to whole percentages
RATIOS = ("decision_ratio",)  # numbers whose limit is a lower bound
FALLING = ("gdp", "within", "people", "curve", "root_squared_error")  # smaller is better

Setting = str | int | float | bool
Verdict = Literal["kept", "not kept", "unclear"]

# Gaps by an attribute in the mean score, decisions, errors, and target minus score.
GAPS = ("gdp", "decision_gdp", "error_gdp", "calibration_gdp")
WINDOWS_KEY = "calibration_windows"  # the curve of target minus score in wide windows
# Numbers with an interval, which determines whether a limit is met.
LIMITED = (
    *GAPS,
    *RATIOS,
    "rank_gap",
    "standardized_gdp",
    "correlation_ratio",
    "hsic",
    "hsic_effect",
    "squared_distance_correlation",
)
# Names of these numbers in limits, including those among the rows with the favorable outcome and
# gaps among people with the same controls.
LIMITABLE = (
    *LIMITED,
    *(measure_name(key, "favourable") for key in LIMITED),
    *(measure_name(key, "equal") for key in GAPS),
)


@dataclass(frozen=True)
class Number:
    """One number, with an interval if a valid one is known.

    Attributes
    ----------
    key
        Stable name, such as ``"gdp"``.
    value
        The estimate.
    rows
        Number of rows that the value was computed from.
    interval
        Confidence interval. If there is a p-value, the interval is above 0 if and only if the
        p-value is at most one minus the confidence.
    under_independence
        Expected value of the estimate if the attribute were shuffled, if known.
    pvalue
        p-value of the test that the number is 0.
    settings
        Other settings of the computation, such as the bandwidth.
    standard_error
        Standard error of the value, if known.
    adjusted
        The p-value adjusted for the number of attributes in the audit, or for the number of strata
        (Holm); None if there is only one attribute or stratum.
    """

    key: str
    value: float
    rows: int
    interval: Interval | None = None
    under_independence: float | None = None
    pvalue: float | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    standard_error: float | None = None
    adjusted: float | None = None

    def __float__(self) -> float:
        return self.value

    @property
    def resolution(self) -> float:
        """Share of the people averaged in each local mean of a gap; 0 if each value of S has its
        own mean.
        """
        return float(self.settings.get("resolution", 0.0))

    @property
    def significant(self) -> bool:
        """Whether the number is significantly different from 0, adjusted for the number of
        attributes or strata if there are several.
        """
        pvalue = self.pvalue if self.adjusted is None else self.adjusted
        level = 0.0 if self.interval is None else 1 - self.interval.confidence
        return pvalue is not None and pvalue <= level + 1e-12


@dataclass(frozen=True)
class Target:
    """The target y: the name of y, the value that counts as 1, and the value that is good for a
    person, all as text.

    `favours_high` is whether a high score indicates the favorable value; None if no favorable value
    was given.
    """

    name: str
    positive: str | None = None
    favourable: str | None = None
    favours_high: bool | None = None


def are_chances(low: float, high: float) -> bool:
    """Return whether numbers from low to high can be probabilities."""
    return low >= 0 and high <= 1


@dataclass(frozen=True)
class Subject:
    """What was audited: the names, the target and the scores, and the confidence level.

    Attributes
    ----------
    name
        Name of Z.
    dimensions
        Number of columns of Z: one for a score, several for a representation.
    score_name
        Name of the scores f, or None without scores.
    target
        The target y, or None.
    confidence
        Confidence level of the intervals.
    threshold
        Score above which the decision is yes, or None.
    threshold_stated
        Whether the caller set the threshold.
    base_rate
        Mean of the target or, without a target, of the scores; None without either.
    span
        Smallest and largest score; None without scores.
    law
        Distribution of the scores; None without scores.
    """

    name: str
    dimensions: int = 1
    score_name: str | None = None
    target: Target | None = None
    confidence: float = 0.95
    threshold: float | None = None
    threshold_stated: bool = False
    base_rate: Number | None = None
    span: tuple[float, ...] | None = None
    law: Law | None = None

    @property
    def chances(self) -> bool:
        """Whether all scores are between 0 and 1."""
        return self.span is not None and are_chances(*self.span)

    @property
    def level(self) -> float:
        """Level of the tests: one minus the confidence of the intervals."""
        return round(1 - self.confidence, 12)


@dataclass(frozen=True)
class Curve:
    """Means of groups of rows with similar S, with a band that covers all means at once.

    `grid` has the median of S in each group, `start` and `end` the smallest and largest value of S,
    and `rows` the number of rows. `sparse` marks groups that are too small for a reliable mean.
    `units` has the number of people or other units in each group; it is empty if each row is a
    separate unit.
    """

    grid: tuple[float, ...]
    mean: tuple[float, ...]
    overall: float
    start: tuple[float, ...]
    end: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]
    rows: tuple[float, ...]
    sparse: tuple[bool, ...]
    confidence: float = 0.95
    units: tuple[int, ...] = ()

    @property
    def trusted_groups(self) -> list[int]:
        """Positions of the groups with enough rows, or of all groups if none has enough."""
        return [i for i, sparse in enumerate(self.sparse) if not sparse] or [*range(len(self.grid))]


@dataclass(frozen=True)
class Nodes:
    """Moments of the score at each value of S, or in groups of neighboring values if there are many
    values. Later audits use these nodes to compare curves.

    Attributes
    ----------
    low
        Smallest value of each node.
    high
        Largest value of each node.
    share
        Each node's share of the people.
    rows
        Equivalent number of independent rows of equal weight.
    mean
        Mean score of each node.
    moments
        Second, third and fourth central moments of the score of one such independent row.
    """

    low: tuple[float, ...]
    high: tuple[float, ...]
    share: tuple[float, ...]
    rows: tuple[float, ...]
    mean: tuple[float, ...]
    moments: tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Law:
    """Distribution of one variable: the share of rows at or below each of several values.

    `complete` is whether these are all values of the variable. `rows` is the effective number of
    rows, or of groups of rows.
    """

    values: tuple[float, ...]
    shares: tuple[float, ...]
    mean: float
    rows: float
    complete: bool

    @classmethod
    def from_counts(cls, values: np.ndarray, counts: np.ndarray, rows: float) -> Law:
        """Create a distribution from distinct values in increasing order and their counts or
        weights.
        """
        shares = np.cumsum(counts) / counts.sum()
        kept = np.arange(len(values))
        if len(values) > POINTS:
            kept = np.unique(
                np.append(
                    np.searchsorted(shares, np.linspace(0, 1, POINTS)[1:-1]), [0, len(values) - 1]
                )
            )
        mean = float(np.average(values, weights=counts))
        return cls(
            tuple(values[kept].tolist()),
            tuple(shares[kept].tolist()),
            mean,
            rows,
            len(kept) == len(values),
        )

    def bounds(self, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return lower and upper bounds on the share of rows at or below each given value."""
        shares = np.array([0.0, *self.shares, 1.0])
        place = np.searchsorted(self.values, at, side="right")
        known = self.complete | np.isin(at, self.values)
        return shares[place], np.where(known, shares[place], shares[place + 1])


@dataclass(frozen=True)
class Histogram:
    """Number of people with S between consecutive edges: the number of groups if the rows have
    groups, otherwise of rows.
    """

    edges: tuple[float, ...]
    counts: tuple[int, ...]


class Keyed:
    """Numbers accessed by key."""

    numbers: tuple[Number, ...]

    def __getitem__(self, key: str) -> Number:
        number = self.get(key)
        if number is None:
            raise KeyError(
                f"{key} is not in this part of the audit; use one of"
                f" {', '.join(n.key for n in self.numbers)}."
            )
        return number

    def get(self, key: str) -> Number | None:
        """Return the number with this key, or None if there is none."""
        return next((number for number in self.numbers if number.key == key), None)


@dataclass(frozen=True)
class Population(Keyed):
    """All measures on one set of rows: all rows, or the rows with the favorable outcome (equal
    opportunity).

    `curves` has the mean score by S (``"gdp"``) and, under the keys of their gaps, the means of
    decisions, errors and residuals in the same groups of rows; if there are many groups,
    ``"calibration_windows"`` has the means of residuals in wide windows. `within` has the gaps
    among people with the same controls, if there are controls. `nodes` has the score in finer
    groups, and is computed on all rows only.
    """

    rows: int
    numbers: tuple[Number, ...]
    curves: dict[str, Curve] = field(default_factory=dict)
    within: Within | None = None
    nodes: Nodes | None = None


@dataclass(frozen=True)
class Within(Keyed):
    r"""Gaps by S among people with the same control features W, compared with the gaps among all
    people.

    Attributes
    ----------
    label
        The names of the controls, such as ``"education"``.
    numbers
        The gaps :math:`\sum_w P(w) E[|g_w(S)| \mid w]`, with the same keys as the gaps among all
        people.
    differences
        For each gap, its difference from the gap among all people (`before`), on the same rows.
    strata
        The gap and the curve in each stratum, by the name of the stratum, with p-values adjusted
        for the number of strata (Holm). There is no gap in a stratum where the attribute is
        constant.
    between
        The part of the gap among all people that is due to differences between strata,
        :math:`E[\operatorname{sign} g(S) \, (E[f | W] - E f)]`; the rest of the gap is within
        strata. Either part may be negative, and neither shows what causes the gap.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> from frhsic.auditing import Settings
    >>> age = np.tile(np.arange(20.0, 60.0), 20)
    >>> job = np.where(age + np.repeat([-9, 9], 400) > 40, "nurse", "cook")
    >>> quick = Settings(fast=True, resamples=99)
    >>> result = audit(0.3 + 0.2 * (job == "nurse"), age, control_features=job, settings=quick)
    >>> print(result["s"].all_rows.within)
    Among people with the same control, the gap is 0; among all people, it is 0.0529.
    """

    label: str
    numbers: tuple[Number, ...]
    differences: tuple[Change, ...]
    strata: dict[str, Population]
    between: float

    def __str__(self) -> str:
        change = self.differences[0]
        return (
            f"Among people with the same {self.label}, the gap is {amount(change.after)}; among all"
            f" people, it is {amount(change.before)}."
        )

    @property
    def worst(self) -> str | None:
        """The stratum with the largest significant gap, among strata with enough rows; None if
        there is none.
        """
        significant = {}
        for name, people in self.strata.items():
            gap = people.get("gdp")
            if gap is not None and gap.significant and people.rows >= SPARSE:
                significant[name] = gap.value
        return max(significant, key=lambda name: significant[name], default=None)


@dataclass(frozen=True)
class AttributeAudit:
    """The results of an audit for one sensitive attribute.

    `positives` has the measures on the rows with the favorable outcome, by default y = 1. It is
    None if there is no binary target, if fewer than 50 rows have the favorable outcome, or if the
    attribute is constant among these rows.
    """

    name: str
    histogram: Histogram
    law: Law
    all_rows: Population
    positives: Population | None = None


@dataclass(frozen=True)
class RowCounts:
    """Numbers of rows.

    Attributes
    ----------
    given
        Rows that were passed to the audit.
    dropped
        Rows that were dropped because of missing values.
    used
        Rows that were audited: `given - dropped`, or fewer if some rows were used to train a model
        or were not sampled.
    independent
        Most rows available for the measures of dependence and the probes. With groups, one row is
        drawn at random from each group; with weights, a row is kept with a probability proportional
        to its weight. With fewer than 20 rows, these measures are omitted.
    groups
        Number of groups of rows that belong together, or None.
    effective
        Number of rows, or of groups, of equal weight that would give an equally precise mean; None
        without weights.
    weighted
        Number of rows of equal weight that would give an equally precise mean if there were no
        groups.
    sample
        Rows in the random sample of a distributed audit; None if all rows were in memory.
    """

    given: int
    dropped: int
    used: int
    independent: int
    groups: int | None = None
    effective: float | None = None
    weighted: float | None = None
    sample: int | None = None


@dataclass(frozen=True)
class Quality:
    """One measure of how well the scores predict the target, compared with a constant score: the
    base rate or the mean.

    `key` is ``"accuracy"``, ``"true_positive_rate"``, ``"false_positive_rate"``, ``"auc"``,
    ``"log_loss"``, ``"root_squared_error"``, ``"explained"`` or ``"mean_error"``, the mean of the
    target minus the score; for a model with several classes, ``"class_accuracy"`` is how often the
    most probable class is correct. Measures that are shares of decisions have an `interval`.
    """

    key: str
    value: float
    constant: float
    standard_error: float | None = None
    interval: Interval | None = None

    @property
    def number(self) -> Number:
        """The measure as a :class:`Number`."""
        return Number(self.key, self.value, 0, standard_error=self.standard_error)


@dataclass(frozen=True)
class LimitCheck:
    r"""Whether the limited number meets its limit for one attribute, judged by the number's
    interval.

    Attributes
    ----------
    attribute
        Name of the attribute.
    key
        Key of the limited number.
    among
        Rows or people that the number refers to: ``"all"`` rows, rows with the ``"favourable"``
        outcome, or people with ``"equal"`` controls; ``"classes"`` if the number is the largest gap
        of several classes.
    limit
        The limit, in the unit of the number.
    value
        The estimate.
    interval
        Interval of the estimate.
    share
        The limit as a share, if it was given as a share.
    base
        What `share` refers to: the ``"base rate"``, or the earlier ``"gap"``.
    reference
        The number that `base` names, with its interval.
    reduction
        If the limit is a share of the earlier gap: the interval of the share by which that gap was
        reduced; None if that gap is not significant.
    rows
        Number of rows that the estimate was computed from.
    resolution
        Share of the people averaged in each local mean of the estimate.
    """

    attribute: str
    key: str
    among: str
    limit: float
    value: float
    interval: Interval
    share: float | None = None
    base: str = ""
    reference: Number | None = None
    reduction: Interval | None = None
    rows: int = 0
    resolution: float = 0.0

    @property
    def verdict(self) -> Verdict:
        r"""``"kept"`` if the limit is above the whole interval, ``"not kept"`` if the limit is
        below the interval, otherwise ``"unclear"``. For a ratio, the limit is a lower bound, so
        above and below are swapped. A share of the earlier gap is a target: ``"kept"`` if the
        estimate reaches the target and the interval of the reduction excludes 0, ``"not kept"`` if
        the whole interval misses the target. A limit that is a share c of the base rate r is
        checked with the interval of g − c r, where g is the gap; its ends are :math:`g
        - c r \pm \sqrt{(g_\pm - g)^2 + c^2 (r_\mp - r)^2}` (Zou and Donner, 2008).
        """
        judged = self._comparison()
        if judged is None:
            return "unclear"
        value, ends, limit, at_least = judged
        if self.base == "gap" and limit > 0 and value >= limit - ROUNDING and ends.low > 0:
            return "kept"
        if ends.low >= limit if at_least else ends.high <= limit:
            return "kept"
        if ends.high < limit if at_least else ends.low > limit:
            return "not kept"
        return "unclear"

    @property
    def rows_needed(self) -> int | None:
        """Approximate number of rows needed to show that the limit is met
        (:func:`frhsic.parity.limits.rows_to_settle`), if the estimate meets the limit but the
        interval does not; otherwise None.
        """
        judged = self._comparison()
        if judged is None or self.verdict != "unclear" or not self.rows:
            return None
        value, ends, limit, at_least = judged
        return rows_to_settle(self.rows, value, ends.low if at_least else ends.high, limit)

    @property
    def unmeasured(self) -> bool:
        """Whether there are too few people to measure the gap and the verdict is unclear."""
        return self.resolution > COARSE and self.verdict == "unclear" and self.reduction is None

    def _comparison(self) -> tuple[float, Interval, float, bool] | None:
        """Return the estimate, the interval and the limit to compare, and whether the limit is a
        lower bound; None if the estimate cannot be compared with the limit.
        """
        if self.base == "gap" and self.share is not None:
            if self.reduction is None or self.reference is None:
                return None
            return 1 - self.value / self.reference.value, self.reduction, 1 - self.share, True
        if self.key in RATIOS:
            return self.value, self.interval, self.limit, True
        low = self.value - self.interval.low
        high = self.interval.high - self.value
        if self.resolution > COARSE:
            high = math.inf
        if self.share is not None and self.reference is not None and self.reference.interval:
            around = self.reference.interval
            low = math.hypot(low, self.share * (around.high - self.reference.value))
            high = math.hypot(high, self.share * (self.reference.value - around.low))
        ends = replace(self.interval, low=self.value - low, high=self.value + high)
        return self.value, ends, self.limit, False


@dataclass(frozen=True)
class Change:
    """Change in one number, either since an earlier audit of different rows, or due to a limit,
    measured on the same rows.

    Attributes
    ----------
    key
        ``"gdp"`` or another gap by an attribute, ``"attribute"`` or ``"score"`` for a distribution,
        ``"base_rate"``, or the key of a :class:`Quality`. For the change in a gap, ``"people"`` is
        the part due to a change in the population and ``"curve"`` the part due to a change in mean
        scores; ``"shape"`` is how far apart the mean scores before and after are at the same value
        of the attribute, on average.
    attribute
        Name of the attribute; empty if the number doesn't refer to an attribute.
    before
        The earlier number; for a distribution, its mean.
    after
        The later number; for a distribution, its mean.
    interval
        Interval of the difference; None for a distribution.
    pvalue
        p-value for the hypothesis of no change; it is at most the level if and only if the interval
        excludes 0.
    level
        Level of the interval and of the tests.
    adjusted
        The p-value adjusted for the number of comparisons with an earlier audit (Holm).
    reduction
        Interval of the share by which the number was reduced, 1 − after / before; None if the
        earlier number may be 0.
    unknown
        For a part of the change in a gap: the share of the later people whose values of the
        attribute hardly occurred in the earlier audit. For these people, the nearest earlier values
        are used.
    """

    key: str
    attribute: str
    before: float
    after: float
    interval: Interval | None
    pvalue: float
    level: float
    adjusted: float | None = None
    reduction: Interval | None = None
    unknown: float = 0.0

    @property
    def significant(self) -> bool:
        """Whether the change is significant, without adjustment."""
        return self.pvalue <= self.level + 1e-12

    @property
    def changed(self) -> bool:
        """Whether the change is significant after adjustment for the number of comparisons, if
        there are several.
        """
        pvalue = self.pvalue if self.adjusted is None else self.adjusted
        return pvalue <= self.level + 1e-12

    @property
    def improved(self) -> bool:
        """Whether the number has changed for the better: the gap fell, or performance rose."""
        better = 1 if self.key == "auc" else -1 if self.key in FALLING else 0
        return self.changed and better * (self.after - self.before) > 0


@dataclass(frozen=True)
class Context:
    """Description of the decision and the data, for the first page of a report.

    Attributes
    ----------
    title
        Title of the report. By default, `title`, `source` and `name` are derived from the data.
    source
        Name of the data file.
    name
        Name of the score or representation.
    decision
        The decision, such as "whether a loan is granted".
    people
        The people affected, such as "applicants"; with groups of rows, what each group represents.
    period
        Period that the data cover.
    author
        Author of the audit.
    given
        Number of rows of the whole table.
    dropped
        Number of rows dropped before the audit because of missing values.
    remarks
        Remarks of the author, which the report shows before other remarks.
    features
        Columns that the model uses to predict the score.
    late
        Those of them that may be known only after the outcome.
    origin
        Date and time, SHA-256 hashes of the files, and software versions; see :meth:`stamped`.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> context = Context(decision="whether a loan is granted", people="applicants", period="May")
    >>> age = np.repeat(np.arange(20.0, 60.0), 10)
    >>> audit(age / 50, age, context=context).context.people
    'applicants'
    """

    title: str = ""
    source: str = ""
    name: str = ""
    decision: str = ""
    people: str = ""
    period: str = ""
    author: str = ""
    given: int = 0
    dropped: int = 0
    remarks: tuple[str, ...] = ()
    features: tuple[str, ...] = ()
    late: tuple[str, ...] = ()
    origin: dict[str, str] = field(default_factory=dict)

    def stamped(self, **files: Path | None) -> Context:
        """Return the context with the current time, the installed versions, and the SHA-256 hash of
        each file.
        """
        packages = (*PACKAGES, "torch") if has_torch() else PACKAGES
        versions = [
            f"Python {platform.python_version()}",
            *(f"{name} {metadata.version(name)}" for name in packages),
        ]
        time = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
        prints = {name: _sha256(path) for name, path in files.items() if path is not None}
        return replace(self, origin={"made": time, "software": ", ".join(versions)} | prints)


def _sha256(path: Path) -> str:
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


@dataclass(frozen=True)
class Audit(Document):
    """A complete audit as plain data, which is the same in Python, JSON and the report.

    Attributes
    ----------
    subject
        What was audited.
    rows
        Numbers of rows that were passed, dropped and used.
    attributes
        One entry for each sensitive attribute, such as ``audit["age"]``: the measures on `all_rows`
        and, as `positives`, on the rows with the favorable outcome.
        ``audit["age"].all_rows["gdp"]`` is a number with its `value`, `interval`, `pvalue` and
        number of `rows`.
    joint
        Numbers for all attributes together, if there are several.
    quality
        How well the scores predict the target, compared with a constant score.
    limits
        Whether each limit is met; the `verdict` is ``"kept"``, ``"not kept"`` or ``"unclear"``.
    drift
        Changes since an earlier audit, if it was compared with one.
    settings
        Settings of the computation.
    context
        Description of the decision and of the data.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from frhsic import audit
    >>> age = pd.Series(np.repeat(np.arange(20.0, 60.0), 10), name="age")
    >>> result = audit(age / 100, age, limit=0.2)
    >>> gap = result["age"].all_rows["gdp"]
    >>> round(gap.value, 2), gap.rows, result.limits[0].verdict
    (0.1, 400, 'kept')
    >>> Audit.from_json(result.to_json()) == result
    True
    """

    subject: Subject
    rows: RowCounts
    attributes: tuple[AttributeAudit, ...]
    joint: Population | None = None
    quality: tuple[Quality, ...] = ()
    limits: tuple[LimitCheck, ...] = ()
    drift: tuple[Change, ...] = ()
    settings: dict[str, Setting] = field(default_factory=dict)
    context: Context = field(default_factory=Context)
    format: int = FORMAT

    def __getitem__(self, name: str) -> AttributeAudit:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(
            f"{name!r} was not audited; use one of {', '.join(a.name for a in self.attributes)}."
        )

    def __repr__(self) -> str:
        """Return a summary with the gaps only; :func:`frhsic.report.text` returns all findings."""
        gaps = {attribute.name: attribute.all_rows.get("gdp") for attribute in self.attributes}
        shown = ", ".join(
            name if gap is None else f"{name}: gdp={amount(gap.value)}"
            for name, gap in gaps.items()
        )
        return f"<Audit of {self.subject.name!r} on {self.rows.used:,} rows, {shown}>"

    def _repr_html_(self) -> str:
        lines = [f"{self.subject.name} on {self.rows.used:,} rows"]
        pictures = ""
        for attribute in self.attributes:
            gap = attribute.all_rows.get("gdp")
            if gap is not None and gap.interval is not None:
                lines.append(
                    f"gap by {attribute.name}: {format_interval(gap.value, *gap.interval)}"
                )
                curve = attribute.all_rows.curves["gdp"]
                line = Line("after", curve.grid, curve.mean, curve.low, curve.high)
                pictures += curve_svg(line, curve.overall, (attribute.name, "mean score"))
        for check in self.limits:
            lines.append(
                f"limit {format_exact(check.limit)} for {check.attribute}: {check.verdict}"
            )
        return card(lines, pictures)
