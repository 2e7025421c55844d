"""Training: M models (every λ × seed × split) advance in lock-step, and a single model is a fleet of one."""

from frhsic.fleet.bottleneck import Bottleneck, enough_rows
from frhsic.fleet.data import Member, TrainingData, grid
from frhsic.fleet.execution import Execution
from frhsic.fleet.progress import Tick
from frhsic.fleet.recipe import Recipe, Task, affine_head, mlp_encoder
from frhsic.fleet.result import DivergenceWarning, Fleet, History
from frhsic.fleet.training import train

__all__ = [
    "Bottleneck",
    "DivergenceWarning",
    "Execution",
    "Fleet",
    "History",
    "Member",
    "Recipe",
    "Task",
    "Tick",
    "TrainingData",
    "affine_head",
    "enough_rows",
    "grid",
    "mlp_encoder",
    "train",
]
