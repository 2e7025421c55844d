"""Methods that the closed form replaces, for the records of `yardsticks.py`: they run at commit 92a9509 only.

This file goes with the code that it calls; its records stay in `results/yardsticks.parquet`, marked with that commit.

    python benchmarks/yardsticks_before.py run --out before.jsonl --jobs 2     # penalised boosting and transport
    python benchmarks/yardsticks_before.py network --out network.jsonl         # the networks, on a GPU if there is one

The default network is `ParityClassifier()` or `ParityRegressor()` with its base of boosted trees, as `fit_path` fits
it, with all splits of a table in one fleet. For that, up to five training rows are left out where early stopping holds
out unequal numbers. Its seconds are CPU seconds of the base, and the share of one split in the GPU's seconds beside
them (`gpu_seconds`). On one thread of a CPU, `fit_path` with the same 16 weights took 278 s on Adult and 70 s on
Affairs (split 0, CPU seconds, base included).
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
import yardsticks as y
from joblib import Parallel, delayed
from threadpoolctl import threadpool_limits

from frhsic.boosting import BoostedParityClassifier, BoostedParityRegressor
from frhsic.estimators import ParityClassifier, ParityRegressor
from frhsic.estimators.features import checked_table, encoded_features
from frhsic.estimators.length import number_of_epochs
from frhsic.estimators.problem import FitCall
from frhsic.fleet import Member, Recipe, TrainingData, train
from frhsic.transport import ScoreTransport

COMMIT = "92a9509"
BOOSTING_WEIGHTS = (0.0, *np.geomspace(1, 30_000, 15))
NETWORK_WEIGHTS = (0.0, *np.geomspace(0.1, 300, 15))


def boosting(train: y.Rows, seed: int) -> y.Path16:
    """Penalised boosting."""
    kind = BoostedParityClassifier if train.binary else BoostedParityRegressor
    for weight in BOOSTING_WEIGHTS:
        model = kind(weight, n_jobs=1, random_state=seed).fit(train.X, train.y, sensitive_features=train.s)
        yield weight, lambda X, s, model=model: y.scores_of(model, X)


def transport(train: y.Rows, seed: int, features: Callable[..., Any]) -> y.Path16:
    """Transport of LightGBM's scores, fitted to out-of-fold scores."""
    X_train = features(train.X, train.s)
    model = y.model_for(train, seed).fit(X_train, train.y)
    fitted = ScoreTransport().fit(y.out_of_fold(train, X_train, seed), train.s)

    def predict(X: Any, s: np.ndarray, share: float) -> np.ndarray:
        return fitted.set_params(amount=float(share)).transform(y.scores_of(model, features(X, s)), s)

    for share in y.SHARES:
        yield share, partial(predict, share=share)


METHODS = {
    "penalised boosting": y.Method(boosting, commit=COMMIT),
    "transport": y.Method(partial(transport, features=lambda X, s: X), needs_s=True, commit=COMMIT),
    "transport, S a feature": y.Method(partial(transport, features=y.with_s), needs_s=True, commit=COMMIT),
}
NETWORK = y.Method(boosting, commit=COMMIT)


def prepared(name: str, split: int, folder: str | None) -> dict[str, Any]:
    """Fit the base of the default estimator on one split; return what training takes and the columns of other rows."""
    with threadpool_limits(1):
        torch.set_num_threads(1)
        table = y.load(name, folder)
        parts = dict(zip(("train", *y.PARTS), map(table.at, y.split_rows(len(table.y), split))))
        rows, started = parts["train"], time.process_time()
        lead = (ParityClassifier if table.binary else ParityRegressor)(random_state=split)
        problem = lead._start(FitCall(rows.X, rows.y, rows.s, None, lead.epochs))
        seconds = time.process_time() - started
        x = {}
        for part in y.PARTS:
            X = checked_table(lead, parts[part].X, first=False)
            x[part] = np.concatenate([encoded_features(lead, X), lead.base_(X)], axis=1)
        return {"lead": lead, "problem": problem, "x": x, "parts": parts, "seconds": seconds}


