"""The regressions of a fit on a Dask cluster: an additive part computed from sums over all rows,
and trees trained on as many rows as fit on one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any

import lightgbm
import numpy as np

from frhsic.distributed.frames import dask_module, sampled_keys
from frhsic.distributed.parts import Parts
from frhsic.distributed.rows import join_blocks
from frhsic.estimators.additive import Basis, Design
from frhsic.estimators.boosters import STRIDE, most_looks
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.engine_rows import Boosting, EngineRows, RowStep, learn_table
from frhsic.estimators.responses import FitTarget, Response, TargetColumn

# Most cells of the table that trees are trained on: half a million rows of 20 columns, which fit on
# one worker. More rows hardly help, since a booster has at most 50 trees of 31 leaves: on the
# distribution of `benchmarks/scale.py`, trees of 60,000, 250,000, 500,000 and a million rows, in
# 255 bins, have an excess log loss of .0103, .0031, .0016 and .0013.
TREE_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class BlockSteps:
    """Computations on the rows of a block; `scale` is the factor that gives all rows a mean weight
    of 1.
    """

    model: Any
    constraints: tuple[Constraint, ...]
    basis: Basis
    scale: float
    categorical: Sequence[int]

    def sums(self, block: LabelledRows, target: FitTarget, step: RowStep) -> Any:
        """Return the result of a step on the rows whose target is not missing."""
        response = self._response(block, target)
        rows = np.flatnonzero(response.rows)
        incidence = self.basis.bins.incidence(block.codes[rows])
        weights = block.mass[rows] * self.scale
        design = Design(self.basis, incidence, block.fold[rows], weights)
        return step(design, response.values[rows])

    def trees(
        self,
        block: LabelledRows,
        target: FitTarget,
        fold: int,
        settings: dict[str, Any],
        rounds: int,
    ) -> str:
        """Return the text of a booster trained on the rows outside a fold."""
        response = self._response(block, target)
        rows = np.flatnonzero(response.rows & (block.fold != fold))
        data = lightgbm.Dataset(
            block.codes[rows],
            target.labels(response.values[rows]).reshape(len(rows), -1)[:, 0],
            weight=block.mass[rows] * self.scale,
            categorical_feature=list(self.categorical),
        )
        return str(lightgbm.train(settings, data, rounds).model_to_string())

    def _response(self, block: LabelledRows, target: FitTarget) -> Response:
        response: Response = self.model._responses(block, self.constraints)[target.place]
        return response


@dataclass(frozen=True, eq=False)
class ClusterRows(EngineRows):
    """The rows of a fit in blocks on a cluster, with a sample in local memory."""

    client: Any
    blocks: Parts
    steps: BlockSteps
    total: int
    codes: np.ndarray
    watch: Callable[[float], None]

    @classmethod
    def of(
        cls,
        model: Any,
        constraints: tuple[Constraint, ...],
        sample: LabelledRows,
        client: Any,
        blocks: Parts,
        total: int,
        mean_weight: float,
        watch: Callable[[float], None],
    ) -> ClusterRows:
        """Learn the bins and basis functions from the sample."""
        categorical = model.schema_.categorical
        scale = 1 / mean_weight
        table = learn_table(sample.codes, categorical, sample.fold, sample.mass * scale, 1)
        steps = BlockSteps(model, constraints, table[0].basis, scale, categorical)
        return cls(*table, sample.seed, client, blocks, steps, total, sample.codes, watch)

    @property
    def count(self) -> int:
        return self.total

    def known(self, response: Response) -> np.ndarray:
        return np.flatnonzero(response.rows)

    def sums(self, target: FitTarget, response: Response, step: RowStep) -> Any:
        return self.blocks.sum(partial(self.steps.sums, target=target, step=step))

    def boostings(self, columns: Sequence[TargetColumn]) -> Iterator[Boosting]:
        """Train the largest allowed number of trees for all columns and folds at once; the losses
        are evaluated afterwards.
        """
        dask = dask_module()
        rounds = most_looks(self.total) * STRIDE
        rows, width = self.codes.shape
        share = max(TREE_CELLS / width, rows) / self.total
        drawn_blocks = self.blocks.map(partial(_drawn_rows, share=share)).blocks.values()
        block = dask.delayed(join_blocks, pure=False)(list(drawn_blocks))
        folds = self.design.folds
        trained = [round(self.total * (1 - 1 / folds))] * folds
        futures = []
        for number, column in enumerate(columns):
            step = dask.delayed(partial(self.steps.trees, target=column.target), traverse=False)
            tasks = [
                step(block, fold=fold, settings=settings, rounds=rounds)
                for fold, settings in enumerate(self.booster_settings(number, column, trained))
            ]
            futures.append(self.client.compute(tasks) if rounds else [])
        for column, own in zip(columns, futures):
            boosters = [lightgbm.Booster(model_str=text) for text in self.client.gather(own)]
            yield Boosting(boosters, self._margins(boosters, column.outputs))

    def _margins(self, boosters: Sequence[lightgbm.Booster], outputs: int) -> Iterator[np.ndarray]:
        """Yield the margins of the trained boosters on the sample after every few trees."""
        fold = self.design.fold
        margins = np.zeros((len(fold), outputs))
        for start in count(0, STRIDE):
            for j, booster in enumerate(boosters):
                own = fold == j
                part = booster.predict(
                    self.codes[own],
                    start_iteration=start,
                    num_iteration=STRIDE,
                    raw_score=True,
                    num_threads=1,
                )
                margins[own] += np.reshape(part, (-1, outputs))
            yield margins.copy()

    def tell(self, done: int, total: int) -> None:
        """Report progress as a share of the whole fit."""
        self.watch(done / total)


def _drawn_rows(block: LabelledRows, share: float) -> LabelledRows:
    assert block.groups is not None
    return block.at(sampled_keys(block.groups, share))
