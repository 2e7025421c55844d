"""The library's solved models: what each is made of, and whether what was read fits together.

To save another class, add it to `SOLVED` with a `SavedParts`, and its fitted attributes to `own` in
`listed.toml` and, with what they may be, to `[attributes]`, where its `models` stand, too. A
dataclass among them belongs into `[data]` there. Networks are in
`networks.py`, which needs torch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from frhsic.estimators import ParityClassifier, ParityCoupling, ParityEncoder, ParityRegressor
from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.coding import TreeTable
from frhsic.estimators.coupling import DensityRatio
from frhsic.estimators.families import ClassScores
from frhsic.estimators.known import ConditionalLaw
from frhsic.estimators.parity import ParityEstimator
from frhsic.persistence.rules import require
from frhsic.persistence.values import from_json, to_json

Arrays = dict[str, np.ndarray]

# Bytes of the levels of a coupling's columns, of which Python takes about twenty times as much
MOST_LEVEL_BYTES = 2**24

COLUMN_TYPE = re.compile(
    r"category|object|str|string(\[\w+\])?|bool(ean)?|([Uu]?[Ii]nt|[Ff]loat)\d\d?"
    r"|(datetime|timedelta)64\[[mun]?s(, [A-Z][\w+:/-]*)?\]"
)
"""Types of the columns of a coupling, by their names in pandas."""


@dataclass(frozen=True)
class SavedParts:
    """How models are written, beside their parameters and plain attributes.

    `complete` checks that what was read fits together, and builds what is left from the arrays,
    which `arrays` returns. `models` names parameters and fitted attributes that hold models.
    """

    complete: Callable[[Any, Arrays], None]
    models: Collection[str] = ()
    arrays: Callable[[Any], Arrays] = lambda model: {}


def _check_basis(basis: SensitiveBasis) -> None:
    """Check that each cell of S has its start, its mass and its values."""
    require(basis.values.ndim == 2, "a basis is no basis")
    same = len(basis.starts) == len(basis.mass) == len(basis.values) > 0
    require(same, "a basis is no basis")
    finite = all(np.isfinite(numbers).all() for numbers in vars(basis).values())
    require(finite, "a basis is no basis")


def _is_sound_law(law: ConditionalLaw) -> bool:
    """Return whether the law of a score given S has a number for each node and score."""
    points = len(law.scores)
    shapes = law.shares.shape == (len(law.starts), points) and law.pooled.shape == (points,)
    finite = all(np.isfinite(numbers).all() for numbers in vars(law).values())
    return shapes and finite and law.shares.size > 0


def _check_frontier(model: Any, trade_offs: int) -> None:
    """Check that a model can say all of its trade-offs, and that it has the chosen one."""
    require(len(model.frontier_.to_frame().astype(float)) == trade_offs, "its trade-offs differ")
    require(0 <= model.choice_.position <= trade_offs - 1, "its trade-offs differ")
    str(model.choice_)


# The closed form


def _complete_parity(model: ParityEstimator, arrays: Arrays) -> None:
    """Check that models, coefficients and trade-offs of a file belong together."""
    given = not hasattr(model, "models_")
    if given:
        model.models_ = [model.estimator]
    model._check()
    solution = model.solution_
    frontier = model.frontier_
    choice = model.choice_
    if solution is None:
        require(
            frontier is None and choice is None and len(model.models_) == 1,
            "it has no coefficients",
        )
        return
    assert frontier is not None
    assert choice is not None
    attributes = len(model.sensitive_names_in_)
    width = 0
    for one in solution.constraints:
        _check_basis(one.basis)
        require(0 <= one.attribute < attributes, "a basis is no basis")
        require(0 < one.rate <= 1, "a basis is no basis")
        one.curve(np.zeros((2, attributes)), np.arange(2.0), np.ones(2))
        width += one.basis.values.shape[1]  # no more than the numbers that are there
    trade_offs, folds, _ = solution.parameters.shape
    require(
        solution.family == model._family() and trade_offs > 1 and solution.units.scale > 0,
        "its coefficients differ",
    )
    require(
        len(solution.laws) == (folds if solution.family.knows_s else 0)
        and all(map(_is_sound_law, solution.laws)),
        "its coefficients differ",
    )
    _check_frontier(model, solution.places)
    # what it would predict of a row, and what it says of every trade-off, can be computed
    eta = np.full((1, len(model.classes_)) if solution.family == ClassScores() else 1, 0.5)
    means = np.zeros((1, width))
    s = np.zeros((1, attributes))
    numbers = [solution.scores(choice.position, fold, eta, means, s) for fold in range(folds)]
    require(
        all(np.isfinite(values).all() for values in [solution.parameters, *numbers]),
        "a coefficient is not a finite number",
    )
    frontier.choose(None, True)  # it can be chosen from
    fitted = 0 if model.uses_sensitive else attributes
    require(len(model.models_) == (1 if given else folds), "it has a model too many or too few")
    require(
        list(map(len, model.attribute_models_)) == [fitted] * folds,
        "it has models of S too many or too few",
    )


# The encoder


def _encoder_arrays(model: ParityEncoder) -> Arrays:
    return {"repeated": model.repeated_.view(np.int64), "choices": model.choices_}


def _complete_encoder(model: ParityEncoder, arrays: Arrays) -> None:
    """Check that models, prototypes and trade-offs of a file belong together."""
    if not hasattr(model, "models_"):
        model.models_ = [[model.estimator]]
    model._validate_params()
    model.repeated_ = arrays["repeated"].view(np.uint64)
    model.choices_ = arrays["choices"]
    solution = model.solution_
    trade_offs = len(solution.path)
    _check_frontier(model, trade_offs)
    require(
        trade_offs == len(solution.coordinates) == len(solution.tables) > 0,
        "its trade-offs differ",
    )
    require(len(solution.bases) == len(model.sensitive_names_in_), "its attributes differ")
    require(len(solution.bases) == len(solution.directions), "its attributes differ")
    functions = 0
    for basis, directions in zip(solution.bases, solution.directions):
        _check_basis(basis)
        sound = directions.ndim == 2 and len(directions) == basis.values.shape[1]
        require(sound and np.isfinite(directions).all(), "a basis is no basis")
        functions += directions.shape[1]
    width = sum(target.width for target in solution.targets)
    require(width > 0, "it keeps no target")
    repeated = len(model.repeated_)
    require(model.choices_.shape == (trade_offs, repeated), "its rows differ in number")
    for prototypes, columns, table, chosen in zip(
        solution.path, solution.coordinates, solution.tables, model.choices_
    ):
        count = len(prototypes.mass)
        # what it would choose for a row can be computed
        distances = prototypes.distances(np.full((1, width), 0.5))
        costs = prototypes.costs(distances, np.zeros((1, functions)))
        require(costs.shape == (count, 1) and np.isfinite(costs).all(), "a prototype is none")
        sound = all(values.shape == (count,) for values in columns.values())
        require(sound and columns.keys() == solution.coordinates[0].keys(), "other coordinates")
        require(all(len(values) == count for values in table.values()), "other prototypes")
        require(((chosen >= 0) & (chosen < count)).all(), "other prototypes")
    folds = {len(model.models_), len(model.attribute_models_)}
    require(len(folds - {1}) <= 1, "it has models too many or too few")
    targets = {len(models) for models in model.models_}
    require(targets == {len(solution.targets)}, "it has models of y too many or too few")
    attributes = 0 if model.uses_sensitive else len(solution.bases)
    own = {len(models) for models in model.attribute_models_}
    require(own == {attributes}, "it has models of S too many or too few")


# The coupling


def _coupling_arrays(model: ParityCoupling) -> Arrays:
    if not len(model.sensitive_names_in_):
        return {}
    return {
        **_columns(model._table),
        "identity": model._identity.view(np.int64),
        "release": model._release,
    }


def _complete_coupling(model: ParityCoupling, arrays: Arrays) -> None:
    """Give a coupling the rows that it hands out."""
    if not len(model.sensitive_names_in_):
        return
    n = len(arrays["identity"])
    table = _table(arrays, n)
    require(
        table.shape[1] == model.n_features_in_ and len(model.models_) == model.cv,
        "its columns or models differ",
    )
    require(
        all(arrays[name].shape == (n,) for name in ("identity", "release")),
        "its rows differ in number",
    )
    _check_ratio(model.ratio_, n, len(model.sensitive_names_in_))
    require(0 <= model.move_cost_ < np.inf, "its cost is no number")
    _require_places(arrays["release"], n)
    names = getattr(model, "feature_names_in_", None)
    model._table = table.set_axis(range(table.shape[1]) if names is None else names, axis=1)
    model._encoder = TreeTable().fit(model._table)
    model._release = arrays["release"]
    model._identity = arrays["identity"].view(np.uint64)


def _check_ratio(ratio: DensityRatio, rows: int, attributes: int) -> None:
    """Check that the functions of S are those of nodes that exist, at most one for each row."""
    basis = ratio.basis
    nodes, functions = basis.values.shape
    require(len(basis.parts) == len(basis.groups) == attributes, "its attributes differ")
    require(basis.mass.shape == ratio.scale.shape == (nodes,) and nodes <= rows, "other nodes")
    _require_places(basis.places, nodes)
    for part, group, size in zip(basis.parts, basis.groups, basis.places.shape, strict=True):
        require(group.shape == part.mass.shape == part.starts.shape, "other nodes")
        _require_places(group, size)
    ratio.node_ratios(np.zeros((1, functions)), basis.node(np.zeros((1, attributes))))


def _require_places(values: np.ndarray, end: int) -> None:
    require(values.dtype.kind == "i" and values.size, "other nodes")
    require(((values >= 0) & (values < end)).all(), "other nodes")


def _columns(table: pd.DataFrame) -> Arrays:
    """Return the columns of a table as numbers, and their types and levels as JSON."""
    arrays = {}
    types = []
    for j in range(table.shape[1]):
        column = table.iloc[:, j]
        values: Any = column
        levels = None
        ordered = None
        if isinstance(column.dtype, pd.CategoricalDtype):
            values = column.cat.codes
            levels = column.cat.categories
            ordered = bool(column.cat.ordered)
        elif column.dtype.kind in "mM":  # dates and durations
            values = column.astype("int64")
        elif column.dtype == object or not isinstance(column.dtype, np.dtype):
            values, levels = pd.factorize(column)
        arrays[f"column {j}"] = np.array(values)
        known = None if levels is None else to_json(np.array(levels, object))
        types.append([str(column.dtype), known, ordered])
    return arrays | {"types": np.frombuffer(json.dumps(types).encode(), dtype=np.uint8).copy()}


def _table(arrays: Mapping[str, np.ndarray], rows: int) -> pd.DataFrame:
    """Return the table that :func:`_columns` has written."""
    columns = {}
    require(len(arrays["types"]) <= MOST_LEVEL_BYTES, "columns of too many levels")
    for j, (dtype, levels, ordered) in enumerate(json.loads(arrays["types"].tobytes())):
        values = arrays[f"column {j}"]
        known = from_json(levels)
        require(values.shape == (rows,), "its rows differ in number")
        require(COLUMN_TYPE.fullmatch(dtype), f"a column of {dtype!r}")
        if known is None:
            columns[j] = pd.Series(values).astype(dtype)
        elif ordered is None:
            known = np.append(known, np.nan)  # a code of -1 is a missing value
            columns[j] = pd.Series(known[values], dtype=dtype)
        else:
            categories = pd.Categorical.from_codes(values, pd.Index(known.tolist()), ordered)
            columns[j] = pd.Series(categories)
    return pd.DataFrame(columns)


CLOSED_FORM = SavedParts(
    _complete_parity,
    ("estimator", "attribute_estimator", "models_", "attribute_models_", "table_"),
)
ENCODER = SavedParts(
    _complete_encoder,
    ("estimator", "attribute_estimator", "models_", "attribute_models_", "table_"),
    _encoder_arrays,
)
COUPLING = SavedParts(_complete_coupling, ("estimator", "models_"), _coupling_arrays)
SOLVED: dict[str, tuple[Any, SavedParts]] = {
    "ParityClassifier": (ParityClassifier, CLOSED_FORM),
    "ParityRegressor": (ParityRegressor, CLOSED_FORM),
    "ParityEncoder": (ParityEncoder, ENCODER),
    "ParityCoupling": (ParityCoupling, COUPLING),
}
"""Every solved model that is saved, by its name."""
