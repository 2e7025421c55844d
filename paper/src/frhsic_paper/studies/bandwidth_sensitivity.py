"""FREM and Reg-GDP with other bandwidths."""

from __future__ import annotations

from functools import partial

from frhsic.penalties import EIPM, GDP
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.grid import Grid, Method, held_out
from frhsic_paper.protocol import PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training
from frhsic_paper.study import Study


def grid(protocol: Protocol) -> Grid:
    """Return FREM and Reg-GDP with each bandwidth."""
    methods = (
        *(Method(f"FREM γ={g}", partial(EIPM, gamma=g)) for g in (0.1, 0.25, 0.5, 1.0)),
        *(Method(f"FREM σ_Z={z}", partial(EIPM, scale_z=z)) for z in (0.5, 2.0)),
        Method("FREM σ_Z median", partial(EIPM, scale_z="published")),
        *(Method(f"Reg-GDP h={h}", partial(GDP, bandwidth=h)) for h in (0.05, 0.1, 0.2, 0.4)),
    )
    return Grid("bandwidth-sensitivity", ("crime", "compas"), methods, PAPER_WEIGHTS, 5, held_out(protocol))


STUDY = Study(
    name="bandwidth-sensitivity",
    about="FREM, Reg-GDP: bandwidths",
    title="Bandwidths of FREM and Reg-GDP",
    words="What the paper leaves for later; the published values are γ = 0.5, σ_Z = 1 and h = 0.2.",
    train=(Training(grid),),
    tables=tables_of_variants("bandwidth-sensitivity"),
    published=False,
)
