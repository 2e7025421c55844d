r"""Choosing λ by a test of independence on validation rows, by the published test and by those that hold their level.

Records (`weight-tests-{protocol}.jsonl`), one for each model of the experiment "weight-selection":

``experiment``   "weight-tests"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
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

from frhsic.independence import gamma_test, gamma_test_published
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic_paper import keeping, records
from frhsic_paper.catalogue import grid_of
from frhsic_paper.keeping import Key
from frhsic_paper.options import Options
from frhsic_paper.protocol import BASELINE, Protocol
from frhsic_paper.records import Record, Unit

__all__ = ["GRID", "NAME", "run", "selected"]

NAME = "weight-tests"

GRID = "weight-selection"

ROWS, BANDWIDTH_ROWS = 1000, 500

COLLAPSED = 1e-5
"""Bandwidth where half of the rows coincide, so that their median distance is 0."""


def run(protocol: Protocol, options: Options) -> list[Record]:
    """Test the kept models that are not in the records yet."""
    path, grid = options.file(NAME, protocol), options.applied(grid_of(GRID, protocol))
    models = keeping.model_file(options.out, GRID, protocol.name)
    units: list[Unit] = list(keeping.kept(models, grid.datasets))
    missing = [Key(*unit) for unit in records.resume(path, units, Key.of, dict.fromkeys(units, 1))]
    trained = {Key.of(record): record for record in records.read(options.file(GRID, protocol))}
    for data, splits, states in keeping.groups(grid, protocol, models, missing):
        found = []
        for key, state in states.items():
            part = splits[key.repeat].validation
            assert part is not None  # the grid's splits are three-way
            tests = _tests(keeping.encoded(state, part.x[:ROWS]), part.s[:ROWS])
            model = trained[key]
            found.append(
                {
                    "experiment": NAME,
                    "protocol": protocol.name,
                    **key._asdict(),
                    **tests,
                    "performance": model["performance"],
                    "gdp": model[protocol.gdp],
                }
            )
        records.append(path, found)
        options.say(f"{protocol.name} {NAME} {data.name}: {len(found)} models")
    return records.read(path)


def selected(found: Sequence[Record], column: str = "rejected") -> dict[tuple[str, int], float | None]:
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
    for record in sorted(found, key=lambda r: float(r["weight"])):
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
