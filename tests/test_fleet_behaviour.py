"""What a fleet does when something goes wrong, and what it tells while it runs."""

from __future__ import annotations

import logging
import warnings
from dataclasses import FrozenInstanceError
from functools import partial
from itertools import pairwise

import pytest
import torch
from torch import Tensor, nn

from fleet_samples import BATCH, ENCODER, PENALTIES, alone, by_hand, gap, sample, trained
from frhsic.penalties import HSIC, BinnedMMD, Penalty
from frhsic.penalties.base import Batch
from frhsic.training import DivergenceWarning, Execution, Member, Recipe, Tick, TrainingData, grid, mlp_encoder
from frhsic.training.data import Purpose, batch_order, stream_seed
from frhsic.training.loop import Trainer
from frhsic.training.plan import Plan
from frhsic.training.randomness import seeded
from frhsic.training.state import Layout

binary = partial(trained, task="binary", encoder=ENCODER, epochs=3, batch_size=BATCH, device="cpu")


class Explosive(Penalty):
    """The square of the first mean of z, until the adapted counter passes `last`; then NaN, in value and gradient."""

    def __init__(self, last: float) -> None:
        super().__init__()
        self.last = last
        self.register_buffer("calls", torch.zeros(()))

    def adapts(self, epoch: int) -> bool:
        return True

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        self.calls.add_(1)

    def _value(self, batch: Batch) -> Tensor:
        return batch.z[:, 0].mean().square() * torch.where(self.calls > self.last, torch.nan, 1.0)


class RootOfZero(Penalty):
    """√0 as a function of z: finite, with a gradient that is not."""

    def _value(self, batch: Batch) -> Tensor:
        return (batch.z - batch.z).square().sum().sqrt()


def test_a_prepared_penalty_keeps_its_state_and_another_is_prepared_on_the_training_rows():
    data, penalty = sample(), BinnedMMD(bins=2)
    prepared = penalty.unprepared()
    prepared.prepare(torch.tensor([0.0, 40.0]), torch.Generator())
    states = [binary(data, [Member(1.0)], penalty=each).penalty_state["edges"] for each in (prepared, penalty)]
    assert states[0].item() == 20
    assert states[1].item() < 2


def test_model_that_diverges_keeps_what_it_was_before_that_epoch_and_the_others_go_on():
    data = sample()
    with pytest.warns(DivergenceWarning, match=r"1 of 3 models .* Member\(weight=1.0, seed=0, split=0\) in epoch 1"):
        fleet = binary(data, [Member(0.0), Member(1.0), Member(0.0, 1)], penalty=partial(Explosive, 4))
    assert fleet.diverged.tolist() == [-1, 1, -1]
    assert fleet.epochs_done.tolist() == [3, 1, 3]
    stopped = by_hand_steps(data, 3)  # the epoch before
    assert gap(fleet, 1, stopped) < 1e-6
    assert gap(fleet, 0, by_hand(data, Member(0.0), partial(Explosive, 4))) < 1e-5
    assert torch.isfinite(fleet.history.task_loss[1]).tolist() == [True, False, False]
    assert bool(torch.isfinite(fleet.history.task_loss[[0, 2]]).all())


def by_hand_steps(data: TrainingData, steps: int) -> dict[str, Tensor]:
    """Train with the square of the first mean of z for so many steps."""
    torch.manual_seed(stream_seed(0, 0, Purpose.WEIGHTS))
    model = nn.ModuleDict({"encoder": ENCODER(), "head": nn.Linear(5, 1)})
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    batches = [rows for epoch in range(3) for rows in batch_order(0, 0, epoch, data.rows).split(BATCH)]
    for rows in batches[:steps]:
        z = model["encoder"](data.x[0, rows])
        loss = nn.functional.binary_cross_entropy_with_logits(model["head"](z)[:, 0], data.y[0, rows])
        optimiser.zero_grad()
        (loss + z[:, 0].mean().square()).backward()
        optimiser.step()
    return {name: value.detach() for name, value in model.named_parameters()}


