"""Numbers and messages of the statistics are those of tests/data/statistics.json.

Other tests show that the numbers are right. This one shows that no default, constant, field of a result or message
changes without notice. After a change on purpose, write the file again and commit it with the change:

    python -m pytest tests/test_statistics_on_record.py --update-api
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from frhsic import dependence as d
from frhsic import independence as i
from frhsic import parity as p
from frhsic.kernels import Gaussian, InverseMultiquadric, Laplacian, Linear

RECORD = Path(__file__).parent / "data" / "statistics.json"

k = np.arange(60.0)
S = np.round(np.exp(1.5 * np.sin(1.3 * k)), 1)  # skewed, with ties
S[::5] = 0  # and many zeros
Z = np.stack([np.sin(k) + 0.4 * S, np.cos(1.7 * k) * k / 20, k * k % 7], axis=1)
SCORES = np.tanh(0.5 * S + np.sin(3 * k))
TWO = np.stack([S, np.cos(2.1 * k)], axis=1)
Y = np.sin(0.7 * k) + 0.2 * S
WHERE = k % 4 > 0
WEIGHTS = 1 + k % 3
CLUSTERS = k // 3
LABELS = (Y > 0).astype(int)
kernels = (Laplacian(2.0) + 3 * Linear(), InverseMultiquadric(0.7))
few: dict[str, Any] = {"resamples": 49, "random_state": 3}


def fed(test: Any) -> Any:
    for start in (0, 20, 40):
        test.update(SCORES[start : start + 20], S[start : start + 20])
    return [test.evalue, test.pvalue, test.rejected, test.batches]


Calls = dict[str, Callable[[], Any]]

NUMBERS: Calls = {
    **{
        f"{name} {given}": lambda name=name, pair=pair: getattr(d, name)(*pair)
        for name in (
            "hsic", "hsic_unbiased", "hsic_summed", "eipm", "binned_mmd", "binned_mean_difference",
            "distance_covariance", "distance_covariance_unbiased", "distance_correlation",
            "distance_correlation_unbiased", "mutual_information", "kernel_hgr",
        )
        for given, pair in {"one": (SCORES, S), "several": (Z, TWO[:, :1])}.items()
    },
    "hsic with weights": lambda: d.hsic(Z, S, *kernels, where=WHERE, weights=WEIGHTS),
    "hsic of two": lambda: d.hsic(Z, TWO),
    "hsic_unbiased with kernels": lambda: d.hsic_unbiased(Z, S, *kernels, where=WHERE),
    "hsic_summed of two": lambda: d.hsic_summed(Z, TWO, weights=WEIGHTS),
    "hsic_features": lambda: d.hsic_features(Z, S, features=32, blocks=4, random_state=1),
    "eipm with anchors": lambda: d.eipm(Z, S, Gaussian(1.0), bandwidth=0.4, anchors=9, random_state=2, floor=0.01),
    "binned_mmd of four": lambda: d.binned_mmd(Z, S, kernels[0], bins=4, where=WHERE),
    "binned_mmd with edges": lambda: d.binned_mmd(Z, S, edges=[0.5, 1.0, 2.0]),
    "binned_mean_difference of four": lambda: d.binned_mean_difference(Z, S, bins=4, where=WHERE),
    "kernel_hgr with ridges": lambda: d.kernel_hgr(Z, S, *kernels, ridge_z=0.1, ridge_s=0.2, tolerance=1e-4),
    "mutual_information of three": lambda: d.mutual_information(Z, S, n_neighbors=3, components=2, where=WHERE),
    "minority_weights": lambda: d.minority_weights(S),
    "minority_weights clipped": lambda: d.minority_weights(S, bandwidth=0.2, clip=(0.5, 2.0)),
    "gdp": lambda: p.gdp(SCORES, S, **few),
    "gdp with options": lambda: p.gdp(
        SCORES, S, where=WHERE, sample_weight=WEIGHTS, clusters=CLUSTERS, resolution=0.3, confidence=0.8, **few
    ),
    "gdp of decisions": lambda: p.gdp(LABELS, S, **few),
    "standardized_gdp": lambda: p.standardized_gdp(SCORES, S, **few),
    "gdp_by_attribute": lambda: p.gdp_by_attribute(SCORES, pd.DataFrame(TWO, columns=["a", "b"]), **few),
    "gdp_difference": lambda: p.gdp_difference(None, SCORES, sensitive_features=S),
    "standardized_gdp_difference": lambda: p.standardized_gdp_difference(None, SCORES, sensitive_features=S),
    "equal_opportunity_gdp": lambda: p.equal_opportunity_gdp(LABELS, SCORES, sensitive_features=S),
    "gdp_curve": lambda: p.gdp_curve(SCORES, TWO[:, 1]),
    "gdp_curve of weights": lambda: p.gdp_curve(
        SCORES, TWO[:, 1], groups=4, where=WHERE, sample_weight=WEIGHTS, clusters=CLUSTERS, confidence=0.8
    ),
    "local_mean": lambda: p.local_mean(SCORES, TWO[:, 1], 0.2),
    "local_mean of weights": lambda: p.local_mean(
        SCORES, TWO[:, 1], -0.5, where=WHERE, sample_weight=WEIGHTS, clusters=CLUSTERS, confidence=0.8
    ),
    "correlation_ratio": lambda: p.correlation_ratio(SCORES, S),
    "correlation_ratio of weights": lambda: p.correlation_ratio(
        SCORES, TWO[:, 1], where=WHERE, sample_weight=WEIGHTS, confidence=0.8
    ),
    "quantile_gap": lambda: p.quantile_gap(SCORES, TWO[:, 1], permutations=19, random_state=3),
    "smoothed_gdp": lambda: p.smoothed_gdp(SCORES, S, bandwidth=0.4, bootstrap=19, permutations=19),
    "smoothed_gdp uniform": lambda: p.smoothed_gdp(
        SCORES, S, bandwidth=0.4, weighting="uniform", where=WHERE, confidence=0.8, bootstrap=19, permutations=19
    ),
    "evaluation_points": lambda: p.evaluation_points(S, 0.5),
    "gdp_value": lambda: p.gdp_value(*map(torch.from_numpy, (SCORES, S)), 0.5, torch.from_numpy(np.linspace(0, 3, 7))),
    **{
        f"{name} {given}": lambda name=name, pair=pair: getattr(i, name)(*pair)
        for name in ("gamma_test", "hsic_interval", "normalized_hsic_interval")
        for given, pair in {"one": (SCORES, S), "several": (Z, TWO)}.items()
    },
    "gamma_test with options": lambda: i.gamma_test(Z, S, Gaussian(2.0), moments="gretton", level=0.1, where=WHERE),
    "gamma_test of a margin": lambda: i.gamma_test(SCORES, S, epsilon=0.02),
    "hsic_interval with options": lambda: i.hsic_interval(Z, S, *kernels, confidence=0.8, where=WHERE),
    "equivalence_test": lambda: i.equivalence_test(SCORES, TWO[:, 1], 0.05),
    "equivalence_test with options": lambda: i.equivalence_test(Z, S, 0.2, *kernels, level=0.1, where=WHERE),
    "permutation_test": lambda: i.permutation_test(SCORES, S, **few),
    "permutation_test of clusters": lambda: i.permutation_test(Z, S, clusters=CLUSTERS, level=0.1, **few),
    "permutation_test of a margin": lambda: i.permutation_test(Z, S, *kernels, where=WHERE, epsilon=0.02, **few),
    "aggregated_test": lambda: i.aggregated_test(SCORES, S, **few),
    "aggregated_test of few rows": lambda: i.aggregated_test(Z, TWO, max_rows=40, level=0.1, **few),
    "conditional_test": lambda: i.conditional_test(SCORES, S, Y, **few),
    "conditional_test of columns": lambda: i.conditional_test(Z, S, LABELS, *kernels, level=0.1, where=WHERE, **few),
    "SequentialTest": lambda: fed(i.SequentialTest(level=0.1, resamples=49, random_state=3)),
}  # fmt: skip

PAIRS: dict[str, tuple[Any, Any]] = {
    "lengths": (Z, S[:-1]), "NaN": (np.where(k == 7, np.nan, SCORES), S),
    "infinity": (SCORES, np.where(k == 7, np.inf, S)),
    "text": (SCORES, ["a"] * 60), "empty": ([], []), "one row": ([1.0], [2.0]), "two rows": ([1.0, 2.0], [2.0, 1.0]),
    "constant": (np.ones(60), S), "constant s": (SCORES, np.ones(60)), "complex": (SCORES, S + 1j),
    "too large": (1e40 * SCORES, S), "three axes": (np.ones((4, 2, 2)), [1.0, 2.0, 3.0, 4.0]),
}  # fmt: skip
TAKES_PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    **{name: getattr(d, name) for name in (
        "hsic", "hsic_unbiased", "hsic_summed", "eipm", "binned_mmd", "binned_mean_difference", "distance_covariance",
        "distance_correlation_unbiased", "mutual_information", "kernel_hgr", "hsic_features", "distance_correlation",
        "distance_covariance_unbiased",
    )},
    **{name: getattr(p, name) for name in (
        "gdp", "gdp_curve", "correlation_ratio", "quantile_gap", "standardized_gdp", "gdp_by_attribute",
    )},
    "local_mean": lambda z, s: p.local_mean(z, s, 0.5),
    "smoothed_gdp": lambda z, s: p.smoothed_gdp(z, s, bandwidth=0.3),
    **{name: getattr(i, name) for name in (
        "gamma_test", "hsic_interval", "permutation_test", "aggregated_test", "normalized_hsic_interval",
    )},
    "equivalence_test": lambda z, s: i.equivalence_test(z, s, 0.1),
    "conditional_test": lambda z, s: i.conditional_test(z, s, s),
}  # fmt: skip
ARGUMENTS: Calls = {
    "hsic weights": lambda: d.hsic(Z, S, weights=-WEIGHTS),
    "hsic where": lambda: d.hsic(Z, S, where=k > 99),
    "hsic where too short": lambda: d.hsic(Z, S, where=[True]),
    "hsic kernel": lambda: d.hsic(Z, S, "gaussian"),
    "hsic device": lambda: d.hsic(Z, S, device="nowhere"),
    "hsic_features features": lambda: d.hsic_features(Z, S, features=0),
    "hsic_features blocks": lambda: d.hsic_features(Z, S, features=8, blocks=9),
    "eipm bandwidth": lambda: d.eipm(Z, S, bandwidth=-1),
    "eipm anchors": lambda: d.eipm(Z, S, anchors=0),
    "binned bins": lambda: d.binned_mmd(Z, S, bins=1),
    "binned edges": lambda: d.binned_mmd(Z, S, edges=[2.0, 1.0]),
    "kernel_hgr ridge": lambda: d.kernel_hgr(Z, S, ridge_z=0.0),
    "mutual_information n_neighbors": lambda: d.mutual_information(Z, S, n_neighbors=60),
    "minority_weights clip": lambda: d.minority_weights(S, clip=(2.0, 1.0)),
    "gdp resolution": lambda: p.gdp(SCORES, S, resolution=0.0),
    "gdp confidence": lambda: p.gdp(SCORES, S, confidence=1.0),
    "gdp sample_weight": lambda: p.gdp(SCORES, S, sample_weight=0 * WEIGHTS),
    "gdp clusters": lambda: p.gdp(SCORES, S, clusters=np.zeros(60)),
    "gdp_curve groups": lambda: p.gdp_curve(SCORES, S, groups=1),
    "local_mean at": lambda: p.local_mean(SCORES, S, 99.0),
    "smoothed_gdp bandwidth": lambda: p.smoothed_gdp(SCORES, S, bandwidth=0.0),
    "smoothed_gdp weighting": lambda: p.smoothed_gdp(SCORES, S, bandwidth=0.3, weighting="none"),
    "equal_opportunity_gdp labels": lambda: p.equal_opportunity_gdp(3 * LABELS, SCORES, sensitive_features=S),
    "equal_opportunity_gdp none": lambda: p.equal_opportunity_gdp(0 * LABELS, SCORES, sensitive_features=S),
    "gamma_test moments": lambda: i.gamma_test(SCORES, S, moments="none"),
    "gamma_test level": lambda: i.gamma_test(SCORES, S, level=0.0),
    "gamma_test epsilon": lambda: i.gamma_test(SCORES, S, epsilon=-1.0),
    "permutation_test resamples": lambda: i.permutation_test(SCORES, S, resamples=0),
    "permutation_test clusters": lambda: i.permutation_test(SCORES, S, clusters=np.zeros(60)),
    "aggregated_test kernels": lambda: i.aggregated_test(SCORES, S, kernels=[]),
    "equivalence_test epsilon": lambda: i.equivalence_test(SCORES, S, 0.0),
    "conditional_test y": lambda: i.conditional_test(SCORES, S, Y[:-1]),
    "conditional_test y constant": lambda: i.conditional_test(SCORES, S, np.ones(60)),
    "hsic_interval confidence": lambda: i.hsic_interval(SCORES, S, confidence=0.0),
    "SequentialTest level": lambda: i.SequentialTest(level=2.0).update(SCORES, S),
    "SequentialTest state": lambda: i.SequentialTest.from_dict({"level": 0.05}),
    "SequentialTest lengths": lambda: i.SequentialTest().update(SCORES, S[:-1]),
}


def plain(value: Any) -> Any:
    """Return a result as lists, dictionaries, numbers and text."""
    if is_dataclass(value) and not callable(value):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return plain(value.tolist())
    if isinstance(value, (np.generic, bool, int, float, str, type(None))):
        return value.item() if isinstance(value, np.generic) else value
    return repr(value)


def of(calls: Calls, name: str) -> Any:
    """Return a result. What is computed on torch's default device, and not on that of the inputs, has no numbers."""
    with warnings.catch_warnings(action="ignore"), torch.device("meta"):
        return plain(calls[name]())


