"""Prototypes that heads cannot read S from: the convex problem and the choice."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from pytest import approx
from scipy.optimize import check_grad, minimize
from scipy.special import rel_entr, softmax

from frhsic.estimators.prototypes import (
    SEARCH,
    DistinctRows,
    Numbers,
    Probabilities,
    Prototypes,
    SolverRows,
    assign_rows,
    dual,
    hessian,
    initial_prototypes,
    n_prototypes,
    solve_path,
    solve_prototypes,
    with_centers,
    with_multipliers,
)

KINDS = (Probabilities(0, 3), Numbers(3, 5))
SEEDS = range(4)
TOLERANCES = (0.0, 0.05, 1.0)


def random_rows(n: int, seed: int, functions: int = 2) -> SolverRows:
    """Three classes and two numbers, which depend on the means."""
    rng = np.random.default_rng(seed)
    u = rng.normal(size=(n, 5))
    targets = np.column_stack([softmax(2 * u[:, :3], axis=1), u[:, 3:]])
    means = np.tanh(u[:, :functions] + 0.5 * rng.normal(size=(n, functions)))
    weights = rng.uniform(0.5, 1.5, size=n)
    return SolverRows(targets, means, weights / weights.sum())


def random_prototypes(rows: SolverRows, count: int, tolerance: float, seed: int) -> Prototypes:
    """Centers at some rows, and multipliers that are not solved for."""
    rng = np.random.default_rng(seed)
    return Prototypes(
        KINDS,
        origin=rows.weights @ rows.means,
        centers=rows.targets[:count],
        mass=rng.dirichlet(np.full(count, 5.0)),
        multipliers=rng.normal(size=(count, rows.means.shape[1])),
        epsilon=0.5,
        tolerance=tolerance,
    )


def distances_by_definition(rows: SolverRows, centers: np.ndarray) -> np.ndarray:
    return np.array(
        [
            [rel_entr(x[:3], c[:3]).sum() + ((x[3:] - c[3:]) ** 2).sum() for x in rows.targets]
            for c in centers
        ]
    )


def cell_sums(P: np.ndarray, rows: SolverRows) -> tuple[np.ndarray, np.ndarray]:
    """p_l and v_l of probabilities (L, n), for means with mean zero."""
    joint = P * rows.weights
    return joint.sum(axis=1), joint @ (rows.means - rows.weights @ rows.means)


def primal(prototypes: Prototypes, P: np.ndarray, rows: SolverRows) -> float:
    """F by its definition; without its last sum for τ = 0, where that has to vanish."""
    mass, sums = cell_sums(P, rows)
    value = (P * prototypes.distances(rows.targets)).sum(axis=0)
    value = value + prototypes.epsilon * rel_entr(P, prototypes.mass[:, None]).sum(axis=0)
    if prototypes.tolerance == 0:
        return float(value @ rows.weights)
    dependence = ((sums**2).sum(axis=1) / mass).sum()
    return float(value @ rows.weights + dependence / (2 * prototypes.tolerance))


def test_distances_are_divergence_and_squared_error():
    rows = random_rows(6, seed=0)
    prototypes = random_prototypes(rows, 3, 0.1, seed=0)
    expected = distances_by_definition(rows, prototypes.centers)
    assert prototypes.distances(rows.targets) == approx(expected, rel=1e-12, abs=1e-12)


def test_a_class_that_is_certain_has_a_finite_distance():
    targets = np.array([[1.0, 0.0], [0.0, 1.0]])
    distances = Probabilities(0, 2).distances(targets, targets)
    assert np.diag(distances) == approx(0, abs=1e-12)
    assert np.isfinite(distances).all()


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_gradient_of_the_dual_is_that_of_finite_differences(tolerance, seed):
    rows = random_rows(7, seed)
    prototypes = random_prototypes(rows, 3, tolerance, seed)
    distances = prototypes.distances(rows.targets)

    def at(multipliers: np.ndarray) -> tuple[float, np.ndarray]:
        return dual(replace(prototypes, multipliers=multipliers.reshape(3, 2)), distances, rows)

    error = check_grad(
        lambda u: at(u)[0], lambda u: at(u)[1].ravel(), prototypes.multipliers.ravel()
    )
    assert error < 1e-6


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_hessian_of_the_dual_is_that_of_finite_differences(tolerance, seed):
    rows = random_rows(7, seed)
    prototypes = replace(random_prototypes(rows, 3, tolerance, seed), epsilon=5.0)
    distances = prototypes.distances(rows.targets)

    def gradient(multipliers: np.ndarray) -> np.ndarray:
        at = replace(prototypes, multipliers=multipliers.reshape(3, 2))
        return dual(at, distances, rows)[1].ravel()

    here = prototypes.multipliers.ravel()
    differences = [
        (gradient(here + step) - gradient(here - step)) / 2e-5 for step in 1e-5 * np.eye(6)
    ]
    expected = hessian(prototypes, distances, rows)
    assert np.array(differences) == approx(expected, abs=2e-4 * np.abs(expected).max())


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_solved_probabilities_have_the_least_objective(tolerance, seed):
    """Strong duality, and another solver that works on P itself."""
    rows = random_rows(6, seed)
    prototypes = with_multipliers(random_prototypes(rows, 3, tolerance, seed), rows, SEARCH.exact)
    P = prototypes.probabilities(rows.targets, rows.means)
    assert primal(prototypes, P, rows) == approx(prototypes.objective, rel=1e-8)
    constraints = [{"type": "eq", "fun": lambda p: p.reshape(3, 6).sum(axis=0) - 1}]
    if tolerance == 0:
        vanishing = {"type": "eq", "fun": lambda p: cell_sums(p.reshape(3, 6), rows)[1][:2].ravel()}
        constraints.append(vanishing)
    other = minimize(
        lambda p: primal(prototypes, p.reshape(3, 6), rows),
        np.full(18, 1 / 3),
        method="SLSQP",
        bounds=[(1e-9, 1)] * 18,
        constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert other.success
    assert other.fun == approx(prototypes.objective, rel=1e-6)
    assert other.x.reshape(3, 6) == approx(P, abs=2e-3)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_no_step_raises_the_objective(tolerance, seed):
    rows = random_rows(60, seed)
    current = random_prototypes(rows, 6, tolerance, seed)
    objectives = []
    for step in range(12):
        current = with_multipliers(current, rows, SEARCH.exact)
        objectives.append(current.objective)
        if step % 3 == 2:
            current = replace(current, epsilon=current.epsilon / 2)
        else:
            current = with_centers(current, rows, least=1e-9)
    assert (np.diff(objectives) <= 1e-9).all()
    assert objectives[-1] < 0.9 * objectives[0]


@pytest.mark.parametrize("seed", SEEDS)
def test_without_tolerance_no_prototype_tells_the_mean_of_any_function(seed):
    rows = random_rows(400, seed)
    solution = solve_prototypes(initial_prototypes(KINDS, rows, 8), rows, 0.0)
    P = solution.probabilities(rows.targets, rows.means)
    mass, sums = cell_sums(P, rows)
    assert np.abs(sums / mass[:, None]).max() < 1e-6
    assert P.max(axis=0) @ rows.weights > 0.9
    assert len(mass) > 2


def test_along_the_path_dependence_falls_and_distance_grows():
    rows = random_rows(400, seed=0)
    dependence = []
    distance = []
    for solution in solve_path(initial_prototypes(KINDS, rows, 8), rows, (3.0, 1.0, 0.3, 0.1, 0.0)):
        P = solution.probabilities(rows.targets, rows.means)
        mass, sums = cell_sums(P, rows)
        dependence.append(((sums**2).sum(axis=1) / mass).sum())
        distance.append((P * solution.distances(rows.targets)).sum(axis=0) @ rows.weights)
    assert (np.diff(dependence) < 0).all()
    assert (np.diff(distance) > 0).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_without_means_the_steps_are_those_of_lloyd(seed):
    rows = replace(random_rows(50, seed), means=np.zeros((50, 2)))
    prototypes = replace(random_prototypes(rows, 4, 0.0, seed), epsilon=1e-6)
    stepped = with_centers(with_multipliers(prototypes, rows, SEARCH.exact), rows, least=1e-9)
    nearest = distances_by_definition(rows, prototypes.centers).argmin(axis=0)
    for cell in range(4):
        inside = nearest == cell
        mean = np.average(rows.targets[inside], axis=0, weights=rows.weights[inside])
        assert stepped.centers[cell] == approx(mean, rel=1e-9)
        assert stepped.mass[cell] == approx(rows.weights[inside].sum())


def test_a_large_tolerance_clusters_as_if_there_were_no_means():
    rows = random_rows(200, seed=1)
    loose = solve_prototypes(initial_prototypes(KINDS, rows, 5), rows, 1e9)
    without = replace(rows, means=np.zeros_like(rows.means))
    plain = solve_prototypes(initial_prototypes(KINDS, without, 5), without, 1e9)
    assert loose.centers == approx(plain.centers, abs=1e-6)


def test_one_prototype_is_the_mean():
    rows = random_rows(30, seed=0)
    solution = solve_prototypes(initial_prototypes(KINDS, rows, 1), rows, 0.0)
    assert solution.centers[0] == approx(rows.weights @ rows.targets)
    assert solution.probabilities(rows.targets, rows.means) == approx(1)


def test_equal_rows_have_one_prototype():
    rows = random_rows(1, seed=0)
    same = SolverRows(np.repeat(rows.targets, 9, 0), np.repeat(rows.means, 9, 0), np.full(9, 1 / 9))
    solution = solve_prototypes(initial_prototypes(KINDS, same, 4), same, 0.0)
    assert solution.centers == approx(rows.targets)


@pytest.mark.parametrize("tolerance", TOLERANCES)
def test_order_of_rows_does_not_matter(tolerance):
    rows = random_rows(150, seed=2)
    order = np.random.default_rng(0).permutation(150)
    other = SolverRows(rows.targets[order], rows.means[order], rows.weights[order])
    expected = solve_prototypes(initial_prototypes(KINDS, rows, 6), rows, tolerance)
    solution = solve_prototypes(initial_prototypes(KINDS, other, 6), other, tolerance)
    assert solution.centers == approx(expected.centers, abs=1e-5)
    assert solution.objective == approx(expected.objective, rel=1e-6)


def test_a_weight_of_two_is_a_repeated_row():
    rows = random_rows(80, seed=3)
    times = np.where(np.arange(80) < 30, 2, 1)
    repeated = np.repeat(np.arange(80), times)
    weighted = replace(rows, weights=times / times.sum())
    copies = SolverRows(
        rows.targets[repeated], rows.means[repeated], np.full(len(repeated), 1 / len(repeated))
    )
    expected = solve_prototypes(initial_prototypes(KINDS, weighted, 4), weighted, 0.1)
    solution = solve_prototypes(initial_prototypes(KINDS, copies, 4), copies, 0.1)
    assert solution.centers == approx(expected.centers, abs=1e-5)
    assert solution.objective == approx(expected.objective, rel=1e-6)


def repeated_rows(n: int, distinct: int, seed: int) -> SolverRows:
    """Rows of which many are equal, as in a table with a few categories."""
    rows = random_rows(distinct, seed)
    copy = np.random.default_rng(seed).integers(distinct, size=n)
    return SolverRows(rows.targets[copy], rows.means[copy], np.full(n, 1 / n))


def distinct_rows(rows: SolverRows) -> tuple[DistinctRows, np.ndarray]:
    """Rows with equal means are one; and the place of each row."""
    place = np.unique(rows.means, axis=0, return_inverse=True)[1].ravel()
    return DistinctRows.from_keys(rows, place), place


def assigned_rows(prototypes: Prototypes, rows: SolverRows) -> np.ndarray:
    """The prototype of each row, where all distinct rows may move."""
    once, place = distinct_rows(rows)
    return assign_rows(prototypes, once.rows, np.full(len(once.keys), True))[place]


def certain(choice: np.ndarray, count: int) -> np.ndarray:
    return (choice == np.arange(count)[:, None]).astype(float)


def dependence_by_definition(choice: np.ndarray, count: int, rows: SolverRows) -> float:
    mass, sums = cell_sums(certain(choice, count), rows)
    return sum(v @ v / p for p, v in zip(mass, sums) if p > 0)


def objective_of(choice: np.ndarray, prototypes: Prototypes, rows: SolverRows) -> float:
    """What moves have to lower, by its definition."""
    distances = distances_by_definition(rows, prototypes.centers)
    tolerance = prototypes.tolerance
    if tolerance == 0:
        distances += prototypes.multipliers @ (rows.means - prototypes.origin).T
        tolerance = SEARCH.least_tolerance
    lost = distances[choice, np.arange(len(choice))] @ rows.weights
    return lost + dependence_by_definition(choice, len(distances), rows) / (2 * tolerance)


@pytest.mark.parametrize("tolerance", TOLERANCES)
@pytest.mark.parametrize("seed", SEEDS)
def test_moves_lower_the_objective_until_none_does(tolerance, seed):
    rows = repeated_rows(60, 25, seed)
    solution = solve_prototypes(initial_prototypes(KINDS, rows, 4), rows, tolerance)
    count = len(solution.mass)
    costs = solution.costs(solution.distances(rows.targets), rows.means)
    start = costs.argmin(axis=0)
    choice = assigned_rows(solution, rows)
    reached = objective_of(choice, solution, rows)
    assert reached <= objective_of(start, solution, rows) + 1e-12
    if tolerance == 0:
        before = dependence_by_definition(start, count, rows)
        assert dependence_by_definition(choice, count, rows) <= before + 1e-12
    for means, place in product(np.unique(rows.means, axis=0), range(count)):
        other = np.where((rows.means == means).all(axis=1), place, choice)
        assert objective_of(other, solution, rows) >= reached - 1e-7


def test_distinct_rows_have_the_weight_and_the_mean_of_their_copies():
    rows = replace(random_rows(50, seed=0), weights=np.full(50, 0.02))
    place = np.random.default_rng(0).integers(12, size=50)
    once = DistinctRows.from_keys(rows, 10 * place)
    assert (once.keys == 10 * np.unique(place)).all()
    for key, repeated, targets, means, weight in zip(
        once.keys, once.repeated, once.rows.targets, once.rows.means, once.rows.weights
    ):
        own = 10 * place == key
        assert repeated == (own.sum() > 1)
        assert targets == approx(rows.targets[own].mean(axis=0))
        assert means == approx(rows.means[own].mean(axis=0))
        assert weight == approx(0.02 * own.sum())


def test_only_movable_rows_are_moved():
    once, _ = distinct_rows(repeated_rows(200, 60, seed=0))
    solution = solve_prototypes(initial_prototypes(KINDS, once.rows, 4), once.rows, 0.0)
    start = assign_rows(solution, once.rows, np.full(len(once.keys), False))
    movable = np.arange(len(once.keys)) % 2 == 0
    choice = assign_rows(solution, once.rows, movable)
    assert (choice[~movable] == start[~movable]).all()
    assert (choice[movable] != start[movable]).any()


def test_on_tiny_tables_moves_come_near_the_best_of_all_choices():
    gained = []
    for seed in range(8):
        rows = random_rows(7, seed, functions=1)
        prototypes = replace(random_prototypes(rows, 2, 0.1, seed), epsilon=0.05)
        solution = with_multipliers(prototypes, rows, SEARCH.exact)
        start = solution.costs(solution.distances(rows.targets), rows.means).argmin(axis=0)
        best = min(
            objective_of(np.array(choice), solution, rows) for choice in product((0, 1), repeat=7)
        )
        reached = objective_of(assigned_rows(solution, rows), solution, rows)
        assert reached >= best - 1e-12
        gained.append((objective_of(start, solution, rows) - best, reached - best))
    before, after = np.sum(gained, axis=0)
    assert after < before / 2


def test_equal_rows_share_a_prototype_in_any_order():
    rows = repeated_rows(300, 60, seed=1)
    solution = solve_prototypes(initial_prototypes(KINDS, rows, 6), rows, 0.0)
    choice = assigned_rows(solution, rows)
    _, first, place = np.unique(rows.means, axis=0, return_index=True, return_inverse=True)
    assert (choice == choice[first][place]).all()
    order = np.random.default_rng(0).permutation(300)
    other = SolverRows(rows.targets[order], rows.means[order], rows.weights[order])
    assert (assigned_rows(solution, other) == choice[order]).all()


def test_so_many_prototypes_are_enough_that_twice_as_many_win_little():
    rng = np.random.default_rng(0)
    cell = rng.integers(8, size=400)
    corners = np.array(list(product((-1, 1), repeat=3)))[cell]
    targets = np.column_stack([np.full((400, 3), 1 / 3), 5.0 * corners[:, :2]])
    rows = SolverRows(targets, 0.1 * rng.normal(size=(400, 1)), np.full(400, 1 / 400))
    assert n_prototypes(KINDS, rows, 64) == 4  # two of the three signs are seen
    assert n_prototypes(KINDS, rows, 3) == 3
