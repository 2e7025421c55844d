"""Early stopping and the learning-rate schedule: the weights are those of the best epoch, model by
model.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from torch import nn

from fleet_samples import (
    ENCODER,
    PENALTIES,
    WIDTH,
    gap,
    held_out,
    held_out_objective,
    quick,
    sample,
)
from frhsic.penalties import HSIC, Penalty
from frhsic.training import Member, TrainingData, grid
from frhsic.training.result import DivergenceWarning

MEMBERS = grid([0.0, 1.0, 20.0], [1, 2], [0, 1])
ROWS = 70
binary = quick(learning_rate=0.05)


def with_held_out(dtype: torch.dtype = torch.float32) -> TrainingData:
    return held_out(sample(dtype=dtype), ROWS)


@pytest.mark.parametrize("name", ["head and gaussian", "frhsic", "adv"])
def test_weights_are_bit_for_bit_those_of_a_run_that_ends_with_the_best_epoch(name):
    data = with_held_out()
    stopped = binary(data, MEMBERS, penalty=PENALTIES[name], epochs=12, patience=2)
    best = stopped.history.best_epoch
    assert len(set(best.tolist())) > 1, "all models are best in one epoch: a weak test"
    runs = {
        epoch: binary(
            replace(data, held_out=None), MEMBERS, penalty=PENALTIES[name], epochs=epoch + 1
        )
        for epoch in set(best.tolist())
    }
    for index in range(len(MEMBERS)):
        cut = runs[int(best[index])]
        assert gap(stopped, index, {n: values[index] for n, values in cut.parameters.items()}) == 0
        assert all(
            torch.equal(v[index], cut.penalty_state[n][index])
            for n, v in stopped.penalty_state.items()
        )


@pytest.mark.parametrize("name", ["none", "head and gaussian", "reg-gdp", "equal opportunity"])
def test_the_objective_is_task_loss_and_weighted_penalty_in_batches_of_the_training_size(name):
    data, members = with_held_out(dtype=torch.float64), grid([0.5, 3.0], [1, 2], [0, 1])
    fleet = binary(data, members, penalty=PENALTIES[name], epochs=1)
    for index in range(4):
        expected = held_out_objective(fleet, index, data, PENALTIES[name]())
        assert float(fleet.history.held_out_objective[index, 0]) == pytest.approx(
            expected, rel=1e-9
        )


def test_best_epoch_has_the_least_objective_and_a_model_waits_no_longer_than_its_patience():
    fleet = binary(with_held_out(), MEMBERS, penalty=HSIC, epochs=25, patience=3)
    objective, best = fleet.history.held_out_objective, fleet.history.best_epoch
    for index in range(len(MEMBERS)):
        curve, done = objective[index], int(fleet.epochs_done[index])
        assert int(curve[:done].argmin()) == int(best[index])
        assert done in (int(best[index]) + 4, 25)
        for values in (curve, fleet.history.task_loss[index], fleet.history.penalty[index]):
            assert bool(values[:done].isfinite().all())
            assert bool(values[done:].isnan().all())
    assert int(fleet.epochs_done.min()) < int(fleet.epochs_done.max())
    assert (fleet.diverged == -1).all()


def test_statistics_of_batch_normalisation_are_those_of_the_best_epoch_and_not_of_held_out_rows():
    def encoder(columns):
        return nn.Sequential(ENCODER(columns), nn.BatchNorm1d(WIDTH))

    data = with_held_out()
    options = {"encoder": encoder, "penalty": HSIC}
    stopped = binary(data, [Member(1.0)], epochs=20, patience=2, **options)
    cut = binary(
        replace(data, held_out=None),
        [Member(1.0)],
        epochs=int(stopped.history.best_epoch) + 1,
        **options,
    )
    assert int(stopped.history.best_epoch) + 1 < 20
    assert all(torch.equal(values, cut.buffers[name]) for name, values in stopped.buffers.items())


class Undefined(HSIC):
    """A penalty that is not a number on batches of another size than that of training."""

    def _value(self, batch):
        value = super()._value(batch)
        return value if batch.rows == ROWS else value * torch.nan


def test_an_objective_that_is_never_a_number_stops_nothing():
    data = with_held_out()
    fleet = binary(
        data, [Member(0.0), Member(1.0)], penalty=Undefined, epochs=6, patience=2, batch_size=ROWS
    )
    plain = binary(
        replace(data, held_out=None),
        [Member(0.0), Member(1.0)],
        penalty=HSIC,
        epochs=6,
        batch_size=ROWS,
    )
    assert int(fleet.epochs_done[1]) == 6
    assert gap(fleet, 1, {n: values[1] for n, values in plain.parameters.items()}) == 0
    assert bool(fleet.history.held_out_objective[0, : int(fleet.epochs_done[0])].isfinite().all())


class Explosive(Penalty):
    """A penalty that is infinite in every batch of models with a weight."""

    def _value(self, batch):
        return batch.z.sum() * torch.inf


def test_a_model_that_diverges_at_once_keeps_its_initial_weights_and_the_others_go_on():
    data = with_held_out()
    with pytest.warns(DivergenceWarning):
        fleet = binary(data, [Member(0.0), Member(1.0)], penalty=Explosive, epochs=5, patience=5)
    assert fleet.history.best_epoch.tolist()[1] == -1
    assert fleet.diverged.tolist() == [-1, 0]
    assert int(fleet.history.best_epoch[0]) >= 0
