r"""The finite-sample bound on trained models: both sides, as published and as the theorem states them.

Part "sides" of the records, one for each model (and rule for the number m of directions, if corrected):

``dataset``, ``method``, ``weight``, ``repeat``   as in the part "models"
``hsic``         with bandwidth 1 on Z and the median on S, test rows
``rhs``          HSIC / λ̂
published: ``lambda_hat``, ``kept``; ``lhs_mean``, ``lhs_max`` over 64 anchors, of the variance over the full sample
corrected: ``rule`` ("1", "2", "5", "1e-3", "1e-6"), ``directions`` (m), ``lambda_hat``;
``lhs_mean``, ``lhs_max`` of the projected variance of the same anchors, ``trace`` and ``tight`` forms of the bound,
``trivial`` (a bound that holds for all data), all for heads of norm 1
"""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from frhsic.certificates import DirectionRule, NumericalRank, gdp_certificate
from frhsic.datasets import Split
from frhsic.dependence import hsic
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic_paper.catalogue import OWN, small_table
from frhsic_paper.grid import Grid, Splits, by_name
from frhsic_paper.models import Model, store_all
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record
from frhsic_paper.spectrum import spectrum
from frhsic_paper.steps import Measurement, Training, each

__all__ = ["MEASURE", "RULES", "TRAIN", "corrected_sides", "grid", "published_sides"]

ANCHORS = 64

PUBLISHED_CUT = 1e-6

RULES: dict[str, DirectionRule] = {
    "1": 1,
    "2": 2,
    "5": 5,
    "1e-3": NumericalRank(1e-3),
    "1e-6": NumericalRank(1e-6),
}
"""How many directions of S, fixed beforehand or by the size of their eigenvalues."""


def grid(protocol: Protocol) -> Grid:
    """Return the models whose bounds are computed."""
    return Grid(
        "bound",
        ("adult", "crime"),
        by_name("frhsic", OWN),
        (0.1, 1.0, 10.0, 100.0, 1000.0),
        1,
        Splits(scaling=protocol.scaling),
        source=partial(small_table, 1500),
    )


def sides(model: Model, split: Split, protocol: Protocol) -> list[Record]:
    """Return both sides on the test rows."""
    z = model.encode(split.test.x).to(torch.float64)
    return SIDES[protocol.name](z, split.test.s)


def published_sides(z: Tensor, s: Tensor) -> list[Record]:
    """Return both sides as published: variances over the whole sample, the eigenvalue from float32.

    Examples
    --------
    A representation that is constant: both sides are zero.

    >>> published_sides(torch.zeros(5, 2, dtype=torch.float64), torch.arange(5.0))[0]["rhs"]
    0.0
    """
    kernel_s = Gaussian(median_bandwidth(s, name="s"))
    eigenvalues = spectrum(s.to(torch.float32), float(kernel_s.bandwidth), PUBLISHED_CUT)
    dependence = float(hsic(z, s.to(z), Gaussian(1.0), kernel_s))
    variances = Gaussian(1.0)(z[:ANCHORS], z).var(1, correction=0)
    return [
        {
            "hsic": dependence,
            "lambda_hat": eigenvalues["smallest"],
            "kept": eigenvalues["kept"],
            "rhs": dependence / eigenvalues["smallest"],
            "lhs_mean": float(variances.mean()),
            "lhs_max": float(variances.max()),
        }
    ]


def corrected_sides(z: Tensor, s: Tensor) -> list[Record]:
    r"""Return both sides as the theorem has them: :math:`\|P_m \delta\|^2/n` of the same heads, for several m."""
    kernel_s = Gaussian(median_bandwidth(s, name="s"))
    heads = Gaussian(1.0)(z[:ANCHORS], z)
    rows = []
    for name, rule in RULES.items():
        certificate = gdp_certificate(z, s, kernel_z=Gaussian(1.0), kernel_s=kernel_s, directions=rule)
        gaps = [certificate.gap(scores) for scores in heads]
        details = certificate.details
        rows.append(
            {
                "rule": name,
                "directions": details["directions"],
                "hsic": details["hsic"],
                "lambda_hat": float(certificate.directions.eigenvalues[-1]),
                "rhs": details["published"],
                "trace": details["trace"],
                "tight": details["tight"],
                "trivial": certificate.trivial,
                "lhs_mean": sum(gaps) / len(gaps),
                "lhs_max": max(gaps),
            }
        )
    return rows


SIDES = {"published": published_sides, "corrected": corrected_sides}

TRAIN = Training(grid, (store_all,))

MEASURE = Measurement("bound", "sides", grid, dict.fromkeys(SIDES, each(sides)), (ANCHORS, PUBLISHED_CUT, RULES))
