"""The paper's theory as certificates: its identities and bounds, with both sides of each."""

from frhsic_paper.theory.contrasts import KernelExpansion, localized_contrast, smoothed_contrast
from frhsic_paper.theory.correlation import khgr_bound
from frhsic_paper.theory.encoders import (
    LinearEncoders,
    MLPEncoders,
    feature_lipschitz,
    train_to_population,
    uniform_bound,
)
from frhsic_paper.theory.expected_mmd import causal_necessity, eipm_bound
from frhsic_paper.theory.finite import FiniteLaw
from frhsic_paper.theory.identities import (
    decomposable_identity,
    discrete_identity,
    disintegration_identity,
)
from frhsic_paper.theory.spectral import population_gdp, spectral_equivalence

__all__ = [
    "FiniteLaw",
    "KernelExpansion",
    "LinearEncoders",
    "MLPEncoders",
    "causal_necessity",
    "decomposable_identity",
    "discrete_identity",
    "disintegration_identity",
    "eipm_bound",
    "feature_lipschitz",
    "khgr_bound",
    "localized_contrast",
    "population_gdp",
    "smoothed_contrast",
    "spectral_equivalence",
    "train_to_population",
    "uniform_bound",
]
