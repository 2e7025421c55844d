"""The regressions of a fit on a Dask cluster: sums of the additive part over all rows, and trees
trained on as many rows as fit on one worker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightgbm
import numpy as np

from frhsic.distributed.frames import dask_module, sampled_keys
from frhsic.distributed.parts import Parts
from frhsic.distributed.rows import join_blocks
from frhsic.estimators.additive import Basis, Design, Grams, LogisticSums, logistic_sums
from frhsic.estimators.constraints import Constraint, LabelledRows
from frhsic.estimators.engine import (
    STRIDE,
    Boosting,
    EngineRows,
    FitTarget,
    Response,
    TargetColumn,
    leaf_count,
    most_looks,
    step_length,
    table_settings,
)

# Cells of the table that trees are trained on, at most: half a million rows of 20 columns, which
# one worker holds. More rows hardly help the 50 trees of 31 leaves that a booster has at most: on
# the law of `benchmarks/scale.py` trees of 60,000, 250,000, 500,000 and a million rows, in 255
# bins, have an excess log loss of .0103, .0031, .0016 and .0013.
TREE_CELLS = 10_000_000


@dataclass(frozen=True, eq=False)
class BlockSteps:
    """What is computed from the rows of a block; `scale` makes the mean weight of all rows equal to
    1.
    """

    model: Any
    constraints: tuple[Constraint, ...]
    basis: Basis
    scale: float
    folds: int
    categorical: Sequence[int]

    def grams(self, block: LabelledRows, target: FitTarget, means: np.ndarray) -> Grams:
        """Return the Gram matrices of a target."""
        response = self._response(block, target)
        rows = np.flatnonzero(response.rows)
        design = self._design(block, rows)
        return Grams.about(design, target.columns(response)[rows], means, self.folds)

    def logistic_sums(
        self,
        block: LabelledRows,
        target: FitTarget,
        coefficients: np.ndarray,
        intercepts: np.ndarray,
    ) -> LogisticSums:
        """Return the sums of a step of a logistic regression."""
        response = self._response(block, target)
        rows = np.flatnonzero(response.rows)
        labels = target.labels(response)[rows]
        return logistic_sums(self._design(block, rows), labels, coefficients, intercepts)

    def trees(
        self,
        block: LabelledRows,
        target: FitTarget,
        fold: int,
        settings: dict[str, Any],
        rounds: int,
    ) -> str:
        """Return, as a string, a booster trained on the rows outside a fold."""
        response = self._response(block, target)
        rows = np.flatnonzero(response.rows & (block.fold != fold))
        data = lightgbm.Dataset(
            block.codes[rows],
            target.labels(response)[rows].reshape(len(rows), -1)[:, 0],
            weight=block.mass[rows] * self.scale,
            categorical_feature=list(self.categorical),
        )
        return str(lightgbm.train(settings, data, rounds).model_to_string())

    def _response(self, block: LabelledRows, target: FitTarget) -> Response:
        response: Response = self.model._responses(block, self.constraints)[target.place]
        return response

    def _design(self, block: LabelledRows, rows: np.ndarray) -> Design:
        incidence = self.basis.bins.incidence(block.codes[rows])
        return Design(self.basis, incidence, block.fold[rows], block.mass[rows] * self.scale)


@dataclass(frozen=True, eq=False)
class ClusterRows(EngineRows):
    """The rows of a fit in blocks on a cluster, with a sample held locally."""

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
        """Learn bins and functions from the sample."""
        categorical = model.schema_.categorical
        settings = table_settings(sample.codes.shape[1]) | {"num_threads": 1}
        data = lightgbm.Dataset(
            sample.codes,
            np.zeros(len(sample.codes)),
            params=settings,
            categorical_feature=list(categorical),
        ).construct()
        scale = 1 / mean_weight
        design = Design.fit(sample.codes, categorical, sample.fold, sample.mass * scale)
        steps = BlockSteps(model, constraints, design.basis, scale, design.folds, categorical)
        seed = sample.seed
        return cls(design, data, settings, seed, client, blocks, steps, total, sample.codes, watch)

    @property
    def count(self) -> int:
        return self.total

    def grams(self, target: FitTarget, response: Response) -> Grams:
        known = np.flatnonzero(response.rows)
        means = self.design.at(known).means(target.columns(response)[known])
        grams: Grams = self.blocks.sum(partial(self.steps.grams, target=target, means=means))
        return grams

    def logistic_sums(
        self,
        target: FitTarget,
        response: Response,
        coefficients: np.ndarray,
        intercepts: np.ndarray,
    ) -> LogisticSums:
        step = partial(
            self.steps.logistic_sums,
            target=target,
            coefficients=coefficients,
            intercepts=intercepts,
        )
        sums: LogisticSums = self.blocks.sum(step)
        return sums

    def boostings(self, columns: Sequence[TargetColumn]) -> Iterator[Boosting]:
        """Train all trees of all columns and folds at once, up to the largest number allowed; their
        loss is evaluated afterwards.
        """
        dask = dask_module()
        rounds = most_looks(self.total) * STRIDE
        rows, width = self.codes.shape
        share = max(TREE_CELLS / width, rows) / self.total
        drawn_blocks = self.blocks.map(partial(_drawn_rows, share=share)).blocks.values()
        block = dask.delayed(join_blocks, pure=False)(list(drawn_blocks))
        futures = []
        for number, column in enumerate(columns):
            settings = self.settings | {
                "num_leaves": leaf_count(round(self.total * (1 - 1 / self.design.folds))),
                "learning_rate": step_length(self.total),
                "objective": column.objective,
                "num_class": column.outputs,
            }
            step = dask.delayed(partial(self.steps.trees, target=column.target), traverse=False)
            tasks = [
                step(block, fold=fold, settings=settings | {"seed": seed}, rounds=rounds)
                for fold, seed in enumerate(self.booster_seeds(number))
            ]
            futures.append(self.client.compute(tasks) if rounds else [])
        for column, own in zip(columns, futures):
            texts = self.client.gather(own)
            yield _SampleBoosting(texts, column.outputs, self.design.fold, self.codes)

    def tell(self, done: int, total: int) -> None:
        """Report progress as a share of the whole fit."""
        self.watch(done / total)


def _drawn_rows(block: LabelledRows, share: float) -> LabelledRows:
    assert block.groups is not None
    return block.at(sampled_keys(block.groups, share))


@dataclass(eq=False)
class _SampleBoosting(Boosting):
    """Boosters with all of their trees, evaluated step by step on the sample."""

    boosters: list[str]
    outputs: int
    fold: np.ndarray
    codes: np.ndarray
    looks: int = 0

    def __post_init__(self) -> None:
        self.loaded = [lightgbm.Booster(model_str=text) for text in self.boosters]
        self.margins = np.zeros((len(self.fold), self.outputs))

    def advance(self) -> np.ndarray:
        start = self.looks * STRIDE
        self.looks += 1
        for j, booster in enumerate(self.loaded):
            own = self.fold == j
            part = booster.predict(
                self.codes[own],
                start_iteration=start,
                num_iteration=STRIDE,
                raw_score=True,
                num_threads=1,
            )
            self.margins[own] += np.reshape(part, (-1, self.outputs))
        return self.margins.copy()

    def texts(self, rounds: int) -> list[str]:
        return [booster.model_to_string(num_iteration=rounds) for booster in self.loaded]
