"""S known for some rows: they reach the penalty in fixed numbers, the others train the task."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch
from torch import nn

from fleet_samples import BATCH, COLUMNS, ENCODER, LOSSES, PENALTIES, WIDTH, gap, sample, trained
from frhsic.penalties import HSIC
from frhsic.training import Member, TrainingData, grid
from frhsic.training.batches import Batches, batch_order, batch_shapes
from frhsic.training.state import Layout
from frhsic.training.streams import Purpose, stream, stream_seed

MEMBERS = grid([0.0, 3.0], [1, 2], [0, 1])
binary = partial(trained, task="binary", encoder=ENCODER, epochs=3, batch_size=BATCH, device="cpu")


def partly(labelled: int, **options: object) -> TrainingData:
    return replace(sample(**options), labelled=labelled)


@pytest.mark.parametrize(("rows", "labelled", "size"), [(150, 61, 64), (150, 149, 64), (1000, 37, 100), (64, 10, 64)])
def test_batches_hold_every_row_once_and_those_with_s_first_in_even_numbers(rows, labelled, size):
    data = partly(labelled, rows=rows)
    layout = Layout.of(sorted(MEMBERS, key=lambda m: (m.seed, m.split)))
    numbers = torch.arange(2 * rows)[:, None]
    batches = Batches(data, numbers, layout, size)
    whole = [k for m, k in batches.shapes if m == size]
    assert max(whole) - min(whole) <= 1
    assert sum(k for _, k in batches.shapes) == labelled
    assert sum(m for m, _ in batches.shapes) == rows
    orders = []
    for epoch in range(2):
        batches.shuffle(epoch)
        seen = []
        for m, k in batches.shapes:
            taken = batches.take(m)[..., 0]  # (G, m)
            for group, member in enumerate(layout.leaders):
                places = taken[group] - member.split * rows
                assert bool((places[:k] < labelled).all())
                assert bool((places[k:] >= labelled).all())
            seen.append(taken)
        order = torch.cat(seen, dim=1)
        for group, member in enumerate(layout.leaders):
            assert order[group].sort().values.tolist() == list(range(member.split * rows, (member.split + 1) * rows))
        orders.append(order)
    assert not torch.equal(orders[0], orders[1])


def by_hand_with_some_labelled(data, member, make_penalty, epochs=3):
    """Train one model in an ordinary loop: each batch gets its share of the rows with S, from the epoch's order."""
    torch.manual_seed(stream_seed(member.seed, member.split, Purpose.WEIGHTS))
    model = nn.ModuleDict({"encoder": ENCODER(COLUMNS), "head": nn.Linear(WIDTH, 1)}).to(data.x.dtype)
    penalty, known = make_penalty(), data.labelled
    x, y, s = data.x[member.split], data.y[member.split], data.s[member.split]
    penalty.prepare(s[:known], stream(member.seed, member.split, Purpose.PENALTY))
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-3)
    for epoch in range(epochs):
        order = batch_order(member.seed, member.split, epoch, len(x)).tolist()
        with_s = [row for row in order if row < known]
        without = [row for row in order if row >= known]
        done = 0
        while done < len(x):
            size = min(BATCH, len(x) - done)
            k = known * (done + size) // len(x) - known * done // len(x)
            rows = [with_s.pop(0) for _ in range(k)] + [without.pop(0) for _ in range(size - k)]
            done += size
            z = model["encoder"](x[rows])
            scores = model["head"](z)
            loss = LOSSES["binary"](scores, y[rows], x[rows]).mean()
            if k:
                penalty.adapt(z[:k].detach(), s[rows][:k], epoch)
                loss = loss + member.weight * penalty(z[:k], s[rows][:k], scores=scores[:k], y=y[rows][:k])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return {name: value.detach() for name, value in model.named_parameters()}


@pytest.mark.parametrize("name", ["frhsic", "whitened", "reg-gdp", "adv", "equal opportunity", "frem"])
def test_a_fleet_is_the_ordinary_loop_on_such_batches(name):
    data = partly(60, dtype=torch.float64)
    fleet = binary(data, MEMBERS, penalty=PENALTIES[name])
    for index, member in enumerate(MEMBERS):
        if member.weight:
            assert gap(fleet, index, by_hand_with_some_labelled(data, member, PENALTIES[name])) < 1e-9


@pytest.mark.parametrize("name", PENALTIES)
def test_values_of_s_in_rows_without_it_do_not_matter_and_the_other_rows_do(name):
    data = partly(40)
    junk = data.s.clone()
    junk[:, 40:] = torch.nan
    fleet = binary(data, MEMBERS, penalty=PENALTIES[name], epochs=2)
    other = binary(replace(data, s=junk), MEMBERS, penalty=PENALTIES[name], epochs=2)
    assert all(torch.equal(values, other.parameters[n]) for n, values in fleet.parameters.items())
    assert bool(fleet.history.penalty.isfinite().all())
    few = TrainingData(data.x[:, :40], data.y[:, :40], data.s[:, :40])
    alone = binary(few, MEMBERS, penalty=PENALTIES[name], epochs=2)
    assert gap(fleet, 1, {n: values[1] for n, values in alone.parameters.items()}) > 1e-3


@pytest.mark.parametrize("name", PENALTIES)
def test_small_last_batches_with_few_rows_with_s_are_trained_on(name):
    for labelled in (30, 10):  # the last batch of 22 and of 3 rows has 5 and 1 of them
        data = partly(labelled, rows=150 if labelled == 30 else 131)
        assert batch_shapes(data, BATCH)[-1] in ((22, 5), (3, 1))
        fleet = binary(data, MEMBERS, penalty=PENALTIES[name], epochs=2)
        assert bool(torch.isfinite(fleet.history.penalty).all())
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
    assert TrainingData.of(x, None, [1, 2, 3, 4, 5]).labelled is None


def test_held_out_rows_may_lack_s_too():
    data = partly(60, dtype=torch.float64)
    held = replace(sample(rows=100, dtype=torch.float64), labelled=37)
    fleet = binary(replace(data, held_out=held), [Member(2.0)], penalty=HSIC, epochs=1)
    encoder, head = fleet.module(0)
    penalty = HSIC()
    penalty.prepare(data.s[0, :60], torch.Generator())
    order = batch_order(0, 0, 0, 100, Purpose.HELD_OUT).tolist()
    with_s, without, total = [r for r in order if r < 37], [r for r in order if r >= 37], 0.0
    for size, k in ((64, 37 * 64 // 100), (36, 37 - 37 * 64 // 100)):
        rows = [with_s.pop(0) for _ in range(k)] + [without.pop(0) for _ in range(size - k)]
        z = encoder(held.x[0, rows])
        scores, y = head(z), held.y[0, rows]
        loss = LOSSES["binary"](scores, y, z).mean()
        loss = loss + 2 * penalty(z[:k], held.s[0, rows][:k], scores=scores[:k], y=y[:k])
        total += size * float(loss.detach())
    assert float(fleet.history.held_out_objective[0, 0]) == pytest.approx(total / 100, rel=1e-9)
