"""What people state with an audit: a limit on a number, who decides what about whom, and what was read."""

from __future__ import annotations

import hashlib
import math
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from frhsic.formatting import did_you_mean, stated
from frhsic.sentences import LABELS

if TYPE_CHECKING:
    from frhsic.auditing.results import AttributeAudit

LIMITED = ("gdp", "standardized_gdp", "correlation_ratio", "hsic", "hsic_effect", "distance_correlation")
"""Numbers that a limit can be stated for: those with an interval, which decides whether the limit is kept."""
IN_UNITS_OF_THE_SCORE = ("gdp",)
"""Numbers whose limit can be a share of the base rate."""
FAVOURABLE = "eo"
"""Names a number among the rows with the favourable outcome (Equal Opportunity): ``eo`` is GDP, ``eo.hsic`` HSIC."""
PACKAGES = ("frhsic", "numpy", "scikit-learn", "torch")

Among = Literal["all", "favourable"]
Limits = str | Sequence[str] | Mapping[str, float | str]
"""Limits as people write them: ``"gdp=0.05"``, ``["gdp=10%", "eo=0.05"]`` or ``{"gdp": 0.05}``."""


@dataclass(frozen=True)
class Limit:
    """A limit on one number of an audit, in its own unit, or as a share of the base rate.

    Examples
    --------
    >>> Limit.parse("gdp=0.05")
    Limit(key='gdp', value=0.05, relative=False, among='all')
    >>> Limit.parse("eo <= 10 %")
    Limit(key='gdp', value=0.1, relative=True, among='favourable')
    """

    key: str
    value: float
    relative: bool = False
    among: Among = "all"

    def __post_init__(self) -> None:
        name = limit_name(self.key, self.among)
        if self.key not in LIMITED:
            names = [*LIMITED, FAVOURABLE, *(limit_name(key, "favourable") for key in LIMITED[1:])]
            hint = f" There are: {', '.join(names)}." if self.key in LABELS else did_you_mean(name, names)
            raise ValueError(f"a limit names {name!r}, which has no interval to decide.{hint}")
        if not (math.isfinite(self.value) and self.value > 0):
            raise ValueError(f"the limit of {name} is {stated(self.value)}; pass a number above 0, such as 0.05.")
        if self.relative and self.key not in IN_UNITS_OF_THE_SCORE:
            raise ValueError(
                f"the limit of {name} is a share of the base rate; only those of gdp and eo can be. Pass a number."
            )

    @classmethod
    def parse(cls, text: str) -> Limit:
        """Return the limit that a text states, such as ``gdp=0.05`` or ``gdp=10%`` (of the base rate)."""
        parts = re.fullmatch(r"\s*([\w.]+)\s*(?:<=|=)\s*([-+.\deE]+)\s*(%?)\s*", text)
        try:
            key, number, sign = parts.groups() if parts else ("", "", "")
            value = float(number)
        except ValueError:
            raise ValueError(
                f"the limit is {text!r}; pass NAME=NUMBER or NAME=NUMBER%, such as gdp=0.05 or gdp=10%."
            ) from None
        among, key = _split(key)
        return cls(key, round(value / 100, 15) if sign else value, bool(sign), among)


def limit_name(key: str, among: str) -> str:
    """Return the name of a limit as people write it, such as ``gdp``, ``eo`` or ``eo.hsic``."""
    if among == "all":
        return key
    return FAVOURABLE if key == "gdp" else f"{FAVOURABLE}.{key}"


def _split(name: str) -> tuple[Among, str]:
    first, _, rest = name.partition(".")
    return ("favourable", rest or "gdp") if first == FAVOURABLE else ("all", name)


def limits_of(limits: Limits) -> tuple[Limit, ...]:
    """Return limits from what people write.

    Examples
    --------
    >>> limits_of({"gdp": "10%"}) == limits_of("gdp=10%") == limits_of(["gdp = 10 %"])
    True
    """
    if isinstance(limits, str):
        limits = [limits]
    if isinstance(limits, Mapping):
        limits = [f"{key}={value}" for key, value in limits.items()]
    return tuple(Limit.parse(text) for text in limits)


@dataclass(frozen=True)
class LimitCheck:
    """Whether one attribute keeps a limit, decided by the interval of the number.

    Attributes
    ----------
    attribute, key
        Which number of which attribute.
    limit
        The limit in the unit of the number.
    value, low, high, confidence
        The estimate and its interval.
    share, reference
        Where the limit is a share of the base rate: the share and the base rate.
    among
        ``"all"`` rows, or those with the ``"favourable"`` outcome (Equal Opportunity).
    """

    attribute: str
    key: str
    limit: float
    value: float
    low: float
    high: float
    confidence: float
    share: float | None = None
    reference: float | None = None
    among: str = "all"

    @property
    def verdict(self) -> str:
        """``"kept"`` if the whole interval is within the limit, ``"not kept"`` if it is above, else ``"unclear"``."""
        if self.high <= self.limit:
            return "kept"
        return "not kept" if self.low > self.limit else "unclear"


def checked(attribute: AttributeAudit, limit: Limit, base_rate: float | None) -> LimitCheck:
    """Return whether an attribute keeps a limit; `base_rate` is the mean of the target, or else of the score."""
    unchecked = f"the limit of {limit_name(limit.key, limit.among)} cannot be checked for {attribute.name}"
    population = attribute.all_rows if limit.among == "all" else attribute.positives
    if population is None:
        raise ValueError(f"{unchecked}: {attribute.no_positives}")
    try:
        number = population[limit.key]
    except KeyError as error:
        raise ValueError(f"{unchecked}: {error.args[0]}") from None
    if number.interval is None:
        raise ValueError(f"{unchecked}: {number.no_interval}.")
    if limit.relative and (base_rate is None or base_rate <= 0):
        raise ValueError("a limit in percent is a share of the base rate, which is not above 0 here; pass a number.")
    interval, reference = number.interval, base_rate if limit.relative else None
    return LimitCheck(
        attribute.name,
        limit.key,
        limit.value if reference is None else limit.value * reference,
        number.value,
        interval.low,
        interval.high,
        interval.confidence,
        None if reference is None else limit.value,
        reference,
        limit.among,
    )


@dataclass(frozen=True)
class Context:
    """Who decides what about whom, and what was read: for the first page of a report.

    Attributes
    ----------
    decision, people, period, author
        What is decided, about whom, from which period the data are, and who made the audit. Empty where not stated.
    made
        Date and time.
    data_sha256, model_sha256
        SHA-256 of the files; empty if there are none.
    versions
        Versions of the software.
    """

    decision: str = ""
    people: str = ""
    period: str = ""
    author: str = ""
    made: str = ""
    data_sha256: str = ""
    model_sha256: str = ""
    versions: dict[str, str] = field(default_factory=dict)

    @classmethod
    def now(
        cls,
        *,
        decision: str = "",
        people: str = "",
        period: str = "",
        author: str = "",
        data: Path | None = None,
        model: Path | None = None,
    ) -> Context:
        """Return a context with the present time, the installed versions and the fingerprints of the files."""
        versions = {"Python": platform.python_version()}
        for package in PACKAGES:
            versions[package] = metadata.version(package)
        made = datetime.now(UTC).strftime("%Y-%m-%d %H:%M, universal time")
        return cls(decision, people, period, author, made, sha256(data), sha256(model), versions)


def sha256(path: Path | None) -> str:
    """Return the SHA-256 of a file; empty for None."""
    if path is None:
        return ""
    with open(path, "rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
