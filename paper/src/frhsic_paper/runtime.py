r"""Seconds of one epoch of each penalty, over the number of rows.

Part "times" of the records, one for each device, method, n and repeat:

``protocol``     "published": first epoch of a fresh model, no warm-up, no synchronization, FREM as a loop over the rows
                 of a batch. "corrected": epochs after one of warm-up, device synchronized
``device``       "cpu" or "cuda"; ``device_name`` in words, ``threads`` of the processor
``method``       "frhsic", "reg-gdp", "none", "hsic", and of FREM "frem-loop" (published: all rows, one by one),
                 "frem-32" (32 anchors, vectorized), "frem-all" (all rows, vectorized)
``n``, ``repeat``, ``seconds``   of one epoch, batches of 256
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.datasets.synthetic import synthetic_task
from frhsic.fleet import affine_head, mlp_encoder
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic.penalties import EIPM, GDP, HSIC, NoPenalty, Penalty
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.steps import Computation
from frhsic_paper.timing import Loop, LoopedEIPM, Timing, plain_clock, synchronized_clock

__all__ = ["TRAIN"]

SIZES = (500, 1000, 2000, 5000, 10000, 20000)

SEED = 42

Z_DIM = 8

BANDWIDTH_ROWS = 500
"""Rows of the untrained representation that the published bandwidths were measured on."""

SETTINGS = {
    "published": Timing(("frhsic", "frem-loop", "reg-gdp"), plain_clock, models=3),
    "corrected": Timing(
        ("frhsic", "frem-32", "frem-all", "reg-gdp", "hsic", "none"), synchronized_clock, epochs=5, warm_up=1
    ),
}


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return device, methods and numbers of rows."""
    timing, device = SETTINGS[protocol.name], _arrays.resolve_device(options.device).type
    return {(device, method, n): timing.count for method in timing.methods for n in SIZES}


def times(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the seconds of an epoch of each method and number of rows."""
    device = _arrays.resolve_device(options.device)
    for _, method, n in missing:
        seconds = SETTINGS[protocol.name].records(partial(_loop, method, n, device), device)
        yield [{"threads": 1, **record} for record in seconds]


TRAIN = Computation("runtime", "times", ("device", "method", "n"), units, times, SETTINGS)


def _loop(method: str, n: int, device: torch.device) -> Loop:
    task = synthetic_task(n, random_state=SEED, dtype=torch.float32)
    x, y, s = (values.to(device) for values in (task.x, task.y, task.s))
    torch.manual_seed(SEED)
    encoder, head = mlp_encoder(2, 50, Z_DIM).to(device), affine_head(Z_DIM, 1)
    with torch.no_grad():
        z = encoder(x[:BANDWIDTH_ROWS])
    return Loop.start(encoder, head, _penalty(method, z, s[:BANDWIDTH_ROWS]), 1.0, (x, y, s))


def _penalty(method: str, z: Tensor, s: Tensor) -> Penalty:
    """Return a penalty at the median bandwidths of some rows, which FREM shares."""
    sigma_z, sigma_s = median_bandwidth(z, name="z"), median_bandwidth(s, name="s")
    makers: dict[str, Callable[[], Penalty]] = {
        "frhsic": lambda: HSIC(
            Gaussian(1.0), scale_z=sigma_z, scale_s=sigma_s, head_weight=0.0, representation_weight=1.0
        ),
        "frem-loop": lambda: LoopedEIPM(scale_z=sigma_z, gamma=sigma_s),
        "frem-32": lambda: EIPM(scale_z=sigma_z, gamma=sigma_s),
        "frem-all": lambda: EIPM(scale_z=sigma_z, gamma=sigma_s, anchors=None),
        "reg-gdp": GDP,
        "hsic": HSIC,
        "none": NoPenalty,
    }
    return makers[method]()
