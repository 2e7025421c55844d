"""A claim of the paper, and what measured records say of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be judged"]

VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "does not hold", "cannot be judged")


@dataclass(frozen=True)
class Outcome:
    """What the records of one protocol say of a claim.

    `true` is whether the claim is true of them, a share between 0 and 1 where it has several cases, or None where the
    records cannot tell. `text` gives the numbers.
    """

    true: bool | float | None
    text: str

    def led_by(self, words: str) -> Outcome:
        """Return the outcome with words before its numbers, if it has any."""
        return self if self.true is None else replace(self, text=f"{words}: {self.text}")


NOT_RUN = Outcome(None, "not run")
NOT_MEASURED = Outcome(None, "not measured there")

Rule = Callable[[Results, Protocol], Outcome]


@dataclass(frozen=True)
class Finding:
    """Numbers of both protocols, the verdict and the reason for it."""

    published: str
    corrected: str
    verdict: Verdict
    reason: str

    @classmethod
    def of(cls, published: Outcome, corrected: Outcome, reason: str) -> Finding:
        """Return the finding of a published and a corrected outcome, which together give the verdict."""
        return cls(published.text, corrected.text, verdict(published, corrected), unwrapped(reason))


@dataclass(frozen=True)
class Claim:
    """One claim of a study.

    Attributes
    ----------
    name
        A short name, unique over all studies.
    place
        Where the paper makes the claim.
    statement
        What it says, in our words.
    printed
        The number in print.
    rule
        Decides from the records of one protocol; see :func:`by_protocol`.
    reason
        Explains the rule and the verdict: a text, or a function of the records where the text has numbers of its own.
    published
        Whether the claim is measured under the published protocol.
    """

    name: str
    place: str
    statement: str
    printed: str
    rule: Rule
    reason: str | Callable[[Results], str]
    published: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "statement", unwrapped(self.statement))
        object.__setattr__(self, "printed", unwrapped(self.printed))

    def judge(self, results: Results) -> Finding:
        """Return the finding of all records."""
        published, corrected = (
            self.rule(results, protocol) if self.published or not protocol.printed else NOT_MEASURED
            for protocol in PROTOCOLS.values()
        )
        reason = self.reason if isinstance(self.reason, str) else self.reason(results)
        return Finding.of(published, corrected, reason)


def by_protocol(name: str) -> Callable[[Callable[[Sequence[Record], Protocol], Outcome]], Rule]:
    """Turn a function of records and protocol into a rule that reads the records of one name.

    Without records the outcome is that the study was not run.
    """

    def decorate(judge: Callable[[Sequence[Record], Protocol], Outcome]) -> Rule:
        def rule(results: Results, protocol: Protocol) -> Outcome:
            records = results.of(name, protocol.name)
            return judge(records, protocol) if records else NOT_RUN

        return rule

    return decorate


def outcome_of(cases: Sequence[bool], text: str) -> Outcome:
    """Return the share of cases in which a claim is true. Without cases, the outcome is "not run"."""
    return Outcome(sum(cases) / len(cases), text) if cases else NOT_RUN


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


def unwrapped(text: str) -> str:
    """Return a text that was wrapped over lines in the source, each paragraph on one line.

    Examples
    --------
    >>> unwrapped('''
    ...     One paragraph over
    ...     two lines.
    ... ''')
    'One paragraph over two lines.'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
