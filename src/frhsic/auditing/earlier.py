"""Changes since an earlier audit of different rows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from scipy.special import kolmogorov

from frhsic.auditing.comparing import check_limits, difference, holm
from frhsic.auditing.results import LIMITABLE, Audit, Change, Law
from frhsic.auditing.splitting import split_change
from frhsic.parity.limits import LimitLike, parse_limits

# Measures of performance and calibration that are compared if both audits contain them.
WATCHED = ("auc", "root_squared_error", "mean_error")


def drift(audit: Audit, earlier: Audit) -> tuple[Change, ...]:
    r"""Compare two audits of different, independent rows.

    For each attribute in both audits, compare its distribution, the gap, and the gap among people
    with the same controls, and split the change in the gap into parts. In addition, compare the
    distribution of the score, the base rate, the performance (AUC or squared error) and the mean
    error of the score. Only numbers stored in the two audits are used.

    Parameters
    ----------
    audit, earlier
        Audits of different rows. If the rows are the same, an error is raised.

    Returns
    -------
    tuple of Change
        For each comparison: its `key` and `attribute`; the number `before` and `after`; the
        `interval` and `pvalue` of the difference; the p-value `adjusted` for the number of
        comparisons (Holm); and whether the number has `changed` and `improved`, according to the
        adjusted p-value and the `level`.

    Notes ----- The interval of a difference combines those of the two numbers (Zou and Donner,
    2008). Its lower end is

    .. math:: b - a - \sqrt{(b - b_-)^2 + (a_+ - a)^2}

    for numbers a and b with ends :math:`a_\pm` and :math:`b_\pm`; the upper end is analogous. For a
    gap, adding squared standard errors would not be enough: wrongly estimated signs hide more of a
    small gap than of a large one, and more with few rows than with many. The upper ends take that
    into account. The p-value is the level at which the interval just reaches 0; how far an end lies
    beyond the standard error does not depend on the level. Distributions are compared using the
    largest difference between their distribution functions (Kolmogorov and Smirnov). The values
    stored in the audits give only a lower bound on this difference, so the test is conservative.

    References
    ----------
    Zou and Donner (2008), *Construction of confidence limits about effect measures: a general
    approach*.

    Examples
    --------
    >>> from frhsic import audit
    >>> random = np.random.default_rng(0)
    >>> s = random.uniform(size=(2, 200))
    >>> old, new = (audit(k * a + random.standard_normal(200), a) for k, a in zip((0, 3), s))
    >>> [change.key for change in drift(new, old) if change.changed]
    ['gdp', 'curve', 'shape', 'score']
    """
    shared = [a.name for a in audit.attributes if a.name in {b.name for b in earlier.attributes}]
    if not shared:
        names = ", ".join(a.name for a in earlier.attributes)
        raise ValueError(
            f"the earlier audit covers {names}, but this audit covers none of these attributes."
            " Compare audits that share an attribute."
        )
    same = audit.subject.law == earlier.subject.law and all(
        audit[name].law == earlier[name].law for name in shared
    )
    files = [document.context.origin.get("data") for document in (audit, earlier)]
    if same or (files[0] is not None and files[0] == files[1]):
        raise ValueError(
            "both audits cover the same rows; pass an earlier audit of different rows, such as"
            " last month's."
        )
    changes = list(_changes(audit, earlier, shared))
    adjusted = holm([change.pvalue for change in changes])
    return tuple(replace(change, adjusted=pvalue) for change, pvalue in zip(changes, adjusted))


def since(audit: Audit, earlier: Audit, limit: LimitLike = None) -> Audit:
    """Return the audit with the changes since an earlier one. Limits given as shares refer to the
    earlier numbers.

    Examples
    --------
    >>> from frhsic import audit
    >>> from frhsic.auditing import Settings
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(20, 60, size=(2, 500))
    >>> quick = Settings(fast=True)
    >>> may = audit(0.5 + 0.1 * rng.normal(size=500), age[0], settings=quick)
    >>> june = audit(age[1] / 100 + 0.1 * rng.normal(size=500), age[1], settings=quick)
    >>> [change.key for change in since(june, may).drift if change.changed]
    ['gdp', 'curve', 'shape', 'score']
    """
    limits = parse_limits(limit, LIMITABLE)
    return replace(audit, drift=drift(audit, earlier), limits=check_limits(audit, limits, earlier))


def _changes(audit: Audit, earlier: Audit, shared: list[str]) -> Iterator[Change]:
    level = audit.subject.level
    for name in shared:
        before = earlier[name].all_rows.get("gdp")
        after = audit[name].all_rows.get("gdp")
        if before is not None and after is not None:
            yield difference("gdp", name, before, after, level)
        old = earlier[name].all_rows
        new = audit[name].all_rows
        if old.nodes is not None and new.nodes is not None:
            yield from split_change(old.nodes, new.nodes, name, level)
        if old.within and new.within and old.within.label == new.within.label:
            yield difference("within", name, old.within["gdp"], new.within["gdp"], level)
        yield _laws("attribute", name, earlier[name].law, audit[name].law, level)
    if earlier.subject.law is not None and audit.subject.law is not None:
        yield _laws("score", "", earlier.subject.law, audit.subject.law, level)
    rates = earlier.subject.base_rate, audit.subject.base_rate
    if rates[0] is not None and rates[1] is not None and audit.subject.target is not None:
        yield difference("base_rate", "", rates[0], rates[1], level)
    known = {quality.key: quality for quality in earlier.quality}
    for now in audit.quality:
        if now.key in WATCHED and now.key in known:
            yield difference(now.key, "", known[now.key].number, now.number, level)


def _laws(key: str, attribute: str, old: Law, new: Law, level: float) -> Change:
    at = np.union1d(old.values, new.values)
    (old_low, old_high), (new_low, new_high) = old.bounds(at), new.bounds(at)
    distance = max(float((old_low - new_high).max()), float((new_low - old_high).max()), 0.0)
    pvalue = float(kolmogorov(distance * math.sqrt(old.rows * new.rows / (old.rows + new.rows))))
    return Change(key, attribute, old.mean, new.mean, None, pvalue, level)
