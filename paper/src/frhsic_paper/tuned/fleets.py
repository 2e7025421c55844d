"""Train the networks: all weights, splits and trials with the same terms as one fleet."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

import numpy as np
import pandas as pd
import torch
from joblib import Parallel, delayed

from frhsic.fleet import Member, Recipe, TrainingData, affine_head, mlp_encoder, train
from frhsic.fleet.data import Purpose, stream_seed
from frhsic.tables import TableEncoding
from frhsic_paper.tuned.methods import Inputs, Method
from frhsic_paper.tuned.rows import Base, Role, Source, divided, measured

FIRST_SEED = 100
STEPS = 2_500
PATIENCE = 20
STOPPING_ROWS = range(500, 10_000)
"""Numbers of training rows with which the estimators stop early."""


@dataclass(frozen=True, eq=False)
class Path:
    """Performance and GDP of one trial, weights by splits, and the seconds of its fleet."""

    weights: tuple[float, ...]
    performance: np.ndarray
    gdp: np.ndarray
    seconds: float = math.nan
    device: str = "cpu"


@dataclass(frozen=True, eq=False)
class Part:
    """One split, encoded: rows to train on, the other rows, and the scale of a real target."""

    data: TrainingData
    x: np.ndarray
    y: np.ndarray
    s: np.ndarray
    center: float
    spread: float


def trained(
    method: Method,
    source: Source,
    role: Role,
    bases: Sequence[Base | None],
    weights: Mapping[int, Sequence[float]],
    *,
    device: str,
    jobs: int,
    epochs: int | None = None,
) -> dict[int, Path]:
    """Train some trials of a method on every split, each at its weights, and measure them on the other rows."""
    assert method.inputs is not None
    stops = method.stops_early and len(divided(len(source.y), role, 0)[0]) in STOPPING_ROWS
    parts = [encoded(source, method.inputs, role, k, base, stops) for k, base in enumerate(bases)]
    paths: dict[int, Path] = {}
    for _, group in groupby(weights, key=method.terms_of):
        paths |= _fleet(method, source, parts, {trial: tuple(weights[trial]) for trial in group}, device, jobs, epochs)
    return paths


def encoded(source: Source, inputs: Inputs, role: Role, split: int, base: Base | None, stops: bool) -> Part:
    """Encode one split as the inputs say; a tenth of the training rows decides when to stop, if training stops."""
    rows, others = divided(len(source.y), role, split)
    encoding = TableEncoding.fit(source.X.iloc[rows], scaling=inputs.scaling)
    x, x_other = (encoding(source.X.iloc[part]) for part in (rows, others))
    if inputs.base:
        assert base is not None
        x, x_other = (np.column_stack(pair) for pair in zip((x, x_other), base.columns))
    attribute = pd.DataFrame({"s": source.s})
    scale = TableEncoding.fit(attribute.iloc[rows], scaling="quantile" if inputs.ranks else "range")
    s, y = scale(attribute.iloc[rows]), source.y[rows]
    regression = source.task == "regression"
    center, spread = (float(y.mean()), float(y.std())) if regression else (0.0, 1.0)
    y = (y - center) / spread
    few = len(y) // 10 if stops else 0  # the rows are in random order
    held_out = TrainingData.of(x[:few], y[:few], s[:few]) if stops else None
    data = TrainingData.of(x[few:], y[few:], s[few:], held_out=held_out)
    return Part(data, x_other, source.y[others], source.s[others], center, spread)


def automatic_epochs(rows: int, batch_size: int = 256) -> int:
    """Return the epochs of about 2,500 steps, from 20 to 100, as the estimators do.

    Examples
    --------
    >>> automatic_epochs(26_000), automatic_epochs(1_000)
    (25, 100)
    """
    return int(np.clip(round(STEPS / math.ceil(rows / batch_size)), 20, 100))


def _fleet(
    method: Method,
    source: Source,
    parts: Sequence[Part],
    weights: Mapping[int, tuple[float, ...]],
    device: str,
    jobs: int,
    epochs: int | None,
) -> dict[int, Path]:
    """Train trials that share their terms, all of them at once where the splits have the same columns."""
    assert method.inputs is not None
    assert method.penalty is not None
    terms, columns = method.terms_of(next(iter(weights))), method.inputs.representation
    keys = [(trial, j, split) for trial in weights for split in range(len(parts)) for j in range(len(weights[trial]))]
    values: dict[tuple[int, int, int], tuple[float, float]] = {}
    seconds, name = 0.0, device
    for width in sorted({part.data.columns for part in parts}):
        own = [k for k, part in enumerate(parts) if part.data.columns == width]
        data = TrainingData.stacked([parts[k].data for k in own])
        here = [key for key in keys if key[2] in own]
        members = [Member(weights[t][j], FIRST_SEED + t, own.index(k)) for t, j, k in here]
        table = {stream_seed(m.seed, m.split, Purpose.PENALTY): method.values(m.seed - FIRST_SEED) for m in members}
        recipe = Recipe(
            source.task,
            partial(method.penalty, table),
            partial(mlp_encoder, width, list(method.inputs.hidden), columns, method.inputs.activation),
            partial(affine_head, columns, 1),
            epochs=epochs or terms.epochs or automatic_epochs(data.rows),
            schedule=terms.schedule,
            patience=None if data.held_out is None else PATIENCE,
            weight_decay=terms.decay,
            variance_floor=terms.floor,
        )
        fleet = train(data, members, recipe, device=device)
        if fleet.interrupted:
            raise KeyboardInterrupt
        seconds, name = seconds + fleet.seconds, fleet.device.type
        x = torch.stack([torch.as_tensor(parts[k].x, dtype=torch.float32) for k in own]).to(fleet.device)
        raw = fleet.scores(x)[..., 0].double().cpu().numpy()
        work = (
            delayed(measured)(source.task, part.y, scores * part.spread + part.center, part.s)
            for (_, _, k), scores in zip(here, raw)
            for part in (parts[k],)
        )
        values |= dict(zip(here, Parallel(jobs, batch_size=32)(work)))
    splits = len(parts)
    return {
        t: Path(own, _table(values, t, len(own), splits, 0), _table(values, t, len(own), splits, 1), seconds, name)
        for t, own in weights.items()
    }


def _table(
    values: Mapping[tuple[int, int, int], tuple[float, float]], trial: int, weights: int, splits: int, which: int
) -> np.ndarray:
    return np.array([[values[trial, j, k][which] for k in range(splits)] for j in range(weights)])
