r"""Bounds on HSIC in the population from HSIC on a sample.

They hold for kernels with unit diagonal that are not negative and were fixed before the rows were drawn. Under such
kernels HSIC lies between 0 and 1/4, on a sample and in the population: with :math:`\kappa = E k(Z, Z')`,
:math:`\mathrm{HSIC}(Z, Z) = E k^2 - 2 E_Z (E_{Z'} k)^2 + \kappa^2 \le \kappa - \kappa^2 \le 1/4`, and
:math:`\mathrm{HSIC}(Z, S)^2 \le \mathrm{HSIC}(Z, Z)\, \mathrm{HSIC}(S, S)`. A bound at or above 1/4 is
vacuous.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch

from frhsic import _arrays
from frhsic.certificates._inputs import paired_float64
from frhsic.certificates.certificate import Certificate, Detail
from frhsic.certificates.encoders import EncoderClass, SingleEncoder
from frhsic.dependence import hsic
from frhsic.kernels import Gaussian, InverseMultiquadric, Kernel, PerColumn, Product

LARGEST_HSIC = 0.25
"""Largest possible HSIC of two kernels with values in [0, 1]."""

_FIXED = "kernels with unit diagonal and their bandwidths fixed before the rows were drawn"


def feature_lipschitz(kernel: Kernel) -> float:
    r"""Lipschitz constant of the feature map, the smallest known :math:`\ell` with
    :math:`\|k(z, \cdot) - k(z', \cdot)\| \le \ell \|z - z'\|`.

    :math:`1/\sigma` for the Gaussian and the inverse multiquadric kernel, since :math:`2 - 2 e^{-t/2}` and
    :math:`2 - 2 (1 + t)^{-1/2}` are at most :math:`t = \|z - z'\|^2 / \sigma^2`. For products of kernels with
    unit diagonal :math:`1 - ab \le (1 - a) + (1 - b)`: the squares add up on one variable, and the largest
    counts over columns.

    Raises
    ------
    ValueError
        For kernels without unit diagonal, and for the Laplacian, whose feature map is not Lipschitz:
        :math:`\|k(z, \cdot) - k(z', \cdot)\|^2 \approx 2 \|z - z'\|_1 / \sigma` for close points.

    Examples
    --------
    >>> feature_lipschitz(Gaussian(0.5)), feature_lipschitz(Gaussian(1.0) * InverseMultiquadric(1.0)) ** 2
    (2.0, 2.0000000000000004)
    """
    if isinstance(kernel, (Gaussian, InverseMultiquadric)):
        return 1 / float(kernel.bandwidth)
    if isinstance(kernel, Product):
        return math.hypot(feature_lipschitz(kernel.a), feature_lipschitz(kernel.b))
    if isinstance(kernel, PerColumn):
        return max(feature_lipschitz(k) for k in kernel.kernels)
    if not kernel.unit_diagonal:
        raise ValueError(
            f"{kernel} does not have unit diagonal. The constant max(ν_Z ℓ_S, ν_S ℓ_Z) of the bound does not scale "
            "like HSIC when a kernel is multiplied by a number, so it is used at ν = 1 only. Pass Gaussian or "
            "InverseMultiquadric kernels or their products."
        )
    raise ValueError(
        f"the feature map of {kernel} is not known to be Lipschitz (the Laplacian's is not: its squared increments "
        "grow like the distance). Pass Gaussian or InverseMultiquadric kernels or their products."
    )


def uniform_bound(
    n: int, encoders: EncoderClass, kernel_z: Kernel, kernel_s: Kernel, *, delta: float = 0.05
) -> Certificate:
    r"""Bound how far HSIC on n rows lies from the population, for all encoders of a class at once.

    .. math:: B_n(\mathcal H, \delta) = 8 \sqrt2 \sqrt{\frac{\log(2/\delta)}{n}} + \frac4n
        + 48 \sqrt\pi \max\{\ell_S, \ell_Z\}\, \mathcal G_n(\mathcal H)

    for kernels with unit diagonal. With probability at least :math:`1 - \delta` no encoder of the class,
    chosen on these rows or not, has :math:`|\widehat{\mathrm{HSIC}} - \mathrm{HSIC}|` above it. At realistic n the
    bound is vacuous; `n_needed` in the details is the number of rows from which it is not. For an encoder that was
    fixed before the rows were drawn use :func:`held_out_bound`, which is far smaller.

    Parameters
    ----------
    n
        Number of rows, drawn independently from one law.
    encoders
        :class:`LinearEncoders`, :class:`MLPEncoders` or :class:`SingleEncoder`.
    kernel_z, kernel_s
        Fixed kernels with unit diagonal and a Lipschitz feature map.
    delta
        Probability δ of error.

    References
    ----------
    The paper, Theorem "Uniform concentration of empirical HSIC over the encoder class", after Ni
    and Huo (2024).

    Examples
    --------
    >>> from frhsic.certificates import LinearEncoders
    >>> bound = uniform_bound(10_000, LinearEncoders(1.0, 1.0, 2), Gaussian(1.0), Gaussian(1.0))
    >>> round(bound.value, 3), bound.vacuous, bound.details["n_needed"]
    (1.421, True, 322874)
    """
    _arrays.require_integer(n, "n")
    _arrays.require_fraction(delta, "delta")
    slope = max(feature_lipschitz(kernel_z), feature_lipschitz(kernel_s))
    # B_n = a / sqrt(n) + 4 / n
    sampling = 8 * math.sqrt(2 * math.log(2 / delta))
    complexity = 48 * math.sqrt(math.pi) * slope * encoders.complexity
    root = (sampling + complexity) / math.sqrt(n)
    return _hsic_certificate(
        root + 4 / n,
        "largest distance of HSIC on the rows from the population over the encoder class",
        1 - delta,
        ("rows i.i.d.", _FIXED, "every encoder considered lies in the class"),
        {
            "n": n,
            "sampling_term": sampling / math.sqrt(n),
            "bias_term": 4 / n,
            "complexity_term": complexity / math.sqrt(n),
            "gaussian_complexity": encoders.complexity / math.sqrt(n),
            "lipschitz": slope,
            "n_needed": _rows_below(sampling + complexity, 4.0, LARGEST_HSIC),
        },
    )


def held_out_bound(
    z: Any, s: Any, kernel_z: Kernel, kernel_s: Kernel, *, delta: float = 0.05, device: torch.device | str | None = None
) -> Certificate:
    r"""Bound HSIC in the population from held-out rows.

    With probability at least :math:`1 - \delta`

    .. math:: \sqrt{\mathrm{HSIC}} \;\le\;
        \frac{n}{n - 1} \Big( \sqrt{\widehat{\mathrm{HSIC}}} + \sqrt{\frac{3 \log(1/\delta)}{n}} \Big).

    The value is the square of the right side. Unlike :func:`uniform_bound` it is useful at a few thousand rows.

    Parameters
    ----------
    z, s
        Representation and attribute of rows that were not used to choose the encoder or the kernels.
    kernel_z, kernel_s
        Kernels with unit diagonal that are never negative, such as Gaussians; others, such as `Linear`, raise an error.
        Their bandwidths must come from other rows (the training rows), so None raises an error.
    delta
        Probability δ of error.
    device
        Where to compute; that of the data if None.

    Notes
    -----
    Write :math:`\hat W = \frac{1}{2n^2} \sum_{ij} (\phi_i - \phi_j) \otimes (\psi_i - \psi_j)` for the
    cross-covariance operator of the sample: :math:`\|\hat W\|^2 = \widehat{\mathrm{HSIC}}` and
    :math:`E \hat W = (1 - 1/n) W` with :math:`\|W\|^2 = \mathrm{HSIC}`, so by Jensen's inequality
    :math:`(1 - 1/n) \|W\| \le E \|\hat W\|`. Replacing one row changes n - 1 pairs. Features of unit norm
    with non-negative products are at most :math:`\sqrt2` apart, and a pair changes by at most :math:`\sqrt6`:

    .. math:: \|a \otimes b - a' \otimes b'\|^2
        = \|a\|^2 \|b\|^2 + \|a'\|^2 \|b'\|^2 - 2 \langle a, a' \rangle \langle b, b' \rangle \le 6.

    Indeed :math:`\langle a, a' \rangle \ge p = (\|a\|^2 + \|a'\|^2)/2 - 1` because :math:`\|a - a'\|^2 \le 2`,
    and likewise :math:`\langle b, b' \rangle \ge q`. If p and q are not negative, the first two terms are at
    most :math:`4 + 4pq` and the whole at most :math:`4 + 2pq \le 6`; if one is negative, say p, the product is
    at least :math:`p \|b\| \|b'\| \ge 2p` and the whole at most :math:`4(1 + p) - 4p = 4`. So
    :math:`\|\hat W\|` changes by at most :math:`\sqrt6 / n`, and McDiarmid's inequality gives the second term.

    Examples
    --------
    >>> x = torch.arange(400.0) % 20
    >>> bound = held_out_bound(x, torch.arange(400.0) // 20, Gaussian(5.0), Gaussian(5.0))
    >>> round(bound.details["hsic"], 12), round(bound.value, 4), bound.vacuous
    (0.0, 0.0226, False)
    """
    _arrays.require_fraction(delta, "delta")
    for kernel, name in ((kernel_z, "kernel_z"), (kernel_s, "kernel_s")):
        if kernel is None:
            raise ValueError(
                f"{name} is None: a bandwidth computed from the held-out rows is not fixed beforehand. Pass "
                "Gaussian(median_bandwidth(training rows))."
            )
        if not kernel.unit_diagonal:
            raise ValueError(
                f"{name} is {kernel}, without unit diagonal: its HSIC has no bound that is known beforehand."
            )
    z, s = paired_float64(z, s, device=device, what="a held-out bound")
    n = z.shape[0]
    measured = max(float(hsic(z, s, kernel_z, kernel_s)), 0.0)
    deviation = math.sqrt(3 * math.log(1 / delta) / n)
    return _hsic_certificate(
        (n / (n - 1) * (math.sqrt(measured) + deviation)) ** 2,
        "HSIC of z and s in the population",
        1 - delta,
        ("rows i.i.d. and independent of the encoder", _FIXED, "kernels not negative"),
        {"n": n, "hsic": measured, "deviation": deviation},
    )


def train_to_population(hsic_train: float, uniform: Certificate) -> Certificate:
    r"""Bound HSIC of a trained encoder in the population,
    :math:`\mathrm{HSIC}(\hat h) \le \widehat{\mathrm{HSIC}}(\hat h) + B_n(\mathcal H, \delta)`.

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
    >>> from frhsic.certificates import LinearEncoders
    >>> uniform = uniform_bound(10**9, LinearEncoders(1.0, 1.0, 2), Gaussian(1.0), Gaussian(1.0))
    >>> bound = train_to_population(0.01, uniform)
    >>> round(bound.value, 4), bound.vacuous
    (0.0145, False)
    """
    _require_hsic(hsic_train)
    return replace(
        uniform,
        value=hsic_train + uniform.value,
        bounds="HSIC of the trained encoder in the population",
        details={"hsic_train": hsic_train, "uniform": uniform.value, **uniform.details},
    )


def train_to_test(
    hsic_train: float,
    n_train: int,
    n_test: int,
    encoders: EncoderClass,
    kernel_z: Kernel,
    kernel_s: Kernel,
    *,
    delta: float = 0.05,
) -> Certificate:
    r"""Bound HSIC of a trained encoder on test rows.

    .. math:: \widehat{\mathrm{HSIC}}^{\mathrm{test}} \le
        \widehat{\mathrm{HSIC}}^{\mathrm{train}} + B_{n_{\mathrm{train}}}(\mathcal H, \delta)
        + B_{n_{\mathrm{test}}}(\{\hat h\}, \delta)

    with probability at least :math:`1 - 2\delta`. On the test rows the encoder is fixed, so its class has one member
    there; the paper has twice the first term instead, which is larger at equal n.

    References
    ----------
    The paper, Remark "Train-test fairness bridge".

    Examples
    --------
    >>> from frhsic.certificates import LinearEncoders
    >>> encoders = LinearEncoders(1.0, 1.0, 2)
    >>> bound = train_to_test(0.01, 10**9, 10**9, encoders, Gaussian(1.0), Gaussian(1.0))
    >>> round(bound.value, 4), bound.confidence
    (0.0152, 0.9)
    """
    _require_hsic(hsic_train)
    train = uniform_bound(n_train, encoders, kernel_z, kernel_s, delta=delta)
    test = uniform_bound(n_test, SingleEncoder(), kernel_z, kernel_s, delta=delta)
    return _hsic_certificate(
        hsic_train + train.value + test.value,
        "HSIC of the trained encoder on the test rows",
        1 - 2 * delta,
        (*train.assumes, "test rows independent of the training rows"),
        {
            "hsic_train": hsic_train,
            "uniform_train": train.value,
            "single_test": test.value,
            "n_train": n_train,
            "n_test": n_test,
            "n_needed": train.details["n_needed"],
        },
    )


def unseen_gap_bound(norm: float, eigenvalue: float, bridge: Certificate) -> Certificate:
    r"""Bound the gap of a head on test rows: :math:`\|f\|^2 / \tilde\lambda_m` times a bound on their HSIC.

    Parameters
    ----------
    norm
        :math:`\|f\|` in the RKHS of the kernel on Z.
    eigenvalue
        :math:`\tilde\lambda_m`, the smallest eigenvalue of the directions of S among the test rows.
    bridge
        Result of :func:`train_to_test`.

    References
    ----------
    The paper, Remark "Train-test fairness bridge".

    Examples
    --------
    >>> bridge = train_to_test(0.01, 10**9, 10**9, SingleEncoder(), Gaussian(1.0), Gaussian(1.0))
    >>> unseen_gap_bound(2.0, 0.1, bridge).value / bridge.value
    40.0
    """
    _arrays.require_positive(norm, "norm")
    _arrays.require_positive(eigenvalue, "eigenvalue")
    return Certificate(
        value=norm**2 / eigenvalue * bridge.value,
        bounds="mean squared gap of the head on the test rows, along their directions of s",
        confidence=bridge.confidence,
        assumes=(*bridge.assumes, f"the head has norm at most {norm:g} in the RKHS of the kernel on z"),
        trivial=norm**2 / 2,
        trivial_because="a head of this norm varies by at most √2 times it, so its variance is no larger",
        details={"norm": norm, "eigenvalue": eigenvalue, "bridge": bridge.value},
    )


def _hsic_certificate(
    value: float, bounds: str, confidence: float, assumes: tuple[str, ...], details: Mapping[str, Detail]
) -> Certificate:
    """Return a bound on HSIC under kernels with values in [0, 1]."""
    return Certificate(
        value=value,
        bounds=bounds,
        confidence=confidence,
        assumes=assumes,
        trivial=LARGEST_HSIC,
        trivial_because="HSIC of kernels with values in [0, 1] is at most 1/4",
        details=details,
    )


def _rows_below(root: float, reciprocal: float, target: float) -> int:
    r"""Return the smallest n with :math:`a / \sqrt n + b / n < c`: with x = 1/√n, the root of b x² + a x − c."""
    x = 2 * target / (root + math.sqrt(root**2 + 4 * reciprocal * target))
    n = max(1, math.floor(1 / x**2) - 1)
    while root / math.sqrt(n) + reciprocal / n >= target:
        n += 1
    return n


def _require_hsic(value: float) -> None:
    if not 0 <= value <= 1:
        raise ValueError(
            f"hsic_train is {value}; pass the biased HSIC on the training rows, under unit-diagonal kernels."
        )
