"""The trade-off sweep: every method, weight and split of a dataset, one fleet for each method."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from frhsic.datasets import Dataset, Split, load_dataset
from frhsic.estimators import penalty_named
from frhsic.experiments import records
from frhsic.experiments.measures import measured
from frhsic.experiments.protocol import BASELINE, Protocol
from frhsic.experiments.records import Record, Unit
from frhsic.fleet import Fleet, Member, TrainingData, train

__all__ = ["FIRST_SEED", "Grid", "run", "splits_of", "training_data"]

FIRST_SEED = 42
"""Seed of the first repeat; the published splits are 42 to 46."""

REPRESENTATION = 50

Watch = Callable[[str], None]


@dataclass(frozen=True)
class Grid:
    """Datasets × methods × weights × repeats, under one protocol."""

    name: str
    datasets: tuple[str, ...]
    methods: tuple[str, ...]
    weights: tuple[float, ...]
    repeats: int
    epochs: int = 200

    def units(self) -> list[Unit]:
        """What is trained together: a dataset and a method, the unpenalised one first."""
        return [(dataset, method) for dataset in self.datasets for method in (BASELINE, *self.methods)]

    def weights_of(self, method: str) -> tuple[float, ...]:
        """Weights of a method: the unpenalised one has a single one, 0."""
        return (0.0,) if method == BASELINE else self.weights


def run(
    grid: Grid,
    protocol: Protocol,
    path: Path,
    *,
    device: str = "auto",
    watch: Watch | None = None,
    load: Callable[[str, Protocol], Dataset] | None = None,
    inspect: Callable[[str, str, Fleet, list[Split]], None] | None = None,
) -> list[Record]:
    """Train what is not yet in the file, append it, and return all records of the grid.

    `inspect` is called with dataset, method, fleet and splits when a fleet is trained, for what a record cannot hold.
    """
    load = _loaded if load is None else load
    sizes = {unit: grid.repeats * len(grid.weights_of(unit[1])) for unit in grid.units()}
    open_units = records.resume(path, grid.units(), _unit, sizes)
    ready: tuple[str, Dataset, list[Split], TrainingData] | None = None
    for dataset, method in open_units:
        if ready is None or ready[0] != dataset:
            data = load(dataset, protocol)
            splits = splits_of(data, protocol, grid.repeats)
            ready = (dataset, data, splits, training_data(splits))
        _, data, splits, rows = ready
        started = time.perf_counter()
        weights = grid.weights_of(method)
        members = [Member(weight, FIRST_SEED + r, r) for r in range(grid.repeats) for weight in weights]
        fleet = train(
            rows,
            members,
            task=data.task,
            penalty=penalty_named(method, z_dim=REPRESENTATION),
            epochs=grid.epochs,
            device=device,
        )
        results = measured(fleet, splits, data.task)
        seconds = time.perf_counter() - started
        records.append(path, _records(protocol, dataset, method, fleet, results, fleet.seconds))
        if inspect is not None:
            inspect(dataset, method, fleet, splits)
        if watch is not None:
            watch(f"{protocol.name} {dataset} {method}: {len(members)} models in {seconds:.1f} s")
    wanted = set(grid.units())
    return [record for record in records.read(path) if _unit(record) in wanted]


def splits_of(data: Dataset, protocol: Protocol, repeats: int) -> list[Split]:
    """Return the splits of the repeats, those of the published seeds first."""
    return [data.split(FIRST_SEED + r, validation=protocol.validation) for r in range(repeats)]


def training_data(splits: Sequence[Split]) -> TrainingData:
    """Return the training rows of some splits, stacked."""
    return TrainingData.stacked([TrainingData.of(*_of(split)) for split in splits])


def _of(split: Split) -> tuple[object, object, object]:
    x, y, s = split.train
    return x, y, s


def _loaded(name: str, protocol: Protocol) -> Dataset:
    return load_dataset(name, variant=protocol.variant)


def _unit(record: Record) -> Unit:
    return (record["dataset"], record["method"])


def _records(
    protocol: Protocol, dataset: str, method: str, fleet: Fleet, results: list[dict[str, float]], seconds: float
) -> list[Record]:
    stopped = fleet.diverged.tolist()
    return [
        {
            "protocol": protocol.name,
            "dataset": dataset,
            "method": method,
            "weight": member.weight,
            "repeat": member.split,
            "diverged": stopped[index] >= 0,
            **results[index],
            "seconds": seconds,
        }
        for index, member in enumerate(fleet.members)
    ]
