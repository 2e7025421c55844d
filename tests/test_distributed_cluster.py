"""A cluster of two processes: files from the command line, a worker that dies, a scheduler that does not answer."""

import json
import time

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from frhsic import distributed
from frhsic.auditing import Settings
from frhsic.cli import app
from frhsic.distributed.frames import file_columns, read_files, table_files
from frhsic.parity import gdp
from workers_that_die import dying_worker

dask = pytest.importorskip("dask")
dd = pytest.importorskip("dask.dataframe")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

QUICK = Settings(max_rows=100, probe_rows=100, resamples=50)


@pytest.fixture
def scheduler():
    """A cluster whose two workers are threads of this process, which need not import anything again."""
    from distributed import LocalCluster

    options = {"processes": False, "protocol": "tcp", "dashboard_address": None}
    with LocalCluster(n_workers=2, threads_per_worker=1, **options) as cluster:
        yield cluster.scheduler_address


def table(n=4000):
    rng = np.random.default_rng(0)
    age = rng.uniform(20, 70, n)
    return pd.DataFrame({"age": age, "p": 1 / (1 + np.exp(-(age - 45) / 20 + rng.normal(size=n)))})


@pytest.mark.slow
def test_a_worker_that_dies_in_an_audit_changes_nothing():
    frame = table()
    parts = dd.from_pandas(frame, npartitions=8)

    def slow(part, partition_info=None):
        time.sleep(0.1)
        return part

    options = {"sensitive": "age", "score": "p", "settings": QUICK}
    with dask.config.set(scheduler="sync"):
        calm = distributed.audit(parts, **options)
    with dying_worker() as address, distributed.cluster(address):
        stormy = distributed.audit(parts.map_partitions(slow, meta=frame.iloc[:0]), **options)
    assert json.loads(stormy.to_json())["attributes"] == json.loads(calm.to_json())["attributes"]


def test_files_are_audited_from_the_command_line(scheduler, tmp_path):
    frame = table()
    for i, part in enumerate(np.array_split(np.arange(len(frame)), 3)):
        frame.iloc[part].to_parquet(tmp_path / f"part-{i}.parquet")
    out = tmp_path / "report.html"
    words = ["audit", str(tmp_path / "part-*.parquet"), "-s", "age", "--score", "p", "--scheduler", scheduler]
    result = CliRunner().invoke(app, [*words, "--json", "-o", str(out), "--max-rows", "100"])
    assert result.exit_code == 0, result.output
    number = json.loads(result.stdout)["attributes"][0]["all_rows"]["numbers"][0]
    exact = gdp(frame["p"], frame["age"], resamples=0)
    assert (number["key"], number["rows"]) == ("gdp", 4000)
    assert number["value"] == pytest.approx(exact.value, abs=2e-4)
    assert "random sample of 4,000" in out.read_text(encoding="utf-8")


def test_a_scheduler_that_does_not_answer_is_told():
    message = r"no scheduler answers at tcp://127\.0\.0\.1:1 within 0\.5 s"
    with pytest.raises(ConnectionError, match=message), distributed.cluster("tcp://127.0.0.1:1", timeout=0.5):
        pass


def test_files_of_different_schemas_are_read_or_told(tmp_path):
    frame = table(100)
    frame.round(0).astype({"age": int}).to_parquet(tmp_path / "a.parquet", row_group_size=30)
    frame.to_parquet(tmp_path / "b.parquet")
    paths = table_files(str(tmp_path))
    with dask.config.set(scheduler="sync"):
        read = read_files(paths, ["age", "p"]).compute()
    np.testing.assert_allclose(read["age"], [*frame["age"].round(0), *frame["age"]])
    frame.rename(columns={"p": "q"}).to_parquet(tmp_path / "c.parquet")
    with pytest.raises(ValueError, match=r"c\.parquet has no column 'p'; its columns are age, q"):
        read_files(table_files(str(tmp_path)), ["age", "p"])
    frame.to_csv(tmp_path / "d.csv")
    with pytest.raises(ValueError, match="pass Parquet or CSV alone"):
        table_files(str(tmp_path / "*"))


@pytest.mark.parametrize(("ending", "separator"), [("csv", ","), ("tsv", "\t")])
def test_text_files_are_read(ending, separator, tmp_path):
    frame = pd.DataFrame({"age": [30, 40, 50, 60], "p": [0.1, 0.2, 0.3, 0.4], "job": list("abcd")})
    for number, part in enumerate((frame[:2], frame[2:])):
        part.to_csv(tmp_path / f"part-{number}.{ending}", sep=separator, index=False)
    paths = table_files(str(tmp_path / f"part-*.{ending}"))
    assert file_columns(paths[0]) == ["age", "p", "job"]
    read = read_files(paths, ["p", "age"]).compute(scheduler="sync").reset_index(drop=True)
    pd.testing.assert_frame_equal(read[["age", "p"]], frame[["age", "p"]])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--model", "m.frhsic"], "are not used with --scheduler"),
        (["--score", "p", "--delimiter", ";"], "are not used with --scheduler"),
        (["--embedding", "age"], "nothing is left to audit"),
    ],
)
def test_what_a_cluster_does_not_do_is_told(more, said, tmp_path):
    pd.DataFrame({"age": [30.0], "p": [0.1]}).to_parquet(tmp_path / "t.parquet")
    result = CliRunner().invoke(
        app, ["audit", str(tmp_path / "t.parquet"), "-s", "age", "--scheduler", "local:1", "--json", *more]
    )
    assert result.exit_code == 2
    assert said in result.stderr


def test_a_cluster_on_this_machine_has_the_workers_that_were_asked_for():
    with distributed.cluster("local:1") as client:
        assert len(client.scheduler_info()["workers"]) == 1
        assert client.submit(sum, [1, 2]).result() == 3
