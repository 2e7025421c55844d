"""A grid of models: datasets × methods × weights × repeats, one fleet for each dataset and method."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from joblib import Parallel, delayed
from torch import nn

from frhsic.datasets import Dataset, Split, load_dataset
from frhsic.estimators.names import penalty_named
from frhsic.fleet import Fleet, Member, Recipe, Task, TrainingData, affine_head, train
from frhsic.penalties import Penalty
from frhsic_paper import records
from frhsic_paper.measures import measured
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record, Unit

__all__ = ["FIRST_SEED", "Grid", "Keep", "Method", "by_name", "held_out_splits", "loaded", "run", "training_data"]

FIRST_SEED = 42
"""Seed of the first repeat; the published splits are 42 to 46."""

REPRESENTATION = 50

Watch = Callable[[str], None]
Keep = Callable[[str, str, Fleet, Sequence[Split], list[Record]], None]


@dataclass(frozen=True)
class Method:
    """A penalty under a name, and how it is trained.

    `weights` stand in for those of the grid; `weight_decay` and `variance_floor` are arguments of training.
    """

    name: str
    make: Callable[[], Penalty]
    weights: tuple[float, ...] | None = None
    weight_decay: float = 0.0
    variance_floor: float = 0.0

    @classmethod
    def as_estimators_do(cls, name: str, make: Callable[[], Penalty]) -> Method:
        """Return a method that trains as an estimator with that penalty does."""
        penalty = make()
        decay, floor = penalty.default_weight_decay, penalty.default_variance_floor
        return cls(name, make, weight_decay=decay, variance_floor=floor)


def by_name(*names: str, z_dim: int = REPRESENTATION) -> tuple[Method, ...]:
    """Return methods by the names of the estimators, trained as they are there."""
    return tuple(Method.as_estimators_do(name, partial(penalty_named, name, z_dim=z_dim)) for name in names)


def loaded(name: str, protocol: Protocol) -> Dataset:
    """Load a dataset in the protocol's variant."""
    return load_dataset(name, variant=protocol.variant)


def held_out_splits(data: Dataset, protocol: Protocol, repeats: int) -> list[Split]:
    """Return the splits of the repeats, those of the published seeds first, with the protocol's validation rows."""
    return [data.split(FIRST_SEED + r, validation=protocol.validation) for r in range(repeats)]


@dataclass(frozen=True)
class Grid:
    """Models to train under one protocol, and how.

    Attributes
    ----------
    name, datasets, methods, weights, repeats
        What is crossed with what; the unpenalised model of each dataset comes first.
    epochs, batch_size
        Of the training; a batch size of None takes all training rows at once.
    encoder
        Makes the encoder from the number of features; None for the paper's.
    like
        The name of a method whose weight decay and variance floor all have, the unpenalised one included (which has
        nothing to cut); None leaves each its own.
    source, splits
        Where a dataset comes from, and how it is split.
    """

    name: str
    datasets: tuple[str, ...]
    methods: tuple[Method, ...]
    weights: tuple[float, ...]
    repeats: int
    epochs: int = 200
    batch_size: int | None = 256
    encoder: Callable[[int], nn.Module] | None = None
    z_dim: int = REPRESENTATION
    like: str | None = None
    source: Callable[[str, Protocol], Dataset] = loaded
    splits: Callable[[Dataset, Protocol, int], list[Split]] = held_out_splits

    def units(self) -> list[Unit]:
        """What is trained together: a dataset and a method, the unpenalised one first."""
        names = (BASELINE, *(method.name for method in self.methods))
        return [(self.name, dataset, name) for dataset in self.datasets for name in names]

    def method(self, name: str) -> Method:
        """Return the method of a name, the unpenalised one included."""
        if name == BASELINE:
            return Method(BASELINE, partial(penalty_named, BASELINE), (0.0,))
        return next(method for method in self.methods if method.name == name)

    def terms_of(self, name: str) -> dict[str, float]:
        """Weight decay and variance floor of a method."""
        method = self.method(self.like or name)
        return {"weight_decay": method.weight_decay, "variance_floor": method.variance_floor}

    def is_stale(self, record: Record) -> bool:
        """Return whether a record is of this grid, but of a model with another weight decay or variance floor."""
        return _unit(record) in self.units() and any(
            record.get(term, 0.0) != value for term, value in self.terms_of(record["method"]).items()
        )

    def weights_of(self, name: str) -> tuple[float, ...]:
        """Weights of a method: its own, or the grid's."""
        own = self.method(name).weights
        return self.weights if own is None else own


