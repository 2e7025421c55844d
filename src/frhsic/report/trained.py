"""The report of trained models: performance and dependence at each penalty weight, and audits before and after."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import norm

from frhsic import _arrays
from frhsic.auditing import Audit, Context, Interval, Settings, Watch, audit, drift
from frhsic.auditing.measures import Rows, audit_kernels, gap_interval, score_curve, unit_columns
from frhsic.auditing.running import prefixed
from frhsic.auditing.stated import Limits
from frhsic.dependence import hsic_unbiased
from frhsic.formatting import capitalized, figure, plain, stated
from frhsic.frontier import band_limit
from frhsic.held_out import rows_of, scores_of
from frhsic.intervals import subsample
from frhsic.parity import gdp
from frhsic.report.driving import drivers, shifts
from frhsic.report.model import Report, TradeOff, TradeOffPoint
from frhsic.sentences import left_out, summary

if TYPE_CHECKING:
    from frhsic.estimators import FRHSICClassifier, FRHSICRegressor


def trained_report(
    models: Sequence[FRHSICClassifier | FRHSICRegressor],
    chosen: int,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any,
    target_name: str | None = None,
    reason: str = "",
    band: float | None = None,
    settings: Settings | None = None,
    title: str | None = None,
    source: str = "",
    notes: Sequence[str] = (),
    dropped: int = 0,
    given: int | None = None,
    favourable: object = None,
    clusters: Any = None,
    limit: Limits = (),
    threshold: float | None = None,
    context: Context | None = None,
    watch: Watch | None = None,
) -> Report:
    r"""Put models of several penalty weights on one page, measured on rows that were held out.

    For each λ the performance, :math:`E|E[f \mid S] - E f|` (GDP), HSIC of Z and S, and the curve
    :math:`E[f \mid S = s]`; for the chosen λ an audit of Z = h(X) and of the head's scores, and the same audit of the
    model with λ = 0, if there is one. A point and the audit of its model hold the same numbers.

    Parameters
    ----------
    models
        Fitted classifiers of two classes, or regressors, such as :attr:`frhsic.selection.Selection.models`.
    chosen
        Index of the chosen model.
    X, y, sensitive_features
        Rows that neither trained nor chose a model; those without an attribute are left out and noted. With several
        attributes, the trade-off shows the one with the largest GDP at the smallest weight, and names the GDP of the
        others.
    target_name
        Name of y.
    reason
        Why the model was chosen, in a sentence.
    band
        Share of the performance at the smallest weight that the choice could give up. The limit is drawn, by
        :func:`frhsic.frontier.band_limit`; None draws none.
    settings
        Settings of the audits.
    title, source, dropped, given, clusters, limit, threshold, context, watch
        As in :func:`frhsic.audit`.
    favourable
        Label of y that is good for a person; by default the second class.
    notes
        Sentences that a careful reader should see first.

    Examples
    --------
    >>> from frhsic.estimators import FRHSICRegressor, fit_path
    >>> s = np.linspace(0, 1, 40)
    >>> X, y = np.column_stack([s, s**2]), 3 * s
    >>> models = fit_path(FRHSICRegressor(epochs=1, random_state=0), X, y, weights=[0, 1], sensitive_features=s)
    >>> report = trained_report(models, 1, X, y, sensitive_features=s, settings=Settings(resamples=20))
    >>> point, numbers = report.tradeoff.points[1], report.audit.attributes[0].all_rows
    >>> point.gdp == numbers["gdp"].value, abs(point.hsic - numbers["hsic"].value) < 1e-9
    (True, True)
    """
    settings = Settings() if settings is None else settings
    missing = np.isnan(_arrays.to_numpy(_arrays.matrix(sensitive_features, "sensitive_features", allow_missing=True)))
    if missing.any():
        known = np.flatnonzero(~missing.any(axis=1))
        names = _arrays.column_names(sensitive_features, "s", missing.shape[1])
        notes = (*notes, left_out(len(missing) - len(known), len(missing), names))
        given = given or len(missing)
        X, y, sensitive_features = (rows_of(part, known) for part in (X, y, sensitive_features))
        clusters = None if clusters is None else np.asarray(clusters)[known]
    rows = _HeldOut.of(models, X, y, sensitive_features, target_name, clusters, threshold)
    points = []
    for i, model in enumerate(models):
        prefixed(watch, "")(f"curve of λ = {plain(model.penalty_weight)}")
        points.append(rows.point(model, i == chosen, settings))
    points.sort(key=lambda point: point.weight)
    higher = rows.labels is not None
    tradeoff = TradeOff(
        rows.names[rows.worst],
        rows.performance_name,
        higher,
        tuple(points),
        reason,
        None if band is None else band_limit(points[0].performance, band, higher),
    )

    def audited(model: Any, about: str) -> Audit:
        scores, encodes = scores_of(model, X), hasattr(model, "transform")
        return audit(
            model.transform(X) if encodes else scores,
            sensitive_features,
            rows.given if favourable is not None else rows.y,
            positive=None if favourable is None or rows.labels is None else rows.labels[1],
            favourable=favourable,
            scores=scores if encodes else None,
            settings=settings,
            title=title,
            source=source,
            name="representation of the model" if encodes else rows.score_name,
            score_name=rows.score_name if encodes else None,
            target_name=rows.target_name if favourable is None else target_name or "y",
            dropped=dropped,
            given=given,
            clusters=clusters,
            limit=limit,
            threshold=threshold,
            context=context,
            watch=prefixed(watch, f"audit {about}"),
        )

    after = audited(models[chosen], "of the chosen model")
    default = f"{capitalized(rows.score_name)} against {' and '.join(rows.names)}"
    after = replace(after, title=title or default, remarks=(*notes, *after.remarks))
    free = [model for i, model in enumerate(models) if i != chosen and model.penalty_weight == 0]
    before = audited(free[0], "without a penalty") if free and models[chosen].penalty_weight > 0 else None
    # both audits are of the same rows, for which the test is cautious
    changes = () if before is None else drift(after, before)
    unclear = [change.attribute for change in changes if change.verdict == "no change seen"]
    prefixed(watch, "")("what drives the score")
    scores, carrying = scores_of(models[chosen], X), models[chosen] if before is None else free[0]
    found = drivers(lambda part: scores_of(carrying, part), X, rows.s, rows.names, settings)
    return Report(
        after,
        before=before,
        tradeoff=tradeoff,
        summary=summary(after, before, tradeoff, unclear),
        drivers=tuple(replace(one, unpenalised=before is not None) for one in found),
        shifts=() if before is None else shifts(scores_of(free[0], X), scores, rows.s, rows.names, settings),
    )


@dataclass(frozen=True, eq=False)
class _HeldOut:
    """Rows that no model was trained on, and their names; `labels` are the two classes, or None for a regression."""

    X: Any
    y: np.ndarray
    given: np.ndarray
    s: np.ndarray
    names: tuple[str, ...]
    labels: np.ndarray | None
    score_name: str
    target_name: str
    worst: int
    clusters: Any
    threshold: float | None

    @classmethod
    def of(
        cls,
        models: Sequence[Any],
        X: Any,
        y: Any,
        s: Any,
        target_name: str | None,
        clusters: Any,
        threshold: float | None,
    ) -> _HeldOut:
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
        gaps = [float(gdp(scores_of(least, X), column, resamples=0)) for column in values.T]
        classes = [] if labels is None else [str(label) for label in labels]
        itself = classes in ([], ["0", "1"], ["False", "True"])  # such a target names its positive class
        positive = target if itself else f"{target} = {classes[1]}"
        return cls(
            X,
            given.astype(np.float64) if labels is None else (given == labels[1]).astype(np.float64),
            given,
            values,
            tuple(_arrays.column_names(s, "s", values.shape[1])),
            labels,
            f"predicted {target}" if labels is None else f"probability of {positive}",
            target if itself else f"[{positive}]",
            int(np.argmax(gaps)),
            None if clusters is None else np.asarray(clusters),
            threshold,
        )

    @property
    def performance_name(self) -> str:
        """Name of the performance, with the threshold that was stated."""
        if self.labels is None:
            return "Mean squared error"
        return "Accuracy" if self.threshold is None else f"Accuracy at {stated(self.threshold)}"

    def point(self, model: Any, chosen: bool, settings: Settings) -> TradeOffPoint:
        scores, s = scores_of(model, self.X), self.s[:, self.worst]
        gap = gdp(
            scores,
            s,
            clusters=self.clusters,
            confidence=settings.confidence,
            resamples=settings.resamples,
            random_state=settings.seed,
        )
        others = [
            f"GDP of {name} {figure(float(gdp(scores, column, resamples=0)))}"
            for i, (name, column) in enumerate(zip(self.names, self.s.T))
            if i != self.worst
        ]
        good = self._performance_of_rows(model)
        reach = float(norm.ppf((1 + settings.confidence) / 2)) * float(good.std()) / np.sqrt(len(good))
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
                max(least, mean - reach), min(most, mean + reach), settings.confidence, "normal approximation"
            ),
            gdp_interval=gap_interval(gap),
            curve=score_curve(scores, s, settings, clusters=self.clusters),
        )

    def _performance_of_rows(self, model: Any) -> np.ndarray:
        """Return for each row whether its class is right, or its squared error; performance is the mean."""
        if self.labels is not None and self.threshold is not None:
            return np.asarray((scores_of(model, self.X) >= self.threshold) == (self.y == 1), dtype=np.float64)
        predicted = np.asarray(model.predict(self.X))
        if self.labels is not None:
            return np.asarray(predicted == self.given, dtype=np.float64)
        return np.asarray(np.square(predicted - self.y))

    def _hsic(self, model: Any, s: np.ndarray, settings: Settings) -> float | None:
        """Return unbiased HSIC as the audit has it, on the same rows with the same kernels; None if Z is constant."""
        z = model.transform(self.X) if hasattr(model, "transform") else scores_of(model, self.X)[:, None]
        rows = Rows(z, s[:, None], None, "Z", self.names[self.worst], clusters=self.clusters).independent(settings)
        used = subsample(rows.count, settings.max_rows, settings.generator(1))
        rows = replace(rows, z=unit_columns(rows.z[used]), s=rows.s[used])
        z, column = torch.from_numpy(rows.z), torch.from_numpy(rows.s)
        try:
            kernels = audit_kernels(z, column, rows, settings)
        except ValueError:
            return None
        return float(hsic_unbiased(z, column, kernels.z, kernels.s))
