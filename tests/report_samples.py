"""Reports made by hand, for the tests of the page: every field is set here, nothing is computed from data."""

from __future__ import annotations

import math
from dataclasses import replace

from frhsic.auditing.results import (
    AttributeAudit,
    Audit,
    CertificateRow,
    Contrast,
    Curve,
    Histogram,
    Interval,
    Note,
    Number,
    Omitted,
    Population,
    Rows,
    SparseRegion,
)
from frhsic.report import Report, TradeOff, TradeOffPoint


def curve(strength: float = 1.0, points: int = 81, level: float = 0.3) -> Curve:
    grid = tuple(17 + 73 * i / (points - 1) for i in range(points))
    rows = tuple(2400 * math.exp(-(((s - 36) / 17) ** 2)) + 4 for s in grid)
    mean = tuple(level + strength * 0.17 * math.sin((s - 22) / 17) * math.exp(-(((s - 48) / 26) ** 2)) for s in grid)
    wide = [0.4 / math.sqrt(r) for r in rows]
    return Curve(
        grid=grid,
        mean=mean,
        overall=level,
        bandwidth=7.3,
        low=tuple(m - w for m, w in zip(mean, wide)),
        high=tuple(m + w for m, w in zip(mean, wide)),
        rows=rows,
        sparse=tuple(r < 30 for r in rows),
        level=0.95,
        resamples=200,
    )


def number(
    key: str, label: str, value: float, group: str = "dependence", *, unit: bool = True, width: float = 0.02
) -> Number:
    return Number(
        key=key,
        label=label,
        value=value,
        sentence=f"{label} is {value:.3g}; shuffled, the same estimate gives 0.004 on average.",
        rows=4000,
        group=group,
        interval=Interval(value - width, value + width, 0.95, "delete-group jackknife, 20 groups"),
        under_independence=0.004,
        unit_scale=unit,
    )


def population(strength: float = 1.0, name: str = "all rows") -> Population:
    return Population(
        name=name,
        rows=30162,
        numbers=(
            number("gdp", "Generalised demographic parity (GDP)", 0.0912 * strength, "parity", unit=False, width=0.004),
            number("standardized_gdp", "GDP in standard deviations", 0.31 * strength, "parity", unit=False),
            number("hsic", "HSIC", 0.00412 * strength, unit=False, width=0.0004),
            number("hsic_effect", "HSIC, normalised", 0.143 * strength),
            number("distance_correlation", "Distance correlation", 0.33 * strength),
            number("kernel_hgr", "Kernel maximal correlation", 0.52 * strength),
            number("eipm", "EIPM", 0.061 * strength, unit=False),
            Number(
                "mutual_information",
                "Mutual information (nats)",
                0.184 * strength,
                "Knowing the score saves 0.18 nats when guessing the attribute.",
                4000,
                "dependence",
                no_interval="too few rows",
            ),
            number("probe_linear", "Recovered by a linear probe, R²", 0.162 * strength, "probe"),
            number("probe_trees", "Recovered by boosted trees, R²", 0.291 * strength, "probe"),
        ),
        curve=curve(strength),
        contrasts=(
            Contrast(
                30.0,
                0.048 * strength,
                "At 30 the mean score is 0.048 above the overall mean.",
                2100.0,
                False,
                Interval(0.04, 0.06, 0.95, "bootstrap"),
            ),
            Contrast(
                85.0,
                0.002,
                "At 85 the mean score is close to the overall mean, but few rows say so.",
                11.0,
                True,
                no_interval="fewer than 30 rows nearby",
            ),
        ),
        omitted=(Omitted("binned_mmd", "Binned MMD", "the attribute has fewer than 10 distinct values."),),
    )


