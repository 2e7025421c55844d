"""Fit what is no network: boosting with the penalty in its objective, and transport of the scores of boosted trees."""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping, Sequence
from importlib.util import find_spec

import numpy as np
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from frhsic.boosting import BoostedParityClassifier, BoostedParityRegressor
from frhsic.transport import ScoreTransport
from frhsic_paper.tuned.fleets import Path
from frhsic_paper.tuned.methods import AMOUNTS, Method
from frhsic_paper.tuned.rows import Role, Source, divided, measured, raw_scores, shown

ROUNDS = 300
"""Most trees of boosting."""

HELD_OUT = 5
"""One of so many training rows fits the transport, on scores of trees that the others trained."""


def available() -> bool:
    """Return whether LightGBM can be imported."""
    return find_spec("lightgbm") is not None


def fitted(
    method: Method, source: Source, role: Role, splits: int, weights: Mapping[int, Sequence[float]], *, jobs: int
) -> dict[int, Path]:
    """Fit some trials of a method on every split, each at its weights, and measure them on the other rows."""
    started = time.perf_counter()
    if method.name == "boosting":
        keys = [(t, k, j) for t, own in weights.items() for k in range(splits) for j in range(len(own))]
        work = (delayed(_boosted)(source, role, k, method.values(t), weights[t][j]) for t, k, j in keys)
        values = dict(zip(keys, Parallel(jobs)(work)))
    else:
        pairs = [(t, k) for t in weights for k in range(splits)]
        work = (delayed(_transported)(source, role, k, method.values(t)) for t, k in pairs)
        paths = dict(zip(pairs, Parallel(jobs)(work)))
        values = {(t, k, j): value for (t, k), path in paths.items() for j, value in enumerate(path)}
    seconds = time.perf_counter() - started

    def table(trial: int, count: int, which: int) -> np.ndarray:
        return np.array([[values[trial, k, j][which] for k in range(splits)] for j in range(count)])

    return {t: Path(tuple(own), table(t, len(own), 0), table(t, len(own), 1), seconds) for t, own in weights.items()}


def _boosted(source: Source, role: Role, split: int, settings: tuple[float, ...], weight: float) -> tuple[float, float]:
    rows, others = divided(len(source.y), role, split)
    rate, leaves, least = settings
    kind = BoostedParityRegressor if source.task == "regression" else BoostedParityClassifier
    model = kind(
        weight,
        n_estimators=ROUNDS,
        learning_rate=rate,
        num_leaves=int(leaves),
        min_child_samples=int(least),
        n_jobs=1,
        random_state=split,
    )
    with threadpool_limits(1):
        model.fit(source.X.iloc[rows], source.y[rows], sensitive_features=source.s[rows])
        raw = raw_scores(model, source.X.iloc[others], source.task)
        return measured(source.task, source.y[others], raw, source.s[others])


def _transported(source: Source, role: Role, split: int, settings: tuple[float, ...]) -> list[tuple[float, float]]:
    """Return a value for each amount."""
    import lightgbm

    rows, others = divided(len(source.y), role, split)
    rate, leaves, least, resolution = settings
    held_out, train = rows[: len(rows) // HELD_OUT], rows[len(rows) // HELD_OUT :]
    kind = lightgbm.LGBMRegressor if source.task == "regression" else lightgbm.LGBMClassifier
    model = kind(
        learning_rate=rate,
        num_leaves=int(leaves),
        min_child_samples=int(least),
        n_jobs=1,
        verbose=-1,
        random_state=split,
    )
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # LightGBM renames columns with odd characters
        X = source.X.set_axis([f"x{j}" for j in range(source.X.shape[1])], axis=1)
        model.fit(X.iloc[train], source.y[train])
        of_fit, of_others = (
            shown(raw_scores(model, X.iloc[part], source.task), source.task) for part in (held_out, others)
        )
        transport = ScoreTransport(resolution=None if np.isnan(resolution) else resolution).fit(
            of_fit, source.s[held_out]
        )
        values = []
        for amount in AMOUNTS:
            moved = transport.set_params(amount=amount).transform(of_others, source.s[others])
            if source.task != "regression":
                p = np.clip(moved, 1e-6, 1 - 1e-6)
                moved = np.log(p / (1 - p))
            values.append(measured(source.task, source.y[others], moved, source.s[others]))
        return values
