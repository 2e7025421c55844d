"""What may be claimed, with what it assumes: bounds that HSIC gives on gaps, conditional laws and the population."""

from frhsic.certificates.binned import binned_gap_bound
from frhsic.certificates.causal import causal_necessity
from frhsic.certificates.certificate import Certificate
from frhsic.certificates.concentration import (
    feature_lipschitz,
    held_out_bound,
    train_to_population,
    train_to_test,
    uniform_bound,
    unseen_gap_bound,
)
from frhsic.certificates.contrasts import (
    bilinear_contrast,
    fixed_head_contrast,
    localized_contrast,
    smoothed_contrast,
)
from frhsic.certificates.directions import DirectionRule, NumericalRank, SensitiveDirections, VarianceShare
from frhsic.certificates.encoders import LinearEncoders, MLPEncoders, SingleEncoder
from frhsic.certificates.equivalence import (
    conditional_gaps,
    decomposable_identity,
    discrete_identity,
    disintegration_identity,
    eipm_bound,
    population_gdp,
    spectral_equivalence,
)
from frhsic.certificates.finite import FiniteLaw
from frhsic.certificates.gap import GapCertificate, gdp_certificate
from frhsic.certificates.heads import AffineHead, DeployedHead, Head, KernelExpansion, UnknownHead
from frhsic.certificates.khgr import khgr_bound

__all__ = [
    "AffineHead",
    "Certificate",
    "DeployedHead",
    "DirectionRule",
    "FiniteLaw",
    "GapCertificate",
    "Head",
    "KernelExpansion",
    "LinearEncoders",
    "MLPEncoders",
    "NumericalRank",
    "SensitiveDirections",
    "SingleEncoder",
    "UnknownHead",
    "VarianceShare",
    "bilinear_contrast",
    "binned_gap_bound",
    "causal_necessity",
    "conditional_gaps",
    "decomposable_identity",
    "discrete_identity",
    "disintegration_identity",
    "eipm_bound",
    "feature_lipschitz",
    "fixed_head_contrast",
    "gdp_certificate",
    "held_out_bound",
    "khgr_bound",
    "localized_contrast",
    "population_gdp",
    "smoothed_contrast",
    "spectral_equivalence",
    "train_to_population",
    "train_to_test",
    "uniform_bound",
    "unseen_gap_bound",
]
