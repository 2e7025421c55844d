"""`frhsic check`: what is wrong with a table, each problem with the option that settles it."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import frhsic
from frhsic.auditing import Settings, audit
from frhsic.cli import app
from frhsic.cli.check import settling_options
from frhsic.tables import check
from frhsic.tables.checking import ColumnRoles
from frhsic.tables.columns import replace_values
from frhsic.tables.files import LeftOut, TableFile
from frhsic.tables.identifiers import unit_keys
from frhsic.tables.problems import Problem
from frhsic.tables.schema import remove_units
from frhsic.tables.training import read_training_table

ROWS = 400


def people(rows: int = ROWS) -> pd.DataFrame:
    """Return a table without problems but for the note on its classes."""
    random = np.random.default_rng(0)
    return pd.DataFrame(
        {
            "age": random.integers(20, 80, rows),
            "income": random.normal(40_000, 9_000, rows).round(2),
            "town": random.choice(["Bern", "Basel", "Biel"], rows),
            "paid": random.choice(["no", "yes"], rows),
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


def uneven() -> pd.DataFrame:
    """Return women with one to seven rows: their income differs, town and age do not."""
    rows = np.repeat(np.arange(120), 1 + np.arange(120) % 7)
    table = people().loc[rows].reset_index(drop=True)
    random = np.random.default_rng(1)
    table["income"] = random.normal(40_000, 9_000, len(table)).round(2)
    table["hours"] = random.normal(size=len(table)).round(4)
    return table.assign(woman=rows * 7 + 3).sample(frac=1, random_state=0)


LARGE = [9e6, 8e6, 7e6, 6e6, 5e6]
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
    "several outliers": (
        pd.concat([people().assign(income=[*LARGE, *people()["income"][5:]])] + [people()] * 2),
        "outlier",
        "--missing income=9000000,8000000,7000000,6000000,5000000",
    ),
    "a code behind an outlier": (
        replaced("age", 97).pipe(lambda table: table.assign(age=[1e6, *table["age"][1:]])),
        "missing code",
        "--missing age=97",
    ),
    "a word for a missing value": (
        replaced("town", "not tested"),
        "missing code",
        "--missing 'town=not tested'",
    ),
    "limits in words": (
        people().assign(
            size=[f"{i % 7} or more" if i % 7 == 6 else str(i % 7) for i in range(ROWS)]
        ),
        "detection limit",
        "--replace 'size=6 or more:6'",
    ),
    "limits in German": (
        people().assign(size=["bis 5" if i % 9 == 0 else str(i % 70 + 5.5) for i in range(ROWS)]),
        "detection limit",
        "--replace 'size=bis 5:5'",
    ),
    "limits of percentages": (
        people().assign(rate=["<1%" if i % 9 == 0 else f"{i % 70 + 1.5}%" for i in range(ROWS)]),
        "text in numbers",
        "--replace 'rate=<1%:1%'",
    ),
    "limits of an attribute in percent": (
        people().assign(age=["under 2%" if i % 9 == 0 else f"{i % 70 + 3}%" for i in range(ROWS)]),
        "attribute",
        "--replace 'age=under 2%:2%'",
    ),
    "units of an attribute": (
        people().assign(
            age=[f"{i % 60}0 m" if i % 3 else f"{i % 59 / 7:.2f} km" for i in range(ROWS)]
        ),
        "text in numbers",
        "--replace 'age=* m:*,* km:1000*'",
    ),
    "labels with a joint": (replaced("town", "Bas-el"), "labels", "--replace town=Bas-el:Basel"),
    "labels with an initial": (
        replaced("town", "B. Town").replace({"town": {"Bern": "Bern town"}}),
        "labels",
        "--replace 'town=B. Town:Bern town'",
    ),
    "capitals for a label": (replaced("town", "BAS"), "labels", "--replace town=BAS:Basel"),
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
    "dates in two formats": (
        people().assign(
            seen=[f"{i % 28 + 1:02d}/03/2020" if i % 2 else "04-Mar-20" for i in range(ROWS)]
        ),
        "unreadable",
        "--drop seen",
    ),
    "bands of the attribute": (
        people().assign(division=people()["age"].floordiv(5).map("band {}".format)),
        "attribute repeated",
        "--drop division",
    ),
    "a pair that gives the attribute": (
        people().assign(
            year=(year := np.random.default_rng(2).integers(1990, 2010, ROWS)),
            birth_yr=year - people()["age"] - np.arange(ROWS) % 2,
        ),
        "attribute repeated",
        "--drop",
    ),
    "uneven rows of people": (uneven(), "repeated identifier", "--groups woman"),
    "weights of persons": (
        people().assign(perweight=np.linspace(0.5, 2, ROWS) ** 3),
        "weights",
        "--row-weights perweight",
    ),
    "many words among numbers": (
        people().assign(size=[f"{i} pieces" if i % 20 == 0 else str(i % 90) for i in range(ROWS)]),
        "text in numbers",
        "--missing 'size=0 pieces,20 pieces",
    ),
    "names": (
        people().assign(who=[f"name {i % 90}" for i in np.random.default_rng(3).permutation(ROWS)]),
        "many levels",
        "",
    ),
    "names of nearly all": (
        people().assign(
            who=[f"name {i % 290}" for i in np.random.default_rng(3).permutation(ROWS)]
        ),
        "many levels",
        "--drop who",
    ),
    "sexes that are abbreviated": (
        people().assign(sex=np.resize(["Female", "Male", "F", "Male", "M"], ROWS)),
        "labels",
        "--replace sex=F:Female",
    ),
    "answers that are abbreviated": (
        people().assign(smokes=np.resize(["Yes", "No", "Y"], ROWS)),
        "labels",
        "--replace smokes=Y:Yes",
    ),
    "a constant": (people().assign(wave=1), "constant", ""),
    "ranges that became dates": (
        people().assign(speed=np.resize(["24-Oct", "25-39", "40-54"], ROWS)),
        "spreadsheet dates",
        "--replace speed=24-Oct:10-24",
    ),
    "numbers that became dates": (
        people().assign(visits=np.resize(["3-Jan", "7", "01.Mär", "0", "12", "3"], ROWS)),
        "spreadsheet dates",
        "--missing 'visits=3-Jan,01.Mär'",
    ),
    "numbers that became dates of a year": (
        people().assign(visits=np.resize(["2024-01-03", "7", "01.03.2024", "0"], ROWS)),
        "spreadsheet dates",
        "--missing visits=2024-01-03,01.03.2024",
    ),
    "ages that became dates": (
        replaced("age", "24. Okt"),
        "spreadsheet dates",
        "--missing 'age=24. Okt'",
    ),
    "a code among numbers": (
        people().assign(
            amount=np.where(np.arange(ROWS) % 9 == 0, 9999, np.arange(ROWS) * 7919 % 20_011)
        ),
        "missing code",
        "--missing amount=9999",
    ),
    "a short word for what is not known": (
        replaced("town", "n/k"),
        "missing code",
        "--missing town=n/k",
    ),
    "numbers and words for the rest": (
        people().assign(fee=np.resize(["12", "unknown", "7", "nk", "31", "45"], ROWS)),
        "text in numbers",
        "--missing fee=unknown,nk",
    ),
    "numbers below a detection limit": (
        people().assign(crp=np.resize(["<0.7", "1.2", "3", "< 0.5", "2.25"], ROWS)),
        "detection limit",
        "--replace 'crp=<0.7:0.7,< 0.5:0.5'",
    ),
    "numbers below a limit with a comma": (
        people().assign(crp=np.resize(["<0,7", "1.2", "3,5", "2.25"], ROWS)),
        "detection limit",
        "--replace 'crp=<0.7:0.7'",
    ),
    "a class that is no answer": (
        people().assign(paid=np.resize(["approved", "denied", "Invalid"], ROWS)),
        "target labels",
        "--missing paid=invalid",
    ),
    "a code that is no answer": (
        people().assign(paid=np.resize([0, 1, 9, 0, 1, 1], ROWS)),
        "missing code",
        "--missing paid=9",
    ),
    "two words for an unknown answer": (
        replaced("town", "(Unknown/Refused)"),
        "missing code",
        "--missing 'town=(unknown/refused)'",
    ),
    "ages of nobody": (
        people().assign(age=people()["age"].mask(people().index == 7, 150)),
        "impossible age",
        "--missing age=150",
    ),
    "bands with a word": (
        people().assign(age=np.resize(["20-29", "30-39", "unknown", "40+"], ROWS)),
        "attribute",
        "--missing age=unknown",
    ),
    "bands of which one became a date": (
        people().assign(age=np.resize(["10-24", "25-39", "24-Oct", "40+"], ROWS)),
        "attribute",
        "--missing age=24-Oct",
    ),
    "ranges and other text": (
        people().assign(grades=np.resize(["K-08", "1-5", "6-8"], ROWS)),
        "ranges",
        "",
    ),
    "codes with leading zeros": (
        people().assign(zip=np.resize(["007", "0123", "12"], ROWS)),
        "ranges",
        "",
    ),
    "a duration and a state": (
        people().assign(
            months_to_exit=np.linspace(0, 60, ROWS)[::-1].round(1), died=np.arange(ROWS) // 7 % 2
        ),
        "known late",
        "--drop months_to_exit --drop died",
    ),
    "a follow-up and a state": (
        people()
        .assign(
            followUp=np.arange(ROWS) * 7 % 90, vital=np.resize(["dead", "alive", "alive"], ROWS)
        )
        .rename(columns={"vital": "deceased"}),
        "known late",
        "--drop followUp --drop deceased",
    ),
    "a duration until the target": (
        people().assign(days_until_paid=np.arange(ROWS) * 7 % 90),
        "known late",
        "--drop days_until_paid",
    ),
    "a survey weight": (
        people().assign(Hochrechnung=np.linspace(0.5, 2, ROWS) ** 3),
        "weights",
        "--row-weights Hochrechnung",
    ),
    "pairs that give the attribute one after the other": (
        people().assign(
            seen=(seen := pd.Timestamp("2001-01-01") + pd.to_timedelta(np.arange(ROWS) * 7, "D")),
            left_school=np.resize(np.arange(1960, 1983), ROWS),
            age=lambda table: seen.year - table["left_school"],
            year=seen.year,
            birth_year=lambda table: table["left_school"] - np.arange(ROWS) // 7 % 5,
        ),
        "attribute repeated",
        "--drop",
    ),
    "a column that is filled for one of three classes": (
        people().assign(
            paid=np.resize(["yes", "no", "late"], ROWS),
            reason=np.where(np.arange(ROWS) % 3 == 2, np.resize([*"abcd"], ROWS), None),
        ),
        "leak",
        "--drop reason",
    ),
    "a pair that gives one of three classes": (
        people().assign(
            paid=np.resize(["yes", "no", "late"], ROWS),
            due=(due := np.random.default_rng(4).gamma(3, 100, ROWS).round(2)),
            received=due * np.resize([1.01, 1.02, 0.98], ROWS),
        ),
        "leak",
        "--drop",
    ),
    "an abbreviation": (
        people().assign(paid=np.resize(["Approved", "Appr.", "Denied"], ROWS)),
        "labels",
        "--replace paid=Appr.:Approved",
    ),
}


@pytest.mark.parametrize("kind", FOUND)
def test_each_problem_is_named_with_the_option_that_settles_it(kind, tmp_path):
    table, name, option = FOUND[kind]
    problems, command = problems_of(table, tmp_path)
    options = [problem["option"] for problem in problems if problem["kind"] == name]
    assert any(one.startswith(option) for one in options)
    words = shlex.split(command)
    asked = [one["option"] for one in problems if one["certainty"] == "possible"]
    asked = [
        word
        for one in asked
        if one.startswith(("--missing", "--replace"))
        for word in shlex.split(one)
    ]
    again, _ = problems_of(table, tmp_path, *words[7:], *asked)  # the options are understood
    if option:
        assert name not in [problem["kind"] for problem in again]
    errors = [problem for problem in again if problem["certainty"] == "error"]
    assert all("(--positive VALUE)" in problem["text"] for problem in errors)  # never guessed


def test_a_class_that_is_no_answer_hides_no_leak(tmp_path):
    died = np.arange(ROWS) % 5 == 0
    paid = np.where(died, "died", "alive").astype(object)
    paid[np.arange(ROWS) % 9 == 1] = "unknown"
    paid[:5] = "refused"
    cause = np.where(died, "heart", "none")
    problems, _ = problems_of(people().assign(paid=paid, cause=cause), tmp_path)
    assert "--drop cause" in [one["option"] for one in problems if one["kind"] == "leak"]
    assert "few rows" not in [one["kind"] for one in problems]  # of those that are left


@pytest.mark.parametrize("positive", [(), ("--positive", "yes")])
def test_a_guess_about_labels_of_the_target_is_a_question_to_be_decided_first(positive, tmp_path):
    table = people().assign(paid=np.resize(["yes", "no", "no", "declined", "refused"], ROWS))
    table["debt"] = np.where(table["paid"] == "yes", 1.0, table["income"] % 7)
    problems, command = problems_of(table, tmp_path, *positive)
    [asked] = [one for one in problems if "refused" in one["option"] and "refused" in one["text"]]
    assert "refused" not in command
    possible = [one for one in problems if one["certainty"] == "possible"]
    assert possible[0] == asked
    assert asked["option"] == "--missing paid=refused"
    path = str(tmp_path / "people.csv")
    shown = CliRunner().invoke(app, ["check", path, "-t", "paid", "-s", "age", *positive]).stdout
    assert len(possible) == 1 or "decide on 'paid' first, since this decision changes" in shown


def test_columns_that_are_empty_together_are_one_question(tmp_path):
    empty = np.arange(ROWS) % 7 == 0
    table = people().assign(paid=np.where(empty | (np.arange(ROWS) % 5 == 1), "no", "yes"))
    table.loc[empty, ["town", "income"]] = np.nan
    problems, _ = problems_of(table, tmp_path)
    [leak] = [one for one in problems if one["kind"] == "leak"]
    assert (leak["certainty"], leak["option"]) == ("possible", "")
    assert f"All {empty.sum()} rows in which 'income' and 1 more are missing" in leak["text"]


def filled_for_one_class(kind: str, yes: np.ndarray) -> np.ndarray:
    """Return a column that is filled for one class only, and otherwise empty or has codes."""
    rows = np.arange(ROWS)
    codes = np.resize(["", "-9", "unknown", "nk"], ROWS)
    values = {
        "numbers": np.random.default_rng(9).normal(5, 1, ROWS).round(2).astype(str),
        "keys": [f"C{row * 7919 % 1000:05d}" for row in rows],
        "dates": np.where(rows % 7, "17/03/2020", "04-Mar-20"),
    }[kind]
    return np.where(yes, values, codes if kind != "dates" else "")


@pytest.mark.parametrize("kind", ["numbers", "keys", "dates"])
def test_a_column_that_is_filled_for_one_class_is_named_whatever_its_cells_are(kind, tmp_path):
    yes = people()["paid"].to_numpy() == "yes"
    table = people().assign(closed=filled_for_one_class(kind, yes))
    problems, command = problems_of(table, tmp_path)
    leaks = [one["option"] for one in problems if one["kind"] == "leak"]
    assert leaks == ["--drop closed"]
    assert shlex.split(command)[7:] == ["--drop", "closed"]
    for one in problems:  # one voice
        if one["certainty"] == "possible":
            assert one["text"].endswith("This is not needed if you drop 'closed'.")
    half = np.random.default_rng(10).random(ROWS) < 0.5
    problems, _ = problems_of(people().assign(closed=filled_for_one_class(kind, half)), tmp_path)
    assert "leak" not in [one["kind"] for one in problems]


def test_two_columns_that_are_filled_for_one_class_are_both_named(tmp_path):
    yes = people()["paid"].to_numpy() == "yes"
    filled = yes & (np.arange(ROWS) % 25 > 0)
    amounts = np.random.default_rng(9).normal(5, 1, (2, ROWS)).round(2)
    first, second = np.where(filled, amounts, np.nan)
    problems, command = problems_of(people().assign(fee=first, fine=second), tmp_path)
    assert [one["certainty"] for one in problems if one["kind"] == "leak"] == ["likely"] * 2
    assert "--drop fee --drop fine" in command


def test_a_code_that_hides_a_copy_of_the_attribute_is_looked_through(tmp_path):
    born = (2000 - people()["age"]).mask(np.arange(ROWS) % 30 == 0, -99)
    _, command = problems_of(people().assign(born=born), tmp_path)
    assert shlex.split(command)[7:] == ["--drop", "born"]


def test_a_value_that_is_as_frequent_as_its_neighbours_is_no_code():
    prices = np.resize([*range(990, 1010)], ROWS)
    for amounts in (prices, np.where(prices == 999, 998, prices) * 1.0):
        found = check(people().assign(price=amounts), "paid", "age")
        assert "missing code" not in [one.kind for one in found]
    few = people().assign(share=np.where(np.arange(ROWS) % 12 == 0, 99, np.arange(ROWS) % 120))
    [code] = [one for one in check(few, "paid", "age") if one.kind == "missing code"]
    assert (code.certainty, code.option) == ("possible", "--missing share=99")


def test_a_code_below_negative_numbers_is_found_though_one_of_them_is_far_away():
    random = np.random.default_rng(3)
    wages = random.normal(1.6, 0.5, ROWS).round(6)
    wages[25:40] = -random.uniform(0.4, 1.4, 15).round(6)
    wages[40] = -3.58
    for code, asked in ((-9, True), (-1.5, False), (-3.7, False)):
        wages[:25] = code
        found = check(people().assign(wage=wages), "paid", "age")
        codes = [one.values for one in found if one.kind == "missing code"]
        assert codes == ([("-9",)] if asked else [])
    smooth = np.maximum(random.normal(0, 6, ROWS).round(2), -9)
    assert np.sum(smooth == -9) > 10
    found = check(people().assign(wage=smooth), "paid", "age")
    assert "missing code" not in [one.kind for one in found]


def test_people_are_groups_and_rows_of_nobody_do_not_leak(tmp_path):
    table = uneven().reset_index(drop=True)
    empty = np.arange(len(table)) % 7 == 0
    table["paid"] = np.where(empty | (np.arange(len(table)) % 5 == 1), "no", "yes")
    table.loc[empty, ["town", "hours", "woman"]] = np.nan
    problems, command = problems_of(table, tmp_path)
    assert "leak" not in [one["kind"] for one in problems]
    assert "--groups woman" in command
    assert "--drop" not in command


@pytest.mark.parametrize(("levels", "asked"), [([-1, 8, 12, 16], True), ([-1, 0, 1, 2], False)])
def test_minus_one_is_a_code_below_positive_numbers(levels, asked, tmp_path):
    _, command = problems_of(people().assign(school=np.resize(levels, ROWS)), tmp_path)
    assert ("--missing school=-1" in command) == asked


def test_a_large_true_value_is_asked_about_but_not_left_out(tmp_path):
    table = people().assign(city=np.resize(np.arange(1, 41) * 75_000, ROWS))
    table.loc[:17, "city"] = 7_300_000
    problems, command = problems_of(table, tmp_path)
    [code] = [one for one in problems if one["columns"] == ["city"]]
    assert (code["kind"], code["certainty"]) == ("missing code", "possible")
    assert "city" not in command


@pytest.mark.parametrize("positive", ["yes", "Y"])
def test_a_third_label_is_asked_about_in_a_check_and_in_an_audit(positive, tmp_path):
    paid = np.resize(["yes", "no", "Y", "withdrawn", "no"], ROWS)
    score = np.random.default_rng(7).uniform(0.1, 0.9, ROWS).round(3)
    table = people().assign(paid=paid, score=score)
    problems, _ = problems_of(table, tmp_path, "--positive", positive)
    [problem] = [one for one in problems if one["kind"] == "labels"]
    assert (problem["rows"], problem["option"]) == (ROWS / 5, "--missing paid=withdrawn")
    asked = ["audit", str(tmp_path / "people.csv"), "-s", "age", "--score", "score", "--json"]
    asked += ["-t", "paid", "--positive", positive, "--max-rows", "100"]
    document = json.loads(CliRunner().invoke(app, asked).stdout)
    assert any(remark.startswith(problem["text"][:60]) for remark in document["context"]["remarks"])
    asked += ["--missing", "paid=withdrawn"]
    document = json.loads(CliRunner().invoke(app, asked).stdout)
    assert document["rows"]["used"] == ROWS * 4 / 5
    named = [remark for remark in document["context"]["remarks"] if "withdrawn" in remark]
    assert named == ["Treated as missing, as requested: paid=withdrawn."]
    table["paid"] = np.resize(["good", "bad", "so so"], ROWS)
    others, _ = problems_of(table, tmp_path, "--positive", "good")
    assert "labels" not in [one["kind"] for one in others]


def test_commas_separate_names_of_columns_unless_a_column_has_that_name(tmp_path):
    table = people().assign(debt=np.arange(ROWS) % 7, **{"rent, heating": np.arange(ROWS) % 11})
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    asked = ["check", str(path), "-t", "paid", "-s", "age", "--json"]

    def features(*options: str) -> list[str]:
        return json.loads(CliRunner().invoke(app, [*asked, *options]).stdout)["features"]

    assert features("--features", "income, town") == ["income", "town"]
    assert features("--features", "rent, heating", "--features", "to*,debt") == [
        "rent, heating",
        "town",
        "debt",
    ]
    assert features("--drop", "town,rent*", "--drop", "debt") == ["income"]
    assert features("--sensitive", "debt,income") == ["town", "rent, heating"]
    result = CliRunner().invoke(app, [*asked, "--features", "income,twon"])
    assert result.exit_code == 2
    assert "people.csv has no column 'twon'. Did you mean 'town'?" in result.stderr
    score = ["audit", str(path), "--json", "--max-rows", "100"]
    several = [*score, "-s", "age,debt", "--embedding", "income,rent*", "--control", "town,paid"]
    result = CliRunner().invoke(app, several)
    repeated = [*score, "-s", "age", "-s", "debt", "--embedding", "income"]
    repeated += ["--embedding", "rent, heating", "--control", "town", "--control", "paid"]
    assert result.exit_code == 0, result.output
    expected = json.loads(CliRunner().invoke(app, repeated).stdout)
    found = json.loads(result.stdout)
    assert [one["name"] for one in found["attributes"]] == ["age", "debt"]
    assert found["attributes"] == expected["attributes"]


@pytest.mark.parametrize("drop", [["town,debt"], ["town", "debt"], ["debt,tow*"]])
@pytest.mark.parametrize("missing", ["unknown,99", "income=unknown,99", None])
def test_named_columns_are_on_the_same_sheet_whatever_the_form_of_the_options(
    drop, missing, tmp_path
):
    pytest.importorskip("openpyxl")
    path = tmp_path / "people.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"about": ["these people"]}).to_excel(book, sheet_name="notes", index=False)
        people().assign(debt=np.arange(ROWS) % 7).to_excel(book, sheet_name="rows", index=False)
    options = [word for text in drop for word in ("--drop", text)]
    if missing is not None:
        options += ["--missing", missing]
    asked = ["check", str(path), "-t", "paid", "-s", "age", "--json", *options]
    result = CliRunner().invoke(app, asked)
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["features"] == ["income"]


def test_every_command_reads_the_chosen_sheet(tmp_path, monkeypatch):
    pytest.importorskip("openpyxl")
    monkeypatch.chdir(tmp_path)
    table = people().assign(score=np.linspace(0.1, 0.9, ROWS))
    with pd.ExcelWriter("people.xlsx") as book:
        table.assign(age=40).to_excel(book, sheet_name="House", index=False)
        table.to_excel(book, sheet_name="The Senate", index=False)
    roles = ["people.xlsx", "-t", "paid", "-s", "age"]
    result = CliRunner().invoke(app, ["check", *roles, "--drop", "score"])
    assert "such as --sheet 'The Senate'" in " ".join(result.stdout.split())
    result = CliRunner().invoke(app, ["check", *roles, "--drop", "score", "--sheet", "The Senate"])
    assert result.exit_code == 0
    command = next(line for line in result.stdout.splitlines() if line.startswith("frhsic train"))
    assert "--sheet 'The Senate'" in command
    audited = ["audit", *roles, "--score", "score", "--json"]
    for sheet, name in (("House", ""), ("The Senate", "age")):
        result = CliRunner().invoke(app, [*audited, "--sheet", sheet])
        names = [one["name"] for one in json.loads(result.stdout)["attributes"]] if name else []
        assert (result.exit_code, names) == ((0, ["age"]) if name else (2, []))
    trained = CliRunner().invoke(app, [*shlex.split(command)[1:], "--out", "model.frhsic"])
    assert trained.exit_code in (0, 1), trained.output
    served = ["audit", "people.xlsx", "-s", "age", "--model", "model.frhsic", "--json"]
    result = CliRunner().invoke(app, [*served, "--sheet", "2"])
    remark = "model.frhsic was trained on a sheet of people.xlsx; on new rows, it may do worse."
    assert remark in json.loads(result.stdout)["context"]["remarks"]
    for sheet in ("1", "2"):
        predicted = ["predict", "model.frhsic", "people.xlsx", "--keep", "age", "--sheet", sheet]
        assert CliRunner().invoke(app, [*predicted, "-o", f"{sheet}.csv"]).exit_code == 0
    assert (pd.read_csv("1.csv")["age"] == 40).all()
    assert pd.read_csv("2.csv")["age"].tolist() == table["age"].tolist()


def test_the_only_feature_is_not_to_be_dropped(tmp_path):
    table = people().assign(score=people()["paid"].map({"no": 0.2, "yes": 0.7}))
    problems, command = problems_of(table, tmp_path, "--features", "score,town")
    assert "--drop score" in command  # town is left
    problems, command = problems_of(table, tmp_path, "--features", "score")
    assert "--drop" not in command
    [said] = [one for one in problems if "frhsic audit" in one["text"]]
    assert (said["columns"], said["option"]) == (["score"], "")
    assert "run `frhsic audit` with --score score" in said["text"]


def test_groups_spelled_in_several_ways_are_one(tmp_path):
    table = people().assign(person=[f"P-{i % 100:03d}" for i in range(ROWS)])
    table["score"] = np.random.default_rng(7).uniform(0.1, 0.9, ROWS).round(4)
    other = table.index >= 100
    table.loc[other & (table.index % 2 == 0), "person"] = [
        f"p{i % 100:03d} " for i in table.index[other & (table.index % 2 == 0)]
    ]
    assert table["person"].nunique() == 150
    problems, _ = problems_of(table, tmp_path, "--groups", "person")
    said = "Groups 'person': 150 spellings"
    assert [one["certainty"] for one in problems if one["text"].startswith(said)] == ["certain"]
    path = tmp_path / "people.csv"
    roles = ColumnRoles("paid", ("age",), groups="person")
    data = read_training_table(TableFile.open(path), roles)
    persons = pd.Series(data.groups).str.extract(r"(\d+)")[0]
    train, test = data.split(0.2, 0)
    assert not {*persons[train]} & {*persons[test]}
    assert sum(note.startswith(said) for note in data.notes) == 1
    asked = ["audit", str(path), "-s", "age", "--score", "score", "--json", "--max-rows", "100"]
    document = json.loads(CliRunner().invoke(app, [*asked, "--groups", "person"]).stdout)
    assert document["rows"]["groups"] == 100
    assert sum(note.startswith(said) for note in document["context"]["remarks"]) == 1


@pytest.mark.parametrize(
    "names",
    [("1-12", "11-2"), ("1.5", "15"), ("-1", "1"), ("A+", "A-"), ("12 3", "123"), ("1.05", "1.5")],
)
def test_groups_whose_numbers_or_grades_differ_stay_apart(names):
    assert unit_keys(pd.Series(names)).nunique() == 2


@pytest.mark.parametrize("groups", [(), ("--groups", "person_id")])
def test_repeated_rows_are_found_with_groups_and_in_an_audit(groups, tmp_path):
    score = np.random.default_rng(7).uniform(0.1, 0.9, ROWS).round(4)
    table = people().assign(score=score, person_id=np.arange(ROWS) * 7919 % 100_003)
    few = pd.concat([table, table.head(3)])
    problems, _ = problems_of(few, tmp_path, *groups)
    [problem] = [one for one in problems if one["kind"] == "repeated rows"]
    assert (problem["rows"], problem["option"]) == (3, "--drop-repeated")
    assert ("count several times" in problem["text"]) == bool(groups)
    path = tmp_path / "people.csv"
    asked = ["audit", str(path), "-s", "age", "--score", "score", "--json", "--max-rows", "100"]
    for twice, found in ((0, False), (40, True)):
        pd.concat([table, table.head(twice)]).to_csv(path, index=False)
        document = json.loads(CliRunner().invoke(app, [*asked, *groups]).stdout)
        remarks = [one for one in document["context"]["remarks"] if "repeat" in one]
        assert len(remarks) == found
    assert remarks[0].startswith("40 of 440 rows repeat an earlier row")
    assert ("as groups" in remarks[0]) == (not groups)
    document = json.loads(CliRunner().invoke(app, [*asked, *groups, "--drop-repeated"]).stdout)
    assert document["rows"]["used"] == ROWS
    assert document["context"]["dropped"] == 0
    named = table.rename(columns={"person_id": "id"}) if not groups else table
    pd.concat([named, named.head(3)]).to_csv(path, index=False)
    document = json.loads(CliRunner().invoke(app, [*asked, *groups]).stdout)
    remarks = [one for one in document["context"]["remarks"] if "repeat" in one]
    # few rows may be alike by chance, but not if they have an identifier in common
    assert [one[:40] for one in remarks] == ["3 of 403 rows repeat an earlier row in e"] * (
        not groups
    )
    coarse = people().assign(score=(score * 4).round() / 4, income=0, paid="no", town="Bern")
    coarse.to_csv(path, index=False)  # people of one age and score are alike by chance
    document = json.loads(CliRunner().invoke(app, asked).stdout)
    assert not [one for one in document["context"]["remarks"] if "repeat" in one]


def test_two_labels_stay_two_though_one_reads_like_a_missing_value():
    table = people().assign(paid=np.resize(["paid", "unknown"], ROWS))
    assert "missing code" not in [one.kind for one in check(table, "paid", "age", positive="paid")]


def test_weights_are_looked_at_before_they_are_used(tmp_path):
    even = np.linspace(1, 3, ROWS).round(4)
    heavy = np.where(np.arange(ROWS) < 3, 4_000.0, even)
    effective = heavy.sum() ** 2 / (heavy**2).sum()
    share = 4_000 / heavy.sum()
    for weights, kinds in ((even, []), (heavy, ["row weights"]), (-even, ["row weights"])):
        options = ("--row-weights", "factor")
        problems, _ = problems_of(people().assign(factor=weights), tmp_path, *options)
        found = [one for one in problems if one["columns"] == ["factor"]]
        assert [one["kind"] for one in found if one["kind"] != "missing code"] == kinds
    assert found[-1]["certainty"] == "error"
    problems, _ = problems_of(people().assign(wgt=heavy), tmp_path)
    [asked] = [one for one in problems if one["kind"] == "weights"]
    assert f"as precise as {effective:.0f} rows of equal weight" in asked["text"]
    assert asked["text"].endswith(f"row 1 alone has {100 * share:.3g} % of the weight.")


def test_only_ages_of_people_have_an_end():
    old = people()["age"].mask(people().index % 100 == 7, 130)
    for name, asked in (("husbandAge", True), ("Age (years)", True), ("mileage", False)):
        found = check(people().assign(**{name: old}), "paid", "age")
        rows = [one.rows for one in found if one.kind == "impossible age"]
        assert rows == ([4] if asked else [])
    months = people().assign(age=people()["age"] * 12)
    assert "impossible age" not in [one.kind for one in check(months, "paid", "age")]


def test_cells_of_a_spreadsheet_are_counted_with_the_range_that_they_were(tmp_path):
    cells = np.resize(["2-Mar", "4-5", "6-7", "8-9"], ROWS)
    problems, _ = problems_of(people().assign(size=cells), tmp_path)
    [problem] = [one for one in problems if one["kind"] == "spreadsheet dates"]
    assert problem["rows"] == ROWS / 4
    assert "'2-Mar' in 'size', first in row 1, may be ranges such as 2-3" in problem["text"]
    assert problem["option"] == "--replace size=2-Mar:2-3"


def test_numbers_that_became_dates_are_named_with_their_rows_and_read_without_them(tmp_path):
    visits = np.resize(np.arange(9).astype(str), ROWS).astype(object)
    visits[[5, 17, 40, 41, 90, 200]] = [
        "3-Jan",
        "04.Mär",
        "2024-05-01",
        "3-Jan",
        "Okt 24",
        "1. Mai",
    ]
    problems, command = problems_of(people().assign(visits=visits), tmp_path)
    [problem] = [one for one in problems if one["columns"] == ["visits"]]
    assert (problem["certainty"], problem["rows"]) == ("likely", 6)
    assert "(rows 6, 18, 41, 42, 91 and 1 more)" in problem["text"]
    missing = shlex.split(command)[shlex.split(command).index("--missing") + 1]
    file = TableFile.open(tmp_path / "people.csv", missing=[missing])
    data = read_training_table(file, ColumnRoles("paid", ("age",)))
    assert data.X["visits"].isna().sum() == 6
    assert data.X["visits"].sum() == sum(int(cell) for cell in visits if len(cell) == 1)


@pytest.mark.parametrize("others", [["1998", "2004"], ["20240105", "20230501"], ["43831", "44012"]])
def test_years_and_serial_numbers_beside_dates_are_no_numbers(others, tmp_path):
    cells = np.resize(["2024-01-03", "2023-02-03", "2022-03-04", *others], ROWS)
    kinds = [one["kind"] for one in problems_of(people().assign(seen=cells), tmp_path)[0]]
    assert "spreadsheet dates" not in kinds
    assert "unreadable" in kinds


def test_an_error_of_the_target_hides_no_other_problem(tmp_path):
    labels = people()["paid"].map({"yes": "bought", "no": "left"})
    table = people().assign(paid=labels, born=2000 - people()["age"], end=labels == "left")
    problems, command = problems_of(table, tmp_path)
    kinds = {problem["kind"]: problem["option"] for problem in problems}
    assert kinds["target"] == ""
    assert "(--positive VALUE)" in problems[0]["text"]
    assert "--positive" not in command
    assert kinds["attribute repeated"] == "--drop born"
    assert kinds["leak"] == "--drop end"
    assert command.count("--drop") == 2


def test_durations_and_states_are_named_by_what_else_is_in_the_table():
    time = np.arange(ROWS) * 7 % 90
    state = np.arange(ROWS) // 7 % 2
    cases = {
        ("tenure_months", "time_of_day", "marital_status"): None,
        ("months_to_maturity",): "possible",
        ("died",): "possible",
        ("time", "status"): "likely",
        ("status",): None,
        ("ptime", "pstat"): "likely",
        ("stime",): None,
        ("date_of_death", "died"): "likely",
        ("paid_months",): "possible",
        ("survival_months",): "possible",
    }
    for names, certainty in cases.items():
        values = [state if name in ("died", "status", "pstat") else time for name in names]
        found = check(people().assign(**dict(zip(names, values))), "paid", "age")
        late = [one for one in found if one.kind == "known late"]
        assert [one.certainty for one in late] == [certainty] * (certainty is not None), names
        assert [one.columns for one in late] == [names] * (certainty is not None), names
    of_target = people().rename(columns={"paid": "pstat"}).assign(ptime=time, futime=time)
    [late] = [one for one in check(of_target, "pstat", "age") if one.kind == "known late"]
    assert (late.columns, late.certainty) == (("ptime", "futime"), "likely")


VISITS = [*"0" * 20, *"1" * 8, "2", "3", "one", "5+", "2-Jan", "refused", "none"]


def test_no_label_of_a_target_is_made_missing_by_the_command(tmp_path):
    table = people().assign(paid=np.resize(VISITS, ROWS))
    options = {}
    for positive in ("one,1,2,3,5+,2-Jan", "one,1,2,3,5+", None):
        named = () if positive is None else ("--positive", positive)
        problems, command = problems_of(table, tmp_path, *named)
        assert "--missing" not in command
        assert "--replace" not in command
        possible = [one for one in problems if one["certainty"] == "possible"]
        options[positive] = " ".join(one["option"] for one in possible)
    assert options["one,1,2,3,5+,2-Jan"] == ""
    assert "2-Jan" in options["one,1,2,3,5+"]
    assert "--replace paid=5+:5" in options[None]


def test_words_among_the_numbers_of_a_target_are_the_error(tmp_path):
    rate = np.random.default_rng(1).uniform(5, 20, ROWS).round(2)
    cells = np.where(np.arange(ROWS) < 25, "TBD", rate.astype(str).astype(object) + "%")
    table = people().assign(paid=cells, copy=2 * rate)
    problems, command = problems_of(table, tmp_path)
    [error] = [one for one in problems if one["certainty"] == "error"]
    assert (error["option"], error["rows"]) == ("--missing paid=TBD", 25)
    assert "--positive" not in command
    assert "--drop copy" in command  # compared with the numbers


MILES = "--replace 'size=* km:*,* mi:1.60934*'"


@pytest.mark.parametrize(
    ("cells", "certainty", "option"),
    [
        (["2", "3", "II", "III", "1"], "possible", "--replace size=II:2,III:3"),
        (["1.5", "<5", "10+", "3", "4"], "likely", "--replace 'size=<5:5,10+:10'"),
        (["10+ years", *"1234567"], "likely", "--replace 'size=10+ years:10'"),
        (["27/52", "26/52", *"012345"], "likely", "--replace size=27/52:27,26/52:26"),
        (["9/10", "8/10", "7/10", "5/10", "99"], "likely", "--missing size=99"),
        (["3 km", "2 mi", "2.5 km", "1", "4 mi"], "likely", MILES),
        (
            ["30 mo", "2 yrs", "7 mos", "4 mo"],
            "likely",
            "--replace 'size=* mo:*,* yrs:12*,* mos:*'",
        ),
        ([*["38¢", "2¢", "7¢", "9¢"] * 4, "n/k"], "likely", "--missing size=n/k"),
        ([*["38¢", "2¢", "7¢", "9¢"] * 4, "n/k"], "likely", "--replace 'size=* ¢:*'"),
        (["0", "1-2", "3-5", "6+", "-9"], "likely", "--missing size=-9"),
    ],
)
def test_numbers_that_people_write_otherwise_are_replaced(cells, certainty, option, tmp_path):
    problems, _ = problems_of(people().assign(size=np.resize(cells, ROWS)), tmp_path)
    found = [(one["certainty"], one["option"]) for one in problems if one["columns"] == ["size"]]
    assert (certainty, option) in found


def test_units_beside_limits_in_an_attribute_are_replaced(tmp_path):
    table = people().astype({"age": object})
    table.loc[:19, "age"] = ["47 yrs"] * 9 + [">85"] * 6 + ["unknown"] * 5
    problems, command = problems_of(table, tmp_path)
    errors = [one["option"] for one in problems if one["certainty"] == "error"]
    assert errors == ["--replace 'age=47 yrs:47'", "--missing age=unknown"]
    again, _ = problems_of(table, tmp_path, *shlex.split(command)[7:])
    assert not [one for one in again if one["certainty"] in ("error", "likely")]


def test_only_spellings_of_a_label_are_merged_by_the_command(tmp_path):
    table = people().assign(sex=np.resize(["Male", "Female", "M", "F"], ROWS))
    table["member"] = np.resize(["yes", "no", "Y"], ROWS)
    problems, command = problems_of(table, tmp_path)
    asked = {one["option"]: one["certainty"] for one in problems if one["kind"] == "labels"}
    possible = dict.fromkeys(["--replace sex=M:Male", "--replace sex=F:Female"], "possible")
    assert asked == {**possible, "--replace member=Y:yes": "likely"}
    assert command.count("--replace") == 1


@pytest.mark.parametrize(
    ("levels", "abbreviated"),
    [
        (["I", "II", "III", "IV"], set()),
        (["III", "IIIA", "IIIB"], set()),
        (["A", "AA", "AAA", "AA+"], set()),
        (["M", "XL", "XXL", "XXXL"], set()),
        (["S1", "S10", "S100"], set()),
        (["Female", "Male", "F", "m.", "nk"], {"F", "m."}),
        (["Yes", "No", "Y", "YES "], {"Y"}),
        (["A", "AB", "B", "0"], set()),  # blood
        (["A", "B", "C", "Absent"], set()),  # grades
        (["male", "man", "manager"], set()),
        (["M", "Male", "Married"], set()),  # either
        (["South", "S.", "North"], {"S."}),
        (["Sing.", "Single", "Married"], {"Sing."}),
    ],
)
def test_a_short_level_is_asked_about_if_it_can_be_only_one_other(levels, abbreviated):
    found = check(people().assign(group=np.resize(levels, ROWS)), "paid", "age")
    texts = [one.text for one in found if one.kind == "labels"]
    assert {text.split("'")[1] for text in texts} == abbreviated


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
        ([f"{n:,}" for n in range(1002, 1052)], [1002, 1003]),
    ],
)
def test_amounts_are_read_as_people_write_them(cells, numbers, tmp_path):
    table = people()
    table["income"] = np.resize(cells, ROWS)
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    data = read_training_table(TableFile.open(path), ColumnRoles("paid", ("age",)))
    assert data.X["income"].head(2).tolist() == numbers


@pytest.mark.parametrize(
    ("cells", "values"),
    [
        (["3.25", "3,5", "-0,125", "4", "12,1234"], [3.25, 3.5, -0.125, 4, 12.1234]),
        (["3.25", "3,500"], None),  # or a thousand
        (["1", "1,3", "2"], None),  # or two answers
        (["3.25", "3,5", "1,234.5"], None),
    ],
)
def test_decimal_commas_among_decimal_points_are_read_if_they_can_be_nothing_else(
    cells, values, tmp_path
):
    table = people().assign(dose=np.resize(cells, ROWS))
    problems, _ = problems_of(table, tmp_path)
    file = TableFile.open(tmp_path / "people.csv")
    data = read_training_table(file, ColumnRoles("paid", ["age"]))
    if values is None:
        assert data.schema.kinds["dose"] == "text"
        return
    assert data.X["dose"].tolist() == np.resize(values, ROWS).tolist()
    assert any("'dose' is read as numbers: '3,5' as 3.5" in one["text"] for one in problems)
    later = pd.DataFrame({"income": ["1"] * 2, "town": "Bern", "dose": ["7,5", "7.5"]})
    assert data.schema(later)["dose"].tolist() == [7.5, 7.5]
    with pytest.raises(ValueError, match="contained numbers in training, but it contains '7,500'"):
        data.schema(later.assign(dose="7,500"))


def test_cells_with_commas_that_cannot_be_read_are_to_be_corrected(tmp_path):
    sizes = np.where(np.arange(ROWS) % 40 == 0, "3,500", "3.25")
    problems, command = problems_of(people().assign(size=sizes), tmp_path)
    [problem] = [one for one in problems if one["columns"] == ["size"]]
    assert "correct these cells in the file; otherwise drop the column" in problem["text"]
    assert "--drop size" in command


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


def test_words_in_the_attribute_hide_no_other_problem(tmp_path):
    age = people()["age"].astype(object)
    age[:12] = "unknown"
    age[20:32] = -9
    table = people().assign(age=age, born=2000 - people()["age"])
    problems, command = problems_of(table, tmp_path)
    options = {problem["kind"]: problem["option"] for problem in problems}
    assert options["attribute"] == "--missing age=unknown"
    assert options["missing code"] == "--missing age=-9"
    assert options["attribute repeated"] == "--drop born"
    again, _ = problems_of(table, tmp_path, *shlex.split(command)[7:])
    assert {problem["certainty"] for problem in again} == {"certain"}


def test_dates_in_several_formats_are_counted_with_the_first_row_of_each(tmp_path):
    seen = np.resize(["03/17/2020", "04-Mar-20", "2020-05-31", "18/03/2020"], ROWS)
    seen[0] = "2020-05-31"
    problems, _ = problems_of(people().assign(seen=seen), tmp_path, "--split-by", "seen")
    [problem] = [one for one in problems if one["certainty"] == "error"]
    assert problem["columns"] == ["seen"]
    for said in (
        "3 formats: '18/03/2020' (199 rows, first in row 4)",
        "'2020-05-31' (101 rows, first in row 1)",
        "'04-Mar-20' (100 rows, first in row 2)",
    ):
        assert said in problem["text"]
    assert "Write all of them in one format, such as 2024-05-31," in problem["text"]


def test_an_error_shows_the_cells_that_cannot_be_read(tmp_path):
    age = people()["age"].map("${:,.2f}".format)
    age[:9] = "n. b."
    [error] = [
        problem
        for problem in problems_of(people().assign(age=age), tmp_path)[0]
        if problem["certainty"] == "error"
    ]
    assert "it contains 'n. b.', first in row 1." in error["text"]
    assert (error["rows"], error["option"]) == (9, "--missing 'age=n. b.'")


def test_amounts_in_two_notations_are_read_where_each_has_one_meaning(tmp_path):
    income = people()["income"].map("${:,.2f}".format)
    german = people()["income"].map("{:,.2f} USD".format).str.translate({44: ".", 46: ","})
    table = people().assign(income=income.where(np.arange(ROWS) % 7 > 0, german))
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False)
    data = read_training_table(TableFile.open(path), ColumnRoles("paid", ("age",)))
    assert data.X["income"].tolist() == people()["income"].tolist()
    [note] = [note for note in data.notes if note.startswith("'income'")]
    assert "USD' as" in note
    assert "'$" in note


def test_a_code_among_amounts_of_money_is_missing(tmp_path):
    amounts = people()["income"].copy()
    amounts[:5] = 9_999_999
    table = people().assign(income=amounts.map("${:,.2f}".format))
    problems, command = problems_of(table, tmp_path)
    assert "--missing income=9999999" in [problem["option"] for problem in problems]
    again, _ = problems_of(table, tmp_path, *shlex.split(command)[7:])
    assert "missing code" not in [problem["kind"] for problem in again]
    file = TableFile.open(tmp_path / "people.csv", missing=["income=9999999"])
    data = read_training_table(file, ColumnRoles("paid", ("age",)))
    assert data.X["income"].isna().sum() == 5
    row = pd.DataFrame({"income": ["$9,999,999.00", "$1,250.00"], "town": "Bern"})
    assert data.schema(row, ".")["income"].tolist()[1:] == [1250]
    assert data.schema(row, ".")["income"].isna().tolist() == [True, False]


def test_rows_are_repeated_only_if_they_are_in_every_column_of_the_file(tmp_path):
    alike = pd.concat([people(), people().head(60)], ignore_index=True)
    seen = pd.Series(np.resize(["04-Mar-20", "03/07/2020"], len(alike)))
    seen[ROWS:] = [f"{i % 28 + 1:02d}/05/2020" for i in range(60)]  # the same people, later
    later = alike.assign(seen=seen)
    for options in ((), ("--drop", "seen")):
        kinds = [problem["kind"] for problem in problems_of(later, tmp_path, *options)[0]]
        assert "repeated rows" not in kinds
    twice = pd.concat([later, later.head(30)], ignore_index=True)
    twice.to_csv(tmp_path / "t.csv", index=False)
    roles = ColumnRoles("paid", ("age",), drop=("seen",), drop_repeated=True)
    repeated = twice.duplicated().sum()
    assert read_training_table(TableFile.open(tmp_path / "t.csv"), roles).repeated == repeated
    numbered = alike.assign(customer_id=[f"c{i}" for i in range(len(alike))])
    problems, command = problems_of(numbered, tmp_path)
    options = [problem["option"] for problem in problems if problem["kind"] == "repeated rows"]
    assert options == ["--drop-repeated --drop customer_id"]
    again, _ = problems_of(numbered, tmp_path, *shlex.split(command)[7:])
    assert "repeated rows" not in [problem["kind"] for problem in again]


def test_an_identifier_that_repeats_identifies_no_rows():
    ids = np.append(np.arange(ROWS - 40), np.arange(40)) * 7
    found = check(people().assign(subject_id=ids), "paid", "age")
    [problem] = [problem for problem in found if "subject_id" in problem.columns]
    assert (problem.kind, problem.option) == ("repeated identifier", "--groups subject_id")
    assert "identify 360 people or other units, 40 of them with several rows" in problem.text


def test_amounts_and_places_are_no_people():
    random = np.random.default_rng(5)
    salary = np.round(random.lognormal(10.5, 0.3, ROWS), -2)
    place = random.integers(0, 150, ROWS)
    table = people().assign(salary=salary, place=np.char.add("place ", place.astype(str)))
    table = table.assign(region=place % 9, hours=random.integers(1, 60, ROWS))
    assert "repeated identifier" not in [one.kind for one in check(table, "paid", "age")]


def test_columns_that_explain_much_of_a_number_are_asked_about(tmp_path):
    random = np.random.default_rng(6)
    score = random.normal(size=ROWS)
    table = people().assign(
        paid=score.round(4),
        gun=(score + 0.12 * random.normal(size=ROWS)).round(4),  # 98 % of the variance
        prize=np.digitize(score, [-1, 0, 1]).astype(str),
        weak=(score + 1.2 * random.normal(size=ROWS)).round(4),  # 41 %
    )
    table["prize"] = "class " + table["prize"]
    problems, command = problems_of(table, tmp_path)
    found = {problem["columns"][0]: problem for problem in problems if problem["option"]}
    assert {name: one["certainty"] for name, one in found.items()} == {
        "gun": "likely",
        "prize": "possible",
    }
    bands = table.groupby("prize")["paid"].transform("mean")
    share = 1 - (table["paid"] - bands).var(ddof=0) / table["paid"].var(ddof=0)
    assert f"'prize' ({100 * share:.0f} %)" in found["prize"]["text"]
    assert "--drop gun" in command
    assert "prize" not in command


def test_two_dates_that_coincide_for_one_outcome_are_both_named():
    start = pd.Series(pd.date_range("2000-01-01", periods=ROWS))
    yes = people()["paid"] == "yes"
    end = start + pd.to_timedelta(np.arange(ROWS) % 90 + 30, unit="D")
    event = end - pd.to_timedelta(np.where(yes, np.arange(ROWS) % 25 + 3, 0), unit="D")
    table = people().assign(event=event.sample(frac=1, random_state=0).sort_index(), end=end)
    [leak] = [problem for problem in check(table, "paid", "age") if problem.kind == "leak"]
    assert leak.option in ("--drop event --drop end", "--drop end --drop event")
    first = np.arange(ROWS) < ROWS / 2
    american = table["event"].dt.strftime("%m/%d/%Y")
    table["event"] = table["event"].dt.strftime("%Y-%m-%d").where(first, american)
    found = check(table, "paid", "age")
    [leak] = [problem for problem in found if problem.kind == "leak"]
    assert {*leak.columns} == {"event", "end"}
    assert "unreadable" in [problem.kind for problem in found]


def test_rows_without_an_attribute_that_have_another_outcome_are_told():
    table = people().assign(age=people()["age"].astype(float))
    yes = table["paid"] == "yes"
    lacking = np.flatnonzero(yes)[:60]
    table.loc[lacking, "age"] = np.nan
    [problem] = [one for one in check(table, "paid", "age") if one.kind == "missing attribute"]
    rest = yes.drop(index=lacking).mean()
    assert f"their share of 'yes' is 1, compared with {rest:.3g}." in problem.text
    scattered = people().assign(age=people()["age"].mask(np.arange(ROWS) % 6 == 0))
    assert "missing attribute" not in [one.kind for one in check(scattered, "paid", "age")]


def test_spellings_in_a_parquet_file_are_merged_as_in_text(tmp_path):
    towns = np.resize(["Bern", "BERN", " Bern", "Basel", "basel "], ROWS)
    table = people().assign(town=towns)
    levels = []
    for name in ("t.csv", "t.parquet"):
        path = tmp_path / name
        table.to_csv(path, index=False) if name == "t.csv" else table.to_parquet(path)
        data = read_training_table(TableFile.open(path), ColumnRoles("paid", ("age",)))
        assert any(note.startswith("Labels of 'town'") for note in data.notes)
        levels.append(sorted(data.X["town"].unique()))
    assert levels == [["Basel", "Bern"]] * 2


def test_the_features_that_remain_are_listed(tmp_path):
    path = tmp_path / "t.csv"
    people().assign(born=2000 - people()["age"], wave=1).to_csv(path, index=False)
    shown = CliRunner().invoke(app, ["check", str(path), "-t", "paid", "-s", "age"]).stdout
    assert shown.splitlines()[-1] == "Features (2): income, town."


def test_of_several_possible_problems_the_leak_is_to_be_decided_first(tmp_path):
    path = tmp_path / "t.csv"
    random = np.random.default_rng(3)
    names = [f"name {i % 90}" for i in random.permutation(ROWS)]
    strong = np.where(random.random(ROWS) < 0.2, "no", people()["paid"])
    strong[:40] = people()["paid"][:40].map({"yes": "no", "no": "yes"})
    several = people().assign(who=names, answer=strong)
    shown = []
    for table in (several, people().assign(who=names)):
        table.to_csv(path, index=False)
        shown.append(
            CliRunner().invoke(app, ["check", str(path), "-t", "paid", "-s", "age"]).stdout
        )
    last = shown[0].splitlines()[-1]
    assert "Of these 2 problems, decide on 'answer' first, since a model that uses" in last
    assert shown[1].splitlines()[-1] == "The command omits the options for possible problems."


def test_a_column_that_was_not_examined_asks_for_another_check(tmp_path):
    path = tmp_path / "t.csv"
    dates = pd.date_range("2020-01-01", periods=ROWS).strftime("%m/%d/%Y")
    people().assign(seen=dates).to_csv(path, index=False)
    command = ["check", str(path), "-t", "paid", "-s", "age"]
    first = CliRunner().invoke(app, command).stdout
    assert "checks the table again, since 'seen' was not examined" in first
    again = CliRunner().invoke(app, [*command, "--date-format", "%m/%d/%Y"]).stdout
    assert "checks the table again" not in again


def test_an_audit_leaves_out_rows_with_a_code_among_amounts_of_money(tmp_path):
    amounts = people()["income"].copy()
    amounts[:5] = 9_999_999
    path = tmp_path / "t.csv"
    score = np.random.default_rng(7).uniform(0.1, 0.9, ROWS)
    people().assign(income=amounts.map("${:,.2f}".format), score=score).to_csv(path, index=False)
    asked = ["audit", str(path), "-s", "income", "--score", "score", "--json"]
    asked += ["--missing", "income=9999999", "--max-rows", "100"]
    document = json.loads(CliRunner().invoke(app, asked).stdout)
    assert document["rows"]["used"] == ROWS - 5


def died(rows: int = 600) -> pd.DataFrame:
    """Return people with one to three rows, of whom the dead have a certificate."""
    random = np.random.default_rng(11)
    person = np.sort(random.integers(0, rows * 4 // 5, rows))
    dead = random.random(rows) < 0.4
    number = random.permutation(rows)
    return pd.DataFrame(
        {
            "person": np.where(person % 2, "P-", "p ") + (person * 7919 % 9973).astype(str),
            "age": random.integers(20, 80, rows),
            "weight": random.normal(70, 9, rows).round(1),
            "cert_no": np.where(dead, np.char.add("C", number.astype(str)), ""),
            "paid": np.where(dead, "dead", "alive"),
        }
    ).sample(frac=1, random_state=0)


@pytest.mark.parametrize("unknown", ["", "unknown", " "])
def test_rows_with_a_missing_key_have_no_person_and_a_key_of_one_class_is_a_leak(unknown, tmp_path):
    table = died()
    table["cert_no"] = table["cert_no"].replace("", unknown)
    table.iloc[:2, 3] = table.iloc[2:4, 3].to_numpy()  # a certificate may occur twice
    problems, command = problems_of(table, tmp_path, "--positive", "dead")
    [leak] = [one for one in problems if one["kind"] == "leak"]
    assert (leak["certainty"], leak["option"]) == ("likely", "--drop cert_no")
    assert command.count("--groups") == command.count("--groups person") == 1
    [people] = [one for one in problems if one["kind"] == "repeated identifier"]
    assert f"identify {table['person'].nunique()} people" in people["text"]


def test_groups_that_lose_a_class_are_an_error(tmp_path):
    table = died()
    for name, lost in (("cert_no", True), ("person", False)):
        options = ("--positive", "dead", "--groups", name)
        problems, _ = problems_of(table, tmp_path, *options)
        errors = [one for one in problems if one["kind"] == "groups"]
        assert [one["rows"] for one in errors] == [(table["paid"] == "alive").sum()] * lost
        assert [one["certainty"] for one in errors] == ["error"] * lost


def test_keys_that_differ_only_in_case_punctuation_or_zeros_are_one_group(tmp_path):
    table = died().drop(columns="cert_no")
    plain = table["person"].str.extract("([0-9]+)")[0]
    spelled = np.resize(["P-{}", "p{} ", "P {}", "P00{}"], len(table))
    table["person"] = [text.format(number) for text, number in zip(spelled, plain)]
    problems, command = problems_of(table, tmp_path, "--positive", "dead")
    assert "--groups person" in command
    [people] = [one for one in problems if one["columns"] == ["person"]]
    assert f"identify {plain.nunique()} people" in people["text"]
    spellings = table["person"].str.strip().nunique()
    merged = f"{spellings} spellings are merged into {plain.nunique()} where they differ only in"
    assert merged in people["text"]
    roles = ColumnRoles("paid", ["age"], positive="dead", groups="person")
    data = read_training_table(TableFile.open(tmp_path / "people.csv"), roles)
    assert len(set(data.groups)) == plain.nunique()
    assert pd.Series(plain.to_numpy()).groupby(data.groups).nunique().max() == 1
    assert any(note.startswith("Groups 'person':") for note in data.notes)


@pytest.mark.parametrize(
    ("name", "values"),
    [("persons", np.arange(ROWS) % 7), ("customer", np.resize([3.5, 7.25], ROWS))],
)
def test_counts_and_amounts_are_no_keys_whatever_their_name(name, values):
    found = check(people().assign(**{name: values}), "paid", "age")
    assert [one.kind for one in found if name in one.columns] == []


def test_a_level_or_a_missing_value_that_nearly_gives_the_target_away_is_asked_about(tmp_path):
    random = np.random.default_rng(12)
    table = people(1200)
    yes = table["paid"] == "yes"
    outside = yes & (random.random(1200) < 0.6)
    outside |= pd.Series(np.arange(1200) == np.flatnonzero(~yes)[0])
    table["place"] = np.where(outside, "out", "in")
    table["size"] = np.where(yes & (random.random(1200) < 0.2), "3", "")  # of one class only
    unsure = random.random(1200) < np.where(yes, 0.3, 0.02)
    table["history"] = np.where(unsure, "nk", random.choice(["a", "b"], 1200))
    problems, command = problems_of(table, tmp_path)
    leaks = {one["columns"][0]: one for one in problems if one["kind"] == "leak"}
    assert {name: one["certainty"] for name, one in leaks.items()} == {
        "place": "possible",
        "size": "likely",
        "history": "possible",
    }
    shares = [100 * yes[rows].mean() for rows in (outside, ~outside)]
    assert leaks["place"]["rows"] == outside.sum()
    assert f"{shares[0]:.3g} % of which have the same target" in leaks["place"]["text"]
    assert f"compared with {shares[1]:.3g} % of the others" in leaks["place"]["text"]
    shares = [100 * yes[rows].mean() for rows in (unsure, ~unsure)]
    told = f"'history' ({shares[0]:.3g} % of {unsure.sum()} rows, {shares[1]:.3g} % of the others)"
    assert (
        f"class of the target is much more frequent in rows without a value: {told}. A"
        in (leaks["history"]["text"])
    )
    file = TableFile.open(tmp_path / "people.csv")
    assert {*read_training_table(file, ColumnRoles("paid", ["age"])).late} == {*leaks}
    assert "strong feature" not in [one["kind"] for one in problems]  # one voice
    assert "--drop size" in command
    assert "--drop place" not in command
    mixed = random.permutation(1200)
    shuffled = table.assign(**{name: table[name].to_numpy()[mixed] for name in leaks})
    assert "leak" not in [one["kind"] for one in problems_of(shuffled, tmp_path)[0]]


@pytest.mark.parametrize(
    ("labels", "abbreviated"),
    [
        (["live", "L", "dead", "D", "9"], {"L", "D"}),
        # the first spelling of two that differ only in a blank
        (["Labour", "Liberal Democrat", "LibDem", "Lib Dem", "Lab"], {"Lib Dem", "Lab"}),
        (["Labour", "Liberal Democrat", "LibDem", "LibDem", "Lab"], {"LibDem", "Lab"}),
        (["Type 1", "Type 10", "Type 2"], set()),
        (["New York", "New Jersey", "Old York"], set()),
        (["live", "L", "late"], set()),  # either
    ],
)
def test_labels_of_a_target_that_abbreviate_others_are_asked_about_unless_both_count_alike(
    labels, abbreviated
):
    table = people().assign(paid=np.resize(labels, ROWS))

    def asked(positive):
        found = check(table, "paid", "age", positive=positive)
        texts = [one.text for one in found if "may mean the same" in one.text]
        return {text.split("'")[1] for text in texts}

    assert asked(None) == abbreviated
    first = {label for label in abbreviated if labels[0].casefold().startswith(label.casefold())}
    assert asked(labels[0]) == first
    assert asked([labels[0], *first]) == set()


def test_answers_among_zeros_and_ones_have_one_voice(tmp_path):
    table = people().assign(hormone=np.resize(["0", "1", *"0" * 20, "y", "1", "n"], ROWS))
    problems, command = problems_of(table, tmp_path)
    own = [one for one in problems if one["columns"] == ["hormone"] and one["kind"] != "ranges"]
    unknown, _ = problems_of(table.replace({"hormone": {"n": "n/k", "y": "n/k"}}), tmp_path)
    assert "--missing hormone=n/k" in [one["option"] for one in unknown]
    assert {one["kind"] for one in own} == {"labels"}
    options = {one["option"] for one in own}
    assert options == {"--replace hormone=y:1", "--replace hormone=n:0"}
    assert all(option in command for option in options)


def test_numbers_with_the_same_unit_are_read_as_numbers_with_a_note(tmp_path):
    ages = people()["age"]
    mass = np.arange(ROWS) % 60 + 40.5
    table = people().assign(
        age=[f"{age}y" if i % 10 == 0 else str(age) for i, age in enumerate(ages)],
        mass=[f"{one} kg" for one in mass],
        wait=np.resize(["18 months", "2 years", "3"], ROWS),
    )
    problems, command = problems_of(table, tmp_path)
    notes = {one["columns"][0]: one for one in problems if one["kind"] == "amounts"}
    assert notes.keys() == {"age", "mass"}
    assert "'40.5 kg' as 40.5" in notes["mass"]["text"]
    assert "--missing" not in command
    file = TableFile.open(tmp_path / "people.csv")
    data = read_training_table(file, ColumnRoles("paid", ["age"]))
    assert data.s["age"].tolist() == ages.tolist()
    assert data.X["mass"].tolist() == mass.tolist()
    assert data.schema.kinds["wait"] == "text"  # 18 months are not 18 years
    later = pd.DataFrame({**data.X.head(2), "mass": ["50 kg", "61"]}).astype({"mass": str})
    assert data.schema.select(["mass"])(later)["mass"].tolist() == [50, 61]
    pounds = later.assign(mass=["50 lb", "61"])
    with pytest.raises(ValueError, match="contained numbers in training"):
        data.schema.select(["mass"])(pounds)
    table.loc[:9, "age"] = "nk"
    _, command = problems_of(table, tmp_path)
    assert "--missing age=nk" in command
    assert command.split("age=nk")[1] == " --replace 'wait=* months:*,* years:12*'"


def test_years_with_two_digits_beside_four_are_asked_about():
    years = np.arange(ROWS) % 30 + 1968
    short = np.where(np.arange(ROWS) % 7 == 0, years - 1900, years)
    found = check(people().assign(seen=short), "paid", "age")
    [problem] = [one for one in found if one.columns == ("seen",)]
    assert (problem.kind, problem.rows) == ("short years", (short < 100).sum())
    pairs = ",".join(f"{year - 1900}:{year}" for year in sorted({*years[short < 100].tolist()}))
    assert (problem.certainty, problem.option) == ("likely", f"--replace seen={pairs}")
    for clean in (years, years - 1900, np.where(np.arange(ROWS) % 7 == 0, 3, years)):
        found = check(people().assign(seen=clean), "paid", "age")
        assert "short years" not in [one.kind for one in found]
    prices = np.where(np.arange(ROWS) % 3 == 0, np.arange(ROWS) % 30, years)
    found = check(people().assign(price=prices), "paid", "age")
    assert "short years" not in [one.kind for one in found]


@pytest.mark.parametrize("sign", ["", "$"])
def test_numbers_stored_as_text_in_a_typed_table_are_not_names(sign, tmp_path):
    table = people()
    table["wealth"] = [f"{sign}{number:,.2f}" for number in np.linspace(-50, 9_000, len(table))]
    table.loc[table.index[::20], "wealth"] = "unknown"
    path = tmp_path / "people.parquet"
    table.to_parquet(path)
    run = CliRunner().invoke(app, ["check", str(path), "-t", "paid", "-s", "age"])
    text = " ".join(run.stdout.split())
    assert "'wealth' contains numbers stored as text" in text
    assert "like names" not in text
    assert "--drop wealth" not in text


def test_people_with_several_rows_are_groups_though_most_have_one(tmp_path):
    table = people()
    keys = [f"{100_003 + 7 * i:08d}" for i in range(len(table))]
    for place in range(0, len(table) - 1, 4):
        keys[place] = keys[place + 1]
        for name in set(table) - {"paid", "income"}:
            table.loc[table.index[place], name] = table.loc[table.index[place + 1], name]
    path = tmp_path / "people.csv"
    table.assign(mrn=keys).to_csv(path, index=False)
    run = CliRunner().invoke(app, ["check", str(path), "-t", "paid", "-s", "age"])
    text = " ".join(run.stdout.split())
    assert "'mrn' seems to identify" in text
    assert "This is not needed" not in text
    assert "--drop mrn" not in text


def with_headers(path) -> None:
    """Write the header of a text file again as its rows 101 and 303."""
    lines = path.read_text().splitlines()
    for line in (101, 303):
        lines.insert(line, lines[0])
    path.write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("index", [False, True])
def test_a_header_inside_the_file_is_named_and_left_out(index, tmp_path):
    path = tmp_path / "people.csv"
    people().assign(score=np.linspace(0, 1, ROWS)).to_csv(path, index=index)
    where = ["-s", "age", "--json"]
    unharmed = CliRunner().invoke(app, ["audit", str(path), "--score", "score", *where])
    with_headers(path)
    text = "Rows 101, 303 repeat the names of the columns and are left out."
    checked = CliRunner().invoke(app, ["check", str(path), "-t", "paid", *where])
    problems = {problem["kind"]: problem for problem in json.loads(checked.stdout)["problems"]}
    assert problems.keys() <= {"repeated header", "target", "identifier"}
    assert problems["repeated header"]["text"] == text
    assert problems["repeated header"]["rows"] == 2
    data = read_training_table(TableFile.open(path), ColumnRoles("paid", ["age"]))
    assert (len(data.y), data.given, data.dropped, data.removed) == (ROWS, ROWS + 2, 2, 2)
    audited = CliRunner().invoke(app, ["audit", str(path), "--score", "score", *where])
    result, harmless = (json.loads(each.stdout) for each in (audited, unharmed))
    assert result["attributes"] == harmless["attributes"]
    assert text in result["context"]["remarks"]


def test_numbers_beyond_a_limit_in_an_attribute_are_counted_and_hide_no_code(tmp_path):
    table = people().astype({"age": object})
    table.loc[:11, "age"] = "<18"
    table.loc[12:14, "age"] = "> 90"
    table.loc[20:29, "age"] = -9
    problems, command = problems_of(table, tmp_path)
    (note,) = [problem for problem in problems if problem["kind"] == "bands"]
    assert note["text"].endswith("replaced by it: '<18' as 18 (12 rows), '> 90' as 90 (3 rows).")
    assert "--missing age=-9" in command
    path = tmp_path / "people.csv"
    data = read_training_table(TableFile.open(path, missing=["-9"]), ColumnRoles("paid", ["age"]))
    assert data.s["age"][:15].tolist() == [18] * 12 + [90] * 3
    assert data.s["age"][20:30].isna().all()
    table.loc[30, "age"] = "unknown"
    problems, command = problems_of(table, tmp_path)
    assert "--missing age=unknown" in command
    assert "--missing age=-9" in command
    assert any("'<18' as 18 (12 rows)" in problem["text"] for problem in problems)


@pytest.mark.parametrize(
    ("written", "date_format", "other"),
    [
        ("%b-%y", "%b-%y", "%b-%d"),
        ("%d-%b", "%d-%b", "%y-%b"),
        ("%b-%Y", "%b-%Y", ""),
        ("%m/%Y", "%m/%Y", ""),
        ("%Y-%m", "%Y-%m", ""),
    ],
)
def test_months_and_days_without_a_year_are_asked_about_as_dates(
    written, date_format, other, tmp_path
):
    days = pd.date_range("2010-02-01", periods=ROWS, freq="5D")
    table = people().assign(since=days.strftime(written))
    table.loc[:2, "since"] = "unknown"
    problems, _ = problems_of(table, tmp_path)
    about = [problem for problem in problems if "since" in problem["columns"]]
    assert [problem["kind"] for problem in about] == ["dates", "missing code"]
    assert about[0]["option"] == f"--date-format {date_format}"
    assert about[0]["rows"] == ROWS - 3
    assert (f"the format is {other}." in about[0]["text"]) == bool(other)
    path = tmp_path / "people.csv"
    options = {"date_format": date_format, "missing": ["since=unknown"]}
    data = read_training_table(TableFile.open(path, **options), ColumnRoles("paid", ["age"]))
    assert data.X["since"].dt.month[3:].tolist() == days.month[3:].tolist()
    checked = CliRunner().invoke(app, ["check", str(path), "-t", "paid", "-s", "since"])
    assert "'since' contains dates, such as" in " ".join(checked.stdout.split())


def test_months_beside_dates_are_no_ranges(tmp_path):
    days = pd.date_range("2010-02-01", periods=ROWS, freq="5D")
    since = np.where(np.arange(ROWS) % 3, days.strftime("%b-%Y"), days.strftime("%d-%b"))
    problems, _ = problems_of(people().assign(since=since), tmp_path)
    (about,) = [problem for problem in problems if "since" in problem["columns"]]
    assert "'since' contains dates in 2 formats: 'Feb-2010' (266 rows" in about["text"]
    since = np.where(np.arange(ROWS) % 3, days.strftime("%Y-%m-%d"), days.strftime("%b-%y"))
    problems, _ = problems_of(people().assign(since=since), tmp_path)
    (about,) = [problem for problem in problems if "since" in problem["columns"]]
    assert about["certainty"] == "error"
    assert "in 2 formats: '2010-02-06' (266 rows, first in row 2), 'Feb-10' (134" in about["text"]


def test_grades_and_codes_with_digits_are_no_months():
    frame = people().assign(code=[f"{i % 12 + 1}-{3000 + i % 7}" for i in range(ROWS)])
    assert not [problem for problem in check(frame, "paid", "age") if problem.kind == "dates"]


@pytest.mark.parametrize("zeros", [False, True])
def test_none_among_numbers_is_asked_about(zeros, tmp_path):
    table = people().assign(children=np.arange(ROWS) % 4 + (not zeros))
    table = table.astype({"children": object})
    table.loc[:49, "children"] = "none"
    problems, command = problems_of(table, tmp_path)
    (about,) = [problem for problem in problems if "children" in problem["columns"]]
    assert (about["certainty"], about["rows"]) == ("likely", 50)
    assert "treat it as missing (--missing children=none)." in about["text"]
    assert "--replace children=none:0" in command
    for option, value in (("missing", "children=none"), ("replace", "children=none:0")):
        problems, _ = problems_of(table, tmp_path, f"--{option}", value)
        assert not [problem for problem in problems if "children" in problem["columns"]]
        file = TableFile.open(tmp_path / "people.csv", **{option: [value]})
        children = read_training_table(file, ColumnRoles("paid", ["age"])).X["children"]
        assert children[:50].fillna(-1).unique().tolist() == [0 if option == "replace" else -1]


def test_words_for_numbers_are_named_however_many_there_are(tmp_path):
    children = np.where(np.arange(ROWS) % 4 == 2, "two", (np.arange(ROWS) % 4).astype(str))
    problems, command = problems_of(people().assign(children=children), tmp_path)
    (about,) = [problem for problem in problems if "children" in problem["columns"]]
    assert "it contains 'two', first in row 3" in about["text"]
    assert "replace them with numbers" in about["text"]
    assert "--replace children=two:2" in command


def shares(percent: str, fraction: str) -> list[str]:
    values = np.random.default_rng(2).random(ROWS)
    cells = [
        f"{100 * value:.2f}%".replace(".", percent) if place % 3 else f"{value:.2f}"
        for place, value in enumerate(values)
    ]
    cells[:15] = ["-9"] * 15
    return [cell if "%" in cell else cell.replace(".", fraction) for cell in cells]


def test_percentages_beside_fractions_are_both_named_by_check_and_audit(tmp_path):
    path = tmp_path / "people.csv"
    mixed = people().assign(share=shares(",", "."))
    problems, _ = problems_of(mixed, tmp_path)
    (about,) = [problem for problem in problems if "share" in problem["columns"]]
    words = "and numbers without a percent sign such as '0."
    assert words in about["text"]
    assert about["option"] == "--drop share"
    for roles in (["-s", "share", "--score", "age"], ["-s", "age", "--score", "share"]):
        told = CliRunner().invoke(app, ["audit", str(path), *roles]).stderr
        assert words in told
        assert "first in row" not in told
    same_sign = people().assign(share=shares(".", "."))
    problems, _ = problems_of(same_sign, tmp_path)
    about = {each["kind"]: each for each in problems if "share" in each["columns"]}
    assert about.keys() == {"percentages", "missing code", "amounts"}
    assert about["percentages"]["rows"] == np.sum(
        ["." in cell and "%" not in cell for cell in same_sign["share"]]
    )


def test_percentages_in_the_text_of_a_parquet_file_are_read_as_in_a_csv_file(tmp_path):
    table = people().assign(age=shares(".", "."))
    table.loc[20, "age"] = "1.4"
    told = {}
    for ending, write in (("csv", table.to_csv), ("parquet", table.to_parquet)):
        path = tmp_path / f"people.{ending}"
        write(path, index=False)
        run = CliRunner().invoke(app, ["check", str(path), "-t", "paid", "-s", "age", "--json"])
        assert run.exit_code == 0, run.stdout
        problems = json.loads(run.stdout)["problems"]
        told[ending] = [problem for problem in problems if "age" in problem["columns"]]
        file = TableFile.open(path, missing=["age=-9"])
        attribute = read_training_table(file, ColumnRoles("paid", ["age"])).s["age"]
        plain = table["age"].str.removesuffix("%").astype(float)
        np.testing.assert_array_equal(attribute, plain.mask(plain == -9))
    assert told["csv"] == told["parquet"]
    assert {each["kind"] for each in told["csv"]} == {"percentages", "missing code", "amounts"}


def test_the_cells_that_an_error_names_are_those_that_the_file_cannot_read(tmp_path):
    table = people().assign(share=[f"{value:.3f}" for value in np.linspace(0, 1, ROWS)])
    table["share"] = table["share"].str.replace(".", ",")
    table.loc[200:299, "share"] = table.loc[200:299, "share"].str.replace(",", ".")
    path = tmp_path / "people.csv"
    table.drop(columns="income").to_csv(path, index=False, sep=";")
    asked = [str(path), "--decimal", ","]
    for command in (
        ["audit", *asked, "-s", "share", "--score", "age"],
        ["audit", *asked, "-s", "age", "--score", "share"],
        ["train", *asked, "-t", "paid", "-s", "share"],
    ):
        told = CliRunner().invoke(app, command).stderr
        assert "contains '0.501', '0.504', '0.506', first in row 201" in told, told


def test_numbers_with_decimals_in_text_are_no_people(tmp_path):
    amounts = [f"{value:.2f}".replace(".", ",") for value in np.linspace(1, 9, ROWS)]
    amounts[5] = amounts[6]
    table = people().assign(amount=amounts).drop(columns="income")
    table["other"] = "1.5"
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False, sep=";")
    asked = ["check", str(path), "-t", "paid", "-s", "age", "--decimal", ".", "--json"]
    document = json.loads(CliRunner().invoke(app, asked).stdout)
    about = [problem for problem in document["problems"] if "amount" in problem["columns"]]
    assert [problem["kind"] for problem in about] == ["text in numbers"]


def outcomes(*labels: str) -> pd.DataFrame:
    table = people()
    return table.assign(paid=np.random.default_rng(3).choice(labels, ROWS))


@pytest.mark.parametrize("positive", ["refused,Withdrawn", ["refused", "withdrawn"]])
def test_several_labels_can_count_as_one(positive, tmp_path):
    path = tmp_path / "people.csv"
    table = outcomes("granted", "refused", "withdrawn")
    table.to_csv(path, index=False)
    rows = table["paid"].value_counts()
    first, second = (label for label in rows.index if label != "granted")
    data = read_training_table(TableFile.open(path), ColumnRoles("paid", ["age"], positive))
    assert data.classes.tolist() == ["granted", "refused or withdrawn"]
    assert np.array_equal(data.y == "granted", table["paid"] == "granted")
    note = (
        f"Target 'paid': 1 is {first!r} ({rows[first]} rows), {second!r} ({rows[second]} rows);"
        f" 0 is 'granted' ({rows['granted']} rows)."
    )
    assert note in data.notes
    assert not any("If it means missing" in each for each in data.notes)  # 'refused'
    assert note in [problem.text for problem in check(table, "paid", "age", positive=positive)]


def test_a_label_with_a_comma_is_one_label(tmp_path):
    path = tmp_path / "people.csv"
    outcomes("paid", "late, but paid", "never").to_csv(path, index=False)
    for positive, label in (
        ("late, but paid", "late, but paid"),
        ('"late, but paid",never', "late, but paid or never"),
        (["late, but paid", "never"], "late, but paid or never"),
    ):
        data = read_training_table(TableFile.open(path), ColumnRoles("paid", ["age"], positive))
        assert data.classes[1] == label


@pytest.mark.parametrize(
    ("positive", "said"),
    [
        ("refused,lost", "'lost' is not a value of 'paid'"),
        ("granted,refused", "every value of 'paid' counts as 1"),
    ],
)
def test_labels_that_leave_nothing_to_predict_are_refused(positive, said, tmp_path):
    problems, _ = problems_of(outcomes("granted", "refused"), tmp_path, "--positive", positive)
    assert any(each["certainty"] == "error" and said in each["text"] for each in problems)


def test_an_audit_compares_several_labels_with_the_others(tmp_path):
    table = outcomes("0", "1", "2").assign(score=np.linspace(0, 1, ROWS))
    path = tmp_path / "people.csv"
    table.to_csv(path, index=False)
    asked = ["audit", str(path), "-s", "age", "--score", "score", "-t", "paid", "--json"]
    several = json.loads(CliRunner().invoke(app, [*asked, "--positive", "2,1"]).stdout)
    table.assign(paid=(table["paid"] != "0").astype(int)).to_csv(path, index=False)
    one = json.loads(CliRunner().invoke(app, asked).stdout)
    assert several["attributes"] == one["attributes"]
    assert several["subject"]["target"]["positive"] == "2 or 1"


def test_several_labels_are_an_argument_of_an_audit():
    table = outcomes("granted", "refused", "withdrawn")
    columns = (np.linspace(0, 1, ROWS), table["age"], table["paid"])
    fast = Settings(fast=True)
    several = audit(*columns, positive=["refused", "withdrawn"], settings=fast).subject
    one = audit(*columns[:2], (table["paid"] != "granted").astype(int), settings=fast).subject
    assert several.target.positive == "refused or withdrawn"
    assert several.base_rate == one.base_rate
    with pytest.raises(ValueError, match="positive='x' is not a value of paid"):
        audit(*columns, positive=["granted", "x"])


@pytest.mark.parametrize(
    ("labels", "code", "kind"),
    [
        (("yes", "no"), "9", "missing code"),
        (("yes", "no"), "7", "missing code"),
        (("none", "mild", "severe"), "9", "few rows"),
    ],
)
def test_a_class_that_is_a_code_can_be_treated_as_missing(labels, code, kind, tmp_path):
    table = outcomes(*labels)
    table.loc[:29, "paid"] = code
    problems, command = problems_of(table, tmp_path)
    (about,) = [problem for problem in problems if problem["kind"] == kind]
    assert (about["rows"], about["option"]) == (30, f"--missing paid={code}")
    assert "If it means missing, treat it as missing." in about["text"]
    assert about["option"] in command
    problems, _ = problems_of(table, tmp_path, *shlex.split(about["option"]))
    assert {problem["kind"] for problem in problems} == {"target"}


def test_a_rare_class_beside_other_numbers_is_no_code(tmp_path):
    table = outcomes("grade 8", "7", "8")
    table.loc[:29, "paid"] = "9"
    problems, _ = problems_of(table, tmp_path)
    assert [problem["option"] for problem in problems if problem["kind"] == "few rows"] == [""]


@pytest.mark.parametrize(
    ("most", "odd"),
    [
        (("y", "n"), {"1": 40, "0": 40}),
        (("0", "1"), {}),
        (("y", "n"), {"9": 20}),
        (("0", "1"), {"9": 20}),
        (("y", "n"), {"2": 20, "3": 20}),
    ],
)
def test_answers_are_neither_numbers_nor_ranges(most, odd, tmp_path):
    answers = np.random.default_rng(4).choice(most, ROWS).astype(object)
    cells = [label for label, rows in odd.items() for _ in range(rows)]
    answers[: len(cells)] = cells
    answers[-20:] = "y"
    problems, _ = problems_of(people().assign(ill=answers), tmp_path)
    about = [problem for problem in problems if "ill" in problem["columns"]]
    assert not any("numbers" in problem["text"] for problem in about), about
    assert any(each["option"] == "--missing ill=9" for each in about) == ("9" in odd)


@pytest.mark.parametrize(
    ("units", "factor", "name"),
    [
        (("g/dl", "g/l"), 10, "hgb_unit"),
        (("kg", "lb"), 2.2, "kind"),
        (("old", "new"), 10, "hgb unit"),
    ],
)
def test_numbers_in_different_units_are_asked_about(units, factor, name, tmp_path):
    random = np.random.default_rng(5)
    first = random.random(ROWS) < 0.7
    hgb = np.where(first, 1, factor) * random.normal(13.5, 1.2, ROWS)
    table = people().assign(hgb=hgb.round(1), **{name: np.where(first, *units)})
    problems, command = problems_of(table, tmp_path)
    (about,) = [problem for problem in problems if problem["kind"] == "units"]
    assert about["columns"] == ["hgb", name]
    assert f"where '{name}' is '{units[0]}'" in about["text"]
    assert about["certainty"] == "possible"
    assert name not in command
    problems, _ = problems_of(table.assign(hgb=table["age"] + 0.5), tmp_path)
    assert not [problem for problem in problems if problem["kind"] == "units"]


@pytest.mark.parametrize(("name", "labels"), [("unit", ("ward A", "ward B")), ("sex", ("m", "f"))])
def test_groups_with_different_incomes_have_no_units(name, labels):
    first = np.arange(ROWS) % 2 == 0
    table = people().assign(**{name: np.where(first, *labels)})
    table["income"] *= np.where(first, 1, 3)
    assert not [problem for problem in check(table, "paid", "age") if problem.kind == "units"]


def test_rows_that_differ_only_in_the_target_are_counted(tmp_path):
    table = people()
    again = table[:20].copy()
    again.loc[:6, "paid"] = again.loc[:6, "paid"].map({"yes": "no", "no": "yes"})
    table = pd.concat([table, again], ignore_index=True).assign(hours=lambda t: t["income"] % 61)
    problems, _ = problems_of(table, tmp_path)
    (about,) = [problem for problem in problems if problem["kind"] == "contradiction"]
    assert about["rows"] == 14
    assert "14 rows equal another row in every column but the target 'paid'." in about["text"]
    coarse = table.assign(income=table["income"].round(-4), hours=table["age"] // 10)
    problems, _ = problems_of(coarse, tmp_path)
    assert not [problem for problem in problems if problem["kind"] == "contradiction"]


def test_people_whose_rows_contradict_each_other_are_counted(tmp_path):
    table = panel("person")
    table["sex"] = np.where(table["person"] % 2, "f", "m")
    table["age"] += np.arange(len(table)) % 4
    harmless, _ = problems_of(table, tmp_path)
    assert not [problem for problem in harmless if problem["kind"] == "contradiction"]
    table.loc[[4, 9, 17], "sex"] = table.loc[[4, 9, 17], "sex"].map({"f": "m", "m": "f"})
    table.loc[[40, 41], "age"] += 30
    problems, _ = problems_of(table, tmp_path)
    about = {each["columns"][0]: each for each in problems if each["kind"] == "contradiction"}
    same = "between rows with the same 'person', for"
    said = f"{same} 3 of its 100 values that have several rows, such as '10'."
    assert f"'sex' differs {said}" in about["sex"]["text"]
    assert f"'age' differs by more than 9 {same} 1 of its 100 values" in about["age"]["text"]
    assert (about["sex"]["rows"], about["age"]["rows"]) == (12, 4)
    grouped, _ = problems_of(table, tmp_path, "--groups", "person")
    assert [each["text"] for each in grouped if each["kind"] == "contradiction"] == [
        each["text"] for each in about.values()
    ]


def test_numbers_beyond_a_limit_are_counted_by_their_limit(tmp_path):
    crp = np.round(np.random.default_rng(6).gamma(2, 3, ROWS), 1).astype(str).astype(object)
    crp[:12] = "<1"
    crp[12:20] = ">90"
    problems, command = problems_of(people().assign(crp=crp), tmp_path)
    (about,) = [problem for problem in problems if "crp" in problem["columns"]]
    assert "a bound on a number: '<1' (12 rows), '>90' (8 rows), first in row 1." in about["text"]
    assert "--replace 'crp=<1:1,>90:90'" in command


def test_one_row_and_several_columns_have_their_verbs(tmp_path):
    table = people().assign(one=1, two=2, void="", empty="", year=1990 + np.arange(ROWS) % 30)
    table = table.astype({"year": object, "age": object})
    table.loc[0, "age"] = ""
    table.loc[[4, 9], "income"] = [-1e9, 1e9]
    problems, _ = problems_of(pd.concat([table, table[:1]]), tmp_path)
    said = " ".join(problem["text"] for problem in problems)
    assert "'one' and 'two' are the same in every row and are left out." in said
    assert "'void' and 'empty' have no value in any row and are left out." in said
    assert "'age' is missing in 2 of 401 rows, which are left out" in said
    problems, _ = problems_of(table.drop(columns="two"), tmp_path)
    said = " ".join(problem["text"] for problem in problems)
    assert "'one' is the same in every row and is left out." in said
    assert "'age' is missing in 1 of 400 rows, which is left out" in said
    assert "1 times" not in said
    assert "1 rows" not in said


def test_the_weight_of_a_thing_is_not_taken_for_row_weights():
    random = np.random.default_rng(0)
    grams = random.normal(3400, 500, 300).round()
    for name, sure in (("Birth weight", False), ("survey_weight", True), ("birth wgt", True)):
        found = check(pd.DataFrame({name: grams}))
        (problem,) = [problem for problem in found if problem.kind == "weights"]
        assert (problem.certainty == "likely") is sure


def test_replaced_values_are_read_as_the_new_ones_in_every_command(tmp_path):
    """The same file with the new values in place gives the same model and scores."""
    clean = people().assign(weeks=np.arange(ROWS) % 12 + 28.5, sex=np.resize(["male", "f"], ROWS))
    written = clean.astype(object)
    written.loc[::7, "weeks"] = "<28,5"
    written.loc[::12, "weeks"] = "28,5"
    written.loc[::9, "sex"] = "M "
    clean.loc[::7, "weeks"] = clean.loc[::12, "weeks"] = 28.5
    clean.loc[::9, "sex"] = "male"
    new = pd.DataFrame({"age": ["40"], "income": "1", "town": "Bern", "weeks": "<28.5", "sex": "m"})
    roles = ["-t", "paid", "-s", "age", "--fast", "--max-rows", "100"]
    replaced = ["--replace", 'weeks="<28,5:28.5"', "--replace", "sex=M:male"]
    scores = {}
    for name, table, options in (("written", written, replaced), ("clean", clean, [])):
        path, model = tmp_path / f"{name}.csv", tmp_path / f"{name}.frhsic"
        table.to_csv(path, index=False, sep=";", decimal=",")
        files = ["-o", str(model), "-r", str(tmp_path / "report.html")]
        asked = ["train", str(path), *roles, *files, "--delimiter", ";", *options]
        run = CliRunner().invoke(app, asked)
        assert run.exit_code < 2, run.output
        told = [str(model), str(path), "-o", str(tmp_path / "scores.csv")]
        run = CliRunner().invoke(app, ["predict", *told])  # the model remembers the values
        assert run.exit_code == 0, run.output
        assert "did not occur in training" not in run.output
        scores[name] = (tmp_path / "scores.csv").read_text()
        audited = ["audit", str(path), "-s", "age", "--model", str(model), "--json"]
        run = CliRunner().invoke(app, [*audited, "--max-rows", "100"])
        scores[f"audit of {name}"] = json.loads(run.stdout)["attributes"]
        fitted = frhsic.load(model)
        if name == "clean":
            new = new.assign(weeks=28.5, sex="male")
        scores[f"frame of {name}"] = fitted.predict_proba(new.assign(income=1.0)).tolist()
    assert scores["written"] == scores["clean"]
    assert scores["audit of written"] == scores["audit of clean"]
    assert scores["frame of written"] == scores["frame of clean"]


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ("twon=Bern:Biel", "there is no column 'twon'. Did you mean 'town'?"),
        ("town=Bren:Biel", "people.csv has no value 'Bren' in column 'town'"),
        ("town=Bern", "write COLUMN=OLD:NEW, such as sex=M:male"),
        ("town=Bern:", "write COLUMN=OLD:NEW, such as sex=M:male"),
        ("age=**:*", "has several asterisks, but only one"),
        ("town=Bern:Biel,Biel:Bern", "'Biel', which replaces 'Bern', is itself replaced"),
    ],
)
def test_a_replacement_that_does_not_fit_the_table_is_refused(option, said, tmp_path):
    path = tmp_path / "people.csv"
    people().to_csv(path, index=False)
    for command in ("check", "train"):
        asked = [command, str(path), "-t", "paid", "-s", "age", "--replace", option]
        run = CliRunner().invoke(app, asked)
        assert (run.exit_code, said in run.stderr) == (2, True)
    with pytest.raises(ValueError, match=said.partition(".csv")[2] or said.split("?")[0]):
        check(people(), "paid", "age", replace=[option])


@pytest.mark.parametrize(
    ("column", "replaced"),
    [
        (pd.Series([1, 2, 99]), [1, 2, 0]),
        (pd.Series([1.5, None, 99.0]), [1.5, None, 0]),
        (pd.Series(["1", None, " 99.0"]), ["1", None, "0"]),
        (pd.Series(["a", None, "99"], dtype="category"), ["a", None, "0"]),
    ],
)
def test_values_of_every_type_are_replaced_once_and_for_all(column, replaced):
    once = replace_values(column, {"99": "0"})
    assert [None if pd.isna(value) else value for value in once] == replaced
    pd.testing.assert_series_equal(replace_values(once, {"99": "0"}), once)


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers"),
    [
        (["47.785 DM", "60.686,95", "69\u00a0485,23 DM"], ",", ["47785", "60.686,95", "69485,23"]),
        (["47.785 DM", "3.25"], ".", ["47.785", "3.25"]),
        (["47,785 DM", "1,047,785.5 DM", "2.5"], ".", ["47785", "1047785.5", "2.5"]),
        (["3,5 DM", "4"], ".", ["3.5", "4"]),
    ],
)
def test_numbers_without_their_unit_are_read_like_the_others(cells, decimal, numbers):
    column = replace_values(pd.Series(cells), {"* dm": "*"}, decimal)
    assert column.tolist() == numbers


@pytest.mark.parametrize(
    ("cells", "decimal"),
    [(["47.785 DM", "60.686,95"], "."), (["1.250 DM", "12.5 DM"], ","), (["1,250 DM", "2,5"], ".")],
)
def test_numbers_with_a_unit_and_an_unclear_decimal_separator_are_refused(cells, decimal):
    with pytest.raises(ValueError, match="is ambiguous"):
        replace_values(pd.Series(cells), {"* DM": "*"}, decimal)


def test_incomes_with_a_unit_in_a_file_with_decimal_commas_are_compared_with_features(tmp_path):
    amounts = people()["income"] * 3 + 10_000
    table = people().assign(income=[f"{x:,.2f}".translate({44: 46, 46: 44}) for x in amounts])
    table["age"] = table["income"]
    table.loc[::9, "age"] = [f"{x / 1000:.3f} DM" for x in amounts[::9]]
    path = tmp_path / "t.csv"
    table.to_csv(path, index=False, sep=";")
    options = ["--target", "paid", "--sensitive", "age", "--json"]
    result = json.loads(CliRunner().invoke(app, ["check", str(path), *options]).output)
    [error] = [one for one in result["problems"] if one["certainty"] == "error"]
    assert error["option"] == "--replace 'age=* DM:*'"
    assert "--drop income" in result["command"]
    options += ["--replace", "age=* DM:*"]
    result = json.loads(CliRunner().invoke(app, ["check", str(path), *options]).output)
    assert "--drop income" in result["command"]
    assert not [one for one in result["problems"] if one["certainty"] == "error"]


def test_footnote_marks_are_removed_from_numbers(tmp_path):
    table = people().astype({"age": str})
    table.loc[:15, "age"] += "*"
    problems, command = problems_of(table, tmp_path)
    [error] = [one for one in problems if one["certainty"] == "error"]
    assert (error["option"], error["rows"]) == (r"--replace 'age=* \*:*'", 16)
    again, _ = problems_of(table, tmp_path, *shlex.split(command)[7:])
    assert not [one for one in again if one["certainty"] in ("error", "likely")]


def test_limits_and_missing_values_stay_readable_beside_replaced_units(tmp_path):
    table = people().astype({"age": str})
    table.loc[:30, "age"] = ["<5", "-", "<5 km"] * 10 + ["7 km"]
    options = ["--replace", "age=* km:*,<5 km:<5"]
    problems, _ = problems_of(table, tmp_path, *options)
    assert not [one for one in problems if one["certainty"] in ("error", "likely")]
    assert [one["rows"] for one in problems if one["kind"] == "missing"] == [10]


def test_rates_of_counties_are_not_taken_for_identifiers(tmp_path):
    county = np.repeat(np.arange(80), 5)
    table = people().assign(rate=[f"{2 + i / 10:.1f}%" for i in county], region=county % 10)
    table = table.assign(wage=county % 7 + 0.5, tuition=county % 9 + 0.25, age=county + 20)
    table.loc[0, "rate"] = "(%)"
    _, command = problems_of(table, tmp_path)
    assert "--groups" not in command


@pytest.mark.parametrize(
    ("cells", "option"),
    [
        (["{} J."] * 20, "--replace 'age=* J:*'"),
        (["about {}"] * 20, "--replace 'age=about *:*'"),
        (["~{}", "{}*"] * 10, r"--replace 'age=* \*:*,~ *:*'"),
    ],
)
def test_ages_with_words_and_marks_keep_their_numbers(cells, option, tmp_path):
    table = people().astype({"age": object})
    table.loc[:19, "age"] = [cell.format(30 + i) for i, cell in enumerate(cells)]
    problems, command = problems_of(table, tmp_path)
    assert [one["option"] for one in problems if one["certainty"] == "error"] == [option]
    again, _ = problems_of(table, tmp_path, *shlex.split(command)[7:])
    assert not [one for one in again if one["certainty"] in ("error", "likely")]


def test_an_unknown_unit_of_few_numbers_far_from_the_others_is_not_removed(tmp_path):
    table = people().astype({"age": object})
    table.loc[:19, "age"] = [f"{500 + i} x" for i in range(20)]
    problems, _ = problems_of(table, tmp_path)
    [error] = [one["option"] for one in problems if one["certainty"] == "error"]
    assert error.startswith("--missing 'age=500 x,501 x")


def test_years_with_two_digits_are_completed_if_the_others_show_their_century(tmp_path):
    table = people()
    born = (1990 - table["age"]).astype(str)
    table = table.assign(built=table["age"] % 40 + 1950, made=born)
    table["built"] = table["built"].sample(frac=1, random_state=0).astype(str).to_numpy()
    table.loc[:29, "built"] = "'" + table.loc[:29, "built"].str[2:]
    table.loc[:29, "made"] = born[:30].str[2:]
    problems, command = problems_of(table, tmp_path)
    assert "--drop made" in command
    options = {one["columns"][0]: one["option"] for one in problems if "replace" in one["option"]}
    year = born[0]
    assert f"{year[2:]}:{year}" in options["made"]
    again, _ = problems_of(table, tmp_path, *shlex.split(command)[7:])
    assert not [one for one in again if one["certainty"] in ("error", "likely")]
    kept = shlex.split(options["made"])
    again, command = problems_of(table, tmp_path, *kept)
    assert "short years" not in [one["kind"] for one in again]
    table.loc[:4, "made"] = ["1908", "2014", "11", "12", "13"]  # 1911 or 2011
    problems, _ = problems_of(table, tmp_path)
    [years] = [one for one in problems if one["kind"] == "short years"]
    assert "replace" not in years["option"]


def test_rare_classes_that_may_mean_the_same_as_others_are_asked_about(tmp_path):
    paid = np.resize(["alive", "dead"] * 9 + ["survived", "died"], ROWS)
    problems, _ = problems_of(people().assign(paid=paid), tmp_path)
    [asked] = [one for one in problems if "--positive VALUE" in one["text"]]
    assert (asked["kind"], asked["certainty"], asked["rows"]) == ("target labels", "possible", 40)
    for clean, options in ((paid, ["--positive", "alive,survived"]), (paid[:18], [])):
        table = people().assign(paid=np.resize(clean, ROWS))
        problems, _ = problems_of(table, tmp_path, *options)
        assert "target labels" not in [one["kind"] for one in problems]


def test_each_option_is_in_the_command_once():
    options = ["--drop decided", "--drop 'next --letter' --drop decided", "--drop-repeated"]
    options += ["--date-format %b-%y", "--date-format %d/%m/%Y", "--missing age=-9"]
    problems = [Problem("leak", "", option=option) for option in options]
    assert settling_options([*problems, *problems]) == [
        "--drop decided",
        "--drop 'next --letter'",
        "--drop-repeated",
        "--date-format %b-%y",
        "--missing age=-9",
    ]


def asked(table: pd.DataFrame, kind: str) -> list[tuple[tuple[str, ...], str, str]]:
    found = check(table, "paid", "age")
    return [(one.columns, one.certainty, one.option) for one in found if one.kind == kind]


def test_children_are_asked_about_only_among_adults():
    young = people()["age"].astype(float).where(people().index % 150 != 7, 0.5)
    assert asked(people().assign(age=young), "impossible age") == [
        (("age",), "possible", "--missing age=0.5")
    ]
    for ages in (people()["age"] - 10, young.where(people().index % 150 != 9, 15)):
        assert not asked(people().assign(age=ages), "impossible age")


def test_a_column_that_numbers_the_rows_of_two_parts_is_left_out_because_of_its_name():
    numbers = [*range(250), *range(150)]
    for name, left_out in (("Unnamed: 0", True), ("row_number", True), ("visits", False)):
        found = asked(people().assign(**{name: numbers}), "identifier")
        assert found == [((name,), "certain", "")] * left_out
    assert not asked(people().assign(index=np.arange(ROWS) % 7), "identifier")


def test_dates_after_the_first_one_are_asked_about_and_dates_of_birth_are_not():
    start = pd.Series(pd.date_range("2020-01-01", periods=ROWS))
    later = start + pd.to_timedelta(np.arange(ROWS) % 30 + 1, "D")
    born = start - pd.to_timedelta(365.25 * people()["age"], "D").dt.round("D")
    table = people().assign(closed=later, start=start, born=born)
    assert asked(table, "known late") == [(("closed",), "possible", "--drop closed")]
    shuffled = table.assign(closed=later.sample(frac=1, random_state=0).to_numpy())
    assert not asked(shuffled, "known late")


def test_two_values_that_divide_the_attribute_are_asked_about():
    age = people()["age"]
    for exceptions, found in ((0, True), (40, False)):
        old = np.where((age >= 50) ^ (np.arange(ROWS) < exceptions), "old", "young")
        options = [
            option for _, _, option in asked(people().assign(group=old), "attribute repeated")
        ]
        assert options == ["--drop group"] * found


@pytest.mark.parametrize("name", ["Gewicht", "poids (kg)", "birth_weight"])
def test_weights_of_bodies_are_only_possible_weights_of_rows(name):
    table = people().assign(**{name: np.linspace(50, 90, ROWS)})
    assert [certainty for _, certainty, _ in asked(table, "weights")] == ["possible"]


@pytest.mark.parametrize("of", ["target", "attribute"])
def test_errors_hide_no_leak(of, tmp_path):
    table = people().assign(end=people()["paid"] == "yes")
    if of == "attribute":
        table["age"] = "?" + table["age"].astype(str)
    options = ("--positive", "Yess") if of == "target" else ()
    problems, command = problems_of(table, tmp_path, *options)
    assert of in [one["kind"] for one in problems if one["certainty"] == "error"]
    assert "--drop end" in command


def test_labels_of_a_target_that_differ_only_in_joints_are_one_class(tmp_path):
    random = np.random.default_rng(0)
    status = random.choice(["employed", "out of workforce", "unemployed"], ROWS).astype(object)
    status[np.flatnonzero(status == "out of workforce")[:40]] = "Out of work-force"
    table = people().assign(paid=status)
    problems, _ = problems_of(table, tmp_path)
    (text,) = (one["text"] for one in problems if "classes" in one["text"])
    assert "has 3 classes" in text
    (note,) = (one["text"] for one in problems if "hyphens" in one["text"])
    assert "'Out of work-force' into 'out of workforce'" in note
    status[status == "employed"] = "none"
    status[status == "unemployed"] = "no reply"
    status[:99] = "replied"
    problems, _ = problems_of(table.assign(paid=status), tmp_path)
    assert "--replace 'paid=none:no reply'" in [one["option"] for one in problems]


def with_label(label: object, **cells: object) -> pd.DataFrame:
    """Return a table with a last line that has a label and some more cells."""
    table = people().astype(object).assign(hours=np.arange(ROWS) % 60 + 1)
    table.insert(0, "branch", np.resize(["Ulm", "Bonn"], ROWS))
    return pd.concat([table, pd.DataFrame([{"branch": label, **cells}])], ignore_index=True)


@pytest.mark.parametrize(
    ("table", "totals"),
    [
        (with_label("Subtotal Q4 1990", paid="400 people"), [ROWS]),
        (with_label("Total loss", age=31, income=9.5, town="Bern", paid="yes"), []),
        # all cells are filled: sums and means, or a person
        (with_label("Total", age=50.9, income=15_893_000, town="all", paid="yes", hours=9), [ROWS]),
        (with_label("Total", age=31, income=9.5, town="Bern", paid="yes", hours=3), []),
        # a label of many rows, of which one lacks a value
        (people().assign(town=["average", "average", *["Bern", "Ulm"] * 199]), []),
    ],
)
def test_lines_of_totals_are_told_by_their_cells(table, totals):
    table = table.map(lambda cell: None if pd.isna(cell) else str(cell))
    if not totals and "branch" not in table:
        table.loc[0, "income"] = None
    left_out = LeftOut()
    left_out.drop(table)
    assert left_out.totals == totals


@pytest.mark.parametrize("answers", ["Oui O Non N", "Sí S No N", "Sim S Não N", "tak T nie N"])
def test_answers_in_other_languages_are_merged_with_their_initials(answers, tmp_path):
    yes, y, no, n = answers.split()
    paid = np.resize([yes, yes, y, no, n], ROWS)
    table = people().assign(paid=paid, sure=np.random.default_rng(0).permutation(paid))
    problems, command = problems_of(table, tmp_path)
    (text,) = (one["text"] for one in problems if "1 is" in one["text"])
    assert text.startswith(f"Target 'paid': 1 is {yes!r} (240 rows); 0 is")
    assert f"sure={y}:{yes}" in shlex.split(command)
    named, _ = problems_of(table, tmp_path, "--positive", y)
    assert text in [one["text"] for one in named]


def test_rare_labels_that_count_as_0_are_asked_about(tmp_path):
    loans = np.resize(["approved", "denied"], ROWS).astype(object)
    loans[:12] = "withdrawn"
    problems, _ = problems_of(people().assign(paid=loans), tmp_path, "--positive", "approved")
    assert "--missing paid=withdrawn" in [one["option"] for one in problems]
    grades = people().assign(paid=np.resize(["a", "b", "c"], ROWS))
    problems, _ = problems_of(grades, tmp_path, "--positive", "a")
    assert "labels" not in [one["kind"] for one in problems]


def test_a_value_that_reveals_one_of_several_classes_is_a_leak(tmp_path):
    state = np.random.default_rng(0).choice(["works", "seeks work", "retired"], ROWS)
    table = people().assign(paid=state, active=(state != "retired").astype(int))
    table["hours"] = np.where(state == "works", np.arange(ROWS) % 50 + 1, 0)
    command = problems_of(table, tmp_path)[1]
    assert "--drop active" in command
    assert "--drop hours" in command
    table["active"] = np.random.default_rng(1).permutation(table["active"])
    assert "--drop active" not in problems_of(table, tmp_path)[1]


def test_amounts_with_a_few_words_among_them_are_no_groups(tmp_path):
    table = people()
    dollars = [f"${40_000 + 37 * i:,}" for i in range(ROWS)]
    dollars[1:9:2] = dollars[0:8:2]  # a few people have the same income
    dollars[20:26] = ["unknown"] * 6
    problems, command = problems_of(table.assign(income=dollars), tmp_path)
    assert "--groups" not in command
    assert "--missing income=unknown" in command
    note = "'income' seems to identify people or other units and is left out."
    assert note in [one["text"] for one in problems]
    keys = [text.strip("$").replace(",", "-") for text in dollars]
    assert "--groups income" in problems_of(table.assign(income=keys), tmp_path)[1]


@pytest.mark.parametrize(
    ("target", "attribute", "feature", "found"),
    [
        ("died", "age_1971", "weight_1982", True),
        ("died1982", "age", "weight1992", True),
        ("died_1992", "age_1971", "weight 1982", True),
        ("died_1992", "age", "weight_1982", False),  # a year is later than no name
        ("died_1992", "age_1971", "weight_1971", False),
        ("died", "age_1971", "weight_198", False),
        ("died", "age_1971", "id_31982", False),
        ("died", "age", "weight_1982", False),
    ],
)
def test_a_later_year_in_a_name_is_asked_about(target, attribute, feature, found):
    names = {"age": attribute, "paid": target, "income": feature}
    problems = check(people().rename(columns=names), target, attribute)
    options = [one.option for one in problems if one.kind == "known late"]
    assert options == ([f"--drop {shlex.quote(feature)}"] if found else [])
    assert {one.certainty for one in problems if one.kind == "known late"} <= {"possible"}


def test_a_rare_value_is_likely_to_be_a_leak_only_if_it_reveals_a_whole_class(tmp_path):
    random = np.random.default_rng(0)
    state = random.choice(["works", "seeks work", "retired"], ROWS, p=[0.6, 0.25, 0.15])
    retired = state == "retired"
    usual = random.choice(["A", "B", "C"], ROWS)
    table = people().assign(
        paid=state,
        code=np.where(retired, "P", usual),
        number=np.where(retired, 7, random.integers(0, 5, ROWS)),
        part=np.where(retired & (random.random(ROWS) < 0.9), "P", usual),
    )
    problems, command = problems_of(table, tmp_path)
    leaks = {one["columns"][0]: one["certainty"] for one in problems if one["kind"] == "leak"}
    assert leaks == {"code": "likely", "number": "likely", "part": "possible"}
    assert command.endswith("--drop code --drop number")


def test_a_class_that_means_missing_hides_no_leak_and_makes_none(tmp_path):
    tested = np.arange(ROWS) % 5 > 1
    result = np.where(tested, people()["paid"], "not tested")
    table = people().assign(paid=result, voucher=np.where(tested, "a", None))
    problems, command = problems_of(table, tmp_path)
    assert "--missing 'paid=not tested'" in [one["option"] for one in problems]
    assert "--drop voucher" not in command


def test_feet_and_inches_among_numbers_are_asked_about(tmp_path):
    heights = [f"{150 + i % 50}cm" if i % 8 else f"{i % 2 + 5}'{i % 12}\"" for i in range(ROWS)]
    problems, _ = problems_of(people().assign(size=heights), tmp_path)
    (found,) = (one for one in problems if one["columns"] == ["size"])
    assert (found["certainty"], found["option"], found["rows"]) == ("possible", "--drop size", 50)


def test_a_column_with_the_other_decimal_sign_names_it(tmp_path):
    table = people().assign(size=[f"0,{i % 90:02d}" for i in range(ROWS)])
    problems, _ = problems_of(table, tmp_path)
    assert "--decimal ," in [one["option"] for one in problems if one["columns"] == ["size"]]


def test_weights_with_a_unit_are_no_row_weights(tmp_path):
    sizes = np.random.default_rng(0).normal(70, 9, ROWS).round(1).astype(str).astype(object)
    for cells, asked in ((sizes, True), (sizes + " kg", False)):
        problems, _ = problems_of(people().assign(weight_1971=cells), tmp_path)
        assert ("weights" in [one["kind"] for one in problems]) == asked
