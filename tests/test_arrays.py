"""The one door: what comes in as any kind of array, and what is turned away with which words."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from frhsic import ParityClassifier, _arrays, _tensors, audit

# The one formula of checks, with NumPy and with torch behind it.
BOTH = pytest.mark.parametrize("door", [_arrays, _tensors], ids=["numpy", "torch"])

VALUES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]

MAKERS = {
    "list": lambda: VALUES,
    "numpy": lambda: np.array(VALUES),
    "numpy, columns first": lambda: np.asfortranarray(VALUES),
    "numpy, reversed": lambda: np.array(VALUES[::-1])[::-1],
    "numpy, big-endian": lambda: np.array(VALUES, dtype=">f8"),
    "numpy, read-only": lambda: np.frombuffer(np.array(VALUES).tobytes()).reshape(3, 2),
    "pandas": lambda: pd.DataFrame(VALUES, columns=["a", "b"]),
    "pandas nullable": lambda: pd.DataFrame(VALUES, columns=["a", "b"]).astype("Float64"),
    "pandas arrow": lambda: pd.DataFrame(VALUES, columns=["a", "b"]).astype("double[pyarrow]"),
    "pandas, one name twice": lambda: pd.DataFrame(VALUES, columns=["a", "a"]),
    "polars": lambda: pl.DataFrame({"a": [1.0, 3.0, 5.0], "b": [2, 4, 6]}),
    "torch": lambda: torch.tensor(VALUES, dtype=torch.float64),
    "masked, nothing missing": lambda: np.ma.array(VALUES),
    "list of tensors": lambda: [torch.tensor(row, dtype=torch.float64) for row in VALUES],
}


@BOTH
@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_of_array_gives_the_same_matrix(kind, door):
    got = door.matrix(MAKERS[kind](), "x")
    assert isinstance(got, torch.Tensor if door is _tensors else np.ndarray)
    assert np.asarray(got).dtype == np.float64
    assert np.array_equal(got, VALUES)


@BOTH
@pytest.mark.parametrize(
    "column",
    [
        np.array([1, 0, 1], dtype=bool),
        pd.Series([1, 0, 1], dtype="Int8"),
        pl.Series([True, False, True]),
        torch.tensor([True, False, True]),
    ],
    ids=lambda c: f"{type(c).__module__.partition('.')[0]}-{getattr(c, 'dtype', 'list')}",
)
def test_integers_and_booleans_of_one_column_become_float64(column, door):
    got = torch.as_tensor(door.matrix(column, "x"))
    assert got.dtype == torch.float64
    assert torch.equal(got, torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64))


@BOTH
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.ones((2, 1), np.float32), torch.float32),
        (np.ones((2, 1), np.float16), torch.float32),
        (np.ones((2, 1), np.longdouble), torch.float64),
        (torch.ones(2, 1, dtype=torch.bfloat16), torch.float32),
        (pd.DataFrame({"a": [1.0, 2.0]}, dtype="Float32"), torch.float32),
        (np.ma.array([1.0, 2.0], dtype=np.float32), torch.float32),
        (pl.DataFrame({"a": pl.Series([1.0, 2.0], dtype=pl.Float32)}), torch.float32),
    ],
)
def test_both_widths_are_honoured_and_half_precision_widens(given, kept, door):
    assert torch.as_tensor(door.matrix(given, "x")).dtype == kept


def test_a_tensor_keeps_its_place_in_the_graph():
    x = torch.ones(3, requires_grad=True)
    _tensors.matrix(x, "x").sum().backward()
    assert torch.equal(x.grad, torch.ones(3))


def test_what_comes_in_is_not_written_to_and_read_only_memory_is_not_shared():
    own = np.array(VALUES)
    own.flags.writeable = False
    _tensors.matrix(own, "x").zero_()
    assert np.array_equal(own, VALUES)


@BOTH
def test_pairs_share_the_wider_dtype(door):
    z, s = map(torch.as_tensor, door.paired_matrices((torch.ones(2, 3), "z"), (np.ones(2), "s")))
    assert z.dtype == s.dtype == torch.float64
    assert (z.shape, s.shape) == ((2, 3), (2, 1))


REFUSED = {
    "None": None,
    "a word": "age",
    "strings": ["a", "b"],
    "pandas strings": pd.Series(["a", "b"]),
    "pandas categories": pd.Series(["a", "b"], dtype="category"),
    "polars strings": pl.Series(["a", "b"]),
    "polars enum": pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])),
    "text as objects": pd.Series([None, "a"], dtype=object),
    "objects": np.array([1.0, 2.0], dtype=object),
    "complex": np.array([1j, 2.0]),
    "complex tensor": torch.tensor([1j, 2.0]),
    "dates": np.array(["2020-01-01"], dtype="datetime64[D]"),
    "polars dates": pl.Series(["2020-01-01"]).str.to_date(),
    "ragged": [[1.0], [2.0, 3.0]],
    "a number": 3.0,
    "three dimensions": np.ones((2, 2, 2)),
    "no rows": np.ones((0, 2)),
    "no columns": np.ones((2, 0)),
    "NaN": [1.0, np.nan, np.nan],
    "infinity": [[1.0, 1.0], [1.0, -np.inf]],
    "pandas missing": pd.Series([1, None], dtype="Int64"),
    "polars missing": pl.Series([1.0, None]),
    "masked": np.ma.array([1, 2], mask=[True, False]),
    "a lazy frame": pl.LazyFrame({"a": [1.0]}),
    "sparse": sparse.csr_matrix(np.eye(2)),
}


@BOTH
@pytest.mark.parametrize("kind", REFUSED)
def test_bad_arrays_are_refused_by_name(kind, door):
    with pytest.raises((ValueError, TypeError), match=r"^s "):
        door.matrix(REFUSED[kind], "s")


class DuckDBPyRelation:
    """A query, as DuckDB gives it: rows come by `df` or `pl` alone."""

    columns: ClassVar = ["a"]
    dtypes: ClassVar = ["DOUBLE"]

    def __len__(self) -> int:
        return 1

    def __getitem__(self, name: str) -> DuckDBPyRelation:
        if not isinstance(name, str):
            raise TypeError("a relation is indexed by one column name")
        return self


@pytest.mark.parametrize(
    ("query", "kind", "call"),
    [
        (DuckDBPyRelation(), "DuckDBPyRelation", "df"),
        (REFUSED["a lazy frame"], "LazyFrame", "collect"),
    ],
)
def test_a_query_says_how_it_becomes_a_table(query, kind, call):
    doors = {
        "s": lambda: _arrays.matrix(query, "s"),
        "y": lambda: _arrays.require_labels(query, "y"),
        "groups": lambda: audit([0.1, 0.2], [1, 2], groups=query),
    }
    if call == "df":  # a LazyFrame is collected
        doors["X"] = lambda: ParityClassifier().fit(query, [0, 1], sensitive_features=[20, 30])
        doors["sensitive_features"] = lambda: audit([0.1, 0.2], query)
    for name, door in doors.items():
        with pytest.raises(TypeError) as refused:
            door()
        assert str(refused.value) == (
            f"{name} is a {kind}, which has not been computed yet; pass {name}.{call}()."
        )


def test_a_bad_column_of_a_frame_is_named():
    with pytest.raises(TypeError, match=r"^s\['job'\] contains text"):
        _arrays.matrix(pd.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"]}), "s")
    with pytest.raises(TypeError, match=r"^s\['job'\] contains text"):
        _arrays.matrix(pl.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"]}), "s")


@BOTH
@pytest.mark.parametrize("where", [[True, False, True], np.array([1.0, 0.0, 1.0])])
def test_a_mask_comes_from_booleans_or_a_target(where, door):
    assert door.subset_mask(where, 3).tolist() == [True, False, True]


@pytest.mark.parametrize("of", [_tensors.generator, _arrays.numpy_generator])
def test_an_integer_gives_one_stream_none_a_new_one_and_a_generator_moves_on(of):
    def draw(state) -> float:
        own = of(state)
        return (
            torch.rand((), generator=own).item()
            if isinstance(own, torch.Generator)
            else own.random()
        )

    assert draw(3) == draw(np.int64(3))
    assert len({draw(seed) for seed in (0, 1, 2**31, 2**32 - 1, None, None)}) == 6
    for make in (lambda: torch.Generator().manual_seed(1), lambda: np.random.default_rng(1)):
        own, twin = make(), make()
        first = draw(own)
        assert first == draw(twin)
        assert first != draw(own)


def test_a_seed_is_the_integer_that_came_or_a_new_one_that_any_door_admits():
    assert _arrays.integer_seed(2**32 - 1) == 2**32 - 1
    for state in (torch.Generator().manual_seed(1), np.random.default_rng(1), None):
        seeds = [_arrays.integer_seed(state) for _ in range(20)]
        assert len(set(seeds)) == 20
        assert all(0 <= seed < 2**32 for seed in seeds)


def test_devices_are_resolved_and_a_missing_gpu_is_said():
    assert _tensors.resolve_device("cpu") == torch.device("cpu")
    assert _tensors.resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="device='cuda' is not available"):
            _tensors.matrix([1.0], "x", device="cuda")


@BOTH
@pytest.mark.parametrize(
    "call",
    [
        lambda door: door.paired_matrices((VALUES, "z"), ([1.0, 2.0], "s")),
        lambda door: door.vector(VALUES, "s"),
        lambda door: door.subset_mask([0, 2, 1], 3),
        lambda door: door.subset_mask([0, 1, 1], 4),
    ],
)
def test_arrays_that_do_not_fit_are_refused(call, door):
    with pytest.raises(
        ValueError, match=r"lengths differ|has 2 columns|`where` contains 2; pass a mask"
    ):
        call(door)


@pytest.mark.parametrize(
    "call",
    [
        lambda: _arrays.require_rows(3, 4, "unbiased HSIC"),
        lambda: _tensors.resolve_device("mps"),
        lambda: _tensors.resolve_device("cuda:99"),
        *(lambda state=state: _tensors.generator(state) for state in (-1, 2**32, True, 1.5, "0")),
    ],
)
def test_bad_arguments_are_refused(call):
    with pytest.raises((ValueError, TypeError)):
        call()
