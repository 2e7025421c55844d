r"""The paper's theorems, each checked on 50 draws for which both sides are known.

Part "draws" of the records, one for each statement and draw: ``left`` and ``right``, the two sides
of the statement, which are equal for an identity, and ordered for a bound.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from frhsic.kernels import Gaussian
from frhsic_paper.certificates import Certificate, gdp_certificate
from frhsic_paper.claim import Outcome, Rule, claim, outcome_from_cases, protocol_rule
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit, matching
from frhsic_paper.steps import Computation
from frhsic_paper.study import Study
from frhsic_paper.theory import (
    FiniteLaw,
    KernelExpansion,
    LinearEncoders,
    causal_necessity,
    decomposable_identity,
    discrete_identity,
    disintegration_identity,
    eipm_bound,
    khgr_bound,
    localized_contrast,
    population_gdp,
    smoothed_contrast,
    spectral_equivalence,
    train_to_population,
    uniform_bound,
)

DRAWS = 50

KERNELS: dict[str, Any] = {"kernel_z": Gaussian(1.0), "kernel_s": Gaussian(0.7)}

TRAINING_ROWS = 400

Rng = np.random.Generator
Sides = tuple[float, float]


def _table(rng: Rng) -> np.ndarray:
    """Return joint probabilities of four values of Z and three of S."""
    return rng.dirichlet(np.full(12, 0.7)).reshape(4, 3) * 0.99 + 0.01 / 12


def _grams() -> tuple[Tensor, Tensor]:
    z, s = (torch.arange(float(n), dtype=torch.float64)[:, None] for n in (4, 3))
    return KERNELS["kernel_z"](z, z), KERNELS["kernel_s"](s, s)


def _law(table: np.ndarray) -> FiniteLaw:
    return FiniteLaw.from_table(table, *_grams())


def _rows(rng: Rng) -> tuple[np.ndarray, np.ndarray]:
    z = rng.normal(size=(24, 2))
    return z, z[:, 0] + rng.normal(size=24)


class Theorem(NamedTuple):
    """A statement: its name, type and title in the paper, what it states, its two sides, and
    whether they are equal.
    """

    name: str
    title: str
    says: str
    sides: Callable[[Rng], Sides]
    equal: bool


THEOREMS: list[Theorem] = []
"""All statements, in the order in which this file defines them."""


def theorem(
    name: str, title: str, *, equal: bool = False
) -> Callable[[Callable[[Rng], Sides]], Callable[[Rng], Sides]]:
    """Add a function that draws the two sides of a statement to the theorems; its docstring is the
    statement.
    """

    def add(sides: Callable[[Rng], Sides]) -> Callable[[Rng], Sides]:
        THEOREMS.append(Theorem(name, title, sides.__doc__ or "", sides, equal))
        return sides

    return add


def _sides(certificate: Certificate) -> Sides:
    assert certificate.bounded is not None
    return certificate.bounded, certificate.value


@theorem("zero-level", "Proposition, zero-level characterization")
def _zero(rng: Rng) -> Sides:
    """HSIC is zero exactly if Z ⟂ S."""
    table = _table(rng)
    product = np.outer(table.sum(1), table.sum(0))
    return _law(product / product.sum()).hsic + 1e-12, _law(table).hsic


@theorem("disintegration", "Theorem, disintegration of the joint-vs-product IPM", equal=True)
def _disintegration(rng: Rng) -> Sides:
    """The joint discrepancy is an average of conditional contrasts over S."""
    return _sides(disintegration_identity(_table(rng), rng.normal(size=(7, 4, 3))))


@theorem("decomposable", "Corollary, recovery of the conditional-integral IPM", equal=True)
def _decomposable(rng: Rng) -> Sides:
    """A witness class that decomposes over S gives the conditional integral."""
    return _sides(decomposable_identity(_table(rng), rng.normal(size=(2, 4))))


@theorem("expected-mmd", "Proposition, decomposition of HSIC and its expected-MMD bound")
def _expected_mmd(rng: Rng) -> Sides:
    """HSIC is at most κ times the squared expected MMD."""
    return _sides(eipm_bound(_law(_table(rng))))


@theorem("fubini", "Lemma, Fubini for RKHS-valued integrals", equal=True)
def _mean_embedding(rng: Rng) -> Sides:
    """Kernel means exchange with expectations, so that HSIC is the squared MMD of joint and
    product.
    """
    table = _table(rng)
    apart = table - np.outer(table.sum(1), table.sum(0))
    k, l = (gram.numpy() for gram in _grams())
    return _law(table).hsic, float(np.einsum("im,jo,ij,mo", apart, apart, k, l))


@theorem("discrete", "Lemma, discrete sensitive attribute", equal=True)
def _discrete(rng: Rng) -> Sides:
    """With finitely many values of S, HSIC is a sum over pairs of values."""
    z, s = _rows(rng)
    return _sides(discrete_identity(z, (s.argsort().argsort() // 6).astype(float), **KERNELS))


@theorem("smoothed", "Theorem, smoothed conditional-distribution control")
def _smoothed(rng: Rng) -> Sides:
    """HSIC bounds every smooth contrast."""
    return _sides(smoothed_contrast(*_rows(rng), KernelExpansion(rng.normal(size=24)), **KERNELS))


@theorem("localized", "Corollary, localized conditional-MMD control")
def _localized(rng: Rng) -> Sides:
    """HSIC bounds the contrast near one value of S."""
    return _sides(localized_contrast(*_rows(rng), rng.normal(), **KERNELS))


@theorem("spectral", "Theorem, spectral equivalence of HSIC and the conditional MMD integral")
def _spectral(rng: Rng) -> Sides:
    """HSIC/κ ≤ conditional MMD integral ≤ HSIC/λ_m + tail."""
    both = spectral_equivalence(_law(_table(rng)), directions=2)
    left, right = _sides(both)
    lower = both.details["lower"]
    assert isinstance(lower, float)
    return left, right if lower <= left + 1e-12 else -1.0


@theorem("spectral-gdp", "Corollary, spectral control of GDP for RKHS heads")
def _population_gdp(rng: Rng) -> Sides:
    """GDP² of a head is at most its squared norm times HSIC/λ_m, plus the tail."""
    table, a = _table(rng), rng.normal(size=4)
    k = _grams()[0].numpy()
    gaps = k @ a @ (table / table.sum(0)) - k @ a @ table.sum(1)
    norm = float(np.sqrt(a @ k @ a))
    return _sides(
        population_gdp(
            _law(table), gaps - table.sum(0) @ gaps, norm, form="published", directions=2
        )
    )


@theorem("finite-sample", "Theorem, finite-sample control of the empirical gap")
def _finite_sample(rng: Rng) -> Sides:
    """In a sample, the projected gap of a head is at most its squared norm times HSIC/λ̂_m."""
    z, s = _rows(rng)
    gram = KERNELS["kernel_z"](*[torch.from_numpy(z)] * 2).numpy()
    a = rng.normal(size=len(z))
    norm = float(np.sqrt(a @ gram @ a))
    bound = gdp_certificate(z, s, norm=norm, form="published", directions=5, **KERNELS)
    projected = bound.directions.vectors.T.numpy() @ (gram @ a - (gram @ a).mean())
    return float(projected @ projected) / len(z), bound.value


@theorem("khgr", "Proposition, regularized empirical kHGR")
def _khgr(rng: Rng) -> Sides:
    """kHGR² ≤ HSIC/(η_Z η_S)."""
    return _sides(khgr_bound(*_rows(rng), **KERNELS))


def _uniform(rng: Rng) -> tuple[list[float], list[float]]:
    """Return the HSIC of linear encoders of two coordinates, on rows and in the population."""
    table = _table(rng)
    drawn = rng.multinomial(TRAINING_ROWS, table.ravel()).reshape(4, 3) / TRAINING_ROWS
    x = torch.from_numpy(rng.normal(size=(4, 2)))
    x = x / x.norm(dim=1).max()
    gram_s, sides = _grams()[1], (list[float](), list[float]())
    for w in rng.normal(size=(20, 2)):
        z = x @ torch.from_numpy(w / np.linalg.norm(w))[:, None]
        for side, law in zip(sides, (drawn + 1e-12, table)):
            side.append(
                FiniteLaw.from_table(law / law.sum(), KERNELS["kernel_z"](z, z), gram_s).hsic
            )
    return sides


def _bound(n: int) -> Certificate:
    return uniform_bound(n, LinearEncoders(1.0, 1.0, 1), *KERNELS.values())


def _chosen(rng: Rng) -> Sides:
    """Return the HSIC of the encoder with the smallest HSIC on rows, in the population and on
    rows.
    """
    rows, law = _uniform(rng)
    chosen = int(np.argmin(rows))
    return law[chosen], rows[chosen]


@theorem("uniform", "Theorem, uniform concentration over the encoder class")
def _for_all_encoders(rng: Rng) -> Sides:
    """HSIC of every encoder of a class is near its population value at once."""
    return max(abs(a - b) for a, b in zip(*_uniform(rng))), _bound(TRAINING_ROWS).value


@theorem("uniform-appendix", "Proposition, uniform concentration (appendix)")
def _in_appendix(rng: Rng) -> Sides:
    """The same bound with the constants of the imported theorem."""
    return _for_all_encoders(rng)


@theorem("learned-encoder", "Corollary, population HSIC of the learned encoder")
def _chosen_encoder(rng: Rng) -> Sides:
    """The bound covers the encoder that was chosen on the same rows."""
    law, rows = _chosen(rng)
    return law, rows + _bound(TRAINING_ROWS).value


@theorem("root-n", "Corollary, root-n rate")
def _root_n(rng: Rng) -> Sides:
    """The bound falls as n^(−1/2): four times the rows halve it."""
    n = int(rng.integers(10**4, 10**6))
    return _bound(4 * n).value, 0.501 * _bound(n).value


@theorem("bridge", "Corollary, train-population bridge")
def _bridge(rng: Rng) -> Sides:
    """Training HSIC plus the uniform bound is at least the population's."""
    law, rows = _chosen(rng)
    return law, train_to_population(rows, _bound(TRAINING_ROWS)).value


