"""Certificates of an audit as rows: the bound, what it assumes, and whether it says anything."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import torch

from frhsic.auditing._format import figure, percent, plain
from frhsic.auditing.measures import Rows, Settings
from frhsic.auditing.resampling import subsample
from frhsic.auditing.results import CertificateRow
from frhsic.certificates import (
    Certificate,
    DeployedHead,
    VarianceShare,
    gdp_certificate,
    held_out_bound,
    localized_contrast,
)
from frhsic.kernels import gaussian_at_median

__all__ = ["certificates"]

SHARE = 0.95
"""Share of the variance of S in its feature space that the directions of the gap certificates keep."""


def certificates(
    rows: Rows, at: tuple[float, ...], settings: Settings, tell: Callable[[str], None]
) -> tuple[CertificateRow, ...]:
    """Return the certificates for one attribute on a subsample of the rows; none where no kernel can be scaled."""
    tell("certificates")
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(rows.z[chosen]), torch.from_numpy(rows.s[chosen])
    rest = np.setdiff1d(np.arange(rows.count), chosen)
    try:
        kernel_z, kernel_s = gaussian_at_median(z, name=rows.z_said), gaussian_at_median(s, name=rows.s_said)
    except ValueError:
        return ()
    found: list[CertificateRow] = []
    rule = VarianceShare(SHARE)
    if rows.scores is not None:
        head = DeployedHead(torch.from_numpy(rows.scores[chosen]))
        one = gdp_certificate(z, s, kernel_z=kernel_z, kernel_s=kernel_s, head=head, directions=rule)
        found.append(
            _row(
                "gap_of_these_scores",
                f"Gap of {rows.f_said}",
                one,
                len(z),
                f"On these rows the root mean square gap of {rows.f_said} along {rows.s_said} is at most "
                f"{figure(math.sqrt(one.value))}.",
                root=True,
            )
        )
    every = gdp_certificate(z, s, kernel_z=kernel_z, kernel_s=kernel_s, directions=rule)
    found.append(
        _row(
            "gap_of_every_head",
            "Gap of every head of norm 1",
            every,
            len(z),
            f"No head of norm 1 in the kernel's space, whatever it is trained for, has a root mean square gap along "
            f"{rows.s_said} above {figure(math.sqrt(every.value))} on these rows.",
            root=True,
        )
    )
    if len(rest) >= 100:
        # bandwidths from rows that the bound does not use, as it asks
        fixed_z = gaussian_at_median(rows.z[rest], name=rows.z_said)
        fixed_s = gaussian_at_median(rows.s[rest], name=rows.s_said)
        population = held_out_bound(z, s, fixed_z, fixed_s, delta=1 - settings.level)
        observed = population.details["hsic"]
        assert isinstance(observed, float)
        found.append(
            _row(
                "population_hsic",
                "HSIC in the population",
                population,
                len(z),
                f"With probability {percent(population.confidence)} HSIC of the population that these rows were drawn "
                f"from is at most {figure(population.value)}.",
                observed=observed,
            )
        )
    for value in at:
        near = localized_contrast(z, s, value, kernel_z=kernel_z, kernel_s=kernel_s)
        found.append(
            _row(
                f"contrast_at_{plain(value)}",
                f"Law of {rows.z_said} near {plain(value)}",
                near,
                len(z),
                f"Near {rows.s_said} = {plain(value)} the smoothed kernel distance from the overall law is at most "
                f"{figure(math.sqrt(near.value))}.",
                root=True,
            )
        )
    return tuple(found)


def _row(
    key: str,
    label: str,
    found: Certificate,
    rows: int,
    sentence: str,
    *,
    root: bool = False,
    observed: float | None = None,
) -> CertificateRow:
    """A certificate as plain values; of a bound on a square, the root stands beside the root of what it bounds."""
    scale: Callable[[float], float] = math.sqrt if root else float
    observed = scale(max(found.bounded, 0.0)) if found.bounded is not None else observed
    if found.vacuous:
        sentence += (
            f" This says nothing: {figure(scale(found.trivial or 0.0))} holds anyway, because {found.trivial_because}."
        )
    return CertificateRow(
        key=key,
        label=label,
        value=scale(found.value) if math.isfinite(found.value) else None,
        sentence=sentence,
        assumes=found.assumes,
        vacuous=found.vacuous,
        rows=rows,
        observed=observed,
        confidence=found.confidence if found.confidence < 1 else None,
        settings={
            name: value
            for name, value in found.details.items()
            if isinstance(value, (int, float)) and math.isfinite(value)
        },
    )
