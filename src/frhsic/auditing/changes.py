"""Whether a gap has changed since an earlier audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scipy.stats import norm

from frhsic.intervals import holm

if TYPE_CHECKING:
    from frhsic.auditing.results import Audit, Number


@dataclass(frozen=True)
class Drift:
    """Change of the average gap (GDP) along one attribute since an earlier audit of other rows.

    Attributes
    ----------
    attribute
        Name of the attribute.
    before, after
        GDP of the earlier audit and of this one.
    standard_error
        That of the difference: the root of the sum of the squared standard errors.
    low, high, confidence
        Interval of the difference.
    pvalue, adjusted_pvalue
        p-value of the hypothesis that both populations have the same gap, and adjusted for the number of attributes
        (Holm).
    """

    attribute: str
    before: float
    after: float
    standard_error: float
    low: float
    high: float
    confidence: float
    pvalue: float
    adjusted_pvalue: float

    @property
    def verdict(self) -> str:
        """``"grown"``, ``"shrunk"``, or ``"no change seen"`` at the level of the audit."""
        if self.adjusted_pvalue > 1 - self.confidence + 1e-12:
            return "no change seen"
        return "grown" if self.after > self.before else "shrunk"


def drift(audit: Audit, earlier: Audit) -> tuple[Drift, ...]:
    r"""Compare the gaps of two audits of independent rows, for each attribute that both hold.

    The interval of the difference joins those of the two gaps. Its lower end is

    .. math:: \mathrm{GDP}_2 - \mathrm{GDP}_1 - \sqrt{(\mathrm{GDP}_2 - l_2)^2 + (u_1 - \mathrm{GDP}_1)^2}

    with the lower end l and the upper end u of each, and its upper end likewise. An end that was cut off at 0 counts as
    far away as the standard error says. A sum of squared standard errors would not do: a small gap has a small one,
    and of two equal gaps the test would find too many different. The p-value is that of the interval that just leaves
    out 0. Close to zero the test rejects less often than its level says. Rows that are in both audits make the interval
    too wide.

    References
    ----------
    Zou and Donner (2008), *Construction of confidence limits about effect measures: a general approach*.

    Examples
    --------
    >>> import numpy as np
    >>> from frhsic import audit
    >>> random = np.random.default_rng(0)
    >>> s = random.uniform(size=(2, 200))
    >>> old, new = (audit(k * a + random.standard_normal(200), a) for k, a in zip((0, 3), s))
    >>> drift(new, old)[0].verdict
    'grown'
    """
    shared = [a.name for a in audit.attributes if a.name in {b.name for b in earlier.attributes}]
    if not shared:
        names = ", ".join(a.name for a in earlier.attributes)
        raise ValueError(f"the earlier audit is of {names}, and none of these is audited now.")
    changes = [_change(audit, earlier, name) for name in shared]
    adjusted = holm([change.pvalue for change in changes])
    return tuple(replace(change, adjusted_pvalue=pvalue) for change, pvalue in zip(changes, adjusted))


def _change(audit: Audit, earlier: Audit, name: str) -> Drift:
    new, old = (one[name].all_rows["gdp"] for one in (audit, earlier))
    if new.standard_error is None or old.standard_error is None:
        raise ValueError(f"an audit holds no standard error of the gap along {name}, so it cannot be compared.")
    difference, confidence = new.value - old.value, audit.subject.confidence
    z = float(norm.ppf((1 + confidence) / 2))
    (new_down, new_up), (old_down, old_up) = _reaches(new, audit), _reaches(old, earlier)
    down, up = math.hypot(new_down, old_up), math.hypot(new_up, old_down)
    reach = down if difference > 0 else up
    return Drift(
        name,
        old.value,
        new.value,
        math.hypot(new.standard_error, old.standard_error),
        difference - z * down,
        difference + z * up,
        confidence,
        pvalue := 2 * float(norm.sf(abs(difference) / reach)) if reach > 0 else float(difference == 0),
        pvalue,
    )


def _reaches(gap: Number, audit: Audit) -> tuple[float, float]:
    """Return how far the ends of an interval are from its number, as standard errors of a normal law."""
    assert gap.standard_error is not None
    if gap.interval is None:
        return gap.standard_error, gap.standard_error
    z = float(norm.ppf((1 + audit.subject.confidence) / 2))
    ends = (gap.value - gap.interval.low) / z, (gap.interval.high - gap.value) / z
    return max(gap.standard_error, ends[0]), max(gap.standard_error, ends[1])
