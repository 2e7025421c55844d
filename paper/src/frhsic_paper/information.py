r"""Mutual information of Z and S on the test rows of the sweep, as published and as it should be estimated.

Records (`mutual-information-{protocol}.jsonl`), one for each model of the first five repeats of "tradeoff":

``experiment``    "mutual-information"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``, ``performance``   as in the sweep
``mi``            nearest neighbours with strict counts, standardised; may be negative
``mi_published``  inclusive counts, unscaled, clipped at zero
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from torch import Tensor

from frhsic.datasets import Split
from frhsic.dependence import mutual_information, mutual_information_published
from frhsic.fleet import Fleet
from frhsic_paper import records
from frhsic_paper.records import Record, Unit

__all__ = ["NAME", "REPEATS", "informer"]

NAME = "mutual-information"

REPEATS = 5


def informer(path: Path) -> Callable[[str, str, Fleet, Sequence[Split], list[Record]], None]:
    """Return a callback of a sweep that measures mutual information and writes records of its own.

    Those that the file had of the same dataset and method are replaced: the fleet was trained again.
    """

    def keep(dataset: str, method: str, fleet: Fleet, splits: Sequence[Split], found: list[Record]) -> None:
        made = []
        for repeat in range(min(REPEATS, len(splits))):
            own = [i for i, record in enumerate(found) if record["repeat"] == repeat]
            x, _, s = splits[repeat].test
            z = fleet.select(own).transform(x.to(fleet.device))
            made += [_record(found[i], z[row], s, fleet) for row, i in enumerate(own)]
        records.replace_unit(path, made, _unit)

    return keep


def _record(model: Record, z: Tensor, s: Tensor, fleet: Fleet) -> Record:
    shared = {name: model[name] for name in ("protocol", "dataset", "method", "weight", "repeat", "performance")}
    return {
        "experiment": NAME,
        **shared,
        "mi": float(mutual_information(z, s, device=fleet.device)),
        "mi_published": float(mutual_information_published(z, s, device=fleet.device)),
    }


def _unit(record: Record) -> Unit:
    return (record["dataset"], record["method"])
