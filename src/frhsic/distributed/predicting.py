"""The function :func:`predict`, which scores a Dask data frame partition by partition."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from frhsic.distributed.frames import dask_module, require_frame_columns
from frhsic.scoring import model_outputs


def predict(model: Any, frame: Any) -> Any:
    """Return the predictions of a fitted model for a Dask data frame, as a Dask data frame.

    Each partition is scored separately when the result is computed or written, for example with
    ``predict(model, frame).to_parquet(folder)``.

    Parameters
    ----------
    model
        A fitted estimator of this library.
    frame : dask.dataframe.DataFrame
        Frame with the columns that the model was fitted on; other columns are ignored. A model that
        uses the sensitive attributes also needs their columns.

    Returns
    -------
    dask.dataframe.DataFrame
        Frame with the index and the partitions of `frame`. For two classes, its columns are
        `score`, the probability of the second class, and `predicted`, the label; for more classes,
        `score_CLASS` for each class, and `predicted`; for a regressor, `predicted`; for an encoder,
        the coordinates.

    Examples
    --------
    >>> import dask.dataframe as dd
    >>> from sklearn.linear_model import LinearRegression
    >>> from frhsic import ParityRegressor
    >>> rng = np.random.default_rng(0)
    >>> table = pd.DataFrame({"hours": rng.normal(size=200)})
    >>> line = LinearRegression()
    >>> model = ParityRegressor(line, attribute_estimator=line, limit=None, random_state=0)
    >>> model = model.fit(table, rng.normal(size=200), sensitive_features=rng.normal(size=200))
    >>> scores = predict(model, dd.from_pandas(table, npartitions=2))
    >>> bool(np.allclose(scores.compute()["predicted"], model.predict(table)))
    True
    """
    check_is_fitted(model)
    dask = dask_module()
    sensitive = [*model.sensitive_names_in_] if getattr(model, "uses_sensitive", False) else []
    schema = getattr(model, "schema_", None)
    features = getattr(model, "feature_names_in_", ()) if schema is None else schema.names
    if not len(features):
        raise ValueError(
            "the model was fitted on an array without column names; fit it on a DataFrame."
        )
    names = [*dict.fromkeys([*map(str, features), *map(str, sensitive)])]
    require_frame_columns(frame, names)
    arguments = dask.delayed((model, [*map(str, features)], sensitive), traverse=False)
    meta = output_types(model)
    return frame[names].map_partitions(_predicted, arguments, meta, meta=meta)


def output_types(model: Any) -> pd.DataFrame:
    """Return a frame without rows that has the columns and types of predictions."""
    if not hasattr(model, "predict"):
        return pd.DataFrame(dtype=np.float64, columns=[*model.get_feature_names_out()])
    if not hasattr(model, "predict_proba"):
        return pd.DataFrame({"predicted": np.zeros(0)})
    names = [f"score_{name}" for name in model.classes_] if len(model.classes_) > 2 else ["score"]
    scores = pd.DataFrame(dtype=np.float64, columns=names)
    return scores.assign(predicted=pd.Series(model.classes_).iloc[:0])


def _predicted(
    part: pd.DataFrame, arguments: tuple[Any, list[str], list[str]], types: pd.DataFrame
) -> pd.DataFrame:
    model, features, sensitive = arguments
    if part.empty:
        return types.reindex(part.index)
    s = part[sensitive] if sensitive else None
    return model_outputs(model, part[features], s).astype(types.dtypes)
