"""Every experiment by its name: what it trains, and what is measured afterwards.

Training wants a GPU; measuring (fresh heads, tests, bounds, closed forms) is done on a CPU, later if need be. Both
append to the same records and go on where they were cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from frhsic.datasets import Split
from frhsic.fleet import Fleet
from frhsic_paper import (
    bound_measure,
    convergence,
    high_dimensional,
    information,
    keeping,
    leak_measure,
    runtime,
    spectrum,
    transfer_measure,
    weight_selection_measure,
)
from frhsic_paper.catalogue import GRIDS, grid_of
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record
from frhsic_paper.sweep import Keep, run

__all__ = ["EXPERIMENTS", "Experiment", "Phase", "chosen_experiments", "perform"]

Phase = Literal["train", "measure", "all"]
Step = Callable[[Protocol, Options], object]

CHOSEN_REPEATS = 3
"""Repeats of the sweep whose chosen models are kept for the measures of what is left in Z."""


@dataclass(frozen=True)
class Experiment:
    """Steps of an experiment.

    Attributes
    ----------
    about
        Which table or figure it is for.
    train
        Steps for a GPU.
    measure
        Steps for a CPU, on what was trained.
    repeats
        At most so many repeats, unless the user says otherwise.
    published
        Whether it is run under the published protocol: not what the paper does not have.
    """

    about: str
    train: tuple[Step, ...] = ()
    measure: tuple[Step, ...] = ()
    repeats: int | None = None
    published: bool = True


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


def _grid(name: str) -> Step:
    return partial(trained, name)


_SWEEP = (_grid("tradeoff"),)

EXPERIMENTS: dict[str, Experiment] = {
    "convergence": Experiment("figure: convergence of HSIC and EIPM", measure=(convergence.run,)),
    # before the experiments that read fewer repeats of the same sweep: so "all" trains it once
    "significance": Experiment("paired comparison over 20 splits (the sweep of tradeoff, longer)", train=_SWEEP),
    "tradeoff": Experiment("table: matched performance; figures: Pareto fronts", train=_SWEEP, repeats=5),
    "pareto": Experiment("figures: Pareto fronts (the sweep of tradeoff)", train=_SWEEP, repeats=5),
    "pareto-summary": Experiment("table: Pareto summary with dCor (the sweep of tradeoff)", train=_SWEEP, repeats=5),
    "mutual-information": Experiment("figure: mutual information (the sweep of tradeoff)", train=_SWEEP, repeats=5),
    "metrics-side-by-side": Experiment("GDP by every convention (the sweep of tradeoff)", train=_SWEEP, repeats=5),
    "leak": Experiment(
        "what is left of S in Z: probes, fresh heads, the worst head",
        train=_SWEEP,
        measure=(leak_measure.run,),
        repeats=5,
        published=False,
    ),
    "transfer": Experiment(
        "table and figure: transfer to fresh heads", train=(_grid("transfer"),), measure=(transfer_measure.run,)
    ),
    "runtime": Experiment("figure: seconds of an epoch", train=(runtime.run,)),
    "synthetic": Experiment("figure: synthetic validation", train=(_grid("synthetic"),)),
    "equal-opportunity": Experiment("table: Equal Opportunity", train=(_grid("equal-opportunity"),)),
    "multi-attribute": Experiment("table and figure: two attributes", train=(_grid("multi-attribute"),)),
    "bound": Experiment("figure: tightness of the bound", train=(_grid("bound"),), measure=(bound_measure.run,)),
    "bandwidth-scaling": Experiment("figure: smallest eigenvalue and bandwidth", measure=(spectrum.run,)),
    "high-dimensional": Experiment(
        "figure: several attributes, time and error",
        train=(high_dimensional.run_time,),
        measure=(high_dimensional.run_error,),
    ),
    "ablation-kernel": Experiment("table: kernels", train=(_grid("ablation-kernel"),)),
    "ablation-dimension": Experiment(
        "table: width of Z", train=tuple(_grid(name) for name in GRIDS if name.startswith("ablation-dimension-"))
    ),
    "weight-selection": Experiment(
        "figure: choosing the weight",
        train=(_grid("weight-selection"),),
        measure=(weight_selection_measure.run,),
    ),
    "frem-anchors": Experiment("FREM: number of anchors", train=(_grid("frem-anchors"),), published=False),
    "bandwidth-sensitivity": Experiment(
        "FREM, Reg-GDP: bandwidths", train=(_grid("bandwidth-sensitivity"),), published=False
    ),
    "kernels-on-z": Experiment("HSIC: every kernel on Z", train=(_grid("kernels-on-z"),), published=False),
    "untuned": Experiment("two datasets on which nothing was tuned", train=(_grid("untuned"),), published=False),
    "same-terms": Experiment(
        "every method with weight decay and variance floor of ours", train=(_grid("same-terms"),), published=False
    ),
    "dense": Experiment("the sweep on a grid twice as dense", train=(_grid("dense"),), published=False),
    "full-batch": Experiment("HSIC and FREM on all rows at once", train=(_grid("full-batch"),), published=False),
    "leaky-scaling": Experiment("scales that see the test rows", train=(_grid("leaky-scaling"),)),
}
"""Experiments by the names of the command line."""


def chosen_experiments(names: Iterable[str]) -> list[str]:
    """Return the experiments that some names mean; "all" means every one.

    Examples
    --------
    >>> chosen_experiments(["bound", "convergence", "bound"])
    ['bound', 'convergence']
    """
    chosen: dict[str, None] = {}
    for name in names:
        if name == "all":
            chosen |= dict.fromkeys(EXPERIMENTS)
        elif name in EXPERIMENTS:
            chosen[name] = None
        else:
            raise ValueError(f"there is no experiment {name!r}; pass all, or some of {', '.join(EXPERIMENTS)}.")
    return list(chosen)


def perform(name: str, protocol: Protocol, options: Options, phase: Phase = "all") -> None:
    """Run what is missing of an experiment under a protocol."""
    experiment = EXPERIMENTS[name]
    if protocol.name == "published" and not experiment.published:
        options.say(f"{name} is not of the paper: it has no published protocol")
        return
    if options.repeats is None and experiment.repeats is not None:
        options = replace(options, repeats=experiment.repeats)
    steps = (experiment.train if phase != "measure" else ()) + (experiment.measure if phase != "train" else ())
    for step in steps:
        step(protocol, options)
