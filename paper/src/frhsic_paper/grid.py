"""A grid of models: datasets × methods × weights × repeats, with one fleet for each dataset and
method.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Literal

from joblib import Parallel, delayed
from torch import nn

from frhsic.datasets import Dataset
from frhsic.datasets.dataset import Task
from frhsic.kernels import Gaussian, Linear
from frhsic.penalties import HSIC, Penalty, make_penalty
from frhsic.training import MLP, Fleet, Member, Recipe, TrainingData, train
from frhsic_paper import records
from frhsic_paper.baselines import (
    CorrelationAdversary,
    PairwiseMMD,
    ScaledEIPM,
    UnbiasedCorrelation,
)
from frhsic_paper.code import code_hash
from frhsic_paper.datasets import load_variant
from frhsic_paper.measures import measure_models
from frhsic_paper.options import Options
from frhsic_paper.protocol import BASELINE, OWN, PUBLISHED, Protocol
from frhsic_paper.records import Record, Unit, Wanted
from frhsic_paper.splits import Split, split_dataset

FIRST_SEED = 42
"""Seed of the first repeat; the published splits are 42 to 46."""

REPRESENTATION = 50

BATCH_SIZE = 256

OWN_KERNEL = 10 * (Linear() + Gaussian(1.0))
"""Kernel on Z of the library's own penalty, as used in the records."""

OWN_FLOOR = 0.01
"""Variance floor of that penalty, as used in the records; the library's default is now higher."""

SMALL_REPEATS = {"published": 3, "corrected": 5}
"""Number of repeats of the smaller studies, for which the paper has one; a verdict requires at
least three.
"""

representation_hsic = partial(HSIC, scale_z="published", scale_s="published", head_weight=0.0)
"""HSIC of only the representation, with the published bandwidths; kernels and options can be
added.
"""

BY = ("part", "dataset", "method")
"""Columns that identify the models trained together."""


@dataclass(frozen=True)
class Method:
    """A named penalty, and how it is trained.

    `weights` replaces the grid's weights; `weight_decay` and `variance_floor` are arguments of
    training.
    """

    name: str
    make: Callable[[], Penalty]
    weights: tuple[float, ...] | None = None
    weight_decay: float = 0.0
    variance_floor: float = 0.0

    @classmethod
    def as_estimators_do(cls, name: str, make: Callable[[], Penalty]) -> Method:
        """Return a method that is trained like an estimator with the same penalty."""
        penalty = make()
        decay, floor = penalty.default_weight_decay, min(penalty.default_variance_floor, OWN_FLOOR)
        return cls(name, make, weight_decay=decay, variance_floor=floor)


def methods_by_name(
    *names: str, z_dim: int = REPRESENTATION, protocol: Protocol = PUBLISHED
) -> tuple[Method, ...]:
    """Return methods by the names that the estimators use, trained as in the estimators.

    The paper's text describes some baselines differently from its reference code: the corrected
    protocol follows the text, the published one the code.

    | | text | reference code, ``frhsic.penalties`` |
    |---|---|---|
    | FREM | Z scaled to [0, 1] | Z as it is |
    | MMD | mean squared MMD of pairs of ten bins of equal width | sum of squared mean differences,
    ten quantile bins |
    | dCor | unbiased distance correlation | squared distance covariance, biased |
    | ADV | correlation of an adversary's one output with S | minus its squared error, which has no
    lower bound |

    Examples
    --------
    >>> from frhsic_paper.protocol import CORRECTED
    >>> [
    ...     type(method.make()).__name__
    ...     for method in methods_by_name("frem", "mmd", "dcor", "adv", protocol=CORRECTED)
    ... ]
    ['ScaledEIPM', 'PairwiseMMD', 'UnbiasedCorrelation', 'CorrelationAdversary']
    """
    own: dict[str, Callable[[], Penalty]] = {OWN: partial(HSIC, OWN_KERNEL)}
    if not protocol.printed:
        own |= {
            "frem": ScaledEIPM,
            "mmd": PairwiseMMD,
            "dcor": UnbiasedCorrelation,
            "adv": partial(CorrelationAdversary, z_dim),
        }
    makers = ((name, own.get(name, partial(make_penalty, name, z_dim=z_dim))) for name in names)
    return tuple(Method.as_estimators_do(name, make) for name, make in makers)


