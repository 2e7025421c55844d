"""Features that give the target or a sensitive attribute away: a column, one of its values, or
several columns together.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pandas as pd

from frhsic.formatting import percent
from frhsic.tables.columns import LARGEST_FEATURE, MOST_ENCODED_LEVELS, level_text

# Smallest share of the errors in predicting the target, or of its variance, that columns remove,
# and smallest share of the rows of a class on one side of a split.
NEARLY_ALL = 0.99
# Least difference between the shares of two classes on one side of such a split. No two-class table
# of scikit-learn (tests/test_tables.py) has such a feature.
CLASSES_APART = 0.9
# Fewest rows of the rarer class and, on average, of each value; and of a value whose rows all have
# one class.
LEAST_IN_CLASS = 10
LEAST_OF_VALUE = 50
# Share of the rows with a value that have one class, and by how much the share of a class must
# differ from that in the other rows, if the user is asked whether the value, or that there is none,
# follows from the target.
NEARLY_PURE = 0.98
VALUE_APART = 0.5
MISSING_APART = 0.4
# For pairs of columns: most columns and rows of a class that are examined, the share of the
# variance that two explain, and the most they leave unexplained relative to the better one alone.
MOST_PAIRED = 100
PAIRED_ROWS = 300
PAIR_EXPLAINS = 0.999
LEAST_LEFT = 0.05
# Share of an attribute's variance that a pair of columns explains if the attribute follows from it,
# as ages in whole years follow from two dates.
PAIR_REPEATS = 0.98
# Share of a typical distance below which numbers count as equal, since they have only a few digits.
WRITTEN_DIGITS = 1e-3
# For more columns together: most columns; most rows and levels for the linear model; fewest rows of
# a class; least score of all columns for which the fewest are searched; the distance of outliers
# that are left out, in mean absolute deviations from the median; and the largest share of the
# unexplained variance that another column of a sum may leave, unless nothing is left.
MOST_TOGETHER = 5
JOINT_ROWS = 2_000
JOINT_LEVELS = 10
LEAST_JOINT = 30
JOINT_PROMISE = 0.95
FAR_INPUT = 100
PART_LEFT = 0.1
NEARLY_EXACT = 1e-6
# Newton's steps and ridge of the logistic model, which has no finite solution if the classes are
# separable, and ridge of the linear one.
JOINT_STEPS = 15
JOINT_RIDGE = 1e-4
LINEAR_RIDGE = 1e-6

OPERATIONS: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "difference": np.subtract,
    "sum": np.add,
    "product": np.multiply,
    "ratio": np.divide,
    "inverse ratio": lambda a, b: b / a,
}


class Leak(NamedTuple):
    """Columns that reveal the target, starting with the one to drop, and how they reveal it;
    `empty` if several columns reveal it by the rows in which they are missing.
    """

    columns: tuple[str, ...]
    text: str
    empty: bool = False


def leaks(columns: dict[str, np.ndarray], y: np.ndarray, classes: int) -> Iterator[Leak]:
    """Yield columns that reveal the target, and the pair of columns that reveals it most clearly
    together.

    - A column removes 99 % of the errors of a constant prediction: with at most 64 distinct values,
      predicting the most frequent class of each value; for a number, the squared rank correlation
      is at least 0.99.
    - With two classes, all rows with a frequent value of a column, with any value, or without a
      value have the same class, which at most half of the other rows have; or 99 % of one class,
      and hardly any row of the other, have the same value or lie on the same side of a number.
    - Two numbers: their difference, sum, product or ratio is constant for one of two classes and
      hardly ever for the other, or explains 99.9 % of the variance of a numeric target; or their
      order determines which of two classes a row has.

    Parameters
    ----------
    columns
        Numbers with NaN, or objects with None, for missing values.
    y, classes
        Codes 0, 1, ... of `classes` classes, or numbers if `classes` is 0.
    """
    rest = {}
    empty: dict[str, list[str]] = {}
    for name, values in columns.items():
        text = ""
        if explained_share(values, y, classes) >= NEARLY_ALL:
            text = _alone(name)
        elif classes == 2:
            text = _one_sided(name, values, y.astype(np.int64))
        if text.startswith("all ") and "is missing" in text:
            empty.setdefault(text.replace(repr(name), "{}"), []).append(name)
        elif text:
            yield Leak((name,), text)
        else:
            rest[name] = values
    for text, names in empty.items():
        if len(names) > 1:
            text = text.replace("is missing", f"and {len(names) - 1} more are missing")
        yield Leak(tuple(names), text.format(repr(names[0])), len(names) > 1)
    # if most targets are equal, a few rows would decide
    enough = classes == 2 if classes else len(np.unique(y)) >= LEAST_OF_VALUE
    pair = clearest_pair(rest, y, classes, PAIR_EXPLAINS) if enough else None
    if pair is not None:
        *names, phrase = pair
        listed = " and ".join(repr(name) for name in columns if name in names)
        yield Leak(tuple(names), f"{listed} together reveal the target: {phrase}")


def rank_correlation(values: np.ndarray, other: np.ndarray, least_rows: int) -> float:
    """Return the absolute rank correlation on the rows that have both values; 0 for categories."""
    if values.dtype == object:
        return 0.0
    table = pd.DataFrame({"values": values, "other": other})
    correlations = table.corr("spearman", min_periods=least_rows).to_numpy()
    return float(np.nan_to_num(abs(correlations[0, 1])))


def _alone(name: str) -> str:
    return f"{name!r} alone predicts the target almost perfectly"


def is_banded(values: np.ndarray, s: np.ndarray) -> bool:
    """Return whether a column has at most 64 different values that divide an attribute into bands,
    with exceptions in at most 1 % of the rows without the most frequent value.
    """
    known = ~(pd.isna(values) | np.isnan(s))
    codes, levels = pd.factorize(values[known])
    if len(codes) < LEAST_OF_VALUE or not 2 < len(levels) <= MOST_ENCODED_LEVELS:
        return False
    s = s[known]
    sizes = np.bincount(codes)
    order = np.argsort(np.bincount(codes, s) / sizes)
    bands = np.argsort(order)[codes]
    along = bands[np.lexsort((bands, s))]
    wrong = int((along != np.sort(bands)).sum())
    return wrong <= (1 - NEARLY_ALL) * (len(codes) - int(sizes.max()))


def explained_share(values: np.ndarray, y: np.ndarray, classes: int) -> float:
    """Return the share of a numeric target's variance, or of the errors of a constant classifier,
    that a column removes by its values or, for two classes, by one threshold.
    """
    if not classes:
        return _share_of_variance(values, y)
    codes = y.astype(np.int64)
    counts, _ = _count_classes(values, codes, classes)
    sizes = counts.sum(axis=0)
    wrong = len(codes) - int(sizes.max())
    if wrong < LEAST_IN_CLASS:
        return 0.0
    errors = wrong
    if len(counts) <= min(MOST_ENCODED_LEVELS, len(codes) / LEAST_IN_CLASS):
        errors = len(codes) - int(counts.max(axis=1).sum())
    elif classes == 2 and values.dtype != object:
        below = np.cumsum(counts[1:], axis=0)
        above = below[-1] - below
        right = counts[0].max() + np.maximum(below[:, 0] + above[:, 1], below[:, 1] + above[:, 0])
        errors = len(codes) - int(right.max())
    return 1 - errors / wrong


def _count_classes(
    values: np.ndarray, codes: np.ndarray, classes: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the number of rows of each class without a value and with each value, and these
    values.
    """
    places, known = pd.factorize(values, sort=True)
    cells = (places + 1) * classes + codes
    counts = np.bincount(cells, minlength=(len(known) + 1) * classes)
    return counts.reshape(-1, classes), known


