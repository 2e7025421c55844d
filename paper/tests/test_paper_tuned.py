"""The fair comparison: what its frozen records say."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from frhsic_paper import tuned as reading
from frhsic_paper.studies import STUDIES, tuned
from frhsic_paper.study import named


def test_a_level_that_is_not_reached_is_none_and_a_model_that_diverged_is_no_point_of_the_path():
    performance, gdp = np.array([[0.9], [0.8]]), np.array([[1.0], [0.6]])
    assert reading.read_off(performance, gdp, 0.5) is None
    assert reading.read_off(performance, gdp, 0.8) == approx([0.85])
    assert reading.read_off(performance, np.array([[1.0], [np.nan]]), 0.9) is None


def final_record(dataset, method, split, performance, gdp):
    return {
        "dataset": dataset, "method": method, "split": split, "trial": 0, "weights": [0.0, 1.0], "test_rows": 10,
        "training_rows": 80, "path_performance": performance, "path_gdp": gdp,
    }  # fmt: skip


def made(advantage: float, noise: float = 0.002) -> list[dict]:
    generator, made = np.random.default_rng(3), []
    for split in range(5):
        made.append({"dataset": "wages", "method": "reference", "split": split, "gdp": 1.0, "constant": 0.5})
        for method in ("default", "frem"):
            level = 0.8 + (advantage if method == "default" else 0) + noise * generator.normal()
            made.append(final_record("wages", method, split, [level, level], [1.0, 0.0]))
    return made


def test_the_default_is_compared_by_its_folds():
    ((comparison),) = reading.comparisons(reading.tested(made(0.05)))
    assert (comparison.dataset, comparison.method, comparison.verdict) == ("wages", "frem", "better")
    assert comparison.test.mean == approx(0.05, abs=0.005)
    assert reading.comparisons(reading.tested(made(-0.05)))[0].verdict == "worse"
    assert reading.comparisons(reading.tested(made(0.0)))[0].verdict == "="


def test_a_frozen_study_is_shown_and_not_run_again():
    assert tuned.STUDY not in named(STUDIES, ["all"])
    with pytest.raises(ValueError, match=f"the records of 'tuned' are frozen: they were made at the tag {reading.TAG}"):
        named(STUDIES, ["tuned"])