def small_table(rows: int, name: str, protocol: Protocol) -> Dataset:
    """Return a sample of the rows of a dataset."""
    return load_variant(name, protocol).sample(rows, FIRST_SEED)


@dataclass(frozen=True)
class Splits:
    """How the rows of a dataset are split, with one seed for each repeat, starting with the
    published seeds.

    See :func:`frhsic_paper.splits.split_dataset` for the arguments.
    """

    train: float | None = None
    validation: float = 0.0
    scaling: Literal["train", "all"] = "train"

    def make(self, data: Dataset, repeats: int) -> list[Split]:
        """Return the splits for the first repeats."""
        return [
            split_dataset(
                data,
                FIRST_SEED + r,
                train=self.train,
                validation=self.validation,
                scaling=self.scaling,
            )
            for r in range(repeats)
        ]


def held_out(protocol: Protocol) -> Splits:
    """Return splits with the validation rows of a protocol."""
    return Splits(validation=protocol.validation)


@dataclass(frozen=True)
class Grid:
    """The models to train under one protocol, and their training.

    Attributes
    ----------
    study, datasets, methods, weights, repeats
        The study, and the factors that are crossed; the unpenalized model comes first for each
        dataset.
    splits
        How the datasets are split.
    epochs
        Number of training epochs.
    encoder
        Creates the encoder, given the number of features; None uses the paper's encoder.
    z_dim
        Width of the representation.
    source
        Function that loads a dataset.
    part
        Part of the study's records.
    """

    study: str
    datasets: tuple[str, ...]
    methods: tuple[Method, ...]
    weights: tuple[float, ...]
    repeats: int
    splits: Splits
    epochs: int = 200
    encoder: Callable[[int], nn.Module] | None = None
    z_dim: int = REPRESENTATION
    source: Callable[[str, Protocol], Dataset] = load_variant
    part: str = "models"

    def restrict(self, options: Options) -> Grid:
        """Return the grid, restricted by the options."""
        return replace(
            self,
            datasets=options.chosen_datasets(self.datasets),
            epochs=self.epochs if options.epochs is None else options.epochs,
            repeats=options.limit_repeats(self.repeats),
        )

    def units(self, protocol: Protocol) -> dict[Unit, Wanted]:
        """Return the pairs of dataset and method whose models are trained together, each with its
        number of records.
        """
        names = (BASELINE, *(method.name for method in self.methods))
        return {
            (self.part, dataset, name): Wanted(
                self.repeats * len(self.method_weights(name)),
                self.depends_on(dataset, name, protocol),
            )
            for dataset in self.datasets
            for name in names
        }

    def method(self, name: str) -> Method:
        """Return the method with a given name, which may be the unpenalized one."""
        if name == BASELINE:
            return Method(BASELINE, partial(make_penalty, BASELINE), (0.0,))
        return next(method for method in self.methods if method.name == name)

    def terms_of(self, name: str) -> dict[str, float]:
        """Return the weight decay and variance floor of a method."""
        method = self.method(name)
        return {"weight_decay": method.weight_decay, "variance_floor": method.variance_floor}

    def method_weights(self, name: str) -> tuple[float, ...]:
        """Return the weights of a method: its own, or the grid's."""
        own = self.method(name).weights
        return self.weights if own is None else own

    def depends_on(self, dataset: str, method: str, protocol: Protocol) -> str:
        """Return the hash of the settings and code on which the models of a dataset and a method
        depend, except for the number of repeats.
        """
        penalty = self.method(method).make()
        return records.digest(
            protocol.name,
            (dataset, protocol.variant, self.source, self.splits),
            (type(penalty).__name__, penalty.arguments()),
            self.method_weights(method),
            self.terms_of(method),
            (self.epochs, BATCH_SIZE),
            (None if self.encoder is None else repr(self.encoder(1)), self.z_dim),
            code_hash(_train_and_measure, type(penalty), self.source),
        )


@dataclass(frozen=True)
class Trained:
    """A trained fleet with the splits and records of its models."""

    grid: Grid
    protocol: Protocol
    dataset: str
    method: str
    fleet: Fleet
    splits: Sequence[Split]
    records: list[Record]


Keep = Callable[[Trained, Options], None]
"""Saves what records can't contain about a trained fleet, before the records are written."""


