r"""Seconds of a full batch as a function of its number of rows: O(n²) for HSIC, O(n³) for FREM.

Part "times" of the records (protocol "corrected"), one for each device, method, n and repeat:
``seconds`` of a value and its gradient. Methods: "frhsic", "frem-all" (every row an anchor, as
products of matrices), "frem-loop" (one anchor after another, as the published code has it).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from matplotlib.figure import Figure

from frhsic_paper.claim import Case, case_rule, claim
from frhsic_paper.options import Options
from frhsic_paper.plot import finish, page_style, panels, protocol_figures
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit, hardware, matching
from frhsic_paper.steps import Computation
from frhsic_paper.studies.runtime import (
    RUNTIME_NAMES,
    draw_seconds,
    fastest,
    timed_devices,
    timed_penalty,
)
from frhsic_paper.study import Study
from frhsic_paper.synthetic import synthetic_task
from frhsic_paper.table import Cell, Column, Table, protocol_tables
from frhsic_paper.timing import devices, one_thread, synchronized_clock

SIZES = {
    "frhsic": (375, 750, 1500, 3000),
    "frem-all": (375, 750, 1500, 3000),
    "frem-loop": (125, 250, 500),
}

Z_DIM, SEED, REPEATS = 8, 42, 5

ORDERS = {"frhsic": 2.0, "frem-all": 3.0}
"""Exponents of the claim."""

NEAR = 0.3
"""A fitted exponent agrees with the claimed one up to this difference."""


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the devices, the methods and the numbers of rows."""
    repeats = options.limit_repeats(REPEATS)
    return {
        (device, method, n): repeats
        for device in devices(options.device)
        for method in SIZES
        for n in SIZES[method]
    }


def times(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the time in seconds of each evaluation of a value and its gradient, after one untimed
    evaluation.
    """
    for name, method, n in missing:
        device = torch.device(name)
        clock, seconds = synchronized_clock(device), []
        s = synthetic_task(n, random_state=SEED, dtype=torch.float32).s[:, None].to(device)
        z = (
            torch.randn(n, Z_DIM, generator=torch.Generator().manual_seed(SEED))
            .to(device)
            .requires_grad_()
        )
        penalty = timed_penalty(method, 1.0, 1.0)
        penalty.prepare(s, torch.Generator(device=device).manual_seed(SEED))
        with one_thread(device):
            for _ in range(1 + options.limit_repeats(REPEATS)):
                started = clock()
                torch.autograd.grad(penalty.to(device)(z, s), z)
                seconds.append(clock() - started)
        yield [
            {"hardware": hardware(device), "repeat": repeat, "seconds": value}
            for repeat, value in enumerate(seconds[1:])
        ]


def order(records: Sequence[Record], method: str, device: str) -> float | None:
    """Return the slope of log seconds on log n over the three largest n; None if kernel launches
    dominate.
    """
    sizes = sorted({r["n"] for r in matching(records, method=method, device=device)})[-3:]
    seconds = [fastest(records, device=device, method=method, n=n) or 0.0 for n in sizes]
    if len(sizes) < 3 or seconds[-1] < 2 * seconds[0]:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])


def order_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of the seconds by method and number of rows, and the fitted exponent."""
    sizes = sorted({r["n"] for r in records})
    rows: list[list[Cell]] = []
    for device in timed_devices(records):
        for method in dict.fromkeys(r["method"] for r in records):
            seconds = [fastest(records, device=device, method=method, n=n) for n in sizes]
            rows.append(
                [device.upper(), RUNTIME_NAMES[method], *seconds, order(records, method, device)]
            )
    headings = [Column(f"seconds, n = {n:,}", None) for n in sizes]
    return Table.from_rows(
        ["device", "method", *headings, Column("exponent, three largest n", 2)], rows
    )


@page_style()
def draw(records: Sequence[Record], protocol: Protocol) -> Figure:
    """Draw the seconds of a full batch against its number of rows, on a CPU; on a GPU, kernel
    launches dominate for these sizes.
    """
    figure, axes = panels(1, 2.6)
    own = matching(records, device="cpu")
    draw_seconds(axes[0], own, "rows of the batch", "seconds of a full batch")
    finish(figure, axes)
    return figure


@claim(
    "orders",
    "Section 5.5",
    "A full batch costs O(n²) with HSIC and O(n³) with FREM.",
    reason=f"""
        Exponent fitted to the three largest n, within {NEAR:g} of 2 and of 3. Each is a case if the
        largest n takes at least twice the time of the smallest of the three. FREM's n³ is one
        product of two n × n matrices, which a processor computes fastest of all; and a factor of
        rank r gives the same number in O(n² r), as the study of convergence computes it.
    """,
    published=False,
)
@case_rule("scaling")
def _orders(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    for device in timed_devices(records):
        for method in ORDERS:
            value = order(records, method, device)
            if value is not None:
                text = f"{device.upper()} {RUNTIME_NAMES[method]} n^{value:.2f}"
                yield abs(value - ORDERS[method]) <= NEAR, text


STUDY = Study(
    name="scaling",
    about="O(n²) against O(n³): seconds of a full batch",
    title="Seconds of a full batch",
    words="""
        Value and gradient of one penalty on n rows, 8 columns of Z, the fastest of five repeats
        after a warm-up. The paper refers to an analysis in its appendix, which is missing. On a
        GPU, launching kernels takes most of the time at these sizes: the GPU is in the table, not
        in the figure or the verdict.
    """,
    train=(
        Computation(
            "scaling",
            "times",
            ("device", "method", "n"),
            units,
            times,
            {"corrected": (SIZES, REPEATS)},
        ),
    ),
    tables=protocol_tables("scaling", "Seconds, fastest repeat", order_table),
    figures=protocol_figures("scaling", "Seconds of a full batch against its rows", draw, None),
    claims=(_orders,),
    published=False,
)
