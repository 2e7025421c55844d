"""Claims about the trade-offs and the setup of the sweep, and the rules by which they are
judged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache

import numpy as np

from frhsic.datasets.catalogue import ENTRIES
from frhsic_paper.agreement import LISTED, agreement
from frhsic_paper.claim import (
    NOT_RUN,
    Case,
    Outcome,
    Rule,
    case_rule,
    claim,
    outcome_from_cases,
    protocol_rule,
    published_rule,
)
from frhsic_paper.frontier import Frontier, Run, is_within_band
from frhsic_paper.frontiers import (
    column_values,
    corrected_error,
    frontier,
    is_error,
    matched_by_split,
    matched_points,
    mean_value,
    naup,
    naup_by_repeat,
    rank_and_distance,
    rounded_frontier,
    shared_repeats,
    swept_datasets,
)
from frhsic_paper.printed import (
    DATASET_NAMES,
    METHOD_NAMES,
    PRINTED_SIX,
    printed_records,
    printed_sweeps,
)
from frhsic_paper.protocol import (
    BAND,
    BASELINE,
    DATASETS,
    METHODS,
    PAPER_WEIGHTS,
    PROTOCOLS,
    PUBLISHED,
    Protocol,
)
from frhsic_paper.records import Record, matching
from frhsic_paper.results import Results

MAIN = "Section 5.3, main table"

CONTINUOUS = ("frem", "reg-gdp", "adv")
"""The paper's baselines for a continuous attribute."""

TEXT_WEIGHTS = (0.1, 1.0, 10.0, 100.0, 500.0)
"""The weights listed in the paper's text."""

VARIABLES = {"adult": 13, "acs_income": 9, "meps": 19, "compas": 9}
"""Number of variables of the datasets with categories, before one-hot encoding."""

CRIME_ATTRIBUTE = {"published": "household size", "corrected": "share of black residents"}


def method_areas(
    records: Sequence[Record], protocol: Protocol, *datasets: str
) -> dict[str, dict[str, float]]:
    """Return the areas of the paper's six methods on the given datasets, or on all, as in its main
    table.
    """
    points = {
        d: matched_points(records, d, protocol)
        for d in swept_datasets(records)
        if not datasets or d in datasets
    }
    return {
        dataset: {p.method: p.naup for p in some if p.method in PRINTED_SIX and p.naup is not None}
        for dataset, some in points.items()
    }


