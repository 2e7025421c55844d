"""A claim of the paper, and what the measured records say about it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import wraps
from itertools import zip_longest
from typing import Literal, NamedTuple

from frhsic_paper.protocol import PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.table import Table

Verdict = Literal["holds", "holds in part", "does not hold", "cannot be judged"]

VERDICTS: tuple[Verdict, ...] = ("holds", "holds in part", "does not hold", "cannot be judged")

About = Literal["results", "reporting", "theory"]
"""What a claim is about: results, the paper's statements about its own setup and tables, or its
theorems.
"""


FEWEST_SPLITS = 3
"""Fewest splits or repeats from which the spread of a mean can be judged."""


class Cases(NamedTuple):
    """Number of cases in which a claim is true, out of those that it covers."""

    true: int
    of: int

    @classmethod
    def counted(cls, cases: Sequence[bool]) -> Cases:
        """Count the cases that are true."""
        return cls(sum(map(bool, cases)), len(cases))

    def __str__(self) -> str:
        return f"{self.true} of {self.of}"


@dataclass(frozen=True)
class Outcome:
    """What the records of one protocol say about a claim.

    `true` says whether the claim holds or, if it covers several cases, in how many of them; None if
    the records are not sufficient. `text` contains the numbers, or describes the numbers in
    `cases`, which has one line per case.
    """

    true: bool | Cases | None
    text: str
    cases: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        """The text, followed by the cases."""
        return (self.text, *self.cases) if self.text else self.cases

    @property
    def share(self) -> float | None:
        """Share of the cases that are true."""
        if isinstance(self.true, Cases):
            return self.true.true / self.true.of
        return None if self.true is None else float(self.true)

    @property
    def label(self) -> str:
        """The verdict in words: "1 of 5", "yes", "no"."""
        if isinstance(self.true, Cases):
            return str(self.true)
        return "not judged" if self.true is None else ("yes" if self.true else "no")


NOT_RUN = Outcome(None, "not run")
NOT_MEASURED = Outcome(None, "not measured there")

Rule = Callable[[Results, Protocol], Outcome]

Judge = Callable[[Sequence[Record], Protocol], Outcome]

Case = tuple[bool, str]
"""Whether a claim is true in one case, and the numbers of that case."""

Cased = Callable[[Sequence[Record], Protocol], Iterable[Case]]


@dataclass(frozen=True)
class Finding:
    """The numbers under both protocols, the verdict and its reason.

    `label` is the verdict with the result of each protocol, such as "holds in part (published 5 of
    5, corrected 1 of 5)". `on_decisions` is a second finding, based on accuracy at equal GDP of
    decisions, for a claim that relies on accuracy against the GDP of scores.
    """

    published: tuple[str, ...]
    corrected: tuple[str, ...]
    verdict: Verdict
    label: str
    reason: str
    about: About = "results"
    on_decisions: Finding | None = None

    @property
    def lines(self) -> list[tuple[str, str]]:
        """Lines of both protocols side by side."""
        return list(zip_longest(self.published, self.corrected, fillvalue=""))

    @classmethod
    def from_outcomes(
        cls, published: Outcome, corrected: Outcome, reason: str, about: About = "results"
    ) -> Finding:
        """Return the finding from a published and a corrected outcome, which together determine the
        verdict.
        """
        judged = verdict(published, corrected)
        said = {"published": published.label, "corrected": corrected.label}
        if (
            published.true is None or corrected.true is None
        ):  # with one protocol, only a fraction adds to the verdict
            said = {name: text for name, text in said.items() if " of " in text}
        elif published.label == corrected.label and " of " not in published.label:
            said = {}
        label = judged + (
            f" ({', '.join(f'{name} {text}' for name, text in said.items())})" if said else ""
        )
        return cls(published.lines, corrected.lines, judged, label, unwrap(reason), about)


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
        What the claim says, in our words.
    printed
        The printed number, if there is one.
    rule
        Judges the claim from the records of one protocol; see :func:`protocol_rule`.
    reason
        Explains the rule and the verdict: a text, or a function of the records if the text contains
        numbers.
    about
        What the claim is about.
    published
        Whether the claim is measured under the published protocol.
    shrinkable
        Whether it relies on accuracy against the GDP of scores, by which contraction wins; it is
        then judged by the GDP of decisions, too.
    """

    name: str
    place: str
    statement: str
    printed: str
    rule: Rule
    reason: str | Callable[[Results], str]
    about: About = "results"
    published: bool = True
    shrinkable: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "statement", unwrap(self.statement))
        object.__setattr__(self, "printed", unwrap(self.printed))

    def table(self, finding: Finding) -> Table:
        """Return a table of the printed numbers, split into lines at semicolons, next to the lines
        of both protocols, without empty columns.
        """
        lines = {
            "printed": tuple(self.printed.split("; ")) if self.printed else (),
            "ours, published protocol": finding.published if self.published else (),
            "ours, corrected protocol": finding.corrected,
        }
        columns = {name: some for name, some in lines.items() if some}
        return Table.from_rows(columns, zip_longest(*columns.values(), fillvalue=""))

    def judge(self, results: Results) -> Finding:
        """Return the finding from all records."""
        published, corrected = (
            self.rule(results, protocol) if self.published or not protocol.printed else NOT_MEASURED
            for protocol in PROTOCOLS.values()
        )
        reason = self.reason if isinstance(self.reason, str) else self.reason(results)
        finding = Finding.from_outcomes(published, corrected, reason, self.about)
        if not self.shrinkable:
            return finding
        return replace(
            finding, on_decisions=replace(self, shrinkable=False).judge(use_decision_gdp(results))
        )


