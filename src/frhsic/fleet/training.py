"""The training loop, for every method and any number of models."""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Literal

import torch
from torch import nn

from frhsic import _arrays
from frhsic.fleet.bottleneck import floored
from frhsic.fleet.data import Member, TrainingData
from frhsic.fleet.losses import Task
from frhsic.fleet.progress import Pace, Watch, watching
from frhsic.fleet.record import Record, assembled, warn_of_divergence
from frhsic.fleet.result import Fleet
from frhsic.fleet.run import Run
from frhsic.fleet.streams import Purpose, stream_seed
from frhsic.penalties.base import Penalty

__all__ = ["train"]

log = logging.getLogger(__name__)


def train(
    data: TrainingData,
    members: Sequence[Member],
    *,
    task: Task,
    penalty: Penalty | Callable[[], Penalty] | None = None,
    encoder: Callable[[], nn.Module] | None = None,
    head: Callable[[], nn.Module] | None = None,
    epochs: int = 200,
    batch_size: int = 256,
    learning_rate: float = 1e-3,
    weight_decay: float = 0.0,
    variance_floor: float = 0.0,
    device: torch.device | str = "auto",
    progress: bool | Watch | None = None,
    sequential: bool = False,
    capture: bool = True,
    compile: bool = False,
    precision: Literal["float32", "tf32"] = "float32",
    memory_budget: int | None = None,
    threads: int | None = 1,
) -> Fleet:
    r"""Train M models in lock-step, each minimising its own

    .. math:: \frac1n \sum_i \ell(f(h(x_i)), y_i) + \lambda \cdot \text{penalty}(h(x), s)

    by Adam on mini-batches, the penalty being that of the batch. The defaults are the paper's: 200 epochs,
    batches of 256 with the last partial one kept, learning rate 1e-3, no decay, no early stopping.

    Initial weights and batch order are functions of a member's seed and split alone
    (:mod:`frhsic.fleet.streams`). The same call on the same device gives the same numbers, bit for bit; a model
    in fleets of other sizes agrees up to the rounding of sums in another order.

    Parameters
    ----------
    data : TrainingData
        Rows of all splits; moved to the device once.
    members : sequence of Member
        Weight λ, seed and split of each model.
    task : {"binary", "multiclass", "regression", "reconstruction"}
        The loss ℓ, see :mod:`frhsic.fleet.losses`.
    penalty : Penalty, callable or None
        A penalty, copied for every (seed, split), or a function that makes one. One that is already prepared keeps its
        state. None trains without.
    encoder, head : callable, optional
        Functions that make a module; by default the paper's, :func:`mlp_encoder` and :func:`affine_head`.
    weight_decay : float
        w adds :math:`\tfrac w2 \|W\|^2` to the loss of every model, whatever its λ, over the weight matrices W of
        the encoder.
    variance_floor : float
        After training, take out of Z the principal directions of its standardised coordinates whose variance on the
        training rows, an eigenvalue of their correlation matrix, is below this; see
        :func:`~frhsic.fleet.bottleneck.floored`. 0 leaves Z as it is.
    progress : bool or callable
        True shows a bar on a terminal; a function is called with a :class:`Tick` about twice a second.
    sequential : bool
        Train one model after another, for modules that `vmap` does not admit, such as dropout.
    capture : bool
        On a GPU, capture a step once and replay it.
    compile : bool
        Fuse the step with ``torch.compile``; takes a while to start.
    precision : {"float32", "tf32"}
        Matrix products on a GPU in full float32, or in TF32.
    memory_budget : int, optional
        Bytes that the models trained at once may take; a larger fleet is cut into parts, with the same results.
        By default 80 % of the free GPU memory, or on a CPU what stays in cache.
    threads : int, optional
        CPU threads during training; None leaves the number as it is. Batches are small, and one is fastest.

    Returns
    -------
    Fleet
        Also after an interrupt from the keyboard, with `interrupted` set.

    Examples
    --------
    >>> data = TrainingData.of(torch.randn(64, 3), torch.ones(64), torch.rand(64))
    >>> fleet = train(data, [Member(0.0), Member(1.0)], task="binary", epochs=2, device="cpu")
    >>> fleet.scores(torch.zeros(5, 3)).shape
    torch.Size([2, 5, 1])
    """
    started = time.perf_counter()
    members = _checked_members(members, data)
    if not 0 <= variance_floor < 1:
        raise ValueError(f"variance_floor is {variance_floor}; pass a number from 0, which cuts nothing, to below 1.")
    place = _arrays.resolve_device(device)
    run = Run.of(
        data,
        members[0],
        task=task,
        penalty=penalty,
        encoder=encoder,
        head=head,
        epochs=epochs,
        batch_size=batch_size,
        learning_rate=learning_rate,
        weight_decay=weight_decay,
        device=place,
        capture=capture,
        compile=compile,
    )
    order = sorted(range(len(members)), key=lambda i: (members[i].seed, members[i].split))
    sharers = [members[i] for i in order]
    parts = deque([[member] for member in sharers] if sequential else run.parts(sharers, memory_budget))
    finished, interrupted = [], False
    with watching(progress) as watch, _settings(place, threads, precision):
        pace = Pace(watch, len(members), epochs)
        while parts:
            part = parts.popleft()
            torch.manual_seed(stream_seed(part[0].seed, part[0].split, Purpose.TRAINING))
            stepper = run.stepper(part)
            record = Record(epochs, stepper.state, data.rows)
            try:
                for epoch in range(0 if interrupted else epochs):
                    stepper.epoch(epoch)
                    record.close(epoch)
                    if not record.watch(pace):
                        break
            except KeyboardInterrupt:
                interrupted = True
                stepper.state.restore()
            except torch.OutOfMemoryError:
                if len(part) == 1:
                    raise
                log.warning("%d models at once do not fit into memory; training them in two halves", len(part))
                parts.extendleft([part[len(part) // 2 :], part[: len(part) // 2]])
                continue
            finished.append(record.finish(pace))
            pace.passed(len(part))
    seconds = time.perf_counter() - started
    fleet = assembled(finished, order, seconds, stackable=not sequential, interrupted=interrupted)
    warn_of_divergence(fleet)
    return floored(fleet, data, variance_floor)


def _checked_members(members: Sequence[Member], data: TrainingData) -> list[Member]:
    made = list(members)
    if not made:
        raise ValueError("no members came; pass at least one Member(weight, seed, split).")
    most = max(m.split for m in made)
    if most >= data.splits:
        raise ValueError(f"a member asks for split {most}, but the data hold {data.splits} (counted from 0).")
    return made


@contextmanager
def _settings(device: torch.device, threads: int | None, precision: str) -> Iterator[None]:
    """Set threads, matrix precision and the global generators for the training alone."""
    if precision not in ("float32", "tf32"):
        raise ValueError(f"precision is {precision!r}; choose 'float32' or 'tf32'.")
    before, matmul = torch.get_num_threads(), torch.get_float32_matmul_precision()
    try:
        if device.type == "cpu" and threads is not None:
            torch.set_num_threads(threads)
        torch.set_float32_matmul_precision("high" if precision == "tf32" else "highest")
        on_gpu = device.type == "cuda"
        with torch.random.fork_rng([device] if on_gpu else []), torch.cuda.device(device) if on_gpu else nullcontext():
            yield
    finally:
        torch.set_num_threads(before)
        torch.set_float32_matmul_precision(matmul)
