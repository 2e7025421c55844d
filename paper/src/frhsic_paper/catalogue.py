"""Every training experiment of the paper, and those that it leaves open, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from torch import nn

from frhsic.datasets import Dataset, Split
from frhsic.datasets.synthetic import synthetic_task
from frhsic.fleet import mlp_encoder
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, Laplacian, Linear
from frhsic.penalties import EIPM, GDP, HSIC
from frhsic_paper.protocol import DATASETS, METHODS, PAPER_WEIGHTS, Protocol
from frhsic_paper.sweep import FIRST_SEED, Grid, Method, by_name, loaded

__all__ = ["GRIDS", "grid_of"]

OWN = "hsic"
"""This library's own penalty, beside the paper's."""

BETWEEN = (0.03, 0.2, 0.7, 2.0, 7.0, 20.0, 70.0, 200.0)
"""Weights between those of the paper."""

KERNELS: dict[str, type[Gaussian] | type[Laplacian] | type[InverseMultiquadric]] = {
    "Gaussian": Gaussian,
    "Laplacian": Laplacian,
    "IMQ": InverseMultiquadric,
}


def whole_table_splits(data: Dataset, protocol: Protocol, repeats: int) -> list[Split]:
    """Return two-way splits whose scales see all rows under the published protocol, as its code did here."""
    return [data.split(FIRST_SEED + r, scaling=protocol.scaling) for r in range(repeats)]


def three_way_splits(data: Dataset, protocol: Protocol, repeats: int) -> list[Split]:
    """Return 70/15/15 splits."""
    return [data.split(FIRST_SEED + r, train=0.7, validation=0.15, scaling=protocol.scaling) for r in range(repeats)]


def leaky_splits(data: Dataset, protocol: Protocol, repeats: int) -> list[Split]:
    """Return the splits of the sweep with scales that see the test rows: nothing else differs."""
    return [data.split(FIRST_SEED + r, validation=protocol.validation, scaling="all") for r in range(repeats)]


def first_rows_train(data: Dataset, protocol: Protocol, repeats: int) -> list[Split]:
    """Return splits of samples drawn anew: the synthetic experiments have one sample, and repeats of its training."""
    return [data.split(FIRST_SEED + r) for r in range(repeats)]


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


def _gaussian_hsic(kernel_z: Kernel, kernel_s: Kernel | None = None) -> HSIC:
    return HSIC(kernel_z, kernel_s, scale_z="published", scale_s="published", head_weight=0.0)


def _equal_opportunity(condition: str, protocol: Protocol) -> HSIC:
    if condition == "all":
        return HSIC.published()
    if protocol.name == "published":
        return HSIC.published(condition="positive")
    return HSIC(
        Gaussian(1.0),
        scale_z="published",
        scale_s="published",
        head_weight=0.0,
        condition="positive",
    )


def grid_of(name: str, protocol: Protocol) -> Grid:
    """Return the grid of an experiment under a protocol."""
    if name not in GRIDS:
        raise ValueError(f"no experiment trains under the name {name!r}; they are {', '.join(GRIDS)}.")
    return GRIDS[name](protocol)


def _tradeoff(protocol: Protocol) -> Grid:
    if protocol.name == "published":
        return Grid("tradeoff", DATASETS, by_name(*METHODS), PAPER_WEIGHTS, 5)
    return Grid("tradeoff", DATASETS, by_name(*METHODS, OWN), PAPER_WEIGHTS, 20)


def _transfer(protocol: Protocol) -> Grid:
    """λ = 10 on every dataset, as the published runs were, and 100, as the text says of Crime."""
    methods = by_name("frhsic", "reg-gdp", "frem", "adv", OWN)
    return Grid("transfer", ("adult", "crime", "compas"), methods, (10.0, 100.0), 1, splits=whole_table_splits)


def _synthetic(protocol: Protocol) -> Grid:
    repeats = 1 if protocol.name == "published" else 5
    weights = (0.1, 0.5, 1.0, 5.0, 10.0, 50.0)
    return Grid(
        "synthetic",
        ("synthetic",),
        by_name("frhsic", OWN),
        weights,
        repeats,
        epochs=100,
        encoder=_synthetic_encoder,
        z_dim=8,
        source=synthetic,
        splits=first_rows_train,
    )


def _equal_opportunity_grid(protocol: Protocol) -> Grid:
    methods = (
        Method("DP", partial(_equal_opportunity, "all", protocol)),
        Method("EO", partial(_equal_opportunity, "positive", protocol)),
        Method.as_estimators_do("head EO", partial(HSIC, condition="positive")),
    )
    repeats = 1 if protocol.name == "published" else 5
    return Grid(
        "equal-opportunity",
        ("adult", "compas"),
        methods,
        (0.1, 1.0, 5.0, 10.0, 50.0),
        repeats,
        splits=whole_table_splits,
    )


def _multi_attribute(protocol: Protocol) -> Grid:
    published = protocol.name == "published"
    joint = (
        partial(HSIC.published)
        if published
        else partial(HSIC, Gaussian(1.0), scale_z="published", scale_s="published", head_weight=0.0)
    )
    methods = (
        Method("Joint", joint),
        Method("Sum", partial(HSIC.published, attributes="sum")),
        Method.as_estimators_do("head Joint", HSIC),
    )
    return Grid(
        "multi-attribute",
        ("adult",),
        methods,
        (0.1, 1.0, 5.0, 10.0, 50.0, 100.0, 500.0),
        1 if published else 5,
        source=two_attributes,
        splits=whole_table_splits,
    )


def _bound(protocol: Protocol) -> Grid:
    return Grid(
        "bound",
        ("adult", "crime"),
        by_name("frhsic", OWN),
        (0.1, 1.0, 10.0, 100.0, 1000.0),
        1,
        source=partial(small_table, 1500),
        splits=whole_table_splits,
    )


def _weight_selection(protocol: Protocol) -> Grid:
    return Grid(
        "weight-selection",
        ("adult", "crime", "compas"),
        by_name("frhsic"),
        PAPER_WEIGHTS,
        3,
        splits=three_way_splits,
    )


def _kernel_ablation(protocol: Protocol) -> Grid:
    methods = tuple(
        Method(f"{z} {s}", partial(_gaussian_hsic, KERNELS[z](1.0), KERNELS[s](1.0))) for z in KERNELS for s in KERNELS
    )
    repeats = 1 if protocol.name == "published" else 5
    return Grid(
        "ablation-kernel",
        ("synthetic",),
        methods,
        (5.0,) if protocol.name == "published" else (0.5, 5.0),
        repeats,
        epochs=80,
        encoder=partial(_ablation_encoder, 8),
        z_dim=8,
        source=synthetic,
        splits=first_rows_train,
    )


def _dimension_ablation(z_dim: int, protocol: Protocol) -> Grid:
    return replace(
        _kernel_ablation(protocol),
        name=f"ablation-dimension-{z_dim}",
        methods=by_name("frhsic", z_dim=z_dim),
        encoder=partial(_ablation_encoder, z_dim),
        z_dim=z_dim,
    )


def _frem_anchors(protocol: Protocol) -> Grid:
    methods = tuple(Method(f"{a} anchors", partial(EIPM, anchors=a)) for a in (8, 32, 128, 256))
    return Grid("frem-anchors", ("crime", "compas"), methods, PAPER_WEIGHTS, 5)


def _bandwidths(protocol: Protocol) -> Grid:
    methods = (
        *(Method(f"FREM γ={g}", partial(EIPM, gamma=g)) for g in (0.1, 0.25, 0.5, 1.0)),
        *(Method(f"FREM σ_Z={z}", partial(EIPM, scale_z=z)) for z in (0.5, 2.0)),
        Method("FREM σ_Z median", partial(EIPM, scale_z="published")),
        *(Method(f"Reg-GDP h={h}", partial(GDP, bandwidth=h)) for h in (0.05, 0.1, 0.2, 0.4)),
    )
    return Grid("bandwidth-sensitivity", ("crime", "compas"), methods, PAPER_WEIGHTS, 5)


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
            Method(name, partial(HSIC, 10 * kernel, head_weight=0.0, scale_z="standardized"))
            for name, kernel in kernels.items()
        ),
        Method("head alone", partial(HSIC, 0 * Linear())),
        Method("head, standardised", partial(HSIC, 0 * Linear(), standardize_scores=True)),
        Method("head + Gaussian", partial(HSIC, Gaussian(1.0), scale_z="normalized")),
        Method("head + linear + Gaussian", partial(HSIC, scale_z="standardized")),
        Method("head + linear + Gaussian, whitened", HSIC),
    )
    return Grid("kernels-on-z", ("crime", "compas"), methods, PAPER_WEIGHTS, 5)


def _untuned(protocol: Protocol) -> Grid:
    """Two datasets on which nothing was tuned, 10,000 rows of each."""
    return Grid(
        "untuned", ("bank", "credit"), by_name(*METHODS, OWN), PAPER_WEIGHTS, 10, source=partial(small_table, 10_000)
    )


def _same_terms(protocol: Protocol) -> Grid:
    """The sweep with weight decay and variance floor of this library's own method for all, to tell them from it."""
    return Grid("same-terms", DATASETS, by_name(*METHODS, OWN), PAPER_WEIGHTS, 10, like=OWN)


