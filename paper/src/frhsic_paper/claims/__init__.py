"""Claims of the paper as data, each with a function that decides it from measured records."""

from frhsic_paper.claims import bounds, heads, rates, setting, tradeoff, variants
from frhsic_paper.claims.claim import Claim, Finding, Verdict

__all__ = ["CLAIMS", "Claim", "Finding", "Verdict"]

CLAIMS: tuple[Claim, ...] = (
    *rates.CLAIMS,
    *tradeoff.CLAIMS,
    *setting.CLAIMS,
    *heads.CLAIMS,
    *variants.CLAIMS,
    *bounds.CLAIMS,
)
"""All claims; the document puts each into the section of its experiment."""