def test_gradient_that_is_not_finite_stops_a_model_even_where_its_loss_is():
    data = sample()
    with pytest.warns(DivergenceWarning, match="1 of 2 models"):
        fleet = binary(data, [Member(1.0), Member(0.0)], penalty=RootOfZero)
    assert fleet.diverged.tolist() == [0, -1]
    assert all(bool(torch.isfinite(values).all()) for values in fleet.parameters.values())


def test_penalty_without_weight_cannot_spoil_the_model_it_is_measured_on():
    data = sample()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fleet = binary(data, [Member(0.0), Member(0.0, 1)], penalty=RootOfZero)
    assert gap(fleet, 0, by_hand(data, Member(0.0), RootOfZero)) < 1e-6


def test_training_ends_when_no_model_is_left():
    with pytest.warns(DivergenceWarning, match="2 of 2 models"):
        fleet = binary(sample(), [Member(1.0), Member(2.0)], penalty=RootOfZero, epochs=50)
    assert fleet.diverged.tolist() == [0, 0]
    assert fleet.epochs_done.tolist() == [0, 0]


@pytest.mark.parametrize("budget", [2**30, 1])
def test_interrupt_returns_what_is_finished(budget, monkeypatch):
    data, members = sample(), grid([0.0, 1.0], [0, 1], [0, 1])
    taken = []
    epoch_of = Trainer.epoch

    def interrupted(self, epoch):
        taken.append(epoch)
        if len(taken) == 5:
            self.begin(epoch)
            self.step(BATCH, epoch, False)  # a step of an epoch that is not finished: undone
            raise KeyboardInterrupt
        epoch_of(self, epoch)

    whole = binary(data, members, penalty=HSIC, memory_budget=budget, epochs=3 if budget == 1 else 4)
    monkeypatch.setattr(Trainer, "epoch", interrupted)
    fleet = binary(data, members, penalty=HSIC, memory_budget=budget, epochs=3 if budget == 1 else 20)
    assert fleet.interrupted
    assert not whole.interrupted
    assert fleet.members == tuple(members)
    assert fleet.epochs_done.tolist() == ([3, 1, 0, 0] if budget == 1 else [4, 4, 4, 4])
    assert gap(fleet, 0, {name: values[0] for name, values in whole.parameters.items()}) == 0
    assert fleet.scores(data.x).shape == (4, data.rows, 1)
    assert bool(torch.isfinite(fleet.scores(data.x)).all())


def test_fleet_that_runs_out_of_memory_is_halved_until_it_fits(monkeypatch, caplog):
    data, members = sample(), grid([0.0, 1.0, 3.0, 5.0, 7.0], [0])
    whole = binary(data, members, penalty=HSIC)
    epoch_of, tried = Trainer.epoch, []

    def short_of_memory(self, epoch):
        tried.append(len(self.state.layout.members))
        if tried[-1] > 2:
            raise torch.OutOfMemoryError
        epoch_of(self, epoch)

    monkeypatch.setattr(Trainer, "epoch", short_of_memory)
    with caplog.at_level(logging.WARNING, logger="frhsic.training"):
        fleet = binary(data, members, penalty=HSIC)
    assert tried == [5, 2, 2, 2, 3, 1, 1, 1, 2, 2, 2]
    assert "5 models at once do not fit into memory" in caplog.text
    assert fleet.members == whole.members
    for index in range(5):
        assert gap(whole, index, {name: values[index] for name, values in fleet.parameters.items()}) < 1e-6


def test_one_model_that_does_not_fit_into_memory_is_an_error(monkeypatch):
    def short_of_memory(self, epoch):
        raise torch.OutOfMemoryError("one model is too large")

    monkeypatch.setattr(Trainer, "epoch", short_of_memory)
    with pytest.raises(torch.OutOfMemoryError, match="one model is too large"):
        binary(sample(), grid([0.0, 1.0], [0]), penalty=HSIC)


