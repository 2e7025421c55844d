"""What drives a gap: which columns carry the attribute into the score, and whose score a limit changed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.auditing import Curve, Settings
from frhsic.auditing.measures import score_curve
from frhsic.formatting import capitalized, figure, plain
from frhsic.intervals import subsample
from frhsic.parity import gdp

MOST_ROWS = 2000
MOST_COLUMNS = 40
SHUFFLES = 3


@dataclass(frozen=True)
class Driver:
    """The gap along an attribute with one column shuffled; `carried` is how much smaller it is than with all columns.

    Columns that tell the same share it, so that each alone carries less. A negative value means that the gap grows
    without the column.
    """

    column: str
    shuffled: float
    carried: float


@dataclass(frozen=True)
class Drivers:
    """The columns of one attribute, the one that carries most first; `gap` is the gap with all columns as they are.

    `unlimited` says that they are those of the model without the limit, not of the one that was chosen.
    """

    attribute: str
    gap: float
    rows: int
    columns: tuple[Driver, ...]
    unlimited: bool = False


@dataclass(frozen=True)
class Shift:
    """Score under the limit less the score without it: its mean in groups along an attribute."""

    attribute: str
    curve: Curve


def drivers(
    score: Callable[[Any, np.ndarray], np.ndarray], X: Any, s: np.ndarray, names: Sequence[str], settings: Settings
) -> tuple[Drivers, ...]:
    r"""Return for each attribute by how much GDP falls when a column of X is shuffled among the audited rows.

    .. math:: \mathrm{GDP}(f(X), S) - \mathrm{GDP}(f(X_{-j}, \pi X_j), S)

    as a mean over three shuffles, on up to 2,000 rows. Nothing is returned for more than 40 columns, which would take
    long.

    Parameters
    ----------
    score
        Function from rows like X, and their places in X, to their scores.
    X
        Frame or matrix; the columns of a frame are shuffled as they are, before any encoding.
    s
        Attributes of shape (n, q), with their names.
    """
    frame = X.reset_index(drop=True) if isinstance(X, pd.DataFrame) else pd.DataFrame(np.asarray(X))
    if frame.shape[1] > MOST_COLUMNS:
        return ()
    framed = isinstance(X, pd.DataFrame)
    rows = subsample(len(frame), MOST_ROWS, settings.generator(6))
    frame, s = frame.iloc[rows].reset_index(drop=True), s[rows]
    random = settings.generator(7)
    whole = _gaps(score(frame if framed else frame.to_numpy(), rows), s)
    shuffled = {}
    for column in frame.columns:
        gaps = []
        for _ in range(SHUFFLES):
            order = random.permutation(len(frame))
            changed = frame.copy()
            changed[column] = frame[column].iloc[order].reset_index(drop=True)
            gaps.append(_gaps(score(changed if framed else changed.to_numpy(), rows), s))
        shuffled[str(column)] = np.mean(gaps, axis=0)
    results = []
    for i, name in enumerate(names):
        found = [Driver(column, float(gaps[i]), float(whole[i] - gaps[i])) for column, gaps in shuffled.items()]
        found.sort(key=lambda driver: -driver.carried)
        results.append(Drivers(name, float(whole[i]), len(frame), tuple(found)))
    return tuple(results)


def _gaps(scores: np.ndarray, s: np.ndarray) -> np.ndarray:
    return np.array([float(gdp(scores, column, resamples=0)) for column in s.T])


def shifts(
    before: np.ndarray, after: np.ndarray, s: np.ndarray, names: Sequence[str], settings: Settings
) -> tuple[Shift, ...]:
    """Return for each attribute by how much scores changed in groups along it, with a band for all groups at once."""
    return tuple(Shift(name, score_curve(after - before, column, settings)) for name, column in zip(names, s.T))


def group_phrase(curve: Curve, i: int, name: str) -> str:
    """Return where a group of a curve lies, such as “at age from 58 to 63”."""
    if not curve.start or curve.start[i] == curve.end[i]:
        return f"at {name} {plain(curve.grid[i])}"
    return f"at {name} from {plain(curve.start[i])} to {plain(curve.end[i])}"


def driver_sentence(found: Drivers) -> str:
    """Return which columns carry most of an attribute into the score.

    Examples
    --------
    >>> driver_sentence(Drivers("age", 0.1, 500, (Driver("job", 0.02, 0.08), Driver("debt", 0.1, 0.0))))
    'Most of age reaches the score through job: with that column shuffled, GDP is 0.0200 instead of 0.100.'
    """
    first = found.columns[0]
    if first.carried <= 0.05 * found.gap:
        text = f"no single column carries {found.attribute} into the score; several may do so together."
    else:
        text = (
            f"most of {found.attribute} reaches the score through {first.column}: with that column shuffled, GDP is "
            f"{figure(first.shuffled)} instead of {figure(found.gap)}."
        )
    return f"Without the limit, {text}" if found.unlimited else capitalized(text)


def shift_sentence(found: Shift) -> str:
    """Return whose scores the limit raised and lowered most."""
    curve, parts = found.curve, []
    trusted = [i for i, sparse in enumerate(curve.sparse) if not sparse] or list(range(len(curve.mean)))
    for word, i, moved in (
        ("raised", max(trusted, key=lambda i: curve.mean[i]), 1),
        ("lowered", min(trusted, key=lambda i: curve.mean[i]), -1),
    ):
        if curve.mean[i] * moved > 0:
            where = group_phrase(curve, i, found.attribute)
            parts.append(f"{word} scores most {where}, by {figure(abs(curve.mean[i]))} on average")
    return f"The limit {', and '.join(parts)}." if parts else "The limit changed no score."
