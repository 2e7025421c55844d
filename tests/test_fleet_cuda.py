"""On a GPU: the captured step is the step, and the models are those that a CPU trains."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
import torch
from torch import nn

from estimator_samples import biased
from fleet_samples import PENALTIES, gap, held_out, quick, sample
from frhsic.estimators import FRHSICClassifier
from frhsic.penalties import HSIC
from frhsic.training import Training, grid
from frhsic.training.result import DivergenceWarning

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")

binary = quick()
MEMBERS = grid([0.0, 1.0, 5.0], [1, 2], [0, 1])


THREE = ["frhsic", "head and gaussian", "adv"]
LONG = {"epochs": 12, "patience": 3}
CASES = [
    *(
        (name, sample(), some, {})
        for name in PENALTIES
        for some in (MEMBERS, MEMBERS[2:3], MEMBERS[:3], MEMBERS[::3])
    ),
    *((name, replace(sample(), labelled=61), MEMBERS, {}) for name in THREE),
    *(
        (name, held_out(sample(rows=260), 150), MEMBERS, LONG | {"schedule": s})
        for name in THREE
        for s in ("constant", "cosine")
    ),
]


@pytest.mark.parametrize(("name", "data", "members", "options"), CASES)
def test_captured_step_agrees_with_the_cpu(name, data, members, options, caplog):
    with caplog.at_level(logging.WARNING, logger="frhsic.training"):
        captured = binary(data, members, penalty=PENALTIES[name], device="cuda", **options)
    assert not caplog.records
    on_cpu = binary(data, members, penalty=PENALTIES[name], device="cpu", **options)
    for index in range(len(members)):
        assert (
            gap(captured, index, {n: v[index].cuda() for n, v in on_cpu.parameters.items()}) < 1e-4
        )
    torch.testing.assert_close(
        captured.history.task_loss, on_cpu.history.task_loss, atol=1e-4, rtol=0, equal_nan=True
    )
    if data.held_out is not None:
        assert torch.equal(captured.history.best_epoch, on_cpu.history.best_epoch)


@pytest.mark.parametrize("name", ["frhsic", "head and gaussian", "adv", "frem"])
def test_same_call_gives_the_same_numbers_bit_for_bit_on_a_gpu(name):
    data = sample()
    first, second = (
        binary(data, MEMBERS, penalty=PENALTIES[name], device="cuda") for _ in range(2)
    )
    assert all(torch.equal(first.parameters[n], second.parameters[n]) for n in first.parameters)


def test_model_that_diverges_is_stopped_on_a_gpu():
    with pytest.warns(DivergenceWarning):
        fleet = binary(
            sample(), MEMBERS, penalty=HSIC, weight_decay=0.1, device="cuda", learning_rate=1e38
        )
    assert all(bool(torch.isfinite(values).all()) for values in fleet.parameters.values())


def dropout(columns: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3))


KINDS = [{"penalty": "hsic"}, {"penalty": "adv"}, {"encoder": dropout}]


@cache
def probabilities(number: int) -> np.ndarray:
    """Return what a fit predicts on a GPU; each third one drops out."""
    x, y, s = biased(64)
    model = FRHSICClassifier(
        training=Training(epochs=2, batch_size=32),
        random_state=number,
        device="cuda",
        **KINDS[number % 3],
    )
    return model.fit(x, y, sensitive_features=s).predict_proba(x)


@pytest.mark.parametrize("threads", [2, 4, 8])
def test_fits_in_threads_are_those_of_one_thread(threads, caplog):
    serial = [probabilities(number) for number in range(24)]
    with (
        caplog.at_level(logging.WARNING, logger="frhsic.training"),
        ThreadPoolExecutor(threads) as pool,
    ):
        parallel = list(pool.map(probabilities.__wrapped__, range(24)))
    assert not caplog.records
    assert [
        number for number, pair in enumerate(zip(serial, parallel)) if not np.array_equal(*pair)
    ] == []