def attribute(name: str = "age", strength: float = 1.0) -> AttributeAudit:
    edges = tuple(17 + 73 * i / 40 for i in range(41))
    return AttributeAudit(
        name=name,
        finding=(
            f"The score “score” moves with {name}: on average over the rows it is 0.091 away from its mean of 0.300."
        ),
        evidence=(
            "The 95 % interval for this gap (GDP) is 0.087 to 0.095; chance alone would show about 0.004.",
            f"From the score “score” alone, boosted trees can recover 29 % of the variance of {name}.",
        ),
        histogram=Histogram(edges, tuple(int(2000 * math.exp(-((((a + 0.9) - 36) / 17) ** 2))) for a in edges[:-1])),
        everyone=population(strength),
        positives=replace(
            population(0.6 * strength, "rows with income = 1"), rows=7508, curve=curve(0.6 * strength, level=0.52)
        ),
        certificates=(
            CertificateRow(
                "gdp_certificate",
                "GDP of the head, finite sample",
                0.41,
                "With probability 95 % the gap of this head is at most 0.41.",
                ("rows i.i.d.", "kernels in [0, 1]"),
                False,
                4000,
                0.091,
                0.95,
            ),
            CertificateRow(
                "spectral_equivalence",
                "Conditional MMD integral",
                3.2,
                "The bound is larger than the largest possible value, 2.",
                ("tail of the first 8 directions below 0.01",),
                True,
                4000,
            ),
        ),
        sparse_regions=(SparseRegion(75.2, 90.0, 243, 0.0081),),
    )


def audit(*names: str, strength: float = 1.0, title: str = "Adult: income score against age") -> Audit:
    return Audit(
        title=title,
        subject="score",
        subject_name="score",
        score_name="score",
        target_name="income",
        source="adult.csv",
        rows=Rows(given=32561, dropped=2399, used=30162, subsample=4000),
        attributes=tuple(attribute(name, strength) for name in (names or ("age",))),
        notes=(
            Note(
                "Equal averages are not equal treatment",
                "Two groups with the same mean score can be treated very differently.",
            ),
            Note(
                "Independence is necessary for counterfactual fairness, not sufficient",
                "HSIC = 0 says nothing about what would have happened to one person.",
            ),
            Note(
                "Parity ignores the truth", "A score can meet demographic parity by being equally wrong for everyone."
            ),
        ),
        warnings=("1 % of the rows lie where age is sparse; the curve is hatched there.",),
        settings={"level": 0.95, "bootstrap resamples": 200, "seed": 0},
        software="frhsic 0.1.0",
    )


def tradeoff(name: str = "age") -> TradeOff:
    weights = [0.0, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0]
    points = []
    for i, weight in enumerate(weights):
        strength = 1 / (1 + 0.55 * i**1.35)
        points.append(
            TradeOffPoint(
                weight=weight,
                performance=0.852 - 0.0009 * i**2,
                gdp=0.0912 * strength,
                hsic=0.00412 * strength**2,
                chosen=weight == 3.0,
                label="no penalty" if weight == 0 else "",
                curve=curve(strength),
            )
        )
    return TradeOff(name, "Accuracy", True, tuple(points), "The chosen one keeps 97 % of the accuracy.", floor=0.83)


def full() -> Report:
    return Report(
        audit("age", "hours per week", strength=0.2),
        before=audit("age", "hours per week"),
        tradeoff=tradeoff(),
        summary="Giving up 2.2 points of accuracy takes four fifths of the dependence on age out of the score.",
    )


HOSTILE = (
    "<script>window.hacked=1</script>",
    '"><img src=x onerror="window.hacked=1">',
    "</script><script>window.hacked=1</script>",
    '=HYPERLINK("http://example.invalid","x")',
    "{{ 7*7 }}<!--",
)


def hostile() -> Report:
    """Every text that can come from a user's file is a piece of markup or a formula."""
    first, second, third, formula, template = HOSTILE
    base = audit(first, formula, title=second)
    population_ = base.attributes[0].everyone
    bad = replace(
        population_,
        numbers=(
            replace(population_.numbers[0], label=formula, sentence=third),
            replace(population_.numbers[1], label="-2+3", sentence="@SUM(A1)"),
            *population_.numbers[2:],
        ),
    )
    attributes = (
        replace(base.attributes[0], everyone=bad, finding=third),
        replace(base.attributes[1], finding=template),
    )
    return Report(
        replace(
            base,
            subject_name=second,
            score_name=third,
            source=template,
            warnings=(first,),
            attributes=attributes,
            settings={first: second},
        ),
        before=base,
        tradeoff=replace(tradeoff(third), performance_name=first, reason=second),
        summary=template,
    )
