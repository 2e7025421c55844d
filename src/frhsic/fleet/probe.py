"""What one model tells before a fleet is built: which state its penalty changes, and how much memory a step takes."""

from __future__ import annotations

import copy
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from frhsic.fleet.state import Model, is_trained

__all__ = ["Probe", "probe"]


@dataclass(frozen=True)
class Probe:
    """What was found out.

    Attributes
    ----------
    shared : frozenset of str
        State of the penalty that stays as `prepare` left it.
    bytes_per_model : int
        Memory of one model in a step: twice what the backward pass keeps, plus the optimiser's share.
    """

    shared: frozenset[str]
    bytes_per_model: int


def probe(model: Model, rows: Tensor, outputs: int, epochs: int) -> Probe:
    """Run a copy of the model on one batch, `rows` (m, columns), and look."""
    model = copy.deepcopy(model)
    x = model.columns.parts(rows)[0]
    with torch.no_grad():
        z = model.encoder(x)
        _check_shape("encoder", z, len(x))
        scores = model.head(z)
        _check_shape("head", scores, len(x))
    wider = model.task == "multiclass" and scores.shape[1] > outputs  # these rows may lack the last classes
    if scores.shape[1] != outputs and not wider:
        raise ValueError(f"the head gives {scores.shape[1]} outputs; task={model.task!r} needs {outputs}.")
    penalty = model.penalty
    before = {name: value._version for name, value in penalty.state_dict(keep_vars=True).items()}
    places = {name: value.data_ptr() for name, value in penalty.state_dict(keep_vars=True).items()}
    epoch = next((e for e in range(epochs) if penalty.adapts(e)), None)
    if epoch is not None:
        penalty.adapt(z.detach(), model.columns.parts(rows)[1], epoch)
    after = penalty.state_dict(keep_vars=True)
    if {name: value.data_ptr() for name, value in after.items()} != places:
        raise TypeError(
            f"{type(penalty).__name__}.adapt replaced a buffer; it must write in place (copy_), for a fleet stacks it."
        )
    shared = frozenset(f"penalty.{name}" for name, value in after.items() if value._version == before[name])
    kept: dict[int, int] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        kept[storage.data_ptr()] = storage.nbytes()
        return tensor

    with saved_tensors_hooks(keep, lambda tensor: tensor):
        model(rows, torch.ones((), dtype=rows.dtype, device=rows.device), None, False)
    trained = sum(p.numel() for name, p in model.named_parameters() if is_trained(name, p))
    return Probe(shared, 2 * sum(kept.values()) + 8 * trained * rows.element_size())


def _check_shape(what: str, values: Tensor, rows: int) -> None:
    if values.ndim != 2 or values.shape[0] != rows:
        raise ValueError(
            f"the {what} turned a batch of {rows} rows into shape {tuple(values.shape)}; it must give ({rows}, width)."
        )
