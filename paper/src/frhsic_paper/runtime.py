r"""Seconds of one epoch of each penalty, over the number of rows.

Records (`runtime-{protocol}.jsonl`), one for each device, method, n and repeat:

``experiment``   "runtime"
``protocol``     "published": first epoch of a fresh model, no warm-up, no synchronisation, FREM as a loop over the rows
                 of a batch. "corrected": epochs after one of warm-up, device synchronised
``device``       "cpu" or "cuda"; ``device_name`` in words, ``threads`` of the processor
``method``       "frhsic", "reg-gdp", "none", "hsic", and of FREM "frem-loop" (published: all rows, one by one),
                 "frem-32" (32 anchors, vectorised), "frem-all" (all rows, vectorised)
``n``, ``repeat``, ``seconds``   of one epoch, batches of 256
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from frhsic import _arrays
from frhsic.datasets.synthetic import synthetic_task
from frhsic.fleet import affine_head, mlp_encoder
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic.penalties import EIPM, GDP, HSIC, NoPenalty, Penalty
from frhsic_paper import records
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.timing import Loop, LoopedEIPM, device_name, one_thread, plain_clock, synchronised_clock

__all__ = ["NAME", "SIZES", "run"]

NAME = "runtime"

SIZES = (500, 1000, 2000, 5000, 10000, 20000)

SEED = 42

Z_DIM = 8

BANDWIDTH_ROWS = 500
"""Rows of the untrained representation that the published bandwidths were measured on."""

PUBLISHED_REPEATS, CORRECTED_EPOCHS = 3, 5

PUBLISHED_METHODS = ("frhsic", "frem-loop", "reg-gdp")

CORRECTED_METHODS = ("frhsic", "frem-32", "frem-all", "reg-gdp", "hsic", "none")


def run(protocol: Protocol, options: Options, sizes: tuple[int, ...] = SIZES) -> list[Record]:
    """Time what is not in the records yet, on the device of the options."""
    path, device = options.file(NAME, protocol), _arrays.resolve_device(options.device)
    published = protocol.name == "published"
    methods = PUBLISHED_METHODS if published else CORRECTED_METHODS
    units: list[Unit] = [(device.type, method, n) for method in methods for n in sizes]
    repeats = PUBLISHED_REPEATS if published else CORRECTED_EPOCHS
    for unit in records.resume(path, units, _unit, dict.fromkeys(units, repeats)):
        _, method, n = unit
        with one_thread(device):
            seconds = (_first_epochs if published else _later_epochs)(method, n, device)
        shared = {
            "experiment": NAME,
            "protocol": protocol.name,
            "device": device.type,
            "device_name": device_name(device),
            "threads": 1,
            "method": method,
            "n": n,
        }
        records.append(path, [{**shared, "repeat": r, "seconds": value} for r, value in enumerate(seconds)])
        options.say(f"{protocol.name} {NAME} {device.type} {method} n={n}: {min(seconds):.4f} s an epoch")
    return records.read(path)


def _first_epochs(method: str, n: int, device: torch.device) -> list[float]:
    """Time the first epoch of fresh models, without warm-up or synchronisation, as published."""
    clock = plain_clock(device)
    return [_loop(method, n, device).epochs(1, clock)[0] for _ in range(PUBLISHED_REPEATS)]


def _later_epochs(method: str, n: int, device: torch.device) -> list[float]:
    """Time epochs after one of warm-up, when the device has done its work."""
    return _loop(method, n, device).epochs(1 + CORRECTED_EPOCHS, synchronised_clock(device))[1:]


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
        "frhsic": lambda: HSIC(Gaussian(1.0), scale_z=sigma_z, scale_s=sigma_s, head_weight=0.0),
        "frem-loop": lambda: LoopedEIPM(scale_z=sigma_z, gamma=sigma_s),
        "frem-32": lambda: EIPM(scale_z=sigma_z, gamma=sigma_s),
        "frem-all": lambda: EIPM(scale_z=sigma_z, gamma=sigma_s, anchors=None),
        "reg-gdp": GDP,
        "hsic": HSIC,
        "none": NoPenalty,
    }
    return makers[method]()


def _unit(record: Record) -> Unit:
    return (record["device"], record["method"], record["n"])
