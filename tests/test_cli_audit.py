"""`frhsic audit` as a user meets it: what it reads, what it refuses, what it prints, how it exits."""

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

from estimator_samples import quick
from frhsic import save
from frhsic.auditing import Audit
from frhsic.cli import app
from frhsic.dependence import distance_correlation_unbiased
from frhsic.formatting import figure
from frhsic.parity import gdp
from frhsic.tables import Derived, column_names, files, read_numbers

pytestmark = pytest.mark.usefixtures("few_trees")

run = CliRunner().invoke


def frame(n=240, seed=0):
    random = np.random.default_rng(seed)
    age = np.round(random.uniform(20, 70, n))
    score = np.clip(0.3 + 0.006 * (age - 45) + 0.1 * random.standard_normal(n), 0, 1)
    return pd.DataFrame(
        {
            "age": age,
            "hours": random.normal(40, 5, n),
            "score": score,
            "z_1": score + 0.1 * random.standard_normal(n),
            "z_2": random.standard_normal(n),
            "income": np.where(random.random(n) < score, ">50K", "<=50K"),
            "repaid": (random.random(n) < 0.5).astype(int),
            "sex": np.where(random.random(n) < 0.5, "Male", "Female"),
            "empty": np.nan,
        }
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("tables")
    data = frame()
    data.to_csv(place / "people.csv", index=False)
    data.to_csv(place / "people.tsv", index=False, sep="\t")
    data.to_parquet(place / "people.parquet")
    table = pa.Table.from_pandas(data)
    with pa.OSFile(str(place / "people.arrow"), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    with pa.OSFile(str(place / "stream.arrow"), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=100)
    (place / "empty.csv").write_text("")
    (place / "header.csv").write_text("age,score\n")
    (place / "one.csv").write_text("age,score\n30,0.5\n")
    (place / "ragged.csv").write_text('age,score\n1,2\n"3,4,5,6\n')
    (place / "people.xlsx").write_bytes(b"PK")
    (place / "broken.parquet").write_bytes(b"not parquet at all")
    return place


@pytest.fixture(scope="module")
def audited(folder):
    """One full run, with its report; several tests read it."""
    out = folder / "report.html"
    asked = ["-s", "age", "--score", "score", "--target", "repaid", "--at", "30", "--at", "age=60", "--json"]
    result = run(app, ["audit", str(folder / "people.csv"), *asked, "-o", str(out)])
    assert result.exit_code == 0, result.output
    return Audit.from_json(result.stdout), out


def test_the_numbers_are_those_of_the_python_api(audited):
    found, _ = audited
    data = frame()
    expected = gdp(data["score"], data["age"], resamples=0).value
    assert found["age"].all_rows["gdp"].value == pytest.approx(expected, rel=1e-9)
    expected = float(distance_correlation_unbiased(data["score"], data["age"]))
    assert found["age"].all_rows["distance_correlation"].value == pytest.approx(expected, rel=1e-9)
    assert [contrast.at for contrast in found["age"].all_rows.contrasts] == [30, 60]
    assert found["age"].positives.rows == int(data["repaid"].sum())
    assert (found.source, found.subject.name, found.subject.target_name) == ("people.csv", "score", "repaid")


def test_the_report_holds_the_same_audit_as_the_json(audited):
    import re

    found, out = audited
    text = re.search(r'id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL).group(1)
    assert Audit.from_dict(json.loads(text)["audit"]) == found


def read(path, names=("age", "score"), **options):
    return read_numbers(path, dict.fromkeys(names, "score"), **options)


@pytest.mark.parametrize("name", ["people.csv", "people.tsv", "people.parquet", "people.arrow", "stream.arrow"])
def test_every_kind_of_table_gives_the_same_columns(folder, name):
    data = frame()
    assert column_names(folder / name) == list(data.columns)
    got = read(folder / name)
    assert (got.given, got.dropped, got.sampled) == (240, 0, False)
    for column in ("age", "score"):
        np.testing.assert_allclose(got.columns[column], data[column], rtol=1e-12)


def test_pieces_are_put_together_in_order(folder, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 17)
    np.testing.assert_allclose(read(folder / "people.csv").columns["age"], frame()["age"])
    np.testing.assert_allclose(read(folder / "people.parquet").columns["age"], frame()["age"])


def test_of_a_long_table_a_uniform_sample_is_kept(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 500)
    monkeypatch.setattr(files, "KEPT_ROWS", 1000)
    path = tmp_path / "long.csv"
    pd.DataFrame({"a": np.arange(20_000), "b": np.arange(20_000) % 7}).to_csv(path, index=False)
    got = read(path, ("a", "b"), seed=1)
    kept = got.columns["a"]
    assert (got.given, got.rows, got.sampled) == (20_000, 1000, True)
    assert len(set(kept)) == 1000
    assert np.array_equal(kept, np.sort(kept))
    assert np.array_equal(got.columns["b"], kept % 7)
    assert abs(kept.mean() - 9999.5) < 4 * 20_000 / np.sqrt(12 * 1000)
    counts = np.histogram(kept, bins=10, range=(0, 20_000))[0]
    assert ((counts - 100) ** 2 / 100).sum() < 30  # χ² with 9 degrees of freedom, p < 0.0005
    assert np.array_equal(read(path, ("a", "b"), seed=1).columns["a"], kept)
    assert not np.array_equal(read(path, ("a", "b"), seed=2).columns["a"], kept)


def test_only_the_columns_that_are_asked_for_are_read(tmp_path):
    path = tmp_path / "wide.csv"
    path.write_text("age,note,score\n" + "".join(f"{i},anything {{}} at all,0.{i}\n" for i in range(30)))
    assert set(read(path).columns) == {"age", "score"}


def test_rows_with_a_missing_value_are_dropped_and_counted(tmp_path):
    path = tmp_path / "holes.csv"
    path.write_text("age,score\n30,0.1\n,0.2\n40,?\n50,0.4\nNA,NA\n")
    got = read(path)
    assert (got.given, got.dropped) == (5, 3)
    assert got.columns["age"].tolist() == [30, 50]


def test_a_text_target_becomes_0_and_1_by_its_positive_value(folder):
    roles = {"age": "x", "income": "target"}
    got = read_numbers(folder / "people.csv", roles, target="income", positive=">50K")
    assert np.array_equal(got.columns["income"], (frame()["income"] == ">50K").astype(float))
    got = read_numbers(folder / "people.csv", {"repaid": "target"}, target="repaid", positive="0")
    assert np.array_equal(got.columns["repaid"], 1.0 - frame()["repaid"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["people.csv", "-s", "agee", "--score", "score"], "no column 'agee'. Did you mean 'age'?"),
        (["people.csv", "-s", "AGE", "--score", "score"], "Did you mean 'age'?"),
        (["people.csv", "-s", "age", "--score", "scroe"], "no column 'scroe'. Did you mean 'score'?"),
        (["people.csv", "-s", "age", "--score", "score", "--target", "incom"], "Did you mean 'income'?"),
        (["people.csv", "-s", "age", "--embedding", "y_*"], "no column of people.csv matches 'y_*'"),
        (["people.csv", "-s", "age", "--embedding", "age"], "nothing is left to audit"),
        (["people.csv", "-s", "sex", "--score", "score"], "not numeric: it holds"),
        (["people.csv", "-s", "sex", "--score", "score"], "write its values as numbers"),
        (["people.csv", "-s", "age", "--score", "score", "--target", "income"], "--positive VALUE"),
        (["people.csv", "-s", "empty", "--score", "score"], "has no value in any of the 240 rows"),
        (["empty.csv", "-s", "age", "--score", "score"], "not even a header"),
        (["header.csv", "-s", "age", "--score", "score"], "a header and no rows"),
        (["one.csv", "-s", "age", "--score", "score"], "needs at least 20 rows; 1 came"),
        (["ragged.csv", "-s", "age", "--score", "score"], "cannot be read as CSV"),
        (["broken.parquet", "-s", "age", "--score", "score"], "cannot be read as Parquet"),
        (["people.xlsx", "-s", "age", "--score", "score"], "ends in .xlsx"),
        (["peopel.csv", "-s", "age", "--score", "score"], "Did you mean 'people.csv'?"),
        (["people.csv", "-s", "age"], "say what to audit"),
        (["people.csv", "-s", "age", "--score", "score", "--model", "m"], "brings its own scores"),
        (["people.csv", "-s", "age", "--score", "score", "--positive", "1"], "pass --target too"),
        (["people.csv", "-s", "age", "--score", "score", "--favourable", "1"], "--favourable says which value of the"),
        (
            ["people.csv", "-s", "age", "-s", "hours", "--score", "score", "--at", "30", "--at", "hours=40"],
            "--at is given with and without the name of an attribute",
        ),
        (["people.csv", "-s", "age", "--score", "score", "--at", "x"], "pass a number, or NAME=NUMBER"),
        (["people.csv", "-s", "age", "--score", "score", "--at", "agee=30"], "Did you mean 'age'?"),
        (["people.csv", "-s", "age", "--score", "score", "--at", "300"], "at=300 lies outside the data"),
        (["people.csv", "-s", "age", "--score", "score", "--fail-above", "gdp"], "pass NAME=NUMBER"),
        (["people.csv", "-s", "age", "--score", "score", "--fail-above", "gpd=1"], "Did you mean 'gdp'?"),
        (["people.csv", "-s", "age", "--score", "score", "-o", "none/report.html"], "the folder"),
        (["people.csv", "-s", "age", "--score", "score", "-o", "people.csv"], "the report would overwrite the table"),
        (["people.csv", "-s", "age", "--score", "score", "--confidence", "95"], "confidence is 95"),
        (["people.csv", "-s", "age", "--model", "nowhere"], "there is no saved model"),
    ],
)
def test_bad_input_exits_with_2_and_one_message(folder, monkeypatch, arguments, message):
    monkeypatch.chdir(folder)
    result = run(app, ["audit", *arguments])
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("frhsic audit: ")
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert not (folder / "frhsic-report.html").exists()


def test_a_finding_above_its_limit_exits_with_1_and_says_which(folder, monkeypatch):
    monkeypatch.chdir(folder)
    arguments = ["audit", "people.csv", "-s", "age", "--score", "score", "--json", "--max-rows", "100"]
    result = run(app, [*arguments, "--fail-above", "gdp=0.01", "--fail-above", "kernel_hgr=1"])
    assert result.exit_code == 1
    assert result.stderr.count("above the limit") == 1
    assert "gdp of age" in result.stderr
    assert Audit.from_json(result.stdout)["age"].all_rows["gdp"].value > 0.01


def test_a_limit_on_a_number_that_was_not_computed_is_an_error(folder):
    asked = ["-s", "age", "--embedding", "z_*", "--max-rows", "100", "--json", "--fail-above", "gdp=1"]
    result = run(app, ["audit", str(folder / "people.csv"), *asked])
    assert result.exit_code == 2
    assert "--fail-above gdp=1 cannot be checked for age: gdp was not computed" in result.stderr


def test_off_a_terminal_the_path_of_the_report_is_all_that_is_printed(folder, tmp_path, monkeypatch, capfd):
    monkeypatch.chdir(tmp_path)
    asked = ["-s", "age", "--score", "score", "--max-rows", "100", "--fail-above", "gdp=1"]
    with pytest.raises(SystemExit) as ended:
        app(["audit", str(folder / "people.csv"), *asked])
    assert (ended.value.code, *capfd.readouterr()) == (0, "frhsic-report.html\n", "")
    assert (tmp_path / "frhsic-report.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")


def test_on_a_terminal_the_finding_and_the_numbers_are_shown(folder, tmp_path, monkeypatch):
    for name, value in (("FORCE_COLOR", "1"), ("NO_COLOR", "1"), ("COLUMNS", "200"), ("TERM", "xterm")):
        monkeypatch.setenv(name, value)
    out = tmp_path / "report.html"
    asked = ["-s", "age", "--score", "score", "--max-rows", "100", "-o", str(out)]
    result = run(app, ["audit", str(folder / "people.csv"), *asked])
    assert result.exit_code == 0, result.stderr
    data = re.search(r'id="data">(.*?)</script>', out.read_text(encoding="utf-8"), re.DOTALL).group(1)
    age = Audit.from_dict(json.loads(data)["audit"])["age"]
    shown = re.sub(r"\x1b\[[0-9;]*m", "", result.stdout)
    assert " ".join(age.finding.split()) in " ".join(shown.split())
    for number in age.all_rows.numbers:
        (line,) = [line for line in shown.splitlines() if f"│ {number.label} " in line]
        ends = "-" if number.interval is None else f"{figure(number.interval.low)} to {figure(number.interval.high)}"
        assert [cell.strip() for cell in line.split("│")[2:4]] == [figure(number.value), ends]
    assert shown.endswith(f"report: {out}\n")


def test_an_embedding_with_two_attributes_and_a_head(folder):
    asked = ["-s", "age", "-s", "hours", "--embedding", "z_*", "--target", "income", "--positive", ">50K"]
    result = run(
        app, ["audit", str(folder / "people.parquet"), *asked, "--at", "hours=40", "--max-rows", "100", "--json"]
    )
    assert result.exit_code == 0, result.stderr
    found = Audit.from_json(result.stdout)
    assert (found.subject.kind, found.subject.name, found.subject.dimensions) == ("embedding", "z_*", 2)
    assert found.subject.score_name == "out-of-fold linear head for [income = >50K]"
    assert found.joint.name == "age and hours"
    assert [c.at for c in found["hours"].all_rows.contrasts] == [40]
    assert found["age"].all_rows.contrasts == ()


@pytest.fixture(scope="module")
def fitted():
    from frhsic.estimators import FRHSICClassifier

    data = frame()
    X = data[["hours", "sex", "z_1"]]
    model = FRHSICClassifier(**quick(size=3, epochs=2))
    return model.fit(X, data["income"], sensitive_features=data["age"]), X


def test_a_saved_model_is_applied_to_the_table_piece_by_piece(folder, fitted, monkeypatch):
    """Text columns and all: its probability is the score, its representation is Z."""
    model, X = fitted
    save(model, folder / "model.frhsic")
    monkeypatch.setattr(files, "CHUNK_ROWS", 50)
    asked = ["audit", str(folder / "people.csv"), "-s", "age", "--model", str(folder / "model.frhsic")]
    result = run(app, [*asked, "--max-rows", "100", "--json"])
    assert result.exit_code == 0, result.stderr
    found = Audit.from_json(result.stdout)
    expected = gdp(model.predict_proba(X)[:, 1], frame()["age"], resamples=0).value
    assert found["age"].all_rows["gdp"].value == pytest.approx(expected, rel=1e-5)
    assert (found.subject.dimensions, found.subject.name) == (3, "representation of model.frhsic")
    assert found.subject.score_name == "score of model.frhsic"


def test_rows_that_lack_a_feature_are_kept_and_none_is_a_level(tmp_path):
    path = tmp_path / "levels.csv"
    path.write_text("age,job\n30,none\n40,cook\n50,\n?,cook\n")
    seen = []

    def make(rows):
        seen.extend(rows["job"])
        return np.ones((len(rows), 2))

    got = read_numbers(path, {"age": "x"}, derived=Derived(("job",), 2, make))
    assert seen[:2] == ["none", "cook"]
    assert pd.isna(seen[2])
    assert got.derived.shape == (3, 2)
    assert (got.given, got.rows, got.dropped) == (4, 3, 1)


def test_a_model_that_cannot_be_applied_says_why(folder, fitted, monkeypatch):
    from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, ParityEncoder

    _, X = fitted
    asked = ["audit", "people.csv", "-s", "age", "--model", "other.frhsic"]
    monkeypatch.chdir(folder)
    data = frame()
    nameless = FRHSICRegressor(penalty_weight=0, **quick(epochs=1)).fit(data[["z_1"]].to_numpy(), data["score"])
    save(nameless, folder / "other.frhsic")
    assert "without column names" in run(app, asked).stderr
    elsewhere = X.rename(columns={"hours": "hoursx"})
    encoder = ParityEncoder(**quick(epochs=1)).fit(elsewhere, sensitive_features=data["age"])
    save(encoder, folder / "other.frhsic")
    assert "no column 'hoursx'. Did you mean 'hours'?" in run(app, asked).stderr
    three = FRHSICClassifier(**quick(epochs=1)).fit(X, np.arange(len(X)) % 3, sensitive_features=data["age"])
    save(three, folder / "other.frhsic")
    assert "tells 3 classes apart; an audit is of one score" in run(app, asked).stderr
    (folder / "other.frhsic").write_bytes(b"nonsense")
    assert run(app, asked).exit_code == 2


def test_help_teaches_with_examples():
    text = run(app, ["audit", "--help"]).output
    assert "Examples" in text
    assert "Exit codes" in text
    assert text.count("frhsic audit") >= 4


MEMORY = """
import sys, resource
from pathlib import Path
from frhsic.tables import read_numbers
got = read_numbers(Path(sys.argv[1]), {"age": "sensitive attribute", "score": "score"})
print(got.given, got.rows, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024)
"""


def peak(path: Path) -> tuple[int, int, int]:
    done = subprocess.run([sys.executable, "-c", MEMORY, str(path)], capture_output=True, text=True, check=True)
    given, rows, megabytes = (int(x) for x in done.stdout.split())
    return given, rows, megabytes


@pytest.mark.slow
def test_a_csv_of_two_gigabytes_is_read_within_two_gigabytes_of_memory(tmp_path):
    random = np.random.default_rng(0)
    n = 100_000
    data = pd.DataFrame({"age": random.integers(18, 90, n), "score": random.random(n), "note": ["x" * 60] * n})
    block = data.to_csv(index=False, header=False).encode()
    path = tmp_path / "big.csv"
    blocks = 2 * 2**30 // len(block) + 1
    with path.open("wb") as file:
        file.write(b"age,score,note\n")
        for _ in range(blocks):
            file.write(block)
    try:
        given, rows, megabytes = peak(path)
    finally:
        path.unlink()
    assert given == blocks * n
    assert rows == files.KEPT_ROWS
    assert megabytes < 2048


def test_parquet_is_read_in_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "CHUNK_ROWS", 1000)
    path = tmp_path / "long.parquet"
    pq.write_table(pa.table({"age": np.arange(5000.0), "score": np.arange(5000.0)}), path, row_group_size=2500)
    seen = []
    got = read(path, watch=seen.append)
    assert got.given == 5000
    assert len(seen) >= 5