def test_a_trial_that_does_not_fit_into_memory_is_no_error_of_stacking(monkeypatch):
    def short_of_memory(*_):
        raise torch.OutOfMemoryError("the trial is too large")

    monkeypatch.setattr("frhsic.training.loop.losses", short_of_memory)
    with pytest.raises(torch.OutOfMemoryError, match="the trial is too large"):
        binary(sample(), grid([0.0, 1.0], [0]), penalty=HSIC)


def batch_normed() -> nn.Module:
    # no bias before the normalisation: it would have no gradient but rounding, which Adam makes a whole step of
    return nn.Sequential(nn.Linear(4, 8, bias=False), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 5))


def normed_at_the_door() -> nn.Module:
    return nn.Sequential(nn.BatchNorm1d(4), nn.Linear(4, 5))


def with_dropout() -> nn.Module:
    return nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Dropout(0.5), nn.Linear(8, 5))


class Branching(nn.Linear):
    """A layer that looks at a value."""

    def forward(self, x: Tensor) -> Tensor:
        z = super().forward(x)
        return z if float(z.detach().sum()) > 0 else -z


@pytest.mark.parametrize("encoder", [with_dropout, partial(Branching, 4, 5)])
def test_module_that_vmap_does_not_admit_is_refused_before_training_with_the_way_out(encoder):
    with pytest.raises(ValueError, match=r"cannot be stacked.*sequential=True.*PyTorch said"):
        binary(sample(), [Member(0.0), Member(1.0)], encoder=encoder, penalty=HSIC)


@pytest.mark.parametrize("encoder", [batch_normed, normed_at_the_door])
@pytest.mark.parametrize("sequential", [False, True])
def test_batch_normalisation_trains_as_in_an_ordinary_loop(encoder, sequential):
    data, members = sample(), grid([0.0, 2.0], [0, 1], [0, 1])
    fleet = binary(data, members, encoder=encoder, penalty=HSIC.published, sequential=sequential)
    layer = 1 if encoder is batch_normed else 0
    for index, member in enumerate(members):
        assert gap(fleet, index, by_hand(data, member, HSIC.published, encoder=encoder)) < 1e-5
        made, head = fleet.module(index)
        assert torch.allclose(fleet.scores(data.x)[index], head(made(data.x[member.split])), atol=1e-6)
    assert fleet.buffers[f"encoder.{layer}.num_batches_tracked"].tolist() == [9] * 4
    means = fleet.buffers[f"encoder.{layer}.running_mean"]
    assert not torch.equal(means[0], means[2])


def test_dropout_draws_from_the_members_stream_and_leaves_the_global_one():
    data, members = sample(), [Member(1.0), Member(2.0, 1)]
    torch.manual_seed(11)
    expected = torch.rand(1)
    torch.manual_seed(11)
    first = binary(data, members, encoder=with_dropout, penalty=HSIC, sequential=True)
    assert torch.equal(torch.rand(1), expected)
    second = binary(data, members[1:], encoder=with_dropout, penalty=HSIC, sequential=True)
    assert gap(first, 1, alone(second)) == 0


def test_sequential_and_stacked_training_agree():
    data, members = sample(), grid([0.0, 2.0], [0, 1], [0, 1])
    stacked, one_by_one = (binary(data, members, penalty=HSIC, sequential=way) for way in (False, True))
    for index in range(4):
        assert gap(stacked, index, {name: values[index] for name, values in one_by_one.parameters.items()}) < 1e-6


def test_watcher_hears_of_progress_and_of_the_end():
    heard: list[Tick] = []
    binary(sample(), grid([0.0, 1.0], [0, 1]), penalty=HSIC, progress=heard.append, memory_budget=1)
    assert heard[-1].epoch == heard[-1].epochs == 3
    assert heard[-1].models == 4
    assert heard[-1].seconds_left == 0
    assert all(a.seconds <= b.seconds and a.epoch <= b.epoch for a, b in pairwise(heard))
    assert all(0 < tick.task_loss < 2 and tick.diverged == 0 for tick in heard)


def test_bar_appears_on_a_terminal_only(monkeypatch, capsys):
    binary(sample(), [Member(0.0)], progress=True)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    binary(sample(), [Member(0.0), Member(1.0)], progress=True)
    assert "2 models: loss 0." in capsys.readouterr().err