def _share_of_variance(values: np.ndarray, y: np.ndarray) -> float:
    """Return the squared rank correlation of a number with y, or the share of the variance of y
    between the levels of text.
    """
    levels = np.asarray(pd.factorize(values, use_na_sentinel=False)[0])
    if values.dtype != object or levels.max() >= len(y) / LEAST_IN_CLASS:
        return rank_correlation(values, y, LEAST_OF_VALUE) ** 2
    means = np.bincount(levels, y) / np.bincount(levels)
    return 1 - float(np.square(y - means[levels]).mean() / y.var())


def _one_sided(name: str, values: np.ndarray, codes: np.ndarray) -> str:
    """Return how a column separates two classes on one side of a split; empty if it does not."""
    counts, known = _count_classes(values, codes, 2)
    sizes = counts.sum(axis=0)
    if sizes.min() < LEAST_IN_CLASS:
        return ""
    of_known = counts[1:].sum(axis=0)  # shares among rows with a value, if there are enough
    shares = counts / np.where(of_known.min() < LEAST_IN_CLASS, np.inf, of_known)
    shares[0] = counts[0] / sizes
    if values.dtype != object and len(known) > 1:
        shares = np.vstack([shares, np.cumsum(shares[1:-1], axis=0)])
    split = _clearest_split(shares)
    if split is not None:
        if shares[split].max() >= NEARLY_ALL and shares[split].min() <= 1 - NEARLY_ALL:
            return _alone(name)
        return f"{name!r} {_split_phrase(split, known)} {_shares_phrase(shares[split])}"
    counts = np.vstack([counts, of_known])
    rows = counts.sum(axis=1)
    rates = counts[:, 1] / np.maximum(rows, 1)
    other_rates = (sizes[1] - counts[:, 1]) / np.maximum(len(codes) - rows, 1)
    pure = ((rates == 0) | (rates == 1)) & (rows >= LEAST_OF_VALUE) & (rows < len(codes))
    for level in np.flatnonzero(pure & (abs(rates - other_rates) > 1 / 2)):
        side = "has a value"
        if level <= len(known):
            side = _split_phrase(int(level), known)
        return f"all {rows[level]:,} rows in which {name!r} {side} have the same target"
    return ""


