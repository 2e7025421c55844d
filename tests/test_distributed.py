"""Data past one machine: what is computed on parts is what all rows in memory give, and partitions
do not matter.
"""

import json
import math
import time

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from typer.testing import CliRunner

from estimator_samples import biased
from frhsic import FRHSICClassifier, audit, distributed
from frhsic.auditing import Settings
from frhsic.auditing.results import Number
from frhsic.cli import app
from frhsic.dependence import hsic_features
from frhsic.dependence.features import draw_feature_maps
from frhsic.distributed.features import FeaturePlan
from frhsic.distributed.frames import file_columns, hash_numbers, read_files, table_files
from frhsic.estimators.network import FitArguments
from frhsic.independence import hsic_interval
from frhsic.independence.features import feature_moments, feature_test
from frhsic.kernels import Gaussian, Laplacian
from frhsic.parity import gdp, gdp_curve, standardized_gdp
from frhsic.report import render
from frhsic.selection.weights import fit_weights
from frhsic.training import Training
from workers_that_die import dying_worker

pytestmark = [
    pytest.mark.usefixtures("few_trees"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
]

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")

QUICK = Settings(max_rows=100, probe_rows=100, resamples=50)


def people(n=3000, *, rare=False):
    rng = np.random.default_rng(0)
    age = np.where(rng.random(n) < 0.3, 0.0, rng.gamma(4, 10, n))  # zero-inflated and skewed
    score = 1 / (1 + np.exp(-(age / 30 - 1 + rng.normal(size=n))))
    paid = np.where(rng.random(n) < (score / 50 if rare else score), "yes", "no")
    return pd.DataFrame(
        {
            "score": score,
            "age": age,
            "paid": paid,
            "bonus": rng.integers(0, 5, n),
            "x": rng.normal(size=n),
        }
    )


def run(frame, partitions, **options):
    parts = (
        frame if partitions is None else dd.from_pandas(frame, npartitions=partitions, sort=False)
    )
    options = {"sensitive": "age", "score": "score", "settings": QUICK} | options
    with dask.config.set(scheduler="sync"):
        return distributed.audit(parts, **options)


def differences(a, b, path=""):
    """Yield where two documents differ by more than rounding."""
    if isinstance(a, dict):
        for key in a:
            yield from differences(a[key], b[key], f"{path}/{key}")
    elif isinstance(a, list):
        assert len(a) == len(b), path
        for i, (one, other) in enumerate(zip(a, b)):
            yield from differences(one, other, f"{path}/{i}")
    elif isinstance(a, float) and isinstance(b, float):
        if not math.isclose(a, b, rel_tol=1e-12, abs_tol=1e-15):
            yield f"{path}: {a} {b}"
    elif a != b:
        yield f"{path}: {a} {b}"


@pytest.fixture(scope="module")
def audited():
    frame = people(12_000)
    frame.loc[10:40, "score"] = np.nan
    options = {"target": "paid", "positive": "yes", "limit": "gdp <= 10% of base rate"}
    return frame, {count: run(frame, count, **options) for count in (1, 7)}


def test_partitions_do_not_matter(audited):
    documents = {count: json.loads(result.to_json()) for count, result in audited[1].items()}
    assert list(differences(documents[1], documents[7])) == []


def test_gaps_among_equals_are_those_in_memory_whatever_the_partitions():
    frame = people(6000)
    frame["job"] = np.random.default_rng(1).choice(
        ["cook", "nurse", "diver"], 6000, p=[0.6, 0.395, 0.005]
    )
    frame["score"] += 0.2 * (frame["job"] == "nurse")
    frame["paid"] = (frame["paid"] == "yes") * 1.0
    frame.loc[100:120, "job"] = None
    fast = Settings(fast=True, resamples=4000)  # which know a standard error to 1 %
    options = {
        "target": "paid",
        "control_features": "job",
        "settings": fast,
        "limit": "within <= 0.4",
        "sample_rows": 3000,
    }
    results = {count: run(frame, count, **options) for count in (1, 5)}
    documents = [json.loads(result.to_json()) for result in results.values()]
    assert list(differences(*documents)) == []
    exact = audit(
        frame["score"],
        frame["age"],
        frame["paid"],
        control_features=frame["job"],
        settings=fast,
    )["age"].all_rows.within
    within = results[5]["age"].all_rows.within
    assert [*within.strata] == [*exact.strata] == ["cook", "nurse", "other"]
    for number, same in zip(within.numbers, exact.numbers):
        assert number.rows == same.rows == 6000  # in windows whose borders are of the sample
        assert number.value == pytest.approx(same.value, abs=0.25 * same.standard_error)
        assert number.standard_error == pytest.approx(same.standard_error, rel=0.02)
    whole = run(frame, 2, **options | {"sample_rows": 6000})["age"].all_rows.within
    for number, same in zip(whole.numbers, exact.numbers):
        assert number.value == pytest.approx(same.value, rel=1e-9)
        assert number.standard_error == pytest.approx(same.standard_error, rel=1e-9)
    for name, stratum in within.strata.items():
        assert stratum.rows == exact.strata[name].rows
        assert stratum.curves["gdp"].overall == pytest.approx(
            exact.strata[name].curves["gdp"].overall
        )
    assert within.between == pytest.approx(exact.between, rel=0.02)
    assert within.differences[0].after == within["gdp"].value
    assert results[5].limits[0].among == "equal"
    (note,) = (note for note in results[5].context.remarks if "merged" in note)
    assert note.startswith("In the random sample: 1 small group with the same job was merged")


def test_all_rows_give_the_numbers_of_the_audit_in_memory(audited):
    frame, results = audited
    kept, result = frame.dropna(), results[7]
    numbers = result["age"].all_rows
    assert (result.rows.given, result.rows.dropped, result.rows.used) == (12_000, 31, 11_969)
    for key, function in (("gdp", gdp), ("standardized_gdp", standardized_gdp)):
        exact = function(kept["score"], kept["age"], resamples=50)
        assert numbers[key].rows == exact.n
        assert numbers[key].value == pytest.approx(exact.value, abs=0.02 * exact.standard_error)
        assert numbers[key].standard_error == pytest.approx(exact.standard_error, rel=1e-3)
        assert (numbers[key].interval.low, numbers[key].interval.high) == pytest.approx(
            exact.interval, rel=1e-3
        )
    curve = gdp_curve(kept["score"], kept["age"])
    means = numbers.curves["gdp"]
    np.testing.assert_allclose(means.mean, curve.mean, rtol=1e-12)
    np.testing.assert_allclose(means.low, curve.lower, rtol=1e-10)
    np.testing.assert_allclose(means.start, curve.start)
    np.testing.assert_allclose(means.grid, curve.at)
    y = (kept["paid"] == "yes").astype(float)
    decided = (kept["score"] >= 0.5).astype(float)
    columns = {
        "decision_gdp": decided,
        "error_gdp": (decided != y).astype(float),
        "calibration_gdp": y - kept["score"],
    }
    for key, column in columns.items():
        curve, exact = gdp_curve(column, kept["age"]), gdp(column, kept["age"], resamples=50)
        np.testing.assert_allclose(numbers.curves[key].mean, curve.mean, rtol=1e-9)
        if key != "calibration_gdp":  # whose band is that of the scores
            np.testing.assert_allclose(numbers.curves[key].high, curve.upper, rtol=1e-8)
        assert numbers[key].value == pytest.approx(exact.value, abs=0.05 * exact.standard_error)
    settings = Settings(fast=True, resamples=20)
    memory = audit(kept["score"], kept["age"], y, settings=settings)["age"].all_rows
    for key in ("calibration_gdp", "calibration_windows"):
        np.testing.assert_allclose(numbers.curves[key].low, memory.curves[key].low, rtol=1e-8)
        np.testing.assert_allclose(numbers.curves[key].high, memory.curves[key].high, rtol=1e-8)
    favoured = kept[kept["paid"] == "yes"]
    exact = gdp(favoured["score"], favoured["age"], resamples=50)
    assert result["age"].positives["gdp"].value == pytest.approx(
        exact.value, abs=0.02 * exact.standard_error
    )
    assert result["age"].positives.rows == len(favoured)
    assert sum(result["age"].histogram.counts) == len(kept)
    assert result.subject.base_rate.value == pytest.approx(
        (kept["paid"] == "yes").mean(), rel=1e-12
    )
    assert result.limits[0].interval == numbers["gdp"].interval
    assert result.rows.sample == 11_969


def test_hsic_is_that_of_the_features_on_all_rows(audited):
    frame, results = audited
    kept, number = frame.dropna(), results[7]["age"].all_rows["hsic"]
    widths = [
        float(number.settings[f"kernel on {v}"].partition("=")[2].rstrip(")")) for v in ("z", "s")
    ]

    exact = hsic_features(
        kept["score"], kept["age"], *map(Gaussian, widths), features=128, random_state=0
    )
    assert number.settings["biased"] == pytest.approx(
        exact.value, rel=1e-3
    )  # the text rounds the bandwidth
    assert number.standard_error > exact.standard_error
    assert number.pvalue < 1e-6
    assert number.interval.low < number.value < number.interval.high


def test_the_test_by_features_has_its_level_with_ties_and_few_features():
    rng, rejected = np.random.default_rng(4), 0
    for draw in range(300):
        z, s = rng.exponential(size=(400, 1)), rng.integers(0, 3, (400, 1)).astype(float)
        maps = draw_feature_maps(Gaussian(1.0), Gaussian(1.0), 1, 1, features=32, random_state=draw)
        moments = feature_moments(maps, torch.from_numpy(z), torch.from_numpy(s))
        rejected += feature_test(maps, moments).pvalue < 0.05
    assert 3 <= rejected <= 29  # the binomial 99.9 % band of 300 draws


@pytest.mark.parametrize("strength", [0.0, 0.1, 0.8])
def test_the_interval_of_hsic_by_features_holds_the_population_value(strength):
    z, s = (
        np.arange(4.0),
        np.array([0.0, 0.0, 1.0, 5.0]),
    )  # tied and skewed, with half of the rows at 0
    joint = (1 - strength) * np.full((4, 4), 1 / 16) + strength * np.eye(4) / 4
    k, l = (np.exp(-((x[:, None] - x) ** 2) / 2) for x in (z, s))
    signed = joint - 1 / 16  # both margins are uniform
    truth = np.einsum("ij,kl,ik,jl->", signed, signed, k, l)
    rng, held = np.random.default_rng(5), 0
    for draw in range(80):
        cell = rng.choice(16, size=1500, p=joint.ravel())
        rows = [torch.from_numpy(x[i][:, None]) for x, i in ((z, cell // 4), (s, cell % 4))]
        maps = draw_feature_maps(Gaussian(1.0), Gaussian(1.0), 1, 1, features=64, random_state=draw)
        effect = hsic_interval(rows[0][:150], rows[1][:150], Gaussian(1.0), Gaussian(1.0))
        sample = Number("hsic", effect.value, 150, effect.interval)
        plan = FeaturePlan(maps, np.ones(1))
        number = plan.number(sample, feature_moments(maps, *rows), QUICK.confidence)
        held += number.interval.low <= truth <= number.interval.high
        assert number.interval.high - number.interval.low < 8 * number.standard_error
    assert held >= 70  # 95 % of 80 less three standard errors


def test_hashes_are_uniform_and_do_not_repeat():
    keys = hash_numbers(np.arange(100_000, dtype=np.uint64), 7)
    assert len(np.unique(keys)) == len(keys)
    counts = np.bincount((keys % np.uint64(5)).astype(int))
    assert np.abs(counts - 20_000).max() < 5 * math.sqrt(20_000 * 0.8)


def test_several_labels_count_as_one():
    frame = people(2000)
    frame.loc[::5, "paid"] = "late"
    several = run(frame, 2, target="paid", positive=["yes", "late"], sample_rows=1000)
    frame.loc[::5, "paid"] = "yes"
    one = run(frame, 2, target="paid", positive="yes", sample_rows=1000)
    assert several["age"].positives == one["age"].positives
    assert several["age"].positives.rows == (frame["paid"] == "yes").sum()


def test_rare_favourable_rows_have_a_sample_of_their_own():
    frame = people(6000, rare=True)
    result = run(frame, 3, target="paid", positive="yes", sample_rows=1000)
    favoured = int((frame["paid"] == "yes").sum())
    assert 50 < favoured < 120
    assert result["age"].positives.rows == favoured
    assert result["age"].positives["squared_distance_correlation"].rows == min(favoured, 100)
    assert result["age"].all_rows["probe_trees"].rows == 100
    # the groups of rows that a gap is summed over come from the sample
    exact = gdp(frame["score"], frame["age"], resamples=50)
    found = result["age"].all_rows["gdp"]
    assert found.value == pytest.approx(exact.value, abs=0.1 * exact.standard_error)
    assert tuple(found.interval) == pytest.approx(exact.interval, abs=0.15 * exact.standard_error)


def test_faulty_partitions_give_the_right_result_or_a_clear_error():
    frame = people(1200)
    late = frame[800:].assign(age=[None, *frame["age"][801:]])
    mixed = frame[400:800].assign(score=lambda f: f["score"].astype(object))

    def joined(*pieces):
        return dd.from_delayed(
            [dask.delayed(piece) for piece in pieces], meta=frame.iloc[:0], verify_meta=False
        )

    result = run(joined(frame[:400], frame[400:400], mixed, late), None)
    assert (result.rows.given, result.rows.used) == (1200, 1199)
    kept = frame.drop(index=800)
    exact = gdp(kept["score"], kept["age"], resamples=50)
    assert result["age"].all_rows["gdp"].value == pytest.approx(
        exact.value, abs=0.05 * exact.standard_error
    )
    faulty = [
        (
            frame.assign(age="old"),
            TypeError,
            "partition 1: column 'age' is not numeric: it contains 'old'",
        ),
        (frame.assign(score=np.inf), ValueError, "partition 1: column 'score'"),
        (frame.drop(columns="age"), ValueError, r"partition 1: columns \['age'\] not in index"),
    ]
    for second, error, message in faulty:
        with pytest.raises(error, match=message):
            run(joined(frame[:400], second), None)
    with pytest.raises(TypeError, match="Dask data frame"):
        run(frame, None)


@pytest.mark.parametrize(
    ("change", "options", "message"),
    [
        ({}, {"score": None}, "nothing to audit"),
        ({}, {"score": "points"}, "no column 'points'"),
        ({"age": 3.0}, {}, "age is constant"),
        ({"age": np.nan}, {}, "0 of 3000 rows have a value for score and age"),
        ({}, {"target": "paid", "positive": "maybe"}, "0 of 3,000 rows have 'maybe' as paid"),
        ({}, {"sample_rows": 10}, "sample_rows=10"),
        ({}, {"sensitive": []}, "sensitive is empty; name at least one column"),
    ],
)
def test_bad_input_is_told(change, options, message):
    with pytest.raises(ValueError, match=message):
        run(people().assign(**change), 2, **options)


def test_a_representation_without_scores_has_no_gap():
    frame = people(1200)
    result = run(frame, 2, score=None, embedding=["score", "x"])
    numbers = result["age"].all_rows
    assert (numbers.rows, numbers["hsic"].rows) == (1200, 1200)
    assert numbers.curves == {}
    assert (result.subject.base_rate, result.subject.threshold) == (None, None)
    assert numbers.get("gdp") is None
    headed = run(frame, 2, score=None, embedding=["score", "x"], target="paid", positive="yes")
    shown = render(headed)  # of the head that was fitted on the sample
    assert "Share above the threshold" in shown


def test_a_stated_threshold_decides_and_other_scores_have_no_decisions():
    frame = people(1200)
    result = run(frame, 2, threshold=0.3)
    decided = gdp_curve((frame["score"] >= 0.3).astype(float), frame["age"])
    np.testing.assert_allclose(
        result["age"].all_rows.curves["decision_gdp"].mean, decided.mean, rtol=1e-12
    )
    assert (result.subject.threshold, result.subject.threshold_stated) == (0.3, True)
    other = run(frame.assign(score=10 * frame["score"]), 2)
    assert "decision_gdp" not in other["age"].all_rows.curves
    assert (other.subject.threshold, other.subject.threshold_stated) == (None, False)


def test_an_attribute_that_is_constant_among_the_favoured_has_no_equal_opportunity():
    frame = people(1200)
    rank = (frame["age"] == 0).cumsum()
    frame["paid"] = np.where(
        (frame["age"] == 0) & (rank <= 60), "yes", "no"
    )  # all of them in the first partitions
    result = run(frame, 4, target="paid", positive="yes")
    assert result["age"].positives is None


# clusters and files
# --------------------------------------------------------------------------------------------------


@pytest.fixture
def scheduler():
    """A cluster whose two workers are threads of this process, which need not import anything
    again.
    """
    from distributed import LocalCluster

    options = {"processes": False, "protocol": "tcp", "dashboard_address": None}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


@pytest.mark.slow
def test_a_worker_that_dies_in_an_audit_changes_nothing():
    frame = people(4000)[["age", "score"]]
    parts = dd.from_pandas(frame, npartitions=8)

    def slow(part, partition_info=None):
        time.sleep(0.1)
        return part

    options = {"sensitive": "age", "score": "score", "settings": QUICK}
    with dask.config.set(scheduler="sync"):
        calm = distributed.audit(parts, **options)
    with dying_worker() as address, distributed.cluster(address):
        stormy = distributed.audit(parts.map_partitions(slow, meta=frame.iloc[:0]), **options)
    assert json.loads(stormy.to_json())["attributes"] == json.loads(calm.to_json())["attributes"]


def test_files_are_audited_from_the_command_line(scheduler, tmp_path):
    frame = people(4000)[["age", "score"]]
    frame["paid"] = np.where(frame["score"] > frame["score"].median(), "Yes", "no")
    frame.loc[::2, "paid"] = frame["paid"].str.lower()
    for i, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"part-{i}.parquet")
    out = tmp_path / "report.html"
    words = [
        "audit",
        str(tmp_path / "part-*.parquet"),
        "-s",
        "age",
        "--score",
        "score",
        "--scheduler",
        scheduler,
        "-t",
        "paid",
        "--positive",
        "yes",
    ]
    result = CliRunner().invoke(app, [*words, "--json", "-o", str(out), "--max-rows", "100"])
    assert result.exit_code == 0, result.output
    number = json.loads(result.stdout)["attributes"][0]["all_rows"]["numbers"][0]
    exact = gdp(frame["score"], frame["age"], resamples=0)
    assert (number["key"], number["rows"]) == ("gdp", 4000)
    assert number["value"] == pytest.approx(exact.value, abs=2e-4)
    assert "random sample of at most 4,000" in out.read_text(encoding="utf-8")
    counts = "Target 'paid': 1 is 'yes' (2,000 rows); 0 (2,000 rows)."
    assert json.loads(result.stdout)["context"]["remarks"] == [counts]


def test_a_scheduler_that_does_not_answer_is_told():
    message = r"no scheduler answered at tcp://127\.0\.0\.1:1 within 0\.5 s"
    with (
        pytest.raises(ConnectionError, match=message),
        distributed.cluster("tcp://127.0.0.1:1", timeout=0.5),
    ):
        pass


def test_a_few_columns_of_wide_files_are_audited(tmp_path):
    """Dask joins such files, and how many depends on the columns and their order."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame(rng.uniform(size=(2000, 51)), columns=[f"c{i}" for i in range(51)])
    for name in ("1", "2"):
        wide.to_parquet(tmp_path / f"{name}.parquet")
    frame = read_files(sorted(map(str, tmp_path.glob("*.parquet"))), ["c0", "c1"])
    assert len(frame[["c1", "c0"]].to_delayed()) < len(frame[["c1"]].to_delayed())
    assert distributed.audit(frame, sensitive="c0", score="c1").rows.used == 4000


def test_files_of_different_schemas_are_read_or_told(tmp_path):
    frame = people(100)[["age", "score"]]
    frame.round(0).astype({"age": int}).to_parquet(tmp_path / "a.parquet", row_group_size=30)
    frame.to_parquet(tmp_path / "b.parquet")
    paths = table_files(str(tmp_path))
    with dask.config.set(scheduler="sync"):
        read = read_files(paths, ["age", "score"]).compute()
    np.testing.assert_allclose(read["age"], [*frame["age"].round(0), *frame["age"]])
    frame.rename(columns={"score": "q"}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(
        ValueError, match=r"c\.parquet has no column 'score'; its columns are age, q"
    ):
        read_files(table_files(str(tmp_path)), ["age", "score"])
    frame.to_csv(tmp_path / "d.csv")
    with pytest.raises(ValueError, match="pass either Parquet or CSV files, not both"):
        table_files(str(tmp_path / "*"))


@pytest.mark.parametrize(("ending", "separator"), [("csv", ","), ("tsv", "\t")])
def test_text_files_are_read(ending, separator, tmp_path):
    frame = people(4)
    for number, part in enumerate((frame[:2], frame[2:])):
        part.to_csv(tmp_path / f"part-{number}.{ending}", sep=separator, index=False)
    paths = table_files(str(tmp_path / f"part-*.{ending}"))
    assert file_columns(paths[0]) == list(frame)
    read = read_files(paths, ["score", "age"]).compute(scheduler="sync").reset_index(drop=True)
    pd.testing.assert_frame_equal(read[["age", "score"]], frame[["age", "score"]])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "m.frhsic"], "cannot be used with --scheduler"),
        (["--score", "score", "--delimiter", ";"], "cannot be used with --scheduler"),
        (["--embedding", "age"], "nothing is left to audit"),
        (["--score", "skore"], "t.parquet has no column 'skore'. Did you mean 'score'?"),
    ],
)
def test_what_a_cluster_does_not_do_is_told(more, said, tmp_path):
    people(1).to_parquet(tmp_path / "t.parquet")
    result = CliRunner().invoke(
        app,
        [
            "audit",
            str(tmp_path / "t.parquet"),
            "-s",
            "age",
            "--scheduler",
            "local:1",
            "--json",
            *more,
        ],
    )
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_cluster_on_this_machine_has_the_workers_that_were_asked_for():
    with distributed.cluster("local:1") as client:
        assert len(client.scheduler_info()["workers"]) == 1
        assert client.submit(sum, [1, 2]).result() == 3


# training
# --------------------------------------------------------------------------------------------------


def test_fleets_as_tasks_give_the_models_of_one_fleet():
    X, y, s = biased(300)
    model, weights = FRHSICClassifier(training=Training(epochs=2), random_state=0), [0.0, 1.0, 10.0]
    given = FitArguments(X, y, s)
    whole = fit_weights(model, weights, given)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        tasks = fit_weights(model, weights, given)
    for one, other in zip(whole, tasks):
        assert one.penalty_weight == other.penalty_weight
        np.testing.assert_allclose(one.predict_proba(X), other.predict_proba(X), rtol=1e-4)


# HSIC of parts
# --------------------------------------------------------------------------------------------------


def quadratic(n=9000):
    rng = np.random.default_rng(0)
    s = rng.normal(size=(n, 1))
    return np.hstack([s**2, rng.normal(size=(n, 2))]) + 0.1 * rng.normal(size=(n, 3)), s


KERNELS = (Gaussian(1.5), Laplacian(1.0))


@pytest.mark.parametrize("cuts", [[1, 2, 8999], [1000, 5000]])
def test_parts_of_any_size_give_the_number_of_the_whole(cuts):
    z, s = quadratic()
    whole = hsic_features(z, s, *KERNELS, random_state=3)
    apart = distributed.hsic_of_parts(
        zip(np.split(z, cuts), np.split(s, cuts)), *KERNELS, random_state=3
    )
    assert float(apart) == pytest.approx(float(whole), rel=1e-10)
    assert apart.standard_error == pytest.approx(whole.standard_error, rel=1e-8)
    assert apart.n == whole.n


def test_bad_parts_are_named():
    with pytest.raises(ValueError, match="no parts"):
        distributed.hsic_of_parts([], *KERNELS)
    z, s = quadratic(10)
    with pytest.raises(ValueError, match="z of part 1 is NaN or infinite in 1 of"):
        distributed.hsic_of_parts(
            [(z, s), (np.full((1, 3), 1.0) * [[np.nan, 1, 1]], s[:1])], *KERNELS
        )
