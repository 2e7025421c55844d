"""`frhsic check`: what is wrong with a table, each problem with the option that settles it."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frhsic.auditing import Settings, audit
from frhsic.cli import app
from frhsic.tables import check
from frhsic.tables.checking import ColumnRoles
from frhsic.tables.files import TableFile
from frhsic.tables.schema import remove_units
from frhsic.tables.training import read_training_table

ROWS = 400


def people() -> pd.DataFrame:
    """Return a table without problems but for the note on its classes."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": random.integers(20, 80, ROWS),
            "income": random.normal(40_000, 9_000, ROWS).round(2),
            "town": random.choice(["Bern", "Basel", "Biel"], ROWS),
            "paid": random.choice(["no", "yes"], ROWS),
        }
    )


def problems_of(table: pd.DataFrame, folder, *options: str) -> tuple[list[dict], str]:
    """Return the problems of a file and the command to run next."""
    path = folder / "people.csv"
    table.to_csv(path, index=False)
    asked = ["check", str(path), "-t", "paid", "-s", "age", "--json", *options]
    document = json.loads(CliRunner().invoke(app, asked).stdout)
    return document["problems"], document["command"]


def replaced(name: str, value: object, rows: int = 10) -> pd.DataFrame:
    table = people().astype(object)
    table.loc[: rows - 1, name] = value
    return table


def with_total(table: pd.DataFrame) -> pd.DataFrame:
    total = {"town": "Total (400 rows)", "income": table["income"].sum()}
    return pd.concat([table, pd.DataFrame([total])])


def panel(name: str) -> pd.DataFrame:
    table = people().loc[np.repeat(np.arange(100), 4)].reset_index(drop=True)
    table["hours"] = np.random.default_rng(1).normal(size=len(table)).round(6)
    return table.assign(**{name: np.repeat(np.arange(100), 4) * 7 + 3})


FOUND = {
    "a code below all others": (replaced("age", -9), "missing code", "--missing age=-9"),
    "a code above all others": (replaced("income", 9999999), "missing code", "--missing inc"),
    "a code among words": (replaced("town", "-9"), "missing code", "--missing town=-9"),
    "a word": (replaced("town", "Unknown"), "missing code", "--missing town=unknown"),
    "words among numbers": (
        replaced("income", "no answer"),
        "text in numbers",
        "--missing 'income=no answer'",
    ),
    "an outlier": (replaced("income", 1e9, rows=1), "outlier", "--missing income=1000000000"),
    "money": (people().assign(income=people()["income"].map("${:,.2f}".format)), "amounts", ""),
    "a total": (with_total(people()), "totals", ""),
    "spellings": (replaced("paid", "YES "), "target", ""),
    "people with rows": (panel("person"), "repeated identifier", "--groups person"),
    "the attribute": (
        people().assign(born=2000 - people()["age"]),
        "attribute repeated",
        "--drop born",
    ),
    "a leak": (people().assign(end=people()["paid"] == "yes"), "leak", "--drop end"),
    "weights": (
        people().assign(wgt=np.linspace(0.5, 2, ROWS) ** 3),
        "weights",
        "--row-weights wgt",
    ),
    "rows that came twice": (
        pd.concat([people(), people().head(40)]),
        "repeated rows",
        "--drop-repeated",
    ),
    "dates": (
        people().assign(seen=pd.date_range("2020-01-01", periods=ROWS).strftime("%m/%d/%Y")),
        "unreadable",
        "--date-format %m/%d/%Y",
    ),
    "an abbreviation": (
        people().assign(paid=np.resize(["Approved", "Appr.", "Denied"], ROWS)),
        "labels",
        "",
    ),
}


@pytest.mark.parametrize("kind", FOUND)
def test_each_problem_is_named_with_the_option_that_settles_it(kind, tmp_path):
    table, name, option = FOUND[kind]
    problems, command = problems_of(table, tmp_path)
    options = [problem["option"] for problem in problems if problem["kind"] == name]
    assert any(one.startswith(option) for one in options)
    words = shlex.split(command)
    again, _ = problems_of(table, tmp_path, *words[7:])  # the printed options are understood
    if option:
        assert name not in [problem["kind"] for problem in again]
    assert "error" not in [problem["certainty"] for problem in again]


def test_an_error_of_the_target_hides_no_other_problem(tmp_path):
    labels = people()["paid"].map({"yes": "bought", "no": "left"})
    table = people().assign(paid=labels, born=2000 - people()["age"], end=labels == "left")
    problems, command = problems_of(table, tmp_path)
    kinds = {problem["kind"]: problem["option"] for problem in problems}
    rarest = labels.value_counts().index[-1]
    assert kinds["target"] == f"--positive {rarest}"
    assert kinds["attribute repeated"] == "--drop born"
    assert kinds["leak"] == "--drop end"
    assert command.count("--drop") == 2


def test_a_clean_table_has_no_problem_but_a_note_on_its_classes(tmp_path):
    problems, command = problems_of(people(), tmp_path)
    assert [problem["kind"] for problem in problems] == ["target"]
    assert shlex.split(command)[3:] == ["--target", "paid", "--sensitive", "age"]


def test_zeros_of_amounts_are_no_codes():
    debts = np.geomspace(300, 1e6, ROWS)
    kinds = []
    for lowest in (debts, debts + 1e6):  # they begin near zero, or far from it
        table = people().assign(debt=np.where(np.arange(ROWS) < 10, 0, lowest))
        kinds.append([problem.kind for problem in check(table, "paid", "age")])
    assert kinds == [["target"], ["missing code", "target"]]


@pytest.mark.parametrize(
    ("cells", "numbers"),
    [
        (["$1,250.50", "-$3"], [1250.5, -3]),
        (["1.250,50 €", "310.000,00 €"], [1250.5, 310000]),
        (["CHF 13'160", "CHF 980"], [13160, 980]),
        (["13.2k", "1.5M"], [13200, 1.5e6]),
        (["(5,200)", "1,300"], [-5200, 1300]),
        (["R$ 10,00", "R$ 2.300,00"], [10, 2300]),
        (["12,345", "1,002"], [12345, 1002]),
    ],
)
def test_amounts_are_read_as_people_write_them(cells, numbers, tmp_path):
    table = people()
    table["income"] = np.resize(cells, ROWS)
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    data = read_training_table(TableFile.open(path), ColumnRoles("paid", ("age",)))
    assert data.X["income"].head(2).tolist() == numbers


def test_text_with_a_letter_is_no_amount():
    assert remove_units(pd.Series(["5kg", "A$", "k"])).tolist() == ["5kg", "A$", "k"]


def test_the_probabilities_of_several_classes_are_audited_by_the_positive_one():
    random = np.random.default_rng(0)
    chances = random.dirichlet(np.ones(3), ROWS)
    labels = np.resize(["high", "low", "middle"], ROWS)
    age = people()["age"]
    settings = Settings(fast=True, resamples=20)
    every = audit(chances, age, labels, positive="low", settings=settings)
    one = audit(chances[:, 1], age, labels, positive="low", settings=settings)
    assert every["age"].all_rows["gdp"].value == one["age"].all_rows["gdp"].value
    assert every.quality == one.quality
