r"""The smallest eigenvalue of the centred Gram matrix of S against the bandwidth, and its two limits.

Part "spectra" of the records of the study "bandwidth-scaling", one for each dataset and bandwidth:

``protocol``     "published": float32, smallest eigenvalue above 1e-6 of the largest. "corrected": float64
``dataset``      "adult", "crime" (1,500 rows); under "corrected" also "distinct": 200 different values, for the limits
``sigma``, ``n``, ``distinct``   bandwidth, rows, different values of S
``largest``      largest eigenvalue of HLH/n
``smallest``     λ̂_S: the smallest above ``cut`` times the largest, ``kept`` how many are above
``cut``          1e-6 under "published", 1e-12 under "corrected"
``floor``        1e-6 · largest: where the published rule stops whatever the data
``eigenvalues``  the twelve largest
``last``         the smallest of the distinct − 1 eigenvalues that are not zero by construction

:func:`scaling_slope` is the slope of log smallest on log sigma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter

import numpy as np
import torch
from torch import Tensor

from frhsic.dependence.grams import centered
from frhsic.kernels import Gaussian
from frhsic_paper.grid import FIRST_SEED, loaded
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.steps import Computation

__all__ = ["MEASURE", "scaling_slope", "spectrum"]

DATASETS = ("adult", "crime")

ROWS = 1500

LIMIT_SIGMAS = (1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0)
"""Bandwidths for 200 different values on [0, 1], of which the nearest are 1e-5 or more apart."""

LIMIT_ROWS = 200

PUBLISHED_CUT = 1e-6

SHOWN = 12


@dataclass(frozen=True)
class Scan:
    """Bandwidths, precision and the share of the largest eigenvalue at which the rest is cut.

    `limits` are bandwidths for the distinct values that show the limits.
    """

    sigmas: tuple[float, ...]
    dtype: torch.dtype
    cut: float
    limits: tuple[float, ...] = ()


SETTINGS = {
    "published": Scan((0.1, 0.3, 1.0, 3.0, 10.0), torch.float32, PUBLISHED_CUT),
    "corrected": Scan((0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0), torch.float64, 1e-12, LIMIT_SIGMAS),
}


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the datasets and bandwidths."""
    scan = SETTINGS[protocol.name]
    pairs = [(name, sigma) for name in options.chosen(DATASETS) for sigma in scan.sigmas]
    if options.datasets is None:
        pairs += [("distinct", sigma) for sigma in scan.limits]
    return dict.fromkeys(pairs, 1)


def spectra(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the spectrum of each dataset and bandwidth."""
    scan = SETTINGS[protocol.name]
    for name, group in groupby(missing, key=itemgetter(0)):
        s = _distinct_values() if name == "distinct" else _sensitive(name, protocol)
        for _, sigma in group:
            yield [spectrum(s.to(scan.dtype), sigma, scan.cut)]


MEASURE = Computation("bandwidth-scaling", "spectra", ("dataset", "sigma"), units, spectra, SETTINGS)


def spectrum(s: Tensor, sigma: float, cut: float) -> Record:
    r"""Eigenvalues of :math:`HLH/n` for a Gaussian of bandwidth σ on s, of shape (n,), in its own precision.

    Examples
    --------
    Two values, far apart: of HLH/2 = [[1, −1], [−1, 1]]/4 the eigenvalues are 1/2 and 0.

    >>> found = spectrum(torch.tensor([0.0, 9.0], dtype=torch.float64), 1.0, 1e-6)
    >>> found["kept"], round(found["smallest"], 6), found["distinct"]
    (1, 0.5, 2)
    """
    n = len(s)
    gram = centered(Gaussian(sigma)(s[:, None], s[:, None])) / n
    values = torch.linalg.eigvalsh((gram + gram.T) / 2).flip(0)
    largest, distinct = float(values[0]), int(torch.unique(s).numel())
    above = values[values > cut * largest]
    return {
        "n": n,
        "distinct": distinct,
        "largest": largest,
        "smallest": float(above[-1]),
        "kept": len(above),
        "cut": cut,
        "floor": PUBLISHED_CUT * largest,
        "eigenvalues": values[:SHOWN].tolist(),
        "last": float(values[distinct - 2]),
    }


def scaling_slope(scanned: Sequence[Record], dataset: str) -> float:
    """Return the slope of log λ̂ on log σ over the published bandwidths.

    Examples
    --------
    >>> made = [{"dataset": "adult", "sigma": x, "smallest": x**-2} for x in (0.1, 1.0, 10.0)]
    >>> round(scaling_slope(made, "adult"), 6)
    -2.0
    """
    sigmas = SETTINGS["published"].sigmas
    own = [record for record in scanned if record["dataset"] == dataset and record["sigma"] in sigmas]
    slope, _ = np.polyfit(np.log([r["sigma"] for r in own]), np.log([r["smallest"] for r in own]), 1)
    return float(slope)


def _sensitive(name: str, protocol: Protocol) -> Tensor:
    """Return 1,500 values of S, scaled to [0, 1] by all rows of the dataset."""
    data = loaded(name, protocol)
    s = torch.from_numpy(data.s.to_numpy(np.float64).copy())
    scaled = (s - s.min()) / (s.max() - s.min())
    rows = np.random.RandomState(FIRST_SEED).permutation(data.n)[: min(ROWS, data.n)]
    return scaled[torch.from_numpy(rows)]


def _distinct_values() -> Tensor:
    """Return 200 values on [0, 1], one in each of 200 equal steps."""
    draw = np.random.default_rng(FIRST_SEED)
    return torch.from_numpy((np.arange(LIMIT_ROWS) + draw.uniform(0.1, 0.9, LIMIT_ROWS)) / LIMIT_ROWS)
