"""Paired comparison over the splits of the sweep, which the paper leaves for later."""

from __future__ import annotations

from frhsic_paper.comparisons import compared_table, paired_areas
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
    listed = []
    for first in (m for m in ("frhsic", "hsic") if any(r["method"] == m for r in records)):
        compared = {dataset: paired_areas(records, dataset, CORRECTED.gdp, first) for dataset in swept(records)}
        heading = f"nAUP over splits; p of {method_name(first)} against each method"
        listed.append(Listed(heading, compared_table(compared, "nAUP")))
    return listed


STUDY = Study(
    name="significance",
    about="paired comparison over 20 splits (the sweep of tradeoff, longer)",
    title="Paired comparison over splits",
    words="""
        What the paper leaves for later: nAUP of each split's own envelope on one shared scale, means with standard
        errors, two-sided paired Wilcoxon tests of the first row against the others. “worse” and “better” (p < .05) are
        said of the method of the row; otherwise “=” where the first is at least as good within one standard error of
        the difference, “–” where it is behind by more.
    """,
    train=SWEEP,
    tables=tables,
)
