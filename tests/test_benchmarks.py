"""Every program under benchmarks/ runs through on tiny sizes and prints what it measures."""

from __future__ import annotations

import importlib.util
import json
import math
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic import ParityEncoder
from frhsic.dependence import hsic
from frhsic.independence import hsic_interval
from frhsic.kernels import Gaussian, Linear
from frhsic.parity import gdp
from frhsic.penalties import HSIC
from frhsic.training import MLP, Training
from real_data import real  # noqa: F401  # a fixture

FOLDER = Path(__file__).resolve().parents[1] / "benchmarks"


@pytest.fixture
def program(monkeypatch):
    """Return load(name): a program as a module."""
    threads = torch.get_num_threads()

    def load(name: str) -> ModuleType:
        spec = importlib.util.spec_from_file_location(f"benchmark_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)
        spec.loader.exec_module(module)
        return module

    yield load
    torch.set_num_threads(threads)


def start(module: ModuleType, options: str, *more: str) -> None:
    module.main([*options.split(), *more])


def test_no_program_is_left_out():
    tested = {
        "certificates",
        "closed_form",  # by hand: it measures time
        "coverage",
        "coupling",
        "cpu_peers",
        "drawing",
        "enough",
        "frem_rounding",
        "front_page",  # by hand: it needs Chromium
        "gpu",
        "independence",
        "large_audit",
        "mutants",  # by hand: it needs mutmut
        "performance",
        "peers",
        "power",
        "promise",
        "scale",
        "selection",
        "serving",
        "target_rule",
        "theorem_pictures",
        "theorem_population",
        "training",
        "unsupervised",
        "unsupervised_report",
        "yardsticks",
    }
    assert {path.stem for path in FOLDER.glob("*.py")} == tested


def test_promise(program, monkeypatch, tmp_path, capsys):
    """The gap of a population is that of very many rows, and a run goes on where it stopped."""
    module = program("promise")
    law = module.LAWS["linear"]
    scores = module.expit(2 * module.CELLS[:, 0] - 1)
    X, _, s = law.draw(np.random.default_rng(0), 40_000)
    assert float(gdp(module.expit(2 * X[:, 0] - 1), s, resamples=0)) == pytest.approx(law.gap(scores), abs=0.006)
    monkeypatch.setattr(module, "ROWS", 200)
    records = str(tmp_path / "promise.jsonl")
    for tables in (1, 1):
        start(module, f"--tables {tables} --laws linear", "--records", records)
    assert "| linear | 0.06 | 1 |" in capsys.readouterr().out
    assert len((tmp_path / "promise.jsonl").read_text().splitlines()) == 1


def test_target_rule(program, capsys):
    module = program("target_rule")
    start(module, "--rows 100 --repeats 2")
    lines = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in lines] == list(module.PATHS)
    assert all("target missed" in line for line in lines)


def test_every_law_of_the_coverage_program_has_the_mean_that_it_states(program):
    """Overall and above the median of S, within five standard errors."""
    module = program("coverage")
    laws = [law for laws in module.SETS.values() for law in laws]
    assert len(module.ASIDE) >= 10
    assert len({law.name for law in laws}) == len(laws)
    u = (np.arange(200_000) + 0.5) / 200_000
    for law in laws:
        away = law.draw(u, np.random.default_rng(0))[0] - law.mean(u)
        for part in (away, away[100_000:]):
            assert abs(part.mean()) <= 5 * part.std() / math.sqrt(len(part)), law.name
    _, s, design = module.sample(laws[0], 200_000, "weights", np.random.default_rng(1))
    weights = design["sample_weight"]
    assert weights @ (s < 0.3) / weights.sum() == pytest.approx(0.3, abs=0.01)  # the weights undo the selection