class OneSidedRows(NamedTuple):
    """Rows with a value of a column, or without one (`side`), their number, the share of the most
    overrepresented class among them, and its share among the other rows.
    """

    side: str
    missing: bool
    rows: int
    share: float
    other: float


def one_sided_rows(values: np.ndarray, y: np.ndarray, classes: int) -> Iterator[OneSidedRows]:
    """Yield the rows with one of the at most 64 values of a column if nearly all of their targets
    are the same, unlike in the other rows; and the rows without a value if their targets are very
    different from those of the other rows.

    Examples
    --------
    >>> values = np.repeat(np.array(["yes", "no"], dtype=object), [60, 90])
    >>> y = np.append(np.ones(60), np.arange(90) % 3 == 0)
    >>> [(found.side, found.rows, found.share) for found in one_sided_rows(values, y, 2)]
    [("is 'yes'", 60, 1.0)]
    """
    counts, known = _count_classes(values, y.astype(np.int64), classes)
    sizes = counts.sum(axis=0)
    rows = counts.sum(axis=1)
    for place in range(len(counts) if len(known) <= MOST_ENCODED_LEVELS else 1):
        if min(rows[place], len(y) - rows[place]) < LEAST_OF_VALUE:
            continue
        shares = counts[place] / rows[place]
        others = (sizes - counts[place]) / (len(y) - rows[place])
        label = int(np.argmax(shares - others))
        apart = shares[label] - others[label]
        pure = shares[label] >= NEARLY_PURE and apart > VALUE_APART
        if pure or (place == 0 and apart > MISSING_APART):
            side = _split_phrase(place, known)
            found = float(shares[label]), float(others[label])
            yield OneSidedRows(side, place == 0, int(rows[place]), *found)


