"""What an audit is given: probabilities, text targets, the favourable outcome, rows without S; and its counts."""

from __future__ import annotations

import html
import json
import re
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from typer.testing import CliRunner

from frhsic import load
from frhsic.auditing import Audit, Settings, audit
from frhsic.auditing.inputs import Inputs, Outcome
from frhsic.cli import _models, app
from frhsic.parity import gdp
from frhsic.report import Report, render
from frhsic.report.first_page import worst_group
from frhsic.tables import ColumnRoles, ReadOptions, files, read_frame, read_rows, read_sensitive, read_training_table

pytestmark = pytest.mark.usefixtures("few_trees", "few_epochs")

QUICK = Settings(resamples=20, shuffles=1, max_rows=100, probe_rows=100)
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


def taken(z: Any, scores: Any = None) -> np.ndarray:
    """What an audit takes z for."""
    names: dict[str, Any] = dict.fromkeys(["name", "target_name", "positive", "favourable"])
    return Inputs.of(z, people()["age"], None, scores, **names, sample_weight=None, clusters=None).values


def test_two_probabilities_mean_that_of_the_second_class():
    data = people()
    both = np.column_stack([1 - data["risk"], data["risk"]])
    expected = gdp(data["risk"], data["age"], resamples=0).value
    result = audit(both.astype(np.float32), data["age"], settings=QUICK)
    assert (result.subject.kind, result.subject.dimensions, result.subject.name) == ("score", 1, "score")
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
        outcome = Outcome.of(y, 400, "outcome", "late", None)
        assert (outcome.name, outcome.favoured_name) == ("[outcome = late]", "rows with [outcome = late] = 1")
        np.testing.assert_array_equal(outcome.codes, data["late"])
        np.testing.assert_array_equal(outcome.favoured, data["late"] == 1)
    with pytest.raises(TypeError, match=r"y holds text \('.*'\); pass positive=VALUE"):
        audit(data["risk"], data["age"], data["outcome"], settings=QUICK)
    with pytest.raises(ValueError, match="positive='Late' is not a value of outcome: "):
        audit(data["risk"], data["age"], data["outcome"], positive="Late", settings=QUICK)


@pytest.mark.parametrize(
    ("target", "arguments", "name"),
    [
        ("late", {"favourable": 0}, "rows with late = 0, the favourable outcome"),
        ("late", {"favourable": "0"}, "rows with late = 0, the favourable outcome"),
        ("outcome", {"positive": "late", "favourable": "repaid"}, "rows with outcome = repaid, the favourable outcome"),
        ("outcome", {"positive": "repaid"}, "rows with [outcome = repaid] = 1"),
    ],
)
def test_equal_opportunity_is_measured_on_the_favourable_outcome(target: str, arguments: dict[str, Any], name: str):
    data = people()
    outcome = Outcome.of(data[target], 400, None, arguments.get("positive"), arguments.get("favourable"))
    assert outcome.favoured_name == name
    np.testing.assert_array_equal(outcome.favoured, data["late"] == 0)


@pytest.mark.parametrize(("favourable", "said", "high"), [(0, "not pays = late", False), (1, "pays = late", True)])
def test_a_target_that_names_its_value_is_not_compared_with_a_number(favourable: int, said: str, high: bool):
    outcome = Outcome.of(people()["late"], 400, "pays = late", None, favourable)
    assert (outcome.favourable, outcome.favours_high) == (said, high)
    assert outcome.favoured_name == f"rows with {said}, the favourable outcome"


def test_the_gap_and_the_page_are_those_of_the_favourable_outcome():
    data = people()
    result = audit(data["risk"], data["age"], data["outcome"], positive="late", favourable="repaid", settings=QUICK)
    positives = result["age"].positives
    expected = gdp(data["risk"], data["age"], where=data["late"] == 0, resamples=0).value
    assert positives["gdp"].value == pytest.approx(expected, rel=1e-12)
    assert result.subject.target_name == "[outcome = late]"
    assert "Equal opportunity: rows with outcome = repaid, the favourable outcome" in render(result)


def test_a_favourable_outcome_that_no_row_has_is_refused():
    data = people()
    with pytest.raises(ValueError, match=r"favourable=2 is not a value of late: '[01]', '[01]'"):
        audit(data["risk"], data["age"], data["late"], favourable=2, settings=QUICK)


def test_rows_without_an_attribute_are_left_out_counted_and_compared():
    data = people()
    age = data["age"].where(data.index % 4 > 0)
    result = audit(data["risk"], age, data["late"], dropped=7, sample_weight=np.ones(400), settings=QUICK)
    known = data[age.notna()]
    assert (result.rows.given, result.rows.dropped, result.rows.used) == (407, 107, 300)
    assert gap(result) == pytest.approx(gdp(known["risk"], known["age"], resamples=0).value, rel=1e-12)
    assert result["age"].positives.rows == int(known["late"].sum())
    remark, weighted = result.remarks
    assert weighted.startswith("Rows are weighted (sample_weight). GDP, the curve,")
    means = [data["risk"][age.isna()].mean(), known["risk"].mean()]
    assert remark.startswith("100 of 400 rows lack age and are left out. Their mean score is ")
    assert [float(x) for x in re.findall(r"0\.\d+", remark)] == pytest.approx(means, rel=0.01)
    with pytest.raises(ValueError, match="an audit needs at least 20 rows; 10 of 400 have age"):
        audit(data["risk"], age.where(data.index % 40 == 1), settings=QUICK)


