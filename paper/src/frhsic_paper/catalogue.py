"""The training grids of studies that only train, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch import nn

from frhsic.datasets import Dataset
from frhsic.datasets.synthetic import synthetic_task
from frhsic.fleet import mlp_encoder
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear
from frhsic.penalties import EIPM, GDP, HSIC
from frhsic_paper.grid import FIRST_SEED, Grid, Method, Splits, by_name, loaded
from frhsic_paper.protocol import DATASETS, METHODS, PAPER_WEIGHTS, Protocol

__all__ = ["GRIDS", "OWN", "small_table"]

OWN = "hsic"
"""This library's own penalty, beside the paper's."""

REPEATS = {"published": 1, "corrected": 5}
"""Repeats of the smaller studies, of which the paper has one."""

DIMENSIONS = (2, 8, 32, 64)
"""Widths of the representation whose effect is studied."""

BETWEEN = (0.03, 0.2, 0.7, 2.0, 7.0, 20.0, 70.0, 200.0)
"""Weights between those of the paper."""

KERNELS: dict[str, type[Gaussian] | type[Laplacian] | type[InverseMultiquadric]] = {
    "Gaussian": Gaussian,
    "Laplacian": Laplacian,
    "IMQ": InverseMultiquadric,
}

representation_hsic = partial(
    HSIC, scale_z="published", scale_s="published", head_weight=0.0, representation_weight=1.0
)
"""HSIC of the representation alone at the published bandwidths; kernels and options are still to be given."""


def synthetic(name: str, protocol: Protocol) -> Dataset:
    """Return 5,000 rows of the paper's synthetic task."""
    return synthetic_task(5000, random_state=FIRST_SEED).dataset()


def two_attributes(name: str, protocol: Protocol) -> Dataset:
    """Return a dataset that protects age and hours worked, both taken out of the features."""
    return loaded(name, protocol).protecting("age", "hours-per-week")


def small_table(rows: int, name: str, protocol: Protocol) -> Dataset:
    """Return some rows of a dataset."""
    return loaded(name, protocol).sample(rows, FIRST_SEED)


def _synthetic_encoder(d: int) -> nn.Module:
    return mlp_encoder(d, (64, 64), 8, activation="relu")


def _ablation_encoder(z_dim: int, d: int) -> nn.Module:
    return mlp_encoder(d, 50, z_dim)


def _held_out(protocol: Protocol) -> Splits:
    return Splits(validation=protocol.validation)


def _synthetic(protocol: Protocol) -> Grid:
    return Grid(
        "synthetic",
        ("synthetic",),
        by_name("frhsic", OWN),
        (0.1, 0.5, 1.0, 5.0, 10.0, 50.0),
        REPEATS[protocol.name],
        Splits(),
        epochs=100,
        encoder=_synthetic_encoder,
        z_dim=8,
        source=synthetic,
    )


def _equal_opportunity(protocol: Protocol) -> Grid:
    positive = {
        "published": partial(HSIC.published, condition="positive"),
        "corrected": partial(representation_hsic, Gaussian(1.0), condition="positive"),
    }
    methods = (
        Method("DP", HSIC.published),
        Method("EO", positive[protocol.name]),
        Method.as_estimators_do("head EO", partial(HSIC, condition="positive")),
    )
    return Grid(
        "equal-opportunity",
        ("adult", "compas"),
        methods,
        (0.1, 1.0, 5.0, 10.0, 50.0),
        REPEATS[protocol.name],
        Splits(scaling=protocol.scaling),
    )


def _multi_attribute(protocol: Protocol) -> Grid:
    joint: dict[str, Callable[[], HSIC]] = {
        "published": HSIC.published,
        "corrected": partial(representation_hsic, Gaussian(1.0)),
    }
    methods = (
        Method("Joint", joint[protocol.name]),
        Method("Sum", partial(HSIC.published, attributes="sum")),
        Method.as_estimators_do("head Joint", HSIC),
    )
    return Grid(
        "multi-attribute",
        ("adult",),
        methods,
        (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0),
        REPEATS[protocol.name],
        Splits(scaling=protocol.scaling),
        source=two_attributes,
    )


def _kernel_ablation(protocol: Protocol) -> Grid:
    methods = tuple(
        Method(f"{z} {s}", partial(representation_hsic, KERNELS[z](1.0), KERNELS[s](1.0)))
        for z in KERNELS
        for s in KERNELS
    )
    weights = {"published": (5.0,), "corrected": (0.5, 5.0)}
    return Grid(
        "ablation-kernel",
        ("synthetic",),
        methods,
        weights[protocol.name],
        REPEATS[protocol.name],
        Splits(),
        epochs=80,
        encoder=partial(_ablation_encoder, 8),
        z_dim=8,
        source=synthetic,
    )