def _dense(protocol: Protocol) -> Grid:
    """The sweep with a weight between each two, to see how much of an area is where nine weights happen to lie."""
    return Grid("dense", DATASETS, by_name(*METHODS, OWN), tuple(sorted((*PAPER_WEIGHTS, *BETWEEN))), 5)


def _full_batch(protocol: Protocol) -> Grid:
    methods = (*by_name("frhsic", OWN), Method("frem, all anchors", partial(EIPM, anchors=None)))
    return Grid("full-batch", ("crime",), methods, PAPER_WEIGHTS, 5, epochs=1000, batch_size=None)


def _leaky(protocol: Protocol) -> Grid:
    return Grid("leaky-scaling", ("crime", "compas"), by_name(*METHODS), PAPER_WEIGHTS, 5, splits=leaky_splits)


GRIDS: dict[str, Callable[[Protocol], Grid]] = {
    "tradeoff": _tradeoff,
    "transfer": _transfer,
    "synthetic": _synthetic,
    "equal-opportunity": _equal_opportunity_grid,
    "multi-attribute": _multi_attribute,
    "bound": _bound,
    "weight-selection": _weight_selection,
    "ablation-kernel": _kernel_ablation,
    **{f"ablation-dimension-{d}": partial(_dimension_ablation, d) for d in (2, 8, 32, 64)},
    "frem-anchors": _frem_anchors,
    "bandwidth-sensitivity": _bandwidths,
    "kernels-on-z": _kernels_on_z,
    "untuned": _untuned,
    "same-terms": _same_terms,
    "dense": _dense,
    "full-batch": _full_batch,
    "leaky-scaling": _leaky,
}