def test_the_names_of_clusters_change_nothing_but_the_remark():
    data = people()
    number = np.arange(400) // 4
    named = pd.Series(number, name="person")
    mixed = [label if label % 2 else f"a{label}" for label in number.tolist()]  # numbers and text
    results = [
        audit(data["risk"], data["age"], clusters=clusters, settings=QUICK)
        for clusters in (number, torch.from_numpy(number), named, named.map("{:03d}".format), named.astype("category"))
    ]
    assert all(result.attributes == results[0].attributes for result in results)
    assert [re.search(r"belong to 100 groups \((\w+)\)", result.remarks[0])[1] for result in results] == (
        ["clusters"] * 2 + ["person"] * 3
    )
    assert gap(audit(data["risk"], data["age"], clusters=mixed, settings=QUICK)) == gap(results[0])


def test_bands_are_audited_and_remarked():
    data = people()
    bands = (data["age"] // 10 * 10).astype(int).map(lambda low: f"{low}-{low + 9}").rename("age")
    result = audit(data["risk"], bands, settings=QUICK)
    expected = gdp(data["risk"], data["age"] // 10 * 10, resamples=0).value
    assert gap(result) == pytest.approx(expected, rel=1e-12)
    assert "'age' holds bands" in result.warnings[0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"z": np.r_[np.nan, np.ones(399)]}, ValueError, "scores holds 1 values that are NaN"),
        ({"z": np.full((400, 2), np.inf)}, ValueError, "representation holds 800 values"),
        ({"z": np.array(["a"] * 400, dtype=object)}, TypeError, r"scores holds text or categories \(object\)"),
        ({"z": None}, TypeError, "scores is None"),
        ({"z": np.arange(399.0)}, ValueError, "scores has 399 rows, sensitive_features has 400"),
        ({"s": np.array([["a", 1.0]] * 400, dtype=object)}, TypeError, "sensitive_features holds text"),
        ({"s": None}, TypeError, "sensitive_features is None"),
        ({"s": pd.DataFrame(np.ones((400, 2)), columns=["a", "a"])}, ValueError, "more than one column named a"),
        ({"y": np.arange(5)}, ValueError, "y has 5 rows, the scores have 400"),
        ({"y": np.r_[np.nan, np.ones(399)]}, ValueError, "y holds 1 missing values"),
        ({"clusters": np.arange(5)}, ValueError, "clusters has 5 rows"),
        ({"clusters": np.ones((400, 2))}, ValueError, r"clusters has shape \(400, 2\)"),
        ({"clusters": np.r_[np.nan, np.ones(399)]}, ValueError, r"clusters lacks a value in 1 of 400 rows \(row 1\)"),
        ({"clusters": [None] * 7 + ["a"] * 393}, ValueError, r"in 7 of 400 rows \(rows 1, 2, 3, 4, 5, \.\.\.\)"),
        ({"clusters": pd.Series(["a"] * 400, name="id")}, ValueError, r"'id' \(clusters\) has one value in all 400"),
        ({"sample_weight": np.r_[1, -0.5, np.ones(398)]}, ValueError, "sample_weight is −0.5 in row 2; pass weights"),
        ({"sample_weight": np.r_[np.nan, np.ones(399)]}, ValueError, "sample_weight holds 1 values that are NaN"),
        ({"sample_weight": np.zeros(400)}, ValueError, "sample_weight is 0 in all 400"),
    ],
)
def test_messages_use_the_words_of_the_caller(change: dict[str, Any], error: type[Exception], message: str):
    data = people()
    with pytest.raises(error, match=message):
        audit(**({"z": data["risk"], "s": data["age"], "settings": QUICK} | change))
    with pytest.raises(ValueError, match="an audit needs at least 20 rows; 5 came"):
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
    given = Outcome.of(kind(data["late"]), len(data), "late", None, None)
    np.testing.assert_array_equal(given.codes, data["late"])


def test_a_target_of_two_columns_is_refused():
    with pytest.raises(ValueError, match=r"y has shape \(400, 2\); pass one column"):
        audit(people()["risk"], people()["age"], np.zeros((400, 2)), settings=QUICK)


def test_tables_of_pyarrow_are_audited():
    pa = pytest.importorskip("pyarrow")
    data = people()
    held = pa.table({"risk": data["risk"], "age": data["age"]})
    np.testing.assert_array_equal(taken(held.select(["risk"])), data[["risk"]])
    read = read_sensitive(held.select(["age"]))
    np.testing.assert_array_equal(read.values, data[["age"]])
    assert read.names == ("age",)


