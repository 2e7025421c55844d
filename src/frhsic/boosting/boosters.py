"""LightGBM behind one door: import it when it is needed, write a booster as text, give it its base score and link."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from frhsic.boosting.model_text import checked_text
from frhsic.boosting.objective import Task

LINKS: dict[Task, str] = {"binary": "binary sigmoid:1", "regression": "regression"}
"""How the text of a LightGBM model names the link between raw scores and predictions."""


def lightgbm() -> ModuleType:
    """Return the module lightgbm, or raise an error that says what to install."""
    try:
        import lightgbm
    except (ImportError, OSError) as error:  # OSError: the package is there, its library cannot be loaded
        raise ImportError(
            f"boosted trees need LightGBM, which cannot be imported ({error}). Install it: pip install "
            "'frhsic[boosting]'. On macOS and some Linux images it also needs the OpenMP library (libomp, libgomp1)."
        ) from error
    return lightgbm


def booster_to_text(booster: Any) -> str:
    """Return a LightGBM booster in LightGBM's own text format."""
    return str(booster.model_to_string())


def booster_from_text(text: str) -> Any:
    """Return the LightGBM booster of a text that :func:`booster_to_text` has returned.

    The text may come from anyone: a ValueError says what is wrong before LightGBM reads it.
    """
    return lightgbm().Booster(model_str=checked_text(text))


def complete(booster: Any, task: Task, base_score: float, scale: float = 1.0) -> Any:
    """Return a booster that was trained with a custom objective with its base score, its scale and its link.

    Raw scores become base_score + scale · raw score: leaves are scaled, those of the first tree shifted as well, and
    the link is named in the header, as LightGBM does for its own objectives. The model then predicts as it should
    wherever it is loaded, also without this library.
    """
    for tree in booster.dump_model()["tree_info"]:
        index = int(tree["tree_index"])
        shift = base_score if index == 0 else 0.0
        for leaf in range(int(tree["num_leaves"])):
            booster.set_leaf_output(index, leaf, scale * booster.get_leaf_output(index, leaf) + shift)
    header, first_tree, rest = booster_to_text(booster).partition("\nTree=0\n")
    lines = [line for line in header.split("\n") if not line.startswith("objective=")]
    at = next(i for i, line in enumerate(lines) if line.startswith("feature_names="))
    lines.insert(at, f"objective={LINKS[task]}")
    return lightgbm().Booster(model_str="\n".join(lines) + first_tree + rest)
