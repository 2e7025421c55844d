"""What estimators are made of, by hand: units, places between trade-offs, tests of heads,
descriptions of prototypes, kept targets, and the words of a frontier.
"""

from __future__ import annotations

import math
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest import approx
from scipy.optimize import minimize_scalar
from scipy.stats import ncx2

from frhsic.estimators.basis import ranges
from frhsic.estimators.constraints import Constraint, FitRows, GapCurves, LabelledRows
from frhsic.estimators.describing import _attribute_means, cell_means, describe_prototypes
from frhsic.estimators.encoder import _affordable, _strata
from frhsic.estimators.families import (
    BinaryScores,
    NumberScores,
    SolverTask,
    Units,
)
from frhsic.estimators.frontier import Frontier, Gap, aimed_gap, limited_measure
from frhsic.estimators.heads_gap import HeadsTest, _inflation
from frhsic.estimators.prototypes import SolverRows
from frhsic.estimators.solution import BETWEEN, Solution
from frhsic.estimators.solving import GAP_SHARES, solve
from frhsic.estimators.targets import (
    KeptTarget,
    log_losses,
    named_coordinates,
    target_columns,
    target_kinds,
    target_performance,
)
from frhsic.parity import gdp, rank_gap
from frhsic.parity.limits import Limit, parse_limits
from frhsic.tables.columns import LARGEST_FEATURE
from frhsic.tables.schema import Schema


def labelled(
    y: Any, s: Any, weights: np.ndarray | None = None, *, numeric: bool = False, folds: int = 2
) -> LabelledRows:
    y = np.asarray(y, dtype=float)
    s = np.reshape(np.asarray(s, dtype=float), (len(y), -1))
    names = ("age", "hours")[: s.shape[1]]
    fold = np.arange(len(y)) % folds
    X = np.zeros((len(y), 1))
    return LabelledRows(X, X, s, names, weights, None, fold, 0, y, y, numeric)


# Units and trade-offs


def test_numbers_are_centred_and_scaled_and_rare_decisions_have_the_base_rate_as_threshold():
    weights = np.array([1.0, 1.0, 2.0, 4.0])
    rows = labelled([0.0, 2.0, 4.0, 8.0], [0, 1, 0, 1], weights, numeric=True)
    eta = np.array([0.0, 1.0, 2.0, 3.0])
    units = Units.of(rows, eta, False)
    mean = weights @ rows.y / 8
    deviation = math.sqrt(weights @ (rows.y - mean) ** 2 / 8)
    assert (units.center, units.scale, units.threshold) == approx((mean, deviation, 0.5))
    assert units.ranks == approx((np.linspace(0, 3, 101) - mean) / deviation)
    assert units.standard(eta) == approx((eta - mean) / deviation)
    assert Units.of(replace(rows, y=np.ones(4)), eta, False).scale == 1.0
    for rate, threshold in ((0.19, 0.19), (0.2, 0.5), (0.79, 0.5), (0.81, 0.81)):
        rows = labelled(np.arange(100) < round(100 * rate), np.arange(100) % 2)
        units = Units.of(rows, np.zeros((100, 2)), True)
        assert (units.center, units.scale, len(units.ranks)) == approx((threshold, 1.0, 0))
        assert units.threshold == approx(threshold)
        assert Units.of(rows, np.zeros(100), False).threshold == 0.5