def revealed_class(values: np.ndarray, codes: np.ndarray, classes: int) -> int | None:
    """Return the class that nearly all rows with one value of a column have, or do not have, unlike
    the other rows; None if no value reveals a class.

    Examples
    --------
    >>> values = np.repeat(np.array(["P", "A", "B"], dtype=object), 50)
    >>> codes = np.repeat([2, 0, 1, 0], [50, 30, 40, 30])
    >>> revealed_class(values, codes, 3)
    2
    """
    counts, _ = _count_classes(values, codes, classes)
    sizes = counts.sum(axis=0)
    wrong = counts[1:].sum(axis=1, keepdims=True) + sizes - 2 * counts[1:]
    wrong = np.minimum(wrong, len(codes) - wrong)  # or the rows without the value have the class
    usual = np.minimum(sizes, len(codes) - sizes)
    revealed = (wrong <= (1 - NEARLY_ALL) * usual) & (usual >= LEAST_IN_CLASS)
    return int(revealed.any(axis=0).argmax()) if revealed.any() else None


def _split_phrase(split: int, known: np.ndarray) -> str:
    """Return a phrase for the rows in a split: those without a value, with a given value, or with
    at most a given value.
    """
    if split == 0:
        return "is missing"
    if split > len(known):
        return f"is at most {level_text(known[split - len(known) - 1])}"
    value = known[split - 1]
    return f"is {value!r}" if isinstance(value, str) else f"is {level_text(value)}"


def _clearest_split(shares: np.ndarray) -> int | None:
    """Return the split that has nearly all rows of one class, and hardly any of the other, on one
    side; `shares` of shape (splits, 2) has the share of each class on that side.
    """
    apart = np.abs(shares[:, 0] - shares[:, 1])
    nearly = (shares.max(axis=1) >= NEARLY_ALL) | (shares.min(axis=1) <= 1 - NEARLY_ALL)
    apart = np.where(nearly, apart, 0.0)
    best = int(np.argmax(apart))
    return best if apart[best] >= CLASSES_APART else None


def _shares_phrase(shares: np.ndarray) -> str:
    most, least = (percent(round(float(share), 3)) for share in (shares.max(), shares.min()))
    return f"in {most} of the rows of one class and in {least} of the other"


def clearest_pair(
    columns: dict[str, np.ndarray], y: np.ndarray, classes: int, least: float
) -> tuple[str, str, str] | None:
    """Return the two columns that determine y most clearly, the stronger one first, and how they
    determine y. If y is a number, together they explain at least a share `least` of its variance,
    and neither alone explains nearly as much.
    """
    names = [name for name, values in columns.items() if values.dtype != object]
    if not 1 < len(names) <= MOST_PAIRED:
        return None
    sides = [y == label for label in range(classes)] or [~np.isnan(y)]
    rows = np.concatenate(
        [
            own[np.linspace(0, len(own) - 1, min(len(own), PAIRED_ROWS)).astype(int)]
            for own in map(np.flatnonzero, sides)
        ]
    )
    values = np.column_stack([columns[name] for name in names])[rows]
    y = y[rows]
    first, second = np.triu_indices(len(names), 1)
    pairs = values[:, first], values[:, second]
    # pairs without rows cause warnings
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):
        alone = _squared_correlations(values, y)
        if classes:
            candidates = [*_settled_classes(*pairs, y)]
        else:
            better = np.maximum(alone[first], alone[second])
            candidates = [*_settled_numbers(*pairs, y, better, least)]
    if not candidates:
        return None
    _, place, phrase = max(candidates, key=lambda candidate: candidate[0])
    pair = first[place], second[place]
    one, other = sorted(pair, key=lambda column: -alone[column])
    return names[one], names[other], phrase


