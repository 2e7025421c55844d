"""Training of M models (every λ × seed × split) in lock-step; a single model is a fleet with one
member.
"""

from frhsic._lazy import missing_module

try:
    from frhsic.training.data import Member, TrainingData, grid
    from frhsic.training.loop import train
    from frhsic.training.recipe import MLP, Recipe, Training
    from frhsic.training.result import Fleet
except ModuleNotFoundError as error:
    raise missing_module("frhsic.training", error) from error

__all__ = ["MLP", "Fleet", "Member", "Recipe", "Training", "TrainingData", "grid", "train"]
