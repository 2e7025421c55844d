"""Boosted trees with a penalty on dependence: an objective for LightGBM and XGBoost, and two estimators."""

from frhsic.boosting.boosters import booster_from_text, booster_to_text
from frhsic.boosting.columns import TreeColumns
from frhsic.boosting.estimators import BoostedParityClassifier, BoostedParityRegressor
from frhsic.boosting.objective import ParityObjective, midranks, objective

__all__ = [
    "BoostedParityClassifier",
    "BoostedParityRegressor",
    "ParityObjective",
    "TreeColumns",
    "booster_from_text",
    "booster_to_text",
    "midranks",
    "objective",
]
