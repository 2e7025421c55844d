"""The theory of the paper as certificates: its identities and bounds, each computed with both sides."""

from frhsic_paper.theory.causal import causal_necessity
from frhsic_paper.theory.contrasts import bilinear_contrast, fixed_head_contrast, localized_contrast, smoothed_contrast
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
from frhsic_paper.theory.heads import AffineHead, DeployedHead, KernelExpansion
from frhsic_paper.theory.uniform import (
    LinearEncoders,
    MLPEncoders,
    SingleEncoder,
    feature_lipschitz,
    train_to_population,
    train_to_test,
    uniform_bound,
    unseen_gap_bound,
)

__all__ = [
    "AffineHead",
    "DeployedHead",
    "FiniteLaw",
    "KernelExpansion",
    "LinearEncoders",
    "MLPEncoders",
    "SingleEncoder",
    "bilinear_contrast",
    "causal_necessity",
    "conditional_gaps",
    "decomposable_identity",
    "discrete_identity",
    "disintegration_identity",
    "eipm_bound",
    "feature_lipschitz",
    "fixed_head_contrast",
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
