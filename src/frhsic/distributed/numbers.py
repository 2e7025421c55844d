"""Numbers of an audit from sums over all rows, and their place among the numbers of the sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from scipy import stats

from frhsic.auditing import Curve, Number, Population, Settings
from frhsic.auditing.measures import NO_INTERVAL, gap_number, shown_curve
from frhsic.auditing.results import Setting
from frhsic.dependence.features import FeatureMaps
from frhsic.distributed.sums import CurveSums, Parity
from frhsic.independence.featured import FeatureMoments, feature_test
from frhsic.intervals import Interval
from frhsic.parity.summed import curve_of_sums, gdp_of_sums
from frhsic.probes import ProbeSums, linear_probe_of_sums


@dataclass(frozen=True)
class ParityNumbers:
    """GDP in both units, the curve of the mean score, and that of the decisions."""

    numbers: tuple[Number, ...]
    curve: Curve
    decisions: Curve | None


def parity_numbers(
    plan: Parity | None, sums: tuple[CurveSums | None, ...] | None, i: int, settings: Settings
) -> ParityNumbers | None:
    """Return GDP and the curves along one attribute; None without scores, or if the attribute is constant."""
    cells, own = None if plan is None else plan.cells[i], None if sums is None else sums[i]
    if plan is None or cells is None or own is None:
        return None
    options: dict[str, Any] = {
        "confidence": settings.confidence,
        "resamples": settings.resamples,
        "random_state": settings.seed,
    }
    gap = gdp_of_sums(own.scores, cells, **options)
    values = [float(gdp_of_sums(own.scores, cells, resolution=gap.resolution * k, resamples=0)) for k in (0.5, 2)]
    details: dict[str, Setting] = {
        "resolution": gap.resolution,
        "value at half the resolution": values[0],
        "value at twice the resolution": values[1],
        "seed": gap.seed,
    }
    numbers = [gap_number("gdp", gap, details)]
    if plan.ends[0] < plan.ends[1]:
        standardized = gdp_of_sums(own.scores, cells, **options, standardize=True)
        numbers.append(gap_number("standardized_gdp", standardized, {"resolution": gap.resolution, "seed": gap.seed}))
    curve = shown_curve(curve_of_sums(own.scores, cells, confidence=settings.confidence), *plan.ends, settings)
    decisions = None
    if own.decisions is not None:
        decided = curve_of_sums(own.decisions, cells, confidence=settings.confidence)
        decisions = shown_curve(decided, 0.0, 1.0, settings)
    return ParityNumbers(tuple(numbers), curve, decisions)


def hsic_number(sampled: Population, maps: FeatureMaps, moments: FeatureMoments, settings: Settings) -> list[Number]:
    """Return HSIC by features of all rows with its test, in place of the sample's number; none where there is none."""
    own = [number for number in sampled.numbers if number.key == "hsic"]
    test, estimate = feature_test(maps, moments), maps.estimate(moments.cross)
    if not own or test.null_standard_deviation == 0:
        return []
    (before,) = own
    quantile = float(stats.norm.ppf((1 + settings.confidence) / 2))
    assert before.interval is not None
    # the lower half is cut off at 0 where the sample shows little dependence
    rows = (before.interval.high - before.value) / quantile * math.sqrt(before.rows / test.n)
    error = math.hypot(estimate.standard_error, rows)
    value = estimate.value - test.null_mean
    interval = Interval(
        min(value, max(value - quantile * error, 0.0)),
        max(value + quantile * error, 0.0),
        settings.confidence,
        "normal approximation, of random features and of rows",
    )
    details = before.settings | {
        "test": "gamma, limit of random features",
        "biased": estimate.value,
        "features": estimate.features,
        "standard error of the features": estimate.standard_error,
        "seed": settings.seed,
    }
    number = Number("hsic", value, test.n, interval, None, 0.0, test.pvalue, details)
    return [replace(number, standard_error=error)]


def probe_number(sums: ProbeSums, columns: int, attribute: int, attributes: int) -> Number:
    """Return the linear probe of all rows; the last target is noise, which stands for a shuffled attribute."""
    result = linear_probe_of_sums(sums, columns, attribute, attributes)
    details: dict[str, Setting] = {"folds": result.folds}
    return Number("probe_linear", result.r2, result.rows, None, NO_INTERVAL, result.shuffled_r2, settings=details)


def replaced(population: Population, rows: int, numbers: Sequence[Number], parity: ParityNumbers | None) -> Population:
    """Return a population of the sample with numbers, curves and count of all rows."""
    new = {number.key: number for number in (*numbers, *(() if parity is None else parity.numbers))}
    kept = tuple(new.pop(number.key, number) for number in population.numbers)
    population = replace(population, rows=rows, numbers=(*kept, *new.values()))
    if parity is None:
        return population
    return replace(population, curve=parity.curve, decisions=parity.decisions)
