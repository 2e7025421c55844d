"""Sensitive attributes as training takes them: scaled columns, NaN in the rows where one is not known."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from frhsic.estimators.checks import check_same_names
from frhsic.penalties import NoPenalty
from frhsic.tables import BandedAttributeWarning, Number, Quantiles, TableEncoding, read_sensitive

if TYPE_CHECKING:
    from frhsic.estimators.network import NetworkEstimator


class MissingSensitiveFeaturesWarning(UserWarning):
    """An estimator with `penalty_weight` above 0 was fitted without `sensitive_features`, hence without penalty.

    To make it an error: ``warnings.simplefilter("error", MissingSensitiveFeaturesWarning)``.
    """


class UnlabelledRowsWarning(UserWarning):
    """Some rows have NaN in `sensitive_features`: they train the task and skip the penalty."""


def scaled_attributes(estimator: NetworkEstimator, values: Any, rows: int) -> np.ndarray | None:
    """Return the sensitive attributes scaled, (n, q), or None if there is no penalty to train with.

    Rows in which an attribute is not known are NaN throughout. The first call learns names and scales from the others.
    """
    off = (
        estimator.penalty_weight == 0 or estimator.penalty == "none" or isinstance(estimator.penalty, NoPenalty)
    )  # then the attributes are checked, but not used
    if values is None:
        if not off:
            warnings.warn(
                f"{type(estimator).__name__} was given no sensitive_features, so it is trained without penalty "
                f"although penalty_weight={estimator.penalty_weight:g}. Pass sensitive_features=..., or "
                "penalty_weight=0.",
                MissingSensitiveFeaturesWarning,
                stacklevel=6,
            )
        return None
    attributes = read_sensitive(values, allow_missing=True)
    s, names = attributes.values, list(attributes.names)
    if len(s) != rows:
        raise ValueError(f"lengths differ: X has {rows} rows, sensitive_features has {len(s)}.")
    for note in attributes.notes:
        warnings.warn(note, BandedAttributeWarning, stacklevel=6)
    known = ~np.isnan(s).any(axis=1)
    if not known.any():
        raise ValueError(
            f"no row has all of sensitive_features ({', '.join(names)}): each of the {rows} holds NaN. Pass rows that "
            "have them, or leave sensitive_features out and train with penalty_weight=0."
        )
    if not hasattr(estimator, "sensitive_encoding_"):
        _learn_scales(estimator, names, s[known])
    elif hasattr(estimator, "sensitive_names_in_"):
        check_same_names(names, [str(name) for name in estimator.sensitive_names_in_])
    scaled = np.full(s.shape, np.nan)
    scaled[known] = estimator.sensitive_encoding_(s[known], name="sensitive_features")
    if off:
        return None
    if not known.all():
        missing, size = int((~known).sum()), int(estimator.batch_size)
        warnings.warn(
            f"sensitive_features are NaN in {missing:,} of {rows:,} rows. These rows train the task and skip the "
            f"penalty. It sees about {size * known.mean():.0f} rows of a batch of {size}; on few rows the same "
            "weight does not do the same, so choose the weight on held-out rows, or consider "
            f"batch_size={size / known.mean():.0f}.",
            UnlabelledRowsWarning,
            stacklevel=6,
        )
    return scaled


def _learn_scales(estimator: NetworkEstimator, names: list[str], s: np.ndarray) -> None:
    """Learn names and scales: the range as in the paper, else ranks, which no increasing map changes."""
    for name, column in zip(names, s.T):
        if estimator.sensitive_encoding is None and column.min() == column.max():
            raise ValueError(
                f"sensitive attribute {name!r} is {column[0]:g} in every row; nothing can depend on it. Leave it out."
            )
    scale = Number if estimator.scaling == "range" else Quantiles
    encoding = TableEncoding(tuple(scale.fit(name, column) for name, column in zip(names, s.T)))
    estimator.sensitive_encoding_ = estimator.sensitive_encoding or encoding
    estimator.sensitive_names_in_ = np.array(names, dtype=object)
