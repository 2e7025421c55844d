r"""HSIC on rows and in the population, for all encoders in a class at once.

The bounds depend on the class through its Gaussian complexity,

.. math:: \mathcal G_n(\mathcal H) = E \sup_{h \in \mathcal H} \frac1n \sum_i \langle \xi_i, h(X_i)
    \rangle,
    \qquad \xi_i \sim N(0, I_{d_Z}).

It is bounded by :math:`c / \sqrt n`; the property `complexity` is the constant c.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Literal

from frhsic import _arrays
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, PerColumn
from frhsic_paper.certificates import FIXED_KERNELS, LARGEST_HSIC, Certificate, hsic_certificate

ACTIVATIONS = {
    "identity": 1.0,
    "relu": 1.0,
    "tanh": 1.0,
    "selu": 1.0507009873554805 * 1.6732632423543772,
}
"""Lipschitz constants of activations that are zero at zero; SELU's is its slope at 0 from below,
about 1.7581.
"""


@dataclass(frozen=True)
class LinearEncoders:
    r"""Linear encoders :math:`x \mapsto Wx` with :math:`\|W\|_F \le R` on inputs with :math:`\|X\|
    \le M`.

    .. math:: \mathcal G_n \le R\, E \Big\| \frac1n \sum_i \xi_i X_i^\top \Big\|_F \le R M \sqrt{d_Z
        / n}

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
    r"""Multilayer perceptrons :math:`x_l = \sigma(W_l x_{l-1} + b_l)` of fixed widths, without
    activation after the last layer.

    The class contains all networks with :math:`\|W_l\|_F \le R_l` and :math:`\|b_l\| \le \beta_l`;
    inputs have :math:`\|x_0\| \le M`; :math:`\sigma` is L-Lipschitz with :math:`\sigma(0) = 0`.
    Then

    .. math:: \mathcal G_n \le \sqrt{\frac{B}{n}} \sum_l D_l \Big( M_{l-1} R_l \sqrt{p_l} + \beta_l
        \sqrt{w_l} \Big),
        \quad D_l = \prod_{j > l} L R_j, \quad M_l = L (R_l M_{l-1} + \beta_l),

    with :math:`p_l` weights and :math:`w_l` units in layer l, and B the number of blocks (weight
    matrices and biases) that are not zero.

    Notes
    -----
    Changing one block at a time moves the output by at most :math:`D_l (M_{l-1} \|\Delta W_l\|_F +
    \|\Delta b_l\|)` in total, so by Cauchy-Schwarz the squared increments of the Gaussian process
    :math:`\theta \mapsto n^{-1} \sum_i \langle \xi_i, h_\theta(x_i) \rangle` are at most those of
    :math:`\theta \mapsto \sqrt{B/n} \sum_l D_l (M_{l-1} \langle \Xi_l, W_l \rangle + \langle
    \zeta_l, b_l \rangle)` with standard normal :math:`\Xi_l, \zeta_l`. The Sudakov-Fernique
    inequality orders their expected suprema, and :math:`E \|\Xi_l\|_F \le \sqrt{p_l}`. For one
    linear layer, the bound of :class:`LinearEncoders` is smaller by a factor of the square root of
    the number of inputs.

    Parameters
    ----------
    widths
        (d, w_1, ..., d_Z).
    weight_bounds
        :math:`R_l`, one for each layer.
    input_bound
        :math:`M`.
    bias_bounds
        :math:`\beta_l`, one for each layer; zero by default.
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
        if (
            layers < 1
            or len(self.weight_bounds) != layers
            or len(self.bias_bounds) not in (0, layers)
        ):
            raise ValueError(
                f"widths {self.widths} define {layers} layers, but there are"
                f" {len(self.weight_bounds)} weight_bounds and {len(self.bias_bounds)} bias_bounds."
                " Pass one weight bound for each layer and, if the layers have biases, one bias"
                " bound for each."
            )
        if self.activation not in ACTIVATIONS:
            raise ValueError(
                f"activation is {self.activation!r}; pass one of {', '.join(ACTIVATIONS)}."
            )
        _arrays.require_positive(self.input_bound, "input_bound")
        for width, bound in zip(self.widths[1:], self.weight_bounds):
            _arrays.require_positive(width, "width")
            _arrays.require_positive(bound, "weight_bound")
        if any(not (math.isfinite(b) and b >= 0) for b in self.bias_bounds):
            raise ValueError(
                f"bias_bounds are {self.bias_bounds}; pass finite nonnegative numbers."
            )

    @property
    def complexity(self) -> float:
        r"""Gaussian complexity times :math:`\sqrt n`, from the bound above."""
        slope = ACTIVATIONS[self.activation]
        biases = self.bias_bounds or (0.0,) * len(self.weight_bounds)
        blocks = len(self.weight_bounds) + sum(b > 0 for b in biases)
        size = self.input_bound
        total = 0.0
        for layer, ((inputs, units), weight, bias) in enumerate(
            zip(pairwise(self.widths), self.weight_bounds, biases)
        ):
            after = math.prod(slope * later for later in self.weight_bounds[layer + 1 :])
            total += after * (size * weight * math.sqrt(inputs * units) + bias * math.sqrt(units))
            size = slope * (weight * size + bias)
        return math.sqrt(blocks) * total


def feature_lipschitz(kernel: Kernel) -> float:
    r"""Lipschitz constant of the feature map, the smallest known :math:`\ell` with
    :math:`\|k(z, \cdot) - k(z', \cdot)\| \le \ell \|z - z'\|`.

    :math:`1/\sigma` for the Gaussian and the inverse multiquadric kernel, since :math:`2 - 2
    e^{-t/2}` and :math:`2 - 2 (1 + t)^{-1/2}` are at most :math:`t = \|z - z'\|^2 / \sigma^2`. For
    products of kernels with unit diagonal :math:`1 - ab \le (1 - a) + (1 - b)`: for several kernels
    on one variable, the squares add up; for kernels on separate columns, the largest counts.

    Raises
    ------
    ValueError
        For kernels without unit diagonal, since the constant of the bound does not scale like HSIC
        when a kernel is multiplied by a number, and for the Laplacian, whose feature map is not
        Lipschitz: :math:`\|k(z, \cdot) - k(z', \cdot)\|^2 \approx 2 \|z - z'\|_1 / \sigma` for
        close points.

    Examples
    --------
    >>> feature_lipschitz(Gaussian(0.5))
    2.0
    """
    if isinstance(kernel, (Gaussian, InverseMultiquadric)):
        return 1 / float(kernel.bandwidth)
    if isinstance(kernel, PerColumn):
        return max(feature_lipschitz(k) for k in kernel.kernels)
    raise ValueError(
        f"the bound needs a unit diagonal and a Lipschitz feature map, which {kernel} is not known"
        " to have. Pass Gaussian or InverseMultiquadric kernels, one per column if necessary."
    )


def uniform_bound(
    n: int,
    encoders: LinearEncoders | MLPEncoders,
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    confidence: float = 0.95,
) -> Certificate:
    r"""Bound the difference between HSIC on n rows and in the population, for all encoders in a
    class at once.

    .. math:: B_n(\mathcal H, \delta) = 8 \sqrt2 \sqrt{\frac{\log(2/\delta)}{n}} + \frac4n
        + 48 \sqrt\pi \max\{\ell_S, \ell_Z\}\, \mathcal G_n(\mathcal H)

    for kernels with unit diagonal. With probability at least :math:`1 - \delta`, the `confidence`,
    :math:`|\widehat{\mathrm{HSIC}} - \mathrm{HSIC}|` is at most this bound for every encoder in the
    class, even one chosen on these rows. For realistic n, the bound is vacuous; `n_needed` in the
    details is the smallest number of rows for which it isn't. For an encoder that was fixed before
    the rows were drawn, use :func:`frhsic_paper.certificates.held_out_bound`, which is far smaller.

    Parameters
    ----------
    n
        Number of rows, drawn independently from one distribution.
    encoders
        :class:`LinearEncoders` or :class:`MLPEncoders`.
    kernel_z, kernel_s
        Fixed kernels with unit diagonal and a Lipschitz feature map.
    confidence
        Probability :math:`1 - \delta` with which the bound holds.

    References
    ----------
    The paper, Theorem "Uniform concentration of empirical HSIC over the encoder class", after Ni
    and Huo (2024).

    Examples
    --------
    >>> bound = uniform_bound(10_000, LinearEncoders(1.0, 1.0, 2), Gaussian(1.0), Gaussian(1.0))
    >>> round(bound.value, 3), bound.vacuous, bound.details["n_needed"]
    (1.421, True, 322874)
    """
    _arrays.require_integer(n, "n")
    _arrays.require_fraction(confidence, "confidence")
    slope = max(feature_lipschitz(kernel_z), feature_lipschitz(kernel_s))
    # B_n = a / sqrt(n) + 4 / n
    sampling = 8 * math.sqrt(2 * math.log(2 / (1 - confidence)))
    complexity = 48 * math.sqrt(math.pi) * slope * encoders.complexity
    root = (sampling + complexity) / math.sqrt(n)
    return hsic_certificate(
        root + 4 / n,
        "largest distance of HSIC on the rows from the population over the encoder class",
        confidence,
        ("rows i.i.d.", FIXED_KERNELS, "every encoder considered lies in the class"),
        {
            "n": n,
            "sampling_term": sampling / math.sqrt(n),
            "bias_term": 4 / n,
            "complexity_term": complexity / math.sqrt(n),
            "gaussian_complexity": encoders.complexity / math.sqrt(n),
            "lipschitz": slope,
            "n_needed": _rows_below(sampling + complexity),
        },
    )


def train_to_population(hsic_train: float, uniform: Certificate) -> Certificate:
    r"""Bound the population HSIC of a trained encoder, :math:`\mathrm{HSIC}(\hat h) \le
    \widehat{\mathrm{HSIC}}(\hat h) + B_n(\mathcal H, \delta)`.

    Parameters
    ----------
    hsic_train
        Biased HSIC on the training rows, under the kernels of `uniform`.
    uniform
        Result of :func:`uniform_bound` for the searched class and the number of training rows.

    References
    ----------
    The paper, Corollary "Train-population HSIC bridge".

    Examples
    --------
    >>> uniform = uniform_bound(10**9, LinearEncoders(1.0, 1.0, 2), Gaussian(1.0), Gaussian(1.0))
    >>> bound = train_to_population(0.01, uniform)
    >>> round(bound.value, 4), bound.vacuous
    (0.0145, False)
    """
    if not 0 <= hsic_train <= 1:
        raise ValueError(
            f"hsic_train is {hsic_train}; pass the biased HSIC of the rows, computed with"
            " unit-diagonal kernels."
        )
    return replace(
        uniform,
        value=hsic_train + uniform.value,
        bounds="HSIC of the trained encoder in the population",
        details={"hsic_train": hsic_train, "uniform": uniform.value, **uniform.details},
    )


def _rows_below(root: float) -> int:
    r"""Return the smallest n with :math:`a / \sqrt n + 4 / n < c`: with x = 1/√n, the root of 4 x²
    + a x − c.
    """
    x = 2 * LARGEST_HSIC / (root + math.sqrt(root**2 + 16 * LARGEST_HSIC))
    n = max(1, math.floor(1 / x**2) - 1)
    while root / math.sqrt(n) + 4 / n >= LARGEST_HSIC:
        n += 1
    return n
