"""Steps of a study: train a grid, measure the stored models of a grid, or compute something without
models.

A step is called with a protocol and options. It computes the missing records and returns all of
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from itertools import groupby
from pathlib import Path

from joblib import Parallel, delayed

from frhsic.training import Fleet
from frhsic_paper import models, records
from frhsic_paper.code import code_hash
from frhsic_paper.grid import BY, Grid, Keep, Trained, run
from frhsic_paper.models import Key, Model
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit, Wanted
from frhsic_paper.results import Results
from frhsic_paper.splits import Split

SHARED = (*Key._fields, "task", "epochs")
"""Columns that the record of a measurement shares with its model's record."""

WRITE_EVERY = 20.0
"""Seconds between writes of records, since the whole file is rewritten."""

Part = tuple[str, str]
"""The file and part of records."""

Stamp = Callable[[Record], str]
"""The hash that a record would have if it were computed by the present code."""

Group = Callable[[Sequence[Model], Split, Protocol, Options], Iterable[list[Record]]]
"""Measures the models of one split; returns a list of records for each model, in order."""


@dataclass(frozen=True)
class OnTrained:
    """Measure the models of a fleet while they are in memory, since most are not stored.

    Attributes
    ----------
    study, part
        File and part of the records.
    repeats
        Number of repeats whose models are measured.
    measure
        Function that returns the records of each model of one split, given the task.
    settings
        What the numbers depend on besides the model.
    of_model
        Records of one model.
    """

    study: str
    part: str
    repeats: int
    measure: Callable[[Fleet, Split, str], Iterable[list[Record]]]
    settings: object
    of_model: int = 1

    def __call__(self, trained: Trained, options: Options) -> None:
        """Compute and write the records of a fleet."""
        rows: list[Record] = []
        for repeat, split in enumerate(trained.splits[: self.repeats]):
            own = [i for i, record in enumerate(trained.records) if record["repeat"] == repeat]
            measured = self.measure(trained.fleet.select(own), split, trained.records[0]["task"])
            for model, found in zip((trained.records[i] for i in own), measured):
                hashed = self.depends_on(model["depends_on"])
                shared = records.stamp(self.part, model["protocol"], model["device"], hashed)
                shared |= {name: model[name] for name in (*SHARED, "performance", "diverged")}
                rows += [{**shared, **record} for record in found]
        records.put(options.file(self.study, trained.protocol), BY, rows)

    def depends_on(self, model: str) -> str:
        """Return the hash of a record, given that of its model."""
        return records.digest(model, self.settings, code_hash(self.measure))

    def stamp(self, of_model: Stamp) -> Stamp:
        """Return the hash that a record would have today, given that of its model."""
        return lambda record: self.depends_on(of_model(record))


@dataclass(frozen=True)
class Training:
    """Train the models of a grid, and store those that `keep` selects from each fleet."""

    grid: Callable[[Protocol], Grid]
    keep: tuple[Keep, ...] = ()

    def __call__(self, protocol: Protocol, options: Options) -> list[Record]:
        """Train the missing models."""
        return run(self.grid(protocol), protocol, options, self.keep)

    def expected_records(self, protocol: Protocol) -> dict[Part, int]:
        """Return how many records the step makes, by file and part."""
        grid = self.grid(protocol)
        models = sum(wanted.records for wanted in grid.units(protocol).values())
        return {(grid.study, grid.part): models} | {
            (m.study, m.part): round(
                models * m.of_model * min(m.repeats, grid.repeats) / grid.repeats
            )
            for m in self._measured
        }

    def stamps(self, protocol: Protocol, results: Results) -> dict[Part, Stamp]:
        """Return the hash that a record would have today, by file and part."""
        grid = self.grid(protocol)
        units = grid.units(protocol)

        def of_model(record: Record) -> str:
            unit = units.get((grid.part, record["dataset"], record["method"]))
            return unit.depends_on if unit else ""

        measured = {(m.study, m.part): m.stamp(of_model) for m in self._measured}
        return {(grid.study, grid.part): of_model} | measured

    @property
    def _measured(self) -> list[OnTrained]:
        return [keeper for keeper in self.keep if isinstance(keeper, OnTrained)]


