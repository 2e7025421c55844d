r"""Fresh heads on frozen representations: how far GDP spreads over kinds of heads.

Records (`transfer-heads-{protocol}.jsonl`), one for each model of the experiment "transfer" and each head:

``experiment``   "transfer-heads"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``head``         published: "linear", "mlp", "forest", "svm"
``performance``  of that head on test rows (accuracy or mean squared error)
``gdp``          published: on logits of the torch heads and on hard labels of forest and SVM, uniform grid,
                 bandwidth 0.1; corrected: on probabilities for every head, population weighting
``gdp_standardized``  corrected only: divided by the standard deviation of the outputs
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.svm import SVC, SVR
from torch import Tensor, nn

from frhsic.datasets import Split
from frhsic.fleet import Member, Recipe, Task, TrainingData, affine_head, train
from frhsic.parity.smoothing import evaluation_points, gdp_value
from frhsic.transferring import HEADS, Transfer, transfer
from frhsic_paper import keeping, records
from frhsic_paper.catalogue import grid_of
from frhsic_paper.keeping import Key
from frhsic_paper.measures import PUBLISHED_BANDWIDTH
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit

__all__ = ["GRID", "NAME", "fresh_heads", "run"]

NAME = "transfer-heads"

GRID = "transfer"

PUBLISHED_HEADS = ("linear", "mlp", "forest", "svm")

HEAD_EPOCHS, SVM_ROWS, HEAD_SEED = 100, 3000, 42

ROWS = 5000
"""Training rows of the fresh heads, corrected; the published ones had all."""


def run(protocol: Protocol, options: Options) -> list[Record]:
    """Fit fresh heads on the kept representations that are not in the records yet."""
    path, grid = options.file(NAME, protocol), options.applied(grid_of(GRID, protocol))
    published = protocol.name == "published"
    models = keeping.model_file(options.out, GRID, protocol.name)
    units: list[Unit] = list(keeping.kept(models, grid.datasets))
    sizes = dict.fromkeys(units, len(PUBLISHED_HEADS if published else HEADS))
    missing = [Key(*unit) for unit in records.resume(path, units, Key.of, sizes)]
    epochs = HEAD_EPOCHS if options.epochs is None else min(options.epochs, HEAD_EPOCHS)
    for data, splits, states in keeping.groups(grid, protocol, models, missing):
        # of one shape a split: those of a repeat are trained together
        for repeat in sorted({key.repeat for key in states}):
            own = {key: state for key, state in states.items() if key.repeat == repeat}
            split = splits[repeat]
            fitted = _published(own, split, data.task, epochs) if published else _corrected(own, split)
            shared = {"experiment": NAME, "protocol": protocol.name}
            for key, heads in fitted.items():
                records.append(path, [{**shared, **key._asdict(), **head} for head in heads])
        options.say(f"{protocol.name} {NAME} {data.name}: {len(states)} representations")
    return records.read(path)


def fresh_heads(state: dict[str, Tensor], split: Split, rows: int) -> Transfer:
    """Fit every kind of head on the frozen representation of the first training rows, and measure on test rows."""
    train_rows, test = split.train, split.test
    z, z_test = (keeping.encoded(state, x).numpy() for x in (train_rows.x[:rows], test.x))
    y, s = (values[:rows].numpy() for values in (train_rows.y, train_rows.s))
    return transfer(None, z, y, sensitive_features=s, test=(z_test, test.y.numpy(), test.s.numpy()), random_state=0)


def _corrected(states: dict[Key, dict[str, Tensor]], split: Split) -> dict[Key, list[Record]]:
    return {
        key: [
            {
                "head": head.head,
                "performance": head.performance,
                "gdp": head.gdp,
                "gdp_standardized": head.standardized_gdp,
            }
            for head in fresh_heads(state, split, ROWS).heads
        ]
        for key, state in states.items()
    }


def _published(states: dict[Key, dict[str, Tensor]], split: Split, task: Task, epochs: int) -> dict[Key, list[Record]]:
    """Fit the four published heads: logits of the torch heads, hard labels of the others."""
    z = {key: [keeping.encoded(state, part.x) for part in (split.train, split.test)] for key, state in states.items()}
    outputs = {"linear": _torch_head(z, split, task, epochs, None), "mlp": _torch_head(z, split, task, epochs, 64)}
    for name, make, rows in _trees_and_machines(task):
        outputs[name] = {key: _labels(make(), pair, split, rows) for key, pair in z.items()}
    y, s = split.test.y.double(), split.test.s.double()
    grid, weights = evaluation_points(s, PUBLISHED_BANDWIDTH, "uniform")
    found: dict[Key, list[Record]] = {key: [] for key in states}
    for name in PUBLISHED_HEADS:
        for key, scores in outputs[name].items():
            gap = float(gdp_value(scores, s, PUBLISHED_BANDWIDTH, grid, weights))
            found[key].append({"head": name, "performance": _performance(scores, y, task, name), "gdp": gap})
    return found


def _performance(scores: Tensor, y: Tensor, task: Task, head: str) -> float:
    if task == "regression":
        return float(((scores - y) ** 2).mean())
    decisions = scores > (0 if head in ("linear", "mlp") else 0.5)
    return float((decisions.double() == y).double().mean())


def _torch_head(
    z: dict[Key, list[Tensor]], split: Split, task: Task, epochs: int, hidden: int | None
) -> dict[Key, Tensor]:
    """Train one head on each representation, all at once, and return its raw outputs on test rows."""
    y, s = split.train.y, split.train.s
    rows = TrainingData.stacked([TrainingData.of(pair[0], y, s) for pair in z.values()])
    width = rows.columns
    encoder = nn.Identity if hidden is None else partial(_hidden_layer, width, hidden)
    recipe = Recipe(
        task, encoder=encoder, head=partial(affine_head, width if hidden is None else hidden, 1), epochs=epochs
    )
    fleet = train(rows, [Member(0.0, HEAD_SEED, i) for i in range(len(z))], recipe, device="cpu")
    scores = fleet.scores(torch.stack([pair[1] for pair in z.values()]))[..., 0].double()
    return dict(zip(z, scores))


def _hidden_layer(width: int, hidden: int) -> nn.Module:
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU())


def _trees_and_machines(task: Task) -> list[tuple[str, Callable[[], Any], int | None]]:
    if task == "regression":
        return [("forest", partial(RandomForestRegressor, 100, random_state=HEAD_SEED), None), ("svm", SVR, SVM_ROWS)]
    return [("forest", partial(RandomForestClassifier, 100, random_state=HEAD_SEED), None), ("svm", SVC, SVM_ROWS)]


def _labels(head: Any, z: list[Tensor], split: Split, rows: int | None) -> Tensor:
    head.fit(z[0].numpy()[:rows], split.train.y.numpy()[:rows])
    return torch.from_numpy(np.asarray(head.predict(z[1].numpy()), dtype=np.float64))
