"""The report of a model that was trained: what each weight of the penalty achieves, and the audits before and after."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.stats import norm

from frhsic import _arrays
from frhsic.auditing import Audit, Interval, Settings, audit
from frhsic.auditing._format import figure, percent, plain
from frhsic.auditing.conduct import RANGE_SHARE
from frhsic.auditing.measures import score_curve
from frhsic.auditing.resampling import subsample
from frhsic.dependence import hsic
from frhsic.parity import gdp
from frhsic.report.model import Report, TradeOff, TradeOffPoint
from frhsic.selection import scores_of

if TYPE_CHECKING:
    from frhsic.estimators import ParityClassifier, ParityRegressor

__all__ = ["trained_report"]

Watch = Callable[[str], None]
NOTHING = "nothing"


def trained_report(
    models: Sequence[ParityClassifier | ParityRegressor],
    chosen: int,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    target_name: str | None = None,
    reason: str = "",
    floor: float | None = None,
    settings: Settings | None = None,
    title: str | None = None,
    source: str = "",
    notes: Sequence[str] = (),
    dropped: int = 0,
    watch: Watch | None = None,
) -> Report:
    r"""Put models of several penalty weights on one page, measured on rows that were held out.

    For each λ the performance, :math:`E|E[f \mid S] - E f|` (GDP), HSIC of Z and S, and the curve
    :math:`E[f \mid S = s]`; for the chosen λ an audit of Z = h(X) and of the head's scores, and the same audit of the
    model with λ = 0, where there is one, to compare it with. A point and the audit of its model hold the same numbers.

    Parameters
    ----------
    models
        Fitted, of two classes or a regression, such as :attr:`frhsic.selection.Selection.models`.
    chosen
        Which of them was chosen.
    X, y, sensitive_features
        Rows that neither trained nor chose a model. Of several attributes, the trade-off shows the one with the
        largest GDP at the smallest weight, and names the GDP of the others.
    target_name
        What y is called.
    reason
        Why the model was chosen, in a sentence.
    floor
        Performance that the choice had to keep, to be drawn.
    settings
        Of the audits.
    title, source, dropped
        As in :func:`frhsic.audit`.
    notes
        Sentences that a careful reader should see first.
    watch
        Called with the name of each step as it begins.

    Examples
    --------
    >>> from frhsic.estimators import ParityRegressor, fit_path
    >>> s = np.linspace(0, 1, 40)
    >>> X, y = np.column_stack([s, s**2]), 3 * s
    >>> models = fit_path(ParityRegressor(epochs=1, random_state=0), X, y, weights=[0, 1], sensitive_features=s)
    >>> found = trained_report(models, 1, X, y, sensitive_features=s, settings=Settings(resamples=20))
    >>> point, attribute = found.tradeoff.points[1], found.audit.attributes[0].everyone
    >>> point.gdp == attribute["gdp"].value, abs(point.hsic - attribute["hsic"].value) < 1e-9
    (True, True)
    """
    settings = Settings() if settings is None else settings
    tell: Watch = (lambda step: None) if watch is None else watch
    rows = _HeldOut.of(models, X, y, sensitive_features, target_name)
    points = []
    for i, model in enumerate(models):
        tell(f"curve of λ = {plain(model.penalty_weight)}")
        points.append(rows.point(model, i == chosen, settings))
    higher = rows.labels is not None
    shown = TradeOff(
        rows.names[rows.worst],
        "Accuracy" if higher else "Mean squared error",
        higher,
        tuple(sorted(points, key=lambda point: point.weight)),
        reason,
        floor,
    )

    def audited(model: Any, about: str) -> Audit:
        return audit(
            model.transform(X),
            sensitive_features,
            rows.y,
            scores=scores_of(model, X),
            settings=settings,
            title=title,
            source=source,
            name="Z",
            score_name=rows.score_name,
            target_name=rows.target_said,
            dropped=dropped,
            watch=lambda step: tell(f"audit {about}: {step}"),
        )

    after = audited(models[chosen], "of the chosen model")
    said = f"{rows.score_name[:1].upper()}{rows.score_name[1:]} against {' and '.join(rows.names)}"
    after = replace(after, title=title or said, warnings=(*notes, *after.warnings))
    free = [model for i, model in enumerate(models) if i != chosen and model.penalty_weight == 0]
    before = audited(free[0], "without a penalty") if free and models[chosen].penalty_weight > 0 else None
    return Report(after, before=before, tradeoff=shown, summary=_summary(after, before, shown))


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows that no model was trained on, and what they are called; `labels` are the two classes, if there are."""

    X: Any
    y: np.ndarray
    given: np.ndarray
    s: np.ndarray
    names: tuple[str, ...]
    labels: np.ndarray | None
    score_name: str
    target_said: str
    worst: int

    @classmethod
    def of(cls, models: Sequence[Any], X: Any, y: Any, s: Any, target_name: str | None) -> _HeldOut:
        labels = getattr(models[0], "classes_", None)
        if labels is not None and len(labels) != 2:
            raise ValueError(
                f"the models tell {len(labels)} classes apart; a report is of one score. Train one class against the "
                "rest."
            )
        target = target_name or _arrays.array_name(y, "y")
        given = np.asarray(y)
        values = _arrays.to_numpy(_arrays.matrix(s, "sensitive_features")).astype(np.float64)
        least = min(models, key=lambda model: float(model.penalty_weight))
        gaps = [float(gdp(scores_of(least, X), column, bootstrap=0, permutations=0)) for column in values.T]
        spelt = [] if labels is None else [str(label) for label in labels]
        itself = spelt in ([], ["0", "1"], ["False", "True"])  # such a target names its positive class
        said = target if itself else f"{target} = {spelt[1]}"
        return cls(
            X,
            given.astype(np.float64) if labels is None else (given == labels[1]).astype(np.float64),
            given,
            values,
            tuple(_arrays.column_names(s, "s", values.shape[1])),
            labels,
            f"predicted {target}" if labels is None else f"probability of {said}",
            target if itself else f"[{said}]",
            int(np.argmax(gaps)),
        )

    def point(self, model: Any, chosen: bool, settings: Settings) -> TradeOffPoint:
        scores, s = scores_of(model, self.X), self.s[:, self.worst]
        curve, gap = score_curve(scores, s, RANGE_SHARE * float(np.ptp(s)), settings)
        others = [
            f"GDP of {name} {figure(float(gdp(scores, column, bootstrap=0, permutations=0)))}"
            for i, (name, column) in enumerate(zip(self.names, self.s.T))
            if i != self.worst
        ]
        good = self._rows_of_performance(model)
        reach = float(norm.ppf((1 + settings.level) / 2)) * float(good.std()) / np.sqrt(len(good))
        least, most = (0.0, 1.0) if self.labels is not None else (0.0, np.inf)
        mean = float(good.mean())
        return TradeOffPoint(
            weight=float(model.penalty_weight),
            performance=mean,
            gdp=gap.value,
            hsic=self._hsic(model, s, settings),
            chosen=chosen,
            label="; ".join((["no penalty"] if model.penalty_weight == 0 else []) + others),
            performance_interval=Interval(
                max(least, mean - reach), min(most, mean + reach), settings.level, "normal approximation"
            ),
            gdp_interval=Interval(*gap.interval, gap.confidence, f"bootstrap, {gap.bootstrap} resamples"),
            curve=curve,
        )

    def _rows_of_performance(self, model: Any) -> np.ndarray:
        """Of each row, whether it is classified rightly, or its squared error: performance is the mean."""
        predicted = np.asarray(model.predict(self.X))
        if self.labels is not None:
            return np.asarray(predicted == self.given, dtype=np.float64)
        return np.asarray(np.square(predicted - self.y))

    def _hsic(self, model: Any, s: np.ndarray, settings: Settings) -> float | None:
        """On the rows that the audit's HSIC uses; None where all rows of Z coincide and there is no bandwidth."""
        used = subsample(len(s), settings.max_rows, settings.generator(1))
        z = model.transform(self.X)[used]
        try:
            return float(hsic(z, s[used]))
        except ValueError:
            return None