@dataclass(frozen=True)
class Measurement:
    """Measure the stored models of a grid.

    Attributes
    ----------
    study, part
        File and part of the records.
    grid
        The grid whose models are measured.
    measure
        The function that measures, by protocol name; a protocol without an entry is not measured.
    settings
        What the numbers depend on besides the model.
    of_model
        Number of records of one model, by protocol name.
    chosen
        Number of repeats for which only each method's chosen model is stored; None if every model
        is stored.
    """

    study: str
    part: str
    grid: Callable[[Protocol], Grid]
    measure: Mapping[str, Group]
    settings: object = ()
    of_model: Mapping[str, int] = field(default_factory=lambda: {"published": 1, "corrected": 1})
    chosen: int | None = None

    def __call__(self, protocol: Protocol, options: Options) -> list[Record]:
        """Measure the models that have no up-to-date records."""
        if protocol.name not in self.measure:
            return []
        grid, path = self.grid(protocol).restrict(options), options.file(self.study, protocol)
        trained = {
            Key.from_record(r): r
            for r in records.read(options.file(grid.study, protocol), grid.part)
        }
        stored = options.model_file(grid.study, protocol)
        if not stored.exists() and self._up_to_date(
            records.read(path, self.part), trained, protocol
        ):
            return records.read(path, self.part)
        states = models.load(stored, grid.datasets)
        # a model without a record is from a training run that was interrupted
        hashes = {
            key: self._depends_on(trained[key], protocol)
            for key in sorted(
                states.keys() & trained.keys(),
                key=lambda key: (grid.datasets.index(key.dataset), key),
            )
        }
        by = ("part", *Key._fields)
        wanted = {(self.part, *key): Wanted(1, value) for key, value in hashes.items()}
        missing = [Key(*unit[1:]) for unit in records.missing_units(path, by, wanted)]
        for dataset, group in groupby(missing, key=lambda key: key.dataset):
            data, keys = grid.source(dataset, protocol), list(group)
            splits = grid.splits.make(data, 1 + max(key.repeat for key in keys))
            for repeat in sorted({key.repeat for key in keys}):
                own = [key for key in keys if key.repeat == repeat]
                some = [Model(trained[key], states[key]) for key in own]
                measured = self.measure[protocol.name](some, splits[repeat], protocol, options)
                for key, found in zip(own, measured):
                    shared = {
                        **records.stamp(self.part, protocol.name, "cpu", hashes[key]),
                        **{name: trained[key][name] for name in SHARED if name in trained[key]},
                    }
                    records.put(path, by, [{**shared, **record} for record in found])
            options.say(f"{protocol.name} {self.study} {self.part} {dataset}: {len(keys)} models")
        return records.read(path, self.part)

    def expected_records(self, protocol: Protocol) -> dict[Part, int]:
        """Return how many records the step makes, by file and part."""
        if protocol.name not in self.measure:
            return {}
        grid = self.grid(protocol)
        fleets = grid.units(protocol)
        count = (
            sum(w.records for w in fleets.values())
            if self.chosen is None
            else len(fleets) * self.chosen
        )
        return {(self.study, self.part): count * self.of_model[protocol.name]}

    def stamps(self, protocol: Protocol, results: Results) -> dict[Part, Stamp]:
        """Return the hash that a record would have today, by file and part."""
        grid = self.grid(protocol)
        found = results.records(f"{grid.study}/{grid.part}", protocol.name)
        trained = {Key.from_record(r): r for r in found}

        def of_record(record: Record) -> str:
            model = trained.get(Key.from_record(record))
            return self._depends_on(model, protocol) if model else ""

        return {(self.study, self.part): of_record}

    def _depends_on(self, model: Record, protocol: Protocol) -> str:
        """Return the hash of a measurement. It includes the model's numbers, so that retraining
        makes the measurement stale.
        """
        return records.digest(
            model["depends_on"],
            records.content(model),
            protocol.name,
            self.settings,
            code_hash(self.measure[protocol.name]),
        )

    def _up_to_date(
        self, measured: Sequence[Record], trained: Mapping[Key, Record], protocol: Protocol
    ) -> bool:
        """Return whether the records still contain all measured models unchanged."""
        return bool(measured) and all(
            Key.from_record(r) in trained
            and r["depends_on"] == self._depends_on(trained[Key.from_record(r)], protocol)
            for r in measured
        )


