"""`frhsic train` and `demo` as a user meets them: what they read, refuse and write, how they
exit.
"""

import hashlib
import html
import json
import re
from dataclasses import astuple, replace

import numpy as np
import pandas as pd
import pytest
import typer
from click import Context
from sklearn.metrics import log_loss, roc_auc_score
from typer.main import get_command

import frhsic
from cli_samples import FEATURES, done, one_line_and_2, people, run
from frhsic.auditing import Settings
from frhsic.auditing.results import Number
from frhsic.cli import _terminal, app
from frhsic.cli import demo as demo_module
from frhsic.cli import train as training
from frhsic.estimators import ParityClassifier, ParityRegressor
from frhsic.estimators.frontier import Gap
from frhsic.formatting import figure, percent
from frhsic.intervals import Interval
from frhsic.parity import gdp, rank_gap
from frhsic.report import Report, render, trained_report, words
from frhsic.report.first_page import checks, closing_lines, verdict
from frhsic.report.words import aim_sentence
from frhsic.tables.files import TableFile
from frhsic.tables.roles import ColumnRoles
from frhsic.tables.training import TrainingTable, read_training_table

pytestmark = pytest.mark.usefixtures("few_trees")

ASKED = ["-t", "approved", "-s", "age", *FEATURES, "--max-rows", "100"]
QUICK = Settings(resamples=20, max_rows=100, probe_rows=100)
FAST = replace(QUICK, fast=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    people().to_csv(place / "people.csv", index=False)
    return place


def prepared(path, target="approved", sensitive=("age",), **options):
    options.setdefault("features", ("skill", "rank", "job"))
    return read_training_table(TableFile.open(path), ColumnRoles(target, sensitive, **options))


@pytest.fixture(scope="module")
def trained(folder):
    """One training whose audit cannot show what it must; several tests read what it wrote."""
    model, page = folder / "model.frhsic", folder / "report.html"
    asked = ["train", str(folder / "people.csv"), *ASKED, "--json", "--require", "gdp=0.0001"]
    asked += ["--favourable", "no", "--decision", "whether a loan is granted"]
    result = done([*asked, "-o", str(model), "-r", str(page)], 1)
    return json.loads(result.stdout), model, page, result.stderr


def test_a_control_is_a_column_of_the_model_whose_equals_are_compared(folder):
    model = folder / "equal.frhsic"
    asked = ["train", str(folder / "people.csv"), *ASKED, "--control", "job", "--fast", "--json"]
    held_out = folder / "equal.csv"
    result = run([*asked, "-o", str(model), "--held-out", str(held_out)])
    assert result.exit_code in (0, 1), result.output
    document = json.loads(result.stdout)
    assert document["report"]["tradeoff"]["controls"] == "job"
    assert "among people with the same job" in document["summary"]["verdict"]
    assert document["summary"]["equal"].startswith("Among people with the same job, the gap is")
    rows = document["report"]["audit"]["attributes"][0]["all_rows"]
    after = document["report"]["tradeoff"]["after"]["gaps"][0]["value"]
    (within,) = (number for number in rows["within"]["numbers"] if number["key"] == "gdp")
    assert within["value"] == pytest.approx(after, rel=1e-9)
    changes = [change["key"] for change in document["report"]["changes"]]
    assert not changes or "within" in changes
    assert "job" in held_out.read_text().splitlines()[0].split(",")
    message = one_line_and_2([*asked, "--control", "age,job", "-o", str(model)])
    assert "--control 'age' is not a feature of the model" in message


def test_a_report_with_row_weights_is_that_of_its_held_out_rows(folder, tmp_path):
    """Every number is recomputed from the file of the held-out rows and the table."""
    path, model = tmp_path / "held.csv", tmp_path / "model.frhsic"
    asked = ["train", str(folder / "people.csv"), *ASKED, "--fast", "--json", "-o", str(model)]
    asked += ["--row-weights", "w", "--limit", "gdp=10% of base rate", "--threshold", "0.4"]
    result = run([*asked, "--held-out", str(path)])
    assert result.exit_code in (0, 1), result.output
    document = json.loads(result.stdout)
    held = pd.read_csv(path)
    table = people()
    rows = table.iloc[held["row"] - 1].reset_index(drop=True)
    assert held["approved"].tolist() == rows["approved"].tolist()
    assert held["age"].equals(rows["age"])
    assert held["weights"].tolist() == rows["w"].tolist()
    loaded = frhsic.load(model)
    for name, fitted in (("score", loaded), ("score_without_limit", loaded.at(None))):
        scores = fitted.predict_proba(rows[loaded.feature_names_in_])[:, 1]
        np.testing.assert_allclose(held[name], scores, rtol=1e-9)
    audited = document["report"]["audit"]
    shown = {quality["key"]: quality["value"] for quality in audited["quality"]}
    yes, weights = held["approved"] == "yes", held["weights"]
    recall = np.average(held["score"][yes] > 0.4, weights=weights[yes])
    assert shown["true_positive_rate"] == pytest.approx(recall)
    auc = roc_auc_score(yes, held["score"], sample_weight=weights)
    assert shown["auc"] == pytest.approx(auc)
    assert audited["subject"]["base_rate"]["value"] == pytest.approx(
        np.average(yes, weights=weights)
    )
    gap = gdp(held["score"], held["age"], sample_weight=weights).value
    assert audited["attributes"][0]["all_rows"]["numbers"][0]["value"] == pytest.approx(gap)
    rest = table.drop(index=held["row"] - 1)
    rate = np.average(rest["approved"] == "yes", weights=rest["w"])
    verdict_line = document["summary"]["verdict"]
    told = f"{percent(rate)}) is"
    assert f"(10 % of the base rate of the training rows, {told}" in verdict_line


def test_a_training_is_that_of_the_python_api_on_the_same_split(folder, trained):
    said, path, _, _ = trained
    data = prepared(folder / "people.csv")
    train, test = data.split(0.2, 0)
    X_test, s_test = data.X.iloc[test], data.s.iloc[test]
    expected = ParityClassifier(limit="50%", random_state=0, n_jobs=1)
    expected.fit(data.X.iloc[train], data.y[train], sensitive_features=data.s.iloc[train])
    written = frhsic.load(path)
    np.testing.assert_allclose(
        written.predict_proba(X_test), expected.predict_proba(X_test), rtol=1e-12
    )
    report = Report.from_dict(said["report"])
    for model, found in ((expected.at(None), report.before), (expected, report.audit)):
        gap = gdp(model.predict_proba(X_test)[:, 1], s_test["age"], resamples=0).value
        assert found["age"].all_rows["gdp"].value == pytest.approx(gap, rel=1e-9)
        target = found.subject.target
        assert (target.name, target.positive, target.favourable) == ("approved", "yes", "no")
        assert found.rows.used == 60
    assert said["met"] is expected.choice_.met


def test_the_page_holds_the_report_of_the_json_and_what_is_not_shown_is_told(trained):
    said, model, page, stderr = trained
    shown = page.read_text(encoding="utf-8")
    text = re.search(r'id="data">(.*?)</script>', shown, re.DOTALL).group(1)
    assert json.loads(text) == said["report"]
    assert said["files"] == {"model": str(model), "report": str(page)}
    fingerprint = hashlib.sha256(model.read_bytes()).hexdigest()
    assert said["report"]["audit"]["context"]["origin"]["model"] == fingerprint
    assert fingerprint in shown
    assert "whether a loan is granted" in shown
    told = said["summary"]["verdict"]
    assert re.match(r"The limit of 0.0001 is (?!met).*: the gap by age is", told)
    assert told in stderr.splitlines()
    assert set(said["summary"]) == {"verdict", "meaning", "gap", "cost", "rows"}


def data_of(n=300, **changes):
    data = people(n)
    values = {"X": data[["skill", "rank"]], "y": data["repaid"].to_numpy(), "s": data[["age"]]}
    names = {"classes": np.array([0, 1]), "name": "people", "target_name": "repaid"}
    return TrainingTable(**(values | names | changes))


def fit(data, settings=QUICK, **recipe):
    return training.fit_and_report(
        data, training.TrainOptions(**recipe), 0.3, settings, None, _terminal.Stated()
    )


def test_test_rows_have_no_part_in_the_fit():
    """With other targets and features on the test rows, the model is the same, bit for bit."""
    groups = np.arange(300)  # whose split doesn't depend on the classes
    data = data_of(groups=groups)
    rows = data.split(0.3, 0)[1]
    X, y = data.X.copy(), data.y.copy()
    X.loc[rows] = -X.loc[rows]
    y[rows] = 1 - y[rows]
    changed = data_of(X=X, y=y, groups=groups)
    models = [fit(one, FAST, limit=["25%"])[0] for one in (data, changed)]
    assert np.array_equal(models[0].predict_proba(data.X), models[1].predict_proba(data.X))
    assert models[0].choice_.position == models[1].choice_.position


def test_groups_of_one_row_change_nothing(tmp_path):
    people(900).assign(row=np.arange(900)[::-1]).to_csv(tmp_path / "people.csv", index=False)
    alone, grouped = (prepared(tmp_path / "people.csv", groups=name) for name in (None, "row"))
    first, second = (fit(data, FAST, limit=["50%"])[1] for data in (alone, grouped))
    assert first.tradeoff.changes[0].reduction is not None
    assert first.tradeoff == second.tradeoff  # the same rows, model and intervals
    assert prepared(tmp_path / "people.csv", groups="person").groups is not None


YARDSTICKS = {
    "score": lambda y, f: log_loss(y, np.clip(f, 1e-12, 1 - 1e-12)),
    "rank": roc_auc_score,
    "decision": lambda y, f: np.mean(y == f),
}


def test_rows_that_train_measure_and_are_left_out_add_up_to_those_of_the_table():
    split = {"groups": np.arange(300), "order": np.arange(300)}
    data = data_of(
        **split,
        lacking={"repaid": 4, "person": 0, "year": 3},
        dropped=10,
        removed=1,
        repeated=2,
        given=1021,
    )
    words = training._row_counts(data, 1021, 200, 80, 5).replace(",", "")
    assert "1 (totals or headers)" in words
    assert "2 (repeated)" in words
    given, train, test, *reasons = map(int, re.findall(r"\d+", words))
    assert reasons == [4, 3, 1, 2, 711, 5, 15]
    assert given == train + test + sum(reasons)
    assert "4 (without repaid) 3 (without year) 1 (totals" in words
    one = training._row_counts(data_of(removed=1, dropped=1), 301, 200, 100, 0)
    assert one.endswith(" to evaluate it. Left out: 1 (totals or headers).")
    assert re.findall(r"\d+", training._row_counts(data_of(), 300, 200, 100, 0)) == [
        "300",
        "200",
        "100",
    ]


@pytest.mark.parametrize("aim", YARDSTICKS)
def test_a_report_measures_what_the_aim_limits(aim):
    data, other = people(400), people(200, seed=1)
    X, y, s = data[["skill", "rank"]], data["repaid"], data["age"]
    model = ParityClassifier(aim=aim, limit="75%", cv=2, random_state=0, n_jobs=1).fit(
        X, y, sensitive_features=s
    )
    X, y, s = other[["skill", "rank"]], other["repaid"], other["age"]
    report = trained_report(model, X, y, sensitive_features=s, settings=QUICK)
    for one, point in ((model.at(None), report.tradeoff.before), (model, report.tradeoff.after)):
        f = one.predict(X) if aim == "decision" else one.predict_proba(X)[:, 1]
        gap = (rank_gap if aim == "rank" else gdp)(f.astype(float), s, resamples=0)
        assert point.gaps[0].value == pytest.approx(float(gap), rel=1e-9)
        assert point.performance == pytest.approx(YARDSTICKS[aim](y, f), rel=1e-9)
    audited, after = (
        report.audit["age"].all_rows["rank_gap" if aim == "rank" else "gdp"],
        report.tradeoff.after.gaps[0],
    )
    assert (after.low, after.high) == pytest.approx(
        (audited.interval.low, audited.interval.high), rel=1e-9
    )
    chosen = next(point for point in report.tradeoff.points if point.chosen)
    assert chosen.gaps[0] == model.choice_.gaps["age"]
    (stop,) = [stop.point for stop in report.tradeoff.stops if stop.point.chosen]
    assert stop == replace(report.tradeoff.after, chosen=True)
    assert (report.tradeoff.limits, report.tradeoff.shares) == ((None,), (0.75,))
    values = [point.performance for point in report.tradeoff.points]
    assert min(values) <= chosen.performance <= max(values)


@pytest.mark.parametrize(
    ("given", "option", "said"),
    [
        ("train x.csv -t a -s b --aim foo", "--aim", "'score', 'rank', 'decision'"),
        ("train x.csv -t a -s b --test-share=3", "--test-share", "1"),
        ("train x.csv -t a -s b --threshold x", "--threshold", "valid"),
        ("train x.csv -t a -s b --condition no", "--condition", "'positive', 'both'"),
        ("audit x.csv -s a --confidence 2", "--confidence", "1"),
        ("demo --rows 150", "--rows", "200"),
    ],
)
def test_a_wrong_value_names_its_option_and_what_is_possible(given, option, said):
    line = one_line_and_2(given.split())
    start, _, reason = line.partition(f"Invalid value for '{option}': ")
    assert start == f"frhsic {given.split()[0]}: "
    assert said in reason
    assert reason.endswith(". See --help.\n")


@pytest.mark.parametrize("given", ["train x.csv -t a", "train --bogus 1", "trian", "--bogus"])
def test_a_wrong_use_is_one_line_without_a_box(given):
    result = done(given.split(), 2)
    assert result.stdout == ""
    assert result.stderr.startswith("frhsic")
    assert result.stderr.count("\n") == 1
    assert "╭" not in result.stderr


def test_of_two_conditions_a_report_states_the_larger_value_low_and_high_as_the_choice_does():
    """Few rows have y = 1, so that the largest upper end is theirs, and the largest gap is not."""
    rng = np.random.default_rng(0)
    s = rng.uniform(size=900)
    X = np.column_stack([s + 0.3 * rng.normal(size=900), rng.normal(size=900)])
    y = (X.sum(axis=1) + rng.normal(size=900) > 0.5).astype(int)
    model = ParityClassifier(condition="both", limit="50%", cv=2, random_state=0, n_jobs=1)
    model.fit(X[:400], y[:400], sensitive_features=s[:400])
    held = np.arange(400, 900)
    held = np.r_[held[y[held] == 0], held[y[held] == 1][:30]]
    X, y, s = X[held], y[held], s[held]
    settings = replace(QUICK, resamples=99)
    report = trained_report(model, X, y, sensitive_features=s, settings=settings)
    f = model.predict_proba(X)[:, 1]
    gaps = [gdp(f[y == c], s[y == c], resamples=99) for c in (0, 1)]
    assert gaps[0].value > gaps[1].value
    assert gaps[0].interval[1] < gaps[1].interval[1]
    assert 2 * gaps[0].pvalue < 0.05
    larger = [max(pair) for pair in zip(*((gap.value, *gap.interval) for gap in gaps))]
    assert astuple(report.tradeoff.after.gaps[0]) == pytest.approx(larger)
    least = trained_report(model.at(0), X, y, sensitive_features=s, settings=QUICK)
    assert "among rows with the same outcome" in verdict(least).remarks[-1]


def test_a_report_of_arrays_has_the_names_of_the_fit():
    data = people(400)
    X, y, s = data[["skill", "rank"]].to_numpy(), data["wage"].to_numpy(), data["age"].to_numpy()
    model = ParityRegressor(limit=60.0, cv=2, random_state=0, n_jobs=1)
    model.fit(X[:300], y[:300], sensitive_features=s[:300])
    report = trained_report(model, X[300:], y[300:], sensitive_features=s[300:], settings=QUICK)
    assert [one.name for one in report.audit.attributes] == [*report.tradeoff.attributes]
    assert "The limit of 60 is" in render(report)


def test_a_report_of_numbers_with_two_attributes_leaves_rows_without_one_out():
    data = people(400)
    X, y, s = data[["skill", "rank"]], data["wage"], data[["age", "hours"]]
    model = ParityRegressor(limit={"age": "50%"}, cv=2, random_state=0, n_jobs=1)
    model.fit(X[:300], y[:300], sensitive_features=s[:300])
    some = s[300:].copy()
    some.iloc[:7, 1] = np.nan
    report = trained_report(model, X[300:], y[300:], sensitive_features=some, settings=QUICK)
    assert report.audit.rows.used == 93
    assert report.audit.rows.dropped == 7
    error = np.mean((model.predict(X[307:]) - y[307:]) ** 2)
    assert report.tradeoff.after.performance == pytest.approx(error, rel=1e-9)
    assert report.tradeoff.limits[1] is None
    assert report.tradeoff.shares == (0.5, None)
    assert report.audit.subject.score_name == "predicted wage"


@pytest.fixture(scope="module")
def outcome():
    model, report = fit(data_of(s=people()[["age"]].rename(columns={"age": "[red]age"})), seed=1)
    context = replace(report.audit.context, remarks=("[bold]a note",))
    return model, replace(report, audit=replace(report.audit, context=context))


def test_on_a_terminal_it_ends_with_aligned_lines(monkeypatch, capsys, tmp_path, outcome):
    for name, value in {
        "FORCE_COLOR": "1",
        "TERM": "dumb",
        "COLUMNS": "200",
        "LINES": "50",
    }.items():
        monkeypatch.setenv(name, value)
    model, report = outcome
    training.finish(model, report, {"report": tmp_path / "report.html"}, as_json=False)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "note: [bold]a note"
    closing = closing_lines(report) | {"report": str(tmp_path / "report.html")}
    assert lines[1] == "note: Features (2): skill, rank."
    assert lines[2:] == [f"{name:9}{text}" for name, text in closing.items()]
    assert "[red]age" in closing["gap"]


def test_a_fast_training_says_the_same_and_leaves_the_rest_out(outcome):
    _, report = outcome
    renamed = people()[["age"]].rename(columns={"age": "[red]age"})
    _, fast = fit(data_of(s=renamed), FAST, seed=1)
    assert closing_lines(fast) == closing_lines(report)
    assert fast.tradeoff.stops == report.tradeoff.stops
    keys = [{n.key for n in one.audit["[red]age"].all_rows.numbers} for one in (fast, report)]
    assert {"rank_gap", "squared_distance_correlation", "probe_linear"} <= keys[1] - keys[0]
    assert fast.audit["[red]age"].positives is None


def test_a_limit_that_the_fit_does_not_meet_exits_with_1(outcome, capsys):
    model, report = outcome
    training.finish(model, report, {}, as_json=True)
    assert capsys.readouterr().err == ""
    with pytest.raises(typer.Exit) as ended:
        training.finish(
            model, replace(report, tradeoff=replace(report.tradeoff, met=False)), {}, as_json=True
        )
    assert ended.value.exit_code == 1
    assert capsys.readouterr().err.startswith("In the fit, no trade-off was certain to meet")


def test_the_verdict_says_what_was_asked_and_by_how_much_the_gap_was_reduced(outcome):
    _, report = outcome
    change = report.tradeoff.changes[0]
    lines = closing_lines(report)
    assert report.tradeoff.is_noise(0)
    assert lines["gap"].startswith(f"[red]age: {figure(change.after)} (")
    assert change.reduction is None
    assert lines["verdict"].endswith("is not significant, with the limit or without it.")
    (check,) = checks(report)
    check = replace(check, value=0.02, interval=Interval(0.01, 0.03, 0.95, ""))
    moved = aim_sentence(replace(check, reference=Number("gdp", 0.04, 90)), "It")
    assert moved.endswith("0.0200; the original gap is too uncertain to state a percentage of it.")


def test_a_bound_that_the_rows_held_out_exceed_exits_with_1(outcome, capsys):
    """The fit met it; an aim that is only probably missed does not count."""
    model, report = outcome
    after = replace(report.tradeoff.after, gaps=(Gap(0.04, 0.03, 0.05),))
    tradeoff = replace(report.tradeoff, after=after, shares=(None,), met=True)
    for limit, code in ((0.02, 1), (0.039, 1), (0.041, None), (0.06, None)):
        tradeoff = replace(tradeoff, limits=(limit,))
        bound = replace(report, tradeoff=tradeoff)
        if code is None:
            training.finish(model, bound, {}, as_json=True)
            continue
        with pytest.raises(typer.Exit) as ended:
            training.finish(model, bound, {}, as_json=True)
        assert ended.value.exit_code == code
        assert "exceeded" in capsys.readouterr().err


def test_off_a_terminal_the_paths_are_printed_and_the_notes_go_to_standard_error(
    folder, tmp_path, monkeypatch, capfd
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as ended:
        app(["train", str(folder / "people.csv"), *ASKED, "--limit", "0"])
    stdout, stderr = capfd.readouterr()
    assert ended.value.code == 0
    notes = [
        line.removeprefix("note: ") for line in stderr.splitlines() if line.startswith("note: ")
    ]
    assert "not used to build the model" in stderr
    page = (tmp_path / "frhsic-report.html").read_text(encoding="utf-8")
    assert any(note.startswith("Target 'approved': 1 is 'yes'") for note in notes)
    page = page.replace("\u00a0", " ").replace("&#39;", "&#x27;")
    # the report lists the features in a table
    features = "Features (3): skill, rank, job."
    told = [html.escape(words.remove_options(note)) for note in notes]
    assert [note for note in told if note not in page] == [features]
    assert "<summary>Features (3)</summary><p>skill, rank, job</p>" in page
    assert stdout == "frhsic-model.frhsic\nfrhsic-report.html\n"


def test_help_is_wrapped_by_the_terminal_alone_and_flags_have_no_type():
    for name in ("train", "audit", "predict", "demo"):
        shown = done([name, "--help"]).stdout
        assert "bool" not in shown
        command = get_command(app).get_command(Context(get_command(app)), name)
        assert not re.search(r"\S\n\S", command.help)


def test_the_demo_says_what_it_found_what_it_left_out_and_where_the_report_is(
    without_network, tmp_path
):
    out = tmp_path / "report.html"
    result = run(["demo", "--rows", "400", "--out", str(out)])
    assert result.stdout == f"{out}\n"
    lines = result.stderr.splitlines()
    assert result.exit_code == 0, result.exception  # whether the aim is reached or not
    ends = [line.split(":")[0] for line in lines[-6:]]
    assert ends == ["verdict", "meaning", "also", "gap", "cost", "rows"]
    assert "160 synthetic cases" in lines[-1]
    notes = [line for line in lines if line.startswith("note: ")]
    assert "the demo uses the paper's synthetic task" in notes[0]
    assert notes[1].startswith("note: This is a sample of 400 of 20,000 rows")
    text = re.search(r'id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL).group(
        1
    )
    assert any(
        "This is a sample" in warning for warning in json.loads(text)["audit"]["context"]["remarks"]
    )
    assert not any("sample" in note for note in demo_module._data(20_000, 0).notes)
