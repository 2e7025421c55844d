r"""Parameters of trained models that later measures need, in one safetensors file for each experiment and protocol.

`{out}/models/{experiment}-{protocol}.safetensors`; a tensor is named `dataset/method/weight/repeat/parameter`, such as
`crime/frhsic/10.0/0/encoder.0.weight`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from frhsic.datasets import Dataset, Split
from frhsic.fleet import Bottleneck, Fleet, affine_head, mlp_encoder
from frhsic_paper import records
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record
from frhsic_paper.sweep import Grid

__all__ = [
    "Key",
    "all_models",
    "chosen_on_validation",
    "encoded",
    "groups",
    "keeper",
    "kept",
    "model_file",
    "modules",
    "store",
]

PERFORMANCE_SLACK = 0.01
"""Share of the unpenalised model's performance that a chosen model may give away."""

Rule = Callable[[str, str, list[Record]], list[int]]
"""Of dataset, method and the records of a fleet: which models to keep, by their place in the fleet."""


class Key(NamedTuple):
    """What a kept model is called."""

    dataset: str
    method: str
    weight: float
    repeat: int

    def __str__(self) -> str:
        return f"{self.dataset}/{self.method}/{self.weight}/{self.repeat}"

    @classmethod
    def of(cls, record: Record) -> Key:
        """Return the name of the model that a record is about."""
        return cls(record["dataset"], record["method"], float(record["weight"]), int(record["repeat"]))

    @classmethod
    def parse(cls, name: str) -> tuple[Key, str]:
        """Return the key and the parameter of a tensor's name.

        Examples
        --------
        >>> Key.parse("crime/frhsic/10.0/0/head.bias")
        (Key(dataset='crime', method='frhsic', weight=10.0, repeat=0), 'head.bias')
        """
        dataset, method, weight, repeat, parameter = name.split("/")
        return cls(dataset, method, float(weight), int(repeat)), parameter


def model_file(out: Path, experiment: str, protocol: str) -> Path:
    """Return where the models of an experiment lie."""
    return out / "models" / f"{experiment}-{protocol}.safetensors"


def keeper(path: Path, rule: Rule) -> Callable[[str, str, Fleet, Sequence[Split], list[Record]], None]:
    """Return a callback of a sweep that stores the models that the rule names."""

    def keep(dataset: str, method: str, fleet: Fleet, splits: Sequence[Split], found: list[Record]) -> None:
        states = {}
        for index in rule(dataset, method, found):
            state = fleet.parameters | fleet.buffers
            states[Key.of(found[index])] = {name: values[index] for name, values in state.items()}
        store(path, dataset, method, states)

    return keep


def all_models(dataset: str, method: str, found: list[Record]) -> list[int]:
    """Keep every model."""
    return list(range(len(found)))


def chosen_on_validation(sweep: Path, repeats: int) -> Rule:
    r"""Keep, of each repeat below `repeats`, the model that validation rows choose.

    It has the lowest GDP on probabilities among those whose performance is within 1 % of the unpenalised model's:
    accuracy ≥ 0.99 times, or mean squared error ≤ 1.01 times; if none is, the best performance of all. Performance of
    the unpenalised models is read from the records of the sweep, which come first.
    """

    def rule(dataset: str, method: str, found: list[Record]) -> list[int]:
        baseline = {
            record["repeat"]: record["validation_performance"]
            for record in (found if method == BASELINE else records.read(sweep))
            if record["dataset"] == dataset and record["method"] == BASELINE
        }
        chosen = []
        for repeat in range(repeats):
            own = [i for i, record in enumerate(found) if record["repeat"] == repeat]
            if own:
                chosen.append(_matched(found, own, baseline[repeat]))
        return chosen

    return rule


def _matched(found: list[Record], own: list[int], baseline: float) -> int:
    """Return the place of the model with the lowest GDP among those that keep the performance of the baseline."""
    error = "validation_gdp_decision" not in found[own[0]]  # only classifiers decide: performance is an error here

    def performance(i: int) -> float:
        value = float(found[i]["validation_performance"])
        return -value if error else value

    limit = -(1 + PERFORMANCE_SLACK) * baseline if error else (1 - PERFORMANCE_SLACK) * baseline
    usable = [i for i in own if not found[i]["diverged"]] or own
    near = [i for i in usable if performance(i) >= limit]
    if not near:
        return max(usable, key=performance)
    return min(near, key=lambda i: float(found[i]["validation_gdp_probability"]))


def store(path: Path, dataset: str, method: str, states: Mapping[Key, Mapping[str, Tensor]]) -> None:
    """Put the models of one dataset and method into a file, in place of those that it had of them."""
    tensors = load_file(path) if path.exists() else {}
    tensors = {name: value for name, value in tensors.items() if Key.parse(name)[0][:2] != (dataset, method)}
    for key, state in states.items():
        tensors |= {f"{key}/{name}": value.detach().cpu().contiguous() for name, value in state.items()}
    if not tensors:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(".part")
    save_file(tensors, temporary)
    temporary.replace(path)


def kept(path: Path, datasets: Iterable[str] | None = None) -> dict[Key, dict[str, Tensor]]:
    """Return the parameters of all models in a file, by their keys.

    Raises
    ------
    ValueError
        If there is no such file: the models have not been trained.
    """
    if not path.exists():
        raise ValueError(
            f"there is no file {path} of trained models; train them first, with `frhsic reproduce NAME --phase train`."
        )
    wanted = None if datasets is None else set(datasets)
    models: dict[Key, dict[str, Tensor]] = {}
    for name, value in load_file(path).items():
        key, parameter = Key.parse(name)
        if wanted is None or key.dataset in wanted:
            models.setdefault(key, {})[parameter] = value
    return models


def groups(
    grid: Grid, protocol: Protocol, path: Path, wanted: Sequence[Key] | None = None
) -> Iterator[tuple[Dataset, list[Split], dict[Key, dict[str, Tensor]]]]:
    """Yield each dataset of a grid with its splits and its kept models; those that are `wanted`, if that is said."""
    models = kept(path, grid.datasets)
    for name in grid.datasets:
        own = {key: state for key, state in models.items() if key.dataset == name and (wanted is None or key in wanted)}
        if own:
            data = grid.source(name, protocol)
            yield data, grid.splits(data, protocol, 1 + max(key.repeat for key in own)), own


def encoded(state: Mapping[str, Tensor], x: Tensor) -> Tensor:
    """Return the representation of some rows."""
    with torch.no_grad():
        z: Tensor = modules(state)[0](x)
    return z


def modules(state: Mapping[str, Tensor]) -> tuple[nn.Module, nn.Module]:
    """Return the paper's encoder and head with these parameters, in evaluation mode."""
    hidden, columns = state["encoder.0.weight"].shape
    outputs, z_dim = state["head.weight"].shape

    def loaded(name: str, module: nn.Module) -> nn.Module:
        module.load_state_dict({k.removeprefix(name): v for k, v in state.items() if k.startswith(name)})
        return module.eval()

    encoder = loaded("encoder.", mlp_encoder(columns, hidden, z_dim))
    if "bottleneck.mean" in state:
        encoder = nn.Sequential(encoder, loaded("bottleneck.", Bottleneck(z_dim)))
    return encoder, loaded("head.", affine_head(z_dim, outputs))