def test_threads_and_precision_are_restored_even_after_an_error(monkeypatch):
    before = torch.get_num_threads(), torch.get_float32_matmul_precision()
    monkeypatch.setattr(Trainer, "epoch", lambda self, epoch: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        binary(sample(), [Member(0.0)], threads=before[0] + 1, precision="tf32")
    assert (torch.get_num_threads(), torch.get_float32_matmul_precision()) == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"members": []}, "no members"),
        ({"members": [Member(1.0, 0, 2)]}, "split 2, but the data hold 2"),
        ({"epochs": 0}, "epochs is 0"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"batch_size": 2.5}, "batch_size is 2.5"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"weight_decay": -1.0}, "weight_decay is -1.0"),
        ({"weight_decay": float("nan")}, "weight_decay is nan"),
        ({"task": "ranking"}, "'ranking'; choose one of binary"),
        ({"task": "multiclass", "data": sample(task="regression")}, "class numbers"),
        ({"data": sample(task="regression")}, "needs y in {0, 1}"),
        ({"data": sample(task="reconstruction")}, "needs a target"),
        ({"precision": "half"}, "precision is 'half'"),
        ({"memory_budget": 0}, "memory_budget is 0"),
        ({"encoder": partial(mlp_encoder, 3)}, "encoder does not take rows of 4 columns"),
        ({"head": partial(nn.Linear, 5, 2)}, "head gives 2 outputs; task='binary' needs 1"),
        ({"head": lambda: nn.Sequential(nn.Linear(5, 1), nn.Flatten(0))}, r"head turned .* it must give \(64, width\)"),
        ({"encoder": nn.Identity, "head": nn.Identity}, "nothing to train|outputs"),
    ],
)
def test_bad_input_is_refused_with_what_came_and_what_to_do(changes, message):
    options = {"data": sample(), "members": [Member(1.0)], "penalty": HSIC} | changes
    data, members = options.pop("data"), options.pop("members")
    with pytest.raises(ValueError, match=message):
        binary(data, members, **options)


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is there")
def test_absent_gpu_is_said_to_be_absent():
    with pytest.raises(ValueError, match="sees no GPU"):
        binary(sample(), [Member(1.0)], device="cuda")


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"weight": -1.0}, "weight is -1"),
        ({"weight": float("inf")}, "weight is inf"),
        ({"weight": 1.0, "seed": -1}, "seed=-1"),
        ({"weight": 1.0, "seed": 2**32}, "seed=4294967296"),
        ({"weight": 1.0, "split": -2}, "split=-2"),
    ],
)
def test_member_refuses_what_cannot_be_trained(values, message):
    with pytest.raises(ValueError, match=message):
        Member(**values)


def test_training_data_refuse_arrays_that_do_not_belong_together():
    x, y, s = torch.zeros(6, 2), torch.zeros(6), torch.zeros(6)
    with pytest.raises(ValueError, match="lengths differ"):
        TrainingData.of(x, y[:5], s)
    with pytest.raises(ValueError, match="NaN"):
        TrainingData.of(x, y, s / 0)
    with pytest.raises(ValueError, match=r"\(D, n, d\) and \(D, n, q\)"):
        TrainingData(x, y, s)
    with pytest.raises(ValueError, match=r"y has shape \(5,\)"):
        TrainingData(x[None], y[:5], s[None, :, None])
    with pytest.raises(ValueError, match="sample_weight must be zero or more"):
        TrainingData.of(x, y, s, sample_weight=y)
    with pytest.raises(ValueError, match="splits differ"):
        TrainingData.stacked([TrainingData.of(x, y, s), TrainingData.of(x[:5], y[:5], s[:5])])
    with pytest.raises(ValueError, match="no splits"):
        TrainingData.stacked([])
    with pytest.raises(ValueError, match="2 seeds and 1 splits"):
        grid([1.0], [1, 2], [0])


