"""The one door: what comes in as any kind of array, and what is turned away with which words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from frhsic import _arrays

VALUES = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]

MAKERS = {
    "list": lambda: VALUES,
    "tuple": lambda: tuple(map(tuple, VALUES)),
    "numpy": lambda: np.array(VALUES),
    "numpy, columns first": lambda: np.asfortranarray(VALUES),
    "numpy, reversed": lambda: np.array(VALUES[::-1])[::-1],
    "numpy, big-endian": lambda: np.array(VALUES, dtype=">f8"),
    "numpy, read-only": lambda: np.frombuffer(np.array(VALUES).tobytes()).reshape(3, 2),
    "pandas": lambda: pd.DataFrame(VALUES, columns=["a", "b"]),
    "pandas nullable": lambda: pd.DataFrame(VALUES, columns=["a", "b"]).astype("Float64"),
    "pandas nullable integers": lambda: pd.DataFrame(VALUES, columns=["a", "b"]).astype("Int64"),
    "pandas arrow": lambda: pd.DataFrame(VALUES, columns=["a", "b"]).astype("double[pyarrow]"),
    "pandas, one name twice": lambda: pd.DataFrame(VALUES, columns=["a", "a"]),
    "polars": lambda: pl.DataFrame({"a": [1.0, 3.0, 5.0], "b": [2, 4, 6]}),
    "torch": lambda: torch.tensor(VALUES, dtype=torch.float64),
    "masked, nothing missing": lambda: np.ma.array(VALUES),
    "list of tensors": lambda: [torch.tensor(row, dtype=torch.float64) for row in VALUES],
}


@pytest.mark.parametrize("kind", MAKERS)
def test_every_kind_of_array_gives_the_same_matrix(kind):
    assert torch.equal(_arrays.matrix(MAKERS[kind](), "x"), torch.tensor(VALUES, dtype=torch.float64))


@pytest.mark.parametrize(
    "column",
    [
        [1, 0, 1],
        [True, False, True],
        np.array([1, 0, 1], dtype=np.uint16),
        np.array([1, 0, 1], dtype=bool),
        pd.Series([1, 0, 1], dtype="Int8"),
        pd.Series([True, False, True], dtype="boolean"),
        pl.Series([1, 0, 1]),
        pl.Series([True, False, True]),
        torch.tensor([1, 0, 1]),
        torch.tensor([True, False, True]),
    ],
    ids=lambda c: f"{type(c).__module__.partition('.')[0]}-{getattr(c, 'dtype', 'list')}",
)
def test_integers_and_booleans_of_one_column_become_float64(column):
    got = _arrays.matrix(column, "x")
    assert got.dtype == torch.float64
    assert torch.equal(got, torch.tensor([[1.0], [0.0], [1.0]], dtype=torch.float64))


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        (np.ones((2, 1), np.float32), torch.float32),
        (np.ones((2, 1), np.float64), torch.float64),
        (np.ones((2, 1), np.float16), torch.float32),
        (np.ones((2, 1), np.longdouble), torch.float64),
        (torch.ones(2, 1, dtype=torch.bfloat16), torch.float32),
        (torch.ones(2, 1), torch.float32),
        (pd.DataFrame({"a": [1.0, 2.0]}, dtype="Float32"), torch.float32),
        (pd.DataFrame({"a": [1.0, 2.0]}, dtype="float[pyarrow]"), torch.float32),
        (np.ma.array([1.0, 2.0], dtype=np.float32), torch.float32),
        (pl.DataFrame({"a": pl.Series([1.0, 2.0], dtype=pl.Float32)}), torch.float32),
    ],
)
def test_both_widths_are_honoured_and_half_precision_widens(given, kept):
    assert _arrays.matrix(given, "x").dtype == kept


def test_a_tensor_keeps_its_place_in_the_graph():
    x = torch.ones(3, requires_grad=True)
    _arrays.matrix(x, "x").sum().backward()
    assert torch.equal(x.grad, torch.ones(3))


def test_what_comes_in_is_not_written_to_and_read_only_memory_is_not_shared():
    own = np.array(VALUES)
    own.flags.writeable = False
    _arrays.matrix(own, "x").zero_()
    assert np.array_equal(own, VALUES)


def test_pairs_share_the_wider_dtype():
    z, s = _arrays.paired((torch.ones(2, 3), "z"), (np.ones(2), "s"))
    assert z.dtype == s.dtype == torch.float64
    assert (z.shape, s.shape) == ((2, 3), (2, 1))


def test_a_vector_is_one_column_and_no_more():
    assert _arrays.vector([[1.0], [2.0]], "s").shape == (2,)
    with pytest.raises(ValueError, match=r"^s has 2 columns; pass one column\.$"):
        _arrays.vector(VALUES, "s")


TEXT = r"s holds text or categories \(.*\), not numbers\. Encode it"
NUMERIC = r"s has dtype object; convert it to float64 first"

REFUSED = {
    "None": (None, TypeError, r"s is None; pass an array"),
    "a word": ("age", TypeError, r"s is text, not an array"),
    "strings": (["a", "b"], TypeError, TEXT),
    "bytes": (np.array([b"a", b"b"]), TypeError, TEXT),
    "pandas strings": (pd.Series(["a", "b"]), TypeError, TEXT),
    "pandas categories": (pd.Series(["a", "b"], dtype="category"), TypeError, TEXT),
    "polars strings": (pl.Series(["a", "b"]), TypeError, TEXT),
    "polars categories": (pl.Series(["a", "b"], dtype=pl.Categorical), TypeError, TEXT),
    "objects": (np.array([1.0, 2.0], dtype=object), TypeError, NUMERIC),
    "numbers and text": (np.array([1.0, "b"], dtype=object), TypeError, TEXT),
    "text as objects": (pd.Series([None, "a"], dtype=object), TypeError, TEXT),
    "pandas object": (pd.Series([1, 2], dtype=object), TypeError, NUMERIC),
    "complex": (np.array([1j, 2.0]), TypeError, r"s is complex .*real and imaginary parts as columns"),
    "complex tensor": (torch.tensor([1j, 2.0]), TypeError, r"s is complex"),
    "dates": (np.array(["2020-01-01"], dtype="datetime64[D]"), TypeError, r"s holds dates .*convert it to a number"),
    "pandas dates": (pd.Series(pd.to_datetime(["2020-01-01"])), TypeError, r"s holds dates"),
    "ragged": ([[1.0], [2.0, 3.0]], ValueError, r"s has rows of different lengths"),
    "a number": (3.0, ValueError, r"s is a single number"),
    "three dimensions": (np.ones((2, 2, 2)), ValueError, r"s has shape \(2, 2, 2\); pass one row per observation"),
    "no rows": (np.ones((0, 2)), ValueError, r"s is empty: its shape is \(0, 2\)"),
    "an empty list": ([], ValueError, r"s is empty"),
    "no columns": (np.ones((2, 0)), ValueError, r"s is empty: its shape is \(2, 0\)"),
    "an empty frame": (pd.DataFrame(index=[0, 1]), ValueError, r"s has no columns"),
    "NaN": (
        [1.0, np.nan, np.nan],
        ValueError,
        r"s holds 2 values .*first is NaN, at row 1\. Drop those rows or impute",
    ),
    "infinity": (
        [[1.0, 1.0], [1.0, -np.inf]],
        ValueError,
        r"s holds 1 values .*first is infinite, at row 1, column 1\.",
    ),
    "NaN in a tensor": (torch.tensor([float("nan")]), ValueError, r"first is NaN, at row 0"),
    "pandas missing": (pd.Series([1, None], dtype="Int64"), ValueError, r"s holds 1 values .*at row 1"),
    "polars missing": (pl.Series([1.0, None]), ValueError, r"s holds 1 values .*at row 1"),
    "polars enum": (pl.Series(["a", "b"], dtype=pl.Enum(["a", "b"])), TypeError, TEXT),
    "polars dates": (pl.Series(["2020-01-01"]).str.to_date(), TypeError, r"s holds dates"),
    "polars times": (pl.Series(["2020-01-01 10:00"]).str.to_datetime(), TypeError, r"s holds dates"),
    "a lazy frame": (pl.LazyFrame({"a": [1.0]}), TypeError, r"s is a polars LazyFrame.*pass s\.collect\(\)"),
    "sparse": (sparse.csr_matrix(np.eye(2)), TypeError, r"s is sparse \(csr_matrix\); .*toarray"),
    "masked": (np.ma.array([1.0, 2.0], mask=[False, True]), ValueError, r"s holds 1 values .*NaN, at row 1"),
    "masked integers": (np.ma.array([1, 2], mask=[True, False]), ValueError, r"s holds 1 values .*NaN, at row 0"),
    "polars missing booleans": (pl.Series([None, True]), ValueError, r"s holds 1 values .*at row 0"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_bad_arrays_are_refused_with_their_name_and_a_remedy(kind):
    given, error, words = REFUSED[kind]
    with pytest.raises(error, match=words):
        _arrays.matrix(given, "s")


def test_a_bad_column_of_a_frame_is_named():
    with pytest.raises(TypeError, match=r"^s\['job'\] holds text"):
        _arrays.matrix(pd.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"]}), "s")
    with pytest.raises(TypeError, match=r"^s\['job'\] holds text"):
        _arrays.matrix(pl.DataFrame({"age": [1.0, 2.0], "job": ["a", "b"]}), "s")


def test_different_lengths_are_told_apart_by_name():
    with pytest.raises(ValueError, match=r"lengths differ: z has 3, s has 2 rows\. Pass one row of each"):
        _arrays.paired((VALUES, "z"), ([1.0, 2.0], "s"))


def test_too_few_rows_say_how_many_are_needed():
    _arrays.require_rows(4, 4, "unbiased HSIC")
    with pytest.raises(ValueError, match=r"unbiased HSIC needs at least 4 rows; 3 came\."):
        _arrays.require_rows(3, 4, "unbiased HSIC")


@pytest.mark.parametrize("where", [[1, 0, 1], [True, False, True], np.array([1.0, 0.0, 1.0]), pd.Series([1, 0, 1])])
def test_a_mask_comes_from_booleans_or_a_target(where):
    assert _arrays.subset_mask(where, 3).tolist() == [True, False, True]


def test_a_mask_of_other_values_or_length_is_refused():
    with pytest.raises(ValueError, match=r"where must be boolean or 0/1; other values came"):
        _arrays.subset_mask([0, 2, 1], 3)
    with pytest.raises(ValueError, match=r"where has 3 rows, the data have 4"):
        _arrays.subset_mask([0, 1, 1], 4)


def draw(generator: torch.Generator) -> float:
    return torch.rand((), generator=generator).item()


def test_an_integer_gives_the_same_generator_and_other_integers_others():
    assert draw(_arrays.generator(3)) == draw(_arrays.generator(3)) == draw(_arrays.generator(np.int64(3)))
    assert len({draw(_arrays.generator(seed)) for seed in (0, 1, 2**31, 2**32 - 1)}) == 4


def test_none_draws_afresh_and_a_generator_moves_on():
    assert draw(_arrays.generator(None)) != draw(_arrays.generator(None))
    own = torch.Generator().manual_seed(1)
    assert _arrays.generator(own) is own
    numpy_own = np.random.default_rng(1)
    first, second = draw(_arrays.generator(numpy_own)), draw(_arrays.generator(numpy_own))
    assert first != second
    assert first == draw(_arrays.generator(np.random.default_rng(1)))


def test_numpy_generators_come_from_the_same_kinds_of_state():
    assert _arrays.numpy_generator(5).random() == _arrays.numpy_generator(5).random()
    own = np.random.default_rng(1)
    assert _arrays.numpy_generator(own) is own
    torch_own = torch.Generator().manual_seed(1)
    first = _arrays.numpy_generator(torch_own).random()
    assert first != _arrays.numpy_generator(torch_own).random()
    assert first == _arrays.numpy_generator(torch.Generator().manual_seed(1)).random()


def test_a_seed_is_the_integer_that_came_or_a_new_one_that_any_door_admits():
    assert _arrays.seed_of(2**32 - 1) == 2**32 - 1
    assert _arrays.seed_of(None) != _arrays.seed_of(None)
    for make in (lambda: torch.Generator().manual_seed(1), lambda: np.random.default_rng(1)):
        own, twin = make(), make()
        seeds = [_arrays.seed_of(own) for _ in range(20)]
        assert len(set(seeds)) == 20  # it advances
        assert seeds == [_arrays.seed_of(twin) for _ in range(20)]
        assert all(0 <= seed < 2**32 for seed in seeds)


@pytest.mark.parametrize(
    ("state", "error", "words"),
    [
        (-1, ValueError, r"random_state=-1 is out of range"),
        (2**32, ValueError, r"random_state=4294967296 is out of range; pass an integer from 0 to 2\*\*32 - 1"),
        (True, TypeError, r"random_state is bool"),
        (1.5, TypeError, r"random_state is float; pass an int"),
        ("0", TypeError, r"random_state is str"),
    ],
)
def test_random_states_of_other_kinds_are_refused(state, error, words):
    with pytest.raises(error, match=words):
        _arrays.generator(state)


def test_devices_are_resolved_and_a_missing_gpu_is_said():
    assert _arrays.resolve_device("cpu") == torch.device("cpu")
    assert _arrays.resolve_device("auto").type == ("cuda" if torch.cuda.is_available() else "cpu")
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match=r"device='cuda' was asked for, but PyTorch sees no GPU"):
            _arrays.matrix([1.0], "x", device="cuda")


def test_devices_of_other_kinds_and_gpus_beyond_the_last_are_refused():
    with pytest.raises(ValueError, match="device='mps' is not supported; pass 'auto', 'cpu' or 'cuda'"):
        _arrays.resolve_device("mps")
    with pytest.raises(
        ValueError, match=f"device='cuda:99' was asked for, but there are {torch.cuda.device_count()} GPUs"
    ):
        _arrays.resolve_device("cuda:99")


def test_names_are_kept_for_messages():
    assert _arrays.array_name(pd.Series([1.0], name="age"), "s") == "age"
    assert _arrays.array_name([1.0], "s") == "s"
    assert _arrays.column_names(pd.DataFrame(VALUES, columns=["age", "hours"]), "s", 2) == ["age", "hours"]
    assert _arrays.column_names(np.array(VALUES), "s", 2) == ["s_1", "s_2"]
    assert _arrays.column_names(pl.Series("age", [1.0]), "s", 1) == ["age"]
