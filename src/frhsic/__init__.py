"""Representations independent of a continuous sensitive attribute."""

__version__ = "0.1.0"
