"""A claim of the paper, and what measured records say of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results

__all__ = [
    "CORRECTED_ONLY",
    "NOT_RUN",
    "Claim",
    "Finding",
    "Outcome",
    "Verdict",
    "by_protocol",
    "told",
    "verdict",
]

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be judged"]

VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "does not hold", "cannot be judged")


@dataclass(frozen=True)
class Outcome:
    """What the records of one protocol say: whether the claim is true of them (None: they cannot tell), in numbers.

    A share between 0 and 1 says in how many of several cases it is.
    """

    true: bool | float | None
    text: str


NOT_RUN = Outcome(None, "not run")
CORRECTED_ONLY = Outcome(None, "not measured there")


@dataclass(frozen=True)
class Finding:
    """Ours under both protocols, the verdict and why."""

    published: str
    corrected: str
    verdict: Verdict
    reason: str

    @classmethod
    def of(cls, outcomes: Sequence[Outcome], reason: str) -> Finding:
        """Return the finding of a published and a corrected outcome, which together give the verdict."""
        published, corrected = outcomes
        return cls(published.text, corrected.text, verdict(published, corrected), reason)


@dataclass(frozen=True)
class Claim:
    """One claim.

    Attributes
    ----------
    name
        A short name, unique.
    experiment
        The section of the document that it stands in.
    place
        Where the paper makes it.
    statement
        What it says, in our words.
    printed
        The number in print.
    judge
        Decides from records.
    """

    name: str
    experiment: str
    place: str
    statement: str
    printed: str
    judge: Callable[[Results], Finding]


def told(what: str, outcome: Outcome) -> str:
    """Return the numbers of an outcome, led in by what they are, if there are any."""
    return outcome.text if outcome.true is None else f"{what}: {outcome.text}"


def verdict(*outcomes: Outcome) -> Verdict:
    """Return what several outcomes say together.

    Examples
    --------
    >>> verdict(Outcome(True, ""), Outcome(True, "")), verdict(Outcome(True, ""), Outcome(False, ""))
    ('holds', 'holds in part')
    >>> verdict(Outcome(None, ""), Outcome(False, "")), verdict(Outcome(None, ""))
    ('does not hold', 'cannot be judged')
    >>> verdict(Outcome(0.6, ""))
    'holds in part'
    """
    values = [float(outcome.true) for outcome in outcomes if outcome.true is not None]
    if not values:
        return "cannot be judged"
    if all(value == 1.0 for value in values):
        return "holds"
    return "does not hold" if all(value == 0.0 for value in values) else "holds in part"


def by_protocol(
    results: Results, experiment: str, judge: Callable[[Sequence[Record], Protocol], Outcome]
) -> tuple[Outcome, Outcome]:
    """Return the outcomes under the published and the corrected protocol."""
    found = []
    for name in ("published", "corrected"):
        records = results.of(experiment, name)
        found.append(judge(records, PROTOCOLS[name]) if records else NOT_RUN)
    return found[0], found[1]
