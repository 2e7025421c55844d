"""Anchors of FREM, bandwidths of FREM and Reg-GDP: the paper names these sweeps as next steps."""

from __future__ import annotations

from functools import partial

from frhsic.penalties import GDP
from frhsic_paper.baselines import ScaledEIPM
from frhsic_paper.frontiers import tables_of_variants
from frhsic_paper.grid import Grid, Method, held_out
from frhsic_paper.protocol import PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

REPEATS = 3


def grid(protocol: Protocol) -> Grid:
    """Return the grid of FREM and Reg-GDP, with one setting changed at a time."""
    methods = (
        *(Method(f"FREM, {a} anchors", partial(ScaledEIPM, anchors=a)) for a in (8, 32, 128, 256)),
        *(Method(f"FREM, γ = {g:g}", partial(ScaledEIPM, gamma=g)) for g in (0.1, 0.25, 1.0)),
        *(Method(f"FREM, σ_Z = {z:g}", partial(ScaledEIPM, scale_z=z)) for z in (0.5, 2.0)),
        *(Method(f"Reg-GDP, h = {h:g}", partial(GDP, bandwidth=h)) for h in (0.05, 0.1, 0.2, 0.4)),
    )
    return Grid(
        "baseline-settings",
        ("crime", "compas"),
        methods,
        PAPER_WEIGHTS,
        REPEATS,
        held_out(protocol),
    )


STUDY = Study(
    name="baseline-settings",
    about="the paper's next steps: anchors of FREM, bandwidths of FREM and Reg-GDP",
    title="Anchors and bandwidths of FREM and Reg-GDP",
    words="""
        Crime and COMPAS, nine weights, three splits. The paper has 32 anchors, γ = 0.5, σ_Z = 1 and
        h = 0.2, and names a sweep of each as its next step. One setting is changed at a time; the
        rows with 32 anchors and with h = 0.2 are the paper's.
    """,
    train=(Training(grid),),
    tables=tables_of_variants("baseline-settings"),
    published=False,
)
