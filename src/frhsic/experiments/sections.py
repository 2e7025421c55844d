"""Sections of the document: which tables and figures belong to an experiment, as data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from frhsic.experiments.figures import sweeps as draw
from frhsic.experiments.figures import theory as plot
from frhsic.experiments.printed import DATASET_NAMES
from frhsic.experiments.protocol import CORRECTED, PROTOCOLS, PUBLISHED, Protocol
from frhsic.experiments.records import Record
from frhsic.experiments.results import Results
from frhsic.experiments.tables import Table, appendix, comparisons, theory
from frhsic.experiments.tables import agreement as agree
from frhsic.experiments.tables.frontiers import (
    matched_beside_printed,
    matched_table,
    metrics_table,
    pareto_summary,
    shared_repeats,
    swept,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["SECTIONS", "Drawn", "Listed", "Section"]

NAMES = {"published": "published protocol", "corrected": "corrected protocol"}


@dataclass(frozen=True)
class Listed:
    """A table under a heading; `folded` puts it behind a line that the reader opens."""

    heading: str
    table: Table
    folded: bool = False


@dataclass(frozen=True)
class Drawn:
    """A figure, the name of its file and what it shows."""

    name: str
    caption: str
    figure: Figure


@dataclass(frozen=True)
class Section:
    """One part of the document.

    Attributes
    ----------
    experiment
        Claims of this experiment stand here.
    title, about
        Heading, and what was run.
    tables, figures
        From records; an experiment that was not run gives none.
    """

    experiment: str
    title: str
    about: str
    tables: Callable[[Results], list[Listed]]
    figures: Callable[[Results], list[Drawn]]


def _each(
    results: Results,
    experiment: str,
    heading: str,
    make: Callable[[Sequence[Record], Protocol], Table],
    *,
    folded: bool = False,
) -> list[Listed]:
    return [
        Listed(f"{heading}, {NAMES[name]}", make(results.of(experiment, name), protocol), folded)
        for name, protocol in PROTOCOLS.items()
        if results.of(experiment, name)
    ]


def _drawn(
    results: Results, experiment: str, name: str, caption: str, make: Callable[[Sequence[Record], Protocol], Figure]
) -> list[Drawn]:
    return [
        Drawn(f"{name}-{protocol.name}", f"{caption}, {NAMES[key]}", make(results.of(experiment, key), protocol))
        for key, protocol in PROTOCOLS.items()
        if results.of(experiment, key)
    ]


def _nothing(results: Results) -> list[Drawn]:
    return []


def _tradeoff_tables(results: Results) -> list[Listed]:
    listed = []
    if results.of("tradeoff", "published"):
        table = matched_beside_printed(results.of("tradeoff", "published"), PUBLISHED)
        listed.append(Listed("Matched performance beside the printed table, published protocol", table))
    if results.of("tradeoff", "corrected"):
        table = matched_table(results.of("tradeoff", "corrected"), CORRECTED)
        listed.append(Listed("Matched performance, corrected protocol", table))
    listed += _each(results, "tradeoff", "Pareto summary (performance, GDP)", pareto_summary)
    for dataset in swept(results.of("tradeoff", "corrected")):
        table = metrics_table(results.of("tradeoff", "corrected"), dataset)
        listed.append(
            Listed(f"{DATASET_NAMES[dataset]} under every convention of GDP, corrected protocol", table, True)
        )
    return listed


def _tradeoff_figures(results: Results) -> list[Drawn]:
    figures = _drawn(results, "tradeoff", "pareto", "Frontiers on the classification datasets", draw.pareto)
    for name, protocol in PROTOCOLS.items():
        records = results.of("tradeoff", name)
        if "crime" in swept(records):
            figure = draw.pareto(records, protocol, regression=True)
            figures.append(Drawn(f"pareto-crime-{name}", f"Frontier on Crime, {NAMES[name]}", figure))
    corrected = results.of("tradeoff", "corrected")
    if corrected:
        figure = draw.pareto(corrected, CORRECTED, gdp="gdp_standardized")
        figures.append(
            Drawn(
                "pareto-scale-free", "The same under GDP ÷ standard deviation of the scores, corrected protocol", figure
            )
        )
    return figures


def _agreement_tables(results: Results) -> list[Listed]:
    records = results.of("tradeoff", "published")
    if not records:
        return []
    cells = agree.agreement(records)
    counted = [c for c in cells if c.dataset not in agree.LISTED]
    inside = sum(c.within for c in counted)
    heading = f"{inside} of {len(counted)} counted cells agree ({agree.share(cells):.1%})"
    return [
        Listed(heading, agree.agreement_table(cells)),
        Listed("Cells that do not agree, each with its cause", agree.disagreements_table(cells), True),
    ]


def _significance_tables(results: Results) -> list[Listed]:
    records = results.of("tradeoff", "corrected")
    if not records:
        return []
    listed = []
    for first, name in (("frhsic", "FRHSIC"), ("hsic", "HSIC with the head")):
        if all(r["method"] != first for r in records):
            continue
        compared = comparisons.area_rows(records, CORRECTED.gdp, first)
        listed.append(Listed(f"nAUP over splits; p of {name} against each method", comparisons.area_table(compared)))
    return listed


def _leak_tables(results: Results) -> list[Listed]:
    listed = []
    if results.of("leak", "corrected"):
        listed.append(
            Listed(
                "Heads trained afresh, probes and the worst head",
                comparisons.leak_table(shared_repeats(results.of("leak", "corrected"))),
            )
        )
    if results.of("tradeoff", "corrected"):
        table = comparisons.probe_table(results.of("tradeoff", "corrected"), CORRECTED.gdp)
        listed.append(Listed("Probes over all splits, at the weight that validation rows choose", table, True))
    return listed


def _leak_figures(results: Results) -> list[Drawn]:
    records = shared_repeats(results.of("leak", "corrected"))
    caption = "GDP of the deployed and of the worst fresh head against what a probe reads of S, at matched performance"
    return [Drawn("leak", caption, draw.leak(records))] if records else []


def _information_tables(results: Results) -> list[Listed]:
    listed = []
    for name, column in (("published", "mi_published"), ("corrected", "mi")):
        if results.of("mutual-information", name):
            table = theory.information_table(results.of("mutual-information", name), column)
            listed.append(Listed(f"Least mutual information within 1 % of performance, {NAMES[name]}", table))
    return listed


def _information_figures(results: Results) -> list[Drawn]:
    columns = {"published": "mi_published", "corrected": "mi"}
    return _drawn(
        results,
        "mutual-information",
        "mutual-information",
        "Mutual information of Z and S against performance",
        lambda records, protocol: draw.information(records, columns[protocol.name]),
    )


def _dimension_tables(results: Results) -> list[Listed]:
    listed = []
    for name, protocol in PROTOCOLS.items():
        found = {d: results.of(f"ablation-dimension-{d}", name) for d in appendix.DIMENSIONS}
        found = {d: records for d, records in found.items() if records}
        if found:
            table = appendix.dimension_table(dict(found), protocol)
            listed.append(Listed(f"Dimension of the representation, {NAMES[name]}", table))
    return listed


def _high_dimensional_tables(results: Results) -> list[Listed]:
    listed = _each(
        results, "high-dimensional", "Seconds of an epoch", lambda records, _: theory.dimension_time_table(records)
    )
    errors = [r for r in results.of("high-dimensional", "corrected") if r["part"] == "error"]
    if errors:
        listed.append(Listed("Relative errors of estimates, Gaussian model", theory.dimension_error_table(errors)))
    return listed


def _spectrum_figures(results: Results) -> list[Drawn]:
    found: dict[str, Sequence[Record]] = {name: results.of("bandwidth-scaling", name) for name in PROTOCOLS}
    if not any(found.values()):
        return []
    return [Drawn("bandwidth-scaling", "λ̂_S against the bandwidth, by both rules", plot.bandwidth_scaling(found))]


def _bound_rows(records: Sequence[Record], protocol: Protocol) -> Table:
    return theory.bound_table([r for r in records if r["method"] == "frhsic"])


def _variants(experiment: str) -> Callable[[Results], list[Listed]]:
    def tables(results: Results) -> list[Listed]:
        return _each(
            results,
            experiment,
            "nAUP of the variants",
            lambda records, protocol: comparisons.variants_table(records, protocol.gdp),
        )

    return tables


def _plain_tables(
    experiment: str, heading: str, make: Callable[[Sequence[Record], Protocol], Table], *, folded: bool = False
) -> Callable[[Results], list[Listed]]:
    return lambda results: _each(results, experiment, heading, make, folded=folded)


def _plain_figures(
    experiment: str, name: str, caption: str, make: Callable[[Sequence[Record], Protocol], Figure]
) -> Callable[[Results], list[Drawn]]:
    return lambda results: _drawn(results, experiment, name, caption, make)


SECTIONS: tuple[Section, ...] = (
    Section(
        "convergence",
        "Convergence of the estimators",
        "Z standard Gaussian, S = Z/2 + noise, n from 50 to 5,000, 20 repeats, bandwidths 1. Published: single "
        "precision, γ = 1, one "
        "draw of 20,000 rows for the truth. Corrected: double precision, exact truths, and a γ that shrinks as "
        "n^(−1/5).",
        _plain_tables("convergence", "Slopes", lambda records, _: theory.convergence_table(records)),
        _plain_figures(
            "convergence", "convergence", "Mean absolute error against n", lambda records, _: plot.convergence(records)
        ),
    ),
    Section(
        "agreement",
        "Agreement with the published sweep",
        "Every cell (mean over five splits of accuracy or error, and of GDP) of the published files on the nine "
        "shared weights, beside "
        "ours under the published protocol. A cell agrees when the two means are at most two combined standard "
        "deviations apart, with a "
        "floor of .002 on a performance's deviation and of 1 % of Unfair's GDP on a GDP's. ACS Income is another "
        "draw of the survey: "
        "listed, not counted.",
        _agreement_tables,
        _nothing,
    ),
    Section(
        "tradeoff",
        "Trade-offs on the five datasets",
        "Seven penalties of the paper and this library's own, nine weights each. Published: five splits, GDP of raw "
        "outputs on a uniform "
        "grid, the matched point chosen on rounded test means. Corrected: twenty splits, corrected data, GDP of "
        "probabilities averaged "
        "over the population, and in each split the weight chosen on validation rows. nAUP is normalised over the "
        "paper's six methods.",
        _tradeoff_tables,
        _tradeoff_figures,
    ),
    Section(
        "significance",
        "Paired comparison over splits",
        "What the paper leaves for later: nAUP of each split's own envelope on one shared scale, means with standard "
        "errors, two-sided paired Wilcoxon tests of the first row against the others. “worse” and “better” (p < .05) "
        "are "
        "said of the method of the row; otherwise “=” where the first is at least as good within one standard error "
        "of the "
        "difference, “–” where it is behind by more.",
        _significance_tables,
        _nothing,
    ),
    Section(
        "leak",
        "What is left of S in the representation",
        "Models that validation rows choose within 1 % of performance: GDP of the deployed head, of the worst of "
        "five heads trained afresh "
        "on the frozen representation, R² of probes for S on unseen rows, and the largest gap of any head of norm 1.",
        _leak_tables,
        _leak_figures,
    ),
    Section(
        "leaky-scaling",
        "Scales that see the test rows",
        "Crime and COMPAS, scales fitted on all rows, otherwise the same splits.",
        _variants("leaky-scaling"),
        _nothing,
    ),
    Section(
        "transfer",
        "Fresh heads on frozen representations",
        "Adult, Crime and COMPAS, λ = 10 and 100. Published: one split, GDP on logits for the two networks and on "
        "hard labels for forest "
        "and SVM. Corrected: probabilities for every head.",
        _plain_tables("transfer-heads", "GDP over heads", lambda records, _: appendix.transfer_table(records)),
        _plain_figures("transfer-heads", "transfer", "GDP of fresh heads", lambda records, _: draw.transfer(records)),
    ),
    Section(
        "mutual-information",
        "Mutual information of representation and attribute",
        "Nearest-neighbour estimates on test rows of the first splits of the sweep. They see the two to five leading "
        "principal components of Z alone: a low value does not say that S is gone, see the probes above.",
        _information_tables,
        _information_figures,
    ),
    Section(
        "runtime",
        "Seconds of an epoch",
        "The paper's synthetic task, batches of 256. Published: first epoch of a fresh model, FREM as a loop over "
        "the rows of a batch. "
        "Corrected: warm, synchronised, FREM on 32 and on all anchors as products of matrices.",
        _plain_tables("runtime", "Median seconds", lambda records, _: theory.runtime_table(records)),
        _plain_figures(
            "runtime", "runtime", "Seconds of an epoch against rows", lambda records, _: plot.runtime(records)
        ),
    ),
    Section(
        "synthetic",
        "Synthetic validation",
        "X₁ = S + noise, P(Y = 1) = sigmoid(X₁), 5,000 rows, three-layer encoder, 100 epochs.",
        _plain_tables("synthetic", "Accuracy, GDP and what a probe reads", appendix.synthetic_table, folded=True),
        _plain_figures("synthetic", "synthetic", "GDP, accuracy, HSIC and a probe for S", draw.synthetic),
    ),
    Section(
        "equal-opportunity",
        "Equal Opportunity",
        "HSIC on all rows (DP) or on those with Y = 1 (EO). Published: one split, other bandwidths for EO than for "
        "DP. Corrected: five "
        "splits, the same rule for both. The head's variant is the default penalty, here without weight decay.",
        _plain_tables("equal-opportunity", "Accuracy and GDP", appendix.equal_opportunity_table),
        _nothing,
    ),
    Section(
        "multi-attribute",
        "Two attributes",
        "Adult, age and hours. Published: Joint is one isotropic Gaussian. Corrected: a product of one Gaussian a "
        "column, five splits. The head's variant is the default penalty, here without weight decay.",
        _plain_tables("multi-attribute", "Accuracy and GDP by attribute", appendix.multi_attribute_table),
        _plain_figures("multi-attribute", "multi-attribute", "Frontiers for each attribute", draw.multi_attribute),
    ),
    Section(
        "bound",
        "The finite-sample bound",
        "FRHSIC on 1,500 rows of Adult and Crime, 300 test rows. Published: variance over the full sample against "
        "HSIC/λ̂_S, single "
        "precision. Corrected: the theorem's projected left side at several resolutions, double precision, and a "
        "tighter form.",
        _plain_tables("bound-sides", "Both sides", _bound_rows, folded=True),
        _plain_figures(
            "bound-sides", "bound", "Both sides of the bound against λ", lambda records, _: plot.bound(records)
        ),
    ),
    Section(
        "bandwidth-scaling",
        "λ̂_S and the bandwidth",
        "Smallest positive eigenvalue of the centred Gram matrix of S, 1,500 rows. Published: single precision, cut "
        "at 1e-6 of the largest. "
        "Corrected: double precision; 200 distinct values for the two limits.",
        _plain_tables(
            "bandwidth-scaling", "Eigenvalues", lambda records, _: theory.spectrum_table(records), folded=True
        ),
        _spectrum_figures,
    ),
    Section(
        "high-dimensional",
        "Several sensitive columns",
        "Time on 2,000 rows of Adult; errors of estimates on a Gaussian model whose answers are known, which the "
        "paper does not measure.",
        _high_dimensional_tables,
        _plain_figures(
            "high-dimensional",
            "high-dimensional",
            "Cost of several sensitive columns",
            lambda records, _: plot.high_dimensional(records),
        ),
    ),
    Section(
        "ablation-kernel",
        "Kernels",
        "All nine pairs on the synthetic task, 80 epochs; corrected adds λ = 0.5, at which classifiers are not "
        "constant, and five splits.",
        _plain_tables("ablation-kernel", "Accuracy and GDP", appendix.kernel_table),
        _nothing,
    ),
    Section(
        "ablation-dimension",
        "Dimension of the representation",
        "The same task; corrected adds λ = 0.5 and five splits.",
        _dimension_tables,
        _nothing,
    ),
    Section(
        "weight-selection",
        "Choosing λ by a test of independence",
        "Adult, Crime, COMPAS, three splits, at most 1,000 validation rows; the smallest λ that is not rejected at 5 "
        "%.",
        _plain_tables("weight-tests", "Selected λ", theory.selection_table),
        _plain_figures(
            "weight-tests",
            "weight-selection",
            "n·HSIC and thresholds, first split",
            lambda records, _: plot.weight_selection(records),
        ),
    ),
    Section(
        "frem-anchors",
        "FREM: number of anchors",
        "What the paper leaves for later: 8 to all 256 anchors a batch.",
        _variants("frem-anchors"),
        _nothing,
    ),
    Section(
        "bandwidth-sensitivity",
        "Bandwidths of FREM and Reg-GDP",
        "What the paper leaves for later; the published values are γ = 0.5, σ_Z = 1 and h = 0.2.",
        _variants("bandwidth-sensitivity"),
        _nothing,
    ),
    Section(
        "kernels-on-z",
        "HSIC: every kernel on the representation",
        "The same statistic with other kernels on Z, and with the head's output in the kernel.",
        _variants("kernels-on-z"),
        _nothing,
    ),
    Section(
        "full-batch",
        "HSIC and FREM on all rows at once",
        "Crime, one batch of all training rows, 1,000 epochs.",
        _variants("full-batch"),
        _nothing,
    ),
)
"""In the order of the document."""
