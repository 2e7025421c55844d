"""Time of training: one model, a fleet of them, and the loops that a fleet replaces.

    python benchmarks/training.py                         # one CPU thread
    python benchmarks/training.py --device cuda           # everything, with the sizes meant for a GPU
    python benchmarks/training.py --only methods,fleet --epochs 9

Sections: `methods` (seconds per epoch of one model, per penalty, against no penalty, a plain PyTorch loop and FREM as a
Python loop over anchors), `fleet` (25 models against one), `adult` (45 FRHSIC models × 200 epochs on Adult, or on
random data of its shape), `scaling` (45 to 360 models, per penalty).

Whole epochs are timed after a warm-up: on a CPU the least processor time of an epoch, on a GPU the mean wall time,
after waiting for the device.
"""

from __future__ import annotations

import argparse
import platform
import time
from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise

import torch
from torch import Tensor, nn

from frhsic.penalties import EIPM, GDP, HSIC, Adversary, BinnedAdversary, BinnedMMD, DistanceCovariance, Penalty
from frhsic.training import MLP, Member, Recipe, TrainingData, grid, train
from frhsic.training.execution import chunks, models_at_once
from frhsic.training.loop import Trainer
from frhsic.training.model import Model, tried

BATCH = 256
WARM = 2  # epochs: the first adapts bandwidths, the second does not, so both kinds of step are warm


def methods(z_dim: int) -> dict[str, Callable[[], Penalty] | None]:
    """Return every penalty by the name that the paper gives it."""
    return {
        "none": None,
        "FRHSIC": HSIC.published,
        "HSIC, head + Gaussian": HSIC,
        "FREM, 32 anchors": EIPM,
        "FREM, all anchors": partial(EIPM, anchors=None),
        "Reg-GDP": GDP,
        "MMD, binned": BinnedMMD.published,
        "dCov": DistanceCovariance,
        "ADV": partial(Adversary, z_dim),
        "LAFTR": partial(BinnedAdversary, z_dim),
    }


def runtime_task(n: int) -> TrainingData:
    """Return the paper's runtime task: X = (S + 0.3 ε, ε'), S uniform, Y ~ Bernoulli(sigmoid X₁)."""
    generator = torch.Generator().manual_seed(42)
    s = torch.rand(n, generator=generator)
    noise = torch.randn(n, 2, generator=generator)
    x = torch.stack([s + 0.3 * noise[:, 0], noise[:, 1]], dim=1)
    y = (torch.rand(n, generator=generator) < torch.sigmoid(x[:, 0])).float()
    return TrainingData.of(x, y, s)


def adult(rows: int | None, splits: int = 5) -> tuple[str, TrainingData]:
    """Return the first rows of Adult under the published protocol, or random data of its shape if it is not there."""
    try:
        from frhsic.datasets import load_dataset

        table = load_dataset("adult", variant="published")
        parts = [table.split(42 + r).train for r in range(splits)]
        return "Adult", TrainingData.stacked([TrainingData.of(p.x[:rows], p.y[:rows], p.s[:rows]) for p in parts])
    except (ImportError, OSError, ValueError) as error:
        print(f"Adult is not at hand ({type(error).__name__}); random data of its shape instead.")
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(splits, rows or 26_048, 107, generator=generator)
    s = torch.rand(splits, rows or 26_048, 1, generator=generator)
    return "data of Adult's shape", TrainingData(x, (x[..., 0] + s[..., 0] > 1).float(), s)


def timed(
    data: TrainingData,
    members: list[Member],
    epochs: int,
    *,
    penalty: Callable[[], Penalty] | None,
    device: str,
    encoder: Callable[[int], nn.Module] = MLP(),  # noqa: B008 - frozen
) -> float:
    """Return seconds per epoch of all members: the least of the epochs on a CPU, the mean on a GPU."""
    place = torch.device(device)
    recipe = Recipe("binary", penalty, encoder, epochs=WARM + epochs, batch_size=BATCH)
    members = sorted(members, key=lambda member: (member.seed, member.split))
    trial = tried(Model.initial(recipe, data, members[0].seed, members[0].split), recipe, data, recipe.epochs)
    tables, total, clock = [data.table().to(place), None], 0.0, _clock(place)
    for chunk in chunks(members, models_at_once(place, trial.bytes)):
        trainer = Trainer(data, tables, chunk, recipe, place, trial)
        for epoch in range(WARM):
            trainer.epoch(epoch)
        _wait(place)
        marks = [clock()]
        for epoch in range(WARM, WARM + epochs):
            trainer.epoch(epoch)
            if place.type == "cpu" or epoch == WARM + epochs - 1:
                _wait(place)
                marks.append(clock())
        total += min(b - a for a, b in pairwise(marks)) if place.type == "cpu" else (marks[-1] - marks[0]) / epochs
    return total


