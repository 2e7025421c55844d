"""Training: M models (every λ × seed × split) advance in lock-step, and a single model is a fleet of one."""

from frhsic.fleet.bottleneck import Bottleneck, enough_rows
from frhsic.fleet.data import Member, TrainingData, grid
from frhsic.fleet.networks import affine_head, mlp_encoder
from frhsic.fleet.progress import DivergenceWarning, Tick
from frhsic.fleet.result import Fleet, History
from frhsic.fleet.training import train

__all__ = [
    "Bottleneck",
    "DivergenceWarning",
    "Fleet",
    "History",
    "Member",
    "Tick",
    "TrainingData",
    "affine_head",
    "enough_rows",
    "grid",
    "mlp_encoder",
    "train",
]