@theorem("counterfactual", "Proposition, necessary for counterfactual fairness")
def _interventions(rng: Rng) -> Sides:
    """If interventions on S do not change Z, HSIC is zero."""
    z = rng.normal(size=(1, 5, 2)) + rng.choice([0.0, 1.0]) * rng.normal(size=(3, 5, 2))
    return _sides(
        causal_necessity(z, rng.normal(size=3), probabilities=rng.dirichlet(np.ones(3)), **KERNELS)
    )


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the statements."""
    return {(one.name,): options.limit_repeats(DRAWS) for one in THEOREMS}


def draws(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield both sides of a statement for random distributions or samples."""
    by_name = {one.name: one for one in THEOREMS}
    for (name,) in missing:
        sides = [
            by_name[name].sides(np.random.default_rng(r))
            for r in range(options.limit_repeats(DRAWS))
        ]
        yield [
            {"repeat": r, "left": float(left), "right": float(right)}
            for r, (left, right) in enumerate(sides)
        ]


def _holds(one: Theorem) -> Rule:
    @protocol_rule("theorems/draws")
    def rule(records: Sequence[Record], protocol: Protocol) -> Outcome:
        sides = [(r["left"], r["right"]) for r in matching(records, name=one.name)]
        slack = [1e-9 * max(abs(left), abs(right)) + 1e-13 for left, right in sides]
        cases = [
            abs(left - right) <= s if one.equal else left <= right + s
            for (left, right), s in zip(sides, slack)
        ]
        share = np.median([left / right for left, right in sides if right > 0])
        return outcome_from_cases(
            cases,
            "the two sides are equal" if one.equal else f"left side / right side: {share:.2g}",
        )

    return rule


STUDY = Study(
    name="theorems",
    about="the paper's theorems, on draws whose two sides are known",
    title="The theorems",
    words="""
        Both sides of each statement on 50 random distributions of four values of Z and three of S,
        or on samples of 24 rows; statements about encoders on 400 rows from such a distribution and
        20 linear encoders. A statement that is proved cannot fail; a formula that is printed or
        programmed wrongly can. The median ratio of the left to the right side shows how tight a
        bound is. [What each assumes](../theory.md#theorems).
    """,
    measure=(Computation("theorems", "draws", ("name",), units, draws, {"corrected": DRAWS}),),
    claims=tuple(
        claim(
            f"theorem-{one.name}",
            one.title,
            one.says,
            reason="A case for each draw, up to rounding.",
            about="theory",
            published=False,
        )(_holds(one))
        for one in THEOREMS
    ),
    published=False,
)
