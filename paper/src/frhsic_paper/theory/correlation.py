"""The kernel maximal correlation of a sample, bounded by its HSIC."""

from __future__ import annotations

from typing import Any

from frhsic.dependence import hsic
from frhsic.kernels import Kernel
from frhsic_paper.certificates import ON_THESE_ROWS, Certificate, rows_and_kernels
from frhsic_paper.statistics import kernel_hgr


def khgr_bound(
    z: Any,
    s: Any,
    kernel_z: Kernel | None = None,
    kernel_s: Kernel | None = None,
    *,
    ridge_z: float = 0.01,
    ridge_s: float = 0.01,
) -> Certificate:
    r"""Bound the squared kernel maximal correlation,
    :math:`\widehat{\mathrm{kHGR}}^2 \le \widehat{\mathrm{HSIC}} / (\eta_Z \eta_S)`.

    Zero HSIC means that no smooth function of Z correlates with a smooth function of S on these
    rows. The bound is close if the ridges are large compared with the variances in feature space,
    and vacuous for small ridges.

    Parameters
    ----------
    z, s
        Representation, of shape (n, d), and attribute, of shape (n,) or (n, q).
    kernel_z, kernel_s
        Kernels; None uses a Gaussian with the median distance as bandwidth.
    ridge_z, ridge_s
        :math:`\eta_Z, \eta_S`, as in :func:`frhsic_paper.statistics.kernel_hgr`.

    References
    ----------
    The paper, Proposition "Regularized empirical sandwich bound".

    Examples
    --------
    With linear kernels, variances and covariance are 1.25, so the bound is (1.25 / 5)² and the
    squared correlation (1.25 / 6.25)².

    >>> from frhsic.kernels import Linear
    >>> x = [0.0, 1.0, 2.0, 3.0]
    >>> c = khgr_bound(x, x, Linear(), Linear(), ridge_z=5.0, ridge_s=5.0)
    >>> round(c.value, 12), round(c.bounded, 12)
    (0.0625, 0.04)
    """
    z, s, kernel_z, kernel_s = rows_and_kernels(z, s, kernel_z, kernel_s)
    correlation = float(kernel_hgr(z, s, kernel_z, kernel_s, ridge_z=ridge_z, ridge_s=ridge_s))
    dependence = float(hsic(z, s, kernel_z, kernel_s))
    return Certificate(
        value=dependence / (ridge_z * ridge_s),
        bounds="squared regularised kernel maximal correlation of z and s",
        bounded=correlation**2,
        assumes=(ON_THESE_ROWS,),
        trivial=1.0,
        trivial_because="a correlation is at most 1",
        details={
            "n": z.shape[0],
            "hsic": dependence,
            "khgr": correlation,
            "ridge_z": ridge_z,
            "ridge_s": ridge_s,
        },
    )
