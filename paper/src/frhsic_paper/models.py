r"""The parameters of trained models, which later measurements need, in one safetensors file per
study and protocol.

`{out}/models/{study}-{protocol}.safetensors`; a tensor is named
`dataset/method/weight/repeat/parameter`, such as `crime/frhsic/10.0/0/encoder.0.weight`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from frhsic._files import write_whole
from frhsic.training import MLP
from frhsic.training.result import Bottleneck
from frhsic_paper import records
from frhsic_paper.frontier import is_within_band
from frhsic_paper.grid import Keep, Trained
from frhsic_paper.options import Options
from frhsic_paper.protocol import BAND, BASELINE
from frhsic_paper.records import Record

State = Mapping[str, Tensor]


class Key(NamedTuple):
    """The key of a stored model."""

    dataset: str
    method: str
    weight: float
    repeat: int

    def __str__(self) -> str:
        return f"{self.dataset}/{self.method}/{self.weight}/{self.repeat}"

    @classmethod
    def from_record(cls, record: Record) -> Key:
        """Return the key of the model to which a record belongs."""
        return cls(
            record["dataset"], record["method"], float(record["weight"]), int(record["repeat"])
        )

    @classmethod
    def parse(cls, name: str) -> tuple[Key, str]:
        """Split a tensor's name into the model's key and the name of the parameter.

        Examples
        --------
        >>> Key.parse("crime/frhsic/10.0/0/head.bias")
        (Key(dataset='crime', method='frhsic', weight=10.0, repeat=0), 'head.bias')
        """
        dataset, method, weight, repeat, parameter = name.split("/")
        return cls(dataset, method, float(weight), int(repeat)), parameter


@dataclass(frozen=True)
class Model:
    """A stored model: its record and parameters."""

    record: Record
    state: State

    @property
    def encoder(self) -> nn.Module:
        """The paper's encoder, in evaluation mode."""
        (hidden, columns), (_, z_dim) = (
            self.state["encoder.0.weight"].shape,
            self.state["head.weight"].shape,
        )
        encoder = self._loaded("encoder.", MLP((hidden,), z_dim)(columns))
        if "bottleneck.mean" in self.state:
            return nn.Sequential(encoder, self._loaded("bottleneck.", Bottleneck(z_dim)))
        return encoder

    @property
    def head(self) -> nn.Module:
        """The head, in evaluation mode."""
        outputs, z_dim = self.state["head.weight"].shape
        return self._loaded("head.", nn.Linear(z_dim, outputs))

    @torch.no_grad()
    def encode(self, x: Tensor) -> Tensor:
        """Return the representation of the given rows."""
        z: Tensor = self.encoder(x)
        return z

    @torch.no_grad()
    def score(self, z: Tensor) -> Tensor:
        """Return the head's raw output for a representation."""
        scores: Tensor = self.head(z)
        return scores

    def _loaded(self, prefix: str, module: nn.Module) -> nn.Module:
        own = {
            name.removeprefix(prefix): value
            for name, value in self.state.items()
            if name.startswith(prefix)
        }
        module.load_state_dict(own)
        return module.eval()


def store_all(trained: Trained, options: Options) -> None:
    """Store every model of a fleet."""
    _store_some(trained, options, range(len(trained.records)))


def best_in_band(
    performances: Sequence[float],
    dependences: Sequence[float],
    *,
    baseline: float,
    band: float,
    higher_is_better: bool,
) -> tuple[int, bool]:
    """Choose the model with the smallest dependence within the band or, if no model is inside, with
    the best performance.

    Returns the index of the chosen model and whether it is inside the band. Ties go to the first
    model.

    Examples
    --------
    >>> best_in_band(
    ...     [0.90, 0.899, 0.8], [0.3, 0.2, 0.1], baseline=0.9, band=0.01, higher_is_better=True
    ... )
    (1, True)
    >>> best_in_band([0.7, 0.8], [0.1, 0.2], baseline=0.9, band=0.01, higher_is_better=True)
    (1, False)
    """
    inside = [
        i for i, p in enumerate(performances) if is_within_band(p, baseline, band, higher_is_better)
    ]
    if inside:
        return min(inside, key=lambda i: dependences[i]), True
    sign = 1 if higher_is_better else -1
    return max(range(len(performances)), key=lambda i: sign * performances[i]), False


def store_chosen(repeats: int) -> Keep:
    """Store, for each of the first repeats, the model chosen on validation rows, if there are any.

    It has the smallest GDP of probabilities among those within 1 % of the performance of the
    unpenalized model; see :func:`best_in_band`.
    """

    def keep(trained: Trained, options: Options) -> None:
        if trained.protocol.validation:
            sweep = options.file(trained.grid.study, trained.protocol)
            _store_some(trained, options, chosen_on_validation(trained.records, sweep, repeats))

    return keep


def chosen_on_validation(fleet: list[Record], sweep: Path, repeats: int) -> list[int]:
    """Return the positions of the chosen models in a fleet's records, one for each of the first
    repeats.

    The unpenalized models are read from the sweep's file, in which they come first.
    """
    dataset, unpenalized = fleet[0]["dataset"], fleet[0]["method"] == BASELINE
    baseline = {
        record["repeat"]: record["validation_performance"]
        for record in (fleet if unpenalized else records.read(sweep))
        if record["dataset"] == dataset and record["method"] == BASELINE
    }
    chosen = []
    for repeat in range(repeats):
        own = [i for i, record in enumerate(fleet) if record["repeat"] == repeat]
        own = [i for i in own if not fleet[i]["diverged"]] or own
        if own:
            place, _ = best_in_band(
                [float(fleet[i]["validation_performance"]) for i in own],
                [float(fleet[i]["validation_gdp_probability"]) for i in own],
                baseline=baseline[repeat],
                band=BAND,
                higher_is_better=fleet[0]["task"] != "regression",
            )
            chosen.append(own[place])
    return chosen


def _store_some(trained: Trained, options: Options, places: Iterable[int]) -> None:
    parameters = trained.fleet.parameters | trained.fleet.buffers
    states = {
        Key.from_record(trained.records[i]): {
            name: values[i] for name, values in parameters.items()
        }
        for i in places
    }
    store(
        options.model_file(trained.grid.study, trained.protocol),
        trained.dataset,
        trained.method,
        states,
    )


def store(path: Path, dataset: str, method: str, states: Mapping[Key, State]) -> None:
    """Write the models of one dataset and method to a file, replacing earlier ones."""
    tensors = load_file(path) if path.exists() else {}
    tensors = {
        name: value
        for name, value in tensors.items()
        if Key.parse(name)[0][:2] != (dataset, method)
    }
    for key, state in states.items():
        tensors |= {
            f"{key}/{name}": value.detach().cpu().contiguous() for name, value in state.items()
        }
    if not tensors:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, to_bytes(tensors))


def load(path: Path, datasets: Iterable[str] | None = None) -> dict[Key, dict[str, Tensor]]:
    """Return the parameters of all models in a file, or only of those on the given datasets, by
    key.

    Raises
    ------
    ValueError
        If there is no such file, because the models have not been trained.
    """
    if not path.exists():
        raise ValueError(
            f"there is no file {path} of trained models; train them first, with `frhsic reproduce"
            " NAME --phase train`."
        )
    wanted = None if datasets is None else set(datasets)
    models: dict[Key, dict[str, Tensor]] = {}
    for name, value in load_file(path).items():
        key, parameter = Key.parse(name)
        if wanted is None or key.dataset in wanted:
            models.setdefault(key, {})[parameter] = value
    return models