def shown(page: str) -> str:
    """The text of a page without scripts and styles, blanks made single."""
    body = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return re.sub(r"[\s\u00a0]+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)))


def numbers_of_rows(text: str) -> set[int]:
    """Every number of the page that counts rows."""
    found = re.findall(r"([\d,]*\d) (?:(?:validation|test|other) )?(?:rows|others)\b", text)
    return {int(number.replace(",", "")) for number in found}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    data = people(1000)
    data.loc[data.index % 25 < 4, "outcome"] = None
    data.loc[data.index % 6 == 0, "x"] = np.nan
    data[["age", "x", "risk", "outcome"]].to_csv(folder / "loans.csv", index=False, sep=";", decimal=",")
    asked = ["train", str(folder / "loans.csv"), "-t", "outcome", "-s", "age", "--favourable", "repaid"]
    asked += ["--max-rows", "100", "--limit", "none", "--json"]
    result = run(app, [*asked, "-o", str(folder / "m.safetensors"), "-r", str(folder / "page.html")])
    assert result.exit_code == 0, result.output
    return folder, json.loads(result.stdout)


def test_every_count_of_the_page_is_that_of_the_audit_and_of_the_table(trained):
    folder, said = trained
    report = Report.from_dict(said["report"])
    counts, page = report.audit.rows, (folder / "page.html").read_text(encoding="utf-8")
    data = read_training_table(folder / "loans.csv", ColumnRoles("outcome", ("age",), favourable="repaid"))
    (_, y, _), (_, y_test, _) = data.split([0.2], 0)
    assert (counts.given, counts.dropped, counts.used, counts.subsample) == (1000, 160, 168, 100)
    assert (len(y), len(y_test)) == (672, 168)
    text = shown(page)
    assert "Data loans.csv, 168 of 1,000 rows" in text
    assert "Trained on 672 rows and measured on 168 others" in text
    assert "160 of 1,000 rows (16 %) were left out because a value is missing." in text
    assert "16 % of the rows were dropped because a value is missing" in text
    favoured = int((y_test == "repaid").sum())
    assert f"The same measures on the {favoured} rows with outcome = repaid, the favourable outcome alone" in text
    populations = [p for a in report.audit.attributes for p in (a.all_rows, a.positives) if p]
    regions = [region.rows for a in report.audit.attributes for region in a.sparse_regions]
    certificates = [row.rows for a in report.audit.attributes for row in a.certificates]
    known = {672, 168, 100, favoured, *regions, sum(regions), *certificates}
    known |= {number.rows for p in populations for number in p.numbers}
    curve = populations[0].curve
    known |= {1000, int(curve.rows[worst_group(curve)])}
    assert numbers_of_rows(text) <= known
    cells = [int(float(value)) for value in re.findall(r'data-label="Rows" data-value="([\d.]+)"', page)]
    assert cells == [number.rows for p in populations for number in p.numbers]
    assert max(cells) == 168
    for population, rows in zip(populations, (168, favoured)):
        assert population.rows == rows == sum(population.curve.rows)


def test_a_page_says_how_the_file_was_read_and_what_the_model_was_trained_on(trained):
    _, said = trained
    assert said["notes"][:2] == [
        "loans.csv was read with semicolons between fields.",
        "loans.csv was read with decimal commas.",
    ]


def test_counts_of_an_audit_of_a_sample_are_those_of_the_file(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "KEPT_ROWS", 1000)
    monkeypatch.setattr(files, "CELLS", 1500)
    data = people(6000)
    data.loc[data.index % 10 == 0, "risk"] = np.nan
    data.to_csv(tmp_path / "long.csv", index=False, sep="\t")
    asked = ["audit", str(tmp_path / "long.csv"), "-s", "age", "--score", "risk", "--target", "outcome"]
    asked += ["--positive", "late", "--favourable", "repaid", "--max-rows", "100", "--json"]
    result = run(app, [*asked, "-o", str(tmp_path / "page.html")])
    assert result.exit_code == 0, result.output
    found = Audit.from_json(result.stdout)
    counts = found.rows
    assert (counts.given, counts.dropped, counts.used) == (6000, 600, 1000)
    text = shown((tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "Data long.csv, 1,000 of 6,000 rows" in text
    assert "600 of 6,000 rows (10 %) were left out because a value is missing." in text
    assert "10 % of the rows were dropped because a value is missing" in text
    assert "long.csv was read with tabs between fields." in found.remarks
    assert "The table has 6,000 rows; 1,000 of them, drawn at random, were audited." in found.remarks
    assert found["age"].positives.name == "rows with outcome = repaid, the favourable outcome"


def test_a_saved_model_is_applied_to_rows_with_missing_features(trained):
    folder, _ = trained
    served = _models.Served.load(folder / "m.safetensors")
    file = served.open(folder / "loans.csv", ReadOptions())
    frame = read_rows(file, served.columns).frame
    rows = read_frame(folder / "loans.csv")[["x", "risk"]]
    assert rows["x"].isna().sum() == 167
    np.testing.assert_array_equal(served.scores(frame, file), load(folder / "m.safetensors").predict_proba(rows)[:, 1])
