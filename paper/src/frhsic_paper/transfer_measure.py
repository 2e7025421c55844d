r"""Fresh heads on frozen representations: how far GDP spreads over kinds of heads.

Part "heads" of the records, one for each model and head:

``dataset``, ``method``, ``weight``, ``repeat``   as in the part "models"
``head``         published: "linear", "mlp", "forest", "svm"
``performance``  of that head on test rows (accuracy or mean squared error)
``gdp``          published: on logits of the torch heads and on hard labels of forest and SVM, uniform grid,
                 bandwidth 0.1; corrected: on probabilities for every head, population weighting
``gdp_standardized``  corrected only: divided by the standard deviation of the outputs
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.svm import SVC, SVR
from torch import Tensor, nn

from frhsic.datasets import Split
from frhsic.fleet import Member, TrainingData, affine_head, train
from frhsic.fleet.losses import Task
from frhsic.parity.smoothing import evaluation_points, gdp_value
from frhsic.transferring import Transfer, transfer
from frhsic_paper.catalogue import OWN
from frhsic_paper.grid import Grid, Splits, by_name
from frhsic_paper.measures import PUBLISHED_BANDWIDTH
from frhsic_paper.models import Model, store_all
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record
from frhsic_paper.steps import Measurement, Training, each

__all__ = ["MEASURE", "TRAIN", "fresh_heads", "grid"]

HEAD_EPOCHS, SVM_ROWS, HEAD_SEED = 100, 3000, 42

ROWS = 5000
"""Training rows of the fresh heads, corrected; the published ones had all."""


def grid(protocol: Protocol) -> Grid:
    """Return the models to transfer: λ = 10 on every dataset, as the published runs were, and 100, as the text says."""
    methods = by_name("frhsic", "reg-gdp", "frem", "adv", OWN)
    datasets = ("adult", "crime", "compas")
    return Grid("transfer", datasets, methods, (10.0, 100.0), 1, Splits(scaling=protocol.scaling))


def fresh_heads(model: Model, split: Split, rows: int) -> Transfer:
    """Fit every kind of head on the frozen representation of the first training rows, and measure on test rows."""
    train_rows, test = split.train, split.test
    z, z_test = (model.encode(x).numpy() for x in (train_rows.x[:rows], test.x))
    y, s = (values[:rows].numpy() for values in (train_rows.y, train_rows.s))
    return transfer(None, z, y, sensitive_features=s, test=(z_test, test.y.numpy(), test.s.numpy()), random_state=0)


def corrected_heads(model: Model, split: Split, protocol: Protocol) -> list[Record]:
    """Fit the library's own kinds of heads."""
    return [
        {
            "head": head.head,
            "performance": head.performance,
            "gdp": head.gdp,
            "gdp_standardized": head.standardized_gdp,
        }
        for head in fresh_heads(model, split, ROWS).heads
    ]


def published_heads(models: Sequence[Model], split: Split, protocol: Protocol, options: Options) -> list[list[Record]]:
    """Fit the four published heads: logits of the torch heads, hard labels of the others."""
    task: Task = models[0].record["task"]
    epochs = HEAD_EPOCHS if options.epochs is None else min(options.epochs, HEAD_EPOCHS)
    z = [(model.encode(split.train.x), model.encode(split.test.x)) for model in models]
    outputs: dict[str, Sequence[Tensor]] = {
        "linear": _torch_heads(z, split, task, epochs, None),
        "mlp": _torch_heads(z, split, task, epochs, 64),
    }
    for name, make, rows in _trees_and_machines(task):
        outputs[name] = [_labels(make(), pair, split, rows) for pair in z]
    y, s = split.test.y.double(), split.test.s.double()
    points, weights = evaluation_points(s, PUBLISHED_BANDWIDTH, "uniform")
    return [
        [
            {
                "head": name,
                "performance": _performance(scores[i], y, task, name),
                "gdp": float(gdp_value(scores[i], s, PUBLISHED_BANDWIDTH, points, weights)),
            }
            for name, scores in outputs.items()
        ]
        for i in range(len(models))
    ]


def _performance(scores: Tensor, y: Tensor, task: Task, head: str) -> float:
    if task == "regression":
        return float(((scores - y) ** 2).mean())
    decisions = scores > (0 if head in ("linear", "mlp") else 0.5)
    return float((decisions.double() == y).double().mean())


def _torch_heads(
    z: Sequence[tuple[Tensor, Tensor]], split: Split, task: Task, epochs: int, hidden: int | None
) -> list[Tensor]:
    """Train one head on each representation, all at once, and return its raw outputs on test rows."""
    y, s = split.train.y, split.train.s
    rows = TrainingData.stacked([TrainingData.of(pair[0], y, s) for pair in z])
    width = rows.columns
    fleet = train(
        rows,
        [Member(0.0, HEAD_SEED, i) for i in range(len(z))],
        task=task,
        encoder=nn.Identity if hidden is None else partial(_hidden_layer, width, hidden),
        head=partial(affine_head, width if hidden is None else hidden, 1),
        epochs=epochs,
        device="cpu",
    )
    return list(fleet.scores(torch.stack([pair[1] for pair in z]))[..., 0].double())


def _hidden_layer(width: int, hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU())


def _trees_and_machines(task: Task) -> list[tuple[str, Callable[[], Any], int | None]]:
    if task == "regression":
        return [("forest", partial(RandomForestRegressor, 100, random_state=HEAD_SEED), None), ("svm", SVR, SVM_ROWS)]
    return [("forest", partial(RandomForestClassifier, 100, random_state=HEAD_SEED), None), ("svm", SVC, SVM_ROWS)]


def _labels(head: Any, z: tuple[Tensor, Tensor], split: Split, rows: int | None) -> Tensor:
    head.fit(z[0].numpy()[:rows], split.train.y.numpy()[:rows])
    return torch.from_numpy(np.asarray(head.predict(z[1].numpy()), dtype=np.float64))


TRAIN = Training(grid, (store_all,))

MEASURE = Measurement(
    "transfer",
    "heads",
    grid,
    {"published": published_heads, "corrected": each(corrected_heads)},
    (HEAD_EPOCHS, SVM_ROWS, HEAD_SEED, ROWS, PUBLISHED_BANDWIDTH),
)