class Reporter:
    """Writes the progress of training to a log, at most every `SECONDS` seconds, possibly from
    another process.
    """

    SECONDS = 20.0

    def __init__(self, log: Path | None, name: str) -> None:
        self.options, self.name = Options(Path(), log=log), name
        self.started = self.last = time.monotonic()

    def __call__(self, done: float) -> None:
        """Write a line, unless the last one is too recent."""
        now = time.monotonic()
        if now >= self.last + self.SECONDS:
            self.last, left = now, (now - self.started) * (1 - done) / done
            self.options.note(f"{self.name}: {done:.0%} trained, {left:.0f} s left")


def run(
    grid: Grid, protocol: Protocol, options: Options, keep: Sequence[Keep] = ()
) -> list[Record]:
    """Train the models that are not in the records yet, add their records, and return all records
    of the grid.

    With several workers, fleets are trained in as many processes, which is faster on a CPU; the
    order of the records is the same.
    """
    grid, path = grid.restrict(options), options.file(grid.study, protocol)
    units = grid.units(protocol)
    missing = records.missing_units(path, BY, units)
    done = len(units) - len(missing)
    for dataset, group in groupby(missing, key=itemgetter(1)):
        data = grid.source(dataset, protocol)
        splits = grid.splits.make(data, grid.repeats)
        names = [name for _, _, name in group]
        started = time.perf_counter()
        for name, (fleet, results) in zip(names, _fleets(grid, names, data, splits, options)):
            depends_on = units[grid.part, dataset, name].depends_on
            shared = {
                **records.stamp(grid.part, protocol.name, fleet.device.type, depends_on),
                "dataset": dataset,
                "method": name,
                "task": data.task,
                **{term: value for term, value in grid.terms_of(name).items() if value},
            }
            trained = Trained(
                grid, protocol, dataset, name, fleet, splits, _records(shared, fleet, results)
            )
            for keeper in keep:
                keeper(trained, options)
            records.put(path, BY, trained.records)
            seconds, done = time.perf_counter() - started, done + 1
            told = (
                f"{protocol.name} {grid.study} {dataset} {name}: {len(fleet)} models in"
                f" {seconds:.1f} s"
            )
            options.say(f"{told} ({done} of {len(units)} fleets)")
            started = time.perf_counter()
    return [record for record in records.read(path) if records.record_unit(record, BY) in units]


def _fleets(
    grid: Grid, names: Sequence[str], data: Dataset, splits: Sequence[Split], options: Options
) -> Iterator[tuple[Fleet, list[dict[str, float]]]]:
    """Train the fleets of the given methods on one dataset, and yield them with their measures in
    the order of the methods.
    """
    rows = TrainingData.stacked([TrainingData.of(s.train.x, s.train.y, s.train.s) for s in splits])
    workers = min(options.trainers or options.workers, len(names))
    yield from Parallel(n_jobs=workers, return_as="generator", pre_dispatch=workers)(
        # everything is part of the task: arguments that joblib scatters over a Dask cluster are
        # lost with a worker
        delayed(
            partial(
                _train_and_measure,
                grid,
                grid.method(name),
                data.task,
                rows,
                splits,
                options.device,
                Reporter(options.log, f"{data.name} {name}"),
            )
        )()
        for name in names
    )


def _train_and_measure(
    grid: Grid,
    method: Method,
    task: Task,
    rows: TrainingData,
    splits: Sequence[Split],
    device: str,
    progress: Reporter,
) -> tuple[Fleet, list[dict[str, float]]]:
    recipe = Recipe(
        task,
        method.make,
        MLP() if grid.encoder is None else grid.encoder,
        epochs=grid.epochs,
        batch_size=BATCH_SIZE,
        weight_decay=method.weight_decay,
        variance_floor=method.variance_floor,
    )
    weights = grid.method_weights(method.name)
    members = [Member(weight, FIRST_SEED + r, r) for r in range(grid.repeats) for weight in weights]
    fleet = train(rows, members, recipe, device=device, progress=progress)
    return fleet, measure_models(fleet, splits, task)


def _records(shared: Record, fleet: Fleet, results: list[dict[str, float]]) -> list[Record]:
    return [
        {
            **shared,
            "weight": member.penalty_weight,
            "repeat": member.split,
            "epochs": epochs,
            "diverged": stopped >= 0,
            **columns,
            "seconds": fleet.seconds,
        }
        for member, epochs, stopped, columns in zip(
            fleet.members, fleet.epochs_done.tolist(), fleet.diverged.tolist(), results
        )
    ]