def claim(
    name: str,
    place: str,
    statement: str,
    printed: str = "",
    *,
    reason: str | Callable[[Results], str] | None = None,
    about: About = "results",
    published: bool = True,
    shrinkable: bool = False,
) -> Callable[[Rule], Claim]:
    """Turn a rule into a claim. The rule's docstring is the reason, unless one is passed. See
    :class:`Claim`.
    """

    def decorate(rule: Rule) -> Claim:
        return Claim(
            name,
            place,
            statement,
            printed,
            rule,
            reason or rule.__doc__ or "",
            about,
            published,
            shrinkable,
        )

    return decorate


def use_decision_gdp(results: Results) -> Results:
    """Return the sweep with the GDP of decisions in place of each protocol's own GDP, without
    regressions, which have no decisions.
    """
    files = dict(results.files)
    for name, protocol in PROTOCOLS.items():
        columns = {f"{part}{protocol.gdp}": f"{part}gdp_decision" for part in ("", "validation_")}
        files["tradeoff", name] = [
            r | {c: r.get(d) for c, d in columns.items()}
            for r in results.records("tradeoff", name)
            if r.get("gdp_decision") is not None
        ]
    return Results(files)


def judge_claims(claims: Iterable[Claim], results: Results) -> dict[str, Finding]:
    """Return the finding for each claim, by name."""
    return {claim.name: claim.judge(results) for claim in claims}


def protocol_rule(name: str, splits: int = FEWEST_SPLITS) -> Callable[[Judge], Rule]:
    """Turn a function of records and protocol into a rule that reads the records of one study.

    Without records, the outcome says that the study was not run. With fewer than `splits` repeats,
    its numbers are given without a verdict; with `splits` 0, even a single run gets a verdict.
    """

    def decorate(judge: Judge) -> Rule:
        @wraps(judge)
        def rule(results: Results, protocol: Protocol) -> Outcome:
            records = results.records(name, protocol.name)
            return (
                require_repeats(judge(records, protocol), records, splits) if records else NOT_RUN
            )

        return rule

    return decorate


def published_rule(corrected: str) -> Callable[[Callable[[], Outcome]], Rule]:
    """Turn a function of the printed numbers and the authors' files into a rule; `corrected`
    describes the corresponding property of our runs.
    """

    def decorate(judge: Callable[[], Outcome]) -> Rule:
        @wraps(judge)
        def rule(results: Results, protocol: Protocol) -> Outcome:
            return judge() if protocol.printed else Outcome(None, corrected)

        return rule

    return decorate


def case_rule(name: str, words: str = "", splits: int = FEWEST_SPLITS) -> Callable[[Cased], Rule]:
    """Turn a function that yields the cases of a claim into a rule, as :func:`protocol_rule` does.

    The outcome lists the numbers of all cases, preceded by `words` if there are any.
    """

    def decorate(cased: Cased) -> Rule:
        @protocol_rule(name, splits)
        @wraps(cased)
        def rule(records: Sequence[Record], protocol: Protocol) -> Outcome:
            cases = list(cased(records, protocol))
            return outcome_from_cases(
                [true for true, _ in cases], words, [text for _, text in cases]
            )

        return rule

    return decorate


def require_repeats(
    outcome: Outcome, records: Sequence[Record], splits: int = FEWEST_SPLITS
) -> Outcome:
    """Return an outcome, without its verdict if the records have too few repeats for one; the text
    then says how many there are.

    Examples
    --------
    >>> require_repeats(Outcome(True, "GDP .1"), [{"repeat": 0}]).lines
    ('GDP .1', 'one repeat, too few to judge')
    """
    repeats = len({r["repeat"] for r in records if "repeat" in r})
    if outcome.true is None or repeats > max(splits - 1, 1):
        return outcome
    if repeats >= splits:
        return replace(outcome, cases=(*outcome.cases, "one run"))
    counted = "one repeat" if repeats == 1 else f"{repeats} repeats"
    return replace(outcome, true=None, cases=(*outcome.cases, f"{counted}, too few to judge"))


def outcome_from_cases(true: Sequence[bool], text: str, cases: Iterable[str] = ()) -> Outcome:
    """Return an outcome with the number of cases in which a claim is true. Without cases, the
    outcome is "not run".

    Examples
    --------
    >>> outcome_from_cases([True, False, False], "").label, outcome_from_cases([True], "").label
    ('1 of 3', 'yes')
    """
    if not true:
        return NOT_RUN
    share = true[0] if len(true) == 1 else Cases.counted(true)
    return Outcome(share, text, tuple(cases))


def verdict(*outcomes: Outcome) -> Verdict:
    """Return the overall verdict of several outcomes.

    Examples
    --------
    >>> (
    ...     verdict(Outcome(True, ""), Outcome(True, "")),
    ...     verdict(Outcome(True, ""), Outcome(False, "")),
    ... )
    ('holds', 'holds in part')
    >>> verdict(Outcome(None, ""), Outcome(False, "")), verdict(Outcome(None, ""))
    ('does not hold', 'cannot be judged')
    >>> verdict(Outcome(Cases(3, 5), ""))
    'holds in part'
    """
    shares = [outcome.share for outcome in outcomes if outcome.share is not None]
    if not shares:
        return "cannot be judged"
    if all(share == 1.0 for share in shares):
        return "holds"
    return "does not hold" if all(share == 0.0 for share in shares) else "holds in part"


def unwrap(text: str) -> str:
    """Return a text that is wrapped over several lines in the source, with each paragraph on one
    line.

    Examples
    --------
    >>> unwrap('''
    ...     One paragraph over
    ...     two lines.
    ... ''')
    'One paragraph over two lines.'
    """
    return "\n\n".join(" ".join(paragraph.split()) for paragraph in text.strip().split("\n\n"))
