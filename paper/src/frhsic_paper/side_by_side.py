"""Train several studies at a time on one GPU.

A fleet of small networks keeps one core of the processor busy and leaves most of a large GPU idle. Studies write files
of their own, so several can be trained in as many processes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from joblib import Parallel, delayed

from frhsic_paper.options import Options
from frhsic_paper.protocol import PROTOCOLS, Protocol, ProtocolName
from frhsic_paper.steps import Training
from frhsic_paper.studies import STUDIES
from frhsic_paper.study import Step, Study, run

Task = tuple[ProtocolName, str, tuple[int, ...]]
"""A protocol, a study, and the steps of its training that are run."""


def tasks(studies: Iterable[Study], protocols: Iterable[Protocol]) -> list[Task]:
    """Return what can be trained at the same time, the longest first.

    A step that several studies share belongs to the first one. Only grids are trained here: other steps measure running
    times, which need the machine for themselves, or search settings with all cores.
    """
    found: dict[Task, int] = {}
    for protocol in protocols:
        seen: list[Step] = []
        for study in (study for study in studies if study.published or not protocol.printed):
            own = {i: s for i, s in enumerate(study.train) if isinstance(s, Training) and s not in seen}
            seen += own.values()
            if own:
                models = sum(sum(step.expected(protocol).values()) for step in own.values())
                found[protocol.name, study.name, tuple(own)] = models
    return sorted(found, key=lambda task: -found[task])


def train_side_by_side(
    studies: Sequence[Study], protocols: Sequence[Protocol], options: Options, processes: int
) -> None:
    """Train what is missing, so many studies at a time; their lines go to the log."""
    silent = replace(options, watch=None, workers=1)
    work = (delayed(_train)(task, silent) for task in tasks(studies, protocols))
    for name in Parallel(n_jobs=processes, return_as="generator_unordered", pre_dispatch=processes)(work):
        options.say(f"{name}: trained")


def _train(task: Task, options: Options) -> str:
    protocol, name, steps = task
    study = next(study for study in STUDIES if study.name == name)
    run(replace(study, train=tuple(study.train[i] for i in steps)), PROTOCOLS[protocol], options, "train")
    return f"{protocol} {name}"
