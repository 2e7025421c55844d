r"""What parity costs on a base: the loss at a level of the gap, beside the base without constraint.

Two yardsticks: log loss (squared error for numbers) at equal GDP of the scores, and errors at equal
GDP of the decisions. Where fewer than a fifth of the rows are positive, decisions are made at the
base rate and errors of both classes count alike. The paper's own yardstick, accuracy at 1/2 against
the GDP of scores, is no trade-off: p → 1/2 + t(p − 1/2) keeps every decision and drives GDP to
zero.

The rows of all test folds are measured together. Points of a path that no other beats in both gap
and loss are its front, and the loss at a level is interpolated between two neighbours on it: a mean
of two scores does at least as well in loss, and a random choice between two decisions as well in
errors. A level below the smallest gap is read between the last point and a constant, for the same
reason, and counted as not reached. Levels are shares of the gap of the base without constraint. The
cost is the loss at a level less that of the base, averaged over the levels, as a share of what the
base gains over a constant.

Errors are those of the jackknife over folds, widened for training rows that folds share by the
factor :math:`\sqrt{1 + J n_{test} / n_{train}}` of Nadeau and Bengio (2003).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import log_loss

from frhsic.parity import gdp
from frhsic_paper.crossed.ways import NONE, RARE, decide

Frame = Any
"""A pandas table whose columns are known by name alone, which its types cannot say."""

LEVELS = (0.75, 0.5, 0.25)
"""Shares of the base's gap at which losses are read."""

CONSTANT = "constant"


class Yardstick(NamedTuple):
    """Columns of a record."""

    gap: str
    loss: str


YARDSTICKS = {
    "loss at equal GDP of scores": Yardstick("gdp", "loss"),
    "errors at equal GDP of decisions": Yardstick("gdp_decisions", "errors"),
}


def measure_outputs(
    scores: np.ndarray | None,
    decisions: np.ndarray | None,
    y: np.ndarray,
    s: np.ndarray,
    rate: float | None,
) -> dict[str, float]:
    """Return losses and gaps of scores, of decisions (0/1 or their probability), or of both.

    `rate` is the share of positive rows among those that tune; None for a number.

    Examples
    --------
    Contraction towards 1/2 halves GDP and changes no decision.

    >>> rng = np.random.default_rng(0)
    >>> s, noise = rng.uniform(size=(2, 500))
    >>> y = (s + noise > 1).astype(float)
    >>> wide = measure_outputs(s, None, y, s, 0.5)
    >>> narrow = measure_outputs(0.25 + s / 2, None, y, s, 0.5)
    >>> round(narrow["gdp"] / wide["gdp"], 6), narrow["loss"] > wide["loss"]
    (0.5, True)
    >>> narrow["errors"] == wide["errors"], narrow["gdp_decisions"] == wide["gdp_decisions"]
    (True, True)
    """
    found: dict[str, float] = {}
    if scores is not None:
        found["gdp"] = float(gdp(scores, s, resamples=0))
        if rate is None:
            return found | {"loss": float(np.mean((scores - y) ** 2))}
        found["loss"] = float(log_loss(y, np.clip(scores, 1e-6, 1 - 1e-6), labels=[0, 1]))
    if decisions is None:
        assert scores is not None
        assert rate is not None
        decisions = decide(scores, rate)
    found["gdp_decisions"] = float(gdp(decisions, s, resamples=0))
    wrong = np.where(y == 1, 1 - decisions, decisions)
    if rate is not None and rate < RARE:
        found["errors"] = float((wrong[y == 1].mean() + wrong[y == 0].mean()) / 2)
    else:
        found["errors"] = float(wrong.mean())
    return found


class Reading(NamedTuple):
    """The loss of a path at a level, and whether the path itself reaches the level."""

    loss: float
    reached: bool


def loss_at_level(gap: np.ndarray, loss: np.ndarray, level: float, constant: float) -> Reading:
    """Return the loss of a path at a gap, read off its front; `constant` is that of a constant.

    Examples
    --------
    >>> gap, loss = np.array([2.0, 4.0, 5.0, 8.0]), np.array([5.0, 1.0, 2.0, 0.0])
    >>> loss_at_level(gap, loss, 6, 9.0), loss_at_level(gap, loss, 1, 9.0)
    (Reading(loss=0.5, reached=True), Reading(loss=7.0, reached=False))
    """
    whole = np.isfinite(gap) & np.isfinite(loss)
    if not whole.any():
        return Reading(constant, False)
    order = np.lexsort((loss[whole], gap[whole]))
    gap = gap[whole][order]
    loss = loss[whole][order]
    best = np.minimum.accumulate(loss)
    front = np.append(True, best[1:] < best[:-1])
    gap = gap[front]
    loss = loss[front]
    if level < gap[0]:
        return Reading(float(constant + level / gap[0] * (loss[0] - constant)), False)
    return Reading(float(np.interp(level, gap, loss)), True)


