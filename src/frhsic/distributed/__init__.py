"""Data past one machine: audits, HSIC and training of data in parts, on a Dask cluster or out of memory."""

from frhsic.distributed.cluster import cluster
from frhsic.distributed.parts import hsic_of_frame, hsic_of_parts
from frhsic.distributed.running import audit

__all__ = ["audit", "cluster", "hsic_of_frame", "hsic_of_parts"]
