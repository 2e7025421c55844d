"""Forged texts of LightGBM models: a ValueError before LightGBM reads them, or a model that predicts finite numbers."""

from __future__ import annotations

import random
import re
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from counting import Counts
from test_model_files import Outcomes, apart

from frhsic.boosting import booster_from_text, booster_to_text
from frhsic.boosting.model_text import checked_text

lightgbm = pytest.importorskip("lightgbm")

rng = np.random.default_rng(0)
N = 120
X = pd.DataFrame(
    {
        "age": np.where(rng.random(N) < 0.1, np.nan, rng.normal(size=N)),
        "job é": pd.Categorical(rng.choice(list("pqrsé"), N)),
        "debt": rng.exponential(size=N) * (rng.random(N) < 0.4),  # many zeros
    }
)
THREE = rng.integers(0, 3, N)
SMALL: dict[str, Any] = {
    "n_estimators": 4, "num_leaves": 6, "min_child_samples": 2, "n_jobs": 1, "verbose": -1, "random_state": 0,
    "max_cat_to_onehot": 1, "min_data_per_group": 1, "cat_smooth": 1,
}  # fmt: skip
KINDS: dict[str, tuple[str, dict[str, Any], Any]] = {
    "two classes": ("LGBMClassifier", {}, X["job é"].isin(["p", "s"]) ^ (X["debt"] > 0.5)),
    "three classes": ("LGBMClassifier", {}, THREE),
    "one against all": ("LGBMClassifier", {"objective": "multiclassova"}, THREE),
    "numbers": ("LGBMRegressor", {}, 1e6 * THREE),
    "root": ("LGBMRegressor", {"reg_sqrt": True}, THREE),
    "forest": ("LGBMRegressor", {"boosting_type": "rf", "bagging_fraction": 0.5, "bagging_freq": 1}, THREE),
    "monotone": ("LGBMRegressor", {"monotone_constraints": [1, 0, 0]}, THREE),
    "linear leaves": ("LGBMRegressor", {"linear_tree": True}, THREE + X["debt"]),
    "constant": ("LGBMRegressor", {}, np.ones(N)),
    "dart": ("LGBMRegressor", {"boosting_type": "dart"}, THREE),
    "own objective": ("LGBMRegressor", {"objective": lambda y, p: (p - y, np.ones_like(y))}, THREE),
}


def text_of(kind: str) -> str:
    name, parameters, y = KINDS[kind]
    with warnings.catch_warnings(action="ignore"):  # of few rows
        return booster_to_text(getattr(lightgbm, name)(**SMALL | parameters).fit(X, y).booster_)


def shape(text: str) -> list[str]:
    """Return the lines that describe the trees, with single spaces."""
    lines = text.split("\nfeature_importances:")[0].split("\nparameters:")[0].split("\n")
    return sorted(" ".join(line.split()) for line in lines if not line.startswith("tree_sizes="))


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_that_lightgbm_wrote_keeps_its_trees_and_predictions(kind: str):
    text = text_of(kind)
    again = booster_from_text(text)
    assert shape(checked_text(text)) == shape(text)
    np.testing.assert_array_equal(again.predict(X), lightgbm.Booster(model_str=text).predict(X))
    np.testing.assert_array_equal(booster_from_text(booster_to_text(again)).predict(X), again.predict(X))


def changed(name: str, items: Callable[[list[str]], list[str]]) -> Callable[[str], str]:
    """Return a change of the first line with this name."""

    def change(text: str) -> str:
        line = re.search(rf"(?m)^{name}=(.*)$", text)
        assert line is not None
        return text[: line.start(1)] + " ".join(items(line[1].split())) + text[line.end(1) :]

    return change