def _ranked(method: str, true: Callable[[int, float], bool], *datasets: str) -> Rule:
    """Return a rule that judges a method by the rank of its area among the paper's six, with 1 for
    the best, and its distance from the best.
    """

    @case_rule("tradeoff")
    def rule(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
        for dataset, areas in method_areas(records, protocol, *datasets).items():
            if len(areas) == len(PRINTED_SIX):
                rank, behind = rank_and_distance(areas, method)
                text = f"{DATASET_NAMES[dataset]}: {areas[method]:.3f}, rank {rank} of {len(areas)}"
                yield true(rank, behind), text + (f", {behind:.3f} behind" if behind else "")

    return rule


@claim(
    "comparable",
    MAIN,
    "FRHSIC's trade-offs are comparable to those of the strongest continuous-attribute baselines.",
    "nAUP of FRHSIC, FREM, Reg-GDP: Adult .786, .835, .872; ACS .805, .865, .852; MEPS .464, .549,"
    " .469; Crime .686, .680, .690; COMPAS .679, .530, .480",
    shrinkable=True,
)
@case_rule("tradeoff", "FRHSIC ahead (+) or behind (−), ± standard error")
def _comparable(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """Two cases per dataset: nAUP, and GDP at the matched point as a share of Unfair's, of FRHSIC
    compared with the best of FREM, Reg-GDP and ADV, all with nine weights. Comparable means behind
    by at most two standard errors of the paired difference, corrected for the rows that splits
    share.
    """
    for dataset in swept_datasets(records):
        for name, values in _by_split(records, dataset, protocol).items():
            rivals = [m for m in CONTINUOUS if m in values]
            if "frhsic" in values and rivals:
                rival = max(rivals, key=lambda m: values[m].mean())
                ahead = values["frhsic"] - values[rival]
                error = corrected_error(ahead, protocol)
                text = f"{ahead.mean():+.3f} ± {error:.3f} to {METHOD_NAMES[rival]}"
                yield ahead.mean() >= -2 * error, f"{DATASET_NAMES[dataset]}, {name}: {text}"


def _by_split(
    records: Sequence[Record], dataset: str, protocol: Protocol
) -> dict[str, dict[str, np.ndarray]]:
    """Return nAUP, and minus GDP at the matched point divided by Unfair's mean, by method and
    split.
    """
    usable = shared_repeats(matching(records, dataset=dataset))
    full = frontier(usable, dataset, protocol.gdp)
    unfair = full.method_points(BASELINE)[0].dependence
    gdp = {
        m: np.array([r[protocol.gdp] for r, _ in models])
        for m, models in matched_by_split(usable, dataset, protocol).items()
    }
    return {
        "nAUP": naup_by_repeat(full),
        "GDP": {m: -values / unfair for m, values in gdp.items()},
    }


@claim(
    "binning",
    MAIN,
    "Binning S yields no systematic advantage over the continuous-sensitive methods.",
    "MMD (binned) best on 2 of 5 datasets",
    shrinkable=True,
)
@protocol_rule("tradeoff")
def _binning(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """The better of the two binned methods against the best of the four continuous ones, by nAUP.
    Systematic means a lead on more than half of the datasets.
    """
    led, parts = [], []
    for dataset, areas in method_areas(records, protocol).items():
        if len(areas) == len(PRINTED_SIX):
            binned, other = (
                max(some, key=lambda m: areas[m])
                for some in (("mmd", "laftr"), ("frhsic", *CONTINUOUS))
            )
            led.append(areas[binned] > areas[other])
            names = (
                f"{METHOD_NAMES[binned]} {areas[binned]:.3f}, {METHOD_NAMES[other]}"
                f" {areas[other]:.3f}"
            )
            parts.append(f"{DATASET_NAMES[dataset]} {names}")
    if not led:
        return NOT_RUN
    text = f"a binned method leads on {sum(led)} of {len(led)}"
    return Outcome(2 * sum(led) <= len(led), text, tuple(parts))


@claim(
    "no-method-dominates",
    MAIN,
    "No method dominates across datasets.",
    "MMD, MMD, FREM, Reg-GDP, FRHSIC lead",
    shrinkable=True,
)
@protocol_rule("tradeoff")
def _none_dominates(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """Among the paper's six methods; HSIC with the head in the kernel, which the paper does not
    have, is compared below.
    """
    first = {
        d: max(areas, key=lambda m: areas[m])
        for d, areas in method_areas(records, protocol).items()
        if areas
    }
    if len(first) < 2:
        return NOT_RUN
    cases = tuple(f"{DATASET_NAMES[d]}: {METHOD_NAMES[method]}" for d, method in first.items())
    return Outcome(len(set(first.values())) > 1, "largest nAUP", cases)


def _near_zero(
    records: Sequence[Record], protocol: Protocol
) -> dict[str, tuple[Frontier, set[str]]]:
    """Return, by dataset, the methods that reach 5 % of the unpenalized GDP inside the band."""
    reached: dict[str, tuple[Frontier, set[str]]] = {}
    for dataset in (d for d in ("adult", "acs_income") if d in swept_datasets(records)):
        full = frontier(records, dataset, protocol.gdp)
        base = full.method_points(BASELINE)[0]
        inside = {
            p.method
            for p in full.points
            if is_within_band(p.performance, base.performance, BAND, full.higher_is_better)
            and p.dependence <= 0.05 * base.dependence
        }
        reached[dataset] = full, inside
    return reached


def _why_reg_gdp_collapses(results: Results) -> str:
    reached = [
        _near_zero(results.records("tradeoff", p.name), p).values() for p in PROTOCOLS.values()
    ]
    inside = {method for by_dataset in reached for _, methods in by_dataset for method in methods}
    others = ", ".join(METHOD_NAMES[m] for m in METHOD_NAMES if m in inside and m != "reg-gdp")
    who = (
        f"by {others}" if others else "by no other method either, so it is not peculiar to Reg-GDP"
    )
    return f"""
        Near zero means 5 % of the GDP without penalty, the lowest point shown for Reg-GDP.
        Inside the 1 % band it is reached {who}.
    """


@claim(
    "reg-gdp-collapse",
    MAIN,
    "Reg-GDP reaches a GDP near zero only by collapsing accuracy outside the 1 % band.",
    "Adult .849 → .758, ACS .790 → .590",
    reason=_why_reg_gdp_collapses,
    shrinkable=True,
)
@case_rule("tradeoff")
def _reg_gdp_collapses(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    for dataset, (full, inside) in _near_zero(records, protocol).items():
        lowest = min(full.method_points("reg-gdp"), key=lambda p: p.dependence)
        text = (
            f"{DATASET_NAMES[dataset]}: GDP {lowest.dependence:.3f} at accuracy"
            f" {lowest.performance:.3f} "
        )
        yield (
            "reg-gdp" not in inside,
            f"{text}(Unfair {full.method_points(BASELINE)[0].performance:.3f})",
        )


@claim(
    "practical-equivalence",
    MAIN,
    "Differences within .01 of accuracy or .05 of GDP are inside the spread over five splits.",
    "±.01, ±.05",
)
@case_rule("tradeoff", "deviation of accuracy, of GDP")
def _spread(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """Median over methods and weights of the standard deviation over five splits, GDP in the
    published unit under both protocols; the claim requires both to be at least half of the stated
    margin. All methods share the splits, so paired differences are far smaller than this spread.
    """
    for dataset in (d for d in swept_datasets(records) if not is_error(d, records)):
        first = (r for r in records if r["repeat"] < 5)
        points = frontier(first, dataset, PUBLISHED.gdp).points
        accuracy, gdp = np.median(
            [(p.performance_sd, p.dependence_sd) for p in points], axis=0
        ).tolist()
        yield (
            2 * accuracy >= 0.01 and 2 * gdp >= 0.05,
            f"{DATASET_NAMES[dataset]} {accuracy:.4f}, {gdp:.4f}",
        )


def _why_best_on_compas(results: Results) -> str:
    every, nine, five = (
        printed_area("compas", weights) for weights in (None, PAPER_WEIGHTS, TEXT_WEIGHTS)
    )
    return f"""
        The printed area rests on 18 weights for FRHSIC against 9 for the others; here every method
        has the same nine. From the published sweeps themselves: {every} with 18, {nine} on the
        shared nine, {five} on the five of the text.
    """


_best_on_compas = claim(
    "best-on-compas",
    MAIN,
    "By nAUP, FRHSIC is best on COMPAS.",
    ".679, next .530",
    reason=_why_best_on_compas,
    shrinkable=True,
)(_ranked("frhsic", lambda rank, behind: rank == 1, "compas"))


def _why_close_on_crime(results: Results) -> str:
    every, nine = (printed_area("crime", weights) for weights in (None, PAPER_WEIGHTS))
    return f"""
        In the published sweeps: {every} with 18 weights, {nine} on the shared nine. The published
        attribute is household size; the corrected runs protect the share of black residents.
    """


_close_on_crime = claim(
    "close-on-crime",
    MAIN,
    "By nAUP, FRHSIC is within .004 of the best on Crime.",
    ".686 against .690",
    reason=_why_close_on_crime,
)(_ranked("frhsic", lambda rank, behind: behind <= 0.004, "crime"))


_mid_pack = claim(
    "mid-pack",
    MAIN,
    "FRHSIC is mid-pack on Adult, ACS Income and MEPS.",
    ".786, .805, .464",
    reason="""
        Mid-pack means neither first nor last of six: where FRHSIC is first, it does better
        than the paper says, and the claim is not true. The paper's own table has FRHSIC last on
        MEPS (.464).
    """,
    shrinkable=True,
)(
    _ranked(
        "frhsic",
        lambda rank, behind: 1 < rank < len(PRINTED_SIX),
        "adult",
        "acs_income",
        "meps",
    )
)


_laftr_weak = claim(
    "laftr-weak",
    MAIN,
    "LAFTR is consistently among the weakest.",
    ".555, .754, .477, .103, .475",
    reason="Among the weakest means fifth or sixth of six.",
    shrinkable=True,
)(_ranked("laftr", lambda rank, behind: rank >= 5, *DATASETS))


_mmd_competitive = claim(
    "mmd-competitive",
    MAIN,
    "Binned MMD is competitive on Adult and ACS Income.",
    ".880 and .881, both best",
    reason="""
        Competitive means within 0.05 of the best of six. The penalty that was run is a sum of
        squared mean differences over ten quantile bins, not MMD on quartiles.
    """,
    shrinkable=True,
)(_ranked("mmd", lambda rank, behind: behind <= 0.05, "adult", "acs_income"))


# The setup of the sweep: its grid, tables and data


@cache
def printed_area(dataset: str, weights: tuple[float, ...] | None) -> str:
    """Return FRHSIC's area and rank in the published files, for all or only some weights."""
    runs = tuple(
        Run(r["method"], r["weight"], 0, r["performance"], r["gdp"])
        for r in matching(printed_sweeps(), dataset=dataset)
        if r["method"] in (*PRINTED_SIX, BASELINE)
        and (weights is None or r["method"] == BASELINE or r["weight"] in weights)
    )
    areas = naup(
        rounded_frontier(Frontier(runs, higher_is_better=not is_error(dataset)), PUBLISHED.decimals)
    )
    return f"{areas['frhsic']:.3f} (rank {rank_and_distance(areas, 'frhsic')[0]})"


@claim(
    "one-grid",
    "Section 5.1, Appendix",
    "All methods are swept over the same five weights.",
    "{0.1, 1, 10, 100, 500}",
    about="reporting",
)
@published_rule(f"{len(PAPER_WEIGHTS)} for every method")
def _one_grid() -> Outcome:
    """A case for each method: how many weights the published files have. Below are FRHSIC's nAUP
    and its rank among six in these files: with all 18 weights, with the nine that all methods
    share, and with the five in the text.
    """
    grids = {m: {r["weight"] for r in matching(printed_sweeps(), method=m)} for m in METHODS}
    told = [f"{METHOD_NAMES[m]}: {len(grid)} weights" for m, grid in grids.items()]
    sizes = (None, PAPER_WEIGHTS, TEXT_WEIGHTS)
    areas = [
        f"{DATASET_NAMES[d]} {' → '.join(printed_area(d, weights) for weights in sizes)}"
        for d in DATASETS
    ]
    same = [grid == set(TEXT_WEIGHTS) for grid in grids.values()]
    return outcome_from_cases(same, "", [*told, *areas])


@claim(
    "tables-agree",
    "main table and Pareto summary",
    "Both tables are read off the same sweep by the same rule.",
    "same rule stated",
    about="reporting",
)
@published_rule("one table")
def _tables_agree() -> Outcome:
    """GDP of FRHSIC in the main table compared with that in the summary in the appendix: the main
    table uses 18 weights, the summary 9.
    """
    main, summary = (
        {(r["dataset"], r["method"]): r["gdp"] for r in printed_records(table)}
        for table in ("matched_performance", "pareto_summary")
    )
    apart = [
        f"{DATASET_NAMES[key[0]]} {main[key]} against {summary[key]}"
        for key in main
        if key in summary and main[key] != summary[key]
    ]
    return Outcome(not apart, "" if apart else "equal everywhere", tuple(apart))


@claim(
    "held-out-weight",
    "Section 5.1",
    "λ is selected by a held-out procedure.",
    "the test of independence of the appendix",
    about="reporting",
)
@published_rule("chosen on validation rows, in each split")
def _held_out() -> Outcome:
    """The main table's λ were chosen on the test rows: the least mean GDP within the band of the
    published files is the printed GDP. The appendix says that there is no validation split.
    """
    rows = [r for r in printed_records("matched_performance") if r["method"] != BASELINE]
    same = 0
    for row in rows:
        own, (base,) = (
            matching(printed_sweeps(), dataset=row["dataset"], method=m)
            for m in (row["method"], BASELINE)
        )
        higher, limit = not is_error(row["dataset"]), base["performance"]
        inside = [r["gdp"] for r in own if is_within_band(r["performance"], limit, BAND, higher)]
        same += (round(min(inside), 3) if inside else None) == row["gdp"]
    text = f"the least GDP on test rows is the printed one in {same} of {len(rows)} rows"
    return Outcome(same < len(rows), text)


@claim(
    "one-hot",
    "Appendix, reproducibility",
    "Categories are one-hot encoded.",
    "one-hot",
    about="reporting",
)
def _one_hot(results: Results, protocol: Protocol) -> Outcome:
    """A case for each dataset with categories: the published files have more columns than
    variables. ACS Income and MEPS store the codes as numbers.
    """
    if not protocol.printed:
        ours = (f"{DATASET_NAMES[d]}: {ENTRIES[d].shape[1]} columns" for d in VARIABLES)
        return Outcome(None, "", tuple(ours))
    columns = {d: matching(printed_sweeps(), dataset=d)[0]["d"] for d in VARIABLES}
    told = [
        f"{DATASET_NAMES[d]}: {columns[d]} columns of {count} variables"
        for d, count in VARIABLES.items()
    ]
    return outcome_from_cases([columns[d] > count for d, count in VARIABLES.items()], "", told)


@claim(
    "meps-panel",
    "Appendix, datasets",
    "MEPS is Panel 19 of 2015.",
    "Panel 19, n ≈ 13,000",
    about="reporting",
)
@published_rule(f"Panel 19: n = {ENTRIES['meps'].shape[0]:,}")
def _meps_panel() -> Outcome:
    """The whole file HC-181 was used, Panels 19 and 20."""
    rows = ENTRIES["meps"].shape[0]
    theirs = matching(printed_sweeps(), dataset="meps")[0]["n"]
    return Outcome(theirs == rows, f"files: n = {theirs:,}; Panel 19 alone has {rows:,}")


@claim(
    "scaled-z",
    "Appendix, training",
    "Baselines use σ_Z = 1 on Z scaled to [0, 1].",
    "σ_Z = 1 on min-max-scaled Z",
    about="reporting",
)
def _scaled_z(results: Results, protocol: Protocol) -> Outcome:
    """Neither the published code nor our runs under the published protocol scale Z; Reg-GDP has no
    kernel on Z. The claim does not hold if at least 90 % of FREM's published cells agree with these
    runs. FREM on scaled Z was not run under this protocol: the cells show that unscaled Z gives the
    published numbers, not that scaled Z gives different ones.
    """
    if not protocol.printed:
        return Outcome(None, "FREM's Z is scaled to [0, 1] in each batch")
    records = [
        r for r in results.records("tradeoff", protocol.name) if r["method"] in ("frem", BASELINE)
    ]
    spread = column_values(matching(records, method="frem"), "z_scale")
    if not spread:
        return NOT_RUN
    text = f"spread of Z without a scale: median {np.median(spread):.2g}, up to {max(spread):.2g}"
    cells = [c.within for c in agreement(records) if c.dataset not in LISTED and c.method == "frem"]
    return Outcome(
        sum(cells) < 0.9 * len(cells), f"{text}; {sum(cells)} of {len(cells)} cells of FREM agree"
    )


@claim(
    "mean-and-std",
    "Section 5.1",
    "Results are reported as mean ± standard deviation over five splits.",
    "mean ± standard deviation",
    about="reporting",
)
@published_rule("given in every table")
def _mean_and_std() -> Outcome:
    """One case each for the printed main table and the printed Pareto summary."""
    tables = ("matched_performance", "pareto_summary")
    given = [
        any("std" in key or "sd" in key for row in printed_records(table) for key in row)
        for table in tables
    ]
    return outcome_from_cases(
        given, "none in the main table, none in the summary; the files have them with ddof 0"
    )


@claim(
    "crime-attribute",
    "Section 5.1",
    "The sensitive attribute of Crime is racial composition.",
    "Unfair GDP .029",
    about="reporting",
)
def _crime_attribute(results: Results, protocol: Protocol) -> Outcome:
    """The published GDP of 0.029 is that of household size, the column before racial composition in
    the file. With racial composition, the GDP without penalty is several times larger, by the same
    definition.
    """
    means = {}
    for name in PROTOCOLS:
        records = results.records("tradeoff", name)
        mean = mean_value(records, PUBLISHED.gdp, dataset="crime", method=BASELINE)
        if mean is not None:
            means[name] = mean
    if protocol.name not in means:
        return NOT_RUN
    own = means[protocol.name]
    theirs = float(matching(printed_sweeps(), dataset="crime", method=BASELINE)[0]["gdp"])
    judged = (
        len(means) == len(PROTOCOLS) and not protocol.printed
    )  # judged by corrected records, in comparison with published ones
    text = f"Unfair GDP {own:.3f} with {CRIME_ATTRIBUTE[protocol.variant]}"
    return Outcome(abs(own - theirs) < 0.3 * theirs if judged else None, text)


@claim(
    "adult-rows",
    "Appendix, datasets",
    "Adult: missing values removed, d = 107.",
    "n ≈ 30,000, d = 107",
    about="reporting",
)
@published_rule("n = {:,}, d = {}".format(*ENTRIES["adult"].shape))
def _adult_rows() -> Outcome:
    """All 32,561 rows of the source were used, with “?” as a level of its own; there would not be
    107 columns otherwise.
    """
    rows, columns = ENTRIES["adult"].shape
    row = matching(printed_sweeps(), dataset="adult")[0]
    removed = row["n"] == rows and row["d"] == 107
    return Outcome(
        removed,
        f"files: n = {row['n']:,}, d = {row['d']}; without missing values {rows:,} and {columns}",
    )


CLAIMS = (
    _comparable,
    _none_dominates,
    _best_on_compas,
    _close_on_crime,
    _mid_pack,
    _laftr_weak,
    _mmd_competitive,
    _binning,
    _reg_gdp_collapses,
    _spread,
    _one_grid,
    _tables_agree,
    _held_out,
    _scaled_z,
    _mean_and_std,
    _one_hot,
    _meps_panel,
    _crime_attribute,
    _adult_rows,
)
