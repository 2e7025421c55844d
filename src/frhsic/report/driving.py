"""What drives a gap: which columns carry the attribute into the score, and whose score a limit changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import norm

from frhsic.auditing.measures import Settings, shown_curve
from frhsic.auditing.results import Curve
from frhsic.formatting import capitalized, figure, percent, plain
from frhsic.parity import gdp, gdp_curve
from frhsic.splits import subsample

MOST_ROWS = 2000
MOST_COLUMNS = 40
SHUFFLES = 3


@dataclass(frozen=True)
class Driver:
    """How much of the gap along an attribute one column carries: by how much the gap falls when it is shuffled.

    Columns that tell the same share it, so that each alone carries less. `more_than_half` is the z-value of the claim
    that the column carries more than half of the gap.
    """

    column: str
    carried: float
    standard_error: float
    more_than_half: float


@dataclass(frozen=True)
class Drivers:
    """The columns of one attribute, the one that carries most first; `gap` is the gap with all columns as they are.

    `pvalue` is that of no gap. `unlimited` says that they are those of the model without the limit, not of the one that
    was chosen.
    """

    attribute: str
    gap: float
    pvalue: float
    rows: int
    columns: tuple[Driver, ...]
    unlimited: bool = False


def drivers(
    score: Callable[[Any, np.ndarray], np.ndarray], X: Any, s: np.ndarray, names: Sequence[str], settings: Settings
) -> tuple[Drivers, ...]:
    r"""Return for each attribute how much of the gap each column of X carries.

    .. math:: E\bigl[g(S) \, (f(X) - f(X_{-j}, \pi X_j))\bigr], \qquad g(s) = \operatorname{sign}(E[f | S = s] - E f)

    for shuffles π of column j, as a mean over three of them, on up to 2,000 rows. With g fixed it is a mean over rows
    and has a standard error; the gap itself is E[g(S) (f(X) − E f)]. Nothing is returned for more than 40 columns,
    which would take long.

    Parameters
    ----------
    score
        Function from rows like X, and their places in X, to their scores.
    X
        Frame or matrix; the columns of a frame are shuffled as they are, before any encoding.
    s
        Attributes of shape (n, q), with their names.
    """
    framed = isinstance(X, pd.DataFrame)
    frame = X.reset_index(drop=True) if framed else pd.DataFrame(np.asarray(X))
    if frame.shape[1] > MOST_COLUMNS:
        return ()
    rows = subsample(len(frame), MOST_ROWS, settings.generator(6))
    frame, s, random = frame.iloc[rows].reset_index(drop=True), s[rows], settings.generator(7)
    versions = [frame]
    for column in frame.columns:
        for _ in range(SHUFFLES):
            versions.append(frame.copy())
            versions[-1][column] = frame[column].iloc[random.permutation(len(frame))].array
    # one call: a model of several folds takes as long for a few rows as for many
    table = pd.concat(versions, ignore_index=True)
    scores = score(table if framed else table.to_numpy(), np.tile(rows, len(versions))).reshape(len(versions), -1)
    whole = scores[0]
    changed = scores[1:].reshape(frame.shape[1], SHUFFLES, -1).mean(axis=1)
    lost = {str(column): whole - mean for column, mean in zip(frame.columns, changed)}
    results = []
    for name, values in zip(names, s.T):
        curve = gdp_curve(whole, values)
        sign = np.sign(curve.mean - curve.overall)[np.searchsorted(curve.start, values, side="right") - 1]
        signed = sign * (whole - whole.mean())
        each = [_driver(column, sign * change, signed) for column, change in lost.items()]
        gap = gdp(whole, values, resamples=settings.resamples, random_state=settings.seed)
        columns = tuple(sorted(each, key=lambda driver: -driver.carried))
        results.append(Drivers(name, float(signed.mean()), gap.pvalue, len(frame), columns))
    return tuple(results)


def _driver(column: str, carried: np.ndarray, gap: np.ndarray) -> Driver:
    beyond, root = carried - gap / 2, np.sqrt(len(gap))
    error = float(beyond.std(ddof=1) / root)
    z = float(beyond.mean()) / error if error > 0 else 0.0
    return Driver(column, float(carried.mean()), float(carried.std(ddof=1) / root), z)


def shifts(change: np.ndarray, s: np.ndarray, names: Sequence[str], confidence: float) -> dict[str, Curve]:
    """Return for each attribute the mean change of scores in groups along it, with a band for all groups at once."""
    curves = (gdp_curve(change, column, confidence=confidence) for column in s.T)
    return {name: shown_curve(curve, change.min(), change.max()) for name, curve in zip(names, curves)}


def group_phrase(curve: Curve, i: int, name: str) -> str:
    """Return where a group of a curve lies, such as “at age from 58 to 63”."""
    if curve.start[i] == curve.end[i]:
        return f"at {name} {plain(curve.grid[i])}"
    return f"at {name} from {plain(curve.start[i])} to {plain(curve.end[i])}"


def driver_sentence(drivers: Drivers, level: float = 0.05) -> str:
    """Return which column carries most of an attribute into the score, if that is more than half and than chance.

    Examples
    --------
    >>> job = Driver("job", carried=0.08, standard_error=0.01, more_than_half=4.0)
    >>> driver_sentence(Drivers("age", 0.1, 0.001, 500, (job,)))
    'Most of the gap along age reaches the score through job: without what job tells, 80 % of it would go.'
    """
    if not drivers.columns or drivers.pvalue > level:
        text = f"the gap along {drivers.attribute} is not significant, so no column is named that carries it."
    else:
        first = max(drivers.columns, key=lambda driver: driver.more_than_half)
        if first.more_than_half > norm.ppf(1 - level / len(drivers.columns)):
            text = (
                f"most of the gap along {drivers.attribute} reaches the score through {first.column}: without what "
                f"{first.column} tells, {percent(min(first.carried / drivers.gap, 1))} of it would go."
            )
        else:
            first = drivers.columns[0]
            text = (
                f"no single column is seen to carry more than half of the gap along {drivers.attribute}; the largest "
                f"part, {figure(first.carried)} of {figure(drivers.gap)}, is that of {first.column}."
            )
    return f"Without the limit, {text}" if drivers.unlimited else capitalized(text)


def shift_sentence(attribute: str, curve: Curve) -> str:
    """Return whose scores the limit raised and lowered most, where the band of all groups is on one side of 0."""
    parts = []
    for word, sign, band in (("raised", 1, curve.low), ("lowered", -1, curve.high)):
        sure = [i for i, sparse in enumerate(curve.sparse) if not sparse and sign * band[i] > 0]
        if sure:
            i = max(sure, key=lambda i: sign * curve.mean[i])
            size = figure(abs(curve.mean[i]))
            parts.append(f"{word} scores most {group_phrase(curve, i, attribute)}, by {size} on average")
    if not parts:
        return "The limit is not seen to change the mean score of any group."
    return f"The limit {', and '.join(parts)}."
