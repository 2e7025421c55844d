r"""The cost of parity on a base model: its loss at a level of the gap, compared with the
unconstrained base.

Methods are compared by three losses: log loss (squared error for numbers) at equal GDP of the
scores, 1 - AUC at equal rank gap, and errors at equal GDP of the decisions. If fewer than a fifth
of the rows are positive, the threshold of decisions is the base rate, and errors in both classes
have the same total weight. The paper's own comparison, of accuracy at 1/2 with the GDP of scores,
is not a trade-off: p → 1/2 + t(p − 1/2) doesn't change any decision but drives GDP to zero.

The rows of all test folds are measured together. The points of a path that no other point beats in
both gap and loss form its front. The loss at a level is interpolated between two neighbors on the
front, since the mean of their scores has at most this loss, and a random choice between their
decisions has exactly this error. Below the smallest gap, the loss is interpolated between the last
point and a constant, for the same reason. Levels are shares of the gap of the unconstrained base.
The cost is the loss at a level minus that of the base, averaged over the levels, as a share of the
base's gain over a constant.

Standard errors are from the jackknife over folds, multiplied, because folds share training rows, by
the factor :math:`\sqrt{1 + J n_{test} / n_{train}}` of Nadeau and Bengio (2003).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, get_args

import numpy as np
from sklearn.metrics import log_loss, roc_auc_score

from frhsic.parity import gdp, rank_gap
from frhsic_paper.crossed.settings import NONE, Quantity
from frhsic_paper.crossed.task import RARE, Point, decide
from frhsic_paper.records import Record

LEVELS = (0.75, 0.5, 0.25)
"""Shares of the base's gap at which losses are compared."""

CONSTANT = "constant"

YARDSTICKS: dict[Quantity, str] = {
    "scores": "loss at equal GDP of scores",
    "ranks": "AUC at equal rank gap",
    "decisions": "errors at equal GDP of decisions",
}


def gap_and_loss(
    values: np.ndarray, quantity: Quantity, y: np.ndarray, s: np.ndarray, rate: float | None
) -> tuple[float, float]:
    """Return the gap and the loss for a quantity; the values are scores or, if parity of decisions
    is measured, decisions (0/1 or their probabilities).

    `rate` is the share of positive rows among the tuning rows; None for a numeric target.

    Examples
    --------
    Contraction towards 1/2 halves GDP without changing ranks.

    >>> rng = np.random.default_rng(0)
    >>> s, noise = rng.uniform(size=(2, 500))
    >>> y = (s + noise > 1).astype(float)
    >>> wide, narrow = (gap_and_loss(f, "scores", y, s, 0.5) for f in (s, 0.25 + s / 2))
    >>> round(narrow[0] / wide[0], 6)
    0.5
    >>> gap_and_loss(s, "ranks", y, s, 0.5) == gap_and_loss(0.25 + s / 2, "ranks", y, s, 0.5)
    True
    """
    if not np.isfinite(values).all():  # from a model that diverged
        return np.nan, np.nan
    if quantity == "ranks":
        return float(rank_gap(values, s, resamples=0)), 1 - float(roc_auc_score(y, values))
    gap = float(gdp(values, s, resamples=0))
    if rate is None:
        return gap, float(np.mean((values - y) ** 2))
    if quantity == "scores":
        return gap, float(log_loss(y, np.clip(values, 1e-6, 1 - 1e-6), labels=[0, 1]))
    wrong = np.where(y == 1, 1 - values, values)
    if rate < RARE:
        return gap, float((wrong[y == 1].mean() + wrong[y == 0].mean()) / 2)
    return gap, float(wrong.mean())


def loss_at_level(gap: np.ndarray, loss: np.ndarray, level: float, constant: float) -> float:
    """Return the loss of a path at a given gap, from its front; `constant` is the loss of a
    constant.

    Examples
    --------
    >>> gap, loss = np.array([2.0, 4.0, 5.0, 8.0]), np.array([5.0, 1.0, 2.0, 0.0])
    >>> loss_at_level(gap, loss, 6, 9.0), loss_at_level(gap, loss, 1, 9.0)
    (0.5, 7.0)
    """
    whole = np.isfinite(gap) & np.isfinite(loss)
    if not whole.any():
        return constant
    order = np.lexsort((loss[whole], gap[whole]))
    gap = gap[whole][order]
    loss = loss[whole][order]
    best = np.minimum.accumulate(loss)
    front = np.append(True, best[1:] < best[:-1])
    gap = gap[front]
    loss = loss[front]
    if level < gap[0]:
        return float(constant + level / gap[0] * (loss[0] - constant))
    return float(np.interp(level, gap, loss))