def plain_loop(
    data: TrainingData, penalty: Callable[..., Tensor] | None, device: str, epochs: int = 1, batches: int | None = None
) -> float:
    """Return seconds per epoch of one model in an ordinary PyTorch loop with torch.optim.Adam."""
    place = torch.device(device)
    torch.manual_seed(0)
    encoder, head = MLP(size=8)(2).to(place), nn.Linear(8, 1).to(place)
    optimiser = torch.optim.Adam([*encoder.parameters(), *head.parameters()])
    assert data.y is not None
    x, y, s = (t[0].to(place) for t in (data.x, data.y, data.s))
    if isinstance(penalty, Penalty):
        penalty.prepare(s, torch.Generator())
        penalty.to(place)
    least, clock = float("inf"), _clock(place)
    for epoch in range(WARM + epochs):
        _wait(place)
        started = clock()
        order = torch.randperm(len(x), device=place).split(BATCH)[:batches]
        for rows in order:
            optimiser.zero_grad()
            z = encoder(x[rows])
            if isinstance(penalty, Penalty):
                penalty.adapt(z.detach(), s[rows], epoch)
            scores = head(z)
            loss = nn.functional.binary_cross_entropy_with_logits(scores[:, 0], y[rows])
            if penalty is not None:
                loss = loss + penalty(z, s[rows], scores=scores, y=y[rows])
            loss.backward()
            optimiser.step()
        _wait(place)
        if epoch >= WARM:
            least = min(least, (clock() - started) * (len(x) / BATCH) / len(order))
    return least


def frem_by_loop(z: Tensor, s: Tensor, *, scores: Tensor, y: Tensor) -> Tensor:
    """FREM as the paper timed it: a Python loop over all rows, uᵀKu computed anew for each."""
    m = len(z)
    k = torch.exp(-torch.cdist(z, z).square() / 2)
    u = torch.full((m,), 1 / m, device=z.device)
    total = torch.zeros((), device=z.device)
    for i in range(m):
        w = torch.exp(-(s[:, 0] - s[i, 0]).square() / (2 * 0.5**2))
        w = torch.cat([w[:i], torch.zeros(1, device=z.device), w[i + 1 :]])
        w = w / w.sum()
        total = total + (w @ k @ w - 2 * (w @ k @ u) + u @ k @ u).clamp_min(1e-10).sqrt()
    return total / m


def _clock(device: torch.device) -> Callable[[], float]:
    """Return processor time on a CPU, where other work may run beside one thread, and wall time on a GPU."""
    return time.process_time if device.type == "cpu" else time.perf_counter


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize()


def chosen(z_dim: int, options: argparse.Namespace) -> dict[str, Callable[[], Penalty] | None]:
    """Return the penalties to measure: all, or no penalty and the one that was asked for."""
    return {name: make for name, make in methods(z_dim).items() if options.method in (None, name) or name == "none"}


def show_methods(options: argparse.Namespace) -> None:
    data = runtime_task(options.rows)
    common = {"encoder": MLP(size=8), "device": options.device}
    print(f"\nOne model, seconds per epoch at n = {data.rows:,}, batch {BATCH} (encoder 2 → 50 → 8, head 8 → 1)")
    print(f"{'penalty':24}{'fleet of one':>14}{'÷ none':>9}{'plain loop':>13}{'÷ plain':>9}")
    base, frhsic = float("nan"), float("nan")
    for name, make in chosen(8, options).items():
        one = timed(data, [Member(1.0, 42)], options.epochs, penalty=make, **common)
        plain = plain_loop(data, make() if make else None, options.device, epochs=options.epochs)
        base = one if name == "none" else base
        frhsic = one if name == "FRHSIC" else frhsic
        print(f"{name:24}{one:>14.4f}{one / base:>9.2f}{plain:>13.4f}{one / plain:>9.2f}", flush=True)
    loop = plain_loop(data, frem_by_loop, options.device, batches=4)
    print(f"{'FREM, Python loop':24}{'':14}{'':9}{loop:>13.4f}   {loop / frhsic:.1f} × FRHSIC (the paper reports 36 ×)")


