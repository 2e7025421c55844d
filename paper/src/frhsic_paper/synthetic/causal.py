"""Structural models in which the counterfactual is known for every row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic._arrays import RandomState, numpy_generator, require_rows, vector
from frhsic_paper.synthetic._integrals import tensor


@dataclass(frozen=True, eq=False)
class LinearCausalModel:
    r"""A sample of the linear structural model :math:`S = U_S`, :math:`X = a S + U_X`, :math:`Y = w^\top X + U_Y`.

    All exogenous noise is independent and standard normal. A prediction is counterfactually fair when it
    does not move as S is set to another value while the noise stays; for a linear representation
    :math:`Z = X v` that is :math:`a^\top v = 0`, and then HSIC(Z, S) = 0 too (the paper, proposition "HSIC-fairness
    as a necessary condition for counterfactual fairness").
    """

    x: Tensor
    y: Tensor
    s: Tensor
    effect: Tensor
    weight: Tensor

    def counterfactual(self, s: Any) -> Tensor:
        r"""Return X had S been set to `s` (one number, or one for each row): :math:`X + a (s - S)`.

        Examples
        --------
        >>> model = linear_causal_model(3, effect=(2.0, 0.0), random_state=0)
        >>> (model.counterfactual(model.s + 1.0) - model.x)[0]
        tensor([2., 0.], dtype=torch.float64)
        """
        target = vector(s, "s").to(self.s.dtype) if np.ndim(s) else torch.full_like(self.s, float(s))
        if target.shape != self.s.shape:
            raise ValueError(
                f"s has {target.shape[0]} values, the sample {self.s.shape[0]}; pass one number or as many."
            )
        return self.x + (target - self.s)[:, None] * self.effect

    def correlation(self, v: Sequence[float]) -> float:
        r"""Return the correlation of :math:`X v` with S, :math:`a^\top v / \sqrt{(a^\top v)^2 + \|v\|^2}`.

        (Xv, S) is jointly normal, so that :class:`GaussianPair` gives HSIC and mutual information.
        """
        direction = torch.as_tensor(v, dtype=torch.float64)
        shift = float(self.effect.double() @ direction)
        return shift / math.sqrt(shift**2 + float(direction @ direction))

    @property
    def invariant(self) -> Tensor:
        r"""Return the projection :math:`I - a a^\top / \|a\|^2`: X times it is counterfactually fair."""
        a = self.effect
        return torch.eye(len(a), dtype=a.dtype) - torch.outer(a, a) / (a @ a)


def linear_causal_model(
    n: int,
    *,
    effect: Sequence[float] = (1.0, 0.5, 0.0),
    weight: Sequence[float] | None = None,
    random_state: RandomState = None,
    dtype: torch.dtype = torch.float64,
) -> LinearCausalModel:
    """Draw from a linear structural causal model; `effect` is a, and `weight` is w, by default all ones.

    Examples
    --------
    >>> model = linear_causal_model(50, random_state=0)
    >>> fair = model.x @ model.invariant
    >>> bool((model.counterfactual(3.0) @ model.invariant - fair).abs().max() < 1e-12)
    True
    """
    require_rows(n, 1, "a sample")
    a = np.asarray(effect, dtype=np.float64)
    w = np.ones_like(a) if weight is None else np.asarray(weight, dtype=np.float64)
    if a.ndim != 1 or a.shape != w.shape:
        raise ValueError(f"effect has shape {a.shape}, weight {w.shape}; pass two lists of equal length.")
    if not np.any(a):
        raise ValueError("effect is zero in every feature; let S move at least one of them.")
    draw = numpy_generator(random_state)
    s = draw.standard_normal(n)
    x = s[:, None] * a + draw.standard_normal((n, len(a)))
    y = x @ w + draw.standard_normal(n)
    return LinearCausalModel(*(tensor(value, dtype) for value in (x, y, s, a, w)))


@dataclass(frozen=True, eq=False)
class XorExample:
    r"""A sample of :math:`Z = S \oplus U` with fair coins S and U: independent of S, yet moved by it.

    HSIC(Z, S) = 0, and every counterfactual flips Z: observational fairness is necessary for the
    counterfactual kind and not sufficient (the paper, appendix "Necessity for Counterfactual Fairness").
    """

    z: Tensor
    s: Tensor
    u: Tensor
    hsic: float = 0.0
    mutual_information: float = 0.0
    counterfactual_change: float = 1.0

    def counterfactual(self, s: float) -> Tensor:
        """Return Z had S been set to `s`, 0 or 1.

        Examples
        --------
        >>> xor = xor_example(6, random_state=0)
        >>> float((xor.counterfactual(0) - xor.counterfactual(1)).abs().mean())
        1.0
        """
        if s not in (0, 1):
            raise ValueError(f"s={s!r}; the sensitive attribute is 0 or 1.")
        return (self.u - s).abs()


def xor_example(n: int, *, random_state: RandomState = None, dtype: torch.dtype = torch.float64) -> XorExample:
    """Draw two fair coins and their exclusive or.

    Examples
    --------
    >>> xor = xor_example(4, random_state=0)
    >>> bool((xor.z == (xor.s != xor.u)).all())
    True
    """
    require_rows(n, 1, "a sample")
    s, u = numpy_generator(random_state).integers(2, size=(2, n))
    return XorExample(tensor(s ^ u, dtype), tensor(s, dtype), tensor(u, dtype))


@dataclass(frozen=True, eq=False)
class CircleExample:
    r"""A sample of :math:`Z = S + U \bmod 1` with S and U uniform: the same for a continuous attribute.

    Z is independent of S, and setting S to :math:`s'` turns every Z by :math:`s' - S`.
    """

    z: Tensor
    s: Tensor
    u: Tensor
    hsic: float = 0.0
    mutual_information: float = 0.0

    def counterfactual(self, s: float) -> Tensor:
        """Return Z had S been set to `s`.

        Examples
        --------
        >>> circle = circle_example(5, random_state=0)
        >>> bool((circle.counterfactual(0.0) == circle.u).all())
        True
        """
        return torch.remainder(self.u + s, 1.0)


def circle_example(n: int, *, random_state: RandomState = None, dtype: torch.dtype = torch.float64) -> CircleExample:
    """Draw two uniform variables and their sum on the circle.

    Examples
    --------
    >>> circle = circle_example(5, random_state=0)
    >>> bool(((circle.z >= 0) & (circle.z < 1)).all())
    True
    """
    require_rows(n, 1, "a sample")
    s, u = (tensor(value, dtype) for value in numpy_generator(random_state).random((2, n)))
    return CircleExample(torch.remainder(s + u, 1.0), s, u)
