"""Decisions by the dual of their linear program, against linear programs on random laws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from pytest import approx
from scipy.optimize import linprog
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from frhsic import ParityClassifier
from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.constraints import GapCurve, condition_probability
from frhsic.estimators.deciding import Decisions, solve_dual
from frhsic.estimators.families import Problem
from frhsic.estimators.known import ConditionalLaw, KnownDecisions
from frhsic.estimators.solving import GAP_SHARES


@dataclass(frozen=True)
class Law:
    """A discrete law p(x, s, r, y) of two attributes, and the gaps that are limited: pairs of an
    attribute and the rows of a condition.
    """

    table: np.ndarray
    limited: tuple[tuple[int, str], ...]

    @classmethod
    def draw(cls, rng: np.random.Generator, limited: tuple[tuple[int, str], ...]) -> Law:
        shape = rng.integers(8, 40), rng.integers(2, 6), rng.integers(2, 5)
        cells = rng.dirichlet(np.full(np.prod(shape[1:]), 0.7), size=shape[0])
        cells *= rng.dirichlet(np.full(shape[0], 3.0))[:, None]
        p = (0.9 * cells + 0.1 * cells.mean()).reshape(shape)
        rate = rng.uniform(size=shape)
        return cls(np.stack([p * (1 - rate), p * rate], axis=3), limited)

    @property
    def mass(self) -> np.ndarray:
        return self.table.sum(axis=(1, 2, 3))

    @property
    def eta(self) -> np.ndarray:
        return self.table[..., 1].sum(axis=(1, 2)) / self.mass

    def joint(self, attribute: int, among: str) -> np.ndarray:
        """The law of (x, s) among the rows of a condition."""
        kept = {"all": slice(0, 2), "positive": slice(1, 2), "negative": slice(0, 1)}[among]
        joint = self.table[..., kept].sum(axis=(3, 2 - attribute))
        return joint / joint.sum()

    def bases(self) -> list[SensitiveBasis]:
        return [
            SensitiveBasis.fit(np.arange(joint.shape[1]) * 1.0, joint.sum(axis=0))
            for joint in (self.joint(*pair) for pair in self.limited)
        ]

    def means(self) -> list[np.ndarray]:
        """E[φ(S) 1{row counts} | x] / P(row counts), less a multiple of the chance that it does."""
        return [
            self.joint(*pair) @ basis.values / self.mass[:, None]
            for pair, basis in zip(self.limited, self.bases())
        ]

    def curves(self) -> list[np.ndarray]:
        """Matrices (levels, cells) that give E[d | s] - E d of decisions d, by definition."""
        joints = [self.joint(*pair) for pair in self.limited]
        return [joint.T / joint.sum(axis=0)[:, None] - joint.sum(axis=1) for joint in joints]

    def gaps(self, d: np.ndarray) -> np.ndarray:
        shares = [self.joint(*pair).sum(axis=0) for pair in self.limited]
        return np.array([p @ np.abs(curve @ d) for p, curve in zip(shares, self.curves())])

    def optimum(self, gains: np.ndarray, limits: np.ndarray) -> float:
        """Return the most that decisions in [0, 1] gain within the limits, by a linear program."""
        cells = len(self.mass)
        shares = [self.joint(*pair).sum(axis=0) for pair in self.limited]
        levels = sum(map(len, shares))
        rows = np.vstack(self.curves())
        sizes = np.zeros((len(limits), levels))
        starts = np.cumsum([0, *map(len, shares)])
        for j, own in enumerate(shares):
            sizes[j, starts[j] : starts[j + 1]] = own
        program = linprog(
            np.append(-self.mass * gains, np.zeros(levels)),
            np.block(
                [
                    [rows, -np.eye(levels)],
                    [-rows, -np.eye(levels)],
                    [np.zeros((len(limits), cells)), sizes],
                ]
            ),
            np.append(np.zeros(2 * levels), limits),
            bounds=[(0, 1)] * cells + [(0, None)] * levels,
        )
        return -program.fun


def least_bound(basis: SensitiveBasis, c: np.ndarray) -> float:
    """Return the least max |ν| of a function with coefficients c, by a linear program."""
    nodes = len(basis.mass)
    above = np.hstack([np.eye(nodes), -np.ones((nodes, 1))])
    below = np.hstack([-np.eye(nodes), -np.ones((nodes, 1))])
    moments = np.hstack([basis.values.T * basis.mass, np.zeros((len(c), 1))])
    return linprog(
        np.append(np.zeros(nodes), 1.0),
        np.vstack([above, below]),
        np.zeros(2 * nodes),
        moments,
        c,
        bounds=[(None, None)] * (nodes + 1),
    ).fun


LIMITED = {
    "marginal": ((0, "all"),),
    "Equal Opportunity": ((0, "positive"),),
    "both": ((0, "positive"), (0, "negative")),
    "several attributes": ((0, "all"), (1, "all")),
}


@pytest.mark.parametrize("name", LIMITED)
def test_the_dual_and_its_decisions_have_the_value_of_the_linear_program(name):
    rng = np.random.default_rng(sorted(LIMITED).index(name))
    for _ in range(12):
        law = Law.draw(rng, LIMITED[name])
        gains = law.eta - rng.choice([0.5, law.mass @ law.eta])
        limits = law.gaps(gains > 0) * rng.choice([0.7, 0.3, 0.1], size=len(law.limited))
        means = law.means()
        bases = law.bases()
        best = law.optimum(gains, limits)
        c, width = solve_dual(
            gains,
            np.column_stack(means),
            law.mass,
            bases,
            limits,
            ridge=1e-7,
            narrowest=1e-4,
            agreement=0.0,
        )
        margin = gains - np.column_stack(means) @ c
        d = expit(margin / width)
        # ties are drawn by lot, as the soft decisions say; the barrier leaves 1e-5 of the limits
        assert (law.gaps(d) <= limits * (1 + 2e-3)).all()
        assert law.mass @ (d * gains) == approx(best, abs=3e-6)
        parts = np.split(c, np.cumsum([block.shape[1] for block in means])[:-1])
        bounds = np.array([least_bound(basis, part) for basis, part in zip(bases, parts)])
        dual = law.mass @ np.maximum(margin, 0) + limits @ bounds
        assert dual == approx(best, abs=3e-6)


@pytest.mark.parametrize("among", ["all", "positive", "negative"])
def test_the_path_of_decisions_is_that_of_the_dual_for_shares_of_the_gap(among):
    """A fine x, so that ties hardly count: gaps are those aimed at, and cost what they must."""
    rng = np.random.default_rng(0)
    x = np.linspace(-2, 2, 400)
    s = np.linspace(-1, 1, 4)
    p = np.exp(-((x[:, None] - s) ** 2))
    p /= p.sum()
    rate = np.repeat(expit(2 * x + rng.normal(size=400))[:, None], 4, axis=1)
    law = Law(np.stack([p * (1 - rate), p * rate], axis=2)[:, :, None], ((0, among),))
    cell, level, _, y = (index.ravel() for index in np.indices(law.table.shape))
    weights = law.table.ravel()
    counted = weights * condition_probability(among, y * 1.0)
    basis = law.bases()[0]
    curve = GapCurve.from_rows(basis, basis(level * 1.0), counted, among=among)
    family = Decisions()
    moved = law.means()[0] + 0.3 * condition_probability(among, law.eta)[:, None]  # not centred
    base, columns = family.inputs(law.eta, moved, None)
    task = Problem(base[cell], columns[cell], y * 1.0, weights, [curve])
    path = family.path(task, GAP_SHARES)
    gains = law.eta - 0.5
    for share, parameters in zip(GAP_SHARES[1:], path[1:]):
        d = (family.outputs(parameters, base, columns) > 0) * 1.0
        limit = share * law.gaps(gains > 0)
        # soft and hard gaps agree to 1/20, and one cell is 1/400 of the rows
        assert law.gaps(d) == approx(limit, rel=0.05, abs=0.004)
        best = law.optimum(gains, law.gaps(d))  # one cell gains up to 0.5 / 400
        assert best - 2e-3 <= law.mass @ (d * gains) <= best + 1e-9


def test_decisions_do_not_depend_on_the_last_digits_of_eta_and_m():
    rng = np.random.default_rng(0)
    n = 800
    s = rng.uniform(size=n)
    x = s + 0.5 * rng.normal(size=n)
    basis = SensitiveBasis.fit(s)
    eta = expit(2 * x - 1 + 0.3 * rng.normal(size=n))
    means = np.column_stack([np.tanh(x - 0.5), 0.3 * np.cos(3 * x)])
    basis = basis.along(np.eye(basis.values.shape[1])[:, :2])
    y = (rng.random(n) < eta) * 1.0
    weights = np.full(n, 1 / n)
    curve = GapCurve.from_rows(basis, basis(s), weights)
    family = Decisions()

    def margins(noise: float) -> np.ndarray:
        shaken = eta * (1 + noise * rng.normal(size=n))
        columns = means * (1 + noise * rng.normal(size=means.shape))
        base, columns = family.inputs(shaken, columns, None)
        path = family.path(Problem(base, columns, y, weights, [curve]), GAP_SHARES)
        return np.array([family.outputs(own, base, columns) for own in path])

    exact = margins(0.0)
    for _ in range(3):
        shaken = margins(1e-12)
        changed = (shaken > 0) != (exact > 0)
        assert np.abs(exact[changed]).max(initial=0.0) < 1e-6
        assert np.abs(shaken - exact).max() < 1e-6


@pytest.mark.parametrize("move", [0.01, 0.05, 0.15, 0.3])
def test_decisions_that_know_s_are_optimal(move):
    """Against a linear program over randomised decisions with the gap of ours, on random laws of η
    given three levels.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        count = 300
        shares = rng.dirichlet(np.full(3, 5.0))
        shift = np.sort(rng.uniform(0, 0.4, size=3))
        eta = (0.6 * rng.beta(2, 3, (3, count)) + shift[:, None]).ravel()
        s = np.repeat(np.arange(3.0), count)
        weights = np.repeat(shares / count, count)
        conditional = ConditionalLaw.fit(eta, s, weights)
        task = Problem(eta, eta[:, None], eta, weights, threshold=0.5)
        family = KnownDecisions()
        parameters = family.parameters(move, task, conditional)
        columns = conditional.moved(eta, s)[:, None] - 0.5
        taken = (family.outputs(parameters, eta - 0.5, columns) > 0) * 1.0
        level = (s == np.arange(3)[:, None]) * weights
        curve = level / shares[:, None] - weights
        gap = shares @ np.abs(curve @ taken)
        program = linprog(
            np.append(weights * (0.5 - eta), np.zeros(3)),
            np.block([[curve, -np.eye(3)], [-curve, -np.eye(3)], [np.zeros(len(eta)), shares]]),
            np.append(np.zeros(6), gap),
            bounds=[(0, 1)] * len(eta) + [(0, None)] * 3,
        )
        loss = weights @ (taken * (0.5 - eta))
        assert program.fun - 1e-9 <= loss <= program.fun + 5e-4


