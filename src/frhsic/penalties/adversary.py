"""Adversaries: small networks that predict S from Z, while the encoder is trained to make their
predictions fail.
"""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from torch import Tensor
from torch.nn import functional

from frhsic import _arrays
from frhsic.penalties.base import Batch, Penalty
from frhsic.penalties.bins import bin_membership, quantile_edges

PARAMETERS = ("weight_in", "bias_in", "weight_out", "bias_out")
MOMENTS = tuple(f"{name}_{moment}" for name in PARAMETERS for moment in ("first", "second"))


class _Adversarial(Penalty):
    """A network z_dim → hidden (SELU) → outputs with its Adam moments, which takes one step on its
    own loss per batch.

    The weights and moments are buffers, so the optimizer of the model does not change them, and the
    penalty passes no gradient to them.
    """

    steps: Tensor
    adapted = ("steps", *PARAMETERS, *MOMENTS)
    bins: int = 1  # outputs for each attribute

    def __init__(self, z_dim: int, hidden: int, learning_rate: float) -> None:
        super().__init__()
        _arrays.require_integer(z_dim, "z_dim", 1)
        _arrays.require_integer(hidden, "hidden", 1)
        _arrays.require_positive(learning_rate, "learning_rate")
        self.z_dim = z_dim
        self.hidden = hidden
        self.learning_rate = learning_rate
        for name in self.adapted:
            self.register_buffer(name, None)

    @abstractmethod
    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        """Return the loss that the adversary minimizes, given its outputs (m, outputs) and s (m,
        q).
        """

    def adapts(self, epoch: int) -> bool:
        """Return True: the adversary takes a step before every step of the model."""
        return True

    def predict(self, z: Tensor) -> Tensor:
        """Return the adversary's outputs, of shape (m, outputs), differentiable only in z."""
        return _network({name: weight.detach() for name, weight in self._weights().items()}, z)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        outputs = s.shape[1] * self.bins
        layers = {
            "weight_in": ((self.hidden, self.z_dim), self.z_dim),
            "bias_in": ((self.hidden,), self.z_dim),
            "weight_out": ((outputs, self.hidden), self.hidden),
            "bias_out": ((outputs,), self.hidden),
        }
        for name, (shape, fan_in) in layers.items():
            bound = 1 / math.sqrt(fan_in)  # as torch.nn.Linear, for both weights and biases
            initial = torch.empty(shape, dtype=s.dtype, device=generator.device)
            initial.uniform_(-bound, bound, generator=generator)
            setattr(self, name, initial.to(s.device))
            for moment in ("first", "second"):
                setattr(self, f"{name}_{moment}", s.new_zeros(shape))
        self.steps = s.new_zeros(())

    def _adapt(self, z: Tensor, s: Tensor) -> None:
        def loss(weights: dict[str, Tensor]) -> Tensor:
            return self._loss(_network(weights, z), s)

        weights = self._weights()
        gradients = torch.func.grad(loss)(weights)
        self.steps.add_(1)
        for name, weight in weights.items():
            adam_step(
                weight,
                gradients[name],
                first=getattr(self, f"{name}_first"),
                second=getattr(self, f"{name}_second"),
                steps=self.steps,
                learning_rate=self.learning_rate,
            )

    def _value(self, batch: Batch) -> Tensor:
        return -self._loss(self.predict(batch.z), batch.s)

    def _weights(self) -> dict[str, Tensor]:
        if self.steps is None:
            raise self._not_prepared("adversary")
        return {name: getattr(self, name) for name in PARAMETERS}


class Adversary(_Adversarial):
    r"""Minus the error of an adversary a that predicts S from Z, :math:`-\frac{1}{mq} \sum_{ik}
    (a(z_i)_k - s_{ik})^2`.

    Never positive. The adversary, a network with one hidden layer and SELU activation, takes one
    Adam step on its mean squared error in each :meth:`adapt`; the encoder is then trained against
    the adversary. The objective has no lower bound: a very negative value means that the adversary
    was misled, not that Z and S are independent. An adversary that predicts the mean of S gives
    minus the variance of S.

    Parameters
    ----------
    z_dim
        Number of columns of z. The number of attributes comes from `s_train`.
    hidden
        Number of units in the hidden layer.
    learning_rate
        Learning rate of Adam for the adversary, with moments (0.9, 0.999).

    References
    ----------
    ADV in the paper; a plain regression adversary following Zhang, Lemoine and Mitchell (2018),
    *Mitigating unwanted biases with adversarial learning*.

    Examples
    --------
    An adversary with zero weights predicts 0, and misses s = (1, 3) by 1 and 3, so the value is
    minus (1 + 9) / 2.

    >>> penalty = Adversary(z_dim=2)
    >>> penalty.prepare(torch.tensor([1.0, 3.0]), torch.Generator())
    >>> for weight in penalty.buffers():
    ...     _ = weight.zero_()
    >>> penalty(torch.ones(2, 2), torch.tensor([1.0, 3.0]))
    tensor(-5.)
    """

    def __init__(self, z_dim: int = 50, *, hidden: int = 50, learning_rate: float = 1e-3) -> None:
        super().__init__(z_dim, hidden, learning_rate)

    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        # mse_loss fails under nested vmap if one side is batched
        return (outputs - s).square().mean()


