"""Export a distilled model to ONNX as trees on the encoded columns."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import lightgbm
import numpy as np
import pandas as pd

from frhsic._version import __version__
from frhsic.tables.columns import level_text
from frhsic.tables.schema import ColumnType, Schema

# Versions of ONNX's operators and of its machine learning operators that all runtimes support.
OPSETS = {"": 17, "ai.onnx.ml": 3}
IR_VERSION = 8
# Types of columns that are the same in all rows, and types that ONNX can't represent.
SAME_KINDS = ("identifier", "empty")
UNREADABLE_KINDS = ("date", "duration")


def require_exportable(model: Any, schema: Schema | None) -> None:
    """Raise an error unless a model and its columns can be exported to ONNX."""
    if not isinstance(model, lightgbm.Booster):
        raise TypeError(
            f"the distilled model is a {type(model).__name__}, but only LightGBM trees can be"
            " exported. Call distill with estimator=None, or convert the attribute `model` with"
            " skl2onnx."
        )
    require_readable_columns(schema)


def require_readable_columns(schema: Schema | None) -> None:
    """Raise an error if a table has columns that ONNX can't represent."""
    dates = [] if schema is None else [c.name for c in schema.columns if c.kind in UNREADABLE_KINDS]
    if dates:
        raise ValueError(
            f"column {dates[0]!r} contains dates or durations, which ONNX does not support. Convert"
            " them to numbers before fit, such as days since a reference date, or serve the file"
            " that frhsic.save writes."
        )


def import_onnx() -> Any:
    """Return the package onnx; if it isn't installed, raise an error that explains how to install
    it.
    """
    try:
        import onnx
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "to_onnx needs onnx, which is not installed; install it with pip install onnx.",
            name="onnx",
        ) from error
    return onnx


def onnx_bytes(
    booster: Any,
    schema: Schema | None,
    columns: int,
    attributes: Sequence[str],
    classes: Sequence[Any],
    threshold: float | None,
) -> bytes:
    """Return trees as an ONNX model. The inputs are the columns before encoding, followed by the
    attributes. The output is the prediction or, for two classes, the probability of the second
    class.
    """
    require_exportable(booster, schema)
    onnx = import_onnx()
    inputs = _Inputs(onnx)
    if schema is None and not attributes:
        inputs.add_table(columns)
    else:
        kinds = [None] * columns if schema is None else schema.columns
        for j, column in enumerate(kinds):
            inputs.add_column(j, column)
        for j, name in enumerate(attributes):
            inputs.add_numbers(columns + j, name)
        inputs.join()
    nodes = inputs.nodes
    outcome = "margin" if classes else "score"
    trees = _tree_attributes(onnx, booster, inputs.places)
    nodes.append(
        onnx.helper.make_node(
            "TreeEnsembleRegressor", [inputs.table], [outcome], domain="ai.onnx.ml", **trees
        )
    )
    if classes:
        nodes.append(onnx.helper.make_node("Sigmoid", ["margin"], ["score"]))
    score = onnx.helper.make_tensor_value_info("score", onnx.TensorProto.FLOAT, [None, 1])
    model = onnx.helper.make_model(
        onnx.helper.make_graph(nodes, "frhsic", inputs.infos, [score]),
        opset_imports=[onnx.helper.make_opsetid(*pair) for pair in OPSETS.items()],
        producer_name="frhsic",
        producer_version=__version__,
        ir_version=IR_VERSION,
    )
    if classes:
        labels = json.dumps([str(label) for label in classes])
        onnx.helper.set_model_props(model, {"classes": labels, "threshold": repr(threshold)})
    onnx.checker.check_model(model)
    return bytes(model.SerializeToString())


