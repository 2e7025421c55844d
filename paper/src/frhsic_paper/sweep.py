r"""The sweep over weights on the five datasets, which most studies use.

Mutual information of Z and S is measured on test rows, as published and with strict counts, while
the models are in memory, since most are not stored. Part "information" of the records of the study
"mutual-information", one for each model of the first five repeats:

``dataset``, ``method``, ``weight``, ``repeat``, ``performance``   as in the sweep
``mi``            nearest neighbours with strict counts, standardized; may be negative
``mi_published``  inclusive counts, unscaled, clipped at zero
"""

from __future__ import annotations

from collections.abc import Iterator

from frhsic.dependence import mutual_information
from frhsic.training import Fleet
from frhsic_paper.grid import Grid, held_out, methods_by_name
from frhsic_paper.models import store_chosen
from frhsic_paper.protocol import DATASETS, METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.splits import Split
from frhsic_paper.statistics.published import published_mutual_information
from frhsic_paper.steps import OnTrained, Training

CHOSEN_REPEATS = 5
"""Number of repeats whose chosen models are stored and whose mutual information is measured."""


def information(fleet: Fleet, split: Split, task: str) -> Iterator[list[Record]]:
    """Yield the mutual information of Z and S on the test rows, as published and with strict
    counts.
    """
    x, _, s = split.test
    for z in fleet.transform(x.to(fleet.device)):
        yield [
            {
                "mi": float(mutual_information(z, s)),
                "mi_published": float(published_mutual_information(z, s)),
            }
        ]


measure_information = OnTrained(
    "mutual-information", "information", CHOSEN_REPEATS, information, "information"
)

SWEEPS: dict[str, tuple[tuple[str, ...], int]] = {
    "published": (METHODS, 5),
    "corrected": ((*METHODS, OWN), 20),
}
"""Methods and repeats."""


def grid(protocol: Protocol) -> Grid:
    """Return the sweep."""
    methods, repeats = SWEEPS[protocol.name]
    made = methods_by_name(*methods, protocol=protocol)
    return Grid("tradeoff", DATASETS, made, PAPER_WEIGHTS, repeats, held_out(protocol))


SWEEP = (Training(grid, (measure_information, store_chosen(CHOSEN_REPEATS))),)
"""Steps that train the sweep."""