def _dimension_ablation(z_dim: int, protocol: Protocol) -> Grid:
    return replace(
        _kernel_ablation(protocol),
        study="ablation-dimension",
        part=str(z_dim),
        methods=by_name("frhsic", z_dim=z_dim),
        encoder=partial(_ablation_encoder, z_dim),
        z_dim=z_dim,
    )


def _frem_anchors(protocol: Protocol) -> Grid:
    methods = tuple(Method(f"{a} anchors", partial(EIPM, anchors=a)) for a in (8, 32, 128, 256))
    return Grid("frem-anchors", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, _held_out(protocol))


def _bandwidths(protocol: Protocol) -> Grid:
    methods = (
        *(Method(f"FREM γ={g}", partial(EIPM, gamma=g)) for g in (0.1, 0.25, 0.5, 1.0)),
        *(Method(f"FREM σ_Z={z}", partial(EIPM, scale_z=z)) for z in (0.5, 2.0)),
        Method("FREM σ_Z median", partial(EIPM, scale_z="published")),
        *(Method(f"Reg-GDP h={h}", partial(GDP, bandwidth=h)) for h in (0.05, 0.1, 0.2, 0.4)),
    )
    return Grid("bandwidth-sensitivity", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, _held_out(protocol))


def _kernels_on_z(protocol: Protocol) -> Grid:
    kernels: dict[str, Kernel] = {
        "Gaussian": Gaussian(1.0),
        "Gaussian, half": Gaussian(0.5),
        "Laplacian": Laplacian(1.0),
        "IMQ": InverseMultiquadric(1.0),
        "linear": Linear(),
        "linear + Gaussian": Linear() + Gaussian(1.0),
    }
    methods = (
        *(
            Method(name, partial(HSIC, kernel, head_weight=0.0, scale_z="standardised"))
            for name, kernel in kernels.items()
        ),
        Method("head alone", partial(HSIC, representation_weight=0.0)),
        Method("head, standardised", partial(HSIC, representation_weight=0.0, standardise_scores=True)),
        Method("head + Gaussian", partial(HSIC, None, representation_weight=1.0, scale_z="normalised")),
        Method("head + linear + Gaussian", partial(HSIC, scale_z="standardised")),
        Method("head + linear + Gaussian, whitened", HSIC),
    )
    return Grid("kernels-on-z", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, _held_out(protocol))


def _untuned(protocol: Protocol) -> Grid:
    """Two datasets on which nothing was tuned, 10,000 rows of each."""
    methods, source = by_name(*METHODS, OWN), partial(small_table, 10_000)
    return Grid("untuned", ("bank", "credit"), methods, PAPER_WEIGHTS, 10, _held_out(protocol), source=source)


def _same_terms(protocol: Protocol) -> Grid:
    """The sweep with weight decay and variance floor of this library's own method for all, to tell them from it."""
    return Grid("same-terms", DATASETS, by_name(*METHODS, OWN), PAPER_WEIGHTS, 10, _held_out(protocol), like=OWN)


def _dense(protocol: Protocol) -> Grid:
    """The sweep with a weight between each two, to see how much of an area is where nine weights happen to lie."""
    weights = tuple(sorted((*PAPER_WEIGHTS, *BETWEEN)))
    return Grid("dense", DATASETS, by_name(*METHODS, OWN), weights, 5, _held_out(protocol))


def _full_batch(protocol: Protocol) -> Grid:
    methods = (*by_name("frhsic", OWN), Method("frem, all anchors", partial(EIPM, anchors=None)))
    return Grid("full-batch", ("crime",), methods, PAPER_WEIGHTS, 5, _held_out(protocol), epochs=1000, batch_size=None)


def _leaky(protocol: Protocol) -> Grid:
    """The sweep with scales that see the test rows: nothing else differs."""
    splits = Splits(validation=protocol.validation, scaling="all")
    return Grid("leaky-scaling", ("crime", "compas"), by_name(*METHODS), PAPER_WEIGHTS, 5, splits)


GRIDS: dict[str, tuple[Callable[[Protocol], Grid], ...]] = {
    "synthetic": (_synthetic,),
    "equal-opportunity": (_equal_opportunity,),
    "multi-attribute": (_multi_attribute,),
    "ablation-kernel": (_kernel_ablation,),
    "ablation-dimension": tuple(partial(_dimension_ablation, d) for d in DIMENSIONS),
    "frem-anchors": (_frem_anchors,),
    "bandwidth-sensitivity": (_bandwidths,),
    "kernels-on-z": (_kernels_on_z,),
    "untuned": (_untuned,),
    "same-terms": (_same_terms,),
    "dense": (_dense,),
    "full-batch": (_full_batch,),
    "leaky-scaling": (_leaky,),
}
"""Grids of a study by its name."""
