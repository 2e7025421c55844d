"""One language of limits: what it says, what it refuses, and that every place takes it."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge

import frhsic
import report_samples as samples
from cli_samples import run
from frhsic.auditing import Settings, since
from frhsic.auditing.results import LIMITABLE, LimitCheck, Number
from frhsic.cli._terminal import parse_confidence, parse_limit
from frhsic.intervals import Interval
from frhsic.parity.limits import AT_LEAST, Limit, limits_by_attribute, parse_limits, rows_to_settle
from frhsic.report import Report
from frhsic.report.first_page import closing_lines, verdict

pytestmark = pytest.mark.usefixtures("few_trees")


def test_a_confidence_of_the_command_line_is_a_number_or_none():
    assert parse_confidence("0.9") == 0.9
    assert parse_confidence("none") is None
    with pytest.raises(ValueError, match="--confidence is 'high'; pass a number"):
        parse_confidence("high")


def test_a_limit_that_only_the_estimate_keeps_says_how_many_rows_would_settle_it():
    """The distance to the end is twice the room, so four times the rows are needed."""
    ends = Interval(0.0, 0.04, 0.95, "")
    check = LimitCheck("age", "gdp", "all", 0.03, 0.02, ends, rows=1000)
    assert check.verdict == "unclear"
    assert check.rows_needed == 4000
    shown = verdict(Report(replace(samples.audit(), limits=(check,))))
    assert "4,000 people" in shown.remarks[0]
    close = replace(check, limit=0.0201)  # would take 40 million
    (line,) = verdict(Report(replace(samples.audit(), limits=(close,)))).remarks
    assert "too close to the limit" in line
    ratio = replace(
        check, key="decision_ratio", limit=0.8, value=0.9, interval=Interval(0.7, 1, 0.95, "")
    )
    assert ratio.rows_needed == 4000
    was = Number("gdp", 0.05, 1000)
    half = replace(check, share=0.5, base="gap", reference=was)  # an aim for the estimate
    assert replace(half, reduction=Interval(0.4, 0.8, 0.95, "")).rows_needed is None
    assert replace(check, limit=0.05).rows_needed is None  # kept
    assert replace(check, limit=0.01).rows_needed is None  # the estimate does not keep it


SAID = [
    (None, []),
    (0.05, [Limit(0.05)]),
    (np.float32(0.25), [Limit(0.25)]),
    (0, [Limit(0.0)]),
    ("0.05", [Limit(0.05)]),
    ("50%", [Limit(0.5, base="gap")]),
    (" 12.5 % ", [Limit(0.125, base="gap")]),
    ("gdp <= 0.05", [Limit(0.05)]),
    ("gdp<=5e-2", [Limit(0.05)]),
    ("gdp <= 120%", [Limit(1.2, base="gap")]),
    ("gdp <= 10% of base rate", [Limit(0.1, base="base rate")]),
    ("eo <= .05", [Limit(0.05, among="favourable")]),
    ("eo.hsic <= 0.05", [Limit(0.05, "hsic", "favourable")]),
    ("rank_gap <= 30%", [Limit(0.3, "rank_gap", base="gap")]),
    ("decision_ratio >= 0.8", [Limit(0.8, "decision_ratio")]),
    ("decision_ratio >= 80%", [Limit(0.8, "decision_ratio")]),
    ({"age": 0.02, "hours": None}, [Limit(0.02, attribute="age")]),
    (
        {"age": ["50%", "eo <= 0.1"]},
        [Limit(0.5, base="gap", attribute="age"), Limit(0.1, among="favourable", attribute="age")],
    ),
    ([0.1, {"age": "50%"}], [Limit(0.1), Limit(0.5, base="gap", attribute="age")]),
    ((), []),
]


@pytest.mark.parametrize(("limit", "meant"), SAID, ids=[str(limit) for limit, _ in SAID])
def test_a_limit_means_what_the_page_says(limit: Any, meant: list[Limit]):
    assert parse_limits(limit, LIMITABLE) == tuple(meant)


FORMS = "pass a number, a share such as '50%', or a string such as 'gdp <= 0.05'."
KINDS = (
    "pass a number, a share such as '50%', a string such as 'gdp <= 0.05', a dictionary of these"
    " keyed by attribute, or None."
)


@pytest.mark.parametrize(
    ("limit", "error", "sentence"),
    [
        (True, TypeError, f"limit is True; {KINDS}"),
        (np.array([0.1]), TypeError, f"limit is array([0.1]); {KINDS}"),
        (
            {"age": {"hours": 0.1}},
            TypeError,
            "limit contains a nested dictionary for 'age'; pass one dictionary keyed by attribute.",
        ),
        (-0.1, ValueError, "the limit on gdp is -0.1; pass a nonnegative number."),
        (math.nan, ValueError, "the limit on gdp is nan; pass a nonnegative number."),
        (math.inf, ValueError, "the limit on gdp is inf; pass a nonnegative number."),
        *((text, ValueError, f"limit is '{text}'; {FORMS}") for text in ("half", "gdp=0.05")),
        ("gdp < 0.05", ValueError, f"limit is 'gdp < 0.05'; {FORMS}"),
        ("gdp >= 0.05", ValueError, "limit is 'gdp >= 0.05'; write 'gdp <= 0.05'."),
        (
            "decision_ratio <= 0.8",
            ValueError,
            "limit is 'decision_ratio <= 0.8'; write 'decision_ratio >= 80%'.",
        ),
        *(
            (
                f"decision_ratio >= {value}",
                ValueError,
                f"the limit on decision_ratio is {value}; pass a share of at most 1.",
            )
            for value in ("1.2", "0")
        ),
        (
            "gdpp <= 0.05",
            ValueError,
            f"limit names 'gdpp'; measures that can be limited here are {', '.join(LIMITABLE)}."
            " Did you mean 'gdp'?",
        ),
        (
            "hsic <= 50%",
            ValueError,
            "the limit on hsic is a share; pass a number, as in 'hsic <= 0.05'.",
        ),
        (
            "rank_gap <= 5% of base rate",
            ValueError,
            "the limit on rank_gap is a share; pass a number, as in 'rank_gap <= 0.05'.",
        ),
        (
            "gdp <= 0.1 of base rate",
            ValueError,
            "limit is 'gdp <= 0.1 of base rate'; write a share of the base rate as a percentage,"
            " such as 'gdp <= 10% of base rate'.",
        ),
    ],
)
def test_what_is_no_limit_is_refused_with_what_to_write(
    limit: Any, error: type[Exception], sentence: str
):
    with pytest.raises(error) as refused:
        parse_limits(limit, LIMITABLE)
    assert str(refused.value) == sentence


def test_a_share_is_the_nearest_number_and_a_least_value_may_be_one():
    assert parse_limits("0.7%", ["gdp"]) == (Limit(0.007, base="gap"),)
    assert parse_limits("decision_ratio >= 1", LIMITABLE) == (Limit(1.0, "decision_ratio"),)


def test_aims_are_shares_of_the_gap_and_the_least_gap():
    limits = parse_limits(["50%", 0, 0.05, "gdp <= 10% of base rate"], ["gdp"])
    assert [one.is_aim for one in limits] == [True, True, False, False]


@pytest.mark.parametrize(
    ("value", "end", "limit", "rows"),
    [
        (0.02, 0.04, 0.03, 400),  # twice the room
        (0.02, 0.03, 0.03, 100),  # the end is at the limit
        (0.02, 0.031, 0.03, 121),
        (0.9, 0.7, 0.8, 400),  # a least value
        (0.03, 0.04, 0.03, None),  # no room
        (0.02, 0.02, 0.03, None),  # no interval
        (0.04, 0.06, 0.03, None),  # the wrong side
        (0.02, math.inf, 0.03, None),
    ],
)
def test_rows_that_settle_a_limit_grow_with_the_square_of_the_distance_over_the_room(
    value: float, end: float, limit: float, rows: int | None
):
    assert rows_to_settle(100, value, end, limit) == rows


def test_every_measure_has_a_direction_and_a_number_is_about_the_first():
    for name in LIMITABLE:
        sign = ">=" if name.removeprefix("eo.") in AT_LEAST else "<="
        (limit,) = parse_limits(f"{name} {sign} 0.5", LIMITABLE)
        assert limit.name == name
    assert parse_limits(0.1, ["rank_gap"]) == parse_limits("rank_gap <= 0.1", ["rank_gap"])


def test_limits_go_to_the_attributes_that_they_name():
    limits = parse_limits([{"age": 0.02}, "50%"], ["gdp"])
    assert limits_by_attribute(limits, ["age", "hours"]) == {"age": limits, "hours": limits[1:]}
    with pytest.raises(ValueError, match="limit names 'age'") as refused:
        limits_by_attribute(limits, ["Age", "hours"])
    assert str(refused.value) == (
        "limit names 'age'; the attributes are Age, hours. Did you mean 'Age'?"
    )


def test_a_bound_is_a_number_a_share_of_the_gap_or_of_the_base_rate():
    limits = parse_limits([0.05, "50%", "gdp <= 10% of base rate"], ["gdp"])
    assert [one.bound(0.08, 0.3) for one in limits] == pytest.approx([0.05, 0.04, 0.03])
    assert [str(one) for one in limits] == ["0.05", "50%", "10% of base rate"]
    for rate in (None, 0.0):
        with pytest.raises(ValueError, match="base rate") as refused:
            limits[2].bound(0.08, rate)
        assert str(refused.value) == (
            "the limit is a share of the base rate, but the base rate is not positive; pass a"
            " number."
        )


# every place


def people(n: int = 240, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, hours = rng.uniform(20, 60, n).round(1), rng.uniform(10, 50, n).round(1)
    skill = rng.normal(size=n).round(3)
    tenure = (0.1 * (age - 40) + rng.normal(size=n)).round(3)
    chance = 1 / (1 + np.exp(-(0.8 * skill + 0.5 * tenure)))
    columns = {"age": age, "hours": hours, "skill": skill, "tenure": tenure}
    return pd.DataFrame(columns | {"p": chance.round(4), "y": (rng.random(n) < chance).astype(int)})


TABLE = people()
X, Y, S = TABLE[["skill", "tenure"]], TABLE["y"], TABLE[["age", "hours"]]
LIMITS: dict[str, Any] = {
    "number": 0.2,
    "share": "50%",
    "zero": 0,
    "none": None,
    "by attribute": {"age": 0.2, "hours": None},
    "measure": "gdp <= 0.2",
    "share of a measure": "gdp <= 50%",
    "share of the base rate": "gdp <= 30% of base rate",
    "list": [0.2, {"age": "gdp <= 0.3"}],
}
OPTIONS = {
    "number": ["0.2"],
    "share": ["50%"],
    "zero": ["0"],
    "none": ["none"],
    "by attribute": ["age=0.2", "hours=none"],
    "measure": ["gdp=0.2"],
    "share of a measure": ["gdp<=50%"],
    "share of the base rate": ["gdp=30% of base rate"],
    "list": ["0.2", "age=gdp<=0.3"],
}
# aims of a fit, which an audit of one table cannot judge
AIMS = ("share", "zero", "share of a measure")
EACH = pytest.mark.parametrize("kind", LIMITS)
SOME = pytest.mark.parametrize("kind", ["share", "by attribute", "list"])
QUICK = Settings(resamples=20, max_rows=100, probe_rows=100)


def small(**options: Any) -> frhsic.ParityClassifier:
    models = {"estimator": LogisticRegression(), "attribute_estimator": Ridge()}
    return frhsic.ParityClassifier(**models, cv=2, random_state=0, **options)


@pytest.fixture(scope="module")
def fitted() -> frhsic.ParityClassifier:
    return small(limit=None).fit(X, Y, sensitive_features=S)


@EACH
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_an_estimator_and_its_copies_take_it(kind: str, fitted: frhsic.ParityClassifier):
    own = small(limit=LIMITS[kind]).fit(X, Y, sensitive_features=S)
    limits = own.at(LIMITS[kind]).frontier_.limits(LIMITS[kind])
    assert own.choice_.limit == LIMITS[kind]
    assert fitted.at(LIMITS[kind]).choice_.gaps.keys() == {"age", "hours"}
    gap = own.frontier_.gaps["age"][0].value
    expected = {"none": None, "zero": 0.0, "share of the base rate": 0.3 * Y.mean()}
    expected |= {"share": 0.5 * gap, "share of a measure": 0.5 * gap}
    wanted = expected.get(kind, 0.2)
    bounds = [limit.bound(gap, Y.mean()) for limit in limits["age"]]
    assert min(bounds, default=None) == (None if wanted is None else pytest.approx(wanted))
    assert (not limits["hours"]) == (kind in ("none", "by attribute"))


def checked(audit: frhsic.auditing.Audit) -> set[str]:
    return {check.attribute for check in audit.limits}


@cache
def without_limits(seed: int) -> frhsic.auditing.Audit:
    table = people(seed=seed)
    return frhsic.audit(table["p"], table[["age", "hours"]], table["y"], settings=QUICK)


@pytest.mark.parametrize("kind", [*AIMS, "by attribute", "none", "list"])
def test_an_audit_takes_it_and_asks_for_an_earlier_one_to_judge_an_aim(kind: str):
    if kind in AIMS:
        with pytest.raises(ValueError, match="or compare with an earlier audit"):
            frhsic.audit(None, None, limit=LIMITS[kind])  # before anything is looked at
        june, may = (without_limits(seed) for seed in (0, 1))
        audit = since(june, may, LIMITS[kind])
    else:
        audit = frhsic.audit(TABLE["p"], S, Y, limit=LIMITS[kind], settings=QUICK)
    expected = {"none": set(), "by attribute": {"age"}}
    assert checked(audit) == expected.get(kind, {"age", "hours"})


@SOME
def test_an_audit_on_dask_takes_it(kind: str):
    dataframe = pytest.importorskip("dask.dataframe")
    options = {"score": "p", "sensitive": ["age", "hours"], "target": "y", "limit": LIMITS[kind]}
    if kind in AIMS:
        with pytest.raises(ValueError, match="or compare with an earlier audit"):
            frhsic.distributed.audit(None, **options)  # before anything is looked at
    else:
        frame = dataframe.from_pandas(TABLE, npartitions=2)
        audit = frhsic.distributed.audit(frame, **options, settings=QUICK)
        assert checked(audit) == ({"age"} if kind == "by attribute" else {"age", "hours"})


@EACH
def test_an_option_means_the_limit_of_its_name(kind: str):
    trained = parse_limit(OPTIONS[kind], ["age", "hours"], ["gdp"])
    assert set(parse_limits(trained, ["gdp"])) == set(parse_limits(LIMITS[kind], ["gdp"]))


@SOME
def test_the_command_line_takes_it(kind: str, tmp_path: Path):
    table = tmp_path / "people.csv"
    TABLE.to_csv(table, index=False)
    limits = [part for text in OPTIONS[kind] for part in ("--limit", text)]
    command = ["audit", str(table), "--score", "p", "-s", "age", "-s", "hours", "--max-rows", "100"]
    if kind in AIMS:
        table.write_text("not read before the limit is refused")
    result = run([*command, "--json", *limits])
    if kind in AIMS:
        assert result.exit_code == 2
        assert "or compare with an earlier audit (--against" in result.stderr
        TABLE.to_csv(table, index=False)
        earlier = tmp_path / "may.json"
        earlier.write_text(without_limits(1).to_json())
        result = run([*command, "--json", *limits, "--against", str(earlier)])
    assert result.exit_code in (0, 1)
    attributes = {check["attribute"] for check in json.loads(result.stdout)["limits"]}
    assert attributes == ({"age"} if kind == "by attribute" else {"age", "hours"})


@pytest.mark.parametrize(("limit", "said"), [(0.05, True), (0.07, False), (0.01, True)])
def test_a_group_above_the_limit_on_the_average_over_groups_is_named(limit, said):
    """A sixth of the people have a gap of .075, the others of .0075; their mean is .019."""
    rng = np.random.default_rng(0)
    s = rng.uniform(size=3000)
    group = rng.integers(0, 6, size=3000).astype(str)
    scores = 0.5 + np.where(group == "0", 0.3, 0.03) * (s - 0.5) + 0.05 * rng.normal(size=3000)
    result = frhsic.audit(scores, s, control_features=group, limit=f"within <= {limit}")
    line = closing_lines(Report(result))["equal"]
    assert (f"” is above {limit}, the limit on the average of all groups" in line) == said
    assert result.limits[0].verdict == ("not kept" if limit == 0.01 else "kept")
