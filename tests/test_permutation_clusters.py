"""Permutations by cluster: whole clusters of equal size change places, and the level holds for repeated rows."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from frhsic.independence import permutation_test
from frhsic.independence.permutation import cluster_permutations


def by_person(seed: int, people: int = 40, rows: int = 3) -> tuple[Tensor, Tensor, np.ndarray]:
    """Rows of persons: z and s are alike within a person, and independent between z and s."""
    draw = torch.Generator().manual_seed(seed)
    z, s = (
        torch.randn(people, generator=draw).repeat_interleave(rows) + 0.1 * torch.randn(people * rows, generator=draw)
        for _ in range(2)
    )
    return z, s, np.repeat(np.arange(people), rows)


def test_permuting_clusters_keeps_the_level_where_rows_are_not_independent():
    rejected = {"rows": 0, "clusters": 0}
    for seed in range(60):
        z, s, labels = by_person(seed)
        rejected["rows"] += permutation_test(z, s, resamples=59, random_state=seed).rejected
        rejected["clusters"] += permutation_test(z, s, resamples=59, random_state=seed, groups=labels).rejected
    assert rejected["clusters"] <= 9 < rejected["rows"]  # 3 expected; P(more than 9) = .001


def test_permutations_of_clusters_exchange_whole_clusters_of_equal_size():
    labels = torch.tensor([0, 1, 1, 2, 0, 3, 3, 3, 2])
    seen = set()
    for order in torch.cat(list(cluster_permutations(labels, 200, 7, torch.Generator().manual_seed(0)))):
        assert sorted(order.tolist()) == list(range(9))
        assert order[5:8].tolist() == [5, 6, 7]  # no other cluster has three rows
        seen.add(tuple(labels[order].tolist()))
        for label in range(4):
            assert len(set(labels[order][labels == label].tolist())) == 1
    assert len(seen) == 6


def test_clusters_of_one_row_are_the_plain_test_and_dependence_is_found():
    z, s, labels = by_person(0)
    plain = permutation_test(z, s, resamples=99, random_state=0)
    single = permutation_test(z, s, resamples=99, random_state=0, groups=np.arange(len(z)))
    assert single.pvalue == plain.pvalue
    assert single.statistic == plain.statistic
    found = permutation_test(z, z + s, resamples=99, random_state=0, groups=labels, where=labels < 30)
    assert found.rejected
    assert found.method == "permutation of clusters"
    assert found.n == 90
