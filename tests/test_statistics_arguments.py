"""Arguments of every public statistic: a value that is refused is named, and one that is left out has its default."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from frhsic import dependence, independence, parity

k = np.arange(40.0)
S = np.exp(np.sin(1.3 * k))
Z = np.cos(1.7 * k) + 0.2 * S

STATISTICS: dict[str, Callable[..., Any]] = {
    name: getattr(package, name)
    for package in (dependence, independence, parity)
    for name in package.__all__
    if name == "SequentialTest" or name[0].islower()
}
GIVEN: dict[str, Any] = {  # what some statistics must be given
    "z": Z, "scores": Z, "s": S, "y": np.sin(k), "y_true": k % 2, "y_pred": Z, "sensitive_features": S, "at": 1.0,
    "epsilon": 0.1, "bandwidth": 0.4,
}  # fmt: skip
ROWS = (Z[:9], np.append(Z[1:], np.nan), ["a"] * 40, Z * 1j, [])
REFUSED: dict[str, tuple[Any, ...]] = {
    "z": ROWS, "scores": ROWS, "s": (*ROWS, np.ones(40)), "y": (*ROWS, np.ones(40), np.stack([Z, S], axis=1)),
    "sensitive_features": ROWS[1:], "at": (99.0, -99.0, np.nan), "weighting": ("grid",), "device": ("toaster",),
    "kernels": ([],), "edges": ([2.0, 1.0], [1e9]), "groups": ([1, 2], np.ones(40)),
    "where": ([True], k), "random_state": ("seed", -1),
    **dict.fromkeys(("kernel_z", "kernel_s"), ("gaussian",)),
    **dict.fromkeys(("confidence", "level", "resolution"), (0.0, 1.0, np.nan)),
    **dict.fromkeys(("epsilon", "bandwidth", "ridge_z", "ridge_s", "tolerance"), (0.0, -1.0, np.inf)),
    **dict.fromkeys(("bins", "blocks"), (1, 0)),
    **dict.fromkeys(("anchors", "components", "features"), (0, 41)),
    **dict.fromkeys(("resamples", "permutations", "bootstrap"), (-1, 2.5)),
    "max_rows": (3, 2.5), "max_rank": (1,), "n_neighbors": (0, 2.5),
    **dict.fromkeys(("weights", "sample_weight"), ([1.0], -k, np.full(40, np.inf))),
}  # fmt: skip
DEFAULTS = {
    "level": 0.05, "confidence": 0.95, "resamples": 999, "bootstrap": 500, "permutations": 500, "max_rows": 2000,
    "features": 512, "blocks": 16, "n_neighbors": 5, "ridge_z": 0.01, "ridge_s": 0.01, "tolerance": 1e-6,
    "weighting": "population",
}  # fmt: skip


def call(name: str, **arguments: Any) -> Any:
    parameters = inspect.signature(STATISTICS[name]).parameters
    given = {key: GIVEN[key] for key, one in parameters.items() if one.default is one.empty}
    given |= {key: value for key, value in {"random_state": 3, "anchors": 30}.items() if key in parameters}
    return STATISTICS[name](**(given | arguments))


@pytest.mark.parametrize("name", STATISTICS)
def test_a_value_that_is_refused_is_named(name: str) -> None:
    for argument in inspect.signature(STATISTICS[name]).parameters:
        for value in REFUSED.get(argument, ()):
            with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
                call(name, **{argument: value})


@pytest.mark.parametrize("name", STATISTICS)
def test_an_argument_that_is_left_out_has_its_documented_default(name: str) -> None:
    parameters = inspect.signature(STATISTICS[name]).parameters
    defaults = {key: value for key, value in DEFAULTS.items() if key in parameters}
    if name == "SequentialTest":
        assert (call(name).level, call(name).resamples) == (0.05, 999)
    elif defaults:
        assert repr(call(name)) == repr(call(name, **defaults))


@pytest.mark.parametrize("name", STATISTICS)
def test_a_default_device_does_not_matter(name: str) -> None:
    """The device is that of the data; on "meta" there are no numbers, so that nothing may be made there."""
    here = repr(call(name))
    with torch.device("meta"):
        assert repr(call(name)) == here
