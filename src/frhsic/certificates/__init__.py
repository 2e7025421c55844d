"""What may be claimed, with what it assumes: bounds that HSIC gives on gaps, conditional laws and the population."""

from frhsic.certificates.certificate import Certificate
from frhsic.certificates.gap import gdp_certificate
from frhsic.certificates.population import held_out_bound

__all__ = ["Certificate", "gdp_certificate", "held_out_bound"]