def _settled_numbers(
    one: np.ndarray, other: np.ndarray, y: np.ndarray, alone: np.ndarray, least: float
) -> Iterator[tuple[float, int, str]]:
    """Yield the largest share of a number's variance that each combination of two columns explains,
    with the pair, if it is nearly all of the variance and much more than either explains `alone`.
    """
    for name, operation in OPERATIONS.items():
        explained = _squared_correlations(operation(one, other), y)
        enough = (explained >= least) & (1 - explained <= LEAST_LEFT * (1 - alone))
        place = int(np.argmax(np.where(enough, explained, 0.0)))
        if enough[place]:
            share = percent(round(float(explained[place]), 4))
            yield float(explained[place]), place, f"their {name} explains {share} of its variance"


def _settled_classes(
    one: np.ndarray, other: np.ndarray, y: np.ndarray
) -> Iterator[tuple[float, int, str]]:
    """Yield the largest difference between two classes in the share of rows in which the first of
    two columns is larger, or a combination of both is constant, with the pair.
    """
    known = ~np.isnan(one + other)
    counts = np.array([known[y == label].sum(axis=0) for label in (0, 1)])
    for phrase, mask in _pair_masks(one, other, y):
        shares = np.array([mask[y == label].sum(axis=0) for label in (0, 1)]) / counts
        shares = np.where(counts.min(axis=0) >= LEAST_IN_CLASS, shares, 0.0).T
        place = _clearest_split(shares)
        if place is not None:
            text = f"{phrase} {_shares_phrase(shares[place])}"
            yield round(float(np.ptp(shares[place])), 6), place, text


