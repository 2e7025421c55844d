r"""The bandwidth of the evaluator of GDP, which the paper's text does not state.

Part "bandwidths" of the records, one for each model and bandwidth: ``bandwidth`` as a share of the
range of S, ``performance`` and ``gdp`` of probabilities on test rows, averaged over the population.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from frhsic.training import Fleet
from frhsic_paper.claim import NOT_RUN, Outcome, by_protocol, claim
from frhsic_paper.frontiers import frontier, methods_of, naup, paper_scale, swept
from frhsic_paper.grid import Grid, by_name, held_out
from frhsic_paper.measures import smoothed
from frhsic_paper.printed import dataset_name, method_name
from frhsic_paper.protocol import METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.splits import Split
from frhsic_paper.steps import OnTrained, Training
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Table, tables_of

BANDWIDTHS = (0.025, 0.05, 0.1, 0.2, 0.4)
"""Shares of the range of S; the published evaluator has 0.1."""

PART = "bandwidths"


def grid(protocol: Protocol) -> Grid:
    """Return the sweep on two datasets."""
    methods = by_name(*METHODS, OWN, protocol=protocol)
    return Grid(
        "evaluator-bandwidth", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, held_out(protocol)
    )


def measure(fleet: Fleet, split: Split, task: str) -> Iterator[list[Record]]:
    """Yield the GDP of each model at every bandwidth."""
    x, _, s = split.test.to(fleet.device)
    scores, s = fleet.scores(x)[..., 0].double(), s.double().reshape(len(s), -1)[:, 0]
    outputs = scores if task == "regression" else torch.sigmoid(scores)
    width = float(s.max() - s.min())
    values = [smoothed(outputs, s, share * width, "population").tolist() for share in BANDWIDTHS]
    for of_model in zip(*values):
        yield [{"bandwidth": share, "gdp": value} for share, value in zip(BANDWIDTHS, of_model)]


MEASURE = OnTrained("evaluator-bandwidth", PART, 5, measure, BANDWIDTHS, len(BANDWIDTHS))


def area_table(made: Sequence[Record], protocol: Protocol) -> Table:
    """Areas of every method under each bandwidth, datasets one below the other."""
    rows: list[list[Cell]] = []
    for dataset in swept(made):
        areas = [_areas(made, dataset, share) for share in BANDWIDTHS]
        for number, method in enumerate(methods_of(made)):
            name = dataset_name(dataset) if number == 0 else ""
            rows.append(
                [name, method_name(method), *(by_method.get(method) for by_method in areas)]
            )
    return Table.of(["dataset", "nAUP at bandwidth", *(f"{share:g}" for share in BANDWIDTHS)], rows)


def _areas(made: Sequence[Record], dataset: str, share: float) -> dict[str, float]:
    full = frontier([r for r in made if r["bandwidth"] == share], dataset, "gdp")
    return naup(full, paper_scale(full))


@claim(
    "evaluator-bandwidth-order",
    "Section 2, GDP",
    "The unstated bandwidth of the evaluator does not decide which method leads.",
    "not stated",
    published=False,
)
@by_protocol(f"evaluator-bandwidth/{PART}")
def _same_order(made: Sequence[Record], protocol: Protocol) -> Outcome:
    """The same method has the largest nAUP at every bandwidth, on each dataset."""
    leaders = {
        dataset: [
            max(areas, key=lambda m: areas[m])
            for share in BANDWIDTHS
            if (areas := _areas(made, dataset, share))
        ]
        for dataset in swept(made)
    }
    if not leaders:
        return NOT_RUN
    text = "; ".join(
        f"{dataset_name(d)} {', '.join(map(method_name, names))}" for d, names in leaders.items()
    )
    return Outcome(all(len(set(names)) == 1 for names in leaders.values()), f"largest nAUP: {text}")


STUDY = Study(
    name="evaluator-bandwidth",
    about="GDP with other bandwidths of the evaluator",
    title="The bandwidth of the evaluator",
    words="""
        The text does not state the bandwidth with which GDP is measured; the reference code has a
        tenth of the range of S. Crime and COMPAS, five splits, every method, a quarter of it to
        four times as much.
    """,
    train=(Training(grid, (MEASURE,)),),
    tables=tables_of(f"evaluator-bandwidth/{PART}", "nAUP at each bandwidth", area_table),
    claims=(_same_order,),
    published=False,
)