class BinnedAdversary(_Adversarial):
    r"""Log-likelihood of an adversary for the bin of S, :math:`\frac{1}{mq} \sum_{ik} \log
    p_{b(s_{ik})}(z_i)`.

    This is minus the cross-entropy, and never positive. Bins end at quantiles of the training rows,
    so that each bin contains an equal share; p is the softmax of the adversary's outputs, with one
    group of outputs per attribute. A uniform p gives :math:`-\log(\text{bins})`.

    Parameters
    ----------
    z_dim
        Number of columns of z. The number of attributes comes from `s_train`.
    bins
        Number of quantile bins for each attribute.
    hidden, learning_rate
        As in :class:`Adversary`.

    References
    ----------
    LAFTR in the paper; Madras, Creager, Pitassi and Zemel (2018), *Learning adversarially fair and
    transferable representations*, with bins in place of groups.

    Examples
    --------
    For an adversary with zero weights, four bins are equally likely, so the value is minus log 4.

    >>> penalty = BinnedAdversary(z_dim=2)
    >>> penalty.prepare(torch.arange(8.0), torch.Generator())
    >>> for name, state in penalty.named_buffers():
    ...     _ = state.zero_() if name != "edges" else state
    >>> penalty(torch.ones(2, 2), torch.tensor([1.0, 3.0]))
    tensor(-1.3863)
    """

    edges: Tensor

    def __init__(
        self, z_dim: int = 50, *, bins: int = 4, hidden: int = 50, learning_rate: float = 1e-3
    ) -> None:
        super().__init__(z_dim, hidden, learning_rate)
        _arrays.require_integer(bins, "bins", 2)
        self.bins = bins
        self.register_buffer("edges", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        self.edges = torch.stack([quantile_edges(column, self.bins) for column in s.mT])

    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        log_p = outputs.reshape(s.shape[0], s.shape[1], self.bins).log_softmax(-1)
        bins = torch.stack(
            [bin_membership(column, edges) for column, edges in zip(s.mT, self.edges.to(s))], dim=1
        )
        return -(log_p * bins).sum(-1).mean()


def adam_step(
    parameter: Tensor,
    gradient: Tensor,
    *,
    first: Tensor,
    second: Tensor,
    steps: Tensor,
    learning_rate: float,
) -> None:
    r"""Take one step of Adam in place, with moments (0.9, 0.999) and ε = 1e-8.

    .. math:: p \leftarrow p - \eta \frac{v_1 / (1 - 0.9^t)}{\sqrt{v_2 / (1 - 0.999^t)} +
        \varepsilon},

    where the moments `first` and `second` are first updated with the new gradient, and t, in
    `steps`, counts this step. All arguments except the learning rate may be batched by ``vmap``.

    Examples
    --------
    The size of the first step is the learning rate, regardless of the size of the gradient.

    >>> p, first, second = torch.tensor([1.0, 0.0, 0.0])
    >>> steps = torch.tensor(1.0)
    >>> gradient = torch.tensor(7.0)
    >>> adam_step(p, gradient, first=first, second=second, steps=steps, learning_rate=0.25)
    >>> p
    tensor(0.7500)
    """
    first.mul_(0.9).add_(gradient * (1 - 0.9))
    second.mul_(0.999).add_(gradient * gradient * (1 - 0.999))
    # 1 - β^t by expm1: in single precision 1 - 0.999 would have four digits
    corrected = first / -torch.expm1(steps * math.log(0.9))
    spread = (second / -torch.expm1(steps * math.log(0.999))).sqrt() + 1e-8
    parameter.sub_(learning_rate * corrected / spread)


def _network(weights: dict[str, Tensor], z: Tensor) -> Tensor:
    hidden = functional.selu(functional.linear(z, weights["weight_in"], weights["bias_in"]))
    return functional.linear(hidden, weights["weight_out"], weights["bias_out"])
