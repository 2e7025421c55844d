"""The study of prototypes: who sees which rows, the head that is trained to its end, and who is the
better of two.
"""

import numpy as np
import pytest
import torch
from pytest import approx
from sklearn.linear_model import LogisticRegression

from frhsic_paper import records
from frhsic_paper.grid import held_out
from frhsic_paper.options import Options
from frhsic_paper.protocol import PROTOCOLS
from frhsic_paper.results import Results
from frhsic_paper.splits import split_dataset
from frhsic_paper.studies import prototypes
from frhsic_paper.studies.prototypes import (
    LIMITS,
    STUDY,
    encode_split,
    join_networks,
    verdict_table,
)
from frhsic_paper.study import run
from paper_records import sweep
from paper_samples import stand_in, toy_dataset

WEIGHTS = (0.2, 1.0)


class FirstColumn:
    """Stands in for the encoder: Z is a column of X, times the allowed share of the gap."""

    def __init__(self, **options):
        self.scale = 1.0
        self.seen = []

    def fit(self, x, y, *, sensitive_features):
        self.seen.append(x)
        assert len(x) == len(y) == len(sensitive_features)

    def at(self, limit):
        moved = FirstColumn()
        moved.scale = {limit: share for share, limit in LIMITS.items()}[limit]
        return moved

    def transform(self, x):
        return self.scale * x[:, 1:2].astype(np.float64)


@pytest.fixture
def column(monkeypatch):
    """The stand-in that the study uses."""
    one = FirstColumn()
    monkeypatch.setattr(prototypes, "ParityEncoder", lambda **_: one)
    return one


def test_heads_and_probes_have_rows_that_the_encoder_has_not_seen(column):
    split = split_dataset(toy_dataset("adult", n=500), 42, validation=0.15)
    parts = encode_split(split)
    assert len(parts) == len(LIMITS)
    (seen,) = column.seen
    heads = len(split.train) - len(seen)
    assert heads == round(0.2 * len(split.train))
    assert (seen == split.train.x[:-heads].numpy()).all()
    for part in parts:
        assert (part.train.rows == split.train.rows[-heads:]).all()
        assert (part.test.rows == split.test.rows).all()
        assert (part.validation.y == split.validation.y).all()
    z = parts[0].train.x[:, 0]
    assert (float(z.mean()), float(z.std(correction=0))) == approx((0.0, 1.0), abs=1e-6)
    own = split.train.x[-heads:, 1]
    assert float(torch.corrcoef(torch.stack([z, own]))[0, 1]) == approx(1, abs=1e-6)
    assert (parts[-1].test.x == 0).all()  # Z is constant there


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_study_runs_from_end_to_end_and_once(protocol, column, tmp_path, monkeypatch):
    stand_in(monkeypatch, n=1000)
    shares = (1.0, 0.4, 0.0)
    monkeypatch.setattr(prototypes, "LIMITS", {share: LIMITS[share] for share in shares})
    told = []
    options = Options(tmp_path, "cpu", ("adult",), repeats=1, watch=told.append)
    run(STUDY, protocol, options)
    found = records.read(options.file("prototypes", protocol))
    assert [(r["dataset"], r["repeat"], r["weight"]) for r in found] == [
        ("adult", 0, share) for share in shares
    ]
    assert found[0]["auc"] > 0.7
    assert found[0]["probe_r2_linear"] > 0.1  # the column tells of S
    assert found[-1]["probe_r2_linear"] <= 1e-6  # a constant does not
    worst = "head_deviation" if protocol.printed else "worst_gdp"
    assert found[0][worst] > found[-1][worst]
    split = encode_split(held_out(protocol).make(toy_dataset("adult", n=1000), 1)[0])[0]
    exact = LogisticRegression(C=np.inf).fit(split.train.x.numpy(), split.train.y.numpy())
    scores = exact.decision_function(split.test.x.numpy())
    assert found[0]["score_sd"] == approx(scores.std(), rel=0.03)  # the head is trained to its end
    run(STUDY, protocol, options)
    assert len(told) == 1


def with_gdp(protocol, method, factors, performance=0.0):
    """Records of a sweep whose GDP is multiplied, by dataset, and whose performance is shifted."""
    found = sweep(protocol.name, factors, (method,), WEIGHTS)
    return [
        r
        | {column: factors[r["dataset"]] * r[column] for column in r if "gdp" in column}
        | {column: r[column] + performance for column in r if "performance" in column}
        for r in found
        if r["method"] == method
    ]


def verdict_of(protocol, factors, performance=0.0):
    own = with_gdp(protocol, "prototypes", factors, performance)
    results = Results(
        {
            ("tradeoff", protocol.name): sweep(protocol.name, factors, ("frhsic",), WEIGHTS),
            ("prototypes", protocol.name): own,
        }
    )
    table = verdict_table(join_networks(results, protocol), protocol)
    return {row[0].partition(",")[0]: row[1:] for row in table.rows}


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_the_verdict_says_where_it_is_better_and_where_worse(protocol):
    verdict = verdict_of(protocol, {"adult": 0.5, "meps": 0.5, "compas": 2.0})
    assert verdict["GDP"] == ("2 of 3", "1 of 3")
    assert verdict_of(protocol, {"adult": 1.0, "meps": 1.0})["GDP"] == ("0 of 2", "0 of 2")


@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=PROTOCOLS)
def test_what_does_not_reach_the_performance_is_no_match_and_is_said_to_be_worse(protocol):
    verdict = verdict_of(protocol, {"adult": 0.1, "compas": 0.1}, performance=-0.1)
    assert "GDP" not in verdict
    assert verdict["performance without a limit"] == ("0 of 2", "2 of 2")
