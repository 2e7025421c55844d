"""Certificates hold against an adversary.

Each instance draws rows, computes a certificate, and looks for a counterexample. What it states is
computed here from its definition with NumPy alone. Several adversaries are tried: the worst head in
closed form, kernel expansions at random points (near the rows and far from them), and scores that
oscillate with S.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
import torch

from frhsic.kernels import Gaussian, default_gaussian
from frhsic_paper.certificates import Certificate, gdp_certificate, held_out_bound
from frhsic_paper.directions import VarianceShare

ROUNDING = 1e-9
"""What is computed here and in the library differs by rounding, in units of the bound."""
EXPANSIONS = 20
"""Random heads of each instance."""
SHARE = 0.95
"""Share of the variance of S in feature space along which gaps are bounded."""


@dataclass(frozen=True)
class Claim:
    """A certificate, and the rows and kernels that it is about."""

    certificate: Certificate
    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray
    kernel_z: Gaussian
    kernel_s: Gaussian

    @property
    def bound(self) -> float:
        """The bound on the root mean square gap."""
        return float(np.sqrt(self.certificate.value))

    def gram_z(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return gaussian(x, y, float(self.kernel_z.bandwidth))


def gaussian(x: np.ndarray, y: np.ndarray, width: float) -> np.ndarray:
    return np.exp(-((x[:, None, :] - y[None, :, :]) ** 2).sum(-1) / (2 * width**2))


def attribute(rng: np.random.Generator, n: int) -> np.ndarray:
    """S of one of the shapes that users have: smooth, skewed, heavy-tailed, tied, with many zeros,
    in clusters.
    """
    return [
        lambda: rng.uniform(-1, 1, n),
        lambda: rng.normal(size=n),
        lambda: rng.lognormal(sigma=rng.uniform(0.5, 2), size=n),
        lambda: rng.standard_t(2, size=n),
        lambda: rng.integers(17, 17 + rng.integers(4, 60), n).astype(float),
        lambda: np.where(rng.random(n) < 0.5, 0.0, rng.exponential(size=n)),
        lambda: rng.choice([0.0, 1.0, 5.0], n) + rng.normal(scale=0.05, size=n),
    ][rng.integers(7)]()


def representation(rng: np.random.Generator, s: np.ndarray) -> np.ndarray:
    """Z that follows S smoothly, follows it at a high frequency, has a spread that does, or ignores
    it.
    """
    t = (s - s.mean()) / s.std()
    noise = rng.normal(size=(len(s), rng.integers(1, 5)))
    signal = [t, np.cos(rng.uniform(1, 60) * t), np.sign(t), 0 * t][rng.integers(4)][:, None]
    return rng.uniform(0, 3) * signal + rng.uniform(0.05, 1) * noise * (
        1 + rng.integers(2) * np.abs(t[:, None])
    )


def median_kernels(z: np.ndarray, s: np.ndarray) -> tuple[Gaussian, Gaussian]:
    kernels = [default_gaussian(torch.as_tensor(x), name="x")[0] for x in (z, s)]
    return kernels[0], kernels[1]


def claim(rng: np.random.Generator, key: str) -> Claim:
    """A certificate of random rows: of their scores, or of every head."""
    n = int(rng.integers(20, 70))
    s = attribute(rng, n)
    z = representation(rng, s)
    scores = [
        z[:, 0],
        np.cos(rng.uniform(1, 60) * s),
        rng.normal(size=n),
        z[:, 0] * 10.0 ** rng.uniform(-6, 6),
    ]
    f = scores[rng.integers(4)]
    z, s = z / z.std(axis=0), s[:, None]
    kernel_z, kernel_s = median_kernels(z, s)
    certificate = gdp_certificate(
        z,
        s,
        kernel_z=kernel_z,
        kernel_s=kernel_s,
        scores=f if key == "these scores" else None,
        directions=VarianceShare(SHARE),
    )
    return Claim(certificate, z, s, f, kernel_z, kernel_s)


def directions(claim: Claim) -> np.ndarray:
    """The principal directions of S: eigenvectors of its centred Gram matrix, of as many as the
    certificate says.
    """
    m = int(re.search(r"along (\d+) directions of s", str(claim.certificate))[1])
    n = len(claim.s)
    centring = np.eye(n) - 1 / n
    gram = gaussian(claim.s, claim.s, float(claim.kernel_s.bandwidth))
    eigenvalues, vectors = np.linalg.eigh(centring @ gram @ centring)
    assert eigenvalues[-m:].sum() / eigenvalues.sum() >= SHARE - ROUNDING
    return vectors[:, -m:]


def unit_heads(claim: Claim, rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Values at the rows of random functions of norm 1: expansions at rows, between them, and far
    from them.
    """
    n, d = claim.z.shape
    for _ in range(EXPANSIONS):
        rows = rng.integers(0, n, rng.integers(1, 12))
        anchors = claim.z[rows] + 10.0 ** rng.uniform(-4, 1) * rng.normal(size=(len(rows), d))
        a = rng.normal(size=len(anchors))
        norm = np.sqrt(max(a @ claim.gram_z(anchors, anchors) @ a, 0))
        if norm > 1e-6:  # otherwise the norm is rounding error
            yield claim.gram_z(claim.z, anchors) @ a / norm


