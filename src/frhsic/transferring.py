"""Transfer: what fresh heads on a frozen representation make of a sensitive attribute."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
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
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.metrics import accuracy_score, mean_squared_error, r2_score
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.utils.multiclass import type_of_target

from frhsic import _arrays
from frhsic.dependence import mutual_information
from frhsic.parity import gdp, standardized_gdp

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["HEADS", "SVM_ROWS", "HeadGap", "Probe", "Transfer", "transfer"]

HeadName = Literal["linear", "mlp", "forest", "svm", "boosting"]
Kind = Literal["classification", "regression"]

HEADS: tuple[HeadName, ...] = ("linear", "mlp", "forest", "svm", "boosting")
"""The heads that are fitted unless others are given."""

SVM_ROWS = 5000
"""Training rows that the support vector machine is given at most: its cost grows with their square."""

RIDGES = np.logspace(-8, 4, 13)
"""Candidates for the ridge, of which the leave-one-out error chooses: the small ones find what hides in directions of Z
that have hardly any variance."""


@dataclass(frozen=True)
class HeadGap:
    """One fresh head and one attribute, on test rows.

    Attributes
    ----------
    head, attribute
        Their names.
    performance
        Accuracy, or mean squared error.
    gdp, low, high
        GDP of the head's probabilities (of its predictions, in the unit of y) and its 95 % interval.
    expected_under_independence
        What GDP would be on average were scores and attribute independent.
    standardized_gdp
        GDP over the standard deviation of the scores; 0 where they are constant.
    train_rows
        Rows that the head was fitted on.
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
class Probe:
    """How much of an attribute is left in Z, on test rows.

    Attributes
    ----------
    linear_r2, trees_r2
        R² of ridge regression and of boosted trees that predict the attribute from Z, fitted on the training rows; 0,
        or below, where they recover nothing.
    mutual_information
        In nats, by nearest neighbours (:func:`frhsic.dependence.mutual_information`); about 0 where nothing is left.
    """

    attribute: str
    linear_r2: float
    trees_r2: float
    mutual_information: float


@dataclass(frozen=True)
class Transfer:
    """What fresh heads and probes found.

    Attributes
    ----------
    heads
        One entry for each head and attribute.
    probes
        One for each attribute.
    unit
        Of every GDP: "probability", or "unit of y".
    train_rows, test_rows
        How many rows fitted and measured.
    seed
        Reproduces it.
    """

    heads: tuple[HeadGap, ...]
    probes: tuple[Probe, ...]
    unit: str
    train_rows: int
    test_rows: int
    seed: int

    @property
    def worst(self) -> HeadGap:
        """The head and attribute with the largest GDP."""
        return max(self.heads, key=lambda found: found.gdp)

    @property
    def spread(self) -> float:
        """Standard deviation over heads (n in the denominator) of their largest GDP: how much the head matters."""
        worst: dict[str, float] = {}
        for found in self.heads:
            worst[found.head] = max(found.gdp, worst.get(found.head, 0.0))
        return float(np.std(list(worst.values())))

    def __float__(self) -> float:
        return self.worst.gdp

    def to_frame(self) -> pd.DataFrame:
        """Return heads as a DataFrame, one row for each head and attribute, the attribute's probes beside it."""
        import pandas as pd

        probes = {probe.attribute: asdict(probe) for probe in self.probes}
        return pd.DataFrame([{**asdict(found), **probes[found.attribute]} for found in self.heads])