def test_closed_form_of_hsic_of_the_coverage_program(program):
    module = program("coverage")
    z, s = module.normals(0.6, 3000, np.random.default_rng(0))
    effect = hsic_interval(z, s, Gaussian(1.0), Gaussian(1.0), confidence=0.9999)
    assert effect.interval.low < module.normal_hsic(0.6) < effect.interval.high
    assert module.normal_hsic(0.0) == pytest.approx(0, abs=1e-15)


@pytest.mark.slow
def test_coupling(program, monkeypatch, tmp_path, capsys):
    pytest.importorskip("lightgbm")
    module = program("coupling")
    rng = np.random.default_rng(0)
    n, names = 2000, ("adult", "credit")
    for name in names:
        s = rng.normal(size=n)
        table = pd.DataFrame({"a": s + rng.normal(size=n), "b": rng.normal(size=n)})
        table["c"] = pd.Categorical(np.where(table["a"] > 0, "high", "low"))
        for j in range(6):
            table[f"x{j}"] = rng.normal(size=n)
        taken = {"taken out: one": table["b"] + rng.normal(size=n), "taken out: target": (table["a"] > 0).astype(float)}
        table.assign(**taken, sensitive=s).to_parquet(tmp_path / f"{name}.parquet")
    monkeypatch.setattr(module, "METHODS", ("raw", "coupling", "leace", "repair"))
    monkeypatch.setattr(module, "HEADED", ("adult",))
    out = tmp_path / "records.jsonl"
    files = ("--tables", str(tmp_path), "--out", str(out))
    start(module, "run --splits 1 --heads 1 --only leak heads", *files)
    whole = out.read_text()
    start(module, "run --splits 1 --heads 1 --only leak heads", *files)
    assert out.read_text() == whole
    capsys.readouterr()
    start(module, "report", *files)
    text = capsys.readouterr().out
    assert "adult, coupling, 1 splits" in text
    assert "30 heads on 1 splits" in text
    records = {record["key"]: record for record in map(json.loads, whole.splitlines())}
    assert records["leak adult raw 0"]["leak"]["ridge"][0] > 0.4
    assert records["leak adult coupling 0"]["leak"]["ridge"][0] < 0.02
    assert records["leak adult leace 0"]["leak"]["ridge"][0] < 0.02
    assert records["leak adult coupling 0"]["planted"]["ridge"][0] > 0.005


@pytest.mark.slow
def test_large_audit(program, monkeypatch, tmp_path, capsys):
    module = program("large_audit")
    every = module.ways(tmp_path)
    assert [command[-1].rpartition(".")[2] for command in every.values()] == ["npz", "html", "html"]
    one = "frhsic audit, CSV"
    monkeypatch.setattr(module, "ways", lambda folder, ways=module.ways: {one: ways(folder)[one]})
    start(module, "--rows 300 --cores 1", "--out", str(tmp_path / "large.json"))
    results = json.loads((tmp_path / "large.json").read_text())
    assert results["rows"] == 300
    assert results["ways"][one]["megabytes"] > 50
    assert one in capsys.readouterr().out


@pytest.mark.slow
def test_training(program, monkeypatch, capsys):
    training = program("training")
    monkeypatch.setattr("frhsic.datasets.load_dataset", unavailable)
    start(
        training,
        "--only methods,fleet,adult,scaling --method FRHSIC --rows 100 --epochs 1 --adult-rows 100 --adult-epochs 1"
        " --sizes 5 10",
    )
    text = capsys.readouterr().out
    assert "× FRHSIC (the paper reports 36 ×)" in text
    assert "5 λ × 5 seeds" in text
    assert "45 FRHSIC models × 1 epochs on data of Adult's shape, n = 100, d = 107" in text
    assert "10 ÷ 5" in text
    assert text.count("\nFRHSIC ") == 3


def unavailable(*asked, **named):
    raise OSError


