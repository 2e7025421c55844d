"""Results in a notebook and at a prompt: short, drawn, and safe."""

from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from frhsic import ParityRegressor, audit, gdp
from frhsic.auditing import Settings
from frhsic.parity import gdp_curve, rank_gap
from frhsic.selection import Selection
from frhsic.selection.rule import Candidate

pytestmark = pytest.mark.usefixtures("few_trees")

NAME = "<b>age & co"


@pytest.fixture(scope="module")
def results():
    random = np.random.default_rng(0)
    age = random.uniform(20, 60, 300)
    X = np.column_stack([age + random.normal(0, 5, 300), random.normal(size=300)])
    y = X.sum(axis=1)
    named = pd.Series(age, name=NAME)
    model = ParityRegressor(random_state=0, n_jobs=1, cv=2).fit(X, y, sensitive_features=named)
    result = audit(y, named, limit=1.0, settings=Settings(resamples=20, max_rows=100))
    candidates = [
        Candidate(weight, 0.5, 0.8, {"s": 0.1 - weight}, {"s": 0.2}, 0.1, 0.2, 0.5, True)
        for weight in (0, 0.1)
    ]
    chosen = Selection(0.1, None, True, "it is <small>", tuple(candidates), (), len, None)
    return {
        "audit": result,
        "gdp": gdp(y, age),
        "without resamples": gdp(y, age, resamples=0),
        "rank gap": rank_gap(y, age),
        "curve": gdp_curve(y, age),
        "frontier": model.frontier_,
        "choice": model.choice_,
        "selection": chosen,
    }, model


def test_a_result_is_a_card_with_its_picture_and_names_are_text(results):
    for name, result in results[0].items():
        html = result._repr_html_()
        tree = ElementTree.fromstring(html.replace("<br>", "<br/>"))
        drawn = tree.findall(".//svg")
        assert len(drawn) == (name in ("audit", "curve", "frontier", "selection")), name
        assert tree.findall(".//b")[0].text
        assert len(tree.findall(".//b")) == 1  # the name of the attribute is no markup
        if name in ("audit", "frontier", "choice"):
            assert NAME in "".join(tree.itertext())
        if name == "audit":
            assert "mean score" in [part.text for part in tree.iter()]


def test_a_fitted_estimator_shows_its_choice_and_trade_offs_before_its_diagram(results):
    fitted, model = results
    html = model._repr_html_()
    for part in ("choice", "frontier"):
        assert fitted[part]._repr_html_() in html
    assert model._repr_mimebundle_()["text/html"].count("<svg") == 1  # which Jupyter asks for
    assert "<svg" not in ParityRegressor()._repr_html_()


def test_a_result_prints_on_two_lines(results):
    for name, result in results[0].items():
        assert len(repr(result)) <= 240, name
        assert "\n" not in repr(result)
