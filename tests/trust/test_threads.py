"""Fits in several threads are those of one, and the process is left as it was."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from estimator_samples import biased
from frhsic import load, probe_heads, save
from frhsic.estimators import FRHSICClassifier
from frhsic.training import MLP, Training

SMALL = {"training": Training(epochs=2, batch_size=32), "encoder": MLP((4,), 3), "device": "cpu"}


def dropout(columns: int) -> nn.Module:
    return nn.Sequential(nn.Linear(columns, 4), nn.ReLU(), nn.Dropout(0.5), nn.Linear(4, 3))


KINDS: list[dict[str, Any]] = [{"penalty": name} for name in ("hsic", "adv", "none")] + [
    {"encoder": dropout}
]
X, y, s = biased(64)


def fitted(number: int) -> np.ndarray:
    kind = KINDS[number % len(KINDS)]
    model = FRHSICClassifier(penalty_weight=1.0, random_state=number, **{**SMALL, **kind})
    return model.fit(X, y, sensitive_features=s).predict_proba(X)


def test_fits_in_threads_are_those_of_one_thread():
    serial = [fitted(number) for number in range(8)]
    with ThreadPoolExecutor(8) as pool:
        parallel = list(pool.map(fitted, range(8)))
    assert all(np.array_equal(a, b) for a, b in zip(serial, parallel))


def state_of_the_process() -> tuple[Any, ...]:
    return (
        torch.get_rng_state().tolist(),
        # the global state is what must not change
        np.random.get_state()[1].tolist(),  # noqa: NPY002
        list(warnings.filters),
        dict(os.environ),
        torch.get_num_threads(),
        torch.get_float32_matmul_precision(),
        torch.get_default_dtype(),
    )


def in_threads(work: Callable[[], object]) -> None:
    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "model"
    save(FRHSICClassifier(random_state=0, **SMALL).fit(X, y, sensitive_features=s), path)
    return path


@pytest.mark.parametrize("work", ["fit", "load", "save", "probe_heads"])
def test_the_process_is_left_as_it_was(work: str, saved: Path, tmp_path: Path):
    calls: dict[str, Callable[[], object]] = {
        "fit": lambda: [fitted(0), fitted(3)],
        "load": lambda: load(saved),
        "save": lambda: save(load(saved), tmp_path / f"model-{threading.get_ident()}"),
        "probe_heads": lambda: probe_heads(
            load(saved), X, y, sensitive_features=s, heads=["mlp"], random_state=0
        ),
    }
    before = state_of_the_process()
    calls[work]()
    assert state_of_the_process() == before
    if (
        work != "probe_heads"
    ):  # scikit-learn's own heads change the warning filters for a moment, which threads mix up
        in_threads(calls[work])
        assert state_of_the_process() == before


def test_drawing_elsewhere_does_not_change_a_fit():
    expected, stop = fitted(0), threading.Event()

    def draw() -> None:
        while not stop.is_set():
            torch.randn(10)

    thread = threading.Thread(target=draw)
    thread.start()
    try:
        same = [np.array_equal(fitted(0), expected) for _ in range(3)]
    finally:
        stop.set()
        thread.join()
    assert all(same)
