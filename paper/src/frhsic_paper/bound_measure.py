r"""The finite-sample bound on trained models: both sides, as published and as the theorem states them.

Records (`bound-sides-{protocol}.jsonl`), one for each model of the experiment "bound" (and number m, if corrected):

``experiment``   "bound-sides"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``hsic``         with bandwidth 1 on Z and the median on S, test rows
``rhs``          HSIC / λ̂
published: ``lambda_hat``, ``kept``; ``lhs_mean``, ``lhs_max`` over 64 anchors, of the variance over the full sample
corrected: ``rule`` ("1", "2", "5", "1e-3", "1e-6"), ``directions`` (m), ``lambda_hat``;
``lhs_mean``, ``lhs_max`` of the projected variance of the same anchors, ``trace`` and ``tight`` forms of the bound,
``trivial`` (what holds whatever the data), all for heads of norm 1
"""

from __future__ import annotations

import torch
from torch import Tensor

from frhsic.certificates import DirectionRule, NumericalRank, gdp_certificate
from frhsic.dependence import hsic
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic_paper import keeping, records
from frhsic_paper.catalogue import grid_of
from frhsic_paper.keeping import Key
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.spectrum import spectrum

__all__ = ["GRID", "NAME", "RULES", "run"]

NAME = "bound-sides"

GRID = "bound"

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


def run(protocol: Protocol, options: Options) -> list[Record]:
    """Compute both sides for the kept models that are not in the records yet."""
    path, grid = options.file(NAME, protocol), options.applied(grid_of(GRID, protocol))
    published = protocol.name == "published"
    models = keeping.model_file(options.out, GRID, protocol.name)
    units: list[Unit] = list(keeping.kept(models, grid.datasets))
    sizes = dict.fromkeys(units, 1 if published else len(RULES))
    missing = [Key(*unit) for unit in records.resume(path, units, Key.of, sizes)]
    for data, splits, states in keeping.groups(grid, protocol, models, missing):
        found = []
        for key, state in states.items():
            part = splits[key.repeat].test
            z = keeping.encoded(state, part.x).to(torch.float64)
            sides = published_sides(z, part.s) if published else corrected_sides(z, part.s)
            shared = {"experiment": NAME, "protocol": protocol.name, **key._asdict()}
            found += [{**shared, **side} for side in sides]
        records.append(path, found)
        options.say(f"{protocol.name} {NAME} {data.name}: {len(states)} models")
    return records.read(path)


def published_sides(z: Tensor, s: Tensor) -> list[Record]:
    """Return both sides as published: variances over the whole sample, the eigenvalue from float32.

    Examples
    --------
    A representation that is constant: both sides are zero.

    >>> published_sides(torch.zeros(5, 2, dtype=torch.float64), torch.arange(5.0))[0]["rhs"]
    0.0
    """
    kernel_s = Gaussian(median_bandwidth(s, name="s"))
    found = spectrum(s.to(torch.float32), float(kernel_s.bandwidth), PUBLISHED_CUT)
    dependence = float(hsic(z, s.to(z), Gaussian(1.0), kernel_s))
    variances = Gaussian(1.0)(z[:ANCHORS], z).var(1, correction=0)
    return [
        {
            "hsic": dependence,
            "lambda_hat": found["smallest"],
            "kept": found["kept"],
            "rhs": dependence / found["smallest"],
            "lhs_mean": float(variances.mean()),
            "lhs_max": float(variances.max()),
        }
    ]


def corrected_sides(z: Tensor, s: Tensor) -> list[Record]:
    r"""Return both sides as the theorem has them: :math:`\|P_m \delta\|^2/n` of the same heads, for several m."""
    kernel_s = Gaussian(median_bandwidth(s, name="s"))
    heads = Gaussian(1.0)(z[:ANCHORS], z)
    found = []
    for name, rule in RULES.items():
        certificate = gdp_certificate(z, s, kernel_z=Gaussian(1.0), kernel_s=kernel_s, directions=rule)
        gaps = [certificate.gap(scores) for scores in heads]
        details = certificate.details
        found.append(
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
    return found
