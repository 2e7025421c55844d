"""Every experiment by its name: what it trains, and what is measured afterwards.

Training wants a GPU; measuring (fresh heads, tests, bounds, closed forms) is done on a CPU, later if need be. Both
append to the same records and go on where they were cut off.
"""

from __future__ import annotations

from collections.abc import Sequence

from frhsic.datasets import Split
from frhsic.fleet import Fleet
from frhsic_paper import bound_measure, information, keeping, transfer_measure, weight_selection_measure
from frhsic_paper.catalogue import grid_of
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record
from frhsic_paper.sweep import Keep, run

__all__ = ["trained"]

CHOSEN_REPEATS = 3
"""Repeats of the sweep whose chosen models are kept for the measures of what is left in Z."""


def trained(name: str, protocol: Protocol, options: Options) -> list[Record]:
    """Train the grid of a name, as far as it is not in the records yet."""
    grid = options.applied(grid_of(name, protocol))
    return run(
        grid,
        protocol,
        options.file(grid.name, protocol),
        device=options.device,
        watch=options.watch,
        keep=_keep(name, protocol, options),
        workers=options.workers,
    )


def _keep(name: str, protocol: Protocol, options: Options) -> Keep | None:
    """Return what is done with the fleets of a grid besides measuring them."""
    models = keeping.model_file(options.out, name, protocol.name)
    if name in (transfer_measure.GRID, bound_measure.GRID, weight_selection_measure.GRID):
        return keeping.keeper(models, keeping.all_models)
    if name != "tradeoff":
        return None
    informed = information.informer(options.file(information.NAME, protocol))
    if protocol.name == "published":
        return informed
    rule = keeping.chosen_on_validation(options.file("tradeoff", protocol), CHOSEN_REPEATS)
    return _both(informed, keeping.keeper(models, rule))


def _both(first: Keep, second: Keep) -> Keep:
    def keep(dataset: str, method: str, fleet: Fleet, splits: Sequence[Split], found: list[Record]) -> None:
        first(dataset, method, fleet, splits, found)
        second(dataset, method, fleet, splits, found)

    return keep