def test_cpu_peers(program, monkeypatch, tmp_path, capsys):
    """Both sides are timed and their difference is kept; a peer that is missing is named."""
    module = program("cpu_peers")

    def twice(section, same):
        ours, theirs = (lambda z, s: 1.0), (lambda: lambda z, s: 1.5)
        return module.Comparison(section, f"task of {section}", "dcor", 70, 1, ours, theirs, same=same)

    monkeypatch.setattr(module, "comparisons", lambda scale: iter([twice("hsic", True), twice("audit", False)]))
    monkeypatch.setattr(module, "PEERS", {"dcor": "json"})
    monkeypatch.setattr(module, "version", lambda name: "1")
    for section in ("hsic", "audit"):  # the second run keeps the records of the first
        start(module, f"--only {section} --repeats 1", "--out", str(tmp_path / "o.json"))
    text = capsys.readouterr().out
    assert "5.0e-01" in text
    assert "another number" in text
    records = json.loads((tmp_path / "o.json").read_text())["records"]
    assert [(record["task"], record["difference"]) for record in records] == [
        ("task of hsic", 0.5),
        ("task of audit", None),
    ]
    monkeypatch.setattr(module, "PEERS", {"dcor": "no_such_module"})
    start(module, "--only hsic", "--out", str(tmp_path / "o.json"))
    assert "dcor is not installed" in capsys.readouterr().out


def test_the_page_on_performance_has_the_table_of_the_recorded_ratios(program):
    module = program("cpu_peers")
    records = json.loads(module.RESULTS.read_text())["records"]
    assert module.table(records) in (FOLDER.parent / "docs" / "performance.md").read_text()


def test_the_page_on_performance_has_the_times_of_large_audits(program):
    module = program("large_audit")
    results = json.loads(module.OUT.read_text())
    assert module.table(results) in (FOLDER.parent / "docs" / "performance.md").read_text()
    assert all(used[unit] <= most for used in results["ways"].values() for unit, most in results["limits"].items())


def test_own_side_of_cpu_peers(program):
    module = program("cpu_peers")
    z, s = module.sample(80, 3, 0.5)
    assert len(list(module.comparisons(0.01))) == 15
    assert module.ours_hsic(2.0)(z, s) == pytest.approx(float(hsic(z, s, Gaussian(2.0), Gaussian(1.0))))
    for call in (module.ours_effect(2.0), module.ours_distance, module.ours_gamma(2.0, module.gamma_test)):
        assert 0 < call(z, s) < 1


def test_gpu(program, tmp_path, capsys):
    out = tmp_path / "gpu.json"
    start(program("gpu"), "--device cpu --least 8 --most 8 --epochs 1 --rows 64", "--out", str(out))
    text = capsys.readouterr().out
    assert "grows as n **" in text
    assert "target" in text
    found = json.loads(out.read_text())
    assert found["hsic"][0]["error"] < 1e-6 < found["training"]["45 models, hsic"]


@pytest.mark.slow
def test_scale(tmp_path):
    out, folder = tmp_path / "o.json", tmp_path / "files"

    def run():  # in a process of its own: workers import the program by its name
        sizes = ["--rows", "2000", "4000", "--part", "2000", "--columns", "4", "--features", "32", "--repeats", "1"]
        command = [sys.executable, FOLDER / "scale.py", *sizes, "--folder", folder, "--out", out]
        assert "two_workers_against_one" in subprocess.run(command, check=True, capture_output=True, text=True).stdout

    run()
    whole = json.loads(out.read_text())
    assert [run["rows"] for run in whole["runs"]] == [2000, 2000, 2000, 4000, 4000]
    assert whole["training"]["rows_per_second"] > 0
    assert whole["ratios"]["most_rows_against_least"] == 2
    assert not list(folder.iterdir())
    out.write_text(json.dumps(whole | {"runs": whole["runs"][:-1], "ratios": None}))  # cut off before the end
    run()
    assert json.loads(out.read_text())["runs"][:-1] == whole["runs"][:-1]


def test_independence(program, capsys):
    start(program("independence"), "--rows 60 --draws 1")
    *_, first, second = capsys.readouterr().out.splitlines()
    assert [json.loads(line)["d"] for line in (first, second)] == [1, 50]