class Cost(NamedTuple):
    """The cost of a way on all rows, on the rows without each fold, the share of levels that its
    path reaches, and the factor on errors.
    """

    value: float
    without: np.ndarray
    reached: float
    factor: float

    def difference_error(self, other: Cost | None = None) -> float:
        """Return the error of the cost, or of its difference to another one on the same rows."""
        values = self.without if other is None else self.without - other.without
        folds = len(values)
        spread = np.sqrt((folds - 1) * np.mean((values - values.mean()) ** 2))
        return float(spread * self.factor)


def costs(records: Frame, yardstick: Yardstick) -> dict[str, Cost]:
    """Return the cost of each way from the records of one table and base; none where the gap of the
    base is below three of its errors.
    """
    gap, loss = yardstick
    if gap not in records:
        return {}
    own = records.dropna(subset=[gap, loss])
    by_fold = dict(list(own.groupby("left_out")))
    if -1 not in by_fold or NONE not in set(by_fold[-1].way):
        return {}
    base = own[(own.way == NONE) & (own.left_out >= 0)][gap].to_numpy(float)
    whole = float(by_fold[-1][by_fold[-1].way == NONE][gap].iloc[0])
    spread = np.sqrt((len(base) - 1) * np.mean((base - base.mean()) ** 2)) if len(base) else 0.0
    if not whole >= 3 * spread:
        return {}
    shared = own[own.way == NONE].iloc[0]
    folds = max(len(base), 1)
    factor = float(np.sqrt(1 + folds * shared.test_rows / shared.training_rows))
    each = {fold: _costs(part, gap, loss) for fold, part in by_fold.items()}
    return {
        way: Cost(
            value,
            np.array([each[fold][way][0] for fold in sorted(by_fold) if fold >= 0]),
            reached,
            factor,
        )
        for way, (value, reached) in each[-1].items()
    }


def _costs(part: Frame, gap: str, loss: str) -> dict[str, tuple[float, float]]:
    paths = {
        way: (p[gap].to_numpy(float), p[loss].to_numpy(float)) for way, p in part.groupby("way")
    }
    base_gap, base_loss = (values[0] for values in paths[NONE])
    constant = paths[CONSTANT][1][0]
    found = {}
    for way, (gaps, losses) in paths.items():
        if way == CONSTANT:
            continue
        readings = [loss_at_level(gaps, losses, level * base_gap, constant) for level in LEVELS]
        loss_at = np.mean([one.loss for one in readings])
        reached = np.mean([one.reached for one in readings])
        found[str(way)] = (float((loss_at - base_loss) / (constant - base_loss)), float(reached))
    return found


def pool_points(points: Any, table: Any, sets: Any, rate: float | None, tests: bool) -> list[Any]:
    """Return the records of points: measured on the rows of all splits together and, where they
    test, without each.
    """
    groups: dict[Any, list[Any]] = {}
    for one in points:
        groups.setdefault((one.way, one.trial, one.dial), []).append(one)
    sizes = {"training_rows": len(sets[0][0]), "test_rows": len(sets[0][1])}
    rows = []
    for (way, trial, dial), group in groups.items():
        group.sort(key=lambda one: one.split)
        for left_out in [-1, *range(len(sets))] if tests else [-1]:
            kept = [one for one in group if one.split != left_out]
            others = np.concatenate([sets[one.split][1] for one in kept])
            scores, decisions = (
                None
                if getattr(kept[0], name) is None
                else np.concatenate([getattr(one, name) for one in kept])
                for name in ("scores", "decisions")
            )
            numbers = dict.fromkeys(("gdp", "loss"), np.nan)  # of a model that diverged
            if scores is None or np.isfinite(scores).all():
                numbers = measure_outputs(scores, decisions, table.y[others], table.s[others], rate)
            about = {"way": way, "trial": trial, "dial": float(dial), "left_out": left_out}
            rows.append(about | sizes | numbers)
    return rows
