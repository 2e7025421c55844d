"""The theory of the paper as certificates: its identities and bounds, each computed with both sides."""

from frhsic_paper.theory.causal import causal_necessity
from frhsic_paper.theory.contrasts import KernelExpansion, localized_contrast, smoothed_contrast
from frhsic_paper.theory.equivalence import (
    conditional_gaps,
    decomposable_identity,
    discrete_identity,
    disintegration_identity,
    eipm_bound,
    khgr_bound,
    population_gdp,
    spectral_equivalence,
)
from frhsic_paper.theory.finite import FiniteLaw
from frhsic_paper.theory.uniform import (
    LinearEncoders,
    MLPEncoders,
    SingleEncoder,
    feature_lipschitz,
    train_to_population,
    uniform_bound,
)

__all__ = [
    "FiniteLaw",
    "KernelExpansion",
    "LinearEncoders",
    "MLPEncoders",
    "SingleEncoder",
    "causal_necessity",
    "conditional_gaps",
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
