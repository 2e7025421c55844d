r"""Mutual information of Z and S on the test rows of the sweep, as published and as it should be estimated.

Part "information" of the records of the study "mutual-information", one for each model of the first five repeats of
"tradeoff":

``dataset``, ``method``, ``weight``, ``repeat``, ``performance``   as in the sweep
``mi``            nearest neighbours with strict counts, standardized; may be negative
``mi_published``  inclusive counts, unscaled, clipped at zero
"""

from __future__ import annotations

from frhsic.dependence import mutual_information, mutual_information_published
from frhsic_paper import records
from frhsic_paper.grid import BY, Trained
from frhsic_paper.options import Options
from frhsic_paper.records import Record

__all__ = ["NAME", "REPEATS", "measure_information"]

NAME, PART = "mutual-information", "information"

REPEATS = 5

SHARED = ("dataset", "method", "weight", "repeat", "task", "epochs", "performance")


def measure_information(trained: Trained, options: Options) -> None:
    """Measure mutual information on the models of a fleet, which are not stored, and write its records."""
    fleet, found = trained.fleet, list[Record]()
    for repeat, split in enumerate(trained.splits[:REPEATS]):
        own = [i for i, record in enumerate(trained.records) if record["repeat"] == repeat]
        x, _, s = split.test
        for i, z in zip(own, fleet.select(own).transform(x.to(fleet.device))):
            model = trained.records[i]
            stamp = records.stamp(PART, model["protocol"], model["device"], records.digest(model["depends_on"], PART))
            found.append(
                {
                    **stamp,
                    **{name: model[name] for name in SHARED},
                    "mi": float(mutual_information(z, s, device=fleet.device)),
                    "mi_published": float(mutual_information_published(z, s, device=fleet.device)),
                }
            )
    records.put(options.file(NAME, trained.protocol), BY, found)
