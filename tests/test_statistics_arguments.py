"""Arguments of every public statistic: each has an effect, the default that is documented, and a refusal on record."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from frhsic import dependence as d
from frhsic import independence as i
from frhsic import parity as p
from frhsic.dependence.conditional import eipm_from_gram, leave_one_out_weights
from frhsic.dependence.operators import pivoted_cholesky
from frhsic.kernels import Gaussian
from frhsic.parity.summed import curve_of_sums, gdp_of_sums
from test_statistics_in_parts import halves
from test_statistics_on_record import LABELS, SCORES, S, Y, Z, close, k, plain, recorded, said

TENSOR = torch.from_numpy(np.stack([SCORES, np.cos(k)], axis=1))
GIVEN: dict[str, tuple[Any, ...]] = {  # what must be given, where it is not the two samples
    "minority_weights": (S,), "draw_feature_maps": (Gaussian(1.0), Gaussian(2.0), 1, 1), "local_mean": (SCORES, S, 0.5),
    "evaluation_points": (S, 0.4), "equivalence_test": (SCORES, S, 0.05), "conditional_test": (SCORES, S, Y),
    "SequentialTest": (),
    "gdp_value": (TENSOR[:, 0], torch.from_numpy(S), 0.4, torch.linspace(0, 3, 7, dtype=torch.float64)),
    "nadaraya_watson_weights": (TENSOR[:7, 0], torch.from_numpy(S), 0.4),
    "eipm_from_gram": (TENSOR @ TENSOR.T, leave_one_out_weights(torch.from_numpy(S), 0.4)),
    "pivoted_cholesky": (Gaussian(1.0), TENSOR), "gdp_of_sums": halves(SCORES, S), "curve_of_sums": halves(SCORES, S),
}  # fmt: skip
ALSO: dict[str, dict[str, Any]] = {  # by name
    "smoothed_gdp": {"bandwidth": 0.4},
    **{name: {"sensitive_features": S} for name in dir(p) if name.endswith(("_difference", "opportunity_gdp"))},
}
STATISTICS: dict[str, Callable[..., Any]] = {
    name: getattr(package, name)
    for package in (d, p, i)
    for name in package.__all__
    if name == "SequentialTest" or name[0].islower()
}
UNCHECKED = ("gdp_value", "nadaraya_watson_weights", "evaluation_points")  # pure functions of tensors
NOT_PUBLIC = {f.__name__: f for f in (eipm_from_gram, pivoted_cholesky, gdp_of_sums, curve_of_sums)}
REFUSED: dict[str, tuple[Any, ...]] = {
    **dict.fromkeys(("kernel_z", "kernel_s", "kernels_s"), ("gaussian", Gaussian(torch.ones((), requires_grad=True)))),
    **dict.fromkeys(("confidence", "level", "resolution"), (0.0, 1.0, np.nan)),
    **dict.fromkeys(("epsilon", "bandwidth", "ridge_z", "ridge_s", "tolerance", "floor"), (0.0, -1.0, np.inf, np.nan)),
    **dict.fromkeys(("bins", "anchors", "n_neighbors", "components", "max_rank", "groups"), (0, 1, 61, 2.5)),
    **dict.fromkeys(("features", "blocks"), (0, 1, 33, 2.5)),
    **dict.fromkeys(("resamples", "permutations", "bootstrap", "max_rows"), (-1, 2.5)),
    **dict.fromkeys(("weights", "sample_weight"), ([1.0], -k, 0 * k)),
    "where": ([True], k > 99, k == 5, k), "clusters": ([1], 0 * k),
    "kernels": ([], [("gaussian", None)]), "edges": ([2.0, 1.0], [1e9], [-1.0, 0.3, 0.3]),
    "moments": ("none",), "weighting": ("none",), "at": (99.0, -99.0, np.nan), "clip": ((2.0, 3.0), (0.1, 0.5)),
    "random_state": (-1, 2**32, "seed"), "y": (Y[:-1], np.ones(60), Z),
    "sensitive_features": (S[:-1], 0 * S, Z),
}  # fmt: skip


def given(name: str) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return what a statistic is called with."""
    predicted = (LABELS, SCORES) if "sensitive_features" in ALSO.get(name, {}) else (SCORES, S)
    return GIVEN.get(name, predicted), ALSO.get(name, {})


def defaults(name: str) -> dict[str, Any]:
    """Return the arguments that may be left out, and their defaults."""
    parameters = inspect.signature({**STATISTICS, **NOT_PUBLIC}[name]).parameters.values()
    return {one.name: one.default for one in parameters if one.default is not one.empty}


def outcome(result: Any) -> Any:
    if isinstance(result, i.SequentialTest):
        return [result.level, result.resamples]
    return result.draw if isinstance(result, d.FeatureMaps) else plain(result)


@pytest.mark.parametrize("name", [name for name in (*STATISTICS, *NOT_PUBLIC) if defaults(name)])
def test_an_argument_that_is_left_out_has_its_documented_default(name: str):
    statistic, (args, options) = {**STATISTICS, **NOT_PUBLIC}[name], given(name)
    fixed = {"random_state": 3} if defaults(name).get("random_state", 0) is None else {}
    some = outcome(statistic(*args, **options, **fixed))
    assert close(some, outcome(statistic(*args, **{**defaults(name), **options, **fixed})))


@pytest.mark.parametrize("name", [name for name in STATISTICS if name not in UNCHECKED])
def test_messages_on_each_refused_argument_are_those_on_record(name: str, request: pytest.FixtureRequest):
    statistic, (args, options) = STATISTICS[name], given(name)
    parameters = list(inspect.signature(statistic).parameters)
    messages = {}
    for argument in parameters:
        for number, value in enumerate(REFUSED.get(argument, ())):
            bound = {**dict(zip(parameters, args)), **options, argument: value}
            messages[f"{argument} {number}"] = said(lambda bound=bound: statistic(**bound))
    assert messages == recorded("each argument", name, messages, request)
    assert all(message.startswith(("ValueError: ", "TypeError: ", "no error")) for message in messages.values())


@pytest.mark.parametrize("name", [name for name in STATISTICS if "device" in defaults(name)])
def test_a_device_that_is_not_known_is_refused(name: str):
    with pytest.raises(ValueError, match="device='quantum' is not known"):
        STATISTICS[name](*given(name)[0], device="quantum")
