"""Decisions by the dual of their linear program, against linear programs on random laws."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from pytest import approx
from scipy.optimize import linprog
from scipy.special import expit
from sklearn.linear_model import LinearRegression, LogisticRegression

from frhsic import ParityClassifier
from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.constraints import CHANCES, Constraint, GapCurves
from frhsic.estimators.deciding import Decisions, solve_dual
from frhsic.estimators.families import SolverTask, log_odds
from frhsic.estimators.frontier import Gap
from frhsic.estimators.solving import GAP_SHARES


@dataclass(frozen=True)
class Law:
    """A discrete law p(x, s, r, y) of two attributes, and the gaps that are limited: pairs of an
    attribute and the rows of a condition; with `strata`, the control of each x, within these.
    """

    table: np.ndarray
    limited: tuple[tuple[int, str], ...]
    strata: np.ndarray | None = None

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

    @property
    def constraints(self) -> list[Constraint]:
        pairs = zip(self.limited, self.bases())
        return [Constraint(attribute, among, basis, 1.0) for (attribute, among), basis in pairs]

    def curves_of_rows(self) -> tuple[GapCurves, np.ndarray, np.ndarray, np.ndarray]:
        """One row for each x, s, r and y: the curves, x, y and weights."""
        x, *s, y = (index.ravel() for index in np.indices(self.table.shape))
        attributes = np.column_stack(s) * 1.0
        weights = self.table.ravel()
        strata = None if self.strata is None else self.strata[x]
        curves = GapCurves.of(self.constraints, attributes, y, weights, None, strata, self.count)
        return curves, x, y * 1.0, weights

    @property
    def count(self) -> int:
        return 1 if self.strata is None else int(self.strata.max()) + 1

    @property
    def inside(self) -> np.ndarray:
        """Which x are in each stratum, (strata, x)."""
        codes = np.zeros(len(self.mass)) if self.strata is None else self.strata
        return codes == np.arange(self.count)[:, None]

    def means(self) -> list[np.ndarray]:
        """E[φ(S) 1{row counts} | x] / P(row counts), less a multiple of the chance that it does;
        for each stratum, with zeros in others, all limits.
        """
        blocks = []
        for own in self.inside:
            for pair, basis in zip(self.limited, self.bases()):
                joint = self.joint(*pair)
                columns = joint @ basis.values
                if self.strata is not None:  # E[φ | w] times the chance of the condition
                    columns -= np.outer(joint.sum(axis=1), own @ columns / joint[own].sum())
                blocks.append(columns * own[:, None] / self.mass[:, None])
        return blocks

    def cells(self) -> list[np.ndarray]:
        """The law of x and of (stratum, s), (x, cells), for each limit."""
        joints = [self.joint(*pair) for pair in self.limited]
        return [np.hstack([joint * own[:, None] for own in self.inside]) for joint in joints]

    def curves(self) -> list[np.ndarray]:
        """Matrices (cells, x) that give E[d | s] - E d of decisions d, by definition, in each
        stratum.
        """
        curves = []
        for cells in self.cells():
            among = np.array([cells.sum(axis=1) * own for own in self.inside])
            among /= among.sum(axis=1, keepdims=True)
            levels = cells.shape[1] // self.count
            curves.append(cells.T / cells.sum(axis=0)[:, None] - np.repeat(among, levels, axis=0))
        return curves

    def gaps(self, d: np.ndarray) -> np.ndarray:
        shares = [cells.sum(axis=0) for cells in self.cells()]
        return np.array([p @ np.abs(curve @ d) for p, curve in zip(shares, self.curves())])

    def optimum(self, gains: np.ndarray, limits: np.ndarray) -> float:
        """Return the most that decisions in [0, 1] gain within the limits, by a linear program."""
        cells = len(self.mass)
        shares = [cells.sum(axis=0) for cells in self.cells()]
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
            law.curves_of_rows()[0],
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
    curves, cell, y, weights = law.curves_of_rows()
    family = Decisions()
    intercept, slope = CHANCES[among]
    moved = law.means()[0] + 0.3 * (intercept + slope * law.eta)[:, None]  # not centred
    base, columns = family.inputs(law.eta, moved, None)
    task = SolverTask(base[cell], columns[cell], y, weights, curves)
    path = family.path(task, GAP_SHARES)
    gains = law.eta - 0.5
    for share, parameters in zip(GAP_SHARES[1:], path[1:]):
        d = (family.outputs(parameters, base, columns) > 0) * 1.0
        limit = share * law.gaps(gains > 0)
        # soft and hard gaps agree to 1/20, and one cell is 1/400 of the rows
        assert law.gaps(d) == approx(limit, rel=0.05, abs=0.004)
        best = law.optimum(gains, law.gaps(d))  # one cell gains up to 0.5 / 400
        assert best - 2e-3 <= law.mass @ (d * gains) <= best + 1e-9


@pytest.mark.parametrize("name", LIMITED)
def test_the_dual_within_strata_has_the_value_of_the_linear_program(name):
    """Coefficients of each stratum come from its own ν, without a factor 1 / P(w)."""
    rng = np.random.default_rng(sorted(LIMITED).index(name))
    for _ in range(6):
        law = Law.draw(rng, LIMITED[name])
        law = replace(law, strata=np.arange(len(law.mass)) % rng.integers(2, 4))
        gains = law.eta - rng.choice([0.5, law.mass @ law.eta])
        limits = law.gaps(gains > 0) * rng.choice([0.7, 0.3, 0.1], size=len(law.limited))
        columns = np.column_stack(law.means())
        c, width = solve_dual(
            gains,
            columns,
            law.mass,
            law.curves_of_rows()[0],
            limits,
            ridge=1e-7,
            narrowest=1e-4,
            agreement=0.0,
        )
        d = expit((gains - columns @ c) / width)
        assert (law.gaps(d) <= limits * (1 + 2e-3)).all()
        assert law.mass @ (d * gains) == approx(law.optimum(gains, limits), abs=3e-6)


@pytest.mark.parametrize("among", ["all", "positive"])
def test_the_path_within_strata_is_that_of_the_dual_and_shrinks_to_common_coefficients(among):
    """Two strata that need opposite coefficients; no row is in none of them."""
    x = np.tile(np.linspace(-2, 2, 200), 2)
    turn = np.repeat([1.0, -1.0], 200)
    p = np.exp(-((x[:, None] - turn[:, None] * np.linspace(-1, 1, 3)) ** 2))
    p *= np.where(turn > 0, 0.6, 0.4)[:, None]
    p /= p.sum()
    rate = np.repeat(expit(2 * x)[:, None], 3, axis=1)
    table = np.stack([p * (1 - rate), p * rate], axis=2)[:, :, None]
    law = Law(table, ((0, among),), (turn < 0).astype(int))
    _, cell, y, weights = law.curves_of_rows()
    codes = law.strata[cell]
    s = np.indices(law.table.shape)[1].ravel()[:, None] * 1.0
    curves = GapCurves.of(law.constraints, s, y, weights, None, codes, 3)
    first, second = law.means()
    columns = np.column_stack([first + second, first, second])
    base = log_odds(law.eta)
    task = SolverTask(base[cell], columns[cell], y, weights, curves)
    gains = law.eta - 0.5
    family = Decisions()
    whole = law.gaps(gains > 0)
    for share in (0.5, 0.1):
        for ridge in (0.0, 100.0):
            one = replace(task, ridge=np.full(6, ridge))
            (parameters,) = family.path(one, np.array([share]))
            d = (family.outputs(parameters, base, columns) > 0) * 1.0
            best = law.optimum(gains, law.gaps(d))
            common, *own = np.abs(parameters[-6:].reshape(3, 2)).max(axis=1)
            if ridge == 0:
                assert law.gaps(d) == approx(share * whole, rel=0.05, abs=0.005)
                assert best - 2e-3 <= law.mass @ (d * gains) <= best + 1e-9
                assert min(own) > max(common, 0.05)
            else:
                assert max(own) < 2e-3
                assert law.gaps(d) > 0.8 * whole  # no coefficients lower both curves


NOISY = {
    "one attribute": ((0, "all"),),
    "rare outcomes": ((0, "all"),),
    "few distinct rows": ((0, "all"),),
    "Equal Opportunity": ((0, "positive"),),
    "both conditions": ((0, "positive"), (0, "negative")),
    "two attributes": ((0, "all"), (1, "all")),
    "controls": ((0, "all"),),
}


@pytest.mark.parametrize("name", NOISY)
def test_decisions_do_not_depend_on_the_last_digits_of_eta_and_m(name):
    """With a kink of 1e-5, those of rare outcomes would move by 3e-4."""
    rng = np.random.default_rng(0)
    n = 800
    s = rng.uniform(size=(n, 2))
    x = s + 0.5 * rng.normal(size=(n, 2))
    rough = 0.3 * rng.normal(size=n)
    if name == "few distinct rows":
        x = np.round(x)
        rough = rough[np.unique(x, axis=0, return_inverse=True)[1].ravel()]
    eta = expit(2 * x[:, 0] + (-4.0 if name == "rare outcomes" else -1.0) + rough)
    y = (rng.random(n) < eta) * 1.0
    constraints = []
    means = []
    for attribute, among in NOISY[name]:
        basis = SensitiveBasis.fit(s[:, attribute])
        basis = basis.along(np.eye(basis.values.shape[1])[:, :2])
        intercept, slope = CHANCES[among]
        rate = intercept + slope * eta.mean()
        constraints.append(Constraint(attribute, among, basis, rate))
        own = x[:, attribute]
        means.append(np.column_stack([np.tanh(own - 0.5), 0.3 * np.cos(3 * own)]))
        means[-1] *= ((intercept + slope * eta) / rate)[:, None]
    columns = np.column_stack(means)
    weights = np.full(n, 1 / n)
    strata = ()
    if name == "controls":
        codes = np.arange(n) % 2
        strata = None, codes, 2
        columns = np.column_stack([columns, columns * (codes == 0)[:, None]])
    curves = GapCurves.of(constraints, s, y, weights, *strata)
    family = Decisions()

    def margins(noise: float) -> np.ndarray:
        shaken = eta * (1 + noise * rng.normal(size=n))
        moved = columns * (1 + noise * rng.normal(size=columns.shape))
        base, inputs = family.inputs(shaken, moved, None)
        path = family.path(SolverTask(base, inputs, y, weights, curves), GAP_SHARES)
        return np.array([family.outputs(own, base, inputs) for own in path])

    exact = margins(0.0)
    assert np.abs(exact[1:] - exact[0]).max() > 0.05
    for _ in range(3):
        shaken = margins(1e-12)
        changed = (shaken > 0) != (exact > 0)
        assert np.abs(exact[changed]).max(initial=0.0) < 1e-6
        assert np.abs(shaken - exact).max() < 1e-6


def test_decisions_use_what_m_says_of_y_beyond_eta():
    """η misses half of what m says of y; where it is recalibrated along m, decisions at the same
    share of the gap are as good as with the true η. The first trade-off is η itself.
    """
    rng = np.random.default_rng(0)
    n = 4000
    s = rng.uniform(-1, 1, size=n)
    x, m = rng.normal(size=(2, n))
    m += s
    y = (rng.random(n) < expit(x + m)) * 1.0
    basis = SensitiveBasis.fit(s)
    basis = basis.along(np.eye(basis.values.shape[1])[:, :1])
    weights = np.full(n, 1 / n)
    curves = GapCurves.of([Constraint(0, "all", basis, 1.0)], s[:, None], y, weights)
    family = Decisions()
    decided = []
    for eta in (expit(x + m), expit(x + m / 2)):
        task = SolverTask(log_odds(eta), m[:, None], y, weights, curves, ridge=np.full(1, 1e-6))
        path = family.path(task, GAP_SHARES)
        decided.append([family.outputs(own, task.base, task.columns) > 0 for own in path])
    right, missed = np.array(decided)
    assert (missed[0] == (eta > 0.5)).mean() > 0.98
    assert (missed[1:] == right[1:]).mean(axis=1).min() > 0.98 > (missed[0] == right[0]).mean()


@pytest.mark.parametrize(
    ("share", "among"),
    [*((share, "all") for share in (0.8, 0.5, 0.2, 0.05)), (0.5, "positive"), (0.1, "positive")],
)
def test_decisions_that_know_s_are_optimal_and_have_thresholds_by_two_numbers(share, among):
    """Against a linear program, and against t(s) = clip(Q_s, t₀ ± μ) with E t(S) = τ, where the
    same share of all people and of those of s is above Q_s; for Equal Opportunity, 1 / t among
    those with y = 1. Three levels, 300 values of η at each.
    """
    for seed in range(3):
        rng = np.random.default_rng(seed)
        shares = rng.dirichlet(np.full(3, 5.0))
        shift = np.sort(rng.uniform(0, 0.4, size=3))
        eta = 0.6 * rng.beta(2, 3, (3, 300)) + shift[:, None]
        rate = np.zeros((3, 300, 3))
        rate[np.arange(3), :, np.arange(3)] = shares[:, None] / 300
        table = np.stack([rate * (1 - eta[..., None]), rate * eta[..., None]], axis=-1)
        law = Law(table.reshape(900, 3, 1, 2), ((0, among),))
        limit = share * law.gaps(law.eta > 0.5)
        means = law.means()[0]
        c, width = solve_dual(
            law.eta - 0.5,
            means,
            law.mass,
            law.curves_of_rows()[0],
            limit,
            ridge=1e-7,
            narrowest=1e-4,
            agreement=0.0,
        )
        margin = law.eta - 0.5 - means @ c
        taken = expit(margin / width)
        best = law.optimum(law.eta - 0.5, law.gaps(taken))
        assert law.mass @ (taken * (law.eta - 0.5)) == approx(best, abs=3e-6)
        moved = (means @ c).reshape(3, 300)
        if among == "all":
            people = law.mass.reshape(3, 300)
            thresholds = 0.5 + moved[:, 0]
            average = 0.5
        else:  # η > τ + η (ν - Eν) / π
            people = (law.mass * law.eta).reshape(3, 300)
            thresholds = (1 - (moved / eta)[:, 0]) / 0.5  # their inverses
            average = 1 / 0.5
        people = people / people.sum()
        assert people.sum(axis=1) @ thresholds == approx(average, abs=1e-9)
        accepted = (people * taken.reshape(3, 300)).sum(axis=1)
        away = np.abs(accepted / people.sum(axis=1) - accepted.sum())
        ends = np.abs(thresholds - (thresholds.max() + thresholds.min()) / 2)
        # a level that is accepted more or less often than all people is at an end of the interval
        assert ends[away > 0.02] == approx(np.ptp(thresholds) / 2, abs=0.01)


@pytest.mark.parametrize("noise", [0.02, 0.3])
def test_decisions_of_rare_outcomes_without_a_gap_are_the_same_for_everybody(noise):
    """X is nearly S, or follows it loosely; a limit that no other trade-off keeps is kept, too."""
    rng = np.random.default_rng(0)
    s = rng.uniform(size=1000)
    X = s[:, None] + noise * rng.normal(size=(1000, 1))
    y = rng.uniform(size=1000) < 0.02 + 0.15 * s
    model = ParityClassifier(
        LogisticRegression(),
        attribute_estimator=LinearRegression(),
        limit=0,
        aim="decision",
        random_state=0,
    ).fit(X, y, sensitive_features=s)
    assert model.choice_.unconstrained["sensitive"].value > 0.2
    assert model.choice_.gaps["sensitive"] == Gap(0, 0, 0)
    assert model.choice_.met
    assert len(np.unique(model.predict(X))) == 1
    gaps = model.frontier_.gaps["sensitive"]
    least = min(gap.value for gap in gaps if gap.value > 1e-3)
    by_estimate = model.set_params(confidence=None).at(1e-6)
    assert by_estimate.choice_.met
    assert by_estimate.choice_.gaps["sensitive"].value == 0
    assert model.at(least).choice_.gaps["sensitive"].value <= least


@pytest.mark.usefixtures("few_trees")
def test_decisions_are_the_same_with_one_thread_and_with_two():
    rng = np.random.default_rng(0)
    s = rng.uniform(size=600)
    X = np.column_stack([s + 0.4 * rng.normal(size=600), rng.normal(size=600)])
    y = rng.uniform(size=600) < expit(4 * X[:, 0] - 2 + X[:, 1])
    fresh = rng.normal(size=(500, 2))
    models = [
        ParityClassifier(aim="decision", cv=3, n_jobs=n_jobs, random_state=0).fit(
            X, y, sensitive_features=s
        )
        for n_jobs in (1, 2)
    ]
    for limit in (None, "70%", "30%", 0.1):
        one, two = (model.set_params(confidence=None).at(limit) for model in models)
        assert one.choice_.position == two.choice_.position
        assert (one.predict(fresh) == two.predict(fresh)).all()
        gaps = (model.choice_.gaps["sensitive"].value for model in (one, two))
        assert next(gaps) == approx(next(gaps), abs=1e-12)
