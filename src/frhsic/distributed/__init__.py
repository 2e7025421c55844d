"""Data past one machine: audits and HSIC of data in parts, on a Dask cluster or out of
memory.
"""

from frhsic.distributed.frames import cluster
from frhsic.distributed.running import audit, hsic_of_parts

__all__ = ["audit", "cluster", "hsic_of_parts"]
