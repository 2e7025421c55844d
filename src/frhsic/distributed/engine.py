"""The regressions of a fit on a Dask cluster: sums of the additive part over all rows, and trees by
``lightgbm.dask``.
"""

from __future__ import annotations

import contextlib
import io
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import lightgbm
import numpy as np

from frhsic.distributed.frames import dask_module, sum_delayed
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

# Seconds until LightGBM notices that a worker was lost.
LOST_WORKER_WAIT = 20


@dataclass(frozen=True, eq=False)
class Responses:
    """The responses of the rows of a block."""

    model: Any
    constraints: tuple[Constraint, ...]

    def __call__(self, block: LabelledRows, target: FitTarget) -> Response:
        """Return the values of a target."""
        response: Response = self.model._responses(block, self.constraints)[target.place]
        return response


@dataclass(frozen=True, eq=False)
class BlockSums:
    """Sums of the additive part over one block."""

    responses: Responses
    basis: Basis
    scale: float
    folds: int

    def grams(self, block: LabelledRows, target: FitTarget, means: np.ndarray) -> Grams:
        """Return the Gram matrices of a target."""
        rows, response = self._known(block, target)
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
        rows, response = self._known(block, target)
        labels = target.labels(response)[rows]
        return logistic_sums(self._design(block, rows), labels, coefficients, intercepts)

    def _known(self, block: LabelledRows, target: FitTarget) -> tuple[np.ndarray, Response]:
        response = self.responses(block, target)
        return np.flatnonzero(response.rows), response

    def _design(self, block: LabelledRows, rows: np.ndarray) -> Design:
        incidence = self.basis.bins.incidence(block.codes[rows])
        return Design(self.basis, incidence, block.fold[rows], block.mass[rows] * self.scale)


@dataclass(frozen=True, eq=False)
class ClusterRows(EngineRows):
    """The rows of a fit in blocks on a cluster, with a sample of them here."""

    client: Any
    blocks: Sequence[Any]
    sums: BlockSums
    total: int
    sample_codes: np.ndarray
    categorical: Sequence[int]
    watch: Callable[[float], None]

    @classmethod
    def of(
        cls,
        sample: LabelledRows,
        categorical: Sequence[int],
        client: Any,
        blocks: Sequence[Any],
        responses: Responses,
        total: int,
        mean_weight: float,
        watch: Callable[[float], None],
    ) -> ClusterRows:
        """Learn bins and functions from the sample."""
        settings = table_settings(sample.codes.shape[1])
        data = lightgbm.Dataset(
            sample.codes,
            np.zeros(len(sample.codes)),
            params=settings,
            categorical_feature=list(categorical),
        ).construct()
        design = Design.fit(sample.codes, categorical, sample.fold, sample.mass / mean_weight)
        return cls(
            design,
            data,
            settings,
            sample.seed,
            client,
            blocks,
            BlockSums(responses, design.basis, 1 / mean_weight, design.folds),
            total,
            sample.codes,
            categorical,
            watch,
        )

    @property
    def count(self) -> int:
        return self.total

    def grams(self, target: FitTarget, response: Response) -> Grams:
        known = np.flatnonzero(response.rows)
        means = self.design.at(known).means(target.columns(response)[known])
        grams: Grams = sum_over_blocks(self.blocks, self.sums.grams, target, means)
        return grams

    def logistic_sums(
        self,
        target: FitTarget,
        response: Response,
        coefficients: np.ndarray,
        intercepts: np.ndarray,
    ) -> LogisticSums:
        step = self.sums.logistic_sums
        sums: LogisticSums = sum_over_blocks(self.blocks, step, target, coefficients, intercepts)
        return sums

    def boosting(self, column: TargetColumn, number: int) -> Boosting:
        """Train the largest number of trees; their loss is evaluated afterwards."""
        texts = []
        rounds = most_looks(self.total) * STRIDE
        for j, seed in enumerate(self.booster_seeds(number)):
            settings = self.settings | {
                "num_leaves": leaf_count(round(self.total * (1 - 1 / self.design.folds))),
                "learning_rate": step_length(self.total),
                "objective": column.objective,
                "num_class": column.outputs,
                "random_state": seed,
                "n_estimators": rounds,
            }
            texts.append(self._train(column, j, settings) if rounds else "")
        return _SampleBoosting(texts, column.outputs, self.design.fold, self.sample_codes)

    def tell(self, done: int, total: int) -> None:
        """Report progress as a share of the whole fit."""
        self.watch(done / total)

    def _train(self, column: TargetColumn, fold: int, settings: dict[str, Any]) -> str:
        """Return the text of a booster of the rows outside of a fold."""
        dask = dask_module()
        from dask import array

        shared = dask.delayed(
            (self.sums.responses, column.target, fold, self.sums.scale), traverse=False
        )
        columns: list[list[Any]] = [[], [], []]
        for block in self.blocks:
            parts = dask.delayed(_training_rows, nout=3, pure=False)(block, shared)
            for own, part in zip(columns, parts):
                shape = (np.nan, self.sample_codes.shape[1]) if own is columns[0] else (np.nan,)
                own.append(array.from_delayed(part, shape, np.float64))
        x, y, weights = (array.concatenate(own) for own in columns)
        model = lightgbm.DaskLGBMRegressor(client=self.client, **settings)
        categorical = [int(j) for j in self.categorical]
        train = partial(model.fit, x, y, sample_weight=weights, categorical_feature=categorical)
        fit_on_workers(self.client, train, f"trees without fold {fold}")
        return str(model.booster_.model_to_string())


