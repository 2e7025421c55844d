r"""The sweep over weights on the five datasets, which most studies read.

Mutual information of Z and S is measured while the models are there, as most are not stored: on test rows, as
published and with strict counts. Part "information" of the records of the study "mutual-information", one for each
model of the first five repeats:

``dataset``, ``method``, ``weight``, ``repeat``, ``performance``   as in the sweep
``mi``            nearest neighbours with strict counts, standardized; may be negative
``mi_published``  inclusive counts, unscaled, clipped at zero
"""

from __future__ import annotations

from frhsic.dependence import mutual_information
from frhsic_paper import records
from frhsic_paper.grid import BY, Grid, Trained, by_name, held_out
from frhsic_paper.models import store_chosen
from frhsic_paper.options import Options
from frhsic_paper.protocol import DATASETS, METHODS, OWN, PAPER_WEIGHTS, Protocol
from frhsic_paper.published_statistics import mutual_information_published
from frhsic_paper.records import Record
from frhsic_paper.steps import Training

PART = "information"

INFORMATION_REPEATS = 5

SHARED = ("dataset", "method", "weight", "repeat", "task", "epochs", "performance")


def measure_information(trained: Trained, options: Options) -> None:
    """Measure mutual information on the models of a fleet, which are not stored, and write its records."""
    fleet, rows = trained.fleet, list[Record]()
    for repeat, split in enumerate(trained.splits[:INFORMATION_REPEATS]):
        own = [i for i, record in enumerate(trained.records) if record["repeat"] == repeat]
        x, _, s = split.test
        for i, z in zip(own, fleet.select(own).transform(x.to(fleet.device))):
            model = trained.records[i]
            stamp = records.stamp(PART, model["protocol"], model["device"], records.digest(model["depends_on"], PART))
            rows.append(
                {
                    **stamp,
                    **{name: model[name] for name in SHARED},
                    "mi": float(mutual_information(z, s)),
                    "mi_published": float(mutual_information_published(z, s)),
                }
            )
    records.put(options.file("mutual-information", trained.protocol), BY, rows)


SWEEPS: dict[str, tuple[tuple[str, ...], int]] = {"published": (METHODS, 5), "corrected": ((*METHODS, OWN), 20)}
"""Methods and repeats."""

CHOSEN_REPEATS = 5
"""Repeats whose chosen models are stored, for the measurements of what is left in Z."""


def grid(protocol: Protocol) -> Grid:
    """Return the sweep."""
    methods, repeats = SWEEPS[protocol.name]
    made = by_name(*methods, protocol=protocol)
    return Grid("tradeoff", DATASETS, made, PAPER_WEIGHTS, repeats, held_out(protocol))


def measured_models(sweep: Grid) -> dict[tuple[str, str], int]:
    """Return how many models have their mutual information measured."""
    names = ("none", *(method.name for method in sweep.methods))
    weights = sum(len(sweep.weights_of(name)) for name in names)
    return {("mutual-information", PART): len(sweep.datasets) * weights * min(INFORMATION_REPEATS, sweep.repeats)}


SWEEP = (Training(grid, (measure_information, store_chosen(CHOSEN_REPEATS)), measured_models),)
"""Steps that train the sweep."""
