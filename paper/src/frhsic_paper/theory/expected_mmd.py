"""Bounds on HSIC by the expected MMD, and by the change in Z under interventions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from frhsic import _tensors
from frhsic.dependence.inputs import kernel_or_median
from frhsic.kernels import Kernel, gaussian_at_median
from frhsic_paper.certificates import Certificate, Detail
from frhsic_paper.theory.finite import ON_THIS_LAW, FiniteLaw


def eipm_bound(law: FiniteLaw) -> Certificate:
    r"""Bound HSIC by the expected MMD,
    :math:`\mathrm{HSIC} \le \kappa_S \,(E_S\, \mathrm{MMD}(P_{Z \mid S}, P_Z))^2`.

    The two are equal if the deviations and the features of S change sign together, as for two
    equally probable values :math:`\pm 1` and the linear kernel on S.

    References
    ----------
    The paper, Proposition "Decomposition of HSIC and its expected-MMD bound".

    Examples
    --------
    >>> law = FiniteLaw.from_table(
    ...     [[0.5, 0.0], [0.0, 0.5]], [[1.0, 0.0], [0.0, 1.0]], [[1.0, -1.0], [-1.0, 1.0]]
    ... )
    >>> bound = eipm_bound(law)
    >>> round(bound.value, 12), round(bound.bounded, 12)
    (0.5, 0.5)
    """
    return _expected_mmd_certificate(
        law,
        law.expected_mmd,
        bounds="HSIC of z and s",
        assumes=(ON_THIS_LAW, "bounded kernel on s"),
        details={"expected_mmd": law.expected_mmd, "kappa": law.kappa},
    )


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
        \kappa_S \Big( E_{S, S', U} \| k(Z_{S \leftarrow S}, \cdot) - k(Z_{S \leftarrow S'}, \cdot)
        \| \Big)^2

    in a structural model :math:`Z = h(f_X(S, U))` whose noise U is independent of S. The right side
    is zero exactly when no intervention changes Z (counterfactual fairness of every head, if the
    kernel on Z is characteristic); then HSIC is zero. The converse fails: HSIC may be zero although
    interventions change every Z.

    Parameters
    ----------
    representations
        :math:`Z_{S \leftarrow s_k}(u_i)`: each unit's representation under each intervention, of
        shape (K, n, d) or (K, n). Units are rows of noise, the same in each block.
    s
        The interventions :math:`s_k`, of shape (K,) or (K, q).
    probabilities
        :math:`P(S = s_k)`; equal by default.
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the median distance as bandwidth.

    Returns
    -------
    Certificate
        The value is the right-hand side; `bounded` is HSIC under the distribution in which S takes
        the values `s` independently of the units. Details: the mean change `effect`, and
        `largest_change`.

    References
    ----------
    The paper, Proposition "HSIC-fairness as a necessary condition for counterfactual fairness", of
    which this is the quantitative form: conditioning and intervening are equivalent when S is
    exogenous, so :math:`\|\Delta_k\| \le \sum_l \pi_l E_U \|k(Z_{s_k}, \cdot) - k(Z_{s_l},
    \cdot)\|`, and HSIC is at most :math:`\kappa_S (E \|\Delta\|)^2`.

    Examples
    --------
    Z = S xor U for two fair coins is independent of S, but every intervention changes it.

    >>> from frhsic.kernels import Gaussian
    >>> c = causal_necessity(
    ...     [[0, 1], [1, 0]], [0, 1], kernel_z=Gaussian(1.0), kernel_s=Gaussian(1.0)
    ... )
    >>> c.bounded, round(c.value, 4), round(c.details["effect"], 4)
    (0.0, 0.1967, 0.4435)
    """
    z = torch.as_tensor(representations).to(torch.float64)
    z = z[..., None] if z.ndim == 2 else z
    if z.ndim != 3 or z.numel() == 0 or not bool(torch.isfinite(z).all()):
        raise ValueError(
            f"representations have shape {tuple(z.shape)}; pass an array of finite numbers, of"
            " shape (interventions, units, columns)."
        )
    values = _tensors.matrix(s, "s").to(z)
    if values.shape[0] != z.shape[0] or values.shape[0] < 2:
        raise ValueError(
            f"there are {values.shape[0]} values of s and {z.shape[0]} interventions; pass one"
            " value for each of two or more interventions."
        )
    if probabilities is None:
        pi = torch.full_like(values[:, 0], 1 / values.shape[0])
    else:
        pi = _tensors.vector(probabilities, "probabilities").to(z)
        if (
            pi.shape[0] != values.shape[0]
            or float(pi.min()) <= 0
            or abs(float(pi.sum()) - 1) > 1e-9
        ):
            raise ValueError(
                "pass one probability for each value of s; they must be positive and sum to 1."
            )
    rows = z.flatten(0, 1)
    if kernel_z is None:
        kernel_z = gaussian_at_median(rows, name="representations")
    kernel_s = kernel_or_median(kernel_s, values, "s")
    group = torch.arange(z.shape[0], device=z.device).repeat_interleave(z.shape[1])
    law = FiniteLaw.from_rows(rows, group, pi, kernel_s(values, values), kernel_z)

    effect = 0.0
    largest = 0.0
    for k in range(z.shape[0]):
        for l in range(k):
            change = _feature_distances(kernel_z, z[k], z[l])
            effect += 2 * float(pi[k] * pi[l] * change.mean())
            largest = max(largest, float(change.max()))
    return _expected_mmd_certificate(
        law,
        effect,
        bounds="HSIC of the representation and s",
        assumes=("s is exogenous and independent of the noise of the units", "bounded kernel on s"),
        details={
            "effect": effect,
            "largest_change": largest,
            "units": z.shape[1],
            "interventions": z.shape[0],
        },
    )


def _expected_mmd_certificate(
    law: FiniteLaw,
    expected: float,
    *,
    bounds: str,
    assumes: tuple[str, ...],
    details: Mapping[str, Detail],
) -> Certificate:
    r"""Return the bound :math:`\mathrm{HSIC} \le \kappa_S c^2` for any c that is at least the
    expected MMD of the distribution.
    """
    return Certificate(
        value=law.kappa * expected**2,
        bounds=bounds,
        bounded=law.hsic,
        assumes=assumes,
        trivial=law.kappa * law.spread,
        trivial_because="the squared expected MMD is at most the variance of z in feature space",
        details=details,
    )


def _feature_distances(kernel: Kernel, x: Tensor, y: Tensor) -> Tensor:
    r"""Return :math:`\|k(x_i, \cdot) - k(y_i, \cdot)\|` row by row, of shape (n,)."""
    cross = kernel.shifted(x[:, None, :], y[:, None, :])[:, 0, 0]
    own = kernel.diagonal(x) + kernel.diagonal(y) - 2 * kernel.offset
    return (own - 2 * cross).clamp_min(0).sqrt()
