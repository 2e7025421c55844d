"""Train new heads on a frozen representation and measure how much they depend on a sensitive
attribute.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, mean_squared_error
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils import check_consistent_length
from sklearn.utils.multiclass import type_of_target

from frhsic import _arrays
from frhsic.dependence import mutual_information
from frhsic.parity import gdp, standardized_gdp
from frhsic.probes import held_out_r2, linear_head
from frhsic.scoring import model_scores
from frhsic.splits import subsample

__all__ = ["HEADS", "SVM_ROWS", "AttributeProbes", "HeadGap", "HeadProbes", "probe_heads"]

HeadTask = Literal["classification", "regression"]

# The heads to fit by default.
HEADS = ("linear", "mlp", "forest", "svm", "boosting")

# Maximum number of training rows for the support vector machine, whose cost grows with the square
# of this number.
SVM_ROWS = 5000


@dataclass(frozen=True)
class HeadGap:
    """The gap of one new head with respect to one attribute, measured on test rows.

    Attributes
    ----------
    head
        Name of the head.
    attribute
        Name of the attribute.
    performance
        Accuracy, or mean squared error.
    gdp
        GDP of the head's probabilities or, for a regression, of its predictions, in the unit of y.
    low
        Lower end of the 95 % interval for GDP.
    high
        Upper end of the 95 % interval for GDP.
    expected_under_independence
        Expected value of the estimated GDP if the scores were independent of the attribute.
    standardized_gdp
        GDP divided by the standard deviation of the scores; 0 if they are constant.
    train_rows
        Number of rows that the head was fitted on.
    """

    head: str
    attribute: str
    performance: float
    gdp: float
    low: float
    high: float
    expected_under_independence: float
    standardized_gdp: float
    train_rows: int


@dataclass(frozen=True)
class AttributeProbes:
    """How well an attribute can be recovered from Z on test rows.

    Attributes
    ----------
    linear_r2
        R² of a ridge regression that was fitted on the training rows to predict the attribute from
        Z; 0 or less if it recovers nothing.
    trees_r2
        R² of boosted trees that were fitted in the same way.
    mutual_information
        Mutual information of Z and the attribute in nats, estimated from nearest neighbors
        (:func:`frhsic.dependence.mutual_information`); about 0 if Z and the attribute are
        independent.
    """

    attribute: str
    linear_r2: float
    trees_r2: float
    mutual_information: float


@dataclass(frozen=True)
class HeadProbes:
    """Gaps of newly trained heads, and probes for each attribute.

    Attributes
    ----------
    heads
        One entry for each head and attribute.
    probes
        One entry for each attribute.
    unit
        Unit of every GDP: "probability", or "unit of y".
    train_rows
        Number of rows that heads and probes were fitted on.
    test_rows
        Number of rows on which gaps and probes were measured.
    seed
        Seed that reproduces the result.
    """

    heads: tuple[HeadGap, ...]
    probes: tuple[AttributeProbes, ...]
    unit: str
    train_rows: int
    test_rows: int
    seed: int

    @property
    def worst(self) -> HeadGap:
        """The head and attribute with the largest GDP."""
        return max(self.heads, key=lambda gap: gap.gdp)

    @property
    def spread(self) -> float:
        """Standard deviation (with n in the denominator) of the largest GDP of each head, which
        shows how much the choice of head matters.
        """
        return float(np.std(self.to_frame().groupby("head", sort=False)["gdp"].max().to_numpy()))

    def __float__(self) -> float:
        return self.worst.gdp

    def to_frame(self) -> pd.DataFrame:
        """Return a DataFrame with one row for each head and attribute, which also contains the
        attribute's probes.
        """
        probes = {probe.attribute: asdict(probe) for probe in self.probes}
        return pd.DataFrame([{**asdict(gap), **probes[gap.attribute]} for gap in self.heads])


def probe_heads(
    encoder: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    test: float | tuple[Any, Any, Any] = 0.25,
    heads: Sequence[str] | Mapping[str, Any] = HEADS,
    task: Literal["auto", "classification", "regression"] = "auto",
    resolution: float | None = None,
    random_state: _arrays.RandomState = 0,
) -> HeadProbes:
    r"""Fit new heads f on a frozen representation Z = h(X), and measure :math:`E_S |E[f(Z) | S] - E
    f(Z)|` for each head on test rows.

    If the representation is independent of S, no head has a gap. If only the representation's own
    head was penalized, other heads may have large gaps. The largest measured gap is a lower bound
    on the largest gap over all heads. All gaps have the same unit: probabilities, or the unit of y.

    Parameters
    ----------
    encoder
        A fitted object with a ``transform`` method, a function of X, or None if X is already Z.
    X, y, sensitive_features
        Rows that heads and probes are fitted on. If there are several attributes, each is measured
        separately.
    test
        Share of these rows to use as test rows, or the test rows themselves as (X, y,
        sensitive_features). No head is fitted on the test rows, and the encoder should not have
        been either.
    heads
        Names among :data:`HEADS`: logistic or ridge regression, a network with 64 hidden units, 100
        random trees, a support vector machine with a Gaussian kernel (on at most 5,000 rows,
        calibrated to probabilities), and boosted trees; or a mapping from names to scikit-learn
        estimators.
    task
        "auto" means regression if y is continuous (scikit-learn's ``type_of_target``).
    resolution
        Resolution of GDP, as a share of the rows; see :func:`frhsic.parity.gdp`.
    random_state
        Seed for the split and the heads.

    Examples
    --------
    Z is the attribute itself: every head that uses it has a gap, and a probe recovers it.

    >>> s = np.linspace(0, 1, 200)
    >>> result = probe_heads(None, s[:, None], s > 0.5, sensitive_features=s, heads=["linear"])
    >>> result.worst.gdp > 0.2, round(result.probes[0].linear_r2, 2)
    (True, 1.0)
    """
    seed = _arrays.integer_seed(random_state)
    _arrays.require_same_rows((X, "X"), (y, "y"), (sensitive_features, "sensitive_features"))
    s = sensitive_features
    if isinstance(test, (int, float)):
        X, X_test, y, y_test, s, s_test = train_test_split(
            X, y, s, test_size=float(test), random_state=seed
        )
    else:
        X_test, y_test, s_test = test
    s = _attributes(s)
    s_test = _attributes(s_test)
    names = _arrays.column_names(sensitive_features, "sensitive", s.shape[1])
    if s.shape[1] != s_test.shape[1]:
        raise ValueError(
            f"the test rows have {s_test.shape[1]} attributes, but the training rows have"
            f" {s.shape[1]}; pass the same attributes for both."
        )
    z = _encoded(encoder, X)
    z_test = _encoded(encoder, X_test)
    y = np.asarray(y).ravel()
    y_test = np.asarray(y_test).ravel()
    check_consistent_length(z, y, s)
    if task == "auto":
        task = "regression" if type_of_target(y) == "continuous" else "classification"
    gaps = []
    for name, head in _unfitted(heads, task, seed).items():
        most = SVM_ROWS if name == "svm" else len(z)
        rows = subsample(len(z), most, np.random.default_rng(seed))
        # networks stop after 100 epochs
        with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
            fitted = clone(head).fit(z[rows], y[rows])
        scores, performance = _measure_head(fitted, z_test, y_test, task)
        for attribute, column in zip(names, s_test.T):
            gap = gdp(scores, column, resolution=resolution, random_state=seed)
            low, high = gap.interval
            gaps.append(
                HeadGap(
                    head=name,
                    attribute=attribute,
                    performance=performance,
                    gdp=gap.value,
                    low=low,
                    high=high,
                    expected_under_independence=gap.expected_under_independence,
                    standardized_gdp=_standardized_gap(scores, column, resolution),
                    train_rows=len(rows),
                )
            )
    probes = [
        AttributeProbes(
            attribute=name,
            linear_r2=held_out_r2("linear", z, column, z_test, column_test, seed=seed),
            trees_r2=held_out_r2("trees", z, column, z_test, column_test, seed=seed),
            mutual_information=mutual_information(z_test, column_test, random_state=seed),
        )
        for name, column, column_test in zip(names, s.T, s_test.T)
    ]
    unit = "probability" if task == "classification" else "unit of y"
    return HeadProbes(tuple(gaps), tuple(probes), unit, len(z), len(z_test), seed)


def _attributes(s: Any) -> np.ndarray:
    return _arrays.matrix(s, "sensitive_features").astype(np.float64)


def _encoded(encoder: Any, X: Any) -> np.ndarray:
    if encoder is None:
        z = X
    elif hasattr(encoder, "transform"):
        z = encoder.transform(X)
    elif callable(encoder):
        z = encoder(X)
    else:
        raise TypeError(
            f"encoder is {type(encoder).__name__}; pass an object with a transform method, a"
            " function, or None."
        )
    return _arrays.matrix(z, "z").astype(np.float64)


def _unfitted(
    heads: Sequence[str] | Mapping[str, Any], task: HeadTask, seed: int
) -> dict[str, Any]:
    if isinstance(heads, Mapping) and heads:
        return dict(heads)
    if isinstance(heads, str) or not heads or any(name not in HEADS for name in heads):
        raise ValueError(
            f"heads={heads!r}; pass any of the names {', '.join(HEADS)}, or a mapping from names to"
            " estimators."
        )
    models = _classifiers(seed) if task == "classification" else _regressors(seed)
    return {name: models[name] for name in heads}


def _classifiers(seed: int) -> dict[str, Any]:
    network = MLPClassifier(hidden_layer_sizes=(64,), max_iter=100, random_state=seed)
    machine = CalibratedClassifierCV(SVC(), ensemble=False, cv=3)
    return {
        "linear": linear_head(binary=True),
        "mlp": make_pipeline(StandardScaler(), network),
        "forest": RandomForestClassifier(random_state=seed),
        "svm": make_pipeline(StandardScaler(), machine),
        "boosting": HistGradientBoostingClassifier(early_stopping=False, random_state=seed),
    }


def _regressors(seed: int) -> dict[str, Any]:
    def scaled(regressor: Any) -> Any:
        # these depend on the unit of y; float32 is not exact enough to check the inverse
        in_own_unit = TransformedTargetRegressor(
            regressor, transformer=StandardScaler(), check_inverse=False
        )
        return make_pipeline(StandardScaler(), in_own_unit)

    network = MLPRegressor(hidden_layer_sizes=(64,), max_iter=100, random_state=seed)
    return {
        "linear": linear_head(binary=False),
        "mlp": scaled(network),
        "forest": RandomForestRegressor(random_state=seed),
        "svm": scaled(SVR()),
        "boosting": HistGradientBoostingRegressor(early_stopping=False, random_state=seed),
    }


def _measure_head(
    head: Any, z: np.ndarray, y: np.ndarray, task: HeadTask
) -> tuple[np.ndarray, float]:
    if task == "regression":
        predicted = np.asarray(head.predict(z))
        return predicted, float(mean_squared_error(y, predicted))
    if not hasattr(head, "predict_proba"):
        raise TypeError(
            f"{type(head).__name__} has no predict_proba; wrap it in CalibratedClassifierCV."
        )
    return model_scores(head, z), float(accuracy_score(y, head.predict(z)))


def _standardized_gap(scores: np.ndarray, s: np.ndarray, resolution: float | None) -> float:
    if bool((scores == scores[:1]).all(axis=0).any()):
        return 0.0
    return float(standardized_gdp(scores, s, resolution=resolution, resamples=0))
