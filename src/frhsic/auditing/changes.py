"""Whether a gap has changed since an earlier audit."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from scipy.stats import norm

from frhsic.intervals import holm

if TYPE_CHECKING:
    from frhsic.auditing.results import Audit


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
        p-value of the hypothesis that both populations have the same gap, by the normal law, and adjusted for the
        number of attributes (Holm).
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

    .. math:: \frac{\mathrm{GDP}_2 - \mathrm{GDP}_1}{\sqrt{\mathrm{se}_1^2 + \mathrm{se}_2^2}}

    is about standard normal when both populations have the same gap and it is not close to zero. Close to zero the
    test rejects less often than its level says. Rows that are in both audits make the standard error too large.

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
    error, difference = math.hypot(new.standard_error, old.standard_error), new.value - old.value
    confidence = audit.subject.confidence
    reach = float(norm.ppf((1 + confidence) / 2)) * error
    pvalue = 2 * float(norm.sf(abs(difference) / error)) if error > 0 else float(difference == 0)
    return Drift(name, old.value, new.value, error, difference - reach, difference + reach, confidence, pvalue, pvalue)
