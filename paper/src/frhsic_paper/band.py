"""The performance band, and the rule that chooses a model inside it."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BAND", "best_in_band", "within_band"]

BAND = 0.01
"""Share of the unpenalized model's performance that a chosen model may lose."""


def within_band(performance: float, baseline: float, band: float, higher_is_better: bool) -> bool:
    """Return whether a performance is at most a share `band` worse than the unpenalized model's; the limit itself is.

    Examples
    --------
    >>> within_band(0.891, 0.9, 0.01, True), within_band(0.92, 0.9, 0.01, False)
    (True, False)
    """
    return performance >= (1 - band) * baseline if higher_is_better else performance <= (1 + band) * baseline


def best_in_band(
    performances: Sequence[float],
    dependences: Sequence[float],
    *,
    baseline: float,
    band: float,
    higher_is_better: bool,
) -> tuple[int, bool]:
    """Choose the least dependence within the band; if no model is inside, the best performance.

    Returns the index of the chosen model and whether it is inside; the limit itself is. Of equal models the first is
    chosen.

    Examples
    --------
    >>> best_in_band([0.90, 0.899, 0.8], [0.3, 0.2, 0.1], baseline=0.9, band=0.01, higher_is_better=True)
    (1, True)
    >>> best_in_band([0.7, 0.8], [0.1, 0.2], baseline=0.9, band=0.01, higher_is_better=True)
    (1, False)
    """
    inside = [
        i for i, performance in enumerate(performances) if within_band(performance, baseline, band, higher_is_better)
    ]
    if inside:
        return min(inside, key=lambda i: dependences[i]), True
    best = max if higher_is_better else min
    return best(range(len(performances)), key=lambda i: performances[i]), False