def _pair_masks(
    one: np.ndarray, other: np.ndarray, y: np.ndarray
) -> Iterator[tuple[str, np.ndarray]]:
    yield "the first is larger", one > other
    for name, operation in OPERATIONS.items():
        results = operation(one, other)
        for label in (0, 1):
            own = results[y == label]  # if it is constant, the median is its value
            distances = np.abs(results - np.nanmedian(own[:: len(own) // 15 + 1], axis=0))
            near = distances <= WRITTEN_DIGITS * np.nanmean(distances, axis=0)
            yield f"their {name} is the same", near


def pair_separates(one: np.ndarray, other: np.ndarray, y: np.ndarray) -> bool:
    """Return whether the criterion of :func:`clearest_pair` separates two classes in nearly all
    rows that have values in both columns.
    """
    known = ~np.isnan(one + other)
    y = y[known]
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # ratios to 0
        masks = _pair_masks(one[known, None], other[known, None], y)
        return any(
            abs(np.mean(mask[y == 1]) - np.mean(mask[y == 0])) >= NEARLY_ALL for _, mask in masks
        )


def _squared_correlations(values: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the squared correlation of each column with y on the rows that have both values; 0 if
    these are few.
    """
    known = np.isfinite(values)
    rows = known.sum(axis=0)
    x = np.where(known, values, 0.0)
    z = np.where(known, y[:, None], 0.0)
    x = np.where(known, x - x.sum(axis=0) / rows, 0.0)
    z = np.where(known, z - z.sum(axis=0) / rows, 0.0)
    squares: np.ndarray = (x * z).sum(axis=0) ** 2 / ((x**2).sum(axis=0) * (z**2).sum(axis=0))
    squares[(rows < LEAST_OF_VALUE) | np.isnan(squares)] = 0.0
    return squares


class JointLeak(NamedTuple):
    """The fewest columns that predict the target of held-out rows, the most important first, with
    the name of a score and its value (1 is perfect).
    """

    columns: tuple[str, ...]
    name: str
    score: float


def joint_leak(columns: dict[str, np.ndarray], y: np.ndarray, classes: int) -> JointLeak | None:
    """Return the fewest columns, at most five, from which a linear model predicts the target of
    held-out rows almost perfectly: the area under the ROC curve, R² or, with more classes, the
    share of the errors of a constant prediction that the model removes is at least 0.99. For a
    share of rows, this applies to the lower bound at two standard errors.

    The model uses each number and its logarithm, so that it can represent sums, products and
    ratios.
    """
    if not 0 < len(columns) <= MOST_PAIRED:
        return None
    ends = -LARGEST_FEATURE, LARGEST_FEATURE
    columns = {
        name: values if values.dtype == object else np.clip(values, *ends)
        for name, values in columns.items()
    }
    usual = np.flatnonzero(np.all([_is_usual(values) for values in columns.values()], axis=0))
    if len(usual) < 2 * LEAST_JOINT:
        return None
    rows = usual[np.linspace(0, len(usual) - 1, min(len(usual), JOINT_ROWS)).astype(int)]
    y = y[rows]
    if classes and np.bincount(y.astype(int), minlength=classes).min() < LEAST_JOINT:
        return None
    inputs = {name: _joint_inputs(values[rows]) for name, values in columns.items()}
    inputs = {name: block for name, block in inputs.items() if block.shape[1]}
    leaks = []
    for target in _joint_targets(y, classes):
        predictions, weights = _held_out(inputs, target, classes)
        if _joint_score(predictions, target, classes)[1] >= JOINT_PROMISE:
            order = sorted(inputs, key=lambda name: -weights[name])
            leaks += _fewest(inputs, order[:MOST_TOGETHER], target, classes)
    return max(leaks, key=lambda leak: round(leak.score, 6), default=None)


def _fewest(
    inputs: dict[str, np.ndarray], order: list[str], target: np.ndarray, classes: int
) -> list[JointLeak]:
    """Return the fewest columns, in this order, that predict the target almost perfectly. For a
    numeric target, more are added if they reduce the unexplained variance to less than a tenth,
    since one term may explain nearly all of a sum.
    """
    best: list[JointLeak] = []
    for number in range(1, len(order) + 1):
        chosen = {name: inputs[name] for name in order[:number]}
        predictions, _ = _held_out(chosen, target, classes)
        name, score, least = _joint_score(predictions, target, classes)
        if least < NEARLY_ALL:
            continue
        if not best or (not classes and 1 - score < PART_LEFT * (1 - best[0].score)):
            best = [JointLeak(tuple(chosen), name, score)]
        if classes or 1 - score < NEARLY_EXACT:
            break
    return best


def _is_usual(values: np.ndarray) -> np.ndarray:
    """Return which rows have no outlier, since a single outlier could determine a fit; all rows if
    there are many outliers.
    """
    usual = np.ones(len(values), dtype=bool)
    present = values[~pd.isna(values)]
    if values.dtype == object or len(present) == 0:
        return usual
    middle = np.median(present)
    far = np.abs(values - middle) > FAR_INPUT * np.abs(present - middle).mean()
    return ~far if far.mean() < 1 - NEARLY_ALL else usual


def _joint_targets(y: np.ndarray, classes: int) -> list[np.ndarray]:
    """Return an indicator of each class (n, classes), or of the second class of two; for a numeric
    target, the target and, if all values are positive, its logarithm.
    """
    if classes == 2:
        return [y[:, None]]
    if classes:
        return [(y[:, None] == np.arange(classes)).astype(np.float64)]
    if len(np.unique(y)) < LEAST_OF_VALUE:
        return []
    targets = [y / np.abs(y).max()] if y.min() <= 0 else [y / y.max(), np.log(y)]
    return [((target - target.mean()) / target.std())[:, None] for target in targets]


def _joint_inputs(values: np.ndarray) -> np.ndarray:
    """Return a column as scaled inputs of a linear model: indicators of frequent levels; or the
    number, its logarithm if it is not negative, and whether it is missing.
    """
    if values.dtype == object:
        codes, _ = pd.factorize(values)
        counts = np.bincount(codes[codes >= 0])
        frequent = np.argsort(-counts, kind="stable")[:JOINT_LEVELS]
        inputs = (codes[:, None] == frequent[counts[frequent] >= LEAST_IN_CLASS]).astype(float)
    else:
        absent = np.isnan(values)
        if absent.all():
            return np.empty((len(values), 0))
        filled = np.where(absent, np.median(values[~absent]), values)
        parts = [filled / (np.abs(filled).max() or 1.0), absent]
        if filled.min() >= 0 and filled.max() > 0:
            parts.append(np.log(filled + (filled[filled > 0].min() if filled.min() == 0 else 0)))
        inputs = np.column_stack(parts).astype(float)
    inputs = inputs - inputs.mean(axis=0)
    spread = inputs.std(axis=0)
    return np.asarray(inputs[:, spread > 0] / spread[spread > 0])


def _held_out(
    inputs: dict[str, np.ndarray], targets: np.ndarray, classes: int
) -> tuple[np.ndarray, dict[str, float]]:
    """Return predictions for each half of the rows by a linear model fitted to the other half, and
    the standard deviation of each column's contribution.
    """
    X = np.column_stack([*inputs.values(), np.ones(len(targets))])
    even = np.arange(len(X)) % 2 == 0
    predictions = np.empty(targets.shape)
    weights = np.zeros((X.shape[1], targets.shape[1]))
    for fitted in (even, ~even):
        for column, target in enumerate(targets[fitted].T):
            weights[:, column] = _linear_weights(X[fitted], target, logistic=classes > 0)
        predictions[~fitted] = X[~fitted] @ weights
    ends = np.cumsum([block.shape[1] for block in inputs.values()])
    parts = zip(inputs.items(), np.split(weights[:-1], ends[:-1]))
    return predictions, {name: float((block @ w).std(axis=0).max()) for (name, block), w in parts}


def _linear_weights(X: np.ndarray, y: np.ndarray, *, logistic: bool) -> np.ndarray:
    """Return the weights of a ridge regression, or of a logistic one by Newton's method."""
    ridge = np.eye(X.shape[1])
    if not logistic:
        solved = np.linalg.solve(X.T @ X / len(y) + LINEAR_RIDGE * ridge, X.T @ y / len(y))
        return np.asarray(solved)
    weights = np.zeros(X.shape[1])
    for _ in range(JOINT_STEPS):
        chances = 1 / (1 + np.exp(-np.clip(X @ weights, -30, 30)))
        variances = np.maximum(chances * (1 - chances), JOINT_RIDGE)
        slope = X.T @ (chances - y) / len(y) + JOINT_RIDGE * weights
        curvature = (X * variances[:, None]).T @ X / len(y) + JOINT_RIDGE * ridge
        weights = weights - np.linalg.solve(curvature, slope)
    return weights


def _joint_score(
    predictions: np.ndarray, targets: np.ndarray, classes: int
) -> tuple[str, float, float]:
    """Return the name of the score of predictions, its value, and its lower bound."""
    if not classes:
        score = 1 - float(np.square(targets - predictions).sum() / np.square(targets).sum())
        return "R²", score, score
    if classes > 2:
        codes = targets.argmax(axis=1)
        wrong = len(codes) - int(np.bincount(codes).max())
        errors = int((predictions.argmax(axis=1) != codes).sum())
        score = 1 - errors / wrong
        return "share of errors removed", score, 1 - (errors + 2 * np.sqrt(errors)) / wrong
    positive = targets[:, 0] == 1
    own, others = int(positive.sum()), int((~positive).sum())
    ranks = pd.Series(predictions[:, 0]).rank().to_numpy()
    area = float((ranks[positive].sum() - own * (own + 1) / 2) / (own * others))
    # Hanley and McNeil (1982), whose pairs share a positive or a negative row
    same_own = area / (2 - area) - area**2
    same_other = 2 * area**2 / (1 + area) - area**2
    variance = area * (1 - area) + (own - 1) * same_own + (others - 1) * same_other
    return "AUC", area, area - 2 * math.sqrt(max(variance, 0.0) / (own * others))
