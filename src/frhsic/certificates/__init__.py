"""What may be claimed, with what it assumes: bounds that HSIC gives on gaps, conditional laws and the population."""

from frhsic.certificates.certificate import Certificate
from frhsic.certificates.contrasts import localized_contrast
from frhsic.certificates.directions import NumericalRank, VarianceShare
from frhsic.certificates.gap import GapCertificate, gdp_certificate
from frhsic.certificates.population import binned_gap_bound, held_out_bound

__all__ = [
    "Certificate",
    "GapCertificate",
    "NumericalRank",
    "VarianceShare",
    "binned_gap_bound",
    "gdp_certificate",
    "held_out_bound",
    "localized_contrast",
]
