"""What must hold before anything is trained: parameters, names, targets, encoders and seeds."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import assert_all_finite, check_random_state
from sklearn.utils.validation import column_or_1d
from torch import Tensor, nn

from frhsic import _arrays
from frhsic.estimators.names import penalty_named
from frhsic.penalties import Penalty
from frhsic.tables import TableEncoding

if TYPE_CHECKING:
    from frhsic.estimators.base import ParityBase

__all__ = ["check_parameters", "check_same_names", "later_seed", "seed_of", "target_column", "width_of"]


def check_parameters(estimator: ParityBase) -> None:
    """Refuse what no training could use, before anything else is looked at."""
    weight = estimator.penalty_weight
    if isinstance(weight, bool) or not isinstance(weight, (int, float, np.number)) or not 0 <= weight < np.inf:
        raise ValueError(f"penalty_weight={weight!r}; pass a finite number, zero or more.")
    for name, below in (("weight_decay", np.inf), ("variance_floor", 1)):
        value = getattr(estimator, name)
        if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float, np.number))):
            raise TypeError(f"{name} is {type(value).__name__}; pass a number, zero or more, or None.")
        if value is not None and not 0 <= value < below:
            most = "finite" if below == np.inf else f"below {below}"
            raise ValueError(f"{name}={value!r}; pass a number that is zero or more and {most}, or None.")
    if not isinstance(estimator.penalty, (str, Penalty)):
        raise TypeError(
            f"penalty is {type(estimator.penalty).__name__}; pass a name such as 'hsic', or an object of "
            "frhsic.penalties."
        )
    if isinstance(estimator.penalty, str):
        penalty_named(estimator.penalty)
    if estimator.handle_unknown not in ("error", "ignore"):
        raise ValueError(f"handle_unknown={estimator.handle_unknown!r}; pass 'error' or 'ignore'.")
    for name in ("feature_encoding", "sensitive_encoding"):
        given = getattr(estimator, name)
        if given is not None and not isinstance(given, TableEncoding):
            raise TypeError(f"{name} is {type(given).__name__}; pass TableEncoding.fit(table), or None.")
    if estimator.encoder is not None and not callable(estimator.encoder):
        raise TypeError(
            f"encoder is {type(estimator.encoder).__name__}; pass a module, a function that makes one from the number "
            "of columns, or None."
        )
    _arrays.resolve_device(estimator.device)


def check_same_names(names: list[str], known: list[str]) -> None:
    """Refuse other sensitive columns than those of the first call, or these in another order, where both have names."""
    nameless = _arrays.column_names(None, "sensitive", len(known))
    if names != known and nameless not in (names, known):
        raise ValueError(
            f"sensitive_features are {', '.join(names)}; this model was fitted with {', '.join(known)}, in this order. "
            "Pass the same, or fit a fresh model."
        )


def target_column(estimator: ParityBase, y: Any) -> np.ndarray:
    """Return y as one column without missing values; scikit-learn's own checks, apart from those of X."""
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None.")
    values = column_or_1d(y, warn=True)
    assert_all_finite(values, input_name="y", estimator_name=type(estimator).__name__)
    if np.iscomplexobj(values):
        raise ValueError("Complex data not supported: y is complex; pass its real part.")
    return np.asarray(values)


def seed_of(random_state: Any) -> int:
    """Return the seed that a random state of any kind stands for."""
    if isinstance(random_state, (np.random.Generator, torch.Generator)):
        return _arrays.seed_of(random_state) % 2**32
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return _arrays.generator(int(random_state)).initial_seed()
    if random_state is None:
        return _arrays.generator(None).initial_seed() % 2**32
    return int(check_random_state(random_state).randint(2**31))


def later_seed(seed: int, call: int) -> int:
    """Return the seed of a later call: other batches than those of the calls before it."""
    return int(np.random.SeedSequence([seed, call]).generate_state(1)[0])


def width_of(encoder: Callable[[], nn.Module], columns: int) -> int:
    """Return how many coordinates an encoder gives rows of so many columns; raise if it does not take them."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        made = encoder()
        if not isinstance(made, nn.Module):
            raise TypeError(f"encoder made {type(made).__name__}; it must make a torch.nn.Module.")
        try:
            z: Tensor = copy.deepcopy(made).float().eval()(torch.zeros(2, columns))
        except RuntimeError as error:
            raise ValueError(f"the encoder does not take rows of {columns} columns: {error}") from error
    if z.ndim != 2 or len(z) != 2:
        raise ValueError(f"the encoder turned 2 rows into shape {tuple(z.shape)}; it must give (rows, size).")
    return int(z.shape[1])
