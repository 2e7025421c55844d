"""The function :func:`audit`, which checks arrays and computes an
:class:`~frhsic.auditing.results.Audit`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from frhsic import _arrays, _lazy
from frhsic._warnings import warn
from frhsic.auditing.comparing import check_limits, parse_audit_limits
from frhsic.auditing.gaps import adjust_pvalues
from frhsic.auditing.measures import LEAST_ROWS, dependence, measure
from frhsic.auditing.performance import SHARE_METHOD, base_rate, qualities
from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    Context,
    Histogram,
    Population,
    Quality,
    RowCounts,
    Subject,
    Target,
    are_chances,
)
from frhsic.auditing.rows import Rows
from frhsic.auditing.settings import Settings
from frhsic.formatting import format_setting
from frhsic.parity.limits import Limit, LimitLike
from frhsic.parity.strata import Strata, control_frame
from frhsic.probes import cross_fitted_scores
from frhsic.tables.attributes import read_sensitive
from frhsic.tables.columns import level_text, row_number
from frhsic.tables.targets import is_positive, join_labels, positive_labels

LEAST_POSITIVES = 50
# If a smaller share of the people has the rarer outcome, the base rate is the default threshold of
# decisions, since few scores are then on that outcome's side of one half.
RARE = 0.2
BINS = 40
LARGEST_LOGIT = 20.0
SHOWN_ROWS = 5  # most rows with missing values that a message lists


def audit(
    z: Any,
    sensitive_features: Any,
    y: Any = None,
    *,
    scores: Any = None,
    positive: object = None,
    favourable: object = None,
    sample_weight: Any = None,
    groups: Any = None,
    control_features: Any = None,
    limit: LimitLike = None,
    threshold: float | None = None,
    settings: Settings | None = None,
    context: Context | None = None,
) -> Audit:
    r"""Audit scores or a representation for dependence on continuous sensitive attributes.

    For each attribute, the audit contains :math:`E|E[f \mid S] - E f|` (GDP) and the mean score in
    groups with similar S, with a simultaneous band; the gaps and means of decisions at the
    threshold, of wrong decisions and of target minus score; the rank gap, and the share of the
    variance of f that S explains; HSIC, normalized HSIC, the test of HSIC, and distance
    correlation; how much of the attribute a linear probe and a tree probe recover; and all of these
    measures on the rows with the favorable outcome. In the population, these measures are zero if Z
    and S are independent, except that errors may still depend on S. Where it is known, the expected
    value of an estimate on independent data is also given.

    Parameters
    ----------
    z
        One column is a score; several columns are a representation. Two columns between 0 and 1
        whose rows sum to 1 are treated as the output of ``predict_proba``, with the second column
        as the score. With more classes, the score is the probability of `positive`.
    sensitive_features
        The sensitive attribute, or a frame or matrix with several, one per column. In a Series or a
        frame, bands such as "30-39" and ordered categories are converted to numbers, with a remark.
        Rows with a missing attribute are dropped, and their number is reported.
    y
        The target: numbers, or any values if you pass `positive`. If y has two values, equal
        opportunity is measured on the rows with the favorable value. With a representation and no
        `scores`, a linear head for the target is fitted with cross-validation, and its out-of-fold
        scores are audited.
    scores
        Scores of a head on the representation; by default z itself if z has one column.
    positive
        Value of y that counts as 1, or a list of such values; all others count as 0.
    favourable
        Value of y that is good for a person, such as "repaid" if the score is a probability of
        default; by default the positive value. Equal opportunity is measured on the rows with this
        value.
    sample_weight
        Weights of the rows, used for gaps and performance. Measures of dependence and probes use
        rows drawn at random in proportion to their weights.
    groups
        Labels of rows that belong together, such as several rows of one person. Gaps and
        performance treat groups, not rows, as independent. Measures of dependence and probes use
        one row from each group, drawn at random.
    control_features
        One or several columns, such as the occupation. Gaps are also measured among people with the
        same values in these columns, and compared with the gaps among all people. As in
        :func:`frhsic.gdp`, numbers are binned into fifths and small strata are merged; the audit
        has remarks about that.
    limit
        Limits on numbers that have an interval: 0.05 or ``"gdp <= 0.05"``, ``"gdp <= 10% of base
        rate"`` (the mean of y or, without y, of the scores), a list of these, or a dictionary keyed
        by attribute. ``eo`` is GDP among the rows with the favorable outcome (equal opportunity),
        ``eo.hsic`` is HSIC among them; ``within`` is GDP among people with the same
        `control_features`. ``decision_ratio >= 0.8`` is a lower limit on the lowest positive rate
        at any value of the attribute, divided by the highest (four-fifths rule); ``error_gdp``
        limits the gap in wrong decisions. The interval determines whether a limit is met.
    threshold
        Score above which the decision is yes. By default, 0.5 for scores between 0 and 1, or the
        base rate if that is below 20 % or above 80 %; other scores have no threshold.
    settings
        Settings of the computation; see :class:`Settings`. Expensive statistics use a random sample
        of `max_rows` rows.
    context
        Description of the decision and the data for the report; see :class:`Context`.

    Returns
    -------
    Audit
        Plain data. ``audit.to_json()`` converts it to JSON; :func:`frhsic.report.text` and
        :func:`frhsic.report.write` create a report.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> age = random.uniform(20, 60, 400)
    >>> score = 0.01 * age + 0.1 * random.standard_normal(400)
    >>> result = audit(score, age, settings=Settings(resamples=50))
    >>> gap = result["s"].all_rows["gdp"]
    >>> gap.interval.low < gap.value < gap.interval.high
    True
    """
    settings = settings or Settings()
    limits = parse_audit_limits(limit)
    if y is None and any(parsed.among == "favourable" for parsed in limits):
        raise ValueError(
            "a limit on eo applies to the rows with the favorable outcome; pass the target as"
            " well (y, or --target)."
        )
    names = {"positive": positive, "favourable": favourable}
    inputs = Inputs.from_arrays(
        z,
        sensitive_features,
        y,
        scores,
        **names,
        weights=sample_weight,
        groups=groups,
        controls=control_features,
    )
    return finish_audit(audit_inputs(inputs, threshold, settings, context or Context()), limits)


def audit_inputs(
    inputs: Inputs, threshold: float | None, settings: Settings, context: Context
) -> Audit:
    """Audit validated arrays, without adjusting p-values or checking limits."""
    rows, target, names = inputs.rows, inputs.target, inputs.names
    name, f, score_name = context.name or inputs.name, rows.scores, inputs.score_name
    if rows.z.shape[1] == 1 and f is None:
        f, score_name = rows.z[:, 0], name
    elif f is None and target is not None and rows.y is not None and float(np.ptp(rows.y)) > 0:
        f = cross_fitted_scores(rows.z, rows.y, groups=rows.groups, seed=settings.seed)
        score_name = f"linear head for {target.name}, fitted out of fold"
    rated = f if rows.y is None else rows.y
    subject = Subject(
        name=name,
        dimensions=rows.z.shape[1],
        score_name=None if f is None else score_name,
        target=target,
        confidence=settings.confidence,
        base_rate=(
            None
            if rated is None
            else base_rate(rated, settings.confidence, rows.weights, rows.groups)
        ),
        span=None if f is None else (float(f.min()), float(f.max())),
        law=None if f is None else rows.law(f),
    )
    subject = with_threshold(subject, threshold)
    rows, several = replace(rows, scores=f, threshold=subject.threshold), len(names) > 1
    attributes = [
        _attribute(rows.select_attribute(i), name, settings.about(name) if several else settings)
        for i, name in enumerate(names)
    ]
    independent, joint = rows.independent_rows(settings.generator(8)), None
    if several and not settings.fast:
        joint = Population(
            rows.count, tuple(dependence(independent, settings.about("all together"), probed=False))
        )
    quality: tuple[Quality, ...] = ()
    if f is not None and rows.y is not None:
        quality = tuple(
            qualities(f, rows.y, subject.threshold, rows.weights, rows.groups, settings.confidence)
        )
    dropped = inputs.lost + context.dropped
    remarks = [*context.remarks, *inputs.notes]
    if not (_lazy.has_torch() or settings.fast):
        remarks.append(f"HSIC and its test were left out, because they need {_lazy.TORCH}.")
    return Audit(
        subject=subject,
        rows=RowCounts(
            context.given or rows.count + dropped,
            dropped,
            rows.count,
            independent.count,
            None if rows.groups is None else len(np.unique(rows.groups)),
            None if rows.weights is None else rows.effective,
            None if rows.weights is None else _arrays.effective_number(rows.weights),
        ),
        attributes=tuple(attributes),
        joint=joint,
        quality=quality,
        settings={name: value for name, value in vars(settings).items() if name != "watch"},
        context=replace(context, name=name, remarks=tuple(remarks)),
    )


def finish_audit(audit: Audit, limits: Sequence[Limit]) -> Audit:
    """Adjust the p-values of an audit for the number of attributes, and check its limits."""
    every = adjust_pvalues([attribute.all_rows for attribute in audit.attributes])
    favoured = adjust_pvalues([attribute.positives for attribute in audit.attributes])
    attributes = [
        replace(attribute, all_rows=a, positives=b)
        for attribute, a, b in zip(audit.attributes, every, favoured)
    ]
    audit = replace(audit, attributes=tuple(attributes))
    return replace(audit, limits=check_limits(audit, limits))


def with_threshold(subject: Subject, threshold: float | None) -> Subject:
    """Return the subject with a decision threshold; by default, the threshold is 0.5 for scores
    between 0 and 1, or the base rate if one outcome is rare.
    """
    if threshold is None:
        rate = subject.base_rate
        decided = subject.law is not None and subject.law.values == (0.0, 1.0)
        usual = 0.5
        if subject.target is not None and rate is not None and not decided:
            share = rate.interval is not None and rate.interval.method == SHARE_METHOD
            usual = _usual_threshold(rate.value) if share else usual
        return replace(subject, threshold=usual if subject.chances else None)
    low, high = subject.span or (threshold, threshold)
    # probabilities may all be on one side: a month without approvals is possible
    if not (0 <= threshold <= 1 if subject.chances else low <= threshold <= high):
        raise ValueError(
            f"threshold={format_setting(threshold)} is outside the range of the scores,"
            f" {format_setting(low)} to {format_setting(high)}: all decisions would be the same."
            " Pass a threshold in this range."
        )
    return replace(subject, threshold=float(threshold), threshold_stated=True)


def _usual_threshold(rate: float) -> float:
    """Return 0.5 or, if one outcome is rare, the base rate, with the rare outcome's share rounded
    to two digits. Swapping the outcomes gives one minus the threshold.
    """
    rarer = round(min(rate, 1 - rate), 12)
    if not 0 < rarer < RARE:
        return 0.5
    rarer = float(f"{rarer:.2g}")
    return rarer if rate < 0.5 else round(1 - rarer, 12)


def _attribute(rows: Rows, name: str, settings: Settings) -> AttributeAudit:
    values = rows.s[:, 0]
    whole = np.array_equal(values, np.round(values))
    edges = histogram_edges(float(values.min()), float(values.max()), whole)
    counts = np.histogram(values, bins=edges)[0]
    if rows.groups is not None:
        pairs = np.unique(np.stack([np.digitize(values, edges[1:-1]), rows.groups]), axis=1)
        counts = np.bincount(pairs[0], minlength=len(edges) - 1)
    return AttributeAudit(
        name=name,
        histogram=Histogram(tuple(edges.tolist()), tuple(counts.tolist())),
        law=rows.law(values),
        all_rows=measure(rows, settings),
        positives=favoured_rows(rows, settings),
    )


def favoured_rows(rows: Rows, settings: Settings) -> Population | None:
    """Return all measures on the rows with the favorable outcome; None if no favorable outcome is
    known, there are too few such rows, or the attribute is constant among them.
    """
    kept = None
    if rows.favoured is not None and not settings.fast:
        kept = replace(rows.keep(rows.favoured), y=None)
    if kept is None or kept.count < LEAST_POSITIVES or np.ptp(kept.s) == 0:
        return None
    return measure(kept, settings.about("equal opportunity"), probed=False)


def histogram_edges(low: float, high: float, whole: bool) -> np.ndarray:
    """Return the edges of a histogram with bars of equal width. If the values are whole numbers,
    each bar covers one integer, or several integers if there are many.
    """
    if whole:
        width = max(1, int(np.ceil((high - low + 1) / (2 * BINS))))
        return np.arange(low - 0.5, high + width + 0.5, width)
    return np.linspace(low, high, BINS + 1)


@dataclass(frozen=True, eq=False)
class Inputs:
    """Rows without missing attributes, and the names of the columns; `lost` is the number of rows
    with a missing attribute.
    """

    rows: Rows
    names: tuple[str, ...]
    name: str
    score_name: str
    target: Target | None = None
    lost: int = 0
    notes: tuple[str, ...] = ()

    @classmethod
    def from_arrays(
        cls,
        z: Any,
        s: Any,
        y: Any,
        scores: Any,
        *,
        positive: object,
        favourable: object,
        weights: Any,
        groups: Any,
        controls: Any = None,
    ) -> Inputs:
        """Validate the arguments of an audit, and drop the rows with a missing attribute."""
        rest = (y, "y"), (scores, "scores"), (weights, "sample_weight"), (groups, "groups")
        compared = (controls, "control_features")
        _arrays.require_same_rows((z, "scores"), (s, "sensitive_features"), *rest, compared)
        words = (
            "representation" if len(getattr(z, "shape", ())) == 2 and z.shape[1] != 1 else "scores"
        )
        values = _arrays.matrix(z, words).astype(np.float64)
        if scores is None:
            values = _one_score(_class_score(values, y, positive))
        name = _arrays.array_name(z, "score" if values.shape[1] == 1 else "z")
        sensitive = read_sensitive(s, default="s", allow_missing=True)
        n = len(values)
        for column, argument in ((sensitive.values, "sensitive_features"), *rest):
            _arrays.require_values(column, argument)
            if column is not None and len(column) != n:
                raise ValueError(
                    f"lengths differ: {words} has {n} rows, {argument} has {len(column)}. Pass one"
                    " row per observation in each, in the same order."
                )
        codes, favoured, target = (
            (None, None, None) if y is None else outcome(y, positive, favourable)
        )
        rows = Rows(
            values,
            sensitive.values,
            None
            if scores is None
            else _numeric_values(_complete_column(scores, "scores"), "scores"),
            codes,
            favoured,
            None if weights is None else _row_weights(weights),
            None if groups is None else _groups(groups),
        )
        known = ~np.isnan(sensitive.values).any(axis=1)
        rows = rows.keep(known)
        if rows.groups is not None and len(np.unique(rows.groups)) == rows.count:
            rows = replace(rows, groups=None)  # single rows are independent
        ranges = {
            attribute: (float(column.min()), float(column.max()))
            for attribute, column in zip(sensitive.names, rows.s.T)
            if len(column)
        }
        require_enough_rows(rows.count, n, ranges, sensitive.names)
        notes = [*sensitive.notes, *_swap_remarks(rows, sensitive.names)]
        if controls is not None:
            table = control_frame(controls)
            _arrays.require_same_lengths({words: n, "control_features": len(table)})
            strata = Strata.fit(table[known])
            rows = replace(rows, strata=strata.codes(table[known]), controls=strata)
            notes += [*strata.notes, *_constant_strata(rows, sensitive.names)]
        return cls(
            rows,
            sensitive.names,
            name,
            _arrays.array_name(scores, "score"),
            target,
            n - rows.count,
            tuple(notes),
        )


def _class_score(values: np.ndarray, y: Any, positive: object) -> np.ndarray:
    """Return the probability of the positive classes if the columns are the class probabilities in
    the order of the labels; otherwise, return the values unchanged.
    """
    if values.shape[1] < 3 or y is None or positive is None:
        return values
    labels = np.unique(np.asarray(y).astype(str)).tolist()
    chances = (values >= 0).all() and np.allclose(values.sum(axis=1), 1)
    named = {str(label) for label in positive_labels(positive, labels)}
    if not chances or len(labels) != values.shape[1] or not named <= {*labels}:
        return values
    places = [labels.index(label) for label in sorted(named)]
    return np.asarray(values[:, places].sum(axis=1, keepdims=True))


def require_enough_rows(
    rows: int, given: int, ranges: Mapping[str, tuple[float, float]], columns: Sequence[str]
) -> None:
    """Raise an error if too few rows have values in all columns, if an attribute is constant, or if
    its range is too large or too small for floating-point products.
    """
    if rows < LEAST_ROWS:
        raise ValueError(
            f"an audit needs at least {LEAST_ROWS} rows, but only {rows} of {given} rows have a"
            f" value for {' and '.join(columns)}. Pass more rows without missing values."
        )
    for name, (low, high) in ranges.items():
        if low == high:
            raise ValueError(
                f"{name} is constant in all {rows} rows, so nothing can depend on"
                f" {name}. Pass rows with different values."
            )
        too_large = max(-low, high) > _arrays.LARGEST_NUMBER
        if too_large or high - low < _arrays.SMALLEST_SPREAD:
            raise ValueError(
                f"{name} ranges from {low:.3g} to {high:.3g}, and products of such numbers"
                " overflow or underflow. Rescale the values, or treat extreme values as"
                " missing."
            )


def named_target(
    name: str, positive: object, favourable: object, y: np.ndarray, favoured: np.ndarray
) -> Target:
    """Return the target as a :class:`Target`, with its values as text."""
    named = None if positive is None else level_text(positive)
    if favourable is None:
        return Target(name, named)
    return Target(name, named, level_text(favourable), bool(y[favoured].mean() > y.mean()))


def outcome(
    y: Any, positive: object, favourable: object
) -> tuple[np.ndarray, np.ndarray | None, Target]:
    """Return a target as numbers, a mask of the rows with the favorable outcome (None if there is
    none), and its :class:`Target`.
    """
    name = _arrays.array_name(y, "y")
    column = _complete_column(y, "y")
    if positive is not None:
        labels = positive_labels(positive, column.unique())
        for label in labels:
            _matching_rows(column, label, name, "positive")
        if len(labels) > 1:
            column, positive = join_labels(column, labels, name)
        codes = _matching_rows(column, positive, name, "positive").astype(np.float64)
    elif column.dtype == object or isinstance(column.dtype, (pd.CategoricalDtype, pd.StringDtype)):
        shown = ", ".join(repr(value) for value in column.unique()[:3])
        raise TypeError(
            f"y contains text ({shown}); pass positive=VALUE to specify which value counts as 1."
        )
    else:
        codes = _numeric_values(column, _label(y, "y"))
    favoured = (
        codes == 1 if favourable is None else _matching_rows(column, favourable, name, "favourable")
    )
    known = favourable is not None or set(np.unique(codes)) <= {0.0, 1.0}
    return (
        codes,
        favoured if known else None,
        named_target(name, positive, favourable, codes, favoured),
    )


def _swap_remarks(rows: Rows, attributes: tuple[str, ...]) -> list[str]:
    """Return a remark, and warn, if the attribute looks like a score, and the scores neither look
    like scores nor could predict y. Logits are also outside the range from 0 to 1, but they have
    both signs and are not far from 0. An attribute with the values 0 and 1 is plausible.
    """
    z, s, y = rows.z, rows.s, rows.y
    if z.shape[1] > 1 or s.shape[1] > 1 or not _shares(s) or np.array_equal(s, np.round(s)):
        return []
    logits = z.min() < 0 and np.abs(z).max() <= LARGEST_LOGIT
    if _shares(z) or logits or (y is not None and not _shares(y)):
        return []
    remark = (
        f"The attribute {attributes[0]} is between 0 and 1 but the scores are not, so they may be"
        " swapped. Pass the scores first: audit(scores, sensitive_features). If they are first and"
        " predict a number, pass that number as y."
    )
    warn(remark, UserWarning)
    return [remark]


def _constant_strata(rows: Rows, attributes: tuple[str, ...]) -> Iterator[str]:
    """For each attribute, yield a remark if the attribute is constant in some strata, where nothing
    can depend on it.
    """
    assert rows.strata is not None
    assert rows.controls is not None
    for name, column in zip(attributes, rows.s.T):
        ranges = pd.Series(column).groupby(rows.strata).agg(np.ptp)
        constant = [rows.controls.names[code] for code in ranges.index[ranges == 0]]
        if constant:
            yield (
                f"{name} has only one value in {rows.controls.label} {', '.join(constant)}, where"
                " its gap is 0."
            )


def _shares(values: np.ndarray) -> bool:
    return are_chances(values.min(), values.max())


def _one_score(values: np.ndarray) -> np.ndarray:
    """Return the second column if there are two columns of probabilities, such as the output of
    `predict_proba`; otherwise, return the values unchanged.
    """
    columns = values.shape[1]
    if columns < 2 or not _shares(values) or np.abs(values.sum(axis=1) - 1).max() >= 1e-5:
        return values
    if columns > 2:
        raise ValueError(
            f"the representation has {columns} columns with values between 0 and 1, and each row"
            f" sums to 1, like the output of predict_proba for {columns} classes. To audit one"
            " class, pass y with the same classes and positive=LABEL, or the column of this class."
            " If the columns are a representation, leave out one column, which the other columns"
            " determine."
        )
    return values[:, 1:]


def _groups(groups: Any) -> np.ndarray:
    """Return the group number of each row."""
    codes, distinct = pd.factorize(_complete_column(groups, "groups").to_numpy(), sort=True)
    if len(distinct) == 1:
        raise ValueError(
            f"{_label(groups, 'groups')} is the same in all {len(codes):,} rows; pass at least"
            " two groups."
        )
    return codes


def _row_weights(weights: Any) -> np.ndarray:
    words = _label(weights, "sample_weight")
    column = _complete_column(weights, "sample_weight")
    values = _numeric_values(column, words)
    if values.min() < 0:
        row = row_number(column, int((values < 0).argmax()))
        raise ValueError(
            f"{words} is {format_setting(values[values < 0][0])} in row {row}; pass nonnegative"
            " weights."
        )
    if values.max() == 0:
        raise ValueError(
            f"{words} is 0 in all {len(values):,} rows, so no row would be"
            " counted. Pass positive weights."
        )
    return values


def _numeric_values(column: pd.Series[Any], words: str) -> np.ndarray:
    return _arrays.vector(column, words).astype(np.float64)


def _complete_column(values: Any, argument: str) -> pd.Series[Any]:
    """Return one value for each row, with the index of a Series; if values are missing, raise an
    error that lists the first such rows.
    """
    if hasattr(values, "to_pandas"):
        values = values.to_pandas()
    if isinstance(values, pd.Series):
        column: pd.Series[Any] = values
    else:
        array = _arrays.to_numpy(values) if hasattr(values, "detach") else np.asanyarray(values)
        array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
        if array.ndim != 1:
            raise ValueError(f"{argument} has shape {array.shape}; pass one value for each row.")
        column = pd.Series(array.astype(object) if array.dtype.kind in "US" else array)
    places = np.flatnonzero(column.isna())
    if len(places):
        first = ", ".join(str(row_number(column, int(place))) for place in places[:SHOWN_ROWS])
        more = ", ..." if len(places) > SHOWN_ROWS else ""
        raise ValueError(
            f"{_label(values, argument)} is missing in {len(places):,} of {len(column):,} rows"
            f" ({'row' if len(places) == 1 else 'rows'} {first}{more}); fill in the missing"
            " values, or drop these rows."
        )
    return column


def _label(values: Any, argument: str) -> str:
    """Return how messages refer to a column: by its name and the argument, or by the argument
    only.
    """
    name = _arrays.array_name(values, "")
    return f"{name!r} ({argument})" if name else argument


def _matching_rows(column: pd.Series[Any], value: object, name: str, argument: str) -> np.ndarray:
    rows = np.asarray(is_positive(column, value, name) == 1)
    if not rows.any():
        shown = ", ".join(repr(level_text(item)) for item in column.unique()[:5])
        raise ValueError(
            f"{argument}={value!r} is not a value of {name}; pass a value such as {shown}."
        )
    return rows
