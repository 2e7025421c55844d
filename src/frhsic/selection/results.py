"""What a choice of weight returns."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from frhsic import _arrays
from frhsic.formatting import figure, percent, plain
from frhsic.frontier import Frontier
from frhsic.held_out import scores_of
from frhsic.independence import IndependenceResult
from frhsic.parity import ParityResult, gdp
from frhsic.selection.measuring import Rows
from frhsic.selection.performance import Performance, Scoring, measured, share_of_gain
from frhsic.selection.rules import Candidate, Rule

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, repr=False)
class Evaluation:
    """Measures of the chosen model on rows that neither trained nor chose it; as in :class:`Candidate`."""

    performance: float
    gdp: dict[str, ParityResult]
    independence: IndependenceResult
    rows: int
    gain: float
    accuracy: float
    auc: float
    calibration_error: float

    def __repr__(self) -> str:
        gaps = [
            f"{name}: {gap.value:.3g} ({gap.interval[0]:.3g} to {gap.interval[1]:.3g})"
            for name, gap in self.gdp.items()
        ]
        return (
            f"Evaluation(performance={self.performance:.3g}, gain={self.gain:.3g}, gdp={{{', '.join(gaps)}}}, "
            f"pvalue={self.independence.pvalue:.3g}, rows={self.rows})"
        )


@dataclass(frozen=True, repr=False)
class Selection:
    """The chosen weight, its model, and all candidates; ``print`` shows a table of them.

    Attributes
    ----------
    weight
        λ.
    estimator
        The model at that weight: fitted without the validation rows, or with them if `refitted`.
    satisfied
        Whether it meets the rule and keeps enough of the unpenalised model's gain.
    reason
        Why it was chosen, in a sentence.
    candidates
        Every weight of the grid, on the validation rows.
    models
        The fitted model of each candidate, in their order, none with the validation rows.
    frontier
        The candidates as a :class:`~frhsic.frontier.Frontier` of performance and GDP, to plot.
    rule, scoring
        The rule and the measure of performance.
    validation_rows
        Number of validation rows.
    constant
        Performance of the constant predictor on the validation rows.
    constant_model
        The constant predictor: class frequencies, or mean of y, of the training rows.
    refitted
        Whether the chosen model was fitted again on training and validation rows.
    """

    weight: float
    estimator: Any
    satisfied: bool
    reason: str
    candidates: tuple[Candidate, ...]
    models: tuple[Any, ...]
    frontier: Frontier
    rule: Rule
    scoring: Scoring
    validation_rows: int
    constant: Performance
    constant_model: Any
    refitted: bool = False

    @property
    def position(self) -> int:
        """Index of the chosen weight among `candidates` and `models`."""
        return [candidate.weight for candidate in self.candidates].index(self.weight)

    def to_frame(self) -> pd.DataFrame:
        """Return the candidates as a DataFrame, with a column `chosen`."""
        import pandas as pd

        rows = [{**asdict(candidate), "chosen": candidate.weight == self.weight} for candidate in self.candidates]
        return pd.DataFrame(rows)

    def evaluate(self, X: Any, y: Any, *, sensitive_features: Any, groups: Any = None) -> Evaluation:
        """Measure the chosen model on other rows; report these numbers.

        Parameters
        ----------
        X, y, sensitive_features
            Rows that neither trained nor chose the model. Those without an attribute are left out.
        groups
            Group of each row, such as a person: intervals take groups, not rows, as independent of each other.
        """
        rows = Rows.of(X, y, sensitive_features, groups, 0)
        names = _arrays.column_names(sensitive_features, "sensitive", rows.s.shape[1])
        X, y, scores = rows.X, rows.y, scores_of(self.estimator, rows.X)
        performance = measured(self.estimator, X, y, self.scoring)
        unpenalised, constant = (self.scoring.measure(m, X, y) for m in (self.models[0], self.constant_model))
        return Evaluation(
            gdp={name: gdp(scores, column, clusters=rows.groups) for name, column in zip(names, rows.s.T)},
            independence=rows.tested(self.estimator, self.rule.of, self.rule.epsilon),
            rows=len(rows.s),
            gain=share_of_gain(performance.performance, unpenalised, constant, self.scoring),
            **asdict(performance),
        )

    def __repr__(self) -> str:
        return f"Selection(weight={plain(self.weight)}, satisfied={self.satisfied}, candidates={len(self.candidates)})"

    def __str__(self) -> str:
        others = {"accuracy": "accuracy", "AUC": "auc", "calibration error": "calibration_error"}
        others.pop({"accuracy": "accuracy", "roc auc": "AUC"}.get(self.scoring.name, ""), None)
        measures = {self.scoring.name: "performance"} | others
        measures = {name: key for name, key in measures.items() if not math.isnan(getattr(self.constant, key))}
        constant = [figure(getattr(self.constant, key)) for key in measures.values()]
        lines = [("weight", "gain kept", *measures, "GDP", "at most", "")]
        lines.append(("constant", "0", *constant, "0", "", ""))
        for one in self.candidates:
            values = [figure(getattr(one, key)) for key in measures.values()]
            gain = "–" if math.isnan(one.gain) else percent(one.gain)
            note = "chosen" if one.weight == self.weight else ""
            lines.append((plain(one.weight), gain, *values, figure(one.gdp), figure(one.gdp_upper), note))
        widths = [max(map(len, column)) for column in zip(*lines)]
        table = ["  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip() for line in lines]
        met = "chosen" if self.satisfied else "chosen, but the rule is not met"
        refit = " The model was fitted again on training and validation rows." if self.refitted else ""
        about = f"weight {plain(self.weight)} {met}: {self.reason}. {self.validation_rows:,} validation rows.{refit}"
        return "\n".join([*table, about])