@dataclass(eq=False)
class _SampleBoosting(Boosting):
    """Boosters with all of their trees, evaluated step by step on the sample."""

    boosters: list[str]
    outputs: int
    fold: np.ndarray
    codes: np.ndarray
    looks: int = 0

    def __post_init__(self) -> None:
        self.loaded = [lightgbm.Booster(model_str=text) for text in self.boosters if text]
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


def fit_on_workers(client: Any, train: Callable[[], Any], name: str) -> None:
    """Run a call of ``lightgbm.dask``; raise if a worker is lost, which LightGBM may not notice."""

    def workers() -> set[str]:
        return set(client.scheduler_info(n_workers=-1)["workers"])

    before = workers()
    errors: list[BaseException] = []

    def run() -> None:
        try:
            train()
        except BaseException as error:
            errors.append(error)

    # its messages about ports do not help callers
    with warnings.catch_warnings(action="ignore"), contextlib.redirect_stdout(io.StringIO()):
        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        lost: set[str] = set()
        while thread.is_alive():
            thread.join(LOST_WORKER_WAIT if lost else 1.0)
            still_lost = lost - workers()
            lost = before - workers()
            if still_lost:  # some workers return: busy machines answer late
                break
    if not errors and not thread.is_alive():
        return
    client.run(free_network)
    what = f"training {name} on the cluster stopped"
    cause = errors[0] if errors else None
    if lost:
        raise RuntimeError(
            f"{what}: {', '.join(sorted(lost))} was lost, perhaps for lack of memory. Call fit"
            " again once the cluster has enough workers; client.restart() ends tasks that hang."
        ) from cause
    raise RuntimeError(f"{what}: {cause}") from cause


def free_network() -> None:
    """Close LightGBM's connections of this process, which a failed training leaves open."""
    data = lightgbm.Dataset(np.zeros((2, 1)), np.zeros(2), params={"verbose": -1})
    lightgbm.Booster({"verbose": -1}, data).free_network()


def sum_over_blocks(blocks: Sequence[Any], step: Callable[..., Any], *arguments: Any) -> Any:
    """Return the sum over delayed blocks of ``step(block, *arguments)``."""
    return sum_delayed(map_blocks(blocks, step, *arguments))


def map_blocks(blocks: Sequence[Any], step: Callable[..., Any], *arguments: Any) -> list[Any]:
    """Return ``step(block, *arguments)`` of each delayed block, delayed."""
    dask = dask_module()
    shared = dask.delayed((step, arguments), traverse=False)
    return [dask.delayed(_apply, pure=False)(block, shared) for block in blocks]


def _apply(block: Any, shared: tuple[Callable[..., Any], Sequence[Any]]) -> Any:
    step, arguments = shared
    return step(block, *arguments)


def _training_rows(
    block: LabelledRows, shared: tuple[Responses, FitTarget, int, float]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return table, labels and weights of the rows outside of a fold."""
    responses, target, fold, scale = shared
    if len(block.y):
        response = responses(block, target)
        rows = np.flatnonzero(response.rows & (block.fold != fold))
        if len(rows):
            labels = target.labels(response)[rows].reshape(len(rows), -1)[:, 0]
            return block.codes[rows], labels.astype(np.float64), block.mass[rows] * scale
    # LightGBM rejects empty parts
    return np.full((1, block.codes.shape[1]), np.nan), np.zeros(1), np.zeros(1)