def test_power(program, tmp_path, capsys):
    power = program("power")
    power.main(["--draws", "2", "--rows", "20", "--figure", str(tmp_path / "power.svg")])
    text = capsys.readouterr().out
    assert "| heteroscedastic | 20 |" in text
    assert (tmp_path / "power.svg").stat().st_size > 1000
    assert ("hyppo is not installed" in text) == (importlib.util.find_spec("hyppo") is None)


def test_certificates(program, monkeypatch, tmp_path, capsys, real):  # noqa: F811
    certificates = program("certificates")
    monkeypatch.setattr(certificates, "load_dataset", real)
    monkeypatch.setattr(certificates, "fresh_heads", quick_heads)
    options = [
        "--datasets",
        "crime",
        "--splits",
        "42",
        "--weights",
        "1",
        "--epochs",
        "1",
        "--rows",
        "300",
        "--device",
        "cpu",
    ]
    certificates.main([*options, "--models", str(tmp_path), "--out", str(tmp_path / "out.jsonl")])
    sections = [json.loads(line)["section"] for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert sections == ["forms"] * 7 + ["models"] * 6
    assert "means over splits" in capsys.readouterr().out
    assert len(list(tmp_path.glob("crime-*.npz"))) == 3


def quick_heads(task, seed):
    from sklearn.linear_model import LinearRegression

    return {"affine": LinearRegression()}


@pytest.mark.slow
def test_selection(program, monkeypatch, capsys, real):  # noqa: F811
    selection = program("selection")
    fit_path = selection.fitting.fit_path
    monkeypatch.setattr(selection, "load_dataset", real)
    start(selection, "--dataset compas --epochs 1 --weights 1,10 --splits 1 --rows 600 --refine 1")
    text = capsys.readouterr().out
    assert "within 10 % of the gain" in text
    assert "gdp <= 0.02, refined" in text
    assert selection.fitting.fit_path is fit_path


def test_serving(program, capsys):
    start(program("serving"), "--columns 3 --rows 40 --epochs 1 --repeats 3")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("| what")
    assert [line.split("|")[1].strip() for line in lines[2:]] == [
        "load the model",
        "one row, DataFrame",
        "one row, array",
        "40 rows, DataFrame",
        "`frhsic predict`, 40 rows of CSV",
    ]


@pytest.mark.slow
def test_enough(program, capsys):
    start(program("enough"), "--rows 60 --draws 2 --train 120 --seeds 1 --epochs 1")
    tables = capsys.readouterr().out.strip().split("\n\n")
    assert [len(table.splitlines()) for table in tables] == [3, 4, 7, 7]


def test_performance(program, tmp_path):
    module = program("performance")
    module.main(["--out", str(tmp_path / "figure.svg")])
    assert (tmp_path / "figure.svg").stat().st_size > 10_000
    lines = module.drawn(json.loads(module.RECORDS.read_text())).axes[0].get_lines()
    assert [len(line.get_xdata()) for line in lines] == [5, 5, 7, 4]
    assert lines[2].get_ydata()[-1] > lines[3].get_ydata()[-1]  # random features win at a million rows


def test_theorem_pictures(program, monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(FOLDER)
    module = program("theorem_pictures")
    start(module, "--only discrete --out", str(tmp_path))
    assert (tmp_path / "theorem-discrete.svg").stat().st_size > 10_000
    right, left = module.decomposition().axes[0].get_lines()[0].get_data()
    assert (left < right).all()
    bound, drawn = (line.get_ydata() for line in module.root_n().axes[0].get_lines())
    assert all(0.9 * b < d <= b for b, d in zip(bound, drawn, strict=True))
    *ages, total, joint = (bar.get_height() for bar in module.disintegration().axes[1].patches)
    assert [total, joint] == pytest.approx([sum(ages)] * 2)
    folder = FOLDER.parent / "docs" / "figures"
    assert {path.stem.removeprefix("theorem-") for path in folder.glob("theorem-*.svg")} == set(module.PICTURES)


def test_frem_rounding(program, monkeypatch, capsys, real):  # noqa: F811
    pytest.importorskip("frhsic_paper")
    frem = program("frem_rounding")
    monkeypatch.setattr(frem, "loaded", lambda name, protocol: real(name, protocol.variant))
    start(frem, "--weights 50 --splits 1 --epochs 1 --rows 300")
    assert [line.split()[4:6] for line in capsys.readouterr().out.splitlines()] == [["one", "form"], ["three", "sums"]]


@pytest.mark.slow
@pytest.mark.parametrize("stage", ["screen", "final"])
def test_unsupervised(program, monkeypatch, tmp_path, real, capsys, stage):  # noqa: F811
    monkeypatch.syspath_prepend(FOLDER)
    module = program("unsupervised")
    module.loaded = real
    sees_s = replace(module.DEFAULT, decoder_sees_s=True, weights=(1.0,))
    module.SCREEN = tuple(replace(c, epochs=1) for c in (module.PUBLISHED, sees_s))
    module.FINAL = (module.Estimator("frhsic", partial(ParityEncoder.published, epochs=1), (1.0,)),)
    out = tmp_path / "records.jsonl"
    options = f"--{stage} --datasets compas --rows 40 --device cpu --out {out}"
    start(module, options)
    text = capsys.readouterr().out
    assert "raw columns" in text
    assert ("test rows" in text) == (stage == "final")
    records = [json.loads(line) for line in out.read_text().splitlines()]
    assert {"LEACE", "PCA of residuals", "frhsic"} <= {record["method"] for record in records}
    start(module, options)  # nothing is left to do
    assert len(out.read_text().splitlines()) == len(records)


def test_erasure_leaves_no_linear_trace(program):
    """Covariance with the concept is 0, and what is uncorrelated with it already is not touched."""
    module = program("unsupervised")
    rng = np.random.default_rng(0)
    concept = rng.normal(size=(300, 2))
    x = np.hstack([concept @ rng.normal(size=(2, 3)) + rng.normal(size=(300, 3)), np.zeros((300, 1))])
    left, _ = module.erased((x, x), concept)
    assert np.abs((concept - concept.mean(0)).T @ left).max() < 1e-9
    again, _ = module.erased((left, left), concept)
    np.testing.assert_allclose(again, left, atol=1e-9)


def test_the_screen_without_a_target_trained_an_encoder_of_the_library(program):
    module = program("unsupervised")
    rng = np.random.default_rng(0)
    s, x = rng.uniform(size=(300, 1)), rng.uniform(size=(300, 4))
    s[:2, 0], x[:2] = (0, 1), [[0] * 4, [1] * 4]  # scaled already
    rows = module.Rows(x, x[:, :1], s)
    task = module.Task(7, ("first",), rows, rows)
    screened = replace(module.DEFAULT, epochs=2, weights=(10.0,))
    (_, (z, _)), *_ = screened.representations(task, "cpu")
    model = ParityEncoder(
        HSIC(10 * (Linear() + Gaussian(1.0)), head_weight=0.0),
        encoder=MLP(),
        training=Training(epochs=2),
        scaling="range",
        random_state=7,
        device="cpu",
    ).fit(x, sensitive_features=s)
    np.testing.assert_allclose(z, model.transform(x), atol=1e-5)


def test_the_page_on_representations_shows_the_records(program):
    """Every row of the page's table is one of the records' table, and so are the means in its text."""
    module = program("unsupervised_report")
    rows = set(module.table(module.read()).splitlines())
    page = (FOLDER.parent / "docs" / "representations.md").read_text(encoding="utf-8")
    shown = [line.replace("**", "") for line in page.splitlines() if "→" in line and line.startswith("|")]
    assert len(shown) == 13  # twelve rows and the header
    assert set(shown) <= rows
    means = {key: np.mean(list(found.values()), axis=0) for key, found in module.shares(module.read()).items()}
    for key, words in {
        ("residuals", 3.0): "residuals leak {0:.0f} % of what the raw columns do at {2:.0f} % of the recovery",
        ("frhsic", 10.0): "FRHSIC {0:.0f} % at {2:.0f} %",
        ("residuals", 10.0): "residuals (10) leak {0:.0f} at {2:.0f}",
        ("frhsic", 100.0): "FRHSIC (100) {0:.0f} at {2:.0f}",
    }.items():
        assert words.format(*means[key]) in " ".join(page.split()), key


@pytest.mark.slow
def test_peers(program, monkeypatch, tmp_path, capsys):
    pytest.importorskip("fairlearn")
    module = program("peers")
    own = {"fairlearn": module.fairlearn_trials, "not-there": module.dcor_trials}
    monkeypatch.setattr(module, "LIBRARIES", own)
    start(module, "", "--out", str(tmp_path / "peers.json"))
    assert "not-there: not run" in capsys.readouterr().out
    record = json.loads((tmp_path / "peers.json").read_text(encoding="utf-8"))
    kept = json.loads((FOLDER / "results" / "peers.json").read_text(encoding="utf-8"))
    outcomes = [
        {key: trial[key] for key in ("task", "call", "outcome")} for trial in kept["libraries"]["fairlearn"]["trials"]
    ]
    assert outcomes == [
        {key: trial[key] for key in ("task", "call", "outcome")} for trial in record["libraries"]["fairlearn"]["trials"]
    ]


def test_yardsticks(program, monkeypatch, tmp_path, capsys):
    """Contraction keeps ranks and decisions, so it reaches a level of GDP and no level of the rank gap."""
    pytest.importorskip("lightgbm")
    module = program("yardsticks")
    rng = np.random.default_rng(0)
    s, other = rng.uniform(size=(2, 2000))
    y = (rng.uniform(size=2000) < 0.1 + 0.5 * s + 0.3 * other).astype(float)
    rows = module.Rows(pd.DataFrame({"a": s, "b": other}), y, s, True)
    monkeypatch.setattr(module, "load", lambda name, folder: rows)
    monkeypatch.setattr(module, "RECORDS", tmp_path / "records.parquet")
    out, methods = str(tmp_path / "records.jsonl"), "LightGBM;LightGBM, contracted"
    start(module, "run --tables adult --splits 3 --jobs 1", "--out", out, "--methods", methods)
    lines = Path(out).read_text().splitlines()
    assert len(lines) == 3 * 2 * (1 + 16)
    start(module, "run --tables adult --splits 3 --jobs 1", "--out", out, "--methods", methods)  # nothing is left
    assert Path(out).read_text().splitlines() == lines
    start(module, "ship", out)
    start(module, "report")
    (row,) = (line for line in capsys.readouterr().out.splitlines() if line.startswith("| LightGBM, contracted | **0"))
    loss, auc = row.split(" | ")[1:4], row.split(" | ")[4:7]
    assert all(cell.startswith("**") for cell in loss)
    assert auc == ["–"] * 3


def test_rank_gap_of_the_yardsticks_is_the_mean_gap_of_nine_decisions(program):
    pytest.importorskip("lightgbm")
    module = program("yardsticks")
    rng = np.random.default_rng(0)
    s = rng.uniform(size=500)
    f = np.round(s + rng.normal(size=500), 1)  # ties
    by_hand = np.mean([float(gdp((f > np.quantile(f, k / 10)).astype(float), s, resamples=0)) for k in range(1, 10)])
    assert module.rank_gap(f, s) == pytest.approx(by_hand, rel=1e-12)
    assert module.rank_gap(np.ones(500), s) == 0
    assert sorted(np.concatenate(module.split_rows(101, 3))) == list(range(101))