def test_stacked_splits_are_the_splits():
    parts = [
        TrainingData.of(torch.full((3, 2), v), torch.ones(3), torch.ones(3), sample_weight=[1, 2, 3])
        for v in (1.0, 2.0)
    ]
    data = TrainingData.stacked(parts)
    assert (data.splits, data.rows, data.columns) == (2, 3, 2)
    assert torch.equal(data.x[1], parts[1].x[0])
    assert data.sample_weight[0].tolist() == pytest.approx([0.5, 1.0, 1.5])


def test_predictions_refuse_rows_of_splits_that_are_not_there():
    fleet = binary(sample(), [Member(1.0, 0, 1)], epochs=1)
    with pytest.raises(ValueError, match="holds 1 splits, but a model was trained on split 1"):
        fleet.scores(sample().x[:1])
    with pytest.raises(ValueError, match=r"x is shape \(4,\)"):
        fleet.transform(torch.zeros(4))
    with pytest.raises(ValueError, match="no indices"):
        fleet.select([])


def test_streams_depend_on_seed_split_purpose_and_epoch():
    seeds = [stream_seed(seed, split, purpose) for seed in (0, 1, 42) for split in (0, 1) for purpose in Purpose]
    orders = [stream_seed(seed, split, Purpose.ORDER, epoch) for seed in (0, 1) for split in (0, 1) for epoch in (1, 2)]
    assert len({*seeds, *orders}) == 3 * 2 * len(Purpose) + 2 * 2 * 2
    assert not torch.equal(batch_order(0, 0, 0, 50), batch_order(0, 0, 1, 50))
    assert not torch.equal(batch_order(0, 0, 0, 50), batch_order(0, 1, 0, 50))


def test_stream_of_a_member_is_fixed_for_all_time():
    # Published numbers hang on these: computed once from the derivation that `streams` states.
    import numpy as np

    word = int(np.random.SeedSequence([42, 3, 1, 7]).generate_state(1, np.uint64)[0]) >> 1
    assert stream_seed(42, 3, Purpose.ORDER, 7) == word
    assert (
        batch_order(42, 0, 0, 8).tolist()
        == torch.randperm(8, generator=torch.Generator().manual_seed(stream_seed(42, 0, Purpose.ORDER, 0))).tolist()
    )


@pytest.mark.parametrize(
    ("sizes", "groups", "together"), [([9, 9, 9], 3, 9), ([4, 6], 5, 2), ([3, 2], 5, 1), ([7], 1, 7), ([1], 1, 1)]
)
def test_members_that_share_batches_are_laid_out_in_the_widest_even_groups(sizes, groups, together):
    members = [Member(float(w), seed) for seed, size in enumerate(sizes) for w in range(size)]
    layout = Layout.of(members)
    assert (layout.groups, layout.together) == (groups, together)
    for index, leader in enumerate(layout.leaders):
        shared = members[index * together : (index + 1) * together]
        assert {(m.seed, m.split) for m in shared} == {(leader.seed, leader.split)}


