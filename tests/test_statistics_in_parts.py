"""Statistics computed in small blocks are those computed at once; more numbers and messages on record.

The blocks of sums over rows and pairs are large, so that small tables would never need a second one. Here they are
small. Numbers are compared with those of :mod:`test_statistics_on_record`, or where a large table is approximated on
purpose, with a record of their own.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pytest import approx

from frhsic import dependence as d
from frhsic import independence as i
from frhsic import parity as p
from frhsic.dependence import _gpu, grams, moments
from frhsic.dependence._gram import Gram
from frhsic.independence import effects
from frhsic.independence.featured import feature_moments, feature_test
from frhsic.kernels import Column, Gaussian, HalfDistance, InverseMultiquadric, Laplacian, Linear, PerColumn
from frhsic.parity._rows import rows_of
from frhsic.parity.gap import gap_and_standardized, gap_value
from frhsic.parity.summed import Cells, curve_of_sums, gdp_of_sums
from test_statistics_on_record import (
    CLUSTERS,
    LABELS,
    NUMBERS,
    RECORD,
    SCORES,
    TWO,
    WEIGHTS,
    WHERE,
    Calls,
    S,
    Y,
    Z,
    close,
    few,
    k,
    kernels,
    of,
    plain,
    recorded,
    said,
)

RECORDS = json.loads(RECORD.read_text(encoding="utf-8"))
D, I, P = "frhsic.dependence.", "frhsic.independence.", "frhsic.parity."
BLOCKS = {  # which change nothing but the time
    D + "_tiles.CPU_TILE": 16, D + "_gram.FEW_ROWS": 8, D + "binned.TILE_ENTRIES": 300,
    D + "conditional.TILE_ENTRIES": 300, D + "features.CHUNK": 16, D + "information.TILE_ENTRIES": 300,
    D + "operators.TILE_ENTRIES": 300, D + "moments.PANEL": 16, I + "_permutations.DENSE_ROWS": 10,
    I + "_permutations.BLOCK_ENTRIES": 300, I + "conditional.TILE_ENTRIES": 300, I + "sequential.BLOCK_ENTRIES": 300,
    P + "_nodes.CHUNK_ENTRIES": 300,
}  # fmt: skip
LIMITS = {  # above which large tables are approximated
    D + "hgr.DENSE_ROWS": 10, D + "hgr.PRECONDITIONER_RANK": 4, D + "moments.CUBE_ROWS": 20,
    P + "_nodes.EXACT_VALUES": 10, P + "_nodes.NODES_PER_BANDWIDTH": 8, P + "_sums.NODES": 16,
}  # fmt: skip
APPROXIMATED = (
    "kernel_hgr several", "kernel_hgr with ridges", "gamma_test several", "hsic_interval several",
    "normalized_hsic_interval several", "equivalence_test with options", "gdp", "gdp with options", "gdp of decisions",
    "standardized_gdp", "smoothed_gdp", "smoothed_gdp uniform", "gdp_curve of weights", "local_mean of weights",
)  # fmt: skip

FAR = np.where(k == 7, 4e3, np.where(k == 8, -5e3, np.sin(k)))
MOSTLY = np.where(k > 50, k, 2.0)  # three quarters are one value
TENSOR, COLUMN = torch.tensor(Z), torch.tensor(S)[:, None]
MIXED = 0.5 * Gaussian(1.0) * Linear() + Column(Laplacian(2.0), 1) + 2.0 * (InverseMultiquadric(0.7) + Gaussian(3.0))
MAPS = d.draw_feature_maps(Gaussian(1.0), Gaussian(2.0), 3, 1, features=32, blocks=4, random_state=1)


def gradient(function: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
    z, s = TENSOR.clone().requires_grad_(), COLUMN.clone().requires_grad_()
    function(z, s, *args, **options).backward()
    return [1e3 * z.grad[::7], 1e3 * s.grad[::7], 1e3 * torch.from_numpy(np.sin(k)) @ z.grad]


def halves(f: Any, s: Any, groups: int = 60) -> tuple[Any, Cells]:
    cells = Cells.of(*np.unique(s, return_counts=True), groups)
    parts = [cells.sums(f[part], s[part], 0.1, (f.min(), f.max())) for part in (slice(25), slice(25, None))]
    return parts[0] + parts[1], cells


def of_sums(f: Any, s: Any, **options: Any) -> Any:
    return gdp_of_sums(*halves(f, s), **few, **options)


def again(test: Any) -> Any:
    test.update(Z[:30, :2], S[:30])
    copy = i.SequentialTest.from_dict(test.to_dict())
    return [copy.level, copy.resamples, copy.update(Z[30:, :2], S[30:]).to_dict()]


MORE: Calls = {
    "gradient of hsic": lambda: gradient(d.hsic, *kernels),
    "gradient of hsic, Gaussian": lambda: gradient(d.hsic, Gaussian(1.0), Gaussian(2.0), weights=WEIGHTS),
    "gradient of hsic_unbiased": lambda: gradient(d.hsic_unbiased, Gaussian(1.0), Laplacian(2.0)),
    "gradient of hsic_summed": lambda: gradient(d.hsic_summed, Gaussian(1.0), [Gaussian(2.0)]),
    "gradient of eipm": lambda: gradient(d.eipm, Gaussian(1.0), bandwidth=0.4),
    "gradient of distance_covariance": lambda: gradient(d.distance_covariance),
    "gradient of distance_correlation_unbiased": lambda: gradient(d.distance_correlation_unbiased),
    "hsic of halves": lambda: d.hsic(Z.astype(np.float32), S.astype(np.float32)),
    "hsic far off": lambda: d.hsic(np.stack([FAR, MOSTLY], axis=1), FAR, Gaussian(1.0), Gaussian(2.0)),
    "hsic of nearly constant kernels": lambda: 1e18 * d.hsic(Z, S, Gaussian(1e4), Gaussian(1e5)),
    "hsic_unbiased of nearly constant kernels": lambda: 1e18 * d.hsic_unbiased(Z, S, Gaussian(1e4), Gaussian(1e5)),
    "hsic_summed with kernels": lambda: d.hsic_summed(Z, TWO, kernels[0], [Gaussian(1.0), Laplacian(0.3)]),
    "of Gram matrices": lambda: [
        function(TENSOR @ TENSOR.T, COLUMN @ COLUMN.T) for function in (grams.hsic_biased, grams.hsic_unbiased)
    ],
    "of weighted Gram matrices": lambda: grams.hsic_weighted(
        TENSOR @ TENSOR.T, COLUMN @ COLUMN.T, torch.from_numpy(WEIGHTS / WEIGHTS.sum())
    ),
    "hsic_features of sums": lambda: d.hsic_features(
        Z, TWO, MIXED, Gaussian(1.0), features=32, blocks=4, random_state=1
    ),
    "hsic_features of columns": lambda: d.hsic_features(
        Z, TWO, Linear(), PerColumn((Gaussian(1.0), Laplacian(2.0))), features=32, blocks=4, random_state=1
    ),
    "hsic_features of two blocks": lambda: d.hsic_features(
        Z, S, Gaussian(1.0), Gaussian(2.0), features=8, blocks=2, random_state=1
    ),
    "feature_test": lambda: feature_test(MAPS, feature_moments(MAPS, TENSOR, COLUMN)),
    "feature_test of halves": lambda: feature_test(
        MAPS, feature_moments(MAPS, TENSOR[:25], COLUMN[:25]) + feature_moments(MAPS, TENSOR[25:], COLUMN[25:])
    ),
    "feature maps": lambda: MAPS.draw,
    "minority_weights of two": lambda: d.minority_weights(TWO, bandwidth=[0.5, 1.0]),
    "minority_weights of two by default": lambda: d.minority_weights(TWO),
    "mutual_information far off": lambda: d.mutual_information(FAR, MOSTLY),
    "mutual_information of constant columns": lambda: d.mutual_information(
        np.stack([FAR, MOSTLY, np.full(60, 3.0)], axis=1), TWO
    ),
    "eipm of a constant column": lambda: d.eipm(Z, np.stack([S, np.full(60, 3.0)], axis=1)),
    "eipm of two": lambda: d.eipm(Z, TWO, kernels[0], bandwidth=0.3, where=WHERE),
    "distances of a constant": lambda: [
        d.distance_covariance(np.ones((60, 2)), S), d.distance_correlation(np.full((60, 2), 0.1), S),
    ],
    "of a constant": lambda: [
        statistic(np.ones(60), S) for statistic in (d.kernel_hgr, d.mutual_information, d.binned_mean_difference)
    ],
    "distances of single precision": lambda: d.distance_correlation_unbiased(
        Z.astype(np.float32), TWO.astype(np.float32)
    ).dtype,
    "distances far off": lambda: d.distance_correlation(np.stack([FAR, MOSTLY], axis=1), FAR),
    "gdp_by_attribute with options": lambda: p.gdp_by_attribute(
        SCORES, TWO, where=WHERE, sample_weight=WEIGHTS, clusters=CLUSTERS, resolution=0.3, **few
    ),
    "standardized_gdp with options": lambda: p.standardized_gdp(
        SCORES, S, where=WHERE, sample_weight=WEIGHTS, clusters=CLUSTERS, resolution=0.3, confidence=0.8, **few
    ),
    "gdp of two scores": lambda: p.gdp(Z[:, :2], S, **few),
    "gdp with one resample": lambda: p.gdp(SCORES, S, resamples=1),
    "gdp with two resamples": lambda: p.gdp(np.sin(5 * k), TWO[:, 1], resamples=2),
    "gdp without resamples": lambda: p.gdp(SCORES, S, resamples=0),
    "gap_and_standardized": lambda: gap_and_standardized(rows_of(SCORES, S, None, WEIGHTS, None), 0.9, 49, 3),
    "gap_and_standardized of a constant": lambda: gap_and_standardized(rows_of(np.ones(60), S), 0.9, 49, 3),
    "gap_value": lambda: [gap_value(rows_of(x, S, None, WEIGHTS, None), 0.3) for x in (SCORES, np.ones(60))],
    "gdp_curve of decisions": lambda: p.gdp_curve(LABELS, TWO[:, 1], groups=5),
    "gdp_curve of other decisions": lambda: p.gdp_curve(2 + 3 * (TWO[:, 1] > 0.3), TWO[:, 1], groups=7, confidence=0.8),
    "gdp_curve of single rows": lambda: p.gdp_curve(SCORES[:9], TWO[:9, 1], groups=9),
    "gdp_curve of ties": lambda: p.gdp_curve(SCORES, S, groups=6),
    "gdp_curve of many rows": lambda: p.gdp_curve(np.tile(SCORES, 50), np.tile(TWO[:, 1], 50) + np.arange(3000) / 1e4),
    "local_mean of decisions": lambda: p.local_mean(LABELS, TWO[:, 1], 0.2),
    "correlation_ratio of ties": lambda: p.correlation_ratio(SCORES, k // 7, sample_weight=WEIGHTS),
    "correlation_ratio of pairs": lambda: p.correlation_ratio(SCORES, k // 2),
    "correlation_ratio of decisions": lambda: p.correlation_ratio(LABELS, np.minimum(k, 40)),
    "quantile_gap of ties": lambda: p.quantile_gap(k % 3, S, permutations=19, random_state=3, where=WHERE),
    "quantile_gap of few rows": lambda: p.quantile_gap(k[:10] ** 3, k[:10], permutations=19),
    "quantile_gap without permutations": lambda: p.quantile_gap(SCORES, TWO[:, 1], permutations=0),
    "smoothed_gdp of ties": lambda: p.smoothed_gdp(k % 3, k // 7, bandwidth=0.2, bootstrap=19, permutations=19),
    "gdp_of_sums": lambda: of_sums(SCORES, TWO[:, 1]),
    "gdp_of_sums with options": lambda: of_sums(SCORES, S, resolution=0.3, confidence=0.8, standardize=True),
    "gdp_of_sums of decisions": lambda: of_sums(1.0 * LABELS, S, standardize=True),
    "curve_of_sums": lambda: curve_of_sums(*halves(SCORES, TWO[:, 1], 700)),
    "curve_of_sums of decisions": lambda: curve_of_sums(*halves(1.0 * LABELS, S, 700), confidence=0.8),
    "sums": lambda: [halves(1.0 * LABELS, S)[0].at_ends, halves(SCORES, S)[0].at_ends, halves(SCORES, S)[0].low],
    "permutation_test of clusters, where": lambda: i.permutation_test(Z, S, clusters=CLUSTERS, where=WHERE, **few),
    "permutation_test by default": lambda: i.permutation_test(SCORES, S, random_state=3),
    "permutation_test of ties": lambda: i.permutation_test(k % 2, LABELS, Linear(), Linear(), **few),
    "aggregated_test of the fewest rows": lambda: i.aggregated_test(Z, TWO, max_rows=1, **few),
    "conditional_test by default": lambda: i.conditional_test(SCORES[:30], S[:30], Y[:30], random_state=3),
    "conditional_test of a constant kernel": lambda: i.conditional_test(SCORES, S, Y, Gaussian(1e12), **few),
    "gamma_test of linear kernels": lambda: i.gamma_test(SCORES, S, Linear(), Linear()),
    "hsic_interval of weak dependence": lambda: i.hsic_interval(np.cos(5 * k * k), TWO[:, 1]),
    "equivalence_test by default": lambda: i.equivalence_test(np.cos(5 * k * k), TWO[:, 1], 0.01),
    "SequentialTest of two": lambda: again(i.SequentialTest(level=0.1, resamples=49, random_state=3)),
    "SequentialTest by default": lambda: [i.SequentialTest().level, i.SequentialTest().resamples],
}  # fmt: skip

MESSAGES: Calls = {
    "smoothing_bandwidth text": lambda: d.conditional.smoothing_bandwidth(["a", "b"]),
    "eipm floor": lambda: d.eipm(Z, S, floor=-1.0),
    "eipm anchors": lambda: d.eipm(Z, S, anchors=61),
    "eipm of many rows": lambda: d.eipm(np.arange(2e4), np.arange(2e4)),
    "binned edges of text": lambda: d.binned_mmd(Z, S, edges=["a"]),
    "binned edges of no rows": lambda: d.binned_mmd(Z, S, edges=[1e9]),
    "binned two attributes": lambda: d.binned_mmd(Z, TWO),
    "minority_weights one row": lambda: d.minority_weights([1.0]),
    "minority_weights bandwidth": lambda: d.minority_weights(TWO, bandwidth=[1.0]),
    "minority_weights text": lambda: d.minority_weights(["a", "b"]),
    "minority_weights clip zero": lambda: d.minority_weights(S, clip=(0.0, 1.0)),
    "hsic second derivative": lambda: torch.autograd.grad(
        torch.autograd.grad(d.hsic(x := TENSOR.clone().requires_grad_(), COLUMN), x, create_graph=True)[0].sum(), x
    ),
    "hsic_summed kernels": lambda: d.hsic_summed(Z, TWO, None, [Gaussian(1.0)]),
    "hsic_features kernel": lambda: d.hsic_features(Z, S, PerColumn((Gaussian(1.0),))),
    "hsic_features unknown": lambda: d.hsic_features(Z, S, HalfDistance()),
    "hsic_features one row": lambda: MAPS.estimate(MAPS.sums(TENSOR[:1], COLUMN[:1])),
    "hsic_features no rows": lambda: MAPS.sums(TENSOR[:0], COLUMN[:0]),
    "hsic_features other draw": lambda: d.draw_feature_maps(
        Gaussian(1.0), Gaussian(2.0), 3, 1, features=32, blocks=4, random_state=2
    ).estimate(MAPS.sums(TENSOR, COLUMN)),
    "hsic_features blocks": lambda: d.draw_feature_maps(Gaussian(1.0), Gaussian(2.0), 3, 1, blocks=1),
    "feature_test no rows": lambda: feature_moments(MAPS, TENSOR[:0], COLUMN[:0]),
    "feature_test few rows": lambda: feature_test(MAPS, feature_moments(MAPS, TENSOR[:5], COLUMN[:5])),
    "kernel_hgr max_rank": lambda: d.kernel_hgr(Z, TWO[:, 1], None, Gaussian(0.01), max_rank=3),
    "kernel_hgr tolerance": lambda: d.kernel_hgr(Z, S, tolerance=0.0),
    "kernel_hgr ridge lost": lambda: d.kernel_hgr(1e9 * Z, S, Linear(), ridge_z=1e-9),
    "mutual_information components": lambda: d.mutual_information(Z, S, components=9),
    "standardized_gdp confidence": lambda: p.standardized_gdp(SCORES, S, confidence=0.0),
    "standardized_gdp constant": lambda: p.standardized_gdp(np.ones(60), S),
    "gdp sample_weight text": lambda: p.gdp(SCORES, S, sample_weight=["a"] * 60),
    "gdp sample_weight short": lambda: p.gdp(SCORES, S, sample_weight=[1.0]),
    "gdp sample_weight negative": lambda: p.gdp(SCORES, S, sample_weight=-WEIGHTS),
    "gdp clusters short": lambda: p.gdp(SCORES, S, clusters=[1]),
    "gdp_curve confidence": lambda: p.gdp_curve(SCORES, S, confidence=1.0),
    "local_mean confidence": lambda: p.local_mean(SCORES, S, 0.5, confidence=1.0),
    "correlation_ratio confidence": lambda: p.correlation_ratio(SCORES, S, confidence=1.0),
    "quantile_gap permutations": lambda: p.quantile_gap(SCORES, S, permutations=-1),
    "smoothed_gdp confidence": lambda: p.smoothed_gdp(SCORES, S, bandwidth=0.3, confidence=1.0),
    "smoothed_gdp bootstrap": lambda: p.smoothed_gdp(SCORES, S, bandwidth=0.3, bootstrap=-1),
    "gdp_difference text": lambda: p.gdp_difference(None, SCORES, sensitive_features=["a"] * 60),
    "equal_opportunity_gdp text": lambda: p.equal_opportunity_gdp(LABELS, SCORES, sensitive_features=["a"] * 60),
    "normalized_hsic_interval no variance": lambda: i.normalized_hsic_interval(Z, np.ones(60), None, Linear()),
    "normalized_hsic_interval one row": lambda: i.normalized_hsic_interval([1.0], [2.0]),
    "gamma_test gretton": lambda: i.gamma_test(SCORES, S, Linear(), moments="gretton"),
    "gamma_test gretton of s": lambda: i.gamma_test(SCORES, S, None, Linear(), moments="gretton"),
    "permutation_test level": lambda: i.permutation_test(SCORES, S, level=1.0),
    "permutation_test clusters short": lambda: i.permutation_test(SCORES, S, clusters=[1]),
    "aggregated_test level": lambda: i.aggregated_test(SCORES, S, level=1.0),
    "aggregated_test max_rows": lambda: i.aggregated_test(SCORES, S, max_rows=0),
    "aggregated_test where": lambda: i.aggregated_test(SCORES, S, where=k < 2),
    "conditional_test level": lambda: i.conditional_test(SCORES, S, Y, level=1.0),
    "conditional_test kernel": lambda: i.conditional_test(SCORES, S, Y, "z", "s"),
    "conditional_test where": lambda: i.conditional_test(SCORES, S, Y, where=k < 2),
    "equivalence_test level": lambda: i.equivalence_test(SCORES, S, 0.1, level=1.0),
    "equivalence_test where": lambda: i.equivalence_test(SCORES, S, 0.1, where=k < 2),
    "SequentialTest columns": lambda: i.SequentialTest().update(Z, S).update(SCORES, S),
    "SequentialTest columns of s": lambda: i.SequentialTest().update(SCORES, TWO).update(SCORES, S),
    "SequentialTest resamples": lambda: i.SequentialTest(resamples=0).update(SCORES, S),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_small_blocks_change_no_number(name: str, monkeypatch: pytest.MonkeyPatch):
    for place, size in BLOCKS.items():
        monkeypatch.setattr(place, size)
    value, record = of(NUMBERS, name), RECORDS["numbers"][name]
    assert close(value, record), (value, record)


@pytest.mark.parametrize("name", MORE)
def test_more_numbers_are_those_on_record(name: str, request: pytest.FixtureRequest):
    value = of(MORE, name)
    assert close(value, record := recorded("more numbers", name, value, request)), (value, record)


@pytest.mark.parametrize("name", [name for name in MORE if name.startswith(("gradient", "hsic", "eipm", "feature"))])
def test_small_blocks_change_none_of_more_numbers(name: str, monkeypatch: pytest.MonkeyPatch):
    for place, size in BLOCKS.items():
        monkeypatch.setattr(place, size)
    value, record = of(MORE, name), RECORDS["more numbers"][name]
    assert close(value, record), (value, record)


@pytest.mark.parametrize("name", APPROXIMATED)
def test_approximations_of_large_tables_are_those_on_record(name: str, request: Any, monkeypatch: pytest.MonkeyPatch):
    for place, size in {**BLOCKS, **LIMITS}.items():
        monkeypatch.setattr(place, size)
    value = of(NUMBERS, name)
    assert close(value, record := recorded("approximated", name, value, request)), (value, record)


@pytest.mark.parametrize("name", MESSAGES)
def test_more_messages_are_those_on_record(name: str, request: pytest.FixtureRequest):
    message = said(MESSAGES[name])
    assert message == recorded("more arguments", name, message, request)
    assert message.startswith(("ValueError: ", "TypeError: ", "RuntimeError: exact HSIC"))


class Summed:
    """Sums that a GPU gives, by their definitions, of a kernel that is not shifted."""

    def __init__(
        self, *pairs: tuple[torch.Tensor, Any], w: torch.Tensor | None = None, multiplies: bool = True
    ) -> None:
        self.pairs, self.w, self.multiplies = pairs, w, multiplies
        self.matrices = [kernel(x, x).to(torch.float64) for x, kernel in pairs]

    def sums(self, *, skip_diagonal: bool) -> tuple[torch.Tensor, ...]:
        a, b = (matrix.clone() for matrix in self.matrices)
        if skip_diagonal:
            a.fill_diagonal_(0), b.fill_diagonal_(0)
        return self.w @ (a * b) @ self.w, a @ self.w, b @ self.w

    def has_gradient(self, *, skip_diagonal: bool) -> bool:
        return not skip_diagonal

    def gradient(self, b: torch.Tensor, joint: torch.Tensor, cross: torch.Tensor, total: torch.Tensor) -> torch.Tensor:
        outer = self.w * self.w[:, None] * (joint * self.matrices[1] + cross / 2 * (b + b[:, None]) + total)
        x = self.pairs[0][0].detach().requires_grad_()
        with torch.enable_grad():
            return torch.autograd.grad((outer * self.pairs[0][1](x, x)).sum(), x)[0]

    def sums_with_squares(self, offsets: tuple[float, float]) -> tuple[torch.Tensor, ...]:
        a, b = (matrix - offset for matrix, offset in zip(self.matrices, offsets))
        return (a * b).sum(), a.sum(1), b.sum(1), (a * a).sum(), (b * b).sum()

    def cubes(self, centers: torch.Tensor, diagonal: torch.Tensor) -> tuple[torch.Tensor, ...]:
        a = self.matrices[0] - centers - centers[:, None]
        a.fill_diagonal_(0)
        return (a**3).sum(), diagonal @ (a * a).sum(1), diagonal @ a @ diagonal

    def times(self, b: torch.Tensor) -> torch.Tensor:
        assert self.multiplies
        return self.matrices[0] @ b


@pytest.mark.parametrize("multiplies", [True, False])
@pytest.mark.parametrize("rows", [100, 20])
def test_sums_of_a_gpu_are_put_together_as_those_of_a_cpu(rows: int, multiplies: bool, monkeypatch: Any):
    monkeypatch.setattr(moments, "CUBE_ROWS", rows)
    a, b = (Gram.without_factor(x, kernel) for x, kernel in ((TENSOR, Gaussian(2.0)), (COLUMN, Gaussian(1.0))))
    expected = moments.pair_sums(a, b)
    of_a = moments.own_sums(a, expected.k)
    monkeypatch.setattr(_gpu, "pair", lambda x, y, of_x, of_y, ones: Summed((x, of_x), (y, of_y)))
    monkeypatch.setattr(_gpu, "one", lambda x, of_x: Summed((x, of_x), multiplies=multiplies))
    a, b = (Gram.without_factor(gram.x, gram.kernel, single=True) for gram in (a, b))
    sums = moments.pair_sums(a, b)
    assert close(plain(list(sums)), plain(list(expected)))
    own = moments.own_sums(a, sums.k)
    assert own.square_rows is None
    assert [float(x) for x in own.cubes] == approx([float(x) for x in of_a.cubes], rel=1e-9)
    (value, influence), (same, expected_influence) = (effects._with_itself(a, sums.k, one) for one in (own, of_a))
    assert value == same
    torch.testing.assert_close(influence, expected_influence, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("statistic", [d.hsic, d.hsic_unbiased])
def test_value_and_gradient_of_a_gpu_are_those_of_a_cpu(statistic: Any, monkeypatch: pytest.MonkeyPatch):
    def of_single() -> tuple[float, torch.Tensor]:
        z, s = TENSOR.float().requires_grad_(), COLUMN.float()
        value = statistic(z, s, Gaussian(2.0), Gaussian(1.0))
        (3 * value).backward()
        return float(value.detach()), z.grad

    value, gradient = of_single()
    monkeypatch.setattr(_gpu, "pair", lambda x, y, of_x, of_y, w: Summed((x, of_x), (y, of_y), w=w))
    value_on_gpu, gradient_on_gpu = of_single()
    assert value_on_gpu == approx(value, rel=1e-4)
    torch.testing.assert_close(gradient_on_gpu, gradient, rtol=1e-3, atol=1e-7)
