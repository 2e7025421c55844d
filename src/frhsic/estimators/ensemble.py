"""Several models trained from different seeds and deployed as one, whose raw score is the mean of theirs."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from frhsic.training import Bottleneck, affine_head
from frhsic.training.data import Purpose, stream_seed


class EncoderEnsemble(nn.Module):
    """Encoders side by side: Z is the concatenation of theirs.

    Examples
    --------
    >>> EncoderEnsemble([nn.Linear(3, 2), nn.Linear(3, 2)])(torch.zeros(5, 3)).shape
    torch.Size([5, 4])
    """

    def __init__(self, members: Sequence[nn.Module]) -> None:
        super().__init__()
        self.members = nn.ModuleList(members)

    def forward(self, rows: Tensor) -> Tensor:
        """Return the representations of all members, one beside the other."""
        return torch.cat([member(rows) for member in self.members], dim=-1)


def member_seeds(seed: int, count: int) -> list[int]:
    """Return the seeds of the members; the first is that of the model without ensemble.

    Examples
    --------
    >>> member_seeds(7, 1)
    [7]
    >>> len(set(member_seeds(7, 5)))
    5
    """
    return [seed, *(stream_seed(seed, 0, Purpose.ENSEMBLE, k) % 2**32 for k in range(1, count))]


def joined(members: Sequence[tuple[nn.Module, nn.Module]]) -> tuple[nn.Module, nn.Module]:
    r"""Join K pairs (encoder, affine head) into one, :math:`f(z) = \frac1K \sum_k (W_k z_k + b_k)`.

    A single pair is returned as it is. The modules of an ensemble are float64, so that the head's weights and bias,
    which are divided by K, are exact to the last digits.
    """
    if len(members) == 1:
        return members[0]
    weights, biases = [], []
    for _, head in members:
        assert isinstance(head, nn.Linear)
        weights.append(head.weight.detach().double())
        biases.append(head.bias.detach().double())
    head = affine_head(sum(weight.shape[1] for weight in weights), len(biases[0])).double()
    with torch.no_grad():
        head.weight.copy_(torch.cat(weights, dim=1) / len(members))
        head.bias.copy_(torch.stack(biases).mean(0))
    return EncoderEnsemble([encoder.double() for encoder, _ in members]).eval(), head.eval()


def encoders_in(encoder: nn.Module) -> list[nn.Module]:
    """Return the encoders of the members of an ensemble, or a single encoder."""
    return list(encoder.members) if isinstance(encoder, EncoderEnsemble) else [encoder]


def rank(encoder: nn.Module) -> int:
    """Return the directions that the bottlenecks at the ends of encoders keep, summed over the members."""
    kept = 0
    for member in encoders_in(encoder):
        *_, bottleneck = member.children()
        assert isinstance(bottleneck, Bottleneck)
        kept += bottleneck.rank
    return kept
