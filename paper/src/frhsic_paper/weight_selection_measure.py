r"""Choosing λ by a test of independence on validation rows, by the published test and by those that hold their level.

Part "tests" of the records, one for each model:

``dataset``, ``method``, ``weight``, ``repeat``   as in the part "models"
``n``            validation rows (at most 1,000)
``hsic``         statistic on them; ``n_hsic`` n times that
``published_threshold`` (of n·HSIC), ``published_pvalue``, ``published_rejected``
``threshold`` (of n·HSIC), ``pvalue``, ``rejected``            exact permutation moments
``gretton_threshold``, ``gretton_pvalue``, ``gretton_rejected``
``performance``, ``gdp``   of the model, on test rows, by the protocol's own convention

:func:`selected` gives for each dataset and repeat the smallest λ that is not rejected, or None.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from frhsic.datasets import Split
from frhsic.independence import gamma_test, gamma_test_published
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic_paper.grid import Grid, Splits, by_name
from frhsic_paper.models import Model, store_all
from frhsic_paper.protocol import BASELINE, PAPER_WEIGHTS, PROTOCOLS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.steps import Measurement, Training, each

__all__ = ["MEASURE", "TRAIN", "grid", "selected"]

ROWS, BANDWIDTH_ROWS = 1000, 500

COLLAPSED = 1e-5
"""Bandwidth where half of the rows coincide, so that their median distance is 0."""


def grid(protocol: Protocol) -> Grid:
    """Return the models among which a weight is chosen."""
    splits = Splits(train=0.7, validation=0.15, scaling=protocol.scaling)
    return Grid("weight-selection", ("adult", "crime", "compas"), by_name("frhsic"), PAPER_WEIGHTS, 3, splits)


def tests(model: Model, split: Split, protocol: Protocol) -> list[Record]:
    """Test the representation of the validation rows."""
    part = split.validation
    assert part is not None  # the grid's splits have three parts
    outcome = _tests(model.encode(part.x[:ROWS]), part.s[:ROWS])
    return [{**outcome, "performance": model.record["performance"], "gdp": model.record[protocol.gdp]}]


def selected(tested: Sequence[Record], column: str = "rejected") -> dict[tuple[str, int], float | None]:
    """Return, for each dataset and repeat, the smallest weight whose test does not reject; None if all do.

    `column` is "rejected", "published_rejected" or "gretton_rejected".

    Examples
    --------
    >>> made = [
    ...     {"dataset": "crime", "repeat": 0, "method": "frhsic", "weight": w, "rejected": w < 5} for w in (1, 5, 10)
    ... ]
    >>> selected(made)
    {('crime', 0): 5}
    """
    chosen: dict[tuple[str, int], float | None] = {}
    for record in sorted(tested, key=lambda r: float(r["weight"])):
        if record["method"] == BASELINE:
            continue
        at = (record["dataset"], record["repeat"])
        if chosen.setdefault(at, None) is None and not record[column]:
            chosen[at] = record["weight"]
    return chosen


def _tests(z: Tensor, s: Tensor) -> Record:
    z, s = z.to(torch.float64), s.to(torch.float64)
    kernels = _kernel(z), _kernel(s)
    published = gamma_test_published(z, s, *kernels)
    exact, gretton = (gamma_test(z, s, *kernels, moments=moments) for moments in ("permutation", "gretton"))
    n = len(z)
    return {
        "n": n,
        "hsic": exact.statistic,
        "n_hsic": n * exact.statistic,
        "published_threshold": n * published.threshold,
        "published_pvalue": published.pvalue,
        "published_rejected": published.rejected,
        "threshold": n * exact.threshold,
        "pvalue": exact.pvalue,
        "rejected": exact.rejected,
        "gretton_threshold": n * gretton.threshold,
        "gretton_pvalue": gretton.pvalue,
        "gretton_rejected": gretton.rejected,
    }


def _kernel(rows: Tensor) -> Gaussian:
    try:
        return Gaussian(median_bandwidth(rows[:BANDWIDTH_ROWS]))
    except ValueError:  # half of the rows coincide: an encoder that has collapsed
        return Gaussian(COLLAPSED)


TRAIN = Training(grid, (store_all,))

MEASURE = Measurement(
    "weight-selection", "tests", grid, dict.fromkeys(PROTOCOLS, each(tests)), (ROWS, BANDWIDTH_ROWS, COLLAPSED)
)
