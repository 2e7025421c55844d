r"""Counterfactual fairness implies independence; the converse does not hold."""

from __future__ import annotations

from typing import Any

import torch

from frhsic import _arrays
from frhsic.certificates import Certificate
from frhsic.dependence.grams import kernel_or_median
from frhsic.kernels import Kernel, gaussian_at_median
from frhsic_paper.theory.finite import FiniteLaw, expected_mmd_certificate


def causal_necessity(
    representations: Any,
    s: Any,
    *,
    probabilities: Any = None,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
) -> Certificate:
    r"""Bound HSIC by the mean change of the representation under interventions on S.

    .. math:: \mathrm{HSIC}(Z, S) \;\le\;
        \kappa_S \Big( E_{S, S', U} \| k(Z_{S \leftarrow S}, \cdot) - k(Z_{S \leftarrow S'}, \cdot) \| \Big)^2

    in a structural model :math:`Z = h(f_X(S, U))` whose noise U is independent of S. The right side is zero
    exactly when no intervention changes Z (counterfactual fairness of every head, if the kernel on Z is
    characteristic); then HSIC is zero. The converse fails: HSIC may be zero although interventions change every Z.

    Parameters
    ----------
    representations
        :math:`Z_{S \leftarrow s_k}(u_i)`: each unit's representation under each intervention, of shape (K, n,
        d) or (K, n). Units are rows of noise, the same in each block.
    s
        The interventions :math:`s_k`, of shape (K,) or (K, q).
    probabilities
        :math:`P(S = s_k)`; equal if not given.
    kernel_z, kernel_s
        Kernels; a Gaussian at the median distance where None.

    Returns
    -------
    Certificate
        The value is the right side; `bounded` is HSIC of the law in which S takes the values `s` independently of the
        units. Details: the mean change `effect`, and `largest_change`.

    References
    ----------
    The paper, Proposition "HSIC-fairness as a necessary condition for counterfactual fairness", of
    which this is the quantitative form: conditioning is intervening when S is exogenous, so
    :math:`\|\Delta_k\| \le \sum_l \pi_l E_U \|k(Z_{s_k}, \cdot) - k(Z_{s_l}, \cdot)\|`, and HSIC is at most
    :math:`\kappa_S (E \|\Delta\|)^2`.

    Examples
    --------
    Z = S xor U with fair coins: independent of S, but changed by every intervention.

    >>> from frhsic.kernels import Gaussian
    >>> c = causal_necessity([[0, 1], [1, 0]], [0, 1], kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0))
    >>> c.bounded, round(c.value, 4), round(c.details["effect"], 4)
    (0.0, 0.1967, 0.4435)
    """
    z = torch.as_tensor(representations).to(torch.float64)
    z = z[..., None] if z.ndim == 2 else z
    if z.ndim != 3 or z.numel() == 0 or not bool(torch.isfinite(z).all()):
        raise ValueError(
            f"representations have shape {tuple(z.shape)}; pass finite numbers, (interventions, units, columns)."
        )
    values = _arrays.matrix(s, "s").to(z)
    if values.shape[0] != z.shape[0] or values.shape[0] < 2:
        raise ValueError(
            f"{values.shape[0]} values of s came for {z.shape[0]} interventions; pass two or more of each."
        )
    if probabilities is None:
        pi = torch.full_like(values[:, 0], 1 / values.shape[0])
    else:
        pi = _arrays.vector(probabilities, "probabilities").to(z)
        if pi.shape[0] != values.shape[0] or float(pi.min()) <= 0 or abs(float(pi.sum()) - 1) > 1e-9:
            raise ValueError("probabilities must be positive, sum to 1, and be one for each value of s.")
    kernel_z = gaussian_at_median(z.flatten(0, 1), name="representations") if kernel_z is None else kernel_z
    kernel_s = kernel_or_median(kernel_s, values, "s")
    law = FiniteLaw.from_conditionals(z, pi, kernel_s(values, values), kernel_z)

    effect, largest = 0.0, 0.0
    for k in range(z.shape[0]):
        for l in range(k):
            change = _feature_distances(kernel_z, z[k], z[l])
            effect += 2 * float(pi[k] * pi[l] * change.mean())
            largest = max(largest, float(change.max()))
    return expected_mmd_certificate(
        law,
        effect,
        bounds="HSIC of the representation and s",
        assumes=("s is exogenous and independent of the noise of the units", "bounded kernel on s"),
        details={"effect": effect, "largest_change": largest, "units": z.shape[1], "interventions": z.shape[0]},
    )


def _feature_distances(kernel: Kernel, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    r"""Return :math:`\|k(x_i, \cdot) - k(y_i, \cdot)\|` row by row, of shape (n,)."""
    cross = kernel.shifted(x[:, None, :], y[:, None, :])[:, 0, 0]
    own = kernel.diagonal(x) + kernel.diagonal(y) - 2 * kernel.offset
    return (own - 2 * cross).clamp_min(0).sqrt()
