"""The certificates of an audit: each bound with its assumptions, and whether it is informative."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import torch

from frhsic.auditing.measures import Rows, Settings, Watch, audit_kernels, unit_columns
from frhsic.auditing.results import CertificateRow
from frhsic.certificates import (
    Certificate,
    DeployedHead,
    VarianceShare,
    gdp_certificate,
    held_out_bound,
    localized_contrast,
)
from frhsic.formatting import plain
from frhsic.intervals import subsample

SHARE = 0.95
"""Share of the variance of S in its feature space that the directions of the gap certificates keep."""
LEAST_ROWS = 100
"""Rows outside the subsample that the bandwidths of the population bound need at least."""


def certificates(rows: Rows, at: tuple[float, ...], settings: Settings, watch: Watch) -> Iterator[CertificateRow]:
    """Yield the certificates of one attribute on a subsample of the rows; none where z is constant."""
    watch("certificates")
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(unit_columns(rows.z[chosen])), torch.from_numpy(rows.s[chosen])
    rest = np.setdiff1d(np.arange(rows.count), chosen)
    try:
        kernels = audit_kernels(z, s, rows, settings)
    except ValueError:
        return
    kernel_z, kernel_s = kernels.z, kernels.s
    rule = VarianceShare(SHARE)
    if rows.scores is not None:
        head = DeployedHead(torch.from_numpy(rows.scores[chosen]))
        gap = gdp_certificate(z, s, kernel_z=kernel_z, kernel_s=kernel_s, head=head, directions=rule)
        yield _row("gap_of_these_scores", gap, len(z), root=True)
    gap = gdp_certificate(z, s, kernel_z=kernel_z, kernel_s=kernel_s, directions=rule)
    yield _row("gap_of_every_head", gap, len(z), root=True)
    if len(rest) >= LEAST_ROWS:
        # the bound needs scales and bandwidths from rows that it does not use
        others = torch.from_numpy(unit_columns(rows.z[rest])), torch.from_numpy(rows.s[rest])
        fixed = audit_kernels(*others, rows, settings)
        scaled = unit_columns(rows.z[chosen], like=rows.z[rest])
        bound = held_out_bound(scaled, s, fixed.z, fixed.s, delta=1 - settings.confidence)
        observed = bound.details["hsic"]
        assert isinstance(observed, float)
        yield _row("population_hsic", bound, len(z), observed=observed)
    for value in at:
        contrast = localized_contrast(z, s, value, kernel_z=kernel_z, kernel_s=kernel_s)
        yield _row(f"contrast_at_{plain(value)}", contrast, len(z), root=True)


def _row(
    key: str, certificate: Certificate, rows: int, *, root: bool = False, observed: float | None = None
) -> CertificateRow:
    """Return a certificate as plain values; with `root`, the roots of a bound on a square and of what it bounds."""

    def scaled(value: float) -> float:
        return math.sqrt(value) if root else value

    return CertificateRow(
        key=key,
        value=scaled(certificate.value) if math.isfinite(certificate.value) else None,
        assumes=certificate.assumes,
        vacuous=certificate.vacuous,
        rows=rows,
        observed=observed if certificate.bounded is None else scaled(max(certificate.bounded, 0.0)),
        confidence=certificate.confidence if certificate.confidence < 1 else None,
        trivial=scaled(certificate.trivial or 0.0) if certificate.vacuous else None,
        trivial_because=certificate.trivial_because,
        settings={
            name: value
            for name, value in certificate.details.items()
            if isinstance(value, (int, float)) and math.isfinite(value)
        },
    )