def said(call: Callable[[], Any]) -> str:
    """Return the error of a call, or that there was none."""
    try:
        with warnings.catch_warnings(action="ignore"):
            call()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "no error"


def close(one: Any, other: Any) -> bool:
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(close(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(close, one, other))
    if isinstance(one, float) and isinstance(other, (int, float)):
        return one == pytest.approx(other, rel=1e-6, abs=1e-9, nan_ok=True)
    return bool(one == other)


def recorded(part: str, name: str, value: Any, request: pytest.FixtureRequest) -> Any:
    """Return what is on record, after writing it if that was asked for."""
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    if request.config.getoption("--update-api"):
        record[part][name] = value
        RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return record[part][name]


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_those_on_record(name: str, request: pytest.FixtureRequest):
    value = of(NUMBERS, name)
    record = recorded("numbers", name, value, request)
    assert close(value, record), (value, record)


@pytest.mark.parametrize("name", TAKES_PAIRS)
def test_messages_on_bad_pairs_are_those_on_record(name: str, request: pytest.FixtureRequest):
    for what, pair in PAIRS.items():
        message = said(lambda pair=pair: TAKES_PAIRS[name](*pair))
        assert message == recorded("pairs", f"{name}, {what}", message, request)
        assert message.startswith(("ValueError: ", "TypeError: ")) or what in ("two rows", "constant")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_messages_on_bad_arguments_are_those_on_record(name: str, request: pytest.FixtureRequest):
    message = said(ARGUMENTS[name])
    assert message == recorded("arguments", name, message, request)
    assert message.startswith(("ValueError: ", "TypeError: "))
