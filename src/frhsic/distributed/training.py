"""Training on a Dask data frame that does not fit into memory, one partition after another."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone, is_classifier

from frhsic import _arrays
from frhsic.distributed.frames import dask_module, first_rows, hashed, require_columns
from frhsic.estimators.network import NetworkEstimator

FIRST_CALL_ROWS = 100_000


def fit(
    estimator: Any,
    frame: Any,
    *,
    target: str,
    sensitive: str | Sequence[str],
    columns: Sequence[str] | None = None,
    epochs: int = 1,
    sample_rows: int = FIRST_CALL_ROWS,
    random_state: _arrays.RandomState = 0,
    watch: Callable[[str], None] | None = None,
) -> Any:
    """Fit an estimator on a Dask data frame by ``partial_fit``, with one partition in memory at a
    time.

    A first pass draws a random sample of the rows. The first call of ``partial_fit`` is on this
    sample: it fixes scales, levels and what the penalty fits in advance. Then each epoch takes all
    partitions in a random order, loaded by Dask and trained on here.

    Parameters
    ----------
    estimator : FRHSICClassifier or FRHSICRegressor
        Unfitted; it is not changed.
    frame : dask.dataframe.DataFrame
        Its partitions should hold many batches each. Rows without a target are left out.
    target, sensitive : str, str or list of str
        Columns of the target and of the sensitive attributes.
    columns : list of str, optional
        Columns to predict from; by default all others.
    epochs : int
        Passes over all rows. The estimator's own `epochs` is not used.
    sample_rows : int
        Rows of the sample, at most. Levels that none of them has are unseen levels.
    random_state
        Seed of the sample and of the order of the partitions; training uses the estimator's own.
    watch : callable, optional
        Called with a sentence at each step, such as ``print``.

    Returns
    -------
    The fitted copy of the estimator.
    """
    if not isinstance(estimator, NetworkEstimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; pass an FRHSICClassifier or FRHSICRegressor."
        )
    _arrays.require_integer(epochs, "epochs", 1)
    attributes = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    require_columns(frame, [target, *attributes, *(columns or ())])
    features = list(columns or ())
    if columns is None:
        features = [name for name in frame.columns if name not in (target, *attributes)]
    tell = watch or (lambda step: None)
    seed = _arrays.seed_of(random_state)
    dask = dask_module()
    parts = frame[[*dict.fromkeys([*features, *attributes, target])]].to_delayed()
    tell("drawing a sample")
    starts = first_rows(parts)
    share = min(sample_rows / max(starts[-1], 1), 1.0)
    tasks = (
        dask.delayed(_drawn)(part, target, start, seed, share)
        for part, start in zip(parts, starts[:-1], strict=True)
    )
    rows, values = zip(*dask.compute(*tasks))
    sample = pd.concat(rows, ignore_index=True)
    if not len(sample):
        raise ValueError(f"no row has the target {target!r}; there is nothing to train on.")
    model = clone(estimator)
    labels: dict[str, Any] = {}
    if is_classifier(model):
        labels["classes"] = np.unique(np.concatenate([own for own in values if len(own)]))
    tell(f"first call on a sample of {len(sample):,} rows")
    model.partial_fit(
        sample[features], sample[target], sensitive_features=sample[attributes], **labels
    )
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        for step, number in enumerate(rng.permutation(len(parts)).tolist()):
            (part,) = dask.compute(parts[number])
            part = part[part[target].notna()].reset_index(drop=True)
            tell(
                f"epoch {epoch + 1} of {epochs}: partition {step + 1} of {len(parts)},"
                f" {len(part):,} rows"
            )
            if len(part):
                model.partial_fit(part[features], part[target], sensitive_features=part[attributes])
    return model


def _drawn(
    part: pd.DataFrame, target: str, first_row: int, seed: int, share: float
) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the rows of one partition that are in the sample, and the different values of its
    target.
    """
    keys = hashed(np.arange(first_row, first_row + len(part), dtype=np.uint64), seed)
    known = part[target].notna().to_numpy()
    chosen = known if share >= 1 else known & (keys < np.uint64(int(share * 2**64)))
    return part[chosen], np.asarray(part[target][known].unique())
