"""Trained fleets: stacked parameters, their history, a floor for the variance of Z, and predictions
of all models.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from frhsic._warnings import warn
from frhsic.penalties.base import Penalty
from frhsic.training.data import Member, TrainingData
from frhsic.training.model import FleetState, Model

# Approximate size in bytes of the widest layer in one piece of the predictions.
LAYER_BYTES = 256 * 2**20

# Fewest rows for each coordinate of z; with fewer, small variances are noise and nothing is
# dropped.
ROWS_PER_DIRECTION = 4

# Standard deviation, as a share of its size, below which a coordinate is treated as constant up to
# rounding.
CONSTANT = 1e-6


class DivergenceWarning(RuntimeWarning):
    """Some of the models trained together were stopped because their loss or gradient was not
    finite.
    """


@dataclass(frozen=True)
class History:
    """Measures of each model in each epoch, (M, epochs); NaN in epochs that a model did not finish.

    Attributes
    ----------
    task_loss : Tensor
        Mean task loss over the training rows, during the epoch.
    penalty : Tensor
        Mean penalty over the same rows.
    held_out_objective : Tensor or None
        Task loss + λ · penalty on the held-out rows at the end of the epoch, if there are such
        rows.
    best_epoch : Tensor or None
        Epoch with the smallest `held_out_objective`, whose weights the model has, counted from 0,
        (M,). −1 if a model diverged in its first epoch.
    """

    task_loss: Tensor
    penalty: Tensor
    held_out_objective: Tensor | None = None
    best_epoch: Tensor | None = None

    def select(self, places: list[int]) -> History:
        """Return the history of the models at these positions."""
        held_out, best = (
            None if v is None else v[places] for v in (self.held_out_objective, self.best_epoch)
        )
        return History(self.task_loss[places], self.penalty[places], held_out, best)


class Bottleneck(nn.Module):
    r"""Projection of z on some of its principal directions, in its own coordinates: :math:`\mu + (z
    - \mu) A B`.

    A is (d, d) with a column of zeros for each dropped direction, so that no trace of it remains,
    not even by rounding. The entries of a single matrix AB would be rounded, which leaves a trace
    that a linear map can recover.

    Attributes
    ----------
    mean : Tensor
        μ, (d,).
    inward : Tensor
        A, (d, d): to standardized principal coordinates.
    outward : Tensor
        B, (d, d): back.

    Examples
    --------
    >>> Bottleneck(2)(torch.tensor([[1.0, 2.0]]))
    tensor([[1., 2.]])
    """

    mean: Tensor
    inward: Tensor
    outward: Tensor

    def __init__(self, d: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_buffer("inward", torch.eye(d))
        self.register_buffer("outward", torch.eye(d))

    def forward(self, z: Tensor) -> Tensor:
        """Return z without the dropped directions."""
        kept: Tensor = (z - self.mean) @ self.inward @ self.outward + self.mean
        return kept

    @property
    def rank(self) -> int:
        """Number of directions that are kept."""
        return int(self.inward.any(0).sum())


class _Network(nn.Module):
    """Representation and raw scores of rows, under the names that parameters have in a fleet."""

    def __init__(self, encoder: nn.Module, head: nn.Module, bottleneck: nn.Module) -> None:
        super().__init__()
        self.encoder = encoder
        self.head = head
        self.bottleneck = bottleneck

    def forward(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        z = self.bottleneck(self.encoder(rows))
        return z, self.head(z)


@dataclass(frozen=True)
class Fleet:
    """M trained models.

    Attributes
    ----------
    members : tuple of Member
        One for each model, in the requested order.
    parameters : dict of str to Tensor
        Stacked along the first axis and named as in the modules: ``encoder.0.weight`` is (M, ...).
    buffers : dict of str to Tensor
        Stacked in the same way. If the variance of Z has a floor, its buffers are
        ``bottleneck.mean``, ``bottleneck.inward`` and ``bottleneck.outward``.
    penalty_state : dict of str to Tensor
        The penalty's own tensors after training, stacked in the same way.
    history : History
        Task loss and penalty of every model in every epoch.
    epochs_done : Tensor
        Completed epochs of each model, (M,). Its parameters are those at the end of the last one,
        or of its `history.best_epoch` if there were held-out rows.
    diverged : Tensor
        Epoch in which a model's loss or parameters became infinite or NaN, −1 if they never did,
        (M,). Such a model keeps the parameters that it had before that epoch.
    network : nn.Module
        Encoder, head and bottleneck, for the tensors of one model.
    penalty : Penalty
        The penalty, for the `penalty_state` of one model.
    seconds : float
        Wall-clock time of training.

    Examples
    --------
    >>> from frhsic.training import Member, Recipe, TrainingData, train
    >>> x = torch.linspace(0, 1, 64)[:, None]
    >>> data = TrainingData.of(x, x[:, 0], x[:, 0])
    >>> fleet = train(
    ...     data, [Member(0.0), Member(1.0)], Recipe("regression", epochs=2), device="cpu"
    ... )
    >>> len(fleet), fleet.transform(x).shape, fleet.history.task_loss.shape
    (2, torch.Size([2, 64, 50]), torch.Size([2, 2]))
    """

    members: tuple[Member, ...]
    parameters: dict[str, Tensor]
    buffers: dict[str, Tensor]
    penalty_state: dict[str, Tensor]
    history: History
    epochs_done: Tensor
    diverged: Tensor
    network: _Network
    penalty: Penalty
    seconds: float = 0.0

    def __len__(self) -> int:
        return len(self.members)

    @property
    def device(self) -> torch.device:
        """Device of the parameters."""
        return next(iter(self.parameters.values())).device

    def transform(self, x: Tensor) -> Tensor:
        """Return the representations of all models, (M, n, dz).

        Parameters
        ----------
        x : Tensor
            Rows for every model, (n, d), or one set of rows for each split, (D, n, d). A model then
            gets the rows of its own split.
        """
        return self._evaluate(x, 0)

    def scores(self, x: Tensor) -> Tensor:
        """Return the heads' raw outputs of all models, (M, n, c); `x` as in :meth:`transform`."""
        return self._evaluate(x, 1)

    def module(self, index: int) -> tuple[nn.Module, nn.Module]:
        """Return copies of one model's modules, encoder and head, in evaluation mode.

        If directions of Z were dropped (:meth:`cuts`), the encoder is a sequence of two modules:
        the trained one and the :class:`Bottleneck`.
        """
        network = copy.deepcopy(self.network)
        network.load_state_dict(
            {name: values[index] for name, values in (self.parameters | self.buffers).items()}
        )
        encoder = network.encoder
        if self.cuts(index):
            encoder = nn.Sequential(encoder, network.bottleneck)
        return encoder, network.head

    def cuts(self, index: int) -> bool:
        """Return whether directions of a model's Z were dropped: it was penalized, and there were
        enough rows.
        """
        return (
            isinstance(self.network.bottleneck, Bottleneck)
            and self.members[index].penalty_weight > 0
        )

    def select(self, indices: Sequence[int]) -> Fleet:
        """Return a fleet of the models with these indices, in this order."""
        places = list(indices)
        stacked: dict[str, Any] = {
            name: {key: values[places] for key, values in getattr(self, name).items()}
            for name in ("parameters", "buffers", "penalty_state")
        }
        return replace(
            self,
            **stacked,
            members=tuple(self.members[i] for i in places),
            history=self.history.select(places),
            epochs_done=self.epochs_done[places],
            diverged=self.diverged[places],
        )

    def _evaluate(self, x: Tensor, output: int) -> Tensor:
        """Return one of the outputs of all models: representations (0) or scores (1)."""
        most = max(m.split for m in self.members)
        if not isinstance(x, Tensor) or x.ndim not in (2, 3) or (x.ndim == 3 and len(x) <= most):
            shape = f"of shape {tuple(x.shape)}" if hasattr(x, "shape") else type(x).__name__
            raise ValueError(
                f"x is {shape}; pass a tensor of shape (n, d), or of shape (D, n, d) with the rows"
                f" of {most + 1} splits."
            )
        x = x.to(next(iter(self.parameters.values())))
        stacked = self.parameters | self.buffers
        layers = [values.shape[1] for values in self.parameters.values() if values.ndim > 1]
        width = max([x.shape[-1], *layers])
        rows = max(1, LAYER_BYTES // (4 * width * x.element_size()))

        def evaluate_member(index: int, inputs: Tensor) -> Tensor:
            state = {name: values[index] for name, values in stacked.items()}
            parts = [
                functional_call(self.network, state, (part,))[output]
                for part in torch.split(inputs, rows)
            ]
            return torch.cat(parts)

        with torch.no_grad():
            if x.ndim == 2:
                return torch.stack([evaluate_member(i, x) for i in range(len(self))])
            return torch.stack([evaluate_member(i, x[m.split]) for i, m in enumerate(self.members)])


class Course:
    """Training history of several models: their measures, completed epochs and best states.

    With held-out rows a model ends with the state of its best epoch on them. The criterion is the
    whole objective, task loss + λ · penalty. It is measured at the end of each epoch, in batches of
    the size used for training, on which the penalty depends, and with the penalty's state of that
    epoch: it does not adapt to held-out rows. An adversary that learns during training is weak at
    first, so its early epochs look better than they are; stop such models by hand. Weight decay is
    not part of the criterion.

    A model stops after `patience` epochs without improvement. It keeps training while others still
    improve, but its result does not change: a model does not depend on its fleet.

    Parameters
    ----------
    state : FleetState
        State of the models.
    epochs : int
        Number of epochs.
    patience : int
        Epochs without improvement after which a model stops.
    objective : callable or None
        Returns task loss + λ · penalty of each model on the held-out rows, (M,); None without such
        rows.
    """

    def __init__(
        self, state: FleetState, epochs: int, patience: int, objective: Callable[[], Tensor] | None
    ) -> None:
        self.state = state
        self.patience = patience
        self.objective = objective
        flat = state.flat.detach()
        # task loss, penalty, held-out objective
        self.curves = flat.new_full((epochs, 3, len(flat)), torch.nan)
        # (M,) whole epochs
        self.done = torch.zeros(len(flat), dtype=torch.int64, device=flat.device)
        self.diverged = torch.full_like(self.done, -1)
        self.best_epoch = torch.full_like(self.done, -1)
        self.waited = torch.zeros_like(self.done)  # epochs since the best one
        self.least = flat.new_full((len(flat),), torch.inf)
        self.best: list[Tensor] = []
        if objective is not None:
            self.best = [tensor.detach().clone() for tensor in state.model_tensors()]

    @property
    def running(self) -> Tensor:
        """Whether each model is still being trained, (M,)."""
        return self.state.alive & (self.waited < self.patience)

    @torch.no_grad()
    def note(self, epoch: int, rows: int) -> None:
        """End an epoch whose steps have been launched: record its means, and keep the models that
        improved.

        A model whose objective has never been finite counts as improved, so that it ends as it
        would without held-out rows.
        """
        before = self.running
        means = self.state.sums / rows
        self.state.settle()
        finished = before & self.state.alive
        self.diverged = torch.where(before & ~finished, epoch, self.diverged)
        self.done += finished
        self.curves[epoch, :2] = torch.where(finished, means, torch.nan)
        if self.objective is None:
            return
        objective = self.objective()
        self.curves[epoch, 2] = torch.where(finished, objective, torch.nan)
        improved = finished & ((objective < self.least) | ~torch.isfinite(self.least))
        self.least = torch.where(improved, objective, self.least)
        self.best_epoch = torch.where(improved, epoch, self.best_epoch)
        self.waited = torch.where(improved, 0, self.waited + 1)
        self.state.keep(self.best, improved)


def assemble_fleet(courses: Sequence[Course], order: Sequence[int], model: Model) -> Fleet:
    """Combine the models that were trained at once, in the caller's order; `order` has the position
    of each.
    """
    back = torch.tensor(order).argsort()
    states = [course.state for course in courses]
    at = back.to(states[0].flat.device)

    def joined(stacked_of: Callable[[FleetState], dict[str, Tensor]]) -> dict[str, Tensor]:
        stacked = [stacked_of(state) for state in states]
        return {
            name: torch.cat([tensors[name].detach() for tensors in stacked])[at]
            for name in stacked[0]
        }

    def rest(state: FleetState) -> dict[str, Tensor]:
        together = state.together
        return state.own | {
            name: values.repeat_interleave(together, dim=0) for name, values in state.shared.items()
        }

    def noted(name: str) -> Tensor:
        return torch.cat([getattr(course, name).cpu() for course in courses])[back]

    others = joined(rest)
    curves = torch.cat([course.curves.cpu() for course in courses], dim=2)[..., back]
    task, penalty, held_out = curves.permute(1, 2, 0)  # each (M, E)
    measured = courses[0].objective is not None
    members = [member for state in states for member in state.members]
    return Fleet(
        members=tuple(members[i] for i in back.tolist()),
        parameters=joined(lambda state: state.parameters(len(state.weight))),
        buffers={
            name: values for name, values in others.items() if not name.startswith("penalty.")
        },
        penalty_state={
            n.removeprefix("penalty."): v for n, v in others.items() if n.startswith("penalty.")
        },
        history=History(
            task, penalty, held_out if measured else None, noted("best_epoch") if measured else None
        ),
        epochs_done=noted("done"),
        diverged=noted("diverged"),
        network=_Network(model.encoder, model.head, nn.Identity()).eval(),
        penalty=model.penalty,
    )


def floor_variance(fleet: Fleet, data: TrainingData, floor: float) -> Fleet:
    r"""Drop the principal directions of each model's standardized z whose variance is below
    `floor`.

    A penalty measures dependence in units of z and hardly depends on a direction with almost no
    variance. S can remain there, on a scale too small for a kernel or a trained head, yet a linear
    map without a ridge can recover it. The task does not need such directions.

    Variances are the eigenvalues of the correlation matrix of z on the training rows of the model's
    split. The head stays as it was trained. Models of weight 0 keep all of z, and so do all models
    if there are fewer than four training rows for each coordinate.

    Examples
    --------
    >>> from frhsic.training import Recipe, train
    >>> data = TrainingData.of(torch.randn(256, 3), torch.ones(256), torch.rand(256))
    >>> fleet = train(data, [Member(1.0)], Recipe("binary", epochs=2), device="cpu")
    >>> floor_variance(fleet, data, 0.01).module(0)[0][1].rank < 50
    True
    """
    if floor == 0 or all(member.penalty_weight == 0 for member in fleet.members):
        return fleet
    like = next(iter(fleet.parameters.values()))
    x = data.x.to(like)  # to the device once, for all models
    d = fleet.transform(x[:, :2]).shape[2]
    if not has_enough_rows(data.rows, d):
        return fleet

    def maps(index: int, member: Member) -> tuple[Tensor, ...]:
        if member.penalty_weight > 0:
            z = fleet.select([index]).transform(x[member.split])[0].double()
            if bool(z.isfinite().all()):
                return _principal(z, floor)
        return torch.zeros(d), torch.eye(d), torch.eye(d)

    parts = zip(*(maps(index, member) for index, member in enumerate(fleet.members)))
    mean, inward, outward = (torch.stack([values.to(like) for values in part]) for part in parts)
    cut = {"bottleneck.mean": mean, "bottleneck.inward": inward, "bottleneck.outward": outward}
    network = _Network(fleet.network.encoder, fleet.network.head, Bottleneck(d).to(like)).eval()
    return replace(fleet, network=network, buffers=fleet.buffers | cut)


def has_enough_rows(rows: int, d: int) -> bool:
    """Return whether there are enough rows to distinguish small variances of d coordinates from
    noise.
    """
    return rows >= ROWS_PER_DIRECTION * d


def _principal(z: Tensor, floor: float) -> tuple[Tensor, Tensor, Tensor]:
    """Return the mean of z (n, d), and the maps A and B of a :class:`Bottleneck`, (d, d) each."""
    mean = z.mean(0)
    # for one column, it is a scalar
    covariance = torch.cov(z.mT, correction=0).reshape(z.shape[1], -1)
    variance = covariance.diagonal()
    varies = variance.sqrt() > CONSTANT * (variance + mean * mean).sqrt()
    spread = torch.where(varies, variance.sqrt(), 0)
    per_spread = torch.where(spread > 0, 1 / spread, 0)
    variances, directions = torch.linalg.eigh(per_spread[:, None] * covariance * per_spread)
    return mean, per_spread[:, None] * directions * (variances >= floor), directions.mT * spread


def warn_of_divergence(fleet: Fleet) -> None:
    """Warn once about the models that were stopped."""
    stopped = [i for i, epoch in enumerate(fleet.diverged.tolist()) if epoch >= 0]
    if stopped:
        listed = "; ".join(
            f"{fleet.members[i]} in epoch {int(fleet.diverged[i])}" for i in stopped[:5]
        )
        warn(
            f"{len(stopped)} of {len(fleet)} models were stopped because their loss or gradient was"
            f" not finite: {listed}. They keep the parameters from before that epoch; a lower"
            " weight or learning rate may help.",
            DivergenceWarning,
        )
