"""Large data on a Dask cluster or in parts: audits, scoring and HSIC for data larger than memory,
and training on rows that fit into the combined memory of the workers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from frhsic._lazy import lazy_attributes
from frhsic.distributed.frames import cluster
from frhsic.distributed.running import audit

if TYPE_CHECKING:
    from frhsic.distributed.features import hsic_of_parts
    from frhsic.distributed.fitting import fit
    from frhsic.distributed.predicting import predict

__all__ = ["audit", "cluster", "fit", "hsic_of_parts", "predict"]

__getattr__, __dir__ = lazy_attributes(
    __name__, {"fit": "fitting", "hsic_of_parts": "features", "predict": "predicting"}
)
