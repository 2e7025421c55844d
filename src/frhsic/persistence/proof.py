"""Synthetic rows whose scores are saved with a model, so that `load` can compare them.

The rows are built from the information that the model has about columns: levels, and bin edges that
are rounded and slightly shifted. They contain no training rows, except by chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from frhsic._warnings import ignore_warnings
from frhsic.estimators.coupling import ParityCoupling
from frhsic.parity.strata import Strata
from frhsic.tables.schema import ColumnType, Schema

# Largest difference between two scores, relative to the largest score.
LARGEST_DIFFERENCE = 1e-6

# Values for a numeric column with an unknown range, and for dates.
PROOF_NUMBERS = (0.0, 1.0, 10.0, 100.0)
PROOF_DATES = ("1970-01-01", "2000-01-01", "2020-02-29", "2030-12-31")
# Text that does not occur in training.
UNSEEN_LEVEL = "a level of no training row"
# Number of rows: one for each of these four values, one with missing values, and one with values
# that do not occur in training.
PROOF_ROWS = 6


def prove(model: Any) -> dict[str, Any]:
    """Return synthetic rows and their scores, without rows that the model rejects."""
    proof = {"columns": _columns(model)}
    rows = []
    scores = [np.zeros(0)]
    for row in range(PROOF_ROWS):
        try:
            own = scores_of_row(model, proof, row)
        except Exception:  # a custom model may raise anything
            continue
        if np.isfinite(own).all():
            rows.append(row)
            scores.append(own)
    return proof | {"rows": rows, "scores": np.concatenate(scores)}


def difference(model: Any, proof: Mapping[str, Any]) -> float:
    """Return the largest difference between the model's scores and those in the proof, relative to
    the largest score.
    """
    rows = (scores_of_row(model, proof, row) for row in proof["rows"][:PROOF_ROWS])
    differences = np.concatenate([np.zeros(0), *rows]) - proof["scores"]
    largest = np.abs(proof["scores"]).max(initial=0.0) or 1.0
    return float(np.abs(differences).max(initial=0.0) / largest)


def scores_of_row(model: Any, proof: Mapping[str, Any], row: int) -> np.ndarray:
    """Return the output of a model for one row of a proof, (k,)."""
    frame = pd.DataFrame({name: [values[row]] for name, values in proof["columns"].items()})
    schema = _schema(model)
    X: Any = schema(frame, ".") if schema.columns else frame.to_numpy(np.float64)
    with ignore_warnings():
        if isinstance(model, ParityCoupling):
            return np.ravel(model._means(pd.DataFrame(X), np.full(1, row, np.uint64)))
        known: dict[str, Any] = {}
        if getattr(model, "uses_sensitive", False):
            known["sensitive_features"] = np.full((1, len(model.sensitive_names_in_)), float(row))
        if getattr(model, "strata_", None) is not None:
            known["control_features"] = _controls(model.strata_, row)
        methods = ("predict_proba", "predict", "transform")
        method = next(name for name in methods if hasattr(model, name))
        scores = getattr(model, method)(X, **known)
    return np.ravel(np.asarray(scores, dtype=np.float64))


def _controls(strata: Strata, row: int) -> pd.DataFrame:
    """Return the controls of a row, cycling through the strata and a stratum that does not
    exist.
    """
    cell = strata.levels[row] if row < strata.other else ()
    values: dict[str, list[Any]] = {}
    for column, level in zip_longest(strata.columns, cell):
        if level is None:
            values[column.name] = [None]
        elif column.cuts:
            values[column.name] = [[*column.cuts, 2 * column.cuts[-1] + 1][level]]
        else:
            values[column.name] = [column.levels[level]]
    return pd.DataFrame(values)


def _schema(model: Any) -> Any:
    return getattr(model, "schema_", None) or getattr(model, "_schema", None) or Schema(())


def _columns(model: Any) -> dict[str, list[Any]]:
    """Return the values of the synthetic rows in each column, keyed by the column's name."""
    engine = getattr(model, "engine_", None)
    numbers = dict(enumerate(() if engine is None else map(_rounded, engine.bins.edges)))
    types = _schema(model).columns or [
        ColumnType(str(j), "number") for j in range(model.n_features_in_)
    ]
    return {one.name: _values(one, numbers.get(j, PROOF_NUMBERS)) for j, one in enumerate(types)}


def _rounded(edges: np.ndarray) -> tuple[float, ...]:
    """Return numbers near four of the edges, from the first edge to the last, that are unlikely to
    occur in any row.
    """
    if not len(edges):
        return PROOF_NUMBERS
    return tuple(1 / 128 + 129 / 128 * float(f"{edge:.1e}") for edge in _spread(edges))


def _spread(values: Any) -> list[Any]:
    """Return four of the values: the first, the last, and two in between."""
    return [values[(len(values) - 1) * part // 3] for part in range(4)]


def _values(column: ColumnType, numbers: tuple[float, ...]) -> list[Any]:
    """Return the values of the synthetic rows in one column."""
    levels = column.levels
    if column.kind == "number":
        return [*numbers, None, 2 * numbers[-1]]
    if column.kind == "boolean":
        return [True, False, True, False, None, None]
    if column.kind == "date":
        form = column.date_format or "%Y-%m-%d"
        return [*(pd.Timestamp(day).strftime(form) for day in PROOF_DATES), None, None]
    if not levels:
        return [None] * PROOF_ROWS
    # a categorical column of pandas can only contain its own levels
    unseen = UNSEEN_LEVEL if column.kind == "text" else None
    return [*_spread(levels), None, unseen]
