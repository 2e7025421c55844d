"""What the two estimators share: constructor, number of trees by early stopping, training with LightGBM."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from sklearn.utils import Tags, check_consistent_length, column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from frhsic import _arrays
from frhsic.boosting.boosters import complete, lightgbm
from frhsic.boosting.columns import TreeColumns
from frhsic.boosting.objective import Array, ParityObjective, Task, objective
from frhsic.estimators import MissingSensitiveFeaturesWarning, UnlabelledRowsWarning, save
from frhsic.estimators.checks import restored_on_failure, seed_of
from frhsic.tables import BandedAttributeWarning, is_frame, read_sensitive

FEWEST_HELD_OUT = 20
"""With fewer held-out rows than this there is no early stopping."""

TREES_WITHOUT_STOPPING = 100
"""Number of trees, at most, where there are too few rows to stop early."""


class BoostedParity(BaseEstimator):  # type: ignore[misc]  # scikit-learn is untyped
    """Constructor and training of the two estimators, which document the parameters."""

    booster_: Any
    columns_: TreeColumns
    n_trees_: int
    random_seed_: int
    sensitive_names_in_: np.ndarray

    _task: Task

    def __init__(
        self,
        penalty_weight: float = 30.0,
        *,
        n_estimators: int = 1000,
        learning_rate: float = 0.1,
        num_leaves: int = 31,
        min_child_samples: int = 20,
        validation_fraction: float | None = 0.1,
        n_iter_no_change: int = 50,
        n_jobs: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.penalty_weight = penalty_weight
        self.n_estimators = n_estimators
        self.learning_rate = learning_rate
        self.num_leaves = num_leaves
        self.min_child_samples = min_child_samples
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Fit the trees.

        Parameters
        ----------
        X : DataFrame or array of shape (n, d)
            Features. Missing values may stay, at predict too: a number that no training row lacks is put at its
            median. Text and categories of a DataFrame are split as categories; a level that no training row has counts
            as missing. Dates count as days.
        y : array of shape (n,)
            Target: labels of two classes, or numbers.
        sensitive_features : array, Series or DataFrame of shape (n,) or (n, q), optional
            Numeric attributes. Rows with NaN train the task and skip the penalty, and a warning counts them. If they
            are left out, the model is trained without penalty, and a warning says so unless `penalty_weight` is 0.
            Predicting does not need them.
        sample_weight : array of shape (n,), optional
            Weights of the rows in the loss; the penalty does not use them.
        groups : array of shape (n,), optional
            Rows of one group, such as those of one person, are held out together when the number of trees is found.
        """
        with restored_on_failure(self):
            return self._fit(X, y, sensitive_features, sample_weight, groups)

    def save(self, path: str | Path) -> None:
        """Write the fitted model to one file; :func:`frhsic.load` reads it.

        ``booster_.save_model(path)`` writes the trees alone, as a plain LightGBM model with base score and link.
        """
        save(self, path)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "booster_")

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _fit(self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any, groups: Any) -> Self:
        lightgbm()
        self._check_parameters()
        for name in [name for name in vars(self) if name.endswith("_") and not name.endswith("__")]:
            delattr(self, name)
        x = self._features(X, first=True)
        target, center, scale = self._target(y)
        if len(target) != len(x):
            raise ValueError(f"lengths differ: X has {len(x)} rows, y has {len(target)}.")
        weights = None if sample_weight is None else _check_sample_weight(sample_weight, x, ensure_non_negative=True)
        s = self._sensitive(sensitive_features, len(x))
        self.random_seed_ = seed = seed_of(self.random_state) % 2**31  # as LightGBM takes it
        rows = np.arange(len(x))
        if groups is not None:
            groups = column_or_1d(groups)
            check_consistent_length(x, groups)
        trees = self._best_number_of_trees(x, target, s, weights, groups, seed)
        booster, base = self._trained(rows, x, target, s, weights, trees, seed)
        self.booster_ = complete(booster, self._task, center + scale * base, scale)
        self.n_trees_ = int(booster.num_trees())
        return self

    def _best_number_of_trees(
        self, x: Array, y: Array, s: Array | None, weights: Array | None, groups: np.ndarray | None, seed: int
    ) -> int:
        """Return the number of trees with the least objective on held-out rows; all rows are then trained on."""
        if self.validation_fraction is None:
            return self.n_estimators
        few = min(self.n_estimators, TREES_WITHOUT_STOPPING)
        one = groups is not None and len(np.unique(groups)) == 1
        if int(self.validation_fraction * len(x)) < FEWEST_HELD_OUT or one:
            return few
        if groups is not None:
            splitter = GroupShuffleSplit(1, test_size=self.validation_fraction, random_state=seed)
            ((kept, held),) = splitter.split(x, groups=groups)
        else:
            strata = y if self._task == "binary" and min(y.sum(), len(y) - y.sum()) >= FEWEST_HELD_OUT else None
            kept, held = train_test_split(
                np.arange(len(x)), test_size=self.validation_fraction, random_state=seed, stratify=strata
            )
        for part in (kept, held):
            constant = s is not None and _some_constant(s[part])
            weightless = weights is not None and not weights[part].any()
            if constant or weightless or (self._task == "binary" and np.ptp(y[part]) == 0):
                return few
        held_objective = self._objective(held, s)
        held_weights = None if weights is None else weights[held]

        def measured(raw: Array, _: Any) -> tuple[str, float, bool]:
            return "objective", held_objective.unbiased_value(raw, y[held], held_weights), False

        booster, _ = self._trained(kept, x, y, s, weights, self.n_estimators, seed, (held, measured))
        return max(int(booster.best_iteration), 1)

    def _trained(
        self,
        rows: np.ndarray,
        x: Array,
        y: Array,
        s: Array | None,
        weights: Array | None,
        trees: int,
        seed: int,
        held_out: tuple[np.ndarray, Callable[..., Any]] | None = None,
    ) -> tuple[Any, float]:
        """Return a booster of some rows, without its base score, and the base score."""
        lgb = lightgbm()
        penalized = self._objective(rows, s)
        labels, w = y[rows], None if weights is None else weights[rows]
        base = penalized.base_score(labels, w)
        # small samples keep their columns: LightGBM stops if it has dropped all of them
        binning = {"feature_pre_filter": False, "min_data_in_bin": min(3, 1 + len(rows) // 20), "verbosity": -1}
        data = lgb.Dataset(
            x[rows],
            labels,
            weight=w,
            init_score=np.full(len(rows), base),
            categorical_feature=self.columns_.categorical,
            feature_name=[f"x{j}" for j in range(x.shape[1])],
            params=binning,
        )
        parameters = {
            # labels of a Dataset are float32; the objective sees those of the user
            "objective": lambda raw, _: penalized.summed(raw, labels, w),
            "metric": "none",
            "learning_rate": self.learning_rate,
            "num_leaves": self.num_leaves,
            "min_data_in_leaf": self.min_child_samples,
            "seed": seed,
            "num_threads": self._threads,
            "deterministic": True,
            "force_row_wise": True,
            "verbosity": -1,
        }
        if held_out is None:
            return lgb.train(parameters, data, num_boost_round=trees), base
        held, measured = held_out
        start = np.full(len(held), base)
        validation = lgb.Dataset(x[held], y[held], init_score=start, reference=data, params=binning)
        stop = lgb.early_stopping(self.n_iter_no_change, verbose=False)
        booster = lgb.train(
            parameters, data, num_boost_round=trees, valid_sets=[validation], feval=measured, callbacks=[stop]
        )
        return booster, base

    def _objective(self, rows: np.ndarray, s: Array | None) -> ParityObjective:
        if s is None:
            nothing, everyone = np.zeros((len(rows), 0)), np.ones(len(rows), dtype=bool)
            return ParityObjective(0.0, self._task, self.learning_rate, nothing, 0.0, 0.0, everyone)
        return objective(s[rows], self.penalty_weight, self._task, learning_rate=self.learning_rate)

    def _target(self, y: Any) -> tuple[Array, float, float]:
        """Return y as training takes it, and center and scale of raw scores in the user's unit."""
        raise TypeError(f"{type(self).__name__} has no target.")

    def _predicted(self, X: Any, *, raw_score: bool) -> Array:
        check_is_fitted(self)
        x = self._features(X, first=False)
        return np.asarray(self.booster_.predict(x, raw_score=raw_score, num_threads=self._threads))

    @property
    def _threads(self) -> int:
        """Number of threads as LightGBM takes it, where 0 is its own choice."""
        return 0 if self.n_jobs is None or self.n_jobs < 1 else min(int(self.n_jobs), os.cpu_count() or 1)

    def _features(self, X: Any, *, first: bool) -> Array:
        """Return X as a float64 matrix after scikit-learn's checks of columns and their names."""
        if is_frame(X):
            validate_data(self, X, reset=first, skip_check_array=True)
        else:
            least = 2 if first else 1
            X = validate_data(
                self, X, reset=first, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=least
            )
        if first:
            self.columns_ = TreeColumns.fit(X)
        x = self.columns_(X)
        if first and len(x) < 2:
            raise ValueError(f"X has {len(x)} sample; at least two rows are needed.")
        if first and ((x == x[:1]) | np.isnan(x)).all():
            raise ValueError("no column of X has two different values, so there is nothing to predict from.")
        return x

    def _sensitive(self, values: Any, rows: int) -> Array | None:
        """Return the sensitive attributes, (n, q). Return None to train without penalty."""
        if values is None:
            if self.penalty_weight > 0:
                warnings.warn(
                    f"{type(self).__name__} was given no sensitive_features, so it is trained without penalty although "
                    f"penalty_weight={self.penalty_weight:g}. Pass sensitive_features=..., or penalty_weight=0.",
                    MissingSensitiveFeaturesWarning,
                    stacklevel=4,
                )
            return None
        attributes = read_sensitive(values, allow_missing=True)  # taken by ranks, so any magnitude will do
        s = attributes.values
        if len(s) != rows:
            raise ValueError(f"lengths differ: X has {rows} rows, sensitive_features has {len(s)}.")
        for note in attributes.notes:
            warnings.warn(note, BandedAttributeWarning, stacklevel=4)
        self.sensitive_names_in_ = np.array(attributes.names, dtype=object)
        if self.penalty_weight == 0:
            return None
        missing = int(np.isnan(s).any(axis=1).sum())
        if 0 < missing < rows:
            warnings.warn(
                f"sensitive_features are NaN in {missing:,} of {rows:,} rows. These rows train the task and skip the "
                "penalty.",
                UnlabelledRowsWarning,
                stacklevel=4,
            )
        return s

    def _check_parameters(self) -> None:
        _arrays.require_nonnegative(self.penalty_weight, "penalty_weight")
        _arrays.require_positive(self.learning_rate, "learning_rate")
        for name, least in (("n_estimators", 1), ("num_leaves", 2), ("min_child_samples", 1), ("n_iter_no_change", 1)):
            _arrays.require_integer(getattr(self, name), name, least)
        if self.validation_fraction is not None:
            _arrays.require_fraction(self.validation_fraction, "validation_fraction")
        if self.n_jobs is not None:
            _arrays.require_integer(self.n_jobs, "n_jobs", -(2**31))


def _some_constant(s: Array) -> bool:
    """Return whether an attribute does not vary over the rows in which all are known."""
    known = s[~np.isnan(s).any(axis=1)]
    return bool((known == known[:1]).all(axis=0).any())