def trimmed(data: TrainingData, rows: int, others: int | None) -> TrainingData:
    """Return the first rows of a split, and of those that are held out."""
    held_out = None if data.held_out is None else trimmed(data.held_out, others, None)
    return replace(data, x=data.x[:, :rows], y=data.y[:, :rows], s=data.s[:, :rows], held_out=held_out)


def fleet_of(splits: list[dict[str, Any]], device: str) -> Any:
    """Train all weights on all splits, with the recipe of the estimator."""
    lead, problem = splits[0]["lead"], splits[0]["problem"]
    all_data = [one["problem"].data for one in splits]
    rows = min(data.rows for data in all_data)
    others = None if problem.data.held_out is None else min(data.held_out.rows for data in all_data)
    data = TrainingData.stacked([trimmed(one, rows, others) for one in all_data])
    recipe = Recipe(
        problem.task,
        problem.penalty,
        problem.encoder,
        problem.head,
        epochs=number_of_epochs(lead.epochs, rows, lead.batch_size),
        batch_size=lead.batch_size,
        learning_rate=lead.learning_rate,
        weight_decay=lead._decay(problem.task),
        variance_floor=lead._floor(problem.task),
        schedule=lead.schedule,
        patience=None if others is None else int(lead.n_iter_no_change),
    )
    members = [Member(w, one["problem"].seed, i) for i, one in enumerate(splits) for w in NETWORK_WEIGHTS]
    return train(data, members, recipe, device=device)


def network(name: str, splits: dict[int, dict[str, Any]], device: str) -> list[dict[str, Any]]:
    """Return the records of the default network on all splits of a table."""
    records = []
    for width in {one["problem"].data.columns for one in splits.values()}:
        own = {k: one for k, one in splits.items() if one["problem"].data.columns == width}
        fleet = fleet_of(list(own.values()), device)
        tasks = []
        for part in y.PARTS:
            x = torch.stack([torch.as_tensor(one["x"][part], dtype=torch.float32) for one in own.values()])
            raw = fleet.scores(x.to(fleet.device))[..., 0].double().cpu().numpy()
            for i, f in enumerate(raw):
                k = list(own)[i // len(NETWORK_WEIGHTS)]
                rows, lead = own[k]["parts"][part], own[k]["lead"]
                f = 1 / (1 + np.exp(-f)) if rows.binary else f * lead.target_scale_ + lead.target_mean_
                weight, seconds = NETWORK_WEIGHTS[i % len(NETWORK_WEIGHTS)], own[k]["seconds"]
                about = y.record(name, k, "default network", NETWORK, weight, part, seconds)
                about["gpu_seconds"] = fleet.seconds / len(own)
                tasks.append((about, (y.Served(f), rows, own[k]["parts"]["train"].y.mean())))
        records += [about | y.measured(*arguments) for about, arguments in tasks]
        print(f"{name}: {len(own)} splits, {fleet.seconds:.1f} s", flush=True)
    return records


def main() -> None:
    """Train the networks, or run the other methods."""
    if sys.argv[1] != "network":
        return y.main(methods=METHODS)
    arguments = y.parsed()
    out = Path(arguments.out)
    done = {json.loads(line)["table"] for line in out.read_text().splitlines()} if out.exists() else set()
    names = [name for name in arguments.tables.split(",") if name not in done]
    pairs = [(name, k) for name in names for k in range(arguments.splits)]
    work = Parallel(arguments.jobs, return_as="generator", pre_dispatch="all", batch_size=1)(
        delayed(prepared)(name, k, arguments.data) for name, k in pairs
    )
    splits: dict[int, dict[str, Any]] = {}
    for (name, k), one in zip(pairs, work):
        splits[k] = one
        if len(splits) == arguments.splits:
            with out.open("a") as file:
                file.write("".join(json.dumps(r) + "\n" for r in network(name, splits, "auto")))
            splits = {}
    return None


if __name__ == "__main__":
    main()
