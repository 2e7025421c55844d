"""S known for some rows: they reach the penalty in fixed numbers, the others train the task."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from fleet_samples import BATCH, PENALTIES, by_hand, gap, held_out_objective, quick, sample
from frhsic.penalties import HSIC
from frhsic.training import Member, TrainingData, grid
from frhsic.training.data import batch_shapes

MEMBERS = grid([0.0, 3.0], [1, 2], [0, 1])
binary = quick()


def partly(labelled: int, **options: object) -> TrainingData:
    return replace(sample(**options), labelled=labelled)


@pytest.mark.parametrize(
    "name", ["frhsic", "head and gaussian", "reg-gdp", "adv", "equal opportunity", "frem"]
)
def test_a_fleet_is_the_ordinary_loop_on_such_batches(name):
    data = partly(60, dtype=torch.float64)
    fleet = binary(data, MEMBERS, penalty=PENALTIES[name])
    for index, member in enumerate(MEMBERS):
        assert gap(fleet, index, by_hand(data, member, PENALTIES[name])) < 1e-9


@pytest.mark.parametrize("name", PENALTIES)
def test_values_of_s_in_rows_without_it_do_not_matter_and_small_last_batches_are_trained_on(name):
    for labelled, rows in (
        (30, 150),
        (10, 131),
    ):  # the last batch of 22 and of 3 rows has 5 and 1 of them
        data = partly(labelled, rows=rows)
        assert batch_shapes(data, BATCH)[-1] in ((22, 5), (3, 1))
        junk = data.s.clone()
        junk[:, labelled:] = torch.nan
        fleet, other = (
            binary(each, MEMBERS, penalty=PENALTIES[name], epochs=2)
            for each in (data, replace(data, s=junk))
        )
        assert all(
            torch.equal(values, other.parameters[n]) for n, values in fleet.parameters.items()
        )
        assert bool(fleet.history.penalty.isfinite().all())
        assert (fleet.diverged == -1).all()


def test_rows_without_s_are_moved_to_the_end_and_the_others_keep_their_order():
    nan = float("nan")
    x = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    s = [[1.0, 2.0], [nan, 2.0], [1.0, nan], [5.0, 6.0], [nan, nan]]
    data = TrainingData.of(x, [0, 1, 0, 1, 0], s, sample_weight=[1, 2, 3, 4, 5])
    assert data.labelled == 2
    assert data.x[0, :, 0].tolist() == [0, 3, 1, 2, 4]
    assert data.y[0].tolist() == [0, 1, 1, 0, 0]
    assert data.s[0, :2].tolist() == [[1, 2], [5, 6]]
    assert (3 * data.sample_weight[0]).tolist() == pytest.approx([1, 4, 2, 3, 5])
    assert TrainingData.of(x, [0, 1, 0, 1, 0], [1, 2, 3, 4, 5]).labelled is None


def test_held_out_rows_may_lack_s_too():
    data = partly(60, dtype=torch.float64)
    held = replace(sample(rows=100, dtype=torch.float64), labelled=37)
    data = replace(data, held_out=held)
    fleet = binary(data, [Member(2.0)], penalty=HSIC, epochs=1)
    expected = held_out_objective(fleet, 0, data, HSIC())
    assert float(fleet.history.held_out_objective[0, 0]) == pytest.approx(expected, rel=1e-9)
