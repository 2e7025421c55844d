"""Encoders and heads: the paper's, and the names of the activations they may use."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from torch import nn

__all__ = ["ACTIVATIONS", "affine_head", "mlp_encoder"]

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "selu": nn.SELU,
    "relu": nn.ReLU,
    "tanh": nn.Tanh,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "sigmoid": nn.Sigmoid,
}
"""What `activation` and `final_activation` may be called."""


def mlp_encoder(
    d: int,
    hidden: int | Sequence[int] = 50,
    out: int = 50,
    activation: str = "selu",
    final_activation: str | None = None,
) -> nn.Sequential:
    r"""Multi-layer encoder, :math:`z = W_2\,\sigma(W_1 x + b_1) + b_2`.

    The defaults are the encoder behind the paper's published numbers: d → 50 (SELU) → 50, with no
    activation after the second layer. The paper's text leaves the last activation open; `final_activation`
    names one.

    Parameters
    ----------
    d : int
        Number of input columns.
    hidden : int or sequence of int
        Widths of the hidden layers, each followed by `activation`.
    out : int
        Width of the representation.
    activation, final_activation : str
        Names from :data:`ACTIVATIONS`; `final_activation=None` leaves the representation affine in the last
        hidden layer.

    Examples
    --------
    >>> [tuple(p.shape) for p in mlp_encoder(3).parameters()]
    [(50, 3), (50,), (50, 50), (50,)]
    """
    widths = [d, *([hidden] if isinstance(hidden, int) else hidden), out]
    if min(widths) < 1:
        raise ValueError(f"layer widths are {widths}; each must be at least 1.")
    layers: list[nn.Module] = []
    for fan_in, fan_out in pairwise(widths[:-1]):
        layers += [nn.Linear(fan_in, fan_out), _activation(activation)]
    layers.append(nn.Linear(widths[-2], widths[-1]))
    if final_activation is not None:
        layers.append(_activation(final_activation))
    return nn.Sequential(*layers)


def affine_head(dz: int, outputs: int = 1) -> nn.Linear:
    """Affine head, f(z) = Wz + b: one output for a binary or real target, one per class otherwise.

    Examples
    --------
    >>> affine_head(50)
    Linear(in_features=50, out_features=1, bias=True)
    """
    return nn.Linear(dz, outputs)


def _activation(name: str) -> nn.Module:
    if name not in ACTIVATIONS:
        raise ValueError(f"activation {name!r} is not known; choose one of {', '.join(sorted(ACTIVATIONS))}.")
    return ACTIVATIONS[name]()
