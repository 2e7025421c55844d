r"""Kernels, their algebra, and the median bandwidth.

A kernel is an immutable callable :math:`(x, y) \mapsto k(x, y)` on the rows of two matrices; its docstring states
the formula. Each variable has its own kernel and its own bandwidth. Kernels add and multiply, with each other and
with numbers, as in ``10 * Linear() + Gaussian(1.0)``. Each knows the properties that the theorems need: an upper bound
of :math:`k(x, x)`, whether it is invariant to a common shift, and whether it is characteristic.

References
----------
Ni and Huo, *A Joint-Distribution Route to Fair Representations with Continuous Sensitive Attributes*.
"""

from frhsic.kernels.bandwidth import median_bandwidth, per_column_gaussians
from frhsic.kernels.families import Gaussian, HalfDistance, InverseMultiquadric, Laplacian, Linear
from frhsic.kernels.kernel import Kernel

__all__ = [
    "Gaussian",
    "HalfDistance",
    "InverseMultiquadric",
    "Kernel",
    "Laplacian",
    "Linear",
    "median_bandwidth",
    "per_column_gaussians",
]
