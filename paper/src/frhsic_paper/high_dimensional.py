r"""Several sensitive columns: what they cost in time, and what they cost in error.

Records (`high-dimensional-{protocol}.jsonl`) of two kinds:

``experiment``  "high-dimensional"
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
from collections.abc import Callable

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
from frhsic_paper import records
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.sweep import FIRST_SEED, loaded
from frhsic_paper.timing import Loop, LoopedEIPM, device_name, one_thread, plain_clock, synchronised_clock

__all__ = ["NAME", "run_error", "run_time", "true_hsic"]

NAME = "high-dimensional"

DIMENSIONS = (1, 2, 3, 4, 5)

ROWS, WEIGHT, PUBLISHED_EPOCHS, CORRECTED_EPOCHS = 2000, 10.0, 30, 5

PUBLISHED_POSITIONS = (0, 3, 4, 5)
"""Columns of X taken for sensitive ones: meant were age, capital gain and loss, and hours, but age is not in X."""

NAMED_COLUMNS = ("age", "capital-gain", "capital-loss", "hours-per-week")
"""The columns that the text names; a fifth is noise."""

CORRELATION = 0.5

ERROR_DIMENSIONS, ERROR_SIZES, ERROR_REPEATS = (1, 2, 3, 5, 10, 20), (250, 500, 1000, 2000), 20


def run_time(protocol: Protocol, options: Options) -> list[Record]:
    """Time the epochs that are not in the records yet, on the device of the options."""
    path, device = options.file(NAME, protocol), _arrays.resolve_device(options.device)
    published = protocol.name == "published"
    methods = ("frhsic", "frem-loop") if published else ("frhsic", "frem-loop", "frem-32")
    units: list[Unit] = [("time", device.type, method, d) for d in DIMENSIONS for method in methods]
    sizes = dict.fromkeys(units, 1 if published else CORRECTED_EPOCHS)
    missing = records.resume(path, units, _unit, sizes)
    if missing and (options.datasets is None or "adult" in options.datasets):
        data = loaded("adult", protocol).sample(ROWS, FIRST_SEED)
        x, y, _ = _whole(data)
        for _, _, method, d in missing:
            columns, s = (_published_columns if published else _named_columns)(data, d)
            torch.manual_seed(FIRST_SEED)
            encoder, head = mlp_encoder(x.shape[1], 50, 50), affine_head(50, 1)
            rows = (x.to(device), y.to(device), s.to(device))
            with one_thread(device):
                loop = Loop.start(encoder, head, _penalty(method), WEIGHT, rows)
                if published:  # all epochs in one, the first among them
                    seconds = [float(np.mean(loop.epochs(PUBLISHED_EPOCHS, plain_clock(device))))]
                else:
                    seconds = loop.epochs(1 + CORRECTED_EPOCHS, synchronised_clock(device))[1:]
            shared = {
                "experiment": NAME,
                "protocol": protocol.name,
                "part": "time",
                "dim_s": d,
                "method": method,
                "columns": columns,
                "device": device.type,
                "device_name": device_name(device),
            }
            records.append(path, [{**shared, "repeat": r, "seconds": value} for r, value in enumerate(seconds)])
            options.say(f"{protocol.name} {NAME} {device.type} {method} dim S={d}: {min(seconds):.4f} s an epoch")
    return records.read(path)


def _penalty(method: str) -> Penalty:
    makers: dict[str, Callable[[], Penalty]] = {
        "frhsic": lambda: HSIC(
            Gaussian(1.0),
            scale_z=1.0,
            scale_s=1.0,
            head_weight=0.0,
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


def run_error(
    protocol: Protocol,
    options: Options,
    dimensions: tuple[int, ...] = ERROR_DIMENSIONS,
    sizes: tuple[int, ...] = ERROR_SIZES,
) -> list[Record]:
    r"""Estimate HSIC and EIPM of the Gaussian model over the number of columns of S, at fixed n; "corrected" only.

    Given S only its first column speaks of Z, so the true EIPM is the same for every number of columns. Bandwidths: 1
    on Z; on S :math:`\sqrt q` for HSIC, and for EIPM Scott's rule :math:`n^{-1/(4 + q)}`.
    """
    if protocol.name == "published":
        return []
    path = options.file(NAME, protocol)
    units: list[Unit] = [("error", d, n) for d in dimensions for n in sizes]
    statistics = 3
    repeats = ERROR_REPEATS if options.repeats is None else min(options.repeats, ERROR_REPEATS)
    for unit in records.resume(path, units, _unit, dict.fromkeys(units, repeats * statistics)):
        _, d, n = unit
        found = [record for repeat in range(repeats) for record in _estimates(protocol, d, n, repeat)]
        records.append(path, found)
        options.say(f"{protocol.name} {NAME} dim S={d} n={n}: {repeats} samples")
    return records.read(path)


def _estimates(protocol: Protocol, d: int, n: int, repeat: int) -> list[Record]:
    pair = gaussian_pair(n, correlation=CORRELATION, random_state=repeat)
    noise = torch.from_numpy(np.random.default_rng((repeat, d)).standard_normal((n, d - 1)))
    s = torch.cat([pair.s[:, None], noise], dim=1)
    kernel_z, kernel_s = Gaussian(1.0), Gaussian(math.sqrt(d))
    truths = {"hsic": true_hsic(d), "hsic-unbiased": true_hsic(d), "eipm": pair.eipm()}
    found = {
        "hsic": float(hsic(pair.z, s, kernel_z, kernel_s)),
        "hsic-unbiased": float(hsic_unbiased(pair.z, s, kernel_z, kernel_s)),
        "eipm": float(eipm(pair.z, s, kernel_z)),
    }
    return [
        {
            "experiment": NAME,
            "protocol": protocol.name,
            "part": "error",
            "dim_s": d,
            "statistic": name,
            "n": n,
            "repeat": repeat,
            "estimate": estimate,
            "truth": truths[name],
            "error": abs(estimate - truths[name]),
            "relative_error": abs(estimate - truths[name]) / truths[name],
        }
        for name, estimate in found.items()
    ]


def _unit(record: Record) -> Unit:
    if record["part"] == "time":
        return ("time", record["device"], record["method"], record["dim_s"])
    return ("error", record["dim_s"], record["n"])
