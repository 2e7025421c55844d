"""The Gram matrices of two samples, with their sums computed from tiles."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from frhsic import _arrays, _tensors
from frhsic.dependence.columns import CubicSums
from frhsic.dependence.cubes import OwnSums, own_sums, random_signs
from frhsic.dependence.inputs import paired_rows, require_kernel, working_copy
from frhsic.dependence.sums import GramSums, PairSums, pair_sums, product_rows
from frhsic.dependence.tiles import Gram
from frhsic.independence.pairs import ColumnPair, Invariants, OwnDependence, Pair
from frhsic.kernels import HalfDistance, Kernel, default_gaussian


@dataclass(frozen=True, eq=False)
class GramPair(Pair):
    """The Gram matrices of z and s on the same rows, the sums from one pass over the pairs, and the
    rules that determined the bandwidths.
    """

    k: Gram
    l: Gram
    sums: PairSums
    rules: tuple[str, str]

    @property
    def n(self) -> int:
        return self.k.n

    @property
    def kernels(self) -> tuple[str, str]:
        return repr(self.k.kernel), repr(self.l.kernel)

    @property
    def statistic(self) -> float:
        return float(self.sums.biased_hsic)

    @property
    def unbiased(self) -> float:
        return float(self.sums.unbiased_hsic)

    @cached_property
    def influence(self) -> np.ndarray:
        return _arrays.to_numpy(2 * product_rows(self.k, self.l, self.sums) / self.n)

    @property
    def invariants(self) -> tuple[Invariants, Invariants]:
        k, l = (
            Invariants(float(g.trace), float(g.squares), float(g.diagonal.square().sum()))
            for g in (self.sums.k.centered_gram, self.sums.l.centered_gram)
        )
        return k, l

    @cached_property
    def own_sums(self) -> tuple[OwnSums, OwnSums]:
        """Sums over each centered Gram matrix separately."""
        return own_sums(self.k, self.sums.k), own_sums(self.l, self.sums.l)

    @property
    def cubes(self) -> tuple[CubicSums, CubicSums]:
        k, l = self.own_sums
        return k.cubes, l.cubes

    @property
    def own(self) -> tuple[OwnDependence, OwnDependence]:
        k, l = self.own_sums
        return (
            own_dependence(self.k, self.sums.k, k.square_rows),
            own_dependence(self.l, self.sums.l, l.square_rows),
        )


def own_dependence(gram: Gram, sums: GramSums, square_rows: Tensor | None) -> OwnDependence:
    """Return the unbiased HSIC of one variable with itself, and the influence of each row."""
    twice = PairSums(sums.squares, sums, sums)
    rows = product_rows(gram, gram, twice) if square_rows is None else square_rows
    return OwnDependence(float(twice.unbiased_hsic), _arrays.to_numpy(2 * rows / len(rows)))


def law_pair(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
) -> Pair:
    """Check the inputs of a test or an interval that needs sums of degree three, and return their
    Gram matrices.
    """
    z, s = paired_rows(z, s, where=where, device=device, least=6, what="a test of independence")
    return law_pair_from_rows(z, s, kernel_z, kernel_s)


def law_pair_from_rows(
    z: Tensor, s: Tensor, kernel_z: Kernel | None, kernel_s: Kernel | None
) -> Pair:
    """Return the result of :func:`law_pair` for validated rows. If both variables have one column
    and half-distance kernels, sums are computed by sorting.
    """
    half = isinstance(kernel_z, HalfDistance) and isinstance(kernel_s, HalfDistance)
    if half and z.shape[1] == s.shape[1] == 1:
        return ColumnPair.from_values(_tensors.column_values(z), _tensors.column_values(s))
    return _gram_pair(z, s, kernel_z, kernel_s, third=True)


def gram_pair(
    z: Any,
    s: Any,
    kernel_z: Kernel | None,
    kernel_s: Kernel | None,
    *,
    where: Any = None,
    device: torch.device | str | None = None,
    least: int = 6,
) -> GramPair:
    """Check the inputs of a permutation test and return their Gram matrices."""
    z, s = paired_rows(z, s, where=where, device=device, least=least, what="a test of independence")
    return _gram_pair(z, s, kernel_z, kernel_s, third=False)


def _gram_pair(
    z: Tensor, s: Tensor, kernel_z: Kernel | None, kernel_s: Kernel | None, *, third: bool
) -> GramPair:
    """Return the Gram matrices with the sums from one pass; with `third`, the pass also computes
    what sums of degree three require.
    """
    k, rule_z = _gram_and_rule(z, kernel_z, "z")
    l, rule_s = _gram_and_rule(s, kernel_s, "s")
    sums = pair_sums(k, l, signs=random_signs(k) if third else None)
    return GramPair(k, l, sums, (rule_z, rule_s))


def _gram_and_rule(x: Tensor, kernel: Kernel | None, name: str) -> tuple[Gram, str]:
    """Return the Gram matrix of a variable and the rule that determined the bandwidth; None uses a
    Gaussian with the median distance as bandwidth.
    """
    require_kernel(kernel, f"kernel_{name}")
    rule = "given"
    if kernel is None:
        kernel, rule = default_gaussian(x, name=name)
    single = x.dtype == torch.float32
    return Gram.from_rows(working_copy(x, kernel), kernel, single=single), rule
