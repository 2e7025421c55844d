"""Paired comparison over the splits of the sweep, which the paper leaves for later."""

from __future__ import annotations

from frhsic_paper.comparisons import adjusted_together, compared_table, paired_areas
from frhsic_paper.frontiers import swept
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import CORRECTED
from frhsic_paper.results import Results
from frhsic_paper.study import Study
from frhsic_paper.sweep import SWEEP
from frhsic_paper.table import Listed


def tables(results: Results) -> list[Listed]:
    """Areas of all methods, with tests of FRHSIC and of this library's penalty against each."""
    records = results.of("tradeoff", CORRECTED.name)
    present = [m for m in ("frhsic", "hsic") if any(r["method"] == m for r in records)]
    families = [{d: paired_areas(records, d, CORRECTED.gdp, first) for d in swept(records)} for first in present]
    return [
        Listed(f"nAUP over splits; p of {method_name(first)} against each method", compared_table(compared, "nAUP"))
        for first, compared in zip(present, adjusted_together(families))
    ]


STUDY = Study(
    name="significance",
    about="paired comparison over 20 splits (the sweep of tradeoff, longer)",
    title="Paired comparison over splits",
    words="""
        What the paper leaves for later: nAUP of each split's own envelope on one shared scale, means with standard
        errors, and the first row tested against the others by the corrected resampled t-test of Nadeau and Bengio,
        which knows that splits share rows, with Holm's adjustment for all tests of this section. “worse” and “better”
        (p < .05) are said of the method of the row; otherwise “=” where the 95 % interval rules out that the first is
        behind by more than .02, “?” where it cannot be told. The test rows had been seen in three generations of the
        default.
    """,
    train=SWEEP,
    tables=tables,
)