def attack_these_scores(claim: Claim, rng: np.random.Generator) -> float:
    along = directions(claim)
    part = along.T @ (claim.scores - claim.scores.mean())
    outside = 1 - part @ part / (len(claim.z) * claim.scores.var())
    assert abs(outside - claim.certificate.details["unresolved"]) < 1e-6
    return float(np.sqrt(part @ part / len(claim.z)))


def attack_every_head(claim: Claim, rng: np.random.Generator) -> float:
    along, n = directions(claim), len(claim.z)
    heads = [np.linalg.norm(along.T @ f) / np.sqrt(n) for f in unit_heads(claim, rng)]
    # the worst head in closed form, Σ a_i k(z_i, ·) of norm 1: a is the direction in which K is
    # largest
    k = claim.gram_z(claim.z, claim.z)
    a = along @ np.linalg.eigh(along.T @ k @ along)[1][:, -1]
    worst = k @ a / np.sqrt(a @ k @ a)
    return max(*heads, np.linalg.norm(along.T @ worst) / np.sqrt(n))


ATTACKS = {"these scores": attack_these_scores, "every head": attack_every_head}
INSTANCES = [80, pytest.param(10_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("instances", INSTANCES)
@pytest.mark.parametrize("key", ATTACKS)
def test_no_counterexample_is_found(key: str, instances: int) -> None:
    closest = 0.0
    for seed in range(instances):
        rng = np.random.default_rng([seed, len(key)])
        one = claim(rng, key)
        reached = ATTACKS[key](one, rng)
        assert reached <= one.bound * (1 + ROUNDING), (seed, reached, str(one.certificate))
        closest = max(closest, reached / one.bound)
    assert closest > 0.99, "the adversary is too weak to test the bound"


@pytest.mark.parametrize("instances", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hsic_of_the_population_exceeds_its_bound_in_fewer_samples_than_stated(
    instances: int,
) -> None:
    """Populations of a few values, whose HSIC is a finite sum; bandwidths come from other rows."""
    exceeded, closest = 0.0, 0.0
    for seed in range(instances):
        rng = np.random.default_rng([seed, 17])
        a, b = rng.integers(2, 6, 2)
        table = rng.dirichlet(np.full(a * b, rng.uniform(0.1, 1))).reshape(a, b)
        z, s = rng.normal(size=(a, 1)), rng.normal(size=(b, 1))
        rows = rng.choice(a * b, int(rng.integers(250, 900)), p=table.ravel())
        others, rows = rows[:100], rows[100:]
        confidence = float(rng.choice([0.5, 0.8, 0.95]))
        try:
            kernel_z, kernel_s = median_kernels(z[others // b], s[others % b])
        except ValueError:  # all of the other rows are equal
            continue
        certificate = held_out_bound(
            z[rows // b], s[rows % b], kernel_z, kernel_s, confidence=confidence
        )
        assert f"with probability at least {confidence:g}" in str(certificate)
        k = gaussian(z, z, float(kernel_z.bandwidth))
        l = gaussian(s, s, float(kernel_s.bandwidth))
        excess = table - table.sum(1, keepdims=True) * table.sum(0)
        population = float((excess * (k @ excess @ l)).sum())
        exceeded += (population > certificate.value * (1 + ROUNDING)) / (1 - confidence)
        closest = max(closest, population / certificate.value)
    assert exceeded <= instances
    assert closest > 0.3, "the populations are too close to independence to test the bound"


def test_a_gap_outside_the_directions_is_named_and_not_bounded() -> None:
    """Scores cos(40 s) have a gap of 0.70, nearly all of it outside the directions of a smooth
    kernel.
    """
    s = np.random.default_rng(0).uniform(-1, 1, 1500)
    f = np.cos(40 * s)
    certificate = gdp_certificate(f, s, scores=f, directions=VarianceShare(SHARE))
    assert certificate.value < 0.2**2 < f.var()
    assert certificate.details["unresolved"] > 0.995
    assert certificate.details["directions"] < 10