def run(
    grid: Grid,
    protocol: Protocol,
    path: Path,
    *,
    device: str = "auto",
    watch: Watch | None = None,
    keep: Keep | None = None,
    workers: int = 1,
) -> list[Record]:
    """Train what is not yet in the file, append it, and return all records of the grid.

    `keep` is called with dataset, method, fleet, splits and records when a fleet is trained, before its records are
    written, for what a record cannot hold. With several `workers`, which pays on a CPU, fleets are trained in as many
    processes; records come in the same order.
    """
    before = records.read(path)
    records.keep_complete(path, before, [r for r in before if not grid.is_stale(r)])
    sizes = {unit: grid.repeats * len(grid.weights_of(unit[2])) for unit in grid.units()}
    missing = records.resume(path, grid.units(), _unit, sizes)
    for dataset, group in groupby(missing, key=itemgetter(1)):
        data = grid.source(dataset, protocol)
        splits = grid.splits(data, protocol, grid.repeats)
        names = [unit[2] for unit in group]
        started = time.perf_counter()
        for name, (fleet, results) in zip(names, _fleets(grid, names, data, splits, device, workers)):
            found = _records(grid, protocol, dataset, name, fleet, results)
            if keep is not None:
                keep(dataset, name, fleet, splits, found)
            records.append(path, found)
            if watch is not None:
                seconds = time.perf_counter() - started
                watch(f"{protocol.name} {grid.name} {dataset} {name}: {len(fleet)} models in {seconds:.1f} s")
            started = time.perf_counter()
    wanted = set(grid.units())
    return [record for record in records.read(path) if _unit(record) in wanted]


def _fleets(
    grid: Grid, names: Sequence[str], data: Dataset, splits: Sequence[Split], device: str, workers: int
) -> Iterator[tuple[Fleet, list[dict[str, float]]]]:
    """Return the trained fleets of some methods on one dataset, with what was measured on them, in this order."""
    rows = training_data(splits)
    if workers == 1 or len(names) == 1:
        for name in names:
            yield _trained_and_measured(grid, grid.method(name), data.task, rows, splits, device)
        return
    yield from Parallel(n_jobs=workers, return_as="generator", pre_dispatch=workers)(
        delayed(_trained_and_measured)(grid, grid.method(name), data.task, rows, splits, device) for name in names
    )


def _trained_and_measured(
    grid: Grid, method: Method, task: Task, rows: TrainingData, splits: Sequence[Split], device: str
) -> tuple[Fleet, list[dict[str, float]]]:
    fleet = _trained(grid, method, task, rows, device)
    return fleet, measured(fleet, splits, task)


def training_data(splits: Sequence[Split]) -> TrainingData:
    """Return the training rows of some splits, stacked."""
    return TrainingData.stacked([TrainingData.of(s.train.x, s.train.y, s.train.s) for s in splits])


def _trained(grid: Grid, method: Method, task: Task, rows: TrainingData, device: str) -> Fleet:
    encoder = None if grid.encoder is None else partial(grid.encoder, rows.columns)
    terms = grid.terms_of(method.name)
    recipe = Recipe(
        task,
        method.make,
        encoder,
        None if encoder is None else partial(affine_head, grid.z_dim, 1),
        epochs=grid.epochs,
        batch_size=rows.rows if grid.batch_size is None else grid.batch_size,
        weight_decay=terms["weight_decay"],
        variance_floor=terms["variance_floor"],
    )
    weights = grid.weights_of(method.name)
    members = [Member(weight, FIRST_SEED + r, r) for r in range(grid.repeats) for weight in weights]
    return train(rows, members, recipe, device=device)


def _unit(record: Record) -> Unit:
    return (record["experiment"], record["dataset"], record["method"])


def _records(
    grid: Grid, protocol: Protocol, dataset: str, method: str, fleet: Fleet, results: list[dict[str, float]]
) -> list[Record]:
    stopped = fleet.diverged.tolist()
    return [
        {
            "experiment": grid.name,
            "protocol": protocol.name,
            "dataset": dataset,
            "method": method,
            "weight": member.weight,
            "repeat": member.split,
            **{term: value for term, value in grid.terms_of(method).items() if value},
            "diverged": stopped[index] >= 0,
            **results[index],
            "seconds": fleet.seconds,
        }
        for index, member in enumerate(fleet.members)
    ]