class Cost(NamedTuple):
    """The cost of a method on all rows and without each fold, and the factor by which its standard
    error is multiplied.
    """

    value: float
    without: np.ndarray
    factor: float

    def difference_error(self, other: Cost | None = None) -> float:
        """Return the standard error of the cost, or of its difference from another cost on the same
        rows.
        """
        values = self.without if other is None else self.without - other.without
        return jackknife_error(values) * self.factor


def jackknife_error(values: np.ndarray) -> float:
    """Return the standard error of a number from its values without each fold."""
    return float(np.sqrt((len(values) - 1) * np.mean((values - values.mean()) ** 2)))


def costs(paths: Iterable[Record]) -> dict[str, Cost]:
    """Return the cost of each method for one quantity, from its path on one table and base; none if
    the gap of the base is below three standard errors, or its loss is not below that of a constant.
    """
    points = {path["way"]: path for path in paths}
    if NONE not in points:
        return {}
    gaps, losses = (
        {way: np.array(path[name], float) for way, path in points.items()}
        for name in ("gaps", "losses")
    )
    base = gaps[NONE][0]
    constant = losses[CONSTANT][0]
    gain = constant - losses[NONE][0]
    folds = len(base) - 1
    if not gain[0] > 0 or (folds and not base[0] >= 3 * jackknife_error(base[1:])):
        return {}
    sizes = points[NONE]
    factor = float(np.sqrt(1 + folds * sizes["test_rows"] / sizes["training_rows"]))
    found = {}
    for way in points:
        if way == CONSTANT:
            continue
        values = np.full(folds + 1, np.nan)
        for j in range(folds + 1):
            if gain[j] > 0:
                at = [
                    loss_at_level(gaps[way][:, j], losses[way][:, j], level * base[j], constant[j])
                    for level in LEVELS
                ]
                values[j] = (np.mean(at) - losses[NONE][0, j]) / gain[j]
        found[way] = Cost(float(values[0]), values[1:], factor)
    return found


def pool_points(
    points: Iterable[Point], table: Any, sets: Sequence[Any], rate: float | None, tests: bool
) -> list[Record]:
    """Return paths from points: gap and loss for each weight or share, on the rows of all splits
    together and, for test folds, without each fold.

    Scores are evaluated for all quantities (as scores, by their ranks, and as decisions at a
    threshold) unless they are meant for only one.
    """
    groups: dict[Any, dict[float, list[Point]]] = {}
    for one in points:
        quantities = (one.quantity,) if one.quantity else get_args(Quantity)
        for quantity in quantities if table.binary else ("scores",):
            path = groups.setdefault((one.way, one.trial, quantity), {})
            path.setdefault(float(one.dial), []).append(one)
    sizes = {"training_rows": len(sets[0][0]), "test_rows": len(sets[0][1])}
    left_out = [-1, *range(len(sets))] if tests else [-1]
    records = []
    for (way, trial, quantity), path in groups.items():
        measured = []
        for group in path.values():
            group.sort(key=lambda one: one.split)
            for fold in left_out:
                kept = [one for one in group if one.split != fold]
                others = np.concatenate([sets[one.split][1] for one in kept])
                values = np.concatenate([one.values for one in kept])
                if quantity == "decisions" and not kept[0].decided:
                    assert rate is not None
                    values = decide(values, rate)
                y, s = table.y[others], table.s[others]
                measured.append(gap_and_loss(values, quantity, y, s, rate))
        gaps, losses = np.reshape(measured, (len(path), len(left_out), 2)).transpose(2, 0, 1)
        about = {"way": way, "trial": trial, "quantity": quantity, "dials": list(path)}
        records.append(about | {"gaps": gaps.tolist(), "losses": losses.tolist()} | sizes)
    return records
