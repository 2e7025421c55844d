"""Intervals for HSIC of two samples."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from frhsic import _arrays
from frhsic.independence.effects import Effect, hsic_effect, normalized_effect
from frhsic.independence.grams import law_pair
from frhsic.kernels import Kernel

if TYPE_CHECKING:
    import torch


def hsic_interval(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    confidence: float = 0.95,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Effect:
    r"""Unbiased HSIC with an interval, based on the approximate distribution of the estimate for
    each population value.

    The interval contains each :math:`\theta \ge 0` with :math:`P_\theta(\hat\theta \ge v)` and
    :math:`P_\theta(\hat\theta \le v)` at least :math:`\alpha/2`, where v is the observed value. It
    is widened to include v, which is negative about half the time under independence. The upper end
    is never below the upper end for v = 0.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, where, device
        As for :func:`~frhsic.independence.gamma_test`.
    confidence
        Confidence of the interval.

    Returns
    -------
    Effect
        The estimate as `value` and ``float(...)``, and the `interval` of the population value under
        these kernels, whose bandwidths are treated as fixed.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 50)
    >>> effect = hsic_interval(x, x)
    >>> 0 < effect.interval.low < effect.value < effect.interval.high
    True
    """
    _arrays.require_fraction(confidence, "confidence")
    return hsic_effect(law_pair(z, s, kernel_z, kernel_s, where=where, device=device), confidence)


def normalized_hsic_interval(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    confidence: float = 0.95,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Effect:
    r"""Bias-corrected normalized HSIC with an interval.

    .. math:: \hat r = \widehat{\mathrm{HSIC}}(z, s) \Big/
        \sqrt{\widehat{\mathrm{HSIC}}(z, z)\, \widehat{\mathrm{HSIC}}(s, s)}

    with the unbiased estimates. The population value is at most one, and zero exactly when Z and S
    are independent, if the kernels are characteristic. It is one when z and s have the same
    distances relative to their bandwidths, and less if z is a bijection of s that changes
    distances. With :class:`~frhsic.kernels.HalfDistance` kernels, the estimate is the
    bias-corrected squared distance correlation. If z or s varies in too few rows to estimate its
    variance under the kernel, as with a single positive decision, the value is 0 and the interval
    is from 0 to 1.

    Parameters
    ----------
    z, s, kernel_z, kernel_s, confidence, where, device
        As for :func:`hsic_interval`.

    References
    ----------
    Székely and Rizzo (2014), *Partial distance correlation with methods for dissimilarities*.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.linspace(0, 1, 50)
    >>> round(normalized_hsic_interval(x, 2 * x + 1).value, 6)
    1.0
    """
    _arrays.require_fraction(confidence, "confidence")
    return normalized_effect(
        law_pair(z, s, kernel_z, kernel_s, where=where, device=device), confidence
    )
