"""A fleet trains each of its models as if alone, and a fleet of one is an ordinary PyTorch loop."""

from __future__ import annotations

from functools import partial

import pytest
import torch

from fleet_samples import ENCODER, PENALTIES, by_hand, gap, quick, sample
from frhsic.penalties import HSIC, NoPenalty
from frhsic.training import Member, TrainingData, grid

binary = quick()


@pytest.mark.parametrize("name", PENALTIES)
def test_in_every_layout_a_fleet_trains_each_model_as_an_ordinary_loop_with_adam_does(name):
    data, members = sample(dtype=torch.float64), grid([0.0, 2.0], [3, 4], [1, 0])
    expected = {member: by_hand(data, member, PENALTIES[name]) for member in members}
    for some in (
        members,
        members[:2],
        members[1:3],
        members[1:2],
    ):  # (G, K) = (2, 2), (1, 2), (2, 1), (1, 1)
        fleet = binary(data, some, penalty=PENALTIES[name])
        assert all(gap(fleet, index, expected[member]) < 1e-9 for index, member in enumerate(some))
    single = binary(sample(), members[1:2], penalty=PENALTIES[name])  # in float32
    assert gap(single, 0, by_hand(sample(), members[1], PENALTIES[name])) < 1e-5


@pytest.mark.parametrize(("task", "outputs"), [("binary", 1), ("multiclass", 3), ("regression", 1)])
def test_every_task_trains_as_the_ordinary_loop_does(task, outputs):
    data, members = sample(task=task), grid([0.0, 3.0], [1, 2], [0, 1])
    fleet = binary(data, members, task=task, penalty=HSIC)
    assert fleet.scores(data.x).shape == (4, data.rows, outputs)
    for index, member in enumerate(members):
        assert gap(fleet, index, by_hand(data, member, HSIC, task=task, outputs=outputs)) < 1e-5


@pytest.mark.parametrize(
    ("asked", "by_torch"),
    [({"weight_decay": 0.1}, {"weight_decay": 0.1}), ({"schedule": "cosine"}, {"cosine": True})],
)
@pytest.mark.parametrize("name", ["head and gaussian", "adv"])
def test_weight_decay_of_the_encoders_matrices_and_the_cosine_are_those_of_torch(
    name, asked, by_torch
):
    data, members = sample(dtype=torch.float64), grid([0.0, 2.0], [3, 4], [1, 0])
    fleet = binary(data, members, penalty=PENALTIES[name], **asked)
    for index, member in enumerate(members):
        assert gap(fleet, index, by_hand(data, member, PENALTIES[name], **by_torch)) < 1e-9
        assert gap(fleet, index, by_hand(data, member, PENALTIES[name])) > 1e-6


def test_sample_weights_enter_the_task_loss_alone():
    weights = torch.rand(150, generator=torch.Generator().manual_seed(1))
    base = sample(splits=1)
    data = TrainingData.of(base.x[0], base.y[0], base.s[0], sample_weight=weights)
    fleet = binary(data, [Member(2.0)], penalty=HSIC)
    assert gap(fleet, 0, by_hand(data, Member(2.0), HSIC)) < 1e-5
    assert gap(fleet, 0, by_hand(base, Member(2.0), HSIC)) > 1e-4


@pytest.mark.parametrize("rows", [150, 128, 40, 1])
def test_last_partial_batch_is_kept_and_few_rows_make_one_batch(rows):
    data, member = sample(rows=rows), Member(1.0)
    fleet = binary(data, [member], penalty=partial(HSIC, scale_s=0.3))
    assert gap(fleet, 0, by_hand(data, member, partial(HSIC, scale_s=0.3))) < 1e-5


def test_same_call_gives_the_same_numbers_bit_for_bit():
    data, members = sample(), grid([0.0, 1.0, 5.0], [1, 2], [0, 1])
    first, second = (binary(data, members, penalty=PENALTIES["adv"]) for _ in range(2))
    assert all(
        torch.equal(first.parameters[name], second.parameters[name]) for name in first.parameters
    )
    assert torch.equal(first.history.task_loss, second.history.task_loss)


def test_cutting_the_fleet_to_fit_memory_changes_nothing(monkeypatch):
    data = sample()
    members = [
        Member(5.0, 2, 1),
        Member(0.0, 1, 0),
        Member(1.0, 2, 1),
        Member(9.0, 1, 1),
        Member(2.0, 1, 0),
    ]
    whole = binary(data, members, penalty=HSIC.published)
    for budget in (1, 200_000):
        monkeypatch.setattr("frhsic.training.loop.CPU_BUDGET", budget)
        cut = binary(data, members, penalty=HSIC.published)
        assert cut.members == whole.members == tuple(members)  # in the order that was asked for
        for index in range(len(members)):
            assert gap(whole, index, {n: v[index] for n, v in cut.parameters.items()}) < 1e-6
        assert torch.allclose(whole.history.penalty, cut.history.penalty, atol=1e-7)
        assert torch.allclose(
            whole.penalty_state["scale_z_now"], cut.penalty_state["scale_z_now"], rtol=1e-5
        )


def test_history_is_the_mean_over_the_rows_of_an_epoch():
    data = sample(splits=1)
    steps_too_small_to_matter = 1e-12
    fleet = binary(
        data, [Member(0.0)], penalty=NoPenalty, epochs=2, learning_rate=steps_too_small_to_matter
    )
    loss = torch.nn.functional.binary_cross_entropy_with_logits(
        fleet.scores(data.x[0])[0, :, 0], data.y[0]
    )
    assert fleet.history.task_loss.shape == (1, 2)
    assert torch.allclose(fleet.history.task_loss, loss.expand(1, 2), rtol=1e-5)


def test_module_transform_and_scores_agree_and_selected_models_keep_their_history():
    data, members = sample(), grid([0.0, 3.0], [1, 2], [0, 1])
    fleet = binary(data, members, penalty=HSIC.published)
    shared, own = data.x[0], data.x
    for index, member in enumerate(members):
        encoder, head = fleet.module(index)
        assert torch.allclose(fleet.transform(shared)[index], encoder(shared), atol=1e-6)
        assert torch.allclose(fleet.scores(own)[index], head(encoder(own[member.split])), atol=1e-6)
    assert not fleet.scores(shared).requires_grad
    part = fleet.select([3, 0])
    assert part.members == (members[3], members[0])
    assert torch.equal(part.scores(own), fleet.scores(own)[[3, 0]])
    assert torch.equal(part.history.penalty, fleet.history.penalty[[3, 0]])
    assert torch.equal(
        part.penalty_state["scale_z_now"], fleet.penalty_state["scale_z_now"][[3, 0]]
    )


def test_frozen_parameters_stay_and_the_others_train():
    def encoder(columns):
        made = ENCODER(columns)
        made[0].weight.requires_grad_(False)
        return made

    data = sample()
    fleet = binary(data, [Member(0.0), Member(4.0)], penalty=HSIC, encoder=encoder)
    start = binary(data, [Member(0.0)], encoder=encoder, learning_rate=1e-12, epochs=1)
    assert torch.equal(fleet.buffers["encoder.0.weight"][1], start.buffers["encoder.0.weight"][0])
    assert not torch.allclose(
        fleet.parameters["encoder.2.weight"][1], start.parameters["encoder.2.weight"][0]
    )
    encoder_alone, head = fleet.module(1)
    assert torch.allclose(head(encoder_alone(data.x[0])), fleet.scores(data.x[0])[1], atol=1e-6)
