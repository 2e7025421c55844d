"""Batches of one pass over rows, gathered on the device.

The order of the rows lies on the device, and a pointer there says which come next, so that every batch of one shape is
the same work and can be captured as a CUDA graph.
"""

from __future__ import annotations

from itertools import accumulate, pairwise

import torch
from torch import Tensor

from frhsic.training.data import TrainingData
from frhsic.training.state import Layout
from frhsic.training.streams import Purpose, stream

# Fewest rows with S in a whole batch: with fewer, an unbiased HSIC is not defined.
LEAST_LABELLED = 4

# Rows of a batch, and how many of them have S; None for all.
BatchShape = tuple[int, int | None]


def batch_shapes(data: TrainingData, batch_size: int) -> list[BatchShape]:
    """Return the shapes of the batches of one pass; the last holds the rest.

    If S is known for some rows only, they are spread evenly: batches of one size differ by at most one in their number.

    Examples
    --------
    >>> batch_shapes(TrainingData.of([1, 2, 3, 4, 5], None, [0, 1, 2, 3, 4]), 2)
    [(2, None), (2, None), (1, None)]
    >>> nan = float("nan")
    >>> batch_shapes(TrainingData.of([1, 2, 3, 4, 5], None, [0, nan, 2, nan, 4]), 2)
    [(2, 1), (2, 1), (1, 1)]
    """
    full, rest = divmod(data.rows, batch_size)
    sizes = [batch_size] * full + [rest] * (rest > 0)
    if data.labelled is None or data.labelled == data.rows:
        return [(size, None) for size in sizes]
    with_s = [data.labelled * end // data.rows for end in accumulate(sizes, initial=0)]
    return [(size, after - before) for size, (before, after) in zip(sizes, pairwise(with_s))]


def check_labelled(data: TrainingData, batch_size: int) -> None:
    """Raise if a whole batch would have too few rows with S for a penalty."""
    size, labelled = batch_shapes(data, batch_size)[0]
    if labelled is not None and labelled < LEAST_LABELLED:
        raise ValueError(
            f"S is known for {data.labelled} of {data.rows} rows, so a batch of {size} has {labelled} of them; a "
            f"penalty needs {LEAST_LABELLED}. Pass a larger batch_size, or S for more rows."
        )


def batch_order(seed: int, split: int, epoch: int, n: int, purpose: Purpose = Purpose.ORDER) -> Tensor:
    """Return the order of the n rows in an epoch, a permutation that does not depend on earlier epochs.

    Examples
    --------
    >>> sorted(batch_order(42, 0, 7, 5).tolist())
    [0, 1, 2, 3, 4]
    """
    return torch.randperm(n, generator=stream(seed, split, purpose, epoch))


class Batches:
    """Batches of the rows of every group of a fleet.

    Parameters
    ----------
    data : TrainingData
        The rows.
    table : Tensor
        The same rows on the device, as ``data.table()`` gives them.
    layout : Layout
        Members; each group has the rows of its split.
    batch_size : int
        Rows of a batch.
    purpose : Purpose
        Random stream of the order.
    """

    def __init__(
        self, data: TrainingData, table: Tensor, layout: Layout, batch_size: int, purpose: Purpose = Purpose.ORDER
    ) -> None:
        self.table = table  # (D·n, columns)
        self.rows = data.rows
        self.labelled = data.labelled
        self.keys = [(leader.seed, leader.split) for leader in layout.leaders]
        self.purpose = purpose
        self.shapes = batch_shapes(data, batch_size)
        self.places = _places(self.shapes, data.labelled)
        self.order = torch.zeros(layout.groups, self.rows, dtype=torch.int64, device=table.device)
        self.start = torch.arange(self.shapes[0][0], device=table.device)
        self.next = self.start.clone()  # places of the next batch in the order

    def shuffle(self, epoch: int) -> None:
        """Draw an epoch's order of the rows, one for each group, and go to its beginning."""
        orders = {key: self._order(*key, epoch) + key[1] * self.rows for key in dict.fromkeys(self.keys)}
        order = torch.stack([orders[key] for key in self.keys])
        if self.order.is_cuda:
            order = order.pin_memory()  # the copy below then waits for nothing
        self.order.copy_(order, non_blocking=True)
        self.rewind()

    def rewind(self) -> None:
        """Go to the beginning of the order."""
        self.next.copy_(self.start)

    @torch.no_grad()
    def take(self, size: int) -> Tensor:
        """Return the next `size` rows of every group, (G, size, columns); those with S come first."""
        at = self.order.index_select(1, self.next[:size])  # (G, m)
        batch = self.table.index_select(0, at.flatten()).view(*at.shape, -1)  # (G, m, columns)
        self.next.add_(size)
        return batch

    def _order(self, seed: int, split: int, epoch: int) -> Tensor:
        order = batch_order(seed, split, epoch, self.rows, self.purpose)
        if self.places is None or self.labelled is None:
            return order
        has_s = order < self.labelled
        return torch.cat([order[has_s], order[~has_s]])[self.places]


def _places(shapes: list[BatchShape], labelled: int | None) -> Tensor | None:
    """Return the order of a pass, as places in a list of the rows with S followed by those without; None for all."""
    parts, with_s, without = [], 0, labelled or 0
    for size, share in shapes:
        if share is None:
            return None
        parts += [torch.arange(with_s, with_s + share), torch.arange(without, without + size - share)]
        with_s, without = with_s + share, without + size - share
    return torch.cat(parts)