@pytest.mark.parametrize("at_once", [1, 2, 3, 4, 5, 7, 12, 100])
def test_chunks_hold_every_member_once_and_no_more_than_fit(at_once):
    members = sorted(grid(range(5), [0, 1]) + grid(range(3), [2]), key=lambda m: m.seed)
    recipe = Recipe("binary", HSIC, ENCODER, epochs=1, batch_size=BATCH)
    bytes_per_model = Plan.of(sample(), members, recipe, "cpu", Execution()).bytes_per_model
    chunks = Plan.of(sample(), members, recipe, "cpu", Execution(memory_budget=at_once * bytes_per_model)).chunks()
    assert [member for chunk in chunks for member in chunk] == members
    assert max(map(len, chunks)) <= at_once
    assert len(chunks) == 1 if at_once >= 13 else len(chunks) <= -(-13 // at_once) * 2


def test_only_state_that_adapts_is_kept_for_every_model():
    def shared(name):
        recipe = Recipe("binary", PENALTIES[name], ENCODER, epochs=3, batch_size=BATCH)
        plan = Plan.of(sample(), [Member(1.0), Member(2.0)], recipe, "cpu", Execution())
        return {n for n in plan.shared if Trainer(plan, plan.members).state.shared[n].shape[0] == 1}

    assert shared("frhsic") == {"penalty.scale_s_now"}
    assert shared("laftr") == {"penalty.edges"}
    assert shared("adv") == set()


def test_penalty_that_replaces_its_state_is_refused():
    class Replacing(Explosive):
        def _adapt(self, z: Tensor, s: Tensor) -> None:
            self.calls = self.calls + 1

    with pytest.raises(TypeError, match=r"Replacing.adapt replaced a buffer; it must write in place"):
        binary(sample(), [Member(1.0)], penalty=partial(Replacing, 1e9))


def test_penalty_object_is_copied_and_stays_as_it_was():
    penalty = HSIC.published()
    before = {name: value.clone() for name, value in penalty.state_dict().items()}
    fleet = binary(sample(), [Member(1.0), Member(2.0)], penalty=penalty)
    assert {name: value.tolist() for name, value in penalty.state_dict().items()}.keys() == before.keys()
    assert penalty.scale_s_now is None
    factory = binary(sample(), [Member(1.0), Member(2.0)], penalty=HSIC.published)
    assert torch.equal(fleet.history.penalty, factory.history.penalty)


def test_encoder_is_built_once_for_each_seed_and_split():
    built = []

    def encoder():
        built.append(1)
        return ENCODER()

    binary(sample(), [Member(0.0), Member(1.0), Member(2.0), Member(1.0, 1), Member(2.0, 1)], encoder=encoder)
    assert len(built) == 2


def test_recipe_is_frozen_and_checked_when_it_is_made():
    with pytest.raises(FrozenInstanceError):
        Recipe("binary").epochs = 3
    with pytest.raises(ValueError, match="epochs is True"):
        Recipe("binary", epochs=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_update_is_adam_of_torch_bit_for_bit(dtype):
    plan = Plan.of(sample(dtype=dtype), [Member(1.0), Member(2.0)], Recipe("binary"), "cpu", Execution())
    trainer = Trainer(plan, plan.members)
    theirs = trainer.state.flat.detach().clone().requires_grad_()
    optimizer = torch.optim.Adam([theirs], fused=True)
    draw = torch.Generator().manual_seed(0)
    for _ in range(5):
        gradient = torch.randn(theirs.shape, generator=draw, dtype=dtype)
        theirs.grad = gradient.clone()
        optimizer.step()
        trainer._update(gradient)
    assert torch.equal(trainer.state.flat, theirs)


@pytest.mark.slow
def test_compiled_steps_give_the_same_models(caplog):
    data, members = sample(), grid([0.0, 2.0], [0, 1], [0, 1])
    plain = binary(data, members, penalty=HSIC)
    with caplog.at_level(logging.WARNING, logger="frhsic.training"), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the compiler says about itself
        fused = binary(data, members, penalty=HSIC, compile=True)
    assert not caplog.records
    for index in range(4):
        assert gap(plain, index, {name: values[index] for name, values in fused.parameters.items()}) < 1e-5


def test_draws_of_a_block_come_from_its_seed_and_leave_the_global_generator_alone():
    before = torch.random.get_rng_state()
    draws = []
    for _ in range(2):
        with seeded(5):
            weights = torch.empty(4)
            draws.append(torch.cat([torch.rand(4), weights.normal_(), torch.bernoulli(torch.full((4,), 0.5))]))
            assert torch.rand(3, device="meta").shape == (3,)  # elsewhere than on the CPU, as torch does
    assert torch.equal(*draws)
    own = torch.Generator().manual_seed(5)
    torch.testing.assert_close(draws[0][:4], torch.rand(4, generator=own))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_data_without_rows_are_refused():
    with pytest.raises(ValueError, match=r"x is empty: its shape is \(1, 0, 3\)"):
        TrainingData(torch.zeros(1, 0, 3), torch.zeros(1, 0), torch.zeros(1, 0, 1))
