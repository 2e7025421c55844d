"""Fresh heads on frozen representations."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from estimator_samples import biased, quick
from frhsic import probe_heads
from frhsic.estimators import FRHSICClassifier
from frhsic.heads import HEADS, _standardized_gap
from frhsic.parity import gdp


def known(n: int = 600, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Z with one column that is s and one that is not, and a target of both."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(-1, 1, size=n)
    z = np.column_stack([s, rng.normal(size=n)])
    return z, (z.sum(1) > 0).astype(int), s


def test_every_head_s_gap_is_in_probabilities_and_a_probe_recovers_the_attribute():
    z, y, s = known()
    result = probe_heads(None, z, y, sensitive_features=s)
    assert [h.head for h in result.heads] == list(HEADS)
    assert result.unit == "probability"
    assert all(0.05 < h.gdp < 0.5 for h in result.heads)
    assert all(h.low <= h.gdp <= h.high for h in result.heads)
    assert result.worst.gdp == max(h.gdp for h in result.heads) == float(result)
    assert result.spread == pytest.approx(np.std([h.gdp for h in result.heads]))
    (probe,) = result.probes
    assert probe.linear_r2 == pytest.approx(1, abs=1e-3)
    assert probe.trees_r2 > 0.95
    assert probe.mutual_information > 1
    assert (result.train_rows, result.test_rows) == (450, 150)


def test_where_nothing_of_the_attribute_is_left_no_head_finds_it():
    z, _, s = known()
    result = probe_heads(
        lambda rows: rows[:, 1:], z, z[:, 1] > 0, sensitive_features=s, heads=["linear", "boosting"]
    )
    for head in result.heads:
        assert head.low < head.expected_under_independence
        assert head.gdp < 3 * head.expected_under_independence
    assert result.probes[0].linear_r2 < 0.05
    assert abs(result.probes[0].mutual_information) < 0.15


def test_a_head_s_gap_is_that_of_its_own_probabilities_on_the_test_rows():
    z, y, s = known()
    z_test, y_test, s_test = known(seed=1)
    head = LogisticRegression()
    result = probe_heads(
        None, z, y, sensitive_features=s, test=(z_test, y_test, s_test), heads={"mine": head}
    )
    scores = head.fit(z, y).predict_proba(z_test)[:, 1]
    assert result.heads[0].head == "mine"
    assert result.heads[0].gdp == pytest.approx(float(gdp(scores, s_test)))
    assert result.heads[0].performance == pytest.approx(head.score(z_test, y_test))


def test_a_regression_has_gaps_in_the_unit_of_its_target():
    z, _, s = known(300)
    y = 1000 * z.sum(1)
    one = probe_heads(None, z, y, sensitive_features=s, heads=["linear", "mlp", "svm"])
    other = probe_heads(None, z, 2 * y, sensitive_features=s, heads=["linear", "mlp", "svm"])
    assert one.unit == "unit of y"
    for a, b in zip(one.heads, other.heads):
        assert b.gdp == pytest.approx(2 * a.gdp, rel=1e-3)
        assert b.standardized_gdp == pytest.approx(a.standardized_gdp, rel=1e-3)
        assert a.gdp > 100


@pytest.mark.filterwarnings("error")
def test_a_target_in_float32_whose_zeros_are_rounded_warns_of_nothing():
    z, _, s = known(100)
    y = np.maximum(np.random.default_rng(0).normal(size=100), 0).astype(np.float32)
    probe_heads(None, z, y, sensitive_features=s, heads=["svm"], test=(z, y, s), random_state=0)


def test_several_attributes_are_measured_one_by_one():
    z, y, s = known()
    both = pd.DataFrame({"age": s, "noise": np.random.default_rng(5).normal(size=len(s))})
    result = probe_heads(None, z, y, sensitive_features=both, heads=["linear"])
    table = result.to_frame().set_index("attribute")
    assert list(table.index) == ["age", "noise"]
    assert table.loc["age", "gdp"] > 3 * table.loc["noise", "gdp"]
    assert table.loc["age", "linear_r2"] > 0.9 > table.loc["noise", "linear_r2"]
    assert result.worst.attribute == "age"


def test_an_encoder_s_own_representation_is_what_heads_see():
    X, y, s = biased(300)
    plain = FRHSICClassifier("hsic", 0, **quick()).fit(X, y)
    strong = FRHSICClassifier("hsic", 100, **quick()).fit(X, y, sensitive_features=s)
    X, y, s = biased(400, seed=1)
    before, after = (
        probe_heads(model, X, y, sensitive_features=s, heads=["linear", "forest"])
        for model in (plain, strong)
    )
    assert after.worst.gdp < before.worst.gdp
    assert after.probes[0].linear_r2 < before.probes[0].linear_r2 - 0.2


def test_a_support_vector_machine_is_given_at_most_so_many_rows():
    z, y, s = known(6800)
    result = probe_heads(None, z, y, sensitive_features=s, heads=["svm", "linear"])
    assert [h.train_rows for h in result.heads] == [5000, 5100]


def test_the_seed_repeats_it_and_a_generator_moves_on():
    z, y, s = known(200)
    used = torch.Generator().manual_seed(4)
    seeded = [
        probe_heads(None, z, y, sensitive_features=s, heads=["mlp", "forest"], random_state=4)
        for _ in range(2)
    ]
    moved = [
        probe_heads(None, z, y, sensitive_features=s, heads=["linear"], random_state=used)
        for _ in range(2)
    ]
    assert seeded[0] == seeded[1]
    assert moved[0].worst.gdp != moved[1].worst.gdp  # another split


def test_scores_of_a_constant_class_have_no_gap():
    scores = np.column_stack([np.linspace(0, 1, 50), np.full(50, 0.3)])
    assert _standardized_gap(scores, np.linspace(0, 1, 50), None) == 0.0
    assert _standardized_gap(scores[:, :1], np.linspace(0, 1, 50), None) > 0.5


def test_bad_input_is_refused():
    z, y, s = known(60)
    for heads in ("linear", ["perceptron"], [], {}):
        with pytest.raises(ValueError, match="heads"):
            probe_heads(None, z, y, sensitive_features=s, heads=heads)
    refused = [
        ({"heads": {"svc": LinearSVC()}}, TypeError, "no predict_proba"),
        ({"encoder": 3}, TypeError, "an object with a transform"),
        ({"test": 2.0}, ValueError, "test_size"),
        ({"y": y[:-1], "test": (z, y, s)}, ValueError, "inconsistent numbers"),
        ({"test": (z, y, z)}, ValueError, "the test rows have 2 attributes"),
    ]
    for change, error, message in refused:
        with pytest.raises(error, match=message):
            probe_heads(**{"encoder": None, "X": z, "y": y, "sensitive_features": s} | change)
