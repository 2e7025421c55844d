"""FREM and Reg-GDP with other bandwidths."""

from __future__ import annotations

from frhsic_paper.catalogue import GRIDS
from frhsic_paper.comparisons import tables_of_variants
from frhsic_paper.steps import Training
from frhsic_paper.study import Study

__all__ = ["STUDY"]

STUDY = Study(
    name="bandwidth-sensitivity",
    about="FREM, Reg-GDP: bandwidths",
    title="Bandwidths of FREM and Reg-GDP",
    words="What the paper leaves for later; the published values are γ = 0.5, σ_Z = 1 and h = 0.2.",
    train=tuple(map(Training, GRIDS["bandwidth-sensitivity"])),
    tables=tables_of_variants("bandwidth-sensitivity"),
    published=False,
)
