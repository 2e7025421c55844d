"""Performance and dependence of a model on rows that it was not trained on."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pandas as pd
from scipy.stats import norm

from frhsic import _arrays
from frhsic.held_out import rows_of, scores_of
from frhsic.independence import IndependenceResult, gamma_test
from frhsic.kernels import Gaussian, per_column_gaussians
from frhsic.parity import gdp
from frhsic.selection.performance import Performance, Scoring, measured, proper_score, share_of_gain
from frhsic.selection.rules import Candidate, Rule

TEST_ROWS = 2000
"""Largest number of validation rows for HSIC and its test; with more, a test rejects negligible dependence."""


@dataclass(frozen=True, eq=False)
class Constant:
    """The constant predictor on some rows: its model, its performance, and its log loss or mean squared error."""

    model: Any
    scoring: Scoring
    performance: Performance
    loss: float

    def share(self, value: float, unpenalised: float) -> float:
        """Return the share of the unpenalised model's gain over the constant that a model keeps."""
        return share_of_gain(value, unpenalised, self.performance.performance, self.scoring)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that no model was trained on; `groups` is the group of each row, or None."""

    X: Any
    y: Any
    s: np.ndarray
    groups: np.ndarray | None
    seed: int

    @classmethod
    def of(cls, X: Any, y: Any, s: Any, groups: Any, seed: int) -> Rows:
        """Convert the attributes to a matrix and number the groups; rows that lack an attribute are left out."""
        values = _arrays.to_numpy(_arrays.matrix(s, "sensitive_features", allow_missing=True))
        known = np.flatnonzero(~np.isnan(values).any(axis=1))
        if len(known) < len(values):
            if not len(known):
                raise ValueError(f"sensitive_features are missing in all {len(values):,} rows to measure on.")
            X, y, s = (rows_of(part, known) for part in (X, y, s))
            groups = None if groups is None else np.asarray(groups)[known]
        codes = None if groups is None else pd.factorize(np.asarray(groups).ravel())[0]
        return cls(X, y, _arrays.to_numpy(_arrays.matrix(s, "sensitive_features")), codes, seed)

    def constant(self, model: Any, scoring: Scoring) -> Constant:
        """Measure the constant predictor."""
        proper = proper_score(model)
        return Constant(model, scoring, measured(model, self.X, self.y, scoring), proper.measure(model, self.X, self.y))

    def candidate(
        self, model: Any, rule: Rule, constant: Constant, *, confidence: float, unpenalised: float | None
    ) -> Candidate:
        """Measure one model; its gain is a share of that of `unpenalised`, a performance, or of its own."""
        scores = scores_of(model, self.X)
        two_sided = max(2 * confidence - 1, 0.01)  # both ends of an interval leave out as much
        gaps = [
            gdp(scores, column, confidence=two_sided, clusters=self.groups, random_state=self.seed)
            for column in self.s.T
        ]
        test = self.tested(model, rule.of, rule.epsilon)
        error = np.nan if test.standard_error is None else test.standard_error
        performance = measured(model, self.X, self.y, constant.scoring)
        proper = proper_score(model)
        reference = performance.performance if unpenalised is None else unpenalised
        return Candidate(
            weight=float(model.penalty_weight),
            gdp=max(float(gap) for gap in gaps),
            gdp_upper=max(gap.value if confidence <= 0.5 else max(gap.interval[1], gap.value) for gap in gaps),
            hsic=test.statistic,
            hsic_upper=test.statistic + float(norm.ppf(confidence)) * error,
            pvalue=test.pvalue,
            gain=constant.share(performance.performance, reference),
            beats_constant=proper.difference(proper.measure(model, self.X, self.y), constant.loss) > 0,
            **asdict(performance),
        )

    def tested(
        self, model: Any, of: Literal["representation", "scores"], epsilon: float | None = None
    ) -> IndependenceResult:
        """Test Z or the scores against all attributes jointly, on at most `TEST_ROWS` rows, one of each group.

        A model without `transform` has no Z; its scores are tested.
        """
        whole = of == "representation" and hasattr(model, "transform")
        seen = np.asarray(model.transform(self.X)) if whole else scores_of(model, self.X)
        rows, values = np.arange(len(self.s)), self.s
        generator = np.random.default_rng(self.seed)
        if self.groups is not None:
            shuffled = generator.permutation(rows)
            rows = shuffled[np.unique(self.groups[shuffled], return_index=True)[1]]
        if len(rows) > TEST_ROWS:
            rows = generator.choice(rows, TEST_ROWS, replace=False)
        if len(rows) < len(values):
            seen, values = seen[rows], values[rows]
        kernel_s = per_column_gaussians(values) if values.shape[1] > 1 else None
        kernel_z = Gaussian(1.0) if np.ptp(seen, axis=0).max() == 0 else None  # a collapsed Z has no median distance
        return gamma_test(seen, values, kernel_z, kernel_s, epsilon=epsilon)
