"""Rounding in FREM: why its published runs stop short of a constant model at large weights.

    FRHSIC_DATA=... python benchmarks/frem_rounding.py [--dataset compas] [--weights 50,100,500]

Trains FREM under the published protocol twice: with the distance as one quadratic form, as in this library, and as the
difference of three sums of order one, as in the published code. Measured (accuracy / GDP of raw outputs):

    COMPAS  λ = 100   one form .5529 / .0033   three sums .6228 / .0330   published GDP .0312
    Adult   λ = 500   one form .7583 / .0000   three sums .8086 / .0464   published .7955 / .0352
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor

from frhsic.penalties import EIPM, conditional
from frhsic.training import Recipe, grid, train
from frhsic_paper.grid import FIRST_SEED, Splits, loaded, training_data
from frhsic_paper.measures import measured
from frhsic_paper.protocol import PUBLISHED


def three_sums(k: Tensor, weights: Tensor, *, floor: float = 0.0) -> Tensor:
    """Return the mean distance as the published code computes it."""
    uniform = torch.full((k.shape[-1],), 1 / k.shape[-1], dtype=k.dtype, device=k.device)
    own = weights @ k
    squares = (own * weights).sum(-1) - 2 * (own @ uniform) + uniform @ k @ uniform
    return squares.clamp_min(floor).sqrt().mean(-1)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--dataset", default="compas")
    parser.add_argument("--weights", default="50,100,500")
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--rows", type=int, default=None, help="take the first rows alone")
    arguments = parser.parse_args(argv)
    weights = [float(weight) for weight in arguments.weights.split(",")]
    data = loaded(arguments.dataset, PUBLISHED)
    data = data.take(range(data.n)[: arguments.rows])
    count = arguments.splits
    splits = Splits(validation=PUBLISHED.validation).of(data, count)
    members = grid(weights, range(FIRST_SEED, FIRST_SEED + count), range(count))
    recipe = Recipe(data.task, EIPM, epochs=arguments.epochs)
    for name, distance in (("one form", conditional.eipm_from_gram), ("three sums", three_sums)):
        with patch.object(conditional, "eipm_from_gram", distance):
            fleet = train(training_data(splits), members, recipe, device="cpu")
        records = measured(fleet, splits, data.task)
        for weight in weights:
            own = [records[i] for i, member in enumerate(members) if member.weight == weight]
            performance, gdp = (np.array([r[c] for r in own]) for c in ("performance", "gdp_logit_uniform"))
            print(
                f"{arguments.dataset}  λ = {weight:g}  {name:10s}  performance {performance.mean():.4f} ± "
                f"{performance.std():.4f}  GDP {gdp.mean():.4f} ± {gdp.std():.4f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
