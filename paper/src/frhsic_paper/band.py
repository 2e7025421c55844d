"""The rule that chooses a model within a performance band."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["BAND", "best_in_band"]

BAND = 0.01
"""Share of the unpenalized model's performance that a chosen model may lose."""


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
    sign = 1 if higher_is_better else -1
    limit = sign * baseline * (1 - sign * band)
    inside = [i for i, performance in enumerate(performances) if sign * performance >= limit]
    if inside:
        return min(inside, key=lambda i: dependences[i]), True
    return max(range(len(performances)), key=lambda i: sign * performances[i]), False
