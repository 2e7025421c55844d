"""The certificates of an audit: each bound with its assumptions, and whether it is informative."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from frhsic.auditing.measures import Rows, Settings, Watch
from frhsic.auditing.results import CertificateRow
from frhsic.certificates import (
    Certificate,
    DeployedHead,
    Head,
    UnknownHead,
    VarianceShare,
    gdp_certificate,
    held_out_bound,
    localized_contrast,
)
from frhsic.formatting import plain
from frhsic.intervals import subsample
from frhsic.kernels import Gaussian, gaussian_at_median

SHARE = 0.95
"""Share of the variance of S in its feature space that the directions of the gap certificates keep."""
LEAST_ROWS = 100
"""Rows outside the subsample that the bandwidths of the population bound need at least."""


def certificates(rows: Rows, at: tuple[float, ...], settings: Settings, watch: Watch) -> Iterator[CertificateRow]:
    """Yield the certificates of one attribute on a subsample of the rows; none where the median distance is 0."""
    watch("certificates")
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(rows.z[chosen]), torch.from_numpy(rows.s[chosen])
    rest = np.setdiff1d(np.arange(rows.count), chosen)
    kernels, fixed = _gaussians(rows, chosen), _gaussians(rows, rest)
    if kernels is None:
        return
    kernel_z, kernel_s = kernels
    heads: dict[str, Head] = {"gap_of_every_head": UnknownHead()}
    if rows.scores is not None:
        heads = {"gap_of_these_scores": DeployedHead(torch.from_numpy(rows.scores[chosen]))} | heads
    for key, head in heads.items():
        gap = gdp_certificate(z, s, kernel_z=kernel_z, kernel_s=kernel_s, head=head, directions=VarianceShare(SHARE))
        share = float(gap.directions.eigenvalues.sum()) / gap.directions.total
        # a centred Gram matrix has one eigenvalue less than there are distinct values
        yield _row(key, gap, *kernels, share=share, all_directions=len(np.unique(rows.s[chosen], axis=0)) - 1)
    if fixed is not None:  # the bound needs bandwidths from rows that it does not use
        yield _row("population_hsic", held_out_bound(z, s, *fixed, delta=1 - settings.confidence), *fixed)
    for value in at:
        try:
            contrast = localized_contrast(z, s, value, kernel_z=kernel_z, kernel_s=kernel_s)
        except ValueError:  # so far from every row that all weights are zero
            continue
        yield _row(f"contrast_at_{plain(value)}", contrast, *kernels, at=float(value))


def _gaussians(rows: Rows, chosen: np.ndarray) -> tuple[Gaussian, Gaussian] | None:
    """Return Gaussians at the median distances of z and s; None where one is 0 or rows are few."""
    if len(chosen) < min(LEAST_ROWS, rows.count):
        return None
    try:
        return (
            gaussian_at_median(rows.z[chosen], name=rows.z_name),
            gaussian_at_median(rows.s[chosen], name=rows.s_name),
        )
    except ValueError:
        return None


def _row(
    key: str, certificate: Certificate, kernel_z: Gaussian, kernel_s: Gaussian, **settings: float
) -> CertificateRow:
    """Return a certificate as plain values: roots, as all but the bound on HSIC are bounds on squares."""
    details = {name: value for name, value in certificate.details.items() if isinstance(value, (int, float))}
    settings |= {"bandwidth_z": float(kernel_z.bandwidth), "bandwidth_s": float(kernel_s.bandwidth)}
    scaled = float if key == "population_hsic" else math.sqrt
    observed = details["hsic"] if certificate.bounded is None else certificate.bounded
    return CertificateRow(
        key=key,
        value=scaled(certificate.value) if math.isfinite(certificate.value) else None,
        assumes=certificate.assumes,
        vacuous=certificate.vacuous,
        rows=int(details["n"]),
        observed=scaled(max(observed, 0.0)),
        confidence=certificate.confidence if certificate.confidence < 1 else None,
        trivial=scaled(certificate.trivial or 0.0) if certificate.vacuous else None,
        trivial_because=certificate.trivial_because,
        settings={name: value for name, value in {**details, **settings}.items() if math.isfinite(value)},
    )
