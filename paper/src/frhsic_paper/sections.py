"""Sections of the document: which tables and figures belong to an experiment, as data."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from frhsic_paper import contents
from frhsic_paper.contents import Drawn, Listed
from frhsic_paper.figures import sweeps as draw
from frhsic_paper.figures import theory as plot
from frhsic_paper.results import Results
from frhsic_paper.tables import appendix, theory

__all__ = ["SECTIONS", "Section"]


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


SECTIONS: tuple[Section, ...] = (
    Section(
        "convergence",
        "Convergence of the estimators",
        "Z standard Gaussian, S = Z/2 + noise, n from 50 to 5,000, 20 repeats, bandwidths 1. Published: single "
        "precision, γ = 1, one "
        "draw of 20,000 rows for the truth. Corrected: double precision, exact truths, and a γ that shrinks as "
        "n^(−1/5).",
        contents.plain_tables("convergence", "Slopes", lambda records, _: theory.convergence_table(records)),
        contents.plain_figures(
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
        contents.agreement_tables,
        contents.nothing,
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
        contents.tradeoff_tables,
        contents.tradeoff_figures,
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
        contents.significance_tables,
        contents.nothing,
    ),
    Section(
        "leak",
        "What is left of S in the representation",
        "Models that validation rows choose within 1 % of performance: GDP of the deployed head, of the worst of "
        "five heads trained afresh "
        "on the frozen representation, R² of probes for S on unseen rows, and the largest gap of any head of norm 1.",
        contents.leak_tables,
        contents.leak_figures,
    ),
    Section(
        "leaky-scaling",
        "Scales that see the test rows",
        "Crime and COMPAS, scales fitted on all rows, otherwise the same splits.",
        contents.variants("leaky-scaling"),
        contents.nothing,
    ),
    Section(
        "transfer",
        "Fresh heads on frozen representations",
        "Adult, Crime and COMPAS, λ = 10 and 100. Published: one split, GDP on logits for the two networks and on "
        "hard labels for forest "
        "and SVM. Corrected: probabilities for every head.",
        contents.plain_tables("transfer/heads", "GDP over heads", lambda records, _: appendix.transfer_table(records)),
        contents.plain_figures(
            "transfer/heads", "transfer", "GDP of fresh heads", lambda records, _: draw.transfer(records)
        ),
    ),
    Section(
        "mutual-information",
        "Mutual information of representation and attribute",
        "Nearest-neighbour estimates on test rows of the first splits of the sweep. They see the two to five leading "
        "principal components of Z alone: a low value does not say that S is gone, see the probes above.",
        contents.information_tables,
        contents.information_figures,
    ),
    Section(
        "runtime",
        "Seconds of an epoch",
        "The paper's synthetic task, batches of 256. Published: first epoch of a fresh model, FREM as a loop over "
        "the rows of a batch. "
        "Corrected: warm, synchronised, FREM on 32 and on all anchors as products of matrices.",
        contents.plain_tables("runtime", "Median seconds", lambda records, _: theory.runtime_table(records)),
        contents.plain_figures(
            "runtime", "runtime", "Seconds of an epoch against rows", lambda records, _: plot.runtime(records)
        ),
    ),
    Section(
        "synthetic",
        "Synthetic validation",
        "X₁ = S + noise, P(Y = 1) = sigmoid(X₁), 5,000 rows, three-layer encoder, 100 epochs.",
        contents.plain_tables(
            "synthetic", "Accuracy, GDP and what a probe reads", appendix.synthetic_table, folded=True
        ),
        contents.plain_figures("synthetic", "synthetic", "GDP, accuracy, HSIC and a probe for S", draw.synthetic),
    ),
    Section(
        "equal-opportunity",
        "Equal Opportunity",
        "HSIC on all rows (DP) or on those with Y = 1 (EO). Published: one split, other bandwidths for EO than for "
        "DP. Corrected: five "
        "splits, the same rule for both. The head's variant is the default.",
        contents.plain_tables("equal-opportunity", "Accuracy and GDP", appendix.equal_opportunity_table),
        contents.nothing,
    ),
    Section(
        "multi-attribute",
        "Two attributes",
        "Adult, age and hours. Published: Joint is one isotropic Gaussian. Corrected: a product of one Gaussian a "
        "column, five splits. The head's variant is the default.",
        contents.plain_tables("multi-attribute", "Accuracy and GDP by attribute", appendix.multi_attribute_table),
        contents.plain_figures(
            "multi-attribute", "multi-attribute", "Frontiers for each attribute", draw.multi_attribute
        ),
    ),
    Section(
        "bound",
        "The finite-sample bound",
        "FRHSIC on 1,500 rows of Adult and Crime, 300 test rows. Published: variance over the full sample against "
        "HSIC/λ̂_S, single "
        "precision. Corrected: the theorem's projected left side at several resolutions, double precision, and a "
        "tighter form.",
        contents.plain_tables("bound/sides", "Both sides", contents.bound_rows, folded=True),
        contents.plain_figures(
            "bound/sides", "bound", "Both sides of the bound against λ", lambda records, _: plot.bound(records)
        ),
    ),
    Section(
        "bandwidth-scaling",
        "λ̂_S and the bandwidth",
        "Smallest positive eigenvalue of the centred Gram matrix of S, 1,500 rows. Published: single precision, cut "
        "at 1e-6 of the largest. "
        "Corrected: double precision; 200 distinct values for the two limits.",
        contents.plain_tables(
            "bandwidth-scaling", "Eigenvalues", lambda records, _: theory.spectrum_table(records), folded=True
        ),
        contents.spectrum_figures,
    ),
    Section(
        "high-dimensional",
        "Several sensitive columns",
        "Time on 2,000 rows of Adult; errors of estimates on a Gaussian model whose answers are known, which the "
        "paper does not measure.",
        contents.high_dimensional_tables,
        contents.plain_figures(
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
        contents.plain_tables("ablation-kernel", "Accuracy and GDP", appendix.kernel_table),
        contents.nothing,
    ),
    Section(
        "ablation-dimension",
        "Dimension of the representation",
        "The same task; corrected adds λ = 0.5 and five splits.",
        contents.dimension_tables,
        contents.nothing,
    ),
    Section(
        "weight-selection",
        "Choosing λ by a test of independence",
        "Adult, Crime, COMPAS, three splits, at most 1,000 validation rows; the smallest λ that is not rejected at 5 "
        "%.",
        contents.plain_tables("weight-selection/tests", "Selected λ", theory.selection_table),
        contents.plain_figures(
            "weight-selection/tests",
            "weight-selection",
            "n·HSIC and thresholds, first split",
            lambda records, _: plot.weight_selection(records),
        ),
    ),
    Section(
        "frem-anchors",
        "FREM: number of anchors",
        "What the paper leaves for later: 8 to all 256 anchors a batch.",
        contents.variants("frem-anchors"),
        contents.nothing,
    ),
    Section(
        "bandwidth-sensitivity",
        "Bandwidths of FREM and Reg-GDP",
        "What the paper leaves for later; the published values are γ = 0.5, σ_Z = 1 and h = 0.2.",
        contents.variants("bandwidth-sensitivity"),
        contents.nothing,
    ),
    Section(
        "kernels-on-z",
        "HSIC: every kernel on the representation",
        "The same statistic with other kernels on Z, and with the head's output in the kernel.",
        contents.variants("kernels-on-z"),
        contents.nothing,
    ),
    Section(
        "full-batch",
        "HSIC and FREM on all rows at once",
        "Crime, one batch of all training rows, 1,000 epochs.",
        contents.variants("full-batch"),
        contents.nothing,
    ),
)
"""In the order of the document."""
