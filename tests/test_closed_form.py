"""The closed form of predictors under parity, where the law is known: against convex programs, and
gradients.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest
from pytest import approx
from scipy.optimize import brentq, linprog, minimize
from scipy.special import expit, softmax
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer

from frhsic import ParityClassifier, ParityRegressor
from frhsic.estimators.basis import MOST_LEVELS, SensitiveBasis
from frhsic.estimators.constraints import Constraint, GapCurves, LabelledRows
from frhsic.estimators.deciding import Decisions
from frhsic.estimators.families import (
    BinaryScores,
    ClassScores,
    Family,
    NumberRanks,
    NumberScores,
    ScoreRanks,
    SolverTask,
    Units,
    expanded,
    log_loss_root,
    soft_deciles,
)
from frhsic.estimators.solution import Solution
from frhsic.estimators.solving import SMOOTHNESS, gap_norm, solve
from frhsic.scoring import auc_and_influence


@dataclass(frozen=True)
class Law:
    """A discrete law p(x, s, y), and among which rows the gap is measured: all, or those with y =
    1; with `strata`, the control of each x, within these.
    """

    table: np.ndarray
    positive: bool = False
    strata: np.ndarray | None = None

    @property
    def mass(self) -> np.ndarray:
        return self.table.sum(axis=(1, 2))

    @property
    def eta(self) -> np.ndarray:
        return self.table[:, :, 1].sum(axis=1) / self.mass

    @property
    def joint(self) -> np.ndarray:
        """The law of (x, s) among the rows of the condition."""
        kept = self.table[:, :, 1] if self.positive else self.table.sum(axis=2)
        return kept / kept.sum()

    @property
    def inside(self) -> np.ndarray:
        """Which x are in each stratum, (strata, x)."""
        codes = np.zeros(len(self.mass)) if self.strata is None else self.strata
        return codes == np.unique(codes)[:, None]

    @property
    def cells(self) -> np.ndarray:
        """The law of x and of (stratum, s), among the rows of the condition."""
        return np.hstack([self.joint * own[:, None] for own in self.inside])

    @property
    def shares(self) -> np.ndarray:
        """The mass of each (stratum, s)."""
        return self.cells.sum(axis=0)

    @property
    def constraint(self) -> Constraint:
        shares = self.joint.sum(axis=0)
        basis = SensitiveBasis.fit(np.arange(len(shares)) * 1.0, shares)
        rate = self.table[:, :, 1].sum() if self.positive else 1.0
        return Constraint(0, "positive" if self.positive else "all", basis, float(rate))

    @property
    def design(self) -> np.ndarray:
        """The matrix that gives E[f | s, w] - E[f | w] of f(x), by its definition."""
        among = np.vstack([self.joint.sum(axis=1) * own for own in self.inside])
        among /= among.sum(axis=1, keepdims=True)
        levels = self.joint.shape[1]
        return self.cells.T / self.shares[:, None] - np.repeat(among, levels, axis=0)

    def curve(self, f: np.ndarray) -> np.ndarray:
        return self.design @ f

    def gap(self, f: np.ndarray) -> float:
        return float(self.shares @ np.abs(self.curve(f)))

    def labelled(self) -> LabelledRows:
        """One row for each x, s and y, with its probability as weight."""
        x, s, y = (index.ravel() for index in np.indices(self.table.shape))
        n = len(x)
        return LabelledRows(
            X=None,
            codes=x[:, None],
            s=s[:, None] * 1.0,
            names=("s",),
            weights=self.table.ravel(),
            groups=None,
            fold=np.zeros(n, dtype=int),
            seed=0,
            y=y * 1.0,
            labels=y,
            numeric=False,
            strata=None if self.strata is None else self.strata[x],
            n_strata=1 if self.strata is None else len(self.inside) + 1,
        )

    def inputs(self, family: Family) -> tuple[np.ndarray, np.ndarray]:
        """Base and columns of each x: m is E[φ(S) 1{row counts} | x] / P(row counts)."""
        means = self.joint @ self.constraint.basis.values / self.mass[:, None]
        # after the strata there is one of rows that are in none of their own, here without rows
        count = 1 if self.strata is None else len(self.inside) + 1
        units = Units(center=0.0, scale=1.0, threshold=0.5, ranks=np.linspace(0, 1, 2))
        centers = np.zeros((count, means.shape[1]))
        solution = Solution(family, (self.constraint,), np.zeros(0), units, centers)
        rows = self.labelled()
        x = rows.codes[:, 0]
        centers = solution._centers(rows, self.eta[x], means[x])
        return replace(solution, centers=centers).inputs(self.eta, means, self.strata)

    @property
    def means(self) -> np.ndarray:
        """m less its mean in the stratum, once for each stratum, zero in others."""
        columns = self.inputs(NumberScores())[1]
        return columns if self.strata is None else columns[:, -len(self.inside) * self.width :]

    @property
    def width(self) -> int:
        return self.constraint.basis.values.shape[1]

    def rows(self, family: Family) -> SolverTask:
        rows = self.labelled()
        x = rows.codes[:, 0]
        count = 1 if self.strata is None else len(self.inside) + 1
        curves = GapCurves.of(
            [self.constraint], rows.s, rows.y, rows.mass, None, rows.strata, count
        )
        base, columns = self.inputs(family)
        return SolverTask(base[x], columns[x], rows.y, rows.mass, curves)


def laws() -> dict[str, Law]:
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=6) * rng.dirichlet(5 * np.ones(6))[:, None]  # p(x, s)
    p = 0.6 * p + 0.4 * p.sum() / p.size  # no cell is nearly empty
    chance = expit(rng.normal(size=(6, 4)) + 1.5 * np.linspace(-1, 1, 6)[:, None])
    table = np.stack([p * (1 - chance), p * chance], axis=2)
    strata = np.arange(12) % 3
    q = rng.dirichlet(np.ones(3), size=12) * rng.dirichlet(5 * np.ones(12))[:, None]
    q = 0.7 * q + 0.3 * q.sum() / q.size
    likely = expit(rng.normal(size=(12, 3)) + 1.5 * np.linspace(-1, 1, 12)[:, None])
    crossed = np.stack([q * (1 - likely), q * likely], axis=2)
    aware = np.zeros((24, 4, 2))  # x contains s
    aware[np.arange(24), np.tile(np.arange(4), 6)] = table.reshape(24, 2)
    return {
        "all rows": Law(table),
        "Equal Opportunity": Law(table, positive=True),
        "S is known": Law(aware),
        "within strata": Law(crossed, strata=strata),
        "Equal Opportunity within strata": Law(crossed, positive=True, strata=strata),
    }


LAWS = laws()
MU = {"squared": 0.05, "log": 0.3}


def risk(loss: str, law: Law, f: np.ndarray) -> float:
    eta = law.eta
    if loss == "squared":
        each = (f - eta) ** 2 / 2
    elif loss == "log":
        each = -eta * np.log(f) - (1 - eta) * np.log1p(-f)
    else:
        each = eta * (1 - f) + (1 - eta) * f
    return float(law.mass @ each)


def slope(loss: str, law: Law, f: np.ndarray) -> np.ndarray:
    """The derivative of the risk in f(x), for each unit of mass."""
    return f - law.eta if loss == "squared" else (f - law.eta) / (f * (1 - f))


def brute_force(loss: str, law: Law, mu: float = 0.0, limit: float | None = None) -> np.ndarray:
    """Minimise risk + μ gap, or the risk at a gap within the limit, over f and slack variables t >=
    |curve|.
    """
    cells, levels = law.cells.shape
    shares = law.shares
    design = law.design
    rows = np.block([[design, -np.eye(levels)], [-design, -np.eye(levels)]])
    price = np.concatenate([np.zeros(cells), mu * shares])
    budget = [] if limit is None else [np.concatenate([np.zeros(cells), shares])]
    most = np.concatenate([np.zeros(2 * levels), [] if limit is None else [limit]])
    rows = np.vstack([rows, *budget])
    if loss == "decision":
        cost = price + np.concatenate([law.mass * (1 - 2 * law.eta), np.zeros(levels)])
        solution = linprog(cost, rows, most, bounds=[(0, 1)] * cells + [(0, None)] * levels)
        return solution.x[:cells]
    edge = 0.0 if loss == "squared" else 1e-9
    start = np.concatenate([np.full(cells, law.eta @ law.mass), np.zeros(levels)])
    result = minimize(
        lambda v: risk(loss, law, v[:cells]) + price @ v,
        start,
        jac=lambda v: (
            price + np.concatenate([law.mass * slope(loss, law, v[:cells]), np.zeros(levels)])
        ),
        bounds=[(None, None) if loss == "squared" else (edge, 1 - edge)] * cells
        + [(0, None)] * levels,
        constraints={"type": "ineq", "fun": lambda v: most - rows @ v, "jac": lambda v: -rows},
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert result.success, result.message
    return result.x[:cells]


def multiplier(
    law: Law, wanted: np.ndarray, mu: float, curve: np.ndarray
) -> tuple[np.ndarray, float]:
    """Return c of the closed form, and how far it violates the theorem.

    The theorem: `wanted`, the derivative of the loss with a minus, is m_ν(x) = Σ_k c_k m_k(x),
    where ν = Σ_k c_k φ_k + constant has ν = μ sign(curve) off the zeros of the curve and |ν| <= μ
    everywhere; in each stratum with c and a constant of its own.
    """
    c, *_ = np.linalg.lstsq(law.means, wanted, rcond=None)
    violations = [np.abs(law.means @ c - wanted).max()]
    for own, part in zip(np.split(c, len(law.inside)), np.split(curve, len(law.inside))):
        centred = law.constraint.basis.values @ own
        off = np.abs(part) > 1e-6
        nu = centred + np.mean(mu * np.sign(part[off]) - centred[off])
        violations += [np.abs(nu[off] - mu * np.sign(part[off])).max(), (np.abs(nu) - mu).max()]
    return c, float(max(violations))


@pytest.mark.parametrize("name", LAWS)
def test_the_functions_of_s_give_the_gap_by_its_definition(name):
    law, rows = LAWS[name], LAWS[name].rows(NumberScores())
    f = np.random.default_rng(1).uniform(size=len(law.mass))
    x = np.indices(law.table.shape)[0].ravel()
    assert rows.curves.largest(rows.curves.functions.T @ f[x][:, None]) == approx(
        law.gap(f), rel=1e-12
    )


@pytest.mark.parametrize("loss", ["squared", "log"])
@pytest.mark.parametrize("name", LAWS)
def test_the_convex_optimum_over_all_functions_has_the_closed_form(name, loss):
    """SLSQP stops at 1e-14 of the objective, so that f is exact to about 1e-6."""
    law, mu = LAWS[name], MU[loss]
    f = brute_force(loss, law, mu)
    assert 0.01 < law.gap(f) < 0.95 * law.gap(law.eta)  # the penalty acts, and leaves a gap
    c, violation = multiplier(law, -slope(loss, law, f), mu, law.curve(f))
    assert violation < 1e-4
    moved = law.means @ c
    assert (law.eta - moved if loss == "squared" else log_loss_root(law.eta, moved)[0]) == approx(
        f, abs=2e-5
    )


@dataclass(frozen=True)
class GaussianLaw:
    r"""S and the first of two columns are normal with correlation ρ; y = 0.6 (x₁ + x₂) + noise.

    Where sign g(s) = sign(s), the optimum is :math:`f = \eta - \mu E[\operatorname{sign} S | x]`
    with :math:`E[\operatorname{sign} S | x] = 2\Phi(\rho x_1 / \sqrt{1 - \rho^2}) - 1`. With
    :math:`A = \frac2\pi \arcsin \rho^2`, which is both the variance of this function and the mean
    of \|E[it | S]\|, it lowers the gap by μA at a cost of μ²A in squared error.
    """

    rho: float = 0.7
    slope: float = 0.6

    @property
    def gap(self) -> float:
        """The gap of η."""
        return self.slope * self.rho * float(np.sqrt(2 / np.pi))

    def cost(self, gap: float) -> float:
        """Return the least squared error above that of η at a gap."""
        return (self.gap - gap) ** 2 / (2 / np.pi * float(np.arcsin(self.rho**2)))

    def draw(self, n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        s, first, second, noise = np.random.default_rng(seed).normal(size=(4, n))
        X = np.column_stack([self.rho * s + np.sqrt(1 - self.rho**2) * first, second])
        return X, self.slope * X.sum(axis=1) + 0.5 * noise, s

    def measured(self, predict) -> tuple[float, float]:
        """Return gap and squared error above that of η, in the population, by quadrature."""
        nodes, weights = np.polynomial.hermite_e.hermegauss(24)
        weights = weights / weights.sum()
        half, mass = np.polynomial.legendre.leggauss(30)
        half = 4 + 4 * half  # on [0, 8], and mirrored: the gap has a kink at 0
        mass = 4 * mass * norm.pdf(half)
        s = np.concatenate([-half, half])
        mass = np.concatenate([mass, mass])
        first = self.rho * s[:, None] + np.sqrt(1 - self.rho**2) * nodes
        cells = np.broadcast_arrays(first[:, :, None], nodes)
        X = np.stack([cell.ravel() for cell in cells], axis=1)
        f = predict(X).reshape(len(s), len(nodes), len(nodes))
        away = (f - self.slope * X.sum(axis=1).reshape(f.shape)) ** 2
        curve = f @ weights @ weights
        gap = float(mass @ np.abs(curve - mass @ curve))
        return gap, float(mass @ (away @ weights @ weights))


def test_a_well_specified_model_comes_close_to_the_optimum_of_a_gaussian_law():
    """On average over four tables, as a loss is an expectation."""
    law = GaussianLaw()
    means = make_pipeline(SplineTransformer(), Ridge())
    limits = ("70%", "50%", "30%")
    excess = np.empty((4, len(limits)))
    for seed in range(4):
        X, y, s = law.draw(3_000, seed)
        model = ParityRegressor(LinearRegression(), attribute_estimator=means, cv=2, random_state=0)
        model.fit(X, y, sensitive_features=s)
        for i, limit in enumerate(limits):
            gap, cost = law.measured(model.at(limit).predict)
            assert gap < 0.8 * law.gap
            excess[seed, i] = cost - law.cost(gap)
    assert excess.mean(axis=0).max() < 0.002


@pytest.mark.parametrize(("ones", "threshold", "taken"), [(60, 0.5, True), (3, 0.5, False)])
def test_the_constant_of_decisions_is_the_one_that_loses_less(ones, threshold, taken):
    y = (np.arange(100) < ones).astype(np.float64)
    task = SolverTask(np.zeros(100), np.zeros((100, 1)), y, np.full(100, 0.01), threshold=threshold)
    family = Decisions()
    decided = family.outputs(family.constant(task), task.base, task.columns) > 0
    assert (decided == taken).all()


@pytest.mark.parametrize("family", [NumberScores(), BinaryScores()])
def test_no_trade_off_loses_to_a_constant_at_the_same_gap(family):
    """The way from the first trade-off to a constant replaces the second, whose sign is wrong."""
    rows = LAWS["all rows"].rows(family)
    best = family.constant(rows)
    start = family.first(rows).parameters
    wrong = start * 0.5 - best
    wrong[1] = -0.5
    fold = np.arange(len(rows.y)) % 2
    path = np.repeat(np.stack([start, wrong])[:, None], 2, axis=1)
    solution = Solution(family, (), path, Units(0.0, 1.0, 0.5, np.zeros(0)), np.zeros((1, 3)))
    solution = solution.ended(rows, fold)
    first, new = solution.parameters[:, 0]
    constant = family.loss(rows, best)
    assert (first == start).all()
    assert family.loss(rows, wrong) > constant
    assert family.loss(rows, new) < constant
    gaps = [
        rows.curves.largest(
            rows.curves.functions.T @ family.outputs(own, rows.base, rows.columns)[:, None]
        )
        for own in (start, new)
    ]
    # numbers mix exactly; of probabilities the log-odds are mixed
    assert gaps[1] == approx(0.1 * gaps[0], rel=1e-6 if family == NumberScores() else 0.15)


def test_decisions_keep_their_trade_offs_and_end_with_a_constant():
    """A trade-off that loses stays, too: from there, steps to the constant are no mixtures."""
    family = Decisions()
    rows = LAWS["all rows"].rows(family)
    best = family.constant(rows)
    start = np.array([0.0, 1.0, *np.zeros(3), -0.5, 1.0, *np.zeros(3)])
    wrong = np.append(start[:5], -best[5:])
    path = np.repeat(np.stack([start, wrong])[:, None], 2, axis=1)
    solution = Solution(family, (), path, Units(0.0, 1.0, 0.5, np.zeros(0)), np.zeros((1, 3)))
    solution = solution.ended(rows, np.arange(len(rows.y)) % 2)
    assert (solution.parameters[:2] == path).all()
    assert family.loss(rows, solution.parameters[2, 0]) == family.loss(rows, best)
    assert solution.constant.tolist() == [False, True, True]


@pytest.mark.parametrize("family", [NumberRanks(), ScoreRanks()])
def test_trade_offs_of_ranks_end_at_the_least_gap(family):
    """Numbers that shrink keep the gaps of their ranks, so that no mixture has a smaller one."""
    rows = LAWS["all rows"].rows(family)
    fold = np.arange(len(rows.y)) % 2
    start = family.first(rows).parameters
    path = np.repeat(
        np.append(start[None], solve(family, rows)[[3, 0]], axis=0)[:, None], 2, axis=1
    )
    solution = Solution(family, (), path, Units(0.0, 1.0, 0.5, np.zeros(0)), np.zeros((1, 3)))
    _, gaps = solution.losses_and_gaps(rows, fold)
    assert gaps[1] < min(gaps[0], gaps[2])
    assert (solution.ended(rows, fold).parameters == path[:2]).all()


@pytest.mark.parametrize(("family", "loss"), [(NumberScores(), "squared"), (BinaryScores(), "log")])
@pytest.mark.parametrize("name", LAWS)
def test_every_solved_trade_off_is_the_optimum_at_its_gap(name, family, loss):
    """Between the optima at two gaps, since what is solved has |g| replaced by √(g² + ε²) - ε,
    which is smaller.

    Any f with gap at most N_ε(solution) has N_ε(f) at most that, so its risk is no less than that
    of the solution; and no f with the gap of the solution has less risk than the optimum there.
    The descent stops where a step gains 1e-5, so that the risk is exact to a few 1e-5.
    """
    law, rows = LAWS[name], LAWS[name].rows(family)
    base, columns = law.inputs(family)
    path = [family.outputs(parameters, base, columns) for parameters in solve(family, rows)]
    ends = []
    for f in path[:-2:3]:  # towards the end the optimum is flat and SLSQP has no interior
        width = SMOOTHNESS * law.gap(law.eta)
        value, smooth = (
            law.gap(f),
            float(law.shares @ (np.hypot(law.curve(f), width) - width)),
        )
        least, most = (
            risk(loss, law, brute_force(loss, law, limit=limit)) for limit in (value, smooth)
        )
        assert least - 1e-7 <= risk(loss, law, f) <= most + 5e-5
        ends.append(value)
    assert ends[0] == approx(law.gap(law.eta), rel=1e-3)
    assert law.gap(path[-1]) < 0.05 * ends[0]


@pytest.mark.parametrize("family", [BinaryScores(), NumberScores(), ScoreRanks()])
def test_without_constraint_a_wrong_model_is_recalibrated_and_not_moved(family):
    law = LAWS["all rows"]
    rows = replace(
        law.rows(family), base=np.sin(np.arange(law.table.size))
    )  # it knows nothing of y
    moved = solve(family, rows)[:, -law.means.shape[1] :]
    assert moved[0] == approx(0, abs=1e-12)
    assert np.abs(moved[1:]).max() > 0


@pytest.mark.parametrize("moved", [-30.0, -1.0 - 1e-9, -1.0, -0.3, 0.0, 0.7, 30.0])
def test_the_root_minimises_loss_plus_moved_score(moved):
    """f = η - m f (1 - f) is where the convex function ℓ(f, η) + m f has its least value."""
    eta = np.linspace(0.02, 0.98, 9)
    f = log_loss_root(eta, np.full(9, moved))[0]
    grid = expit(np.linspace(-12, 12, 20_001))
    for one, value in zip(eta, f):
        least = (-one * np.log(grid) - (1 - one) * np.log1p(-grid) + moved * grid).min()
        assert -one * np.log(value) - (1 - one) * np.log1p(-value) + moved * value == approx(
            least, abs=1e-6
        )
    assert f == approx(eta - moved * f * (1 - f), abs=1e-9)


def test_the_root_is_right_where_nothing_is_positive():
    """At η = 0 the function -log(1 - f) + m f is least at 1 + 1/m if m < -1, and at 0 otherwise."""
    moved = np.array([-20.0, -2.0, -1.0, -0.5, 3.0])
    for eta in (0.0, 1e-300, 1e-17):
        expected = [0.95, 0.5, 0, 0, 0]
        assert log_loss_root(np.full(5, eta), moved)[0] == approx(expected, abs=1e-6)
        assert log_loss_root(np.full(5, 1 - eta), -moved)[0] == approx(
            1 - np.array(expected), abs=1e-6
        )


# Gradients


def sample_rows(family: Family) -> tuple[SolverTask, np.ndarray]:
    rng = np.random.default_rng(0)
    n, k = 40, 3
    weights = rng.uniform(0.5, 1.5, size=n)
    weights /= weights.sum()
    means = rng.normal(size=(n, k))
    base, y = rng.normal(size=n), (rng.random(n) < 0.5) * 1.0
    if isinstance(family, ClassScores):
        base, y = (
            np.log(softmax(rng.normal(size=(n, 3)), axis=1)),
            np.eye(3)[rng.integers(3, size=n)],
        )
    if isinstance(family, NumberScores) and not isinstance(family, ScoreRanks):
        y = rng.normal(size=n)
    if isinstance(family, NumberRanks):
        means = expanded(means, rng.uniform(size=n))
    rows = SolverTask(base, means, y, weights)
    start = family.first(rows).parameters
    return rows, start + 0.2 * rng.normal(size=len(start))


def difference(function, at: np.ndarray) -> np.ndarray:
    steps = 1e-6 * np.eye(len(at))
    return np.array([(function(at + step) - function(at - step)) / 2e-6 for step in steps])


FUNCTIONS_OF_ROWS = np.random.default_rng(2).normal(size=(40, 2))


@pytest.mark.parametrize("family", [BinaryScores(), ClassScores(), NumberScores()])
def test_gradients_are_those_of_loss_and_outputs(family):
    rows, at = sample_rows(family)
    evaluation = family.evaluate(rows, at, FUNCTIONS_OF_ROWS)
    pull = np.random.default_rng(1).normal(size=evaluation.sums.shape)

    def value(parameters: np.ndarray) -> float:
        there = family.evaluate(rows, parameters, FUNCTIONS_OF_ROWS)
        return there.loss + float((pull * there.sums).sum())

    assert evaluation.gradient(pull) == approx(difference(value, at), rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("family", [ScoreRanks(), NumberRanks()])
def test_sums_and_gradients_of_ranks_are_those_of_soft_deciles(family):
    rows, at = sample_rows(family)
    evaluation = family.evaluate(rows, at, FUNCTIONS_OF_ROWS)
    pull = np.random.default_rng(1).normal(size=evaluation.sums.shape)

    def sums(parameters: np.ndarray) -> np.ndarray:
        score = NumberScores().outputs(parameters, rows.base, rows.columns)
        width = 0.1 * np.sqrt(np.cov(score, aweights=rows.weights, ddof=0))

        def share_above(q: float, share: float) -> float:
            return float(rows.weights @ expit((score - q) / width) - share)

        deciles = [brentq(share_above, -50, 50, (1 - decile,)) for decile in np.arange(1, 10) / 10]
        return FUNCTIONS_OF_ROWS.T @ expit((score[:, None] - deciles) / width)

    def value(parameters: np.ndarray) -> float:
        return family.loss(rows, parameters) + float((pull * sums(parameters)).sum())

    assert evaluation.sums == approx(sums(at), abs=1e-9)
    assert evaluation.gradient(pull) == approx(difference(value, at), rel=1e-5, abs=1e-6)


@pytest.mark.parametrize("family", [ScoreRanks(), NumberRanks()])
def test_scores_that_shrink_keep_the_curves_of_their_ranks(family):
    """Otherwise almost equal scores would have no gap while solving, whatever their order."""
    rows, at = sample_rows(family)
    whole, small = (family.evaluate(rows, c * at, FUNCTIONS_OF_ROWS).sums for c in (1.0, 1e-3))
    assert small == approx(whole, rel=1e-9)


@pytest.mark.parametrize("levels", [1, 2, 3, 10, 400])
@pytest.mark.parametrize("noise", [0.0, 0.01, 1.0])
def test_soft_deciles_have_the_shares_of_deciles(levels, noise):
    rng = np.random.default_rng(0)
    score = np.arange(400) % levels + noise * rng.normal(size=400)
    equal = np.full(400, 1 / 400)  # ten levels end at the deciles
    for weights in (rng.dirichlet(np.full(400, 10.0)), equal):
        above = soft_deciles(score, weights, max(0.1 * score.std(), 1e-6)) @ weights
        assert above == approx(np.arange(9, 0, -1) / 10, abs=1e-12)


def test_the_norm_over_gaps_is_close_to_the_largest_share_and_has_its_gradient():
    """Each gap is that of its own curve, Σ p |φ · E[f φ]|, by its definition."""
    rng = np.random.default_rng(0)
    s, weights, f = rng.uniform(size=(60, 2)), rng.uniform(size=60), rng.normal(size=(60, 2))
    y = rng.integers(2, size=60)
    constraints = [
        Constraint(j, among, SensitiveBasis.fit(s[:, j], weights), 1.0)
        for j, among in enumerate(["all", "negative"])
    ]
    curves = GapCurves.of(constraints, s, y, weights, [1.0, 0.5])
    sums = curves.functions.T @ f
    expected = []
    for j, kept in enumerate((weights, weights * (y == 0))):
        basis = constraints[j].basis
        p = kept / kept.sum()
        curve = basis.values @ (basis(s[:, j]).T @ (p[:, None] * (f - p @ f)))
        expected.append(basis.mass @ np.abs(curve).mean(axis=1))
    assert curves.gaps(sums) == approx(np.array(expected), rel=1e-12)
    shares = curves.gaps(sums) / [1.0, 0.5]
    assert curves.largest(curves.functions.T @ f) == approx(shares.max())
    assert shares.max() < gap_norm(curves, sums, np.zeros(2))[0] < 1.2 * shares.max()
    smoothness = np.array([0.05, 0.1])

    def value(flat: np.ndarray) -> float:
        return gap_norm(curves, flat.reshape(sums.shape), smoothness)[0]

    gradient = gap_norm(curves, sums, smoothness)[1].ravel()
    assert gradient == approx(difference(value, sums.ravel()), rel=1e-5, abs=1e-9)


# Rounding

NOISE = 1e-13


def noisy_rows(family: Family, name: str) -> SolverTask:
    """Rows of a law: skewed, tied or two attributes, few levels of S, or a rare outcome."""
    rng = np.random.default_rng(0)
    n = 600
    s = rng.uniform(size=(n, 2))
    if name == "skewed":
        s = np.exp(4 * s)
    if name == "few levels":
        s = np.round(2 * s)
    ranks = np.argsort(np.argsort(s, axis=0), axis=0) / n
    x = ranks + 0.5 * rng.normal(size=(n, 2))
    if name == "tied":
        x = np.round(2 * x) / 2
    margin = 2 * x[:, 0] + x[:, 1] - (5.0 if name == "rare" else 1.5)
    numeric = not isinstance(family, BinaryScores | ScoreRanks)
    eta = margin if numeric else expit(margin)
    y = eta + rng.normal(size=n) if numeric else (rng.random(n) < eta) * 1.0
    constraints = []
    means = []
    for attribute in range(2 if name == "two attributes" else 1):
        basis = SensitiveBasis.fit(s[:, attribute])
        width = min(basis.values.shape[1], 3)
        basis = basis.along(np.eye(basis.values.shape[1])[:, :width])
        constraints.append(Constraint(attribute, "all", basis, 1.0))
        own = x[:, attribute] - 0.5
        means.append(
            np.column_stack([np.tanh(own), 0.3 * np.cos(3 * own), 0.1 * own**2])[:, :width]
        )
    weights = np.full(n, 1 / n)
    units = Units(0.0, 1.0, 0.5, np.quantile(eta, np.linspace(0, 1, 101)))
    base, columns = family.inputs(eta, np.column_stack(means), units)
    curves = GapCurves.of(constraints, s, y, weights)
    return SolverTask(base, columns, y, weights, curves, ridge=1e-4)


NOISY = ["plain", "skewed", "tied", "few levels", "rare", "two attributes"]


@pytest.mark.parametrize("name", NOISY)
@pytest.mark.parametrize("family", [BinaryScores(), NumberScores(), ScoreRanks(), NumberRanks()])
def test_solved_scores_do_not_depend_on_the_last_digits_of_eta_and_m(family, name):
    rows = noisy_rows(family, name)
    rng = np.random.default_rng(1)

    def scores(noise: float) -> np.ndarray:
        base = rows.base * (1 + noise * rng.normal(size=rows.base.shape))
        columns = rows.columns * (1 + noise * rng.normal(size=rows.columns.shape))
        path = solve(family, replace(rows, base=base, columns=columns))
        return np.array([family.outputs(own, rows.base, rows.columns) for own in path])

    exact = scores(0.0)
    assert np.abs(exact[1:] - exact[0]).max() > 0.05
    for _ in range(3):
        assert np.abs(scores(NOISE) - exact).max() < 1e-8


# Functions of S

SAMPLES = {
    "two levels": np.repeat([3.0, 7.0], [5, 15]),
    "sixteen levels": np.repeat(np.arange(16.0), np.arange(1, 17)),
    "thirty levels": np.repeat(np.arange(30.0), 10),
    "continuous": np.random.default_rng(0).lognormal(size=1000),
    "zero in a third": np.where(
        np.arange(900) % 3 == 0, 0.0, np.random.default_rng(0).lognormal(size=900)
    ),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_functions_are_orthonormal_with_mean_zero(name):
    s = SAMPLES[name]
    basis = SensitiveBasis.fit(s)
    assert basis.mass.sum() == approx(1)
    # with at most 256 values each is a node of its own; beyond, nodes hold equal shares
    weights = np.bincount(basis.node(s)) / len(s)
    assert weights == approx(basis.mass)
    assert weights @ basis.values == approx(0, abs=1e-10)
    assert (basis.values.T * weights) @ basis.values == approx(
        np.eye(basis.values.shape[1]), abs=1e-10
    )


@pytest.mark.parametrize("name", ["two levels", "sixteen levels"])
def test_functions_span_all_functions_of_few_levels(name):
    basis = SensitiveBasis.fit(SAMPLES[name])
    assert basis.values.shape == (len(basis.mass), len(basis.mass) - 1)
    assert len(basis.mass) <= MOST_LEVELS  # orthonormal with mean zero, as they are


def test_a_frequent_value_has_an_indicator_in_the_span():
    s = SAMPLES["zero in a third"]
    basis = SensitiveBasis.fit(s)
    indicator = (s == 0) - np.mean(s == 0)
    at = basis(s)
    assert at @ (at.T @ indicator) / len(s) == approx(indicator, abs=1e-9)
    assert len(np.unique(basis.node(np.array([0.0, s[s > 0].min()])))) == 2


@pytest.mark.parametrize("name", SAMPLES)
def test_no_increasing_map_changes_the_functions(name):
    s = SAMPLES[name]
    assert SensitiveBasis.fit(np.log1p(s) * 3)(np.log1p(s) * 3) == approx(
        SensitiveBasis.fit(s)(s), abs=1e-12
    )


@pytest.mark.parametrize("name", ["two levels", "thirty levels", "continuous"])
def test_weights_equal_repeated_rows(name):
    s = SAMPLES[name]
    times = np.random.default_rng(1).integers(1, 4, size=len(s))
    repeated, weighted = SensitiveBasis.fit(np.repeat(s, times)), SensitiveBasis.fit(s, times * 1.0)
    assert repeated(s) == approx(weighted(s), abs=1e-9)


def test_values_beyond_the_fitted_range_belong_to_the_ends():
    basis = SensitiveBasis.fit(SAMPLES["continuous"])
    assert basis(np.array([-1e9, 1e9])) == approx(basis.values[[0, -1]])


def test_the_expansion_for_ranks_is_linear_in_the_rank():
    means = np.random.default_rng(0).normal(size=(3, 2))
    low, high = np.split(expanded(means, np.array([0.0, 0.25, 1.0])), 2, axis=1)
    assert low + high == approx(means)
    assert high == approx(means * [[0.0], [0.25], [1.0]])


def test_only_directions_of_an_attribute_that_x_predicts_are_modelled() -> None:
    rng = np.random.default_rng(0)
    s = rng.uniform(size=3_000)
    # of s, x tells on which side of one half it lies, and nothing else
    X = np.column_stack([(s > 0.5) + 0.5 * rng.normal(size=3_000), rng.normal(size=3_000)])
    y = X.sum(axis=1) + rng.normal(size=3_000) > 0.5
    model = ParityClassifier(cv=2, random_state=0).fit(X, y, sensitive_features=s)
    assert model.solution_ is not None
    basis = model.solution_.constraints[0].basis
    side = np.where(basis.starts > 0.5, 1.0, -1.0)
    assert basis.values.shape[1] <= 2  # of eight functions, and chance may keep a second one
    assert abs(basis.mass @ (basis.values[:, 0] * side)) > 0.95
    assert model.engine_ is not None
    assert len(model.engine_.classes) == 1 + basis.values.shape[1]


def test_the_auc_is_that_of_scikit_learn_with_ties_and_weights() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(200) < 0.4).astype(float)
    scores = rng.integers(20, size=200) + 3 * y
    weights = rng.uniform(size=200)
    expected = roc_auc_score(y, scores, sample_weight=weights)
    assert auc_and_influence(scores, y, weights)[0] == approx(expected, rel=1e-12)
    one_class = auc_and_influence(scores, np.ones(200), weights)
    assert np.isnan(one_class[0])
