"""Measures of dependence between a representation and a sensitive attribute."""

from frhsic.dependence.exact import hsic, hsic_summed, hsic_unbiased, minority_weights

__all__ = ["hsic", "hsic_summed", "hsic_unbiased", "minority_weights"]
