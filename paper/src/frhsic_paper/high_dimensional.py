r"""Several sensitive columns: what they cost in time, and what they cost in error.

Records of two parts:

``part``        "time": seconds of training on 2,000 rows of Adult against the number of sensitive columns; both
                protocols. "error": estimates at n rows of a Gaussian model whose answer is known; "corrected" only
``dim_s``       number of sensitive columns

of "time": ``method`` ("frhsic", "frem-loop"; corrected also "frem-32"), ``columns`` (their names), ``device``,
``repeat``, ``seconds`` (of one epoch; published: the mean over 30 with no warm-up)

of "error": ``statistic`` ("hsic", "hsic-unbiased", "eipm"), ``n``, ``repeat``, ``estimate``, ``truth``, ``error``,
``relative_error`` (error / truth)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.datasets import Dataset
from frhsic.datasets.synthetic import gaussian_pair
from frhsic.dependence import eipm, hsic, hsic_unbiased
from frhsic.fleet import affine_head, mlp_encoder
from frhsic.kernels import Gaussian
from frhsic.penalties import EIPM, HSIC, Penalty
from frhsic_paper.grid import FIRST_SEED, loaded
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.steps import Computation
from frhsic_paper.timing import Loop, LoopedEIPM, Timing, plain_clock, synchronized_clock

__all__ = ["MEASURE", "TRAIN", "true_hsic"]

NAME = "high-dimensional"

DIMENSIONS = (1, 2, 3, 4, 5)

ROWS, WEIGHT = 2000, 10.0

PUBLISHED_POSITIONS = (0, 3, 4, 5)
"""Columns of X taken for sensitive ones: meant were age, capital gain and loss, and hours, but age is not in X."""

NAMED_COLUMNS = ("age", "capital-gain", "capital-loss", "hours-per-week")
"""The columns that the text names; a fifth is noise."""

CORRELATION = 0.5

TIMES = {
    "published": Timing(("frhsic", "frem-loop"), plain_clock, epochs=30, averaged=30),
    "corrected": Timing(("frhsic", "frem-loop", "frem-32"), synchronized_clock, epochs=5, warm_up=1),
}


@dataclass(frozen=True)
class Samples:
    """Numbers of columns and rows of the Gaussian model, and how often each is drawn."""

    dimensions: tuple[int, ...]
    sizes: tuple[int, ...]
    repeats: int


ERRORS = {"corrected": Samples((1, 2, 3, 5, 10, 20), (250, 500, 1000, 2000), 20)}

STATISTICS = ("hsic", "hsic-unbiased", "eipm")


def time_units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return device, methods and numbers of columns."""
    timing, device = TIMES[protocol.name], _arrays.resolve_device(options.device).type
    dimensions = DIMENSIONS if options.chosen(("adult",)) else ()
    return {(device, method, d): timing.count for d in dimensions for method in timing.methods}


