"""What an audit holds: numbers and keys in frozen dataclasses, written to JSON and read back without loss.

The words for them are made by :mod:`frhsic.sentences` when they are shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from frhsic import sentences
from frhsic.auditing.changes import Drift
from frhsic.auditing.documents import Document
from frhsic.auditing.scores import Quality, ScoreQuantiles
from frhsic.auditing.stated import Context, LimitCheck
from frhsic.intervals import Interval

FORMAT = 4
"""Version of the JSON form of an :class:`Audit`; raised when a field changes its meaning or goes away."""

Setting = str | int | float | bool


@dataclass(frozen=True)
class Subject:
    """What was audited, under which names, and with which confidence.

    Attributes
    ----------
    kind
        ``"score"`` if Z has one column, ``"embedding"`` if it has several.
    name, dimensions
        Name and number of columns of Z.
    score_name
        Name of the scores f, or None without scores.
    score_fitted
        Whether f is a head that the audit fitted out of fold.
    target_name
        Name of the target y, or None.
    confidence
        Confidence of the intervals.
    threshold, threshold_stated
        Score from which on the decision is yes, or None; whether the caller stated it.
    base_rate
        Mean of the target or, without one, of the scores, with the weights of the rows; None without both.
    chances
        Whether all scores lie between 0 and 1.
    favourable, favours_high
        The outcome that is good for a person, such as ``"default = 0"``, and whether a high score speaks for it; None
        where nobody stated one.
    """

    kind: str
    name: str
    dimensions: int = 1
    score_name: str | None = None
    score_fitted: bool = False
    target_name: str | None = None
    confidence: float = 0.95
    threshold: float | None = None
    threshold_stated: bool = False
    base_rate: float | None = None
    chances: bool = False
    favourable: str | None = None
    favours_high: bool | None = None

    @property
    def level(self) -> float:
        """Level of the tests: one minus the confidence of the intervals."""
        return round(1 - self.confidence, 12)


@dataclass(frozen=True)
class Number:
    """One number with its interval, or the reason why there is none.

    Attributes
    ----------
    key
        Stable name, such as ``"gdp"``; :data:`frhsic.sentences.LABELS` lists all.
    value
        The estimate.
    rows
        Number of rows it was computed from.
    interval, no_interval
        Exactly one of the two is given.
    under_independence
        Mean of the same estimate when the attribute is shuffled, where known.
    pvalue
        p-value of its test, where there is one.
    adjusted_pvalue
        The p-value adjusted for the number of attributes in the audit (Holm), which the sentences go by.
    settings
        Further settings of the computation, such as the bandwidth.
    standard_error
        Standard error of the value, where known.
    """

    key: str
    value: float
    rows: int
    interval: Interval | None = None
    no_interval: str | None = None
    under_independence: float | None = None
    pvalue: float | None = None
    settings: dict[str, Setting] = field(default_factory=dict)
    adjusted_pvalue: float | None = None
    standard_error: float | None = None

    def __post_init__(self) -> None:
        if (self.interval is None) == (self.no_interval is None):
            raise ValueError(f"{self.key}: pass either an interval or the reason why there is none.")

    def __float__(self) -> float:
        return self.value

    @property
    def label(self) -> str:
        """Name of the number for people."""
        return sentences.label(self.key)

    @property
    def deciding_pvalue(self) -> float | None:
        """The p-value that a sentence goes by: the adjusted one, if there is one."""
        return self.pvalue if self.adjusted_pvalue is None else self.adjusted_pvalue


@dataclass(frozen=True)
class Omitted:
    """A number that could not be computed, and why."""

    key: str
    reason: str

    @property
    def label(self) -> str:
        """Name of the number for people."""
        return sentences.label(self.key)


@dataclass(frozen=True)
class Curve:
    """Mean scores of groups of rows along S, with a band that holds all of them at once.

    `grid` has the median of S in each group, `start` and `end` its smallest and largest value, `rows` its number of
    rows. `low` and `high` are empty where no band was computed. `sparse` marks groups that are too small to be trusted.
    """

    grid: tuple[float, ...]
    mean: tuple[float, ...]
    overall: float
    start: tuple[float, ...] = ()
    end: tuple[float, ...] = ()
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    rows: tuple[float, ...] = ()
    sparse: tuple[bool, ...] = ()
    confidence: float = 0.95

    def __post_init__(self) -> None:
        for name in ("mean", "start", "end", "low", "high", "rows", "sparse"):
            values = getattr(self, name)
            if len(values) != len(self.grid) and (values or name == "mean"):
                raise ValueError(f"curve: {name} has {len(values)} points, the grid has {len(self.grid)}.")
        if len(self.low) != len(self.high):
            raise ValueError("curve: low and high come together.")


@dataclass(frozen=True)
class Histogram:
    """Counts of S between consecutive edges."""

    edges: tuple[float, ...]
    counts: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.edges) != len(self.counts) + 1:
            raise ValueError(f"histogram: {len(self.counts)} counts need {len(self.counts) + 1} edges.")


@dataclass(frozen=True)
class SparseRegion:
    """A range of S where too few rows are near for the curve to be trusted."""

    low: float
    high: float
    rows: int
    share: float


@dataclass(frozen=True)
class Contrast:
    """Mean score of the rows nearest to a requested value of S, less the overall mean.

    These `rows` rows are all that have S between `start` and `end`, and the interval is for
    E[f | start ≤ S ≤ end] − E[f].
    """

    at: float
    value: float
    rows: float
    sparse: bool
    interval: Interval | None = None
    no_interval: str | None = None
    start: float | None = None
    end: float | None = None


@dataclass(frozen=True)
class CertificateRow:
    """A bound that a theorem gives, its assumptions, and whether it is informative.

    `value` is None if the bound is infinite. `trivial` is a bound that always holds, and `trivial_because` says why. A
    certificate is `vacuous` if its bound is not below `trivial`.
    """

    key: str
    value: float | None
    assumes: tuple[str, ...]
    vacuous: bool
    rows: int
    observed: float | None = None
    confidence: float | None = None
    trivial: float | None = None
    trivial_because: str = ""
    settings: dict[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True)
class Population:
    """The same measures on one set of rows: all, or those with the favourable outcome (Equal Opportunity).

    `decisions` is the share of rows at or above the threshold, in the groups of `curve`.
    """

    name: str
    rows: int
    numbers: tuple[Number, ...]
    curve: Curve | None = None
    contrasts: tuple[Contrast, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    quantiles: ScoreQuantiles | None = None
    decisions: Curve | None = None

    def __getitem__(self, key: str) -> Number:
        for number in self.numbers:
            if number.key == key:
                return number
        for missing in self.omitted:
            if missing.key == key:
                raise KeyError(f"{key} was not computed: {missing.reason}")
        raise KeyError(f"{key} is not in this audit, which holds {', '.join(n.key for n in self.numbers)}.")


@dataclass(frozen=True)
class AttributeAudit:
    """The audit of `subject` against one sensitive attribute, which takes `distinct` values.

    `positives` has the measures on the rows with the favourable outcome, y = 1 if no other is named; where it is None,
    `no_positives` says why.
    """

    name: str
    subject: Subject
    distinct: int
    histogram: Histogram
    all_rows: Population
    positives: Population | None = None
    no_positives: str | None = None
    certificates: tuple[CertificateRow, ...] = ()
    sparse_regions: tuple[SparseRegion, ...] = ()

    @property
    def finding(self) -> str:
        """The main finding in one sentence."""
        return sentences.findings(self)[0]

    @property
    def evidence(self) -> tuple[str, ...]:
        """Sentences that the finding rests on."""
        return tuple(sentences.findings(self)[1:])


@dataclass(frozen=True)
class RowCounts:
    """Number of rows that were given, dropped for a missing value, used, and used by the costly statistics.

    Rows that were given may also have trained a model, or not have been drawn: `used` is at most `given - dropped`.
    """

    given: int
    dropped: int
    used: int
    subsample: int


@dataclass(frozen=True)
class Audit(Document):
    """A whole audit: plain data, the same in Python, in JSON and in the report.

    Attributes
    ----------
    title, source
        Title of the report; name of the file, or empty.
    subject
        What was audited.
    rows
        How many rows.
    attributes
        One :class:`AttributeAudit` for each sensitive attribute.
    joint
        Numbers about all attributes together, when there are several.
    remarks
        Sentences of the caller that a reader should see first.
    settings
        The settings by key; :data:`frhsic.sentences.SETTINGS` names them.
    limits
        Whether the stated limits are kept.
    quality
        How well the scores predict the target, beside a constant.
    context
        Who decides what about whom, and what was read.
    drift
        Changes of the gap since an earlier audit, where it was compared with one.
    """

    title: str
    subject: Subject
    rows: RowCounts
    attributes: tuple[AttributeAudit, ...]
    source: str = ""
    joint: Population | None = None
    remarks: tuple[str, ...] = ()
    settings: dict[str, Setting] = field(default_factory=dict)
    software: str = ""
    limits: tuple[LimitCheck, ...] = ()
    quality: tuple[Quality, ...] = ()
    context: Context = field(default_factory=Context)
    drift: tuple[Drift, ...] = ()
    format: int = FORMAT

    def __getitem__(self, name: str) -> AttributeAudit:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(f"{name!r} was not audited; this audit holds {', '.join(a.name for a in self.attributes)}.")

    def __repr__(self) -> str:
        """Return the findings alone; the whole audit is a long document."""
        findings = " ".join(attribute.finding for attribute in self.attributes)
        return f"<Audit of {self.subject.name!r} on {self.rows.used:,} rows: {findings}>"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What a careful reader of these data should know: the remarks of the caller, then warnings from the data."""
        return (*self.remarks, *sentences.warnings(self))
