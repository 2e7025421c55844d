"""What an audit is given: probabilities, text targets, the favourable outcome, rows without S; and its counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from frhsic.auditing import Audit, Context, Settings, audit
from frhsic.auditing.running import Inputs, outcome
from frhsic.cli import app
from frhsic.parity import gdp
from frhsic.report.words import warnings
from frhsic.tables import files

pytestmark = pytest.mark.usefixtures("few_trees", "few_epochs")

QUICK = Settings(resamples=20, max_rows=100, probe_rows=100)
run = CliRunner().invoke


def people(n: int = 400, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age = np.round(rng.uniform(20, 70, n))
    risk = 1 / (1 + np.exp(-(0.05 * (45 - age) + rng.normal(size=n))))
    return pd.DataFrame(
        {"age": age, "risk": risk, "late": (rng.random(n) < risk).astype(int), "x": rng.normal(size=n)}
    ).assign(outcome=lambda frame: np.where(frame["late"] == 1, "late", "repaid"))


def gap(result: Audit, attribute: str = "age") -> float:
    return result[attribute].all_rows["gdp"].value


def taken(z: Any, scores: Any = None, s: Any = None, y: Any = None) -> np.ndarray:
    """What an audit takes z for."""
    names: dict[str, Any] = dict.fromkeys(["positive", "favourable", "weights", "groups"])
    return Inputs.of(z, people()["age"] if s is None else s, y, scores, **names).rows.z


def test_two_probabilities_mean_that_of_the_second_class():
    data = people()
    both = np.column_stack([1 - data["risk"], data["risk"]])
    expected = gdp(data["risk"], data["age"], resamples=0).value
    result = audit(both.astype(np.float32), data["age"], settings=QUICK)
    assert (result.subject.dimensions, result.subject.name) == (1, "score")
    assert gap(result) == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(taken(pd.DataFrame(both, columns=["repaid", "late"])), data[["risk"]])


def test_probabilities_of_more_classes_are_refused_and_other_columns_are_a_representation():
    data = people()
    three = np.column_stack([1 - data["risk"], data["risk"] / 3, 2 * data["risk"] / 3])
    with pytest.raises(ValueError, match=r"3 columns between 0 and 1 whose rows sum to 1.*Pass the column of one"):
        audit(three, data["age"], settings=QUICK)
    assert taken(three[:, 1:]).shape == (400, 2)
    assert taken(three, scores=data["risk"]).shape == (400, 3)
    assert taken(np.column_stack([data["risk"], data["x"]])).shape == (400, 2)


def test_a_text_target_is_taken_with_its_positive_value():
    data = people()
    for y in (data["outcome"], data["outcome"].astype("category"), data["outcome"].to_numpy(), list(data["outcome"])):
        codes, favoured, target = outcome(y, "late", None)
        assert target.positive == "late"
        np.testing.assert_array_equal(codes, data["late"])
        np.testing.assert_array_equal(favoured, data["late"] == 1)


@pytest.mark.parametrize(
    ("target", "positive", "favourable"),
    [("late", None, 0), ("late", None, "0"), ("outcome", "late", "repaid"), ("outcome", "repaid", None)],
)
def test_equal_opportunity_is_measured_on_the_favourable_outcome(target: str, positive: Any, favourable: Any):
    data = people()
    np.testing.assert_array_equal(outcome(data[target], positive, favourable)[1], data["late"] == 0)


def test_rows_without_an_attribute_are_left_out_counted_and_compared():
    data = people()
    age = data["age"].where(data.index % 4 > 0)
    result = audit(data["risk"], age, data["late"], context=Context(dropped=7), settings=QUICK)
    known = data[age.notna()]
    assert (result.rows.given, result.rows.dropped, result.rows.used) == (407, 107, 300)
    assert gap(result) == pytest.approx(gdp(known["risk"], known["age"], resamples=0).value, rel=1e-12)
    assert result["age"].positives.rows == int(known["late"].sum())
    with pytest.raises(ValueError, match="an audit needs at least 20 rows; 10 of 400 have"):
        audit(data["risk"], age.where(data.index % 40 == 1), settings=QUICK)


def test_swapped_scores_and_attribute_are_warned_of():
    data = people()
    for swapped in (data["age"], 1000 * data["x"]):
        with pytest.warns(UserWarning, match="swapped"):
            remarks = audit(swapped, data["risk"], settings=QUICK).context.remarks
        assert len(remarks) == 1
    with pytest.warns(UserWarning, match="swapped"):
        taken(data["age"], s=data["risk"], y=data["late"])


def test_scores_beyond_0_and_1_are_not_taken_for_an_attribute():
    data = people()
    income, share = 1000 * data["x"], data["risk"]
    for z, s, y in (
        (share, data["x"].abs(), None),
        (income, share, 900 * data["x"]),  # predictions of a number
        (income, data["late"], None),  # an attribute of two values
        (data["x"], share, data["late"]),  # logits
        (data[["age", "x"]], share, None),
    ):
        taken(z, s=s, y=y)  # a warning is an error


def test_the_names_of_groups_change_nothing():
    data = people()
    number = np.arange(400) // 4
    named = pd.Series(number, name="person")
    mixed = [label if label % 2 else f"a{label}" for label in number.tolist()]  # numbers and text
    results = [
        audit(data["risk"], data["age"], groups=groups, settings=QUICK)
        for groups in (number, torch.from_numpy(number), named, named.map("{:03d}".format), named.astype("category"))
    ]
    assert all(result == results[0] for result in results)
    assert results[0].rows.groups == 100
    assert gap(audit(data["risk"], data["age"], groups=mixed, settings=QUICK)) == gap(results[0])


def test_bands_are_audited_and_remarked():
    data = people()
    bands = (data["age"] // 10 * 10).astype(int).map(lambda low: f"{low}-{low + 9}").rename("age")
    result = audit(data["risk"], bands, settings=QUICK)
    expected = gdp(data["risk"], data["age"] // 10 * 10, resamples=0).value
    assert gap(result) == pytest.approx(expected, rel=1e-12)
    assert "'age' holds bands" in result.context.remarks[0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"z": np.r_[np.nan, np.ones(399)]}, ValueError, "scores holds 1 values that are NaN"),
        ({"z": np.full((400, 2), np.inf)}, ValueError, "representation holds 800 values"),
        ({"z": np.array(["a"] * 400, dtype=object)}, TypeError, r"scores holds text, bands or categories \(object\)"),
        ({"z": None}, TypeError, "scores is None"),
        ({"z": np.arange(399.0)}, ValueError, "scores has 399 rows, sensitive_features has 400"),
        ({"s": np.array([["a", 1.0]] * 400, dtype=object)}, TypeError, "sensitive_features holds text"),
        ({"s": None}, TypeError, "sensitive_features is None"),
        ({"s": pd.DataFrame(np.ones((400, 2)), columns=["a", "a"])}, ValueError, "more than one column named a"),
        ({"y": np.arange(5)}, ValueError, "y has 5"),
        ({"y": np.r_[np.nan, np.ones(399)]}, ValueError, r"y lacks a value in 1 of 400 rows \(row 1\)"),
        ({"groups": np.arange(5)}, ValueError, "groups has 5"),
        ({"groups": np.ones((400, 2))}, ValueError, r"groups has shape \(400, 2\)"),
        ({"groups": np.r_[np.nan, np.ones(399)]}, ValueError, r"groups lacks a value in 1 of 400 rows \(row 1\)"),
        ({"groups": [None] * 7 + ["a"] * 393}, ValueError, r"in 7 of 400 rows \(rows 1, 2, 3, 4, 5, \.\.\.\)"),
        ({"y": np.zeros((400, 2))}, ValueError, r"y has shape \(400, 2\)"),
        ({"y": np.arange(400) % 2, "favourable": 2}, ValueError, "favourable=2 is not a value of y: '0', '1'"),
        ({"y": ["late"] * 400}, TypeError, r"y holds text \('late'\); pass positive=VALUE"),
        ({"groups": pd.Series(["a"] * 400, name="id")}, ValueError, r"'id' \(groups\) has one value in all 400"),
        ({"sample_weight": np.r_[1, -0.5, np.ones(398)]}, ValueError, "sample_weight is −0.5 in row 2; pass weights"),
        ({"sample_weight": np.r_[np.nan, np.ones(399)]}, ValueError, "sample_weight lacks a value in 1 of 400"),
        ({"sample_weight": np.zeros(400)}, ValueError, "sample_weight is 0 in all 400"),
    ],
)
def test_messages_use_the_words_of_the_caller(change: dict[str, Any], error: type[Exception], message: str):
    data = people()
    with pytest.raises(error, match=message):
        audit(**({"z": data["risk"], "s": data["age"], "settings": QUICK} | change))
    with pytest.raises(ValueError, match="an audit needs at least 20 rows; 5 of 5 have"):
        audit(data["risk"].head(), data["age"].head(), settings=QUICK)


@pytest.mark.parametrize(
    "kind",
    [
        lambda y: y.to_frame(),
        lambda y: pl.Series(y.to_numpy()),
        lambda y: torch.tensor(y.to_numpy()),
        lambda y: y.to_numpy()[:, None],
        lambda y: y.tolist(),
    ],
    ids=["frame", "polars", "tensor", "one column", "list"],
)
def test_every_kind_of_target_is_taken(kind: Any):
    data = people()
    np.testing.assert_array_equal(outcome(kind(data["late"]), None, None)[0], data["late"])


def test_counts_of_an_audit_of_a_sample_are_those_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "KEPT_ROWS", 1000)
    monkeypatch.setattr(files, "CELLS", 1500)
    data = people(6000)
    data.loc[data.index % 10 == 0, "risk"] = np.nan
    data.to_csv(tmp_path / "long.csv", index=False, sep="\t")
    asked = ["audit", str(tmp_path / "long.csv"), "-s", "age", "--score", "risk", "--target", "outcome"]
    asked += ["--positive", "late", "--favourable", "repaid", "--max-rows", "100", "--json"]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    audited = Audit.from_json(result.stdout)
    assert (audited.rows.given, audited.rows.dropped, audited.rows.used) == (6000, 600, 1000)
    said = " ".join(warnings(audited))
    assert "600 of 6,000 rows (10 %) were left out because a value is missing." in said
    assert "long.csv was read with tabs between fields." in said
    assert "The table has 6,000 rows; 1,000 of them, drawn at random, were audited." in said
