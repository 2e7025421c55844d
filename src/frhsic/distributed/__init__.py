"""Data past one machine: audits, HSIC and training of data in parts, on a Dask cluster or out of
memory.
"""

from frhsic.distributed.frames import cluster
from frhsic.distributed.running import audit, hsic_of_parts
from frhsic.distributed.training import fit

__all__ = ["audit", "cluster", "fit", "hsic_of_parts"]