def times(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the seconds of an epoch of each method and number of sensitive columns."""
    device = _arrays.resolve_device(options.device)
    data = loaded("adult", protocol).sample(ROWS, FIRST_SEED)
    x, y, _ = _whole(data)
    for _, method, d in missing:
        columns, s = COLUMNS[protocol.name](data, d)
        rows = (x.to(device), y.to(device), s.to(device))
        found = TIMES[protocol.name].records(partial(_loop, method, rows), device)
        yield [{"columns": columns, **record} for record in found]


def _loop(method: str, rows: tuple[Tensor, Tensor, Tensor]) -> Loop:
    torch.manual_seed(FIRST_SEED)
    encoder, head = mlp_encoder(rows[0].shape[1], 50, 50), affine_head(50, 1)
    return Loop.start(encoder, head, _penalty(method), WEIGHT, rows)


def _penalty(method: str) -> Penalty:
    makers: dict[str, Callable[[], Penalty]] = {
        "frhsic": lambda: HSIC(
            Gaussian(1.0),
            scale_z=1.0,
            scale_s=1.0,
            head_weight=0.0,
            representation_weight=1.0,
            attributes="isotropic",
        ),
        "frem-loop": lambda: LoopedEIPM(scale_z=1.0, gamma=0.5, anchors=32),
        "frem-32": EIPM,
    }
    return makers[method]()


def _whole(data: Dataset) -> tuple[Tensor, Tensor, Tensor]:
    """Return all rows, scaled by all of them, as this experiment was."""
    split = data.split(FIRST_SEED, scaling="all")
    x, y, s = (torch.cat([a, b]) for a, b in zip(split.train, split.test))
    return x, y, s


def _published_columns(data: Dataset, d: int) -> tuple[list[str], Tensor]:
    x, _, _ = _whole(data)
    names = [str(data.X.columns[position]) for position in PUBLISHED_POSITIONS[:d]]
    return _with_noise(names, x[:, list(PUBLISHED_POSITIONS[:d])], d)


def _named_columns(data: Dataset, d: int) -> tuple[list[str], Tensor]:
    names = list(NAMED_COLUMNS[:d])
    order = data.split(FIRST_SEED)
    table = pd.concat([pd.DataFrame(data.s), data.X], axis=1)[names].to_numpy(np.float64)
    values = torch.from_numpy(table[np.concatenate([order.train.rows, order.test.rows])]).to(torch.float32)
    low, high = values.amin(0), values.amax(0)
    return _with_noise(names, (values - low) / (high - low), d)


def _with_noise(names: list[str], values: Tensor, d: int) -> tuple[list[str], Tensor]:
    if d > len(names):
        noise = torch.randn(len(values), 1, generator=torch.Generator().manual_seed(FIRST_SEED))
        names, values = [*names, "noise"], torch.cat([values, noise], dim=1)
    return names, values


def true_hsic(dim_s: int) -> float:
    r"""HSIC of the Gaussian model, bandwidth 1 on Z and :math:`\sqrt q` on the q columns of S.

    The first column has correlation 1/2 with Z, the others are noise: the isotropic kernel is a product, and each
    column of noise brings the factor :math:`E\,k(S, S') = (\sigma^2/(\sigma^2 + 2))^{1/2}`,

    .. math:: \mathrm{HSIC}_q = \mathrm{HSIC}_1(\sigma = \sqrt q)\; \bigl(q / (q + 2)\bigr)^{(q - 1)/2}.

    Examples
    --------
    >>> round(true_hsic(1), 7)
    0.0107633
    """
    first = gaussian_pair(2, correlation=CORRELATION, random_state=0).hsic(1.0, math.sqrt(dim_s))
    return first * float((dim_s / (dim_s + 2)) ** ((dim_s - 1) / 2))


def error_units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return numbers of columns and rows."""
    samples = ERRORS[protocol.name]
    count = options.limited(samples.repeats) * len(STATISTICS)
    return {(d, n): count for d in samples.dimensions for n in samples.sizes}


def errors(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    r"""Yield errors of HSIC and EIPM on the Gaussian model for each number of columns and rows.

    Given S only its first column tells about Z, so the true EIPM is the same for every number of columns. Bandwidths: 1
    on Z; on S :math:`\sqrt q` for HSIC, and for EIPM Scott's rule :math:`n^{-1/(4 + q)}`.
    """
    repeats = options.limited(ERRORS[protocol.name].repeats)
    for d, n in missing:
        yield [record for repeat in range(repeats) for record in _estimates(d, n, repeat)]


def _estimates(d: int, n: int, repeat: int) -> list[Record]:
    pair = gaussian_pair(n, correlation=CORRELATION, random_state=repeat)
    noise = torch.from_numpy(np.random.default_rng((repeat, d)).standard_normal((n, d - 1)))
    s = torch.cat([pair.s[:, None], noise], dim=1)
    kernel_z, kernel_s = Gaussian(1.0), Gaussian(math.sqrt(d))
    truths = {"hsic": true_hsic(d), "hsic-unbiased": true_hsic(d), "eipm": pair.eipm()}
    estimates = {
        "hsic": float(hsic(pair.z, s, kernel_z, kernel_s)),
        "hsic-unbiased": float(hsic_unbiased(pair.z, s, kernel_z, kernel_s)),
        "eipm": float(eipm(pair.z, s, kernel_z)),
    }
    return [
        {
            "statistic": name,
            "repeat": repeat,
            "estimate": estimate,
            "truth": truths[name],
            "error": abs(estimate - truths[name]),
            "relative_error": abs(estimate - truths[name]) / truths[name],
        }
        for name, estimate in estimates.items()
    ]


COLUMNS = {"published": _published_columns, "corrected": _named_columns}

TRAIN = Computation(NAME, "time", ("device", "method", "dim_s"), time_units, times, TIMES)

MEASURE = Computation(NAME, "error", ("dim_s", "n"), error_units, errors, ERRORS)