def _summary(after: Audit, before: Audit | None, tradeoff: TradeOff) -> str:
    """Say in two sentences what the chosen weight changed, whichever way it went."""
    chosen = next(point for point in tradeoff.points if point.chosen)
    held = f"On {after.rows.used:,} rows that were not trained on"
    name, gap = tradeoff.performance_name.lower(), "gap in mean scores along {} (GDP)"

    def achieved(value: float) -> str:
        return f"{100 * value:.1f}\u00a0%" if tradeoff.higher_is_better else figure(value)

    if before is None:
        gaps = " and ".join(f"a {gap.format(a.name)} of {figure(a.everyone['gdp'].value)}" for a in after.attributes)
        said = f"of weight λ = {plain(chosen.weight)}" if chosen.weight else "without a penalty"
        return f"{held}, the model {said} leaves {gaps}; {name} is {achieved(chosen.performance)}."
    changes = []
    for attribute in after.attributes:
        new, old = attribute.everyone["gdp"].value, before[attribute.name].everyone["gdp"].value
        said = f"the {gap.format(attribute.name)}"
        if new < old:
            changes.append(f"lowers {said} from {figure(old)} to {figure(new)}")
        else:
            changes.append(f"does not lower {said}: {figure(old)} without it, {figure(new)} with it")
    free = next(point for point in tradeoff.points if point.weight == 0)
    first = (
        f"{held}, the penalty of weight λ = {plain(chosen.weight)} {', and '.join(changes)}; "
        f"{name} goes from {achieved(free.performance)} to {achieved(chosen.performance)}."
    )
    shown = tradeoff.attribute
    left, there = _recovered(after, shown), _recovered(before, shown)
    if left is None or there is None:
        return first
    if left == there == NOTHING:
        return f"{first} No probe recovers {shown} from the representation, with the penalty or without."
    return (
        f"{first} A probe recovers {left} of the variance of {shown} from the representation, {there} without the "
        "penalty."
    )


def _recovered(found: Audit, attribute: str) -> str | None:
    probes = [n.value for n in found[attribute].everyone.numbers if n.key in ("probe_linear", "probe_trees")]
    return None if not probes else NOTHING if max(probes) <= 0 else percent(max(probes)).replace(" ", "\u00a0")
