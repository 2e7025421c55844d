"""What every public statistic promises about its arguments, as checks of one statistic."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from dependence_samples import KINDS

Statistic = Callable[..., Any]

k = np.arange(40.0)
S = np.exp(np.sin(1.3 * k))
Z = np.cos(1.7 * k) + 0.2 * S

GIVEN: dict[str, Any] = {  # what some statistics must be given
    "z": Z,
    "scores": Z,
    "s": S,
    "y": np.sin(k),
    "y_true": k % 2,
    "y_pred": Z,
    "sensitive_features": S,
    "bandwidth": 0.4,
}
ROWS = (Z[:9], np.append(Z[1:], np.nan), ["a"] * 40, Z * 1j, [])
REFUSED: dict[str, tuple[Any, ...]] = {
    "z": ROWS,
    "scores": ROWS,
    "s": (*ROWS, np.ones(40)),
    "y": (*ROWS, np.ones(40), np.stack([Z, S], axis=1)),
    "sensitive_features": ROWS[1:],
    "device": ("toaster",),
    "kernels": ([],),
    "edges": ([2.0, 1.0], [1e9]),
    "groups": ([1, 2], np.ones(40)),
    "where": ([True], k),
    "random_state": ("seed", -1),
    **dict.fromkeys(("kernel_z", "kernel_s"), ("gaussian",)),
    **dict.fromkeys(("confidence", "level", "resolution"), (0.0, 1.0, np.nan)),
    **dict.fromkeys(("bandwidth", "ridge_z", "ridge_s"), (0.0, -1.0, np.inf)),
    **dict.fromkeys(("bins", "blocks"), (1, 0)),
    **dict.fromkeys(("anchors", "features"), (0, 41)),
    "resamples": (-1, 2.5),
    "max_rows": (3, 2.5),
    "n_neighbors": (0, 2.5),
    **dict.fromkeys(("weights", "sample_weight"), ([1.0], -k, np.full(40, np.inf))),
}
DEFAULTS = {
    "level": 0.05,
    "confidence": 0.95,
    "resamples": 999,
    "max_rows": 2000,
    "features": 512,
    "blocks": 16,
    "n_neighbors": 5,
    "ridge_z": 0.01,
    "ridge_s": 0.01,
}


def parameters(statistic: Statistic) -> Mapping[str, inspect.Parameter]:
    return inspect.signature(statistic).parameters


def call(statistic: Statistic, **arguments: Any) -> Any:
    known = parameters(statistic)
    given = {key: GIVEN[key] for key, one in known.items() if one.default is one.empty}
    fixed = {"random_state": 3, "anchors": 30}
    given |= {key: value for key, value in fixed.items() if key in known}
    return statistic(**(given | arguments))


def rows_of(statistic: Statistic, change: Callable[[Any], Any]) -> dict[str, Any]:
    """What the statistic is given for each row, changed."""
    known = parameters(statistic)
    return {key: change(value) for key, value in GIVEN.items() if key in known and np.ndim(value)}


def few(statistic: Statistic) -> dict[str, int]:
    return {"resamples": 49} if "resamples" in parameters(statistic) else {}


def check_that_refused_values_are_named(statistic: Statistic) -> None:
    for argument in parameters(statistic):
        for value in REFUSED.get(argument, ()):
            with pytest.raises((ValueError, TypeError), match=rf"\b{argument}\b"):
                call(statistic, **{argument: value})


def check_defaults(statistic: Statistic) -> None:
    known = parameters(statistic)
    defaults = {key: value for key, value in DEFAULTS.items() if key in known}
    if defaults:
        assert repr(call(statistic)) == repr(call(statistic, **defaults))


def check_that_a_default_device_does_not_matter(statistic: Statistic) -> None:
    """The device is that of the data; on "meta" there are no numbers, so that nothing may be made
    there.
    """
    here = repr(call(statistic, **few(statistic)))
    with torch.device("meta"):
        assert repr(call(statistic, **few(statistic))) == here


def check_that_where_keeps_rows(statistic: Statistic, **options: Any) -> None:
    kept = np.arange(40) % 3 > 0
    options = few(statistic) | options
    fewer = rows_of(statistic, lambda x: x[kept])
    assert repr(call(statistic, where=kept, **options)) == repr(call(statistic, **fewer, **options))


def check_kind_of_array(statistic: Statistic, kind: str) -> None:
    rows = rows_of(statistic, KINDS[kind])
    options = few(statistic)
    results = [call(statistic, **given, **options) for given in (rows, {})]
    shown = [repr(one.item() if isinstance(one, torch.Tensor) else one) for one in results]
    assert shown[0] == shown[1]


def check_that_the_order_of_rows_does_not_matter(statistic: Statistic, **options: Any) -> None:
    expected = float(call(statistic, **options))
    order = np.random.default_rng(1).permutation(40)
    assert float(call(statistic, z=Z[order], s=S[order], **options)) == approx(expected, rel=1e-7)


def check_that_a_constant_z_tells_nothing(statistic: Statistic, n: int) -> None:
    s = torch.linspace(-1, 3, n, dtype=torch.float64)
    z = torch.full((n,), 0.1, dtype=torch.float64)
    assert float(call(statistic, z=z, s=s)) == 0


def check_that_one_row_is_refused(statistic: Statistic) -> None:
    with pytest.raises(ValueError, match="row"):
        call(statistic, **rows_of(statistic, lambda x: x[:1]))
