"""Saving and loading fitted models: one file, safetensors with a JSON header, nothing executed when it is read.

The header stands under the key "frhsic" of the file's metadata and holds the layout's number, versions, the estimator
and its parameters, the architecture, the columns with their scales and levels, the classes, and a SHA-256 checksum over
all of that and of the tensors. Any reader of safetensors can read it; :func:`describe` returns it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from frhsic.estimators import ParityClassifier, ParityEncoder, ParityRegressor
from frhsic.estimators.storage import header_of, read, restore

__all__ = ["describe", "load", "save"]

ESTIMATORS = {cls.__name__: cls for cls in (ParityClassifier, ParityEncoder, ParityRegressor)}


def save(model: ParityClassifier | ParityEncoder | ParityRegressor, path: str | Path) -> None:
    """Write a fitted model to one file, which is complete or not there.

    An encoder or a penalty of the user's own is named in the file, and its weights are kept, but its code is not: it
    has to be passed again to :func:`load`. A `random_state` that is a generator is written as the seed drawn from it.

    Examples
    --------
    >>> import tempfile
    >>> from frhsic.estimators import ParityRegressor
    >>> model = ParityRegressor(penalty_weight=0, epochs=1, random_state=0).fit([[0.0], [1.0]], [1.0, 3.0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/model.frhsic")
    ...     again = load(f"{folder}/model.frhsic")
    >>> bool((again.predict([[0.5]]) == model.predict([[0.5]])).all())
    True
    """
    if type(model).__name__ not in ESTIMATORS or not isinstance(model, ESTIMATORS[type(model).__name__]):
        raise TypeError(f"model is {type(model).__name__}; pass a fitted {', '.join(ESTIMATORS)}.")
    model.save(path)


def load(path: str | Path, *, encoder: Any = None, penalty: Any = None) -> Any:
    """Return the fitted model of a file, which predicts bit for bit what the saved one did on the same device.

    A file that was cut off, that is not one of ours, that a newer version has written, or whose checksum does not
    match is refused with the reason.

    Parameters
    ----------
    path
        What :func:`save` has written.
    encoder, penalty
        Needed where the model was made with an encoder or a penalty of the user's own: what was passed then.
    """
    header, tensors = read(path)
    if header["estimator"] not in ESTIMATORS:
        raise ValueError(f"{Path(path).name} holds a {header['estimator']!r}, which this version does not know.")
    made = ESTIMATORS[header["estimator"]]()
    restore(made, header, tensors, encoder=encoder, penalty=penalty)
    return made


def describe(path: str | Path) -> dict[str, Any]:
    """Return the header of a saved model, as plain dictionaries, without building the model."""
    return header_of(path)
