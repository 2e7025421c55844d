"""Checks before training: parameters, names of attributes, encoders and seeds."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.utils import check_random_state
from torch import nn

from frhsic import _arrays
from frhsic.estimators.ensemble import encoders_in
from frhsic.penalties import Penalty
from frhsic.penalty_names import penalty_named
from frhsic.tables import SuspiciousColumnWarning, TableEncoding
from frhsic.training import TrainingData
from frhsic.training.randomness import seeded
from frhsic.training.recipe import output_width

if TYPE_CHECKING:
    from frhsic.estimators.network import NetworkEstimator


def check_parameters(estimator: NetworkEstimator) -> None:
    """Raise if a parameter has a value that cannot be used."""
    _arrays.require_nonnegative(estimator.penalty_weight, "penalty_weight")
    if estimator.weight_decay is not None:
        _arrays.require_nonnegative(estimator.weight_decay, "weight_decay")
    if estimator.variance_floor is not None:
        _arrays.require_nonnegative(estimator.variance_floor, "variance_floor", below=1.0)
    if isinstance(estimator.epochs, str) and estimator.epochs != "auto":
        raise ValueError(f"epochs={estimator.epochs!r}; pass a number or 'auto'.")
    if estimator.early_stopping not in (False, True, "auto"):
        raise ValueError(f"early_stopping={estimator.early_stopping!r}; pass False, True or 'auto'.")
    _arrays.require_fraction(estimator.validation_fraction, "validation_fraction")
    _arrays.require_integer(estimator.n_iter_no_change, "n_iter_no_change")
    _arrays.require_integer(estimator.ensemble, "ensemble")
    if estimator.warm_start:
        check_continues(estimator)
    if isinstance(estimator.penalty, str):
        penalty_named(estimator.penalty)
    if estimator.handle_unknown not in ("error", "ignore"):
        raise ValueError(f"handle_unknown={estimator.handle_unknown!r}; pass 'error' or 'ignore'.")
    if estimator.scaling not in ("quantile", "robust", "range"):
        raise ValueError(f"scaling={estimator.scaling!r}; pass 'quantile', 'robust' or 'range'.")
    encoding = "TableEncoding.fit(table), or None"
    kinds: dict[str, tuple[Any, str]] = {
        "penalty": ((str, Penalty), "a name such as 'hsic', or an object of frhsic.penalties"),
        "feature_encoding": ((TableEncoding, type(None)), encoding),
        "sensitive_encoding": ((TableEncoding, type(None)), encoding),
        "encoder": ((Callable, type(None)), "a module, a function that makes one from the number of columns, or None"),
    }
    for name, (kind, pass_instead) in kinds.items():
        value = getattr(estimator, name)
        if not isinstance(value, kind):
            raise TypeError(f"{name} is {type(value).__name__}; pass {pass_instead}.")
    _arrays.resolve_device(estimator.device)


@contextmanager
def restored_on_failure(estimator: Any) -> Iterator[None]:
    """Leave an estimator as it was before, if what is done here fails."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def check_continues(estimator: NetworkEstimator) -> None:
    """Raise if an estimator cannot continue training: an ensemble is one model and does not keep its members apart."""
    members = max(estimator.ensemble, len(encoders_in(estimator.encoder_)) if hasattr(estimator, "encoder_") else 1)
    if members > 1:
        raise ValueError(
            f"an ensemble of {members} models cannot continue training from an earlier call: its members "
            "are joined into one model. Use fit with warm_start=False, or pass ensemble=1."
        )


def check_same_names(names: list[str], known: list[str]) -> None:
    """Raise if sensitive columns have other names, or another order, than in the first call, where both have names."""
    nameless = _arrays.column_names(None, "sensitive", len(known))
    if names != known and nameless not in (names, known):
        raise ValueError(
            f"sensitive_features are {', '.join(names)}; this model was fitted with {', '.join(known)}, in this order. "
            "Pass the same, or fit a fresh model."
        )


def warn_shared_columns(estimator: NetworkEstimator) -> None:
    """Warn if a column of X has the name of a sensitive attribute."""
    features, sensitive = (getattr(estimator, name, ()) for name in ("feature_names_in_", "sensitive_names_in_"))
    shared = [str(name) for name in sensitive if name in set(features)]
    if shared:
        names = ", ".join(map(repr, shared))
        warnings.warn(
            f"{names} is among the sensitive_features and still a column of X, so predictions need it and can use it. "
            "Drop it from X unless that is intended.",
            SuspiciousColumnWarning,
            stacklevel=6,
        )


def seed_of(random_state: Any) -> int:
    """Return a seed for a random state of any kind."""
    if isinstance(random_state, (np.random.Generator, torch.Generator)):
        return _arrays.seed_of(random_state) % 2**32
    if isinstance(random_state, (int, np.integer)) and not isinstance(random_state, bool):
        return _arrays.generator(int(random_state)).initial_seed()
    if random_state is None:
        return _arrays.generator(None).initial_seed() % 2**32
    return int(check_random_state(random_state).randint(2**31))


def later_seed(seed: int, call: int) -> int:
    """Return the seed of a later call, so that it sees other batches than the calls before it."""
    return int(np.random.SeedSequence([seed, call]).generate_state(1)[0])


def width_of(encoder: Callable[[], nn.Module], data: TrainingData) -> int:
    """Return the number of coordinates that an encoder gives; raise if it makes no module or does not fit the data."""
    with seeded():
        module = encoder()
    if not isinstance(module, nn.Module):
        raise TypeError(f"encoder made {type(module).__name__}; it must make a torch.nn.Module.")
    return output_width(copy.deepcopy(module).to(data.x.dtype), data)