class _Inputs:
    """The inputs of a graph, the nodes that combine them into a numeric table, the name of this
    table, and the position in it of each column of the trees.
    """

    def __init__(self, onnx: Any) -> None:
        self.onnx = onnx
        self.infos: list[Any] = []
        self.nodes: list[Any] = []
        self.table = "X"
        self.places: dict[int, int] = {}
        self._parts: list[str] = []

    def add_table(self, columns: int) -> None:
        """Add one input with the given number of values per row."""
        self._add_input("X", self.onnx.TensorProto.DOUBLE, columns)
        self.places = {j: j for j in range(columns)}

    def add_column(self, column: int, one: ColumnType | None) -> None:
        """Add the input for one column, unless the column is the same in all rows."""
        if one is None:
            self.add_numbers(column, f"x{column}")
        elif one.levels:
            self.add_levels(column, one)
        elif one.kind not in SAME_KINDS:
            self.add_numbers(column, one.name)

    def add_numbers(self, column: int, name: str) -> None:
        self._add_input(name, self.onnx.TensorProto.DOUBLE, 1)
        self._add_part(column, name)

    def add_levels(self, column: int, one: ColumnType) -> None:
        """Add a text column, and nodes that map its levels to their positions."""
        self._add_input(one.name, self.onnx.TensorProto.STRING, 1)
        levels = [level_text(level) for level in one.levels]
        place, code = f"place of {one.name}", f"code of {one.name}"
        make = self.onnx.helper.make_node
        self.nodes += [
            make(
                "LabelEncoder",
                [one.name],
                [place],
                domain="ai.onnx.ml",
                keys_strings=levels,
                values_floats=[float(number) for number in range(len(levels))],
                default_float=float("nan"),
            ),
            make("Cast", [place], [code], to=self.onnx.TensorProto.DOUBLE),
        ]
        self._add_part(column, code)

    def join(self) -> None:
        """Combine all columns into one table."""
        self.table = "features"
        self.nodes.append(self.onnx.helper.make_node("Concat", self._parts, [self.table], axis=1))

    def _add_input(self, name: str, kind: int, width: int) -> None:
        shape = [None, width]
        self.infos.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))

    def _add_part(self, column: int, name: str) -> None:
        self.places[column] = len(self._parts)
        self._parts.append(name)


def _tree_attributes(
    onnx: Any, booster: lightgbm.Booster, places: dict[int, int]
) -> dict[str, Any]:
    """Return the attributes of the TreeEnsembleRegressor operator."""
    nodes = booster.trees_to_dataframe()
    number = dict(zip(nodes["node_index"], nodes.groupby("tree_index").cumcount().tolist()))
    column = {name: places.get(j, 0) for j, name in enumerate(booster.feature_name())}
    threshold = nodes["threshold"].astype(np.float64)
    # if the column had no missing values in training, LightGBM treats one as 0
    missing_below = (nodes["missing_direction"] == "left").where(
        nodes["missing_type"] == "NaN", threshold >= 0
    )
    is_leaf = nodes["left_child"].isna()
    leaves = nodes[is_leaf]

    def doubles(values: pd.Series[Any], name: str) -> Any:
        numbers = values.fillna(0.0).tolist()
        return onnx.helper.make_tensor(name, onnx.TensorProto.DOUBLE, [len(numbers)], numbers)

    return {
        "n_targets": 1,
        "aggregate_function": "SUM",
        "post_transform": "NONE",
        "nodes_treeids": nodes["tree_index"].tolist(),
        "nodes_nodeids": list(number.values()),
        "nodes_featureids": [column.get(name, 0) for name in nodes["split_feature"]],
        "nodes_modes": is_leaf.map({False: "BRANCH_LEQ", True: "LEAF"}).tolist(),
        "nodes_values_as_tensor": doubles(threshold, "thresholds"),
        "nodes_truenodeids": [number.get(child, 0) for child in nodes["left_child"]],
        "nodes_falsenodeids": [number.get(child, 0) for child in nodes["right_child"]],
        "nodes_missing_value_tracks_true": missing_below.astype(int).tolist(),
        "target_treeids": leaves["tree_index"].tolist(),
        "target_nodeids": [number[node] for node in leaves["node_index"]],
        "target_ids": [0] * len(leaves),
        "target_weights_as_tensor": doubles(leaves["value"], "leaves"),
    }
