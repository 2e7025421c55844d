"""What an audit holds: frozen dataclasses of plain values, written to JSON and read back without loss."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from frhsic.auditing import _codec

__all__ = [
    "FORMAT",
    "AttributeAudit",
    "Audit",
    "CertificateRow",
    "Contrast",
    "Curve",
    "Histogram",
    "Interval",
    "Note",
    "Number",
    "Omitted",
    "Population",
    "Rows",
    "SparseRegion",
]

FORMAT = 1
"""Version of the JSON form of an :class:`Audit`; raised when a field changes its meaning or goes away."""

Setting = str | int | float | bool


@dataclass(frozen=True)
class Interval:
    """An interval for a number: its ends, its level, and how it was made."""

    low: float
    high: float
    level: float
    method: str


@dataclass(frozen=True)
class Number:
    """One number, its interval (or why there is none) and one plain sentence.

    Attributes
    ----------
    key
        Stable name for machines, such as ``"gdp"``.
    label
        Name for people.
    value
        The estimate.
    sentence
        What the number says, in words.
    rows
        How many rows it was computed from.
    group
        ``"parity"``, ``"dependence"`` or ``"probe"``.
    interval, no_interval
        Exactly one of the two is there.
    under_independence
        What the same estimate gives on average when the attribute is shuffled, where known.
    pvalue
        Of the test of independence that belongs to it, where there is one.
    unit_scale
        Whether it lies between 0 (nothing) and 1 (everything), so that it can be drawn beside others.
    settings
        Kernels, bandwidths, seeds: what one needs to compute it again.

    Examples
    --------
    >>> Number("gdp", "GDP", 0.1, "The mean score moves by 0.1.", 500, "parity", no_interval="too few rows").value
    0.1
    """

    key: str
    label: str
    value: float
    sentence: str
    rows: int
    group: str
    interval: Interval | None = None
    no_interval: str | None = None
    under_independence: float | None = None
    pvalue: float | None = None
    unit_scale: bool = False
    settings: dict[str, Setting] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if (self.interval is None) == (self.no_interval is None):
            raise ValueError(f"{self.key}: pass either an interval or the reason why there is none.")

    def __float__(self) -> float:
        return self.value


@dataclass(frozen=True)
class Omitted:
    """A number that could not be computed, and why."""

    key: str
    label: str
    reason: str


@dataclass(frozen=True)
class Curve:
    """The curve E[f | S = s] on a grid, its pointwise band, and how many rows stand behind each point.

    `low` and `high` are empty where no band was computed. `sparse` marks points where the effective number
    of rows is too small for the curve to be trusted.
    """

    grid: tuple[float, ...]
    mean: tuple[float, ...]
    overall: float
    bandwidth: float
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    rows: tuple[float, ...] = ()
    sparse: tuple[bool, ...] = ()
    level: float = 0.95
    resamples: int = 0

    def __post_init__(self) -> None:
        for name in ("mean", "low", "high", "rows", "sparse"):
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
    """A stretch of S where too few rows stand behind the curve."""

    low: float
    high: float
    rows: int
    share: float


@dataclass(frozen=True)
class Contrast:
    """E[f | S = s₀] − E[f] at a value s₀ that was asked for, and a bound for the representation near it."""

    at: float
    value: float
    sentence: str
    rows: float
    sparse: bool
    interval: Interval | None = None
    no_interval: str | None = None
    bound: float | None = None


@dataclass(frozen=True)
class CertificateRow:
    """A bound that a theorem gives, what it assumes, and whether it says anything."""

    key: str
    label: str
    value: float | None
    sentence: str
    assumes: tuple[str, ...]
    vacuous: bool
    rows: int
    observed: float | None = None
    confidence: float | None = None
    settings: dict[str, Setting] = field(default_factory=dict)


@dataclass(frozen=True)
class Population:
    """The same measures on one set of rows: all of them, or those with y = 1 (Equal Opportunity)."""

    name: str
    rows: int
    numbers: tuple[Number, ...]
    curve: Curve | None = None
    contrasts: tuple[Contrast, ...] = ()
    omitted: tuple[Omitted, ...] = ()

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
    """Everything about one sensitive attribute: the finding in one sentence, what it rests on, and the numbers."""

    name: str
    finding: str
    histogram: Histogram
    everyone: Population
    evidence: tuple[str, ...] = ()
    positives: Population | None = None
    no_positives: str | None = None
    certificates: tuple[CertificateRow, ...] = ()
    sparse_regions: tuple[SparseRegion, ...] = ()


@dataclass(frozen=True)
class Note:
    """A heading and a paragraph that every reader should see."""

    title: str
    text: str


@dataclass(frozen=True)
class Rows:
    """How many rows came, were dropped for a missing value, and were used by the costly statistics."""

    given: int
    dropped: int
    used: int
    subsample: int


@dataclass(frozen=True)
class Audit:
    """The whole audit: plain data, the same in Python, in JSON and in the report.

    Attributes
    ----------
    title, source
        For the reader; `source` is the name of the file, or empty.
    subject
        ``"score"`` when one column was audited, ``"embedding"`` when several were.
    subject_name, score_name
        What Z is called; what f is, or None when there are no scores.
    target_name
        What y is called, or None.
    attributes
        One :class:`AttributeAudit` for each sensitive attribute.
    joint
        Numbers about all attributes together, when there are several.
    notes
        What these numbers do not tell.
    warnings
        What a careful reader of these data should know.
    """

    title: str
    subject: str
    subject_name: str
    rows: Rows
    attributes: tuple[AttributeAudit, ...]
    notes: tuple[Note, ...]
    dimensions: int = 1
    score_name: str | None = None
    target_name: str | None = None
    source: str = ""
    joint: Population | None = None
    warnings: tuple[str, ...] = ()
    settings: dict[str, Setting] = field(default_factory=dict)
    software: str = ""
    format: int = FORMAT

    def __getitem__(self, name: str) -> AttributeAudit:
        for attribute in self.attributes:
            if attribute.name == name:
                return attribute
        raise KeyError(f"{name!r} was not audited; this audit holds {', '.join(a.name for a in self.attributes)}.")

    def __repr__(self) -> str:
        """Return the findings alone: the whole is a document."""
        said = " ".join(attribute.finding for attribute in self.attributes)
        return f"<Audit of {self.subject_name!r} on {self.rows.used:,} rows: {said}>"

    def to_dict(self) -> dict[str, Any]:
        """Return the audit as plain dicts, lists and numbers."""
        plain: dict[str, Any] = _codec.to_plain(self)
        return plain

    def to_json(self, *, indent: int | None = None) -> str:
        """Return the audit as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False, ensure_ascii=False, indent=indent)

    @classmethod
    def from_dict(cls, plain: Any) -> Audit:
        """Return the audit that :meth:`to_dict` wrote; raise if its format is another."""
        written = plain.get("format") if isinstance(plain, dict) else None
        if written != FORMAT:
            raise ValueError(
                f"the document's format is {written!r}; this version reads {FORMAT}. "
                "Audit the data again, or read it with the version that wrote it."
            )
        return _codec.from_plain(cls, plain)

    @classmethod
    def from_json(cls, text: str) -> Audit:
        """Return the audit that :meth:`to_json` wrote."""
        return cls.from_dict(json.loads(text))