def transfer(
    encoder: Any,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    test: float | tuple[Any, Any, Any] = 0.25,
    heads: Sequence[str] | Mapping[str, Any] = HEADS,
    task: Literal["auto", "classification", "regression"] = "auto",
    bandwidth: float | None = None,
    random_state: _arrays.RandomState = 0,
) -> Transfer:
    r"""Fit fresh heads f on frozen Z = h(X), and measure :math:`E_S |E[f(Z) | S] - E f(Z)|` of each on test rows.

    A representation independent of S leaves no head a gap; one that was trained with a penalty on its own head alone
    may leave other heads a large one. The largest gap found is a lower bound of what some head could do, not an upper
    one: see :mod:`frhsic.certificates` for those. All gaps are in one unit, probabilities, or the unit of y.

    Parameters
    ----------
    encoder
        Anything fitted with a ``transform``, a function of X, or None where X is Z already.
    X, y, sensitive_features
        Rows that heads and probes are fitted on; several attributes are measured one by one.
    test
        Share of these rows that is kept to measure on, or such rows themselves as (X, y, sensitive_features). No head
        sees them; the encoder should not have either.
    heads
        Names among :data:`HEADS`: logistic or ridge regression, a network with 64 hidden units, 100 random trees,
        a support vector machine with a Gaussian kernel (on at most 5,000 rows, calibrated to probabilities), and
        boosted trees; or a mapping from names to scikit-learn estimators.
    task
        "auto" takes a continuous y (scikit-learn's ``type_of_target``) for a regression.
    bandwidth
        Of GDP, in units of the attribute; None is a tenth of its range.
    random_state
        Decides the split and the heads.

    Examples
    --------
    Z is the attribute itself: every head that uses it has a gap, and a probe recovers it.

    >>> s = np.linspace(0, 1, 200)
    >>> found = transfer(None, s[:, None], s > 0.5, sensitive_features=s, heads=["linear"])
    >>> found.worst.gdp > 0.2, round(found.probes[0].linear_r2, 2)
    (True, 1.0)
    """
    seed = _arrays.seed_of(random_state)
    (X, y, s), (X_test, y_test, s_test) = _parts(X, y, sensitive_features, test, seed)
    s, s_test = _attributes(s), _attributes(s_test)
    names = _arrays.column_names(sensitive_features, "sensitive", s.shape[1])
    if s.shape[1] != s_test.shape[1]:
        raise ValueError(f"the test rows have {s_test.shape[1]} attributes, the others {s.shape[1]}; pass the same.")
    z, z_test = _encoded(encoder, X), _encoded(encoder, X_test)
    y, y_test = np.asarray(y).ravel(), np.asarray(y_test).ravel()
    for what, rows in (("y", len(y)), ("sensitive_features", len(s))):
        if rows != len(z):
            raise ValueError(f"lengths differ: X has {len(z)} rows, {what} has {rows}.")
    kind: Kind = task if task != "auto" else "regression" if type_of_target(y) == "continuous" else "classification"
    found = []
    for name, head in _made(heads, kind, seed).items():
        rows = _rows_of(name, len(z), seed)
        with _quiet():
            fitted = clone(head).fit(z[rows], y[rows])
        scores, performance = _measured(fitted, z_test, y_test, kind)
        for attribute, column in zip(names, s_test.T):
            gap = gdp(scores, column, bandwidth=bandwidth, random_state=seed)
            found.append(
                HeadGap(
                    name,
                    attribute,
                    performance,
                    gap.value,
                    *gap.interval,
                    gap.expected_under_independence,
                    _standardized(scores, column, bandwidth),
                    len(z[rows]),
                )
            )
    probes = tuple(_probe(z, z_test, s[:, j], s_test[:, j], name, seed) for j, name in enumerate(names))
    unit = "probability" if kind == "classification" else "unit of y"
    return Transfer(tuple(found), probes, unit, len(z), len(z_test), seed)


def _parts(X: Any, y: Any, s: Any, test: float | tuple[Any, Any, Any], seed: int) -> tuple[Any, Any]:
    if not isinstance(test, (int, float)):
        return (X, y, s), test
    if not 0 < test < 1:
        raise ValueError(f"test={test}; pass a share of the rows between 0 and 1, or (X, y, sensitive_features).")
    cut = train_test_split(X, y, s, test_size=float(test), random_state=seed)
    return (cut[0], cut[2], cut[4]), (cut[1], cut[3], cut[5])


def _attributes(s: Any) -> np.ndarray:
    return _arrays.to_numpy(_arrays.matrix(s, "sensitive_features")).astype(np.float64)