def test_gaps_are_divided_by_their_limits_or_sizes_over_the_least_of_them():
    n = 120
    k = np.arange(n)
    rows = labelled(k % 2, np.column_stack([k % 3 // 2, k // 60]), folds=2)
    eta = 0.5 + 0.1 * (k % 3 // 2) + 0.2 * (k // 60)
    constraints = tuple(Constraint.fit(rows, j, "all") for j in range(2))
    units = Units(0.0, 1.0, 0.5, np.zeros(0))
    solved = Solution(BinaryScores(), constraints, np.zeros(0), units, np.zeros((1, 2)))
    gaps = np.array([2 * (2 / 9) * 0.1, 2 * 0.25 * 0.2])

    def scales(**limits: Any) -> list[float]:
        parsed = {name: parse_limits(limits.get(name), ["gdp"]) for name in rows.names}
        return solved._gap_units(rows, eta, parsed)

    assert scales() == approx(gaps / gaps.min())
    assert scales(age=0.02, hours=0.05) == approx([1.0, 2.5])
    assert scales(hours=0.05) == approx([np.inf, 1.0])  # the other is left alone
    assert scales(age=0.02, hours=0) == approx([1.0, gaps[1] / 0.02])
    wide = replace(solved, units=replace(units, scale=4.0))
    assert wide._unit(Limit(0.02), 0.3, rows) == approx(0.005)
    assert wide._unit(Limit(0.0001, base="gap"), 0.3, rows) == approx(0.3e-3)
    assert wide._unit(Limit(0.1, base="base rate"), 0.3, rows) == approx(0.1 * 0.5 / 4)


def test_places_between_solved_trade_offs_have_parameters_between_theirs():
    parameters = np.array([[[0.0, 1.0]], [[2.0, 1.0]], [[2.0, 5.0]]])
    solved = Solution(
        NumberScores(), (), parameters, Units(3.0, 2.0, 0.5, np.zeros(0)), np.zeros((1, 0))
    )
    solved = solved.interpolated()
    last = 2 * BETWEEN
    assert len(solved.parameters) == last + 1
    eta = np.array([3.0, 7.0])
    none = np.zeros((2, 0))
    own = [solved.scores(place, 0, eta, none) for place in range(last + 1)]
    assert own[last] == approx(3 + 2 * (2 + 5 * np.array([0.0, 2.0])))
    for place in range(last + 1):
        below = place // BETWEEN * BETWEEN
        above = min(below + BETWEEN, last)
        share = place % BETWEEN / BETWEEN
        assert own[place] == approx(own[below] + share * (own[above] - own[below]))
    assert solved.out_of_fold(last, np.zeros(2, dtype=int), eta, none) == approx(own[last])


def test_trade_offs_of_a_quadratic_cost_leave_the_shares_of_the_gap_that_they_aim_at():
    """Two levels of S, f = η - c m: the gap falls in proportion to c, the cost as its square."""
    n = 400
    s = np.arange(n) % 2
    rows = labelled(np.zeros(n), s, numeric=True)
    constraint = Constraint.fit(rows, 0, "all")
    functions = constraint.functions(rows.s)
    eta = np.where(s == 1, 0.6, -0.6)
    noise = np.where(np.arange(n) // 2 % 2, 0.5, -0.5)
    other = np.where(np.arange(n) // 4 % 2, 0.5, -0.5)
    weights = np.full(n, 1 / n)
    curves = GapCurves.of([constraint], rows.s, rows.y, rows.mass)
    task = SolverTask(eta + noise, functions, eta + noise + other, weights, curves)
    family = NumberScores()
    gaps = np.array(
        [
            curves.largest(
                curves.functions.T @ family.outputs(own, task.base, task.columns)[:, None]
            )
            for own in solve(family, task)
        ]
    )

    def norm(share: float, aim: float) -> float:
        """Return the norm of a share, which is smooth near 0."""
        width = max(0.1 * aim, 0.01)
        return math.hypot(share, width) - width

    def least(mu: float, aim: float) -> float:
        """Share with the least loss 0.36 (1 - r)² and penalty."""

        def cost(share: float) -> float:
            return 0.36 * (1 - share) ** 2 + mu * norm(share, aim) ** 2 / 2

        return minimize_scalar(cost, bounds=(0, 1), method="bounded").x

    first = least(3 * 0.25, 1.0)  # 0.25 is the loss of η
    whole = 0.36 * (1 - first) ** 2 / (1 - norm(first, 1.0) / norm(1.0, 1.0)) ** 2
    expected = [least(2 * whole * (1 - aim) / aim, aim) for aim in GAP_SHARES[1:]]
    assert gaps[0] == approx(0.6)
    assert gaps[1:] / gaps[0] == approx(expected, rel=0.01, abs=0.001)
    assert (np.diff(gaps) < 0).all()


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_the_gap_of_an_aim_counts_weights_and_groups(aim):
    rng = np.random.default_rng(0)
    s = rng.integers(5, size=120)
    scores = s + rng.normal(size=120)
    weights = rng.integers(1, 4, 120)
    groups = np.arange(120) // 2
    options = {"sample_weight": weights, "groups": groups, "resamples": 20}
    expected = (rank_gap if aim == "rank" else gdp)(scores, s, **options)
    assert aimed_gap(aim, scores, s, weights, groups, resamples=20) == expected


# Heads


@pytest.mark.parametrize(("statistic", "confidence"), [(90.0, 0.95), (90.0, 0.8), (20.0, 0.95)])
def test_the_ends_of_the_gap_of_heads_are_those_of_the_noncentral_law(statistic, confidence):
    gap = HeadsTest(statistic, degrees=30, rows=2000.0, cells=11).gap(confidence)
    assert gap.value == approx(math.sqrt(max(statistic - 30, 0) / 2000) / 2)
    high = 2000 * (2 * gap.high) ** 2
    assert ncx2.cdf(max(statistic, 30), 30, high) == approx(1 - confidence, rel=1e-6)
    low = 2000 * (2 * gap.low) ** 2
    if statistic > 30:
        assert ncx2.cdf(statistic, 30, low) == approx(confidence, rel=1e-6)
    else:
        assert low == 0
    assert HeadsTest(0.0, degrees=0, rows=9.0, cells=1).pvalue == 1.0


def test_groups_inflate_by_what_their_rows_share():
    rng = np.random.default_rng(3)
    n, cells, groups = 40, 3, 12
    cell, group = rng.integers(cells, size=n), rng.integers(groups, size=n)
    functions = rng.normal(size=(n, 2))
    weights = rng.uniform(size=n)
    weights /= weights.sum()
    mass = np.bincount(cell, weights)

    def mean_square(labels: np.ndarray) -> float:
        total = 0.0
        for one in np.unique(labels):
            own = np.flatnonzero(labels == one)
            for l in range(cells):
                part = sum(weights[i] * ((cell[i] == l) - mass[l]) * functions[i] for i in own)
                total += part @ part / mass[l]
        return total

    expected = mean_square(group) / mean_square(np.arange(n))
    found = _inflation(cell, functions, weights, mass, group)
    assert found == approx(max(expected, 1.0))
    together = np.sort(cell)
    assert (
        _inflation(together, np.ones((n, 1)), weights, np.bincount(together, weights), together) > 1
    )


# Prototypes


def test_prototypes_are_as_many_as_rows_can_solve_for():
    means = np.array([[1.0, 0.0], [-1.0, 2.0]])
    pilot = SolverRows(means, means, np.array([0.5, 0.5]))  # variances 1 and 1
    few, some, many = (_affordable(pilot, rows) for rows in (10, 20_000, 10**9))
    assert (few, some, many) == (4, 51, 64)  # 1 + 0.005 n over both variances, from 4 to 64


def test_folds_are_stratified_by_the_only_target_if_its_classes_have_two_rows():
    target = KeptTarget("y", np.array(["a", "b"]), 1.0)
    codes = _strata([target], {"y": np.array(["b", "a", "a", "b"])})
    assert codes.tolist() == [1, 0, 0, 1]
    assert _strata([target], {"y": np.array(["b", "a", "a", "a"])}) is None
    assert _strata([target, target], {}) is None
    assert _strata([KeptTarget("y", None, 1.0)], {}) is None


def test_a_description_has_means_with_intervals_and_typical_rows():
    z = np.array([0, 0, 0, 2, 2])
    s = np.array([1.0, 2.0, np.nan, 4.0, 8.0])
    weights = np.array([1.0, 3.0, 5.0, 2.0, 2.0])
    found = _attribute_means("age", z, s, weights, 3)
    mean = np.array([7 / 4, 0.0, 6.0])
    squares = [1 * (0.75) ** 2 + 9 * 0.25**2, 0.0, 4 * 4 + 4 * 4]
    reach = 1.96 * np.sqrt(squares) / np.array([4, 1, 4])
    assert list(found) == ["age", "age_low", "age_high"]
    assert found["age"] == approx(mean)
    assert found["age_low"] == approx(mean - reach)
    assert found["age_high"] == approx(mean + reach)
    otherwise = np.array([[9.0], [9.0], [9.0]])
    values = np.arange(5.0)[:, None]
    assert cell_means(z, values, weights, otherwise)[:, 0] == approx([13 / 9, 9, 3.5])
    frame = pd.DataFrame({"hours": [1.0, 2.0, 9.0, 5.0, 7.0], "job": list("aabcc")})
    schema = Schema.learn(frame)
    codes = schema.codes(frame)
    rows = FitRows(frame, codes, s[:, None], ("age",), weights, None, np.zeros(5, int), 0)
    (table,) = describe_prototypes(rows, schema, [z], [{"score": np.array([0.1, 0.2, 0.3])}])
    assert table["share"] == approx([9 / 13, 0, 4 / 13])
    assert table["score"] == [0.1, 0.2, 0.3]
    assert table["typical hours"] == [2.0, None, 6.0]
    assert table["typical job"] == ["a", None, "c"]


# Targets


@pytest.mark.parametrize(
    ("values", "classes"),
    [
        (np.arange(60) % 20, 20),
        (np.arange(60) % 21, None),
        (np.arange(60) / 7, None),
        (np.arange(60) % 2, 2),
        (np.array([str(k % 30) for k in range(60)]), 30),
    ],
)
def test_up_to_twenty_whole_numbers_are_classes(values, classes):
    target = KeptTarget.from_column("y", values, None)
    assert (None if target.classes is None else len(target.classes)) == classes
    assert target.width == (classes or 1)
    if classes is None:
        assert target.scale == approx(values.std())


def test_kept_targets_name_their_coordinates_and_performance():
    weights = np.array([1.0, 3.0])
    number = KeptTarget.from_column("pay", np.array([0.5, 2.5]), weights)
    assert number.scale == approx(math.sqrt(0.25 * 1.5**2 + 0.75 * 0.5**2))
    two = KeptTarget.from_column("hired", np.array(["no", "yes"]), None)
    three = KeptTarget.from_column("grade", np.array(["a", "b", "c"]), None)
    targets = (number, two, three)
    assert [(type(kind).__name__, kind.start, kind.stop) for kind in target_kinds(targets)] == [
        ("Numbers", 0, 1),
        ("Probabilities", 1, 3),
        ("Probabilities", 3, 6),
    ]
    centers = np.array([[1.0, 0.2, 0.8, 0.5, 0.3, 0.2], [2.0, 0.6, 0.4, 0.1, 0.1, 0.8]])
    coordinates = named_coordinates(targets, centers)
    assert [*coordinates] == ["pay", "hired=yes", "grade=a", "grade=b", "grade=c"]
    assert coordinates["pay"] == approx(number.scale * centers[:, 0])
    assert coordinates["hired=yes"] == approx([0.8, 0.4])
    labels = {
        "pay": np.array([0.5, 2.5]),
        "hired": np.array(["yes", "no"]),
        "grade": np.array(["a", "c"]),
    }
    values = target_performance(targets, centers, labels, weights)
    errors = (number.scale * centers[:, 0] - labels["pay"]) ** 2
    assert values == approx(
        {
            "pay_squared_error": (errors[0] + 3 * errors[1]) / 4,
            "hired_log_loss": -(np.log(0.8) + 3 * np.log(0.6)) / 4,
            "hired_auc": 1.0,
            "grade_log_loss": -(np.log(0.5) + 3 * np.log(0.8)) / 4,
        }
    )
    assert log_losses(np.array([0.0, 1.0]), np.array([1, 1])) == approx([-np.log(1e-12), 0.0])


def test_columns_of_y_have_names():
    model = SimpleNamespace()
    with pytest.raises(ValueError, match="requires y"):
        target_columns(model, None)
    assert [*target_columns(model, [1, 2])] == ["target"]
    assert [*target_columns(model, pd.Series([1, 2], name="pay"))] == ["pay"]
    assert [*target_columns(model, np.eye(2))] == ["target0", "target1"]
    assert [*target_columns(model, pd.DataFrame({1: [1, 2], "b": [3, 4]}))] == ["1", "b"]


def test_tables_for_trees_have_codes_days_and_numbers():
    frame = pd.DataFrame(
        {
            "job": ["cook", "clerk", None],
            "since": pd.to_datetime(["1970-01-02", "1970-01-11", None]),
            "pay": [1.5, 1e300, np.nan],
        }
    )
    schema = Schema.learn(frame)
    codes = schema.codes(frame)
    assert codes[:, 0] == approx([1, 0, np.nan], nan_ok=True)
    assert np.diff(codes[:2, 1]) == approx(9)
    assert np.isnan(codes[2, 1])
    assert codes[:, 2] == approx([1.5, LARGEST_FEATURE, np.nan], nan_ok=True)
    assert schema.categorical == [0]
    days_and_pay = schema.select(["since", "pay"])
    plain = days_and_pay.codes(frame[["since", "pay"]])
    assert np.array_equal(plain, codes[:, 1:], equal_nan=True)


def test_ranges_have_equal_mass_and_frequent_values_stay_apart():
    assert ranges(np.full(16, 1 / 16), 2).tolist() == list(range(16))
    assert ranges(np.full(20, 0.05), 4, 0.06).tolist() == np.repeat(range(4), 5).tolist()
    assert ranges(np.full(20, 0.05), 4).tolist() == list(range(20))  # a twentieth is frequent
    tiny = np.append(np.full(40, 0.025), 1e-18)  # which rounding adds to all mass
    assert ranges(tiny, 4).max() == 3


# The coupling


# The frontier


def frontier(aim: str = "score", **performance: Any) -> Frontier:
    gaps = {
        "years": (Gap(0.2, 0.1, 0.3), Gap(0.05, 0.0, 0.15)),
        "hours": (Gap(0.4, 0.3, 0.5), Gap(0.1, 0.05, 0.2)),
    }
    values = {name: np.array(each) for name, each in performance.items()}
    return Frontier(aim, "gdp", values, gaps, {"years": 0.0, "hours": 0.2}, 0.9, 0.4, 100)


@pytest.mark.parametrize(
    ("aim", "yardstick", "axis"),
    [
        ("score", "log_loss", "GDP"),
        ("rank", "auc", "rank gap"),
        ("decision", "accuracy", "GDP of decisions"),
    ],
)
def test_a_frontier_is_shown_by_the_performance_of_its_aim(aim, yardstick, axis):
    shown = frontier(aim, log_loss=[0.5, 0.6], auc=[0.5, 0.6], accuracy=[0.5, 0.6])
    assert f"gap by hours 0.4 to 0.1, {yardstick} 0.5 to 0.6>" in repr(shown)
    html = shown._repr_html_()
    assert "gap by hours" in html.partition("<svg")[2]  # the largest gap is drawn
    assert "gap by years" not in html.partition("<svg")[2]
    axes = shown.plot(Figure().subplots())
    assert (axes.get_xlabel(), axes.get_ylabel()) == (axis, yardstick.replace("_", " "))
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["years", "hours"]
    bars = axes.containers[0][2][0].get_segments()
    assert [bar[:, 0].tolist() for bar in bars] == [approx([0.1, 0.3]), approx([0.0, 0.15])]


def test_a_frontier_is_a_table_of_performance_and_gaps():
    table = frontier(log_loss=[0.5, 0.6]).to_frame()
    assert [*table] == [
        "log_loss",
        *("gap_years", "gap_years_low", "gap_years_high"),
        *("gap_hours", "gap_hours_low", "gap_hours_high"),
    ]
    assert table.iloc[1].tolist() == [0.6, 0.05, 0.0, 0.15, 0.1, 0.05, 0.2]


def test_a_limit_is_kept_at_the_first_place_by_its_upper_end_or_estimate():
    shown = frontier(log_loss=[0.5, 0.6])
    by_end = shown.choose({"years": 0.2}, True)
    assert (by_end.position, by_end.met) == (1, True)
    assert by_end.gaps["hours"].value == 0.1
    assert shown.choose({"years": 0.3}, True).position == 0
    assert shown.choose({"years": 0.2}, False).position == 0
    assert shown.choose({"years": 0.1}, False).position == 1
    assert shown.choose({"years": "50%"}, True).position == 1
    rate = shown.choose({"years": "gdp <= 50% of base rate"}, True)
    assert (rate.position, rate.met) == (1, True)
    indistinct = shown.choose({"hours": "50%"}, True)  # a p-value of 0.2
    assert (indistinct.position, indistinct.indistinct) == (0, ("hours",))
    settled = shown.choose({"years": 0.1}, True)  # 0.15 - 0.05 is twice the room
    assert (settled.position, settled.met, settled.rows_needed) == (1, False, 400)
    unmet = shown.choose({"years": 0.01}, True)
    assert (unmet.position, unmet.met, unmet.rows_needed) == (1, False, None)
    assert shown.choose(None, True).position == 0


@pytest.mark.parametrize(("aim", "positions"), [("score", [8, 6, 4]), ("heads", [8, 8, 8])])
def test_upper_ends_are_compared_on_two_ways_from_strict_trade_offs_on(aim, positions):
    """From the strictest and from three quarters of the path, each to the first beyond the limit;
    where the ends are one-sided, from the strictest alone.
    """
    highs = [0.3, 0.3, 0.3, 0.3, 0.1, 0.18, 0.15, 0.25, 0.12]
    gaps = {"age": tuple(Gap(0.1, 0.0, high) for high in highs)}
    losses = {"log_loss": np.zeros(len(highs))}
    shown = Frontier(aim, "gdp", losses, gaps, {"age": 0.0}, 0.95, 0.5, 100)
    choices = [shown.choose(limit, True) for limit in (0.13, 0.16, 0.2)]
    assert all(choice.met for choice in choices)
    assert [choice.position for choice in choices] == positions
    assert not shown.choose(0.11, True).met


def test_limits_are_on_the_gap_of_aim_and_condition():
    names = {
        ("score", None): "gdp",
        ("rank", None): "rank_gap",
        ("decision", None): "decision_gdp",
        ("score", "positive"): "eo",
        ("rank", "positive"): "eo.rank_gap",
        ("decision", "both"): "equalized_odds",
        ("heads", None): "gdp",
    }
    for (aim, condition), name in names.items():
        assert limited_measure(aim, condition) == name
