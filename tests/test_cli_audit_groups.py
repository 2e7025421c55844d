"""`frhsic audit --groups` and `--row-weights`: rows that belong together, and rows that count for more than one."""

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import frhsic
from estimator_samples import quick
from frhsic.auditing import Audit, Settings
from frhsic.cli import app
from frhsic.estimators import FRHSICRegressor
from frhsic.report import text

pytestmark = pytest.mark.usefixtures("few_trees")

run = CliRunner().invoke
QUICK = ["--max-rows", "100", "--json"]


def panel(seed=0, persons=60, times=6, strength=0.0):
    """Return a table in which each person has several equal rows."""
    random = np.random.default_rng(seed)
    age, noise = random.normal(size=(2, persons))
    order = random.permutation(persons * times)
    person = np.repeat(np.arange(persons), times)[order]
    return pd.DataFrame(
        {
            "person": [f"{i:03d}" for i in person],
            "age": age[person],
            "p": (strength * age + noise)[person],
            "w": random.integers(0, 4, len(person)),
            "late": (noise > 0)[person].astype(int),
        }
    )


def audited(table, *more):
    result = run(app, ["audit", str(table), "-s", "age", "--score", "p", *QUICK, *more])
    assert result.exit_code == 0, result.stderr
    return Audit.from_json(result.stdout)


def moves(audit):
    return "moves with age" in text(audit)


@pytest.fixture
def gaps_alone(monkeypatch):
    """Audits that leave out all that is not about the gap, for the tests that look at nothing else."""
    monkeypatch.setattr("frhsic.auditing.measures.dependence", lambda *rows, **options: iter(()))
    monkeypatch.setattr("frhsic.auditing.running.certificates", lambda *rows: iter(()))


@pytest.fixture
def table(tmp_path):
    panel().to_csv(tmp_path / "panel.csv", index=False)
    return tmp_path / "panel.csv"


@pytest.mark.slow
@pytest.mark.usefixtures("gaps_alone")
def test_equal_rows_of_persons_pass_for_a_gap_unless_groups_are_named(tmp_path):
    path, rows, groups = tmp_path / "panel.csv", 0, 0
    for seed in range(12):
        panel(seed, persons=120).to_csv(path, index=False)
        rows += moves(audited(path))
        groups += moves(audited(path, "--groups", "person"))
    assert rows >= 9
    assert groups <= 2


def plain(audit):
    """Return the numbers of an audit, without what only a file has."""
    return {key: value for key, value in audit.to_dict().items() if key not in ("source", "title", "context", "rows")}


@pytest.mark.parametrize(("ending", "weights"), [("csv", "w"), ("parquet", None)])
def test_the_command_says_what_the_function_says_to_the_last_digit(ending, weights, tmp_path):
    data, path = panel(), tmp_path / f"panel.{ending}"
    data.to_csv(path, index=False) if ending == "csv" else data.to_parquet(path)
    more = [] if weights is None else ["--row-weights", weights]
    found = audited(path, "--groups", "person", "--target", "late", *more)
    weighted = None if weights is None else data[weights]
    expected = frhsic.audit(
        data["p"],
        data["age"],
        data["late"],
        groups=data["person"],
        sample_weight=weighted,
        settings=Settings(max_rows=100),
    )
    assert plain(found) == plain(expected)
    assert (found.rows.groups, found.rows.weighted) == (60, weights is not None)


@pytest.mark.parametrize(
    ("column", "values", "option", "message"),
    [
        ("person", {3: None, 9: None}, "--groups", "'person' (groups) lacks a value in 2 of 359 rows (rows 4, 10)"),
        ("w", {3: None}, "--row-weights", "'w' (sample_weight) lacks a value in 1 of 359 rows (row 4)"),
        ("w", {3: -2}, "--row-weights", "'w' (sample_weight) is −2 in row 4; pass weights of zero or more"),
        ("w", {3: "many"}, "--row-weights", "column 'w' (weights) is not numeric: it holds 'many', first in row 4"),
        ("w", dict.fromkeys(range(360), 0), "--row-weights", "'w' (sample_weight) is 0 in all 359 rows"),
        ("person", dict.fromkeys(range(360), 1), "--groups", "'person' (groups) has one value in all 359 rows"),
    ],
)
def test_bad_groups_and_weights_exit_with_2_and_name_column_and_rows(table, column, values, option, message):
    data = panel().astype({column: object, "age": object})
    data.loc[0, "age"] = None  # this row is dropped, and the others keep their numbers
    for row, value in values.items():
        data.loc[row, column] = value
    data.to_csv(table, index=False)
    result = run(app, ["audit", str(table), "-s", "age", "--score", "p", *QUICK, option, column])
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_groups_and_weights_are_no_part_of_a_representation_or_a_model(table, tmp_path):
    found = audited(table, "--groups", "person", "--row-weights", "w", "--embedding", "*", "--target", "late")
    assert found.subject.dimensions == 1  # p
    asked = ["audit", str(table), "-s", "age", "--embedding", "person", "--groups", "person"]
    assert "nothing is left to audit" in run(app, asked).stderr
    data = panel()
    model = FRHSICRegressor(penalty_weight=0, **quick(epochs=1)).fit(data[["p", "w"]], data["late"])
    frhsic.save(model, tmp_path / "model.frhsic")
    asked = ["audit", str(table), "-s", "age", "--model", str(tmp_path / "model.frhsic"), *QUICK]
    result = run(app, [*asked, "--groups", "person", "--row-weights", "w"])
    assert result.exit_code == 0, result.stderr
    found = Audit.from_json(result.stdout)
    scores = model.predict(data[["p", "w"]])
    expected = frhsic.parity.gdp(scores, data["age"], groups=data["person"], sample_weight=data["w"], resamples=499)
    assert found["age"].all_rows["gdp"].value == pytest.approx(expected.value, rel=1e-5)
    assert found["age"].all_rows["gdp"].pvalue == pytest.approx(expected.pvalue, abs=0.01)


@pytest.mark.parametrize("option", ["--groups", "--row-weights"])
def test_on_dask_they_are_refused_before_anything_is_read(option, tmp_path):
    asked = ["audit", str(tmp_path / "none-*.parquet"), "-s", "age", "--score", "p", "--scheduler", "tcp://127.0.0.1:1"]
    result = run(app, [*asked, *QUICK, option, "person"])
    assert (result.exit_code, result.stdout) == (2, "")
    assert "--groups and --row-weights are not used with --scheduler" in result.stderr
