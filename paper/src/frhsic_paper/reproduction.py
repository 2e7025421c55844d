"""Every study by its name: what it trains, and what is measured afterwards.

Training is best done on a GPU; measuring (fresh heads, tests, bounds, closed forms) is done on a CPU, at any time
after. Both add to the same records and go on where they were cut off.
"""

from __future__ import annotations

from frhsic_paper import (
    bound_measure,
    convergence,
    high_dimensional,
    leak_measure,
    runtime,
    spectrum,
    tradeoff,
    transfer_measure,
    weight_selection_measure,
)
from frhsic_paper.catalogue import GRIDS
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDIES"]

SWEEP = (tradeoff.TRAIN,)


def _trained(name: str, about: str, *, published: bool = True) -> Study:
    return Study(name, about, train=tuple(Training(grid) for grid in GRIDS[name]), published=published)


STUDIES: tuple[Study, ...] = (
    Study("convergence", "figure: convergence of HSIC and EIPM", measure=(convergence.MEASURE,)),
    # before the studies that read fewer repeats of the same sweep: so "all" trains it once
    Study("significance", "paired comparison over 20 splits (the sweep of tradeoff, longer)", train=SWEEP),
    Study("tradeoff", "table: matched performance; figures: Pareto fronts", train=SWEEP, repeats=5),
    Study("pareto", "figures: Pareto fronts (the sweep of tradeoff)", train=SWEEP, repeats=5),
    Study("pareto-summary", "table: Pareto summary with dCor (the sweep of tradeoff)", train=SWEEP, repeats=5),
    Study("mutual-information", "figure: mutual information (the sweep of tradeoff)", train=SWEEP, repeats=5),
    Study("metrics-side-by-side", "GDP by every convention (the sweep of tradeoff)", train=SWEEP, repeats=5),
    Study(
        "leak",
        "what is left of S in Z: probes, fresh heads, the worst head",
        train=SWEEP,
        measure=(leak_measure.MEASURE,),
        repeats=5,
        published=False,
    ),
    Study(
        "transfer",
        "table and figure: transfer to fresh heads",
        train=(transfer_measure.TRAIN,),
        measure=(transfer_measure.MEASURE,),
    ),
    Study("runtime", "figure: seconds of an epoch", train=(runtime.TRAIN,)),
    _trained("synthetic", "figure: synthetic validation"),
    _trained("equal-opportunity", "table: Equal Opportunity"),
    _trained("multi-attribute", "table and figure: two attributes"),
    Study("bound", "figure: tightness of the bound", train=(bound_measure.TRAIN,), measure=(bound_measure.MEASURE,)),
    Study("bandwidth-scaling", "figure: smallest eigenvalue and bandwidth", measure=(spectrum.MEASURE,)),
    Study(
        "high-dimensional",
        "figure: several attributes, time and error",
        train=(high_dimensional.TRAIN,),
        measure=(high_dimensional.MEASURE,),
    ),
    _trained("ablation-kernel", "table: kernels"),
    _trained("ablation-dimension", "table: width of Z"),
    Study(
        "weight-selection",
        "figure: choosing the weight",
        train=(weight_selection_measure.TRAIN,),
        measure=(weight_selection_measure.MEASURE,),
    ),
    _trained("frem-anchors", "FREM: number of anchors", published=False),
    _trained("bandwidth-sensitivity", "FREM, Reg-GDP: bandwidths", published=False),
    _trained("kernels-on-z", "HSIC: every kernel on Z", published=False),
    _trained("untuned", "two datasets on which nothing was tuned", published=False),
    _trained("same-terms", "every method with weight decay and variance floor of ours", published=False),
    _trained("dense", "the sweep on a grid twice as dense", published=False),
    _trained("full-batch", "HSIC and FREM on all rows at once", published=False),
    _trained("leaky-scaling", "scales that see the test rows"),
)
"""Studies in the order in which "all" runs them."""
