"""Studies: what they train, measure, show and claim, and how their steps are run."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from typing import Any, Literal

from joblib import Parallel, delayed

from frhsic_paper.claim import Claim
from frhsic_paper.options import Options
from frhsic_paper.plot import Drawn
from frhsic_paper.protocol import Protocol
from frhsic_paper.results import Results
from frhsic_paper.steps import Training
from frhsic_paper.table import Listed

Phase = Literal["train", "measure", "all"]

Step = Callable[[Protocol, Options], object]
"""Compute what is missing under a protocol, and write its records."""


def no_items(results: Results) -> list[Any]:
    """Return no tables or figures."""
    return []


@dataclass(frozen=True)
class Study:
    """One study.

    Attributes
    ----------
    name
        The study's name on the command line, in the file of its records and in links.
    about
        One line that names its table or figure.
    title, words
        Heading and paragraph of its page, as plain text. A study without a title has no page.
    train
        Steps that train models, preferably on a GPU.
    measure
        Steps that measure trained models, or compute something without them, on a CPU.
    lead
        Function of the records that returns the first sentences of the page.
    tables, figures
        Functions of the records that return what the page shows; nothing if the study was not run.
    claims
        Claims of the paper that this page judges.
    published
        Whether the study runs under the published protocol.
    """

    name: str
    about: str
    title: str = ""
    words: str = ""
    train: tuple[Step, ...] = ()
    measure: tuple[Step, ...] = ()
    lead: Callable[[Results], Sequence[str]] = no_items
    tables: Callable[[Results], Sequence[Listed]] = no_items
    figures: Callable[[Results], Sequence[Drawn]] = no_items
    claims: tuple[Claim, ...] = ()
    published: bool = True


def select_studies(studies: Iterable[Study], names: Iterable[str]) -> list[Study]:
    """Return the studies with the given names, without repetition; "all" means all studies.

    Examples
    --------
    >>> step = lambda protocol, options: None
    >>> bound, leak = (
    ...     Study("bound", "a figure", train=(step,)),
    ...     Study("leak", "a table", measure=(step,)),
    ... )
    >>> [study.name for study in select_studies([bound, leak], ["leak", "all"])]
    ['leak', 'bound']
    """
    known = {study.name: study for study in studies}
    chosen: dict[str, Study] = {}
    for name in names:
        if name != "all" and name not in known:
            near = get_close_matches(name, known, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise ValueError(
                f"there is no study {name!r}{hint} Pass all, or some of {', '.join(known)}."
            )
        chosen |= known if name == "all" else {name: known[name]}
    return list(chosen.values())


def run(study: Study, protocol: Protocol, options: Options, phase: Phase = "all") -> None:
    """Run the missing steps of a study under a protocol."""
    if protocol.printed and not study.published:
        options.say(f"{study.name} is not in the paper, so it has no published protocol")
        return
    steps = (study.train if phase != "measure" else ()) + (
        study.measure if phase != "train" else ()
    )
    for step in steps:
        step(protocol, options)


def tasks(studies: Iterable[Study], protocols: Iterable[Protocol]) -> list[tuple[Protocol, Study]]:
    """Return the studies, each with only the training steps that can run at the same time as
    others, starting with the longest study.

    A step that several studies share belongs to the first of them. Only grids are trained here:
    other steps measure running times, for which the machine must be otherwise idle, or search for
    settings, using all cores.
    """
    models: list[tuple[int, Protocol, Study]] = []
    for protocol in protocols:
        seen: list[Training] = []
        for study in (study for study in studies if study.published or not protocol.printed):
            own = [step for step in study.train if isinstance(step, Training) and step not in seen]
            seen += own
            if own:
                count = sum(sum(step.expected_records(protocol).values()) for step in own)
                models.append((count, protocol, replace(study, train=tuple(own))))
    return [(protocol, study) for _, protocol, study in sorted(models, key=lambda one: -one[0])]


def train_side_by_side(
    studies: Sequence[Study], protocols: Sequence[Protocol], options: Options, processes: int
) -> None:
    """Train what is missing, with a number of studies at a time on one GPU; their output goes to
    the log.

    A fleet of small networks keeps one core of the processor busy and leaves most of a large GPU
    idle. Each study writes its own files, so several can be trained in as many processes.
    """
    silent = replace(options, watch=None, workers=1)

    def train(protocol: Protocol, study: Study) -> str:
        run(study, protocol, silent, "train")
        return f"{protocol.name} {study.name}"

    work = (delayed(train)(protocol, study) for protocol, study in tasks(studies, protocols))
    for name in Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch=processes)(
        work
    ):
        options.say(f"{name}: trained")