def _encoded(encoder: Any, X: Any) -> np.ndarray:
    if encoder is None:
        z = X
    elif hasattr(encoder, "transform"):
        z = encoder.transform(X)
    elif callable(encoder):
        z = encoder(X)
    else:
        raise TypeError(f"encoder is {type(encoder).__name__}; pass something with a transform, a function, or None.")
    return _arrays.to_numpy(_arrays.matrix(z, "z")).astype(np.float64)


def _made(heads: Sequence[str] | Mapping[str, Any], kind: Kind, seed: int) -> dict[str, Any]:
    if isinstance(heads, Mapping):
        made = dict(heads)
    else:
        unknown = [name for name in heads if name not in HEADS]
        if isinstance(heads, str) or unknown:
            raise ValueError(f"heads={heads!r}; pass names among {', '.join(HEADS)}, or a mapping to estimators.")
        made = {name: _head(name, kind, seed) for name in heads}
    if not made:
        raise ValueError("heads is empty; pass at least one.")
    return made


def _head(name: str, kind: Kind, seed: int) -> Any:
    classify = kind == "classification"
    network = {"hidden_layer_sizes": (64,), "max_iter": 100, "random_state": seed}
    makers: dict[str, Callable[[], Any]] = {
        "linear": lambda: LogisticRegression(max_iter=1000) if classify else RidgeCV(alphas=RIDGES),
        "mlp": lambda: MLPClassifier(**network) if classify else _in_own_unit(MLPRegressor(**network)),
        "forest": lambda: (RandomForestClassifier if classify else RandomForestRegressor)(random_state=seed),
        "svm": lambda: CalibratedClassifierCV(SVC(), ensemble=False, cv=3) if classify else _in_own_unit(SVR()),
        "boosting": lambda: (HistGradientBoostingClassifier if classify else HistGradientBoostingRegressor)(
            early_stopping=False, random_state=seed
        ),
    }
    head = makers[name]()
    return head if name in ("forest", "boosting") else make_pipeline(StandardScaler(), head)


def _in_own_unit(head: Any) -> Any:
    """Fit to a standardised target: these two do not suit themselves to the unit of y."""
    return TransformedTargetRegressor(head, transformer=StandardScaler(), check_inverse=False)  # float32 is near enough


def _rows_of(name: str, n: int, seed: int) -> Any:
    if name != "svm" or n <= SVM_ROWS:
        return slice(None)
    return np.sort(np.random.default_rng(seed).choice(n, SVM_ROWS, replace=False))


def _measured(head: Any, z: np.ndarray, y: np.ndarray, kind: Kind) -> tuple[np.ndarray, float]:
    if kind == "regression":
        predicted = np.asarray(head.predict(z))
        return predicted, float(mean_squared_error(y, predicted))
    if not hasattr(head, "predict_proba"):
        raise TypeError(
            f"{type(head).__name__} gives no probabilities, the unit of all gaps; wrap it in CalibratedClassifierCV."
        )
    probabilities = np.asarray(head.predict_proba(z))
    scores = probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities
    return scores, float(accuracy_score(y, head.predict(z)))


def _standardized(scores: np.ndarray, s: np.ndarray, bandwidth: float | None) -> float:
    if bool((scores == scores[:1]).all(axis=0).any()):
        return 0.0
    return float(standardized_gdp(scores, s, bandwidth=bandwidth, bootstrap=0, permutations=0))


def _probe(z: np.ndarray, z_test: np.ndarray, s: np.ndarray, s_test: np.ndarray, name: str, seed: int) -> Probe:
    linear = make_pipeline(StandardScaler(), RidgeCV(alphas=RIDGES)).fit(z, s)
    trees = HistGradientBoostingRegressor(early_stopping=False, random_state=seed).fit(z, s)
    return Probe(
        name,
        float(r2_score(s_test, linear.predict(z_test))),
        float(r2_score(s_test, trees.predict(z_test))),
        float(mutual_information(z_test, s_test, random_state=seed)),
    )


@contextmanager
def _quiet() -> Iterator[None]:
    """Let a network stop after its 100 epochs without a warning: that is its recipe."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield
