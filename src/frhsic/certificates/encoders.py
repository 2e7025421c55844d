r"""Encoder classes with a bounded Gaussian complexity.

.. math:: \mathcal G_n(\mathcal H) = E \sup_{h \in \mathcal H} \frac1n \sum_i \langle \xi_i, h(X_i) \rangle,
    \qquad \xi_i \sim N(0, I_{d_Z}).

Each bound is :math:`c / \sqrt n`; the property `complexity` is the constant c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from frhsic import _arrays

ACTIVATIONS = {"identity": 1.0, "relu": 1.0, "tanh": 1.0, "selu": 1.0507009873554805 * 1.6732632423543772}
"""Lipschitz constants of activations that are zero at zero; SELU's is its slope at 0 from below, about 1.7581."""


@dataclass(frozen=True)
class SingleEncoder:
    """One encoder, fixed before the rows were drawn: its complexity is zero."""

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`."""
        return 0.0


@dataclass(frozen=True)
class LinearEncoders:
    r"""Linear encoders :math:`x \mapsto Wx` with :math:`\|W\|_F \le R` on inputs with :math:`\|X\| \le M`.

    .. math:: \mathcal G_n \le R\, E \Big\| \frac1n \sum_i \xi_i X_i^\top \Big\|_F \le R M \sqrt{d_Z / n}

    References
    ----------
    The paper, "Encoder classes covered by the rate".

    Examples
    --------
    >>> LinearEncoders(weight_bound=2.0, input_bound=3.0, outputs=4).complexity
    12.0
    """

    weight_bound: float
    input_bound: float
    outputs: int

    def __post_init__(self) -> None:
        for name in ("weight_bound", "input_bound", "outputs"):
            _arrays.require_positive(getattr(self, name), name)

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`, :math:`R M \sqrt{d_Z}`."""
        return self.weight_bound * self.input_bound * math.sqrt(self.outputs)


@dataclass(frozen=True)
class MLPEncoders:
    r"""Fixed multilayer perceptrons :math:`x_l = \sigma(W_l x_{l-1} + b_l)`, without activation after the
    last layer.

    The class holds all networks with :math:`\|W_l\|_F \le R_l` and :math:`\|b_l\| \le \beta_l`; inputs have
    :math:`\|x_0\| \le M`; :math:`\sigma` is L-Lipschitz with :math:`\sigma(0) = 0`. Then

    .. math:: \mathcal G_n \le \sqrt{\frac{B}{n}} \sum_l D_l \Big( M_{l-1} R_l \sqrt{p_l} + \beta_l \sqrt{w_l} \Big),
        \quad D_l = \prod_{j > l} L R_j, \quad M_l = L (R_l M_{l-1} + \beta_l),

    with :math:`p_l` weights and :math:`w_l` units in layer l, and B the number of blocks (weight matrices and
    biases) that are not zero.

    Notes
    -----
    Changing one block at a time moves the output by at most
    :math:`D_l (M_{l-1} \|\Delta W_l\|_F + \|\Delta b_l\|)` in all, so by Cauchy-Schwarz the squared
    increments of the Gaussian process
    :math:`\theta \mapsto n^{-1} \sum_i \langle \xi_i, h_\theta(x_i) \rangle` are at most those of
    :math:`\theta \mapsto \sqrt{B/n} \sum_l D_l (M_{l-1} \langle \Xi_l, W_l \rangle + \langle \zeta_l, b_l \rangle)`
    with standard normal :math:`\Xi_l, \zeta_l`. The Sudakov-Fernique inequality orders their expected
    suprema, and :math:`E \|\Xi_l\|_F \le \sqrt{p_l}`. For one linear layer :class:`LinearEncoders` is smaller
    by the root of the number of inputs.

    Parameters
    ----------
    widths
        (d, w_1, ..., d_Z).
    weight_bounds
        :math:`R_l`, one for each layer.
    input_bound
        :math:`M`.
    bias_bounds
        :math:`\beta_l`, one for each layer; all zero if not given.
    activation
        "selu" (L = 1.7581), "relu", "tanh" or "identity" (L = 1).

    Examples
    --------
    One layer of 4 × 1 weights: √1 · M · R · √4.

    >>> MLPEncoders(widths=(4, 1), weight_bounds=(2.0,), input_bound=3.0).complexity
    12.0
    """

    widths: tuple[int, ...]
    weight_bounds: tuple[float, ...]
    input_bound: float
    bias_bounds: tuple[float, ...] = ()
    activation: Literal["selu", "relu", "tanh", "identity"] = "selu"

    def __post_init__(self) -> None:
        layers = len(self.widths) - 1
        if layers < 1 or len(self.weight_bounds) != layers or len(self.bias_bounds) not in (0, layers):
            raise ValueError(
                f"widths {self.widths} make {layers} layers; {len(self.weight_bounds)} bounds of weights and "
                f"{len(self.bias_bounds)} of biases were given. Pass one for each layer."
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(f"activation is {self.activation!r}; pass one of {', '.join(ACTIVATIONS)}.")
        _arrays.require_positive(self.input_bound, "input_bound")
        for width, bound in zip(self.widths[1:], self.weight_bounds):
            _arrays.require_positive(width, "width")
            _arrays.require_positive(bound, "weight_bound")
        if any(not (math.isfinite(b) and b >= 0) for b in self.bias_bounds):
            raise ValueError(f"bias_bounds are {self.bias_bounds}; pass finite numbers that are not negative.")

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`, by the bound above."""
        slope = ACTIVATIONS[self.activation]
        biases = self.bias_bounds or (0.0,) * len(self.weight_bounds)
        blocks = len(self.weight_bounds) + sum(b > 0 for b in biases)
        size, total = self.input_bound, 0.0
        for layer, ((inputs, units), weight, bias) in enumerate(zip(pairwise(self.widths), self.weight_bounds, biases)):
            after = math.prod(slope * later for later in self.weight_bounds[layer + 1 :])
            total += after * (size * weight * math.sqrt(inputs * units) + bias * math.sqrt(units))
            size = slope * (weight * size + bias)
        return math.sqrt(blocks) * total


EncoderClass = SingleEncoder | LinearEncoders | MLPEncoders