@pytest.mark.parametrize("levels", [3, 40])
def test_a_law_given_s_is_that_of_its_people_and_of_a_hundred_like_those_near_it(levels):
    rng = np.random.default_rng(levels)
    n = 400
    s = rng.integers(levels, size=n) * 1.0
    score = rng.normal(size=n) + s / levels
    weights = rng.integers(1, 4, n) / 2
    law = ConditionalLaw.fit(score, s, weights)
    w = weights * n / weights.sum()
    grid = np.quantile(score, np.linspace(0, 1, 201))
    cell = np.minimum(np.searchsorted(grid, score, side="right") - 1, 199)
    values = np.unique(s)
    table = np.array([np.bincount(cell, w * (s == value), 200) for value in values])
    mass = table.sum(axis=1) / n
    rank = np.cumsum(mass) - mass / 2
    for i in range(len(values)):
        near = np.exp(-((rank - rank[i]) ** 2) / (2 * 0.02**2)) if levels > 16 else np.eye(3)[i]
        people = near @ table
        share = (table[i] + 100 * people / people.sum()) / (table[i].sum() + 100)
        assert law.shares[i] == approx(np.append(0, np.cumsum(share)), abs=1e-12)
    pooled = np.append(0, np.cumsum(table.sum(axis=0)) / n)
    at = (score[0] - grid[cell[0]]) / (grid[cell[0] + 1] - grid[cell[0]])
    row = law.shares[np.searchsorted(values, s[0])]
    expected = np.interp(row[cell[0]] + at * (row[cell[0] + 1] - row[cell[0]]), pooled, grid)
    moved = law.moved(score, s)
    assert moved[0] == approx(expected)
    ends = law.moved(np.array([-99.0, 99.0, 0.1]), np.array([-5.0, 999.0, np.nan]))
    assert ends == approx([grid[0], grid[-1], 0.1])
    assert ConditionalLaw.fit(np.ones(n), s).moved(score, s) is score


def test_rare_decisions_without_a_gap_are_one_for_everybody_where_x_is_nearly_s():
    rng = np.random.default_rng(0)
    s = rng.uniform(size=1000)
    X = s[:, None] + 0.02 * rng.normal(size=(1000, 1))
    y = rng.uniform(size=1000) < 0.02 + 0.15 * s
    model = ParityClassifier(
        LogisticRegression(),
        attribute_estimator=LinearRegression(),
        limit=0,
        aim="decision",
        random_state=0,
    ).fit(X, y, sensitive_features=s)
    gap = model.choice_.gaps["sensitive"]
    assert model.choice_.unconstrained["sensitive"].value > 0.3
    assert gap.value == 0
    assert gap.high < 0.02
    assert len(np.unique(model.predict(X))) == 1
