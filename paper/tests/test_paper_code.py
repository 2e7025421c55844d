"""The stamp of a record changes with the code that its numbers come from, and with nothing else."""

from __future__ import annotations

import importlib
import sys

import pytest

from frhsic_paper import code as codes
from frhsic_paper.grid import _train_and_measure

BASE = '''
from functools import cache, partial

from frhsic_paper.code import Choices

CUT = 3
LOOKS = {"a": lambda x: x + 1, "b": lambda x: x + 2}

@cache
def helper(x):
    return x + CUT

class Shape:
    """A shape."""

    def area(self):
        if CUT < 0:
            raise ValueError(f"Too {told(CUT)}") from None
        return helper(1)  # of one

    def __repr__(self):
        return told("Shape")

def told(text):
    return f"{text}!"

def first():
    return 1

def second():
    return 2

WAYS = Choices(first=first, second=second)

def made_inside(f):
    def inner():
        return f()
    return inner

def root():
    """Return an area."""
    from toy_code import late
    other = 1
    WAYS["first"]()
    return Shape().area() + late() + LOOKS["a"](1) + other

def late():
    return partial(helper, 2)()

def other():
    return 5
'''


@pytest.fixture
def code_of(tmp_path, monkeypatch):
    """Return the code that `root` of a module with a given text reaches."""
    monkeypatch.setattr(codes, "PACKAGES", ("toy_code",))
    count = iter(range(99))

    def load(text, root="root"):
        folder = tmp_path / str(next(count))
        folder.mkdir()
        (folder / "toy_code.py").write_text(text, encoding="utf-8")
        monkeypatch.syspath_prepend(str(folder))
        sys.modules.pop("toy_code", None)
        module = importlib.import_module("toy_code")
        value = getattr(module, root)
        return codes.code(module.made_inside(value) if root == "late" else value)

    yield load
    sys.modules.pop("toy_code", None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("CUT = 3", "CUT = 4"),
        ("x + CUT", "x - CUT"),
        ("helper(1)", "helper(2)"),
        ("partial(helper, 2)", "partial(helper, 3)"),  # imported where it is called
        ("x + 1,", "x + 3,"),  # a lambda among others
        ("x + 2}", "x + 3}"),
        ("ValueError", "TypeError"),
    ],
)
def test_code_that_is_reached_counts(code_of, before, after):
    assert before in BASE
    assert code_of(BASE) != code_of(BASE.replace(before, after))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("A shape.", "Another word."),
        ("  # of one", ""),
        ("Return an area.", "An area,\n    over two lines."),
        ("return 5", "return 6"),  # a local name of `root` is that of a function it does not call
        ("def helper(x):", "def helper(x):  # a comment"),
        ("Too {told(CUT)}", "{CUT} – is too much"),
        ('told("Shape")', "'A shape'"),
        ("{text}!", "{text}."),
        ("return 1", "return 3"),  # one of several choices
    ],
)
def test_words_layout_and_other_functions_do_not(code_of, before, after):
    assert before in BASE
    assert code_of(BASE) == code_of(BASE.replace(before, after))


def test_a_function_made_inside_another_reaches_what_it_was_given(code_of):
    names = [name for name, _ in code_of(BASE, "late")]
    assert {"toy_code.late", "toy_code.helper", "toy_code.CUT"} <= set(names)


def test_training_reaches_penalties_kernels_and_measures_and_no_figure():
    modules = {
        ".".join(name.split(".")[:k]) for k in (3, 4) for name, _ in codes.code(_train_and_measure)
    }
    for wanted in ("frhsic.training.loop", "frhsic.kernels.squared_distances"):
        assert wanted in modules
    assert any(name.startswith("frhsic_paper.measures") for name in modules)
    assert not any(name.startswith(("frhsic_paper.plot", "frhsic_paper.claim")) for name in modules)
    assert not modules & {f"frhsic.dependence._gpu.{name}" for name in ("kernels", "pairs", "step")}
