"""Measures of dependence between a representation and a sensitive attribute."""
