"""The function :func:`fit`: a predictor with a parity limit, fitted on the rows of a Dask data
frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral
from typing import Any, TypeVar

import numpy as np
from sklearn.base import clone, is_classifier

from frhsic import _progress
from frhsic._threads import limit_threads
from frhsic.distributed.engine import ClusterRows
from frhsic.distributed.frames import dask_module, require_frame_columns
from frhsic.distributed.measuring import FrontierPass
from frhsic.distributed.parts import KEY_COLUMN, Parts
from frhsic.distributed.rows import BlockPlan, FitColumns, FitSketch
from frhsic.estimators.constraints import LabelledRows
from frhsic.estimators.engine import fit_parts
from frhsic.estimators.inputs import target_column
from frhsic.estimators.predictor import ParityEstimator

FittedModel = TypeVar("FittedModel", bound=ParityEstimator)

# Rows used to learn bins, directions, boosting rounds and coefficients: as many as a fit on one
# machine uses to solve for the coefficients when one of five folds is left out.
FIT_SAMPLE_ROWS = 60_000
# Cumulative percentages of the time, for progress: the additive parts, the trees and the
# coefficients.
PREPARED = 25
GROWN = 60
SOLVED = 70


def fit(
    estimator: FittedModel,
    frame: Any,
    *,
    target: str,
    sensitive_features: str | Sequence[str],
    control_features: str | Sequence[str] | None = None,
    groups: str | None = None,
    sample_weight: str | None = None,
    key: str | None = None,
    client: Any = None,
    sample_rows: int = FIT_SAMPLE_ROWS,
) -> FittedModel:
    r"""Fit a ParityClassifier or a ParityRegressor to the rows of a Dask data frame.

    The model is fitted in the same way as with ``estimator.fit`` on one machine, and is saved,
    loaded and served like any other model. All rows are used to fit the additive part of the
    models, by adding up Gram matrices, and to measure every trade-off and its gap. Trees are
    trained in parallel, each on one worker, on a random sample of at most 10 million cells, such as
    half a million rows of 20 columns. A smaller sample determines the types and bins of columns,
    the functions of the attributes, the number of boosting rounds, and the coefficients of the
    trade-offs. Only the rows in this sample are sent to the client.

    Parameters
    ----------
    estimator : ParityClassifier or ParityRegressor
        Estimator with the parameters of the fit. It is not changed. It must use the library's own
        models (``estimator=None``) and a number of folds.
    frame : dask.dataframe.DataFrame
        Rows to fit to. Columns that no other argument names are features.
    target : str
        Column of y, without missing values.
    sensitive_features : str or list of str
        Columns of the attributes, as numbers. Rows with missing attributes are used only for the
        model of y.
    control_features : str or list of str, optional
        Feature columns; people are compared only with people who have the same values in these
        columns. The sample determines the strata.
    groups : str, optional
        Column that identifies rows that belong together. The rows of a group stay in the same fold.
        Trade-offs are measured on the sample, which contains whole groups, because sums over groups
        would take too much memory.
    sample_weight : str, optional
        Column of weights of the rows.
    key : str, optional
        Column that identifies rows, such as an ID. Its hash determines the folds and the sample.
        Without `key` and `groups`, the number of the row in the frame is hashed, so the folds
        depend on the order of the rows.
    client : distributed.Client, optional
        Client of the cluster; by default, the client of :func:`frhsic.distributed.cluster`, or the
        client that was created last.
    sample_rows : int
        Maximum number of rows in the sample.

    Returns
    -------
    ParityClassifier or ParityRegressor
        A fitted copy of the estimator.

    Notes
    -----
    The rows, converted to numbers, must fit into the combined memory of the workers. Bin edges come
    from the sample: the share q of all rows below an edge has a standard error of :math:`\sqrt{q(1
    - q) / m}` with m rows in the sample, at most 0.2 % by default, and so do the deciles of ranks.
    AUC is computed from scores grouped into 1,024 ranges. Up to rounding, the model does not depend
    on the number of workers and partitions, even if a worker is lost.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> import pandas as pd
    >>> from distributed import Client
    >>> from frhsic import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=400)
    >>> table = pd.DataFrame({"age": age, "income": age / 10 + rng.normal(size=400)})
    >>> table["hours"] = table["income"] + rng.normal(size=400)
    >>> frame = dd.from_pandas(table, npartitions=2)
    >>> with Client(processes=False, n_workers=1, dashboard_address=":0"):
    ...     model = fit(
    ...         ParityRegressor(random_state=0),
    ...         frame,
    ...         target="income",
    ...         sensitive_features="age",
    ...     )
    >>> model.predict(table[["hours"]]).shape
    (400,)
    """
    names = _names(sensitive_features)
    controls = _names(control_features)
    roles = [target, *names, *(name for name in (groups, sample_weight, key) if name is not None)]
    require_frame_columns(frame, [*roles, *controls])
    _require_supported(estimator, names)
    model: FittedModel = clone(estimator)
    model._check()
    columns = FitColumns(
        features=tuple(name for name in frame.columns if name not in roles),
        target=target,
        sensitive=tuple(names),
        controls=tuple(controls),
        groups=groups,
        weights=sample_weight,
        classifies=is_classifier(model),
    )
    if taken := [name for name in controls if name in roles]:
        raise ValueError(
            f"{taken[0]!r} is named in control_features and in another argument; name it in"
            " only one argument."
        )
    if not columns.features:
        raise ValueError(
            "every column of frame is named in an argument, so no features are left; pass a frame"
            " that also has feature columns."
        )
    client = _client(client)
    with client.as_current(), limit_threads(model.n_jobs):
        _fit(model, frame, columns, key, client, sample_rows)
    return model


def _names(columns: str | Sequence[str] | None) -> list[str]:
    return [columns] if isinstance(columns, str) else [*(columns or ())]


def _require_supported(estimator: Any, names: Sequence[str]) -> None:
    """Raise an error if an estimator cannot be fitted on a cluster."""
    if not isinstance(estimator, ParityEstimator):
        raise TypeError(
            f"estimator is {type(estimator).__name__}; pass a ParityClassifier or a"
            " ParityRegressor."
        )
    own = ("estimator", "attribute_estimator")
    if any(getattr(estimator, name) is not None for name in own):
        raise ValueError(
            "custom models cannot be fitted on a cluster; leave estimator and"
            " attribute_estimator as None, or fit on a sample in memory."
        )
    if not isinstance(estimator.cv, Integral):
        raise ValueError(
            "a fit on a cluster requires cv to be a number of folds; pass groups= for rows"
            " that belong together."
        )
    if not (estimator.random_state is None or isinstance(estimator.random_state, Integral)):
        raise ValueError("a fit on a cluster requires random_state to be a whole number or None.")
    if not names:
        raise ValueError("sensitive_features is empty; name at least one column.")


def _client(client: Any) -> Any:
    """Return the given client, or the client of the current cluster."""
    dask_module()
    import distributed

    try:
        return distributed.get_client() if client is None else client
    except ValueError:
        raise ValueError(
            "there is no cluster; fit within `with frhsic.distributed.cluster('local'):`, or pass"
            " client=."
        ) from None


def _fit(
    model: Any, frame: Any, columns: FitColumns, key: str | None, client: Any, sample_rows: int
) -> None:
    def progress(percent: float) -> None:
        _progress.tell(int(percent), 100, "percent")

    seed = 0 if model.random_state is None else int(model.random_state)
    parts = Parts.of(frame, columns.names(key), columns.groups or key, seed)
    progress(2)
    sketch: FitSketch | None = parts.sum(
        partial(columns.sketch, most=sample_rows, total=parts.rows)
    )
    if sketch is None:
        raise ValueError(
            "frame has no rows with a positive weight; pass at least some positive weights."
        )
    progress(6)
    plan, sample = _learn(model, sketch, columns)
    blocks = parts.map(plan.block).persist()
    constraints = model._constraints(sample)
    mean_weight = sketch.weight / sketch.rows
    rows = ClusterRows.of(
        model,
        constraints,
        sample,
        client,
        blocks,
        sketch.rows,
        mean_weight,
        lambda share: progress(PREPARED + share * (GROWN - PREPARED)),
    )
    fitted = fit_parts(rows, model._responses(sample, constraints))
    model.engine_ = fitted.engine()
    model.models_ = []
    model.attribute_models_ = []
    predicted = model.engine_.values(fitted.margins)
    constraints, eta, means = model._solve(sample, constraints, predicted, fitted.directions[1:])
    progress(SOLVED)
    if columns.groups is not None:
        model.frontier_ = model._measured(sample, constraints, eta, means)
    else:
        engines = tuple(fitted.engine(fold) for fold in range(rows.design.folds))
        frontier_pass = FrontierPass.of(
            model, engines, constraints, sample, eta, means, sketch.rows, mean_weight
        )
        model.frontier_ = frontier_pass.frontier(blocks)
    progress(100)
    model._choose()


def _learn(model: Any, sketch: FitSketch, columns: FitColumns) -> tuple[BlockPlan, LabelledRows]:
    """Learn the types of columns from the sample, with the levels that occur in all rows. Return
    the plan that converts partitions to rows of a fit, and the rows of the sample.
    """
    sketch.check(columns.target)
    table, weights = columns.usable(sketch.sample.table)
    X = table[[*columns.features]]
    groups = None if columns.groups is None else table[KEY_COLUMN]
    X, weights, _ = model._check_fit(
        X, table[columns.target], table[[*columns.sensitive]], weights, groups
    )
    model.schema_ = sketch.known_schema(model.schema_)
    codes = model._codes(target_column(model, table[columns.target]))
    if columns.classifies:
        known = sketch.columns[columns.target].levels
        rare = set() if known is None else {*known} - {*model.classes_.tolist()}
        if known is None or rare:
            shown = "many" if known is None else repr(min(map(str, rare)))
            raise ValueError(
                f"classes of {columns.target!r} are missing from the sample of {len(table):,}"
                f" rows: {shown}."
                " Merge rare classes, or raise sample_rows."
            )
    s = model._attributes(X, codes, table[[*columns.sensitive]])
    strata = model._learn_strata(X, X[[*columns.controls]] if columns.controls else None)
    n_folds = int(model.cv)
    model.folds_ = None
    if model.aim != "score" and columns.groups is None:
        classes = codes.astype(np.int64) if columns.classifies else None
        model._served_folds(n_folds, X, model._coded(X, s, strata), classes, None, weights)
        n_folds = n_folds if model.folds_ is None else model.folds_.n_folds
    plan = BlockPlan(columns, model, n_folds)
    sample = plan.block(table)
    return plan, sample if columns.groups is not None else replace(sample, groups=None)