def each(measure: Callable[[Model, Split, Protocol], list[Record]]) -> Group:
    """Measure the models of a group one by one, in as many processes as there are workers."""

    def group(
        models: Sequence[Model], split: Split, protocol: Protocol, options: Options
    ) -> Iterator[list[Record]]:
        work = (delayed(partial(measure, model, split, protocol))() for model in models)
        yield from Parallel(n_jobs=options.workers, return_as="generator")(work)

    return group


@dataclass(frozen=True)
class Computation:
    """Compute records unit by unit.

    Attributes
    ----------
    study, part
        File and part of the records.
    by
        Columns that identify a unit.
    units
        Function that returns the values of these columns, with the number of records of each unit.
    compute
        Function that yields the records of each given unit; the order is arbitrary if the records
        identify their unit.
    settings
        What the numbers depend on, by protocol name; a protocol without an entry is not run.
    choice
        Function that returns the code that only one unit uses: one of the `Choices` of `compute`.

    Examples
    --------
    Standard errors of the share of heads in n coin tosses, for two values of n:

    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from frhsic_paper.protocol import CORRECTED
    >>> def units(protocol, options):
    ...     return {(4,): 1, (100,): 1}
    >>> def errors(missing, protocol, options):
    ...     for (n,) in missing:
    ...         yield [{"error": 0.5 / n**0.5}]
    >>> step = Computation("coins", "errors", ("n",), units, errors, {"corrected": "a fair coin"})
    >>> with TemporaryDirectory() as folder:
    ...     records = step(CORRECTED, Options(Path(folder)))
    >>> [(record["n"], record["error"]) for record in records]
    [(4, 0.25), (100, 0.05)]
    """

    study: str
    part: str
    by: tuple[str, ...]
    units: Callable[[Protocol, Options], Mapping[Unit, int]]
    compute: Callable[[Sequence[Unit], Protocol, Options], Iterable[list[Record]]]
    settings: Mapping[str, object]
    choice: Callable[[Unit], object] | None = None

    def __call__(self, protocol: Protocol, options: Options) -> list[Record]:
        """Compute the units that have no up-to-date records."""
        if protocol.name not in self.settings:
            return []
        path, by = options.file(self.study, protocol), ("part", *self.by)
        wanted = {
            (self.part, *unit): Wanted(count, self._depends_on(protocol, unit))
            for unit, count in self.units(protocol, options).items()
        }
        missing = [unit[1:] for unit in records.missing_units(path, by, wanted)]
        of_record = self._of_record(protocol)
        waiting: list[Record] = []
        written = time.monotonic()
        try:
            for unit, found in zip(
                missing, self.compute(missing, protocol, options) if missing else ()
            ):
                named = [dict(zip(self.by, unit)) | record for record in found]
                stamps = [of_record(record) for record in named]
                waiting += [
                    records.stamp(self.part, protocol.name, "cpu", stamp) | record
                    for stamp, record in zip(stamps, named)
                ]
                told = " ".join(f"{name}={waiting[-1][name]}" for name in self.by)
                options.say(
                    f"{protocol.name} {self.study} {self.part} {told}: {len(found)} records"
                )
                if time.monotonic() > written + WRITE_EVERY:
                    records.put(path, by, waiting)
                    waiting = []
                    written = time.monotonic()
        finally:
            if waiting:
                records.put(path, by, waiting)
        return records.read(path, self.part)

    def _depends_on(self, protocol: Protocol, unit: Unit) -> str:
        own = () if self.choice is None else (self.choice(unit),)
        return records.digest(
            protocol.name, self.settings[protocol.name], code_hash(self.compute, *own)
        )

    def _of_record(self, protocol: Protocol) -> Stamp:
        of_unit = cache(partial(self._depends_on, protocol))
        return lambda record: of_unit(records.record_unit(record, self.by))

    def stamps(self, protocol: Protocol, results: Results) -> dict[Part, Stamp]:
        """Return the hash that a record would have today, by file and part."""
        return {(self.study, self.part): self._of_record(protocol)}

    def expected_records(self, protocol: Protocol) -> dict[Part, int]:
        """Return how many records the step makes on a CPU, by file and part."""
        if protocol.name not in self.settings:
            return {}
        return {
            (self.study, self.part): sum(
                self.units(protocol, Options(Path(), device="cpu")).values()
            )
        }