def show_fleet(options: argparse.Namespace) -> None:
    data = runtime_task(options.rows)
    common = {"encoder": MLP(size=8), "device": options.device}
    print("\n25 models, seconds per epoch and model, against one alone")
    print(f"{'penalty':24}{'alone':>10}{'25 λ':>10}{'ratio':>8}{'5 λ × 5 seeds':>16}{'ratio':>8}")
    weights = [0.1 * 1.3**i for i in range(25)]
    for name, make in chosen(8, options).items():
        measure = partial(timed, data, epochs=options.epochs, penalty=make, **common)
        alone = measure(members=[Member(1.0, 42)])
        many = measure(members=grid(weights, [42])) / 25
        mixed = measure(members=grid(weights[::5], range(42, 47))) / 25
        print(
            f"{name:24}{alone:>10.4f}{many:>10.4f}{many / alone:>8.2f}{mixed:>16.4f}{mixed / alone:>8.2f}", flush=True
        )


def show_adult(options: argparse.Namespace) -> None:
    name, data = adult(options.adult_rows)
    weights = [0.0, 0.1, 0.5, 1, 5, 10, 50, 100, 500]
    members = grid(weights, range(42, 47), range(5))
    epochs = options.adult_epochs
    print(f"\n{len(members)} FRHSIC models × {epochs} epochs on {name}, n = {data.rows:,}, d = {data.columns}")
    fleet = train(
        data, members, Recipe("binary", HSIC.published, epochs=epochs, batch_size=BATCH), device=options.device
    )
    steps = epochs * -(-data.rows // BATCH)
    print(f"{fleet.seconds:.2f} s, {1e3 * fleet.seconds / steps:.3f} ms per step (all included)")


def show_scaling(options: argparse.Namespace) -> None:
    name, data = adult(options.adult_rows)
    print(f"\nSeconds per epoch of M models on {name}, n = {data.rows:,}, d = {data.columns}, over 5 splits")
    sizes = options.sizes
    print(f"{'penalty':24}" + "".join(f"{f'M = {m}':>10}" for m in sizes) + f"{f'{sizes[-1]} ÷ {sizes[0]}':>10}")
    for title, make in chosen(50, options).items():
        seconds = []
        for size in sizes:
            members = grid([0.01 * 1.2**i for i in range(size // 5)], range(42, 47), range(5))
            seconds.append(timed(data, members, 10, penalty=make, device=options.device))
        ratio = seconds[-1] / seconds[0]
        print(f"{title:24}" + "".join(f"{value:>10.4f}" for value in seconds) + f"{ratio:>10.2f}", flush=True)


SECTIONS = {"methods": show_methods, "fleet": show_fleet, "adult": show_adult, "scaling": show_scaling}


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--only", default=None, help="sections, separated by commas")
    parser.add_argument("--method", default=None, help="one penalty beside none, by its name in the tables")
    parser.add_argument("--epochs", type=int, default=None, help="epochs timed after the warm-up")
    parser.add_argument("--rows", type=int, default=20_000, help="training rows of the paper's runtime task")
    parser.add_argument("--adult-rows", type=int, default=None, help="training rows of Adult; all by default")
    parser.add_argument("--adult-epochs", type=int, default=200)
    parser.add_argument("--sizes", type=int, nargs="+", default=[45, 90, 180, 360], help="models (scaling)")
    options = parser.parse_args(argv)
    on_gpu = options.device.startswith("cuda")
    options.epochs = options.epochs or (20 if on_gpu else 5)
    torch.set_num_threads(1)
    where = torch.cuda.get_device_name() if on_gpu else f"{platform.processor() or platform.machine()}, one thread"
    print(f"torch {torch.__version__} on {where}")
    for name in options.only.split(",") if options.only else (SECTIONS if on_gpu else ["methods", "fleet"]):
        SECTIONS[name](options)


if __name__ == "__main__":
    main()
