"""The sentences of certificates hold against an adversary.

Each instance draws rows, reads the sentence that an audit would show, takes the numbers out of its
text, and looks for a counterexample. What the sentence states is computed here from its definition
with NumPy alone. Several adversaries are tried: the worst head in closed form, kernel expansions at
random points (near the rows and far from them), and scores that oscillate with S.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest

import report_samples as samples
from frhsic.auditing import Settings
from frhsic.auditing.measures import Rows, certificates
from frhsic.auditing.results import CertificateRow, Subject
from frhsic.report.words import certificate_label, certificate_sentence

SCORE, EMBEDDING = (Subject("f", columns, score_name="f") for columns in (1, 2))
ROUNDING = 1e-9
"""What is computed here and in the library differs by rounding, in units of the bound."""
NUMBER = r"\d[\d,]*(?:\.\d+)?(?: × 10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"
"""A number as sentences write it."""
EXPANSIONS = 20
"""Random heads of each instance."""


@dataclass(frozen=True)
class Claim:
    """A sentence with the numbers that stand in its text, and the rows that it is about."""

    row: CertificateRow
    text: str
    z: np.ndarray
    s: np.ndarray
    scores: np.ndarray

    @property
    def bound(self) -> float:
        """The number after the first “at most”, as the reader sees it."""
        return number(re.search(f"at most ({NUMBER})", self.text)[1])

    def gram(self, x: np.ndarray, y: np.ndarray, of: str) -> np.ndarray:
        """Gaussian kernel of the stated bandwidth; the exact one, which the text rounds."""
        width = self.row.settings[f"bandwidth_{of}"]
        assert any(
            abs(shown / width - 1) < 0.006 for shown in map(number, re.findall(NUMBER, self.text))
        )
        return gaussian(x, y, width)


def number(text: str) -> float:
    """The value of a number as sentences write it."""
    mantissa, _, exponent = text.replace(",", "").partition(" × 10")
    return float(mantissa) * 10.0 ** int(
        exponent.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")) or 0
    )


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


def spread(z: np.ndarray) -> np.ndarray:
    """Standard deviation of each column, values further than ten interquartile ranges from the
    median drawn in.
    """
    low, middle, high = np.percentile(z, [25, 50, 75], axis=0)
    return np.std(
        np.minimum(np.maximum(z, middle - 10 * (high - low)), middle + 10 * (high - low)), axis=0
    )


def claims(rng: np.random.Generator, key: str) -> Iterator[Claim]:
    """The sentences of one kind that an audit of random rows shows."""
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
    given = f if key == "gap_of_these_scores" else None
    for row in certificates(Rows(z, s[:, None], given), Settings()):
        if row.key == key and row.value is not None:
            text = certificate_sentence(row, SCORE if z.shape[1] == 1 else EMBEDDING, "s")
            assert ("each column divided by its spread" in text) == (
                z.shape[1] > 1 and key != "gap_of_these_scores"
            )
            yield Claim(row, text, z if z.shape[1] == 1 else z / spread(z), s[:, None], f)
            return  # the others are not needed, and not computed


def directions(claim: Claim) -> np.ndarray:
    """The stated principal directions of S: eigenvectors of its centred Gram matrix, of as many as
    the text says.
    """
    stated = re.search(
        r"along (\d+) of up to (\d+) principal directions of s \((?:all|at least (\d+) %)",
        claim.text,
    )
    m, of, share = int(stated[1]), int(stated[2]), int(stated[3] or 100)
    n = len(claim.s)
    centring = np.eye(n) - 1 / n
    eigenvalues, vectors = np.linalg.eigh(centring @ claim.gram(claim.s, claim.s, "s") @ centring)
    assert of == len(np.unique(claim.s)) - 1
    assert of >= (eigenvalues > 1e-9 * eigenvalues[-1]).sum()
    assert eigenvalues[-m:].sum() / eigenvalues.sum() >= share / 100 - ROUNDING
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
        norm = np.sqrt(max(a @ claim.gram(anchors, anchors, "z") @ a, 0))
        if norm > 1e-6:  # otherwise the norm is rounding error
            yield claim.gram(claim.z, anchors, "z") @ a / norm


def attack_these_scores(claim: Claim, rng: np.random.Generator) -> float:
    along = directions(claim)
    part = along.T @ (claim.scores - claim.scores.mean())
    outside = 1 - part @ part / (len(claim.z) * claim.scores.var())
    stated = float(re.search(r"([\d.]+) % of its variance\) is not bounded", claim.text)[1]) / 100
    assert abs(outside - stated) < 0.006
    return float(np.sqrt(part @ part / len(claim.z)))


def attack_every_head(claim: Claim, rng: np.random.Generator) -> float:
    along, n = directions(claim), len(claim.z)
    heads = [np.linalg.norm(along.T @ f) / np.sqrt(n) for f in unit_heads(claim, rng)]
    # the worst head in closed form, Σ a_i k(z_i, ·) of norm 1: a is the direction in which K is
    # largest
    k = claim.gram(claim.z, claim.z, "z")
    a = along @ np.linalg.eigh(along.T @ k @ along)[1][:, -1]
    worst = k @ a / np.sqrt(a @ k @ a)
    return max(*heads, np.linalg.norm(along.T @ worst) / np.sqrt(n))


ATTACKS = {"gap_of_these_scores": attack_these_scores, "gap_of_every_head": attack_every_head}
INSTANCES = [200, pytest.param(10_000, marks=pytest.mark.slow)]


@pytest.mark.parametrize("instances", INSTANCES)
@pytest.mark.parametrize("key", ATTACKS)
def test_no_counterexample_is_found(key: str, instances: int) -> None:
    tried, closest, seed = 0, 0.0, 0
    while tried < instances:
        rng = np.random.default_rng([seed, len(key)])
        for claim in claims(rng, key):
            reached = ATTACKS[key](claim, rng)
            assert reached <= claim.bound * (1 + ROUNDING), (seed, reached, claim.text)
            closest, tried = max(closest, reached / claim.bound), tried + 1
        seed += 1
    assert closest > 0.99, "the adversary is too weak to test the bound"


@pytest.mark.parametrize("instances", [100, pytest.param(10_000, marks=pytest.mark.slow)])
def test_hsic_of_the_population_exceeds_its_bound_in_fewer_samples_than_stated(
    instances: int,
) -> None:
    """Populations of a few values, whose HSIC is a finite sum; rows drawn from them, and the bound
    read.
    """
    exceeded, closest = 0, 0.0
    for seed in range(instances):
        rng = np.random.default_rng([seed, 17])
        a, b = rng.integers(2, 6, 2)
        table = rng.dirichlet(np.full(a * b, rng.uniform(0.1, 1))).reshape(a, b)
        z, s = rng.normal(size=(a, 1)), rng.normal(size=(b, 1))
        rows = rng.choice(a * b, int(rng.integers(250, 900)), p=table.ravel())
        drawn = Rows(z[rows // b] + 0, s[rows % b] + 0, None)
        confidence = float(rng.choice([0.5, 0.8, 0.95]))
        settings = Settings(
            max_rows=len(rows) - int(rng.integers(100, 130)), confidence=confidence, seed=seed
        )
        shown = {row.key: row for row in certificates(drawn, settings)}.get("population_hsic")
        if shown is None:  # a median distance is 0
            continue
        claim = Claim(
            shown, certificate_sentence(shown, SCORE, "s"), drawn.z, drawn.s, np.array([])
        )
        assert f"with probability at least {100 * confidence:.0f} %" in claim.text
        k, l = claim.gram(z, z, "z"), claim.gram(s, s, "s")
        excess = table - table.sum(1, keepdims=True) * table.sum(0)
        population = float((excess * (k @ excess @ l)).sum())
        exceeded += (population > claim.bound * (1 + ROUNDING)) / (1 - confidence)
        closest = max(closest, population / claim.bound)
    assert exceeded <= instances
    assert closest > 0.3, "the populations are too close to independence to test the bound"


def test_a_gap_outside_the_directions_is_named_and_not_bounded() -> None:
    """Scores cos(40 s) have a gap of 0.70, nearly all of it outside the directions of a smooth
    kernel.
    """
    s = np.random.default_rng(0).uniform(-1, 1, 1500)
    f = np.cos(40 * s)
    row = next(iter(certificates(Rows(f[:, None], s[:, None], f), Settings())))
    text = certificate_sentence(row, SCORE, "s")
    assert row.key == "gap_of_these_scores"
    assert row.value < 0.2 < f.std()
    assert re.search(r"along \d of up to 1,499 principal directions of s", text)
    assert "outside these directions (about 100 % of its variance" in text
    assert "is not bounded, even where it depends on s." in text
    assert "along leading directions" in certificate_label(row, SCORE)


def test_a_bound_is_rounded_up() -> None:
    row = samples.attribute().certificates[0]
    assert "is at most 0.0124 " in certificate_sentence(replace(row, value=0.012301), SCORE, "s")
    assert "with probability at least 99.97 %" in certificate_sentence(
        replace(row, confidence=0.9997), SCORE, "s"
    )
    vacuous = replace(samples.attribute().certificates[1], trivial=2.001, trivial_because="so")
    assert "always at most 2.01, because so." in certificate_sentence(vacuous, SCORE, "s")