FORGED: dict[str, Callable[[str], str]] = {
    "a child that is not there": changed("left_child", lambda v: ["99", *v[1:]]),
    "a child below the leaves": changed("right_child", lambda v: ["-99", *v[1:]]),
    "a circle": changed("left_child", lambda v: ["0", *v[1:]]),
    "one node twice": changed("left_child", lambda v: [v[0], v[0], *v[2:]]),
    "children cut off": changed("left_child", lambda v: v[:-1]),
    "no children": changed("right_child", lambda v: []),
    "a column that is not there": changed("split_feature", lambda v: ["3", *v[1:]]),
    "a column below zero": changed("split_feature", lambda v: ["-1", *v[1:]]),
    "columns cut off": changed("split_feature", lambda v: v[1:]),
    "two billion leaves": changed("num_leaves", lambda v: ["2000000000"]),
    "leaves below zero": changed("num_leaves", lambda v: ["-1"]),
    "no leaves": changed("num_leaves", lambda v: ["0"]),
    "fewer values": changed("leaf_value", lambda v: v[1:]),
    "a value that is NaN": changed("leaf_value", lambda v: ["nan", *v[1:]]),
    "a value of 1e308": changed("leaf_value", lambda v: ["1e308", *v[1:]]),
    "a value that is text": changed("leaf_value", lambda v: ["x", *v[1:]]),
    "thresholds cut off": changed("threshold", lambda v: v[:1]),
    "a kind of split that is not there": changed("decision_type", lambda v: ["127", *v[1:]]),
    "a categorical split without categories": changed("decision_type", lambda v: ["1"] * len(v)),
    "categories past their end": changed("cat_boundaries", lambda v: [*v[:-1], "1000000"]),
    "categories that fall": changed("cat_boundaries", lambda v: ["5", *v[1:]]),
    "no categories": changed("cat_threshold", lambda v: []),
    "a million sets of categories": changed("num_cat", lambda v: ["1000000"]),
    "a billion columns": changed("max_feature_idx", lambda v: ["1000000000"]),
    "fewer names": changed("feature_names", lambda v: v[1:]),
    "fewer ranges": changed("feature_infos", lambda v: v[1:]),
    "a billion classes": changed("num_class", lambda v: ["1000000000"]),
    "a billion trees for each step": changed("num_tree_per_iteration", lambda v: ["1000000000"]),
    "no trees for each step": changed("num_tree_per_iteration", lambda v: ["0"]),
    "an objective of more classes": changed("objective", lambda v: ["multiclass", "num_class:1000000"]),
    "an unknown objective": changed("objective", lambda v: ["os.system"]),
    "a slope of zero": changed("objective", lambda v: ["binary", "sigmoid:0"]),
    "a version of the future": changed("version", lambda v: ["v99"]),
    "linear leaves without models": changed("is_linear", lambda v: ["1"]),
    "no end": lambda text: text.split("end of trees")[0],
    "no trees": lambda text: text.replace("Tree=", "Bush="),
    "no header": lambda text: text[text.index("Tree=0") :],
    "a line twice": lambda text: text.replace("num_cat=", "num_leaves=3\nnum_cat=", 1),
    "a line of its own": lambda text: text.replace("num_cat=", "code=3\nnum_cat=", 1),
    "empty": lambda text: "",
    "a zero byte": lambda text: text.replace("leaf_value=", "leaf_value=\0", 1),
    "levels that are no lists": lambda text: re.sub("pandas_categorical:.*", 'pandas_categorical:{"a": 1}', text),
    "levels that are no JSON": lambda text: re.sub("pandas_categorical:.*", "pandas_categorical:[[", text),
}


def refusals(text: str) -> Outcomes:
    assert all(change(text) != text for change in FORGED.values())
    for change in FORGED.values():
        with pytest.raises(ValueError, match=r"LightGBM|Expecting"):
            booster_from_text(change(text))
    return {"refused": len(FORGED)}


def test_forged_texts_are_refused():
    assert apart(lambda: refusals(text_of("two classes")))["refused"] == len(FORGED)


def test_parameters_of_training_that_lightgbm_cannot_parse_are_left_out():
    text = text_of("numbers").replace("[boosting: gbdt]", '[boosting]\n[\n[x:\n[learning_rate: 0.5"]')

    def loaded() -> Outcomes:
        np.testing.assert_array_equal(
            booster_from_text(text).predict(X), booster_from_text(text_of("numbers")).predict(X)
        )
        return {"harmless": 1}

    assert apart(loaded)["harmless"] == 1


def mutations(texts: list[str], count: int, seed: int) -> Outcomes:
    """Change some characters, words or lines of a text at random."""
    draw, refused = random.Random(seed), 0
    for number in range(count):
        text = texts[number % len(texts)]
        end = text.index("\nparameters:")
        for _ in range(draw.choice([1, 1, 3])):
            at = draw.randrange(end)
            if number % 3 == 0:
                text = text[:at] + draw.choice("0123456789-e. =\n\0x") + text[at + draw.randrange(2) :]
            else:
                words = [found.span() for found in re.finditer(r"-?[\d.e+-]+", text[:end])]
                start, stop = draw.choice(words)
                new = draw.choice(
                    ["-1", "0", "1", "2", "7", "99", "2147483647", "-2147483648", "1e300", "nan", "", "3 4"]
                )
                text = text[:start] + new + text[stop:]
        try:
            booster = booster_from_text(text)
        except (ValueError, lightgbm.basic.LightGBMError):  # which load turns into a ValueError
            refused += 1
            continue
        with warnings.catch_warnings(action="ignore"):
            rows = X if booster.pandas_categorical else X.assign(**{"job é": 0.0})
            if booster.num_feature() == 3:
                assert np.isfinite(booster.predict(rows)).all()
    return {"refused": refused, "harmless": count - refused}


@pytest.mark.slow
def test_three_thousand_mutated_texts_are_refused_or_harmless(counts: Counts):
    texts = [text_of(kind) for kind in KINDS]
    outcomes = apart(lambda: mutations(texts, 3000, 7))
    counts.put("model files", "texts of LightGBM", "mutated", outcomes)


def test_mutated_texts_are_refused_or_harmless():
    texts = [text_of(kind) for kind in ("two classes", "three classes", "linear leaves")]
    outcomes = apart(lambda: mutations(texts, 400, 0))
    assert outcomes["refused"] > 150


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda text: text.replace("num_leaves=", "leaves=", 1),
            "has the line 'leaves=.*', which is unknown or twice there",
        ),
        (changed("threshold", lambda items: ["x", *items[1:]]), "has threshold='x.*', which is not what it should be"),
        (changed("num_cat", lambda items: ["-1"]), "not a LightGBM model|not what it should be"),
        (changed("split_feature", lambda items: ["99", *items[1:]]), "the text is not a LightGBM model"),
    ],
)
def test_what_is_wrong_with_a_text_is_said(change: Callable[[str], str], said: str):
    with pytest.raises(ValueError, match=said):
        checked_text(change(text_of("numbers")))


def test_a_tree_without_shrinkage_is_read():
    text = text_of("numbers")
    assert "shrinkage=" in text
    assert checked_text(re.sub(r"(?m)^shrinkage=.*\n", "", text))
