"""The sweep over weights on the five datasets, which most studies read."""

from __future__ import annotations

from frhsic_paper.catalogue import OWN
from frhsic_paper.grid import Grid, Splits, by_name
from frhsic_paper.information import measure_information
from frhsic_paper.models import store_chosen
from frhsic_paper.protocol import DATASETS, METHODS, PAPER_WEIGHTS, Protocol
from frhsic_paper.steps import Training

__all__ = ["TRAIN", "grid"]

SWEEPS: dict[str, tuple[tuple[str, ...], int]] = {"published": (METHODS, 5), "corrected": ((*METHODS, OWN), 20)}
"""Methods and repeats."""

CHOSEN_REPEATS = 3
"""Repeats whose chosen models are stored, for the measurements of what is left in Z."""


def grid(protocol: Protocol) -> Grid:
    """Return the sweep."""
    methods, repeats = SWEEPS[protocol.name]
    splits = Splits(validation=protocol.validation)
    return Grid("tradeoff", DATASETS, by_name(*methods), PAPER_WEIGHTS, repeats, splits)


TRAIN = Training(grid, (measure_information, store_chosen(CHOSEN_REPEATS)))
