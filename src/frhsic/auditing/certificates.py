"""The certificates of an audit: each bound with its assumptions, and whether it is informative."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from frhsic.auditing.inputs import LEAST_ROWS, Rows
from frhsic.auditing.measures import Settings, audit_kernels, unit_columns
from frhsic.auditing.results import CertificateRow
from frhsic.certificates import Certificate, gdp_certificate, held_out_bound
from frhsic.certificates.directions import VarianceShare
from frhsic.intervals import subsample
from frhsic.kernels import Gaussian

SHARE = 0.95
"""Share of the variance of S in its feature space that the directions of the gap certificates keep."""
OTHER_ROWS = 100
"""Rows outside the subsample that the bandwidths of the population bound need at least."""


def certificates(rows: Rows, settings: Settings) -> Iterator[CertificateRow]:
    """Yield the certificates of one attribute on a subsample of the rows; none if z or s is constant there."""
    settings.tell("certificates")
    rows = rows.independent(settings.generator(8))
    if rows.count < LEAST_ROWS:
        return
    chosen = subsample(rows.count, settings.max_rows, settings.generator(1))
    z, s = torch.from_numpy(unit_columns(rows.z[chosen])), torch.from_numpy(rows.s[chosen])
    rest = np.setdiff1d(np.arange(rows.count), chosen)
    try:
        kernels = audit_kernels(z, s)[:2]
    except ValueError:
        return
    kernel_z, kernel_s = kernels
    heads = {} if rows.scores is None else {"gap_of_these_scores": rows.scores[chosen]}
    for key, scores in (heads | {"gap_of_every_head": None}).items():
        rule = VarianceShare(SHARE)
        gap = gdp_certificate(z, s, kernel_z=kernel_z, kernel_s=kernel_s, scores=scores, directions=rule)
        share = float(gap.directions.eigenvalues.sum()) / gap.directions.total
        # a centred Gram matrix has one eigenvalue less than there are distinct values
        yield _row(key, gap, *kernels, share=share, all_directions=len(np.unique(rows.s[chosen], axis=0)) - 1)
    if len(rest) >= OTHER_ROWS:  # the bound needs scales and bandwidths from rows that it does not use
        others = torch.from_numpy(unit_columns(rows.z[rest])), torch.from_numpy(rows.s[rest])
        with contextlib.suppress(ValueError):  # z or s is constant in the other rows
            fixed = audit_kernels(*others)[:2]
            scaled = unit_columns(rows.z[chosen], like=rows.z[rest])
            yield _row("population_hsic", held_out_bound(scaled, s, *fixed, delta=1 - settings.confidence), *fixed)


def _row(key: str, certificate: Certificate, kernel_z: Gaussian, kernel_s: Any, **settings: float) -> CertificateRow:
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
