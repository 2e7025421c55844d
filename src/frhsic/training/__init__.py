"""Training: M models (every λ × seed × split) advance in lock-step, and a single model is a fleet of one."""

from frhsic.training.bottleneck import Bottleneck, enough_rows
from frhsic.training.data import Member, TrainingData, grid
from frhsic.training.execution import Execution
from frhsic.training.loop import train
from frhsic.training.progress import Tick
from frhsic.training.recipe import Recipe, Task, affine_head, mlp_encoder
from frhsic.training.result import DivergenceWarning, Fleet, History

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
