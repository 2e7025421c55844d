"""Studies that are not grids: their oracles are the published caches, closed forms and
definitions.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch
from pytest import approx
from scipy import stats
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import Ridge
from sklearn.preprocessing import StandardScaler
from torch import nn

from dependence_samples import gaussian_pair as normal_pair
from dependence_samples import ksg_by_definition
from frhsic.dependence import hsic, hsic_unbiased, mutual_information
from frhsic.dependence.grams import centered_gram
from frhsic.independence import permutation_test
from frhsic.kernels import Gaussian, median_bandwidth
from frhsic.penalties import EIPM, NoPenalty
from frhsic.penalties.rivals import gdp_value
from frhsic.training import MLP
from frhsic_paper import measures, records
from frhsic_paper.grid import Grid, Splits, methods_by_name, run
from frhsic_paper.models import Model
from frhsic_paper.options import Options
from frhsic_paper.printed import published_numbers
from frhsic_paper.protocol import CORRECTED, PUBLISHED
from frhsic_paper.splits import split_dataset
from frhsic_paper.statistics import eipm
from frhsic_paper.statistics.published import (
    gamma_test_two_moments,
    published_gamma_test,
    published_mutual_information,
)
from frhsic_paper.statistics.smoothed import evaluation_points
from frhsic_paper.studies import bandwidth_scaling, convergence, high_dimensional, runtime
from frhsic_paper.studies.bound import RULES, corrected_sides, published_sides
from frhsic_paper.studies.transfer import published_heads
from frhsic_paper.studies.weight_selection import _tests, selection
from frhsic_paper.sweep import measure_information
from frhsic_paper.synthetic import gaussian_pair
from frhsic_paper.timing import Loop, LoopedEIPM, Timing, plain_clock
from paper_samples import ADULT_NUMBERS, stand_in, toy_dataset

# --- probes


def test_probes_are_ridge_regressions_of_scikit_learn_and_a_model_that_diverged_has_none():
    generator = torch.Generator().manual_seed(0)
    z, z_test = (
        torch.randn(3, rows, 40, generator=generator, dtype=torch.float64) for rows in (300, 200)
    )
    s, s_test = z[0, :, 0] + z[1, :, 1] ** 2, z_test[0, :, 0] + z_test[1, :, 1] ** 2
    z[2, 5, 5] = math.nan
    found = measures.probe_r2(z, s, z_test, s_test)
    for model in range(2):
        scaler = StandardScaler().fit(z[model].numpy())
        spread = math.sqrt(299 / 300)  # by n − 1 there, by n here
        train, test = (spread * scaler.transform(rows[model].numpy()) for rows in (z, z_test))
        probe = Ridge(alpha=1e-4 * 300).fit(train, s.numpy())
        assert float(found[model]) == approx(probe.score(test, s_test.numpy()), abs=1e-6)
    assert math.isnan(found[2])


# --- convergence: every published draw and its error are known


@pytest.mark.parametrize("statistic", ["hsic", "eipm"])
def test_the_published_draws_give_the_published_errors(statistic):
    content = published_numbers("convergence")
    for n in (50, 200, 1000):
        for repeat in (0, 7, 19):
            estimate = convergence._estimates(*convergence.sample(n, repeat), (statistic,))[
                statistic
            ]
            error = abs(estimate - content[f"{statistic}_true"])
            # the published run was in float32
            assert error == approx(content[f"{statistic}_errors"][str(n)][repeat], abs=2e-6)


@pytest.mark.slow
def test_the_published_reference_is_one_draw_of_twenty_thousand_rows():
    z, s = convergence.sample(convergence.REFERENCE_ROWS, convergence.REFERENCE_SEED)
    assert float(hsic(z, s, Gaussian(1.0), Gaussian(1.0))) == approx(
        published_numbers("convergence")["hsic_true"], abs=1e-7
    )


def test_slopes_of_the_published_errors_are_the_printed_ones():
    content = published_numbers("convergence")
    made = [
        {"statistic": name, "n": int(n), "repeat": repeat, "error": error}
        for name in ("hsic", "eipm")
        for n, errors in content[f"{name}_errors"].items()
        for repeat, error in enumerate(errors)
    ]
    slopes = convergence.slopes(made)
    assert {name: round(slope.value, 2) for name, slope in slopes.items()} == {
        "hsic": -0.46,
        "eipm": -0.44,
    }
    assert all(slope.low < slope.value < slope.high for slope in slopes.values())
    assert slopes["hsic"].high > slopes["eipm"].low  # the difference is not significant


@pytest.mark.parametrize("gamma", [1.0, 0.3])
def test_eipm_by_a_factor_is_eipm(gamma):
    z, s = convergence.sample(150, 3)
    expected = float(eipm(z, s, Gaussian(1.0), bandwidth=gamma))
    assert convergence.eipm_by_factor(z, s, gamma) == approx(expected, rel=1e-9)


def test_eipm_at_a_fixed_bandwidth_goes_to_the_smoothed_value_and_not_to_the_true_one():
    estimates = np.array(
        [convergence.eipm_by_factor(*convergence.sample(2000, seed), 1.0) for seed in range(8)]
    )
    error = estimates.std(ddof=1) / math.sqrt(len(estimates))
    assert (
        abs(estimates.mean() - gaussian_pair(2, correlation=0.5).eipm(1.0)) < 4 * error + 1e-3
    )  # bias of order 1/n under the root
    assert (
        abs(estimates.mean() - gaussian_pair(2, correlation=0.5, random_state=0).eipm())
        > 50 * error
    )


def test_convergence_runs_from_end_to_end_and_goes_on(tmp_path, monkeypatch):
    options = Options(tmp_path, "cpu", repeats=3)
    monkeypatch.setattr(convergence, "SIZES", (50,))
    first = convergence.MEASURE(CORRECTED, options)
    monkeypatch.setattr(convergence, "SIZES", (50, 100))
    found = convergence.MEASURE(CORRECTED, options)
    assert found[: len(first)] == first
    assert len(found) == 2 * 3 * 3
    assert {r["statistic"] for r in found} == {"hsic", "eipm", "eipm-shrinking"}
    assert all(r["error"] == approx(abs(r["estimate"] - r["truth"]), abs=1e-7) for r in found)


# --- spectrum


def test_the_spectrum_is_that_of_the_centred_gram_matrix():
    s = torch.tensor([0.0, 0.1, 0.1, 0.7, 1.0], dtype=torch.float64)
    gram = np.exp(-((s[:, None] - s).numpy() ** 2) / (2 * 0.3**2))
    h = np.eye(5) - 1 / 5
    values = np.linalg.eigvalsh(h @ gram @ h / 5)[::-1]
    found = bandwidth_scaling.spectrum(s, 0.3, 1e-6)
    assert (found["distinct"], found["kept"]) == (
        4,
        3,
    )  # four different values, less the constant direction
    assert [found[key] for key in ("smallest", "last", "largest")] == approx(
        [values[2], values[2], values[0]]
    )


def test_the_smallest_eigenvalue_goes_to_one_over_n_and_to_zero():
    s = bandwidth_scaling._distinct_values()
    narrow, wide = (bandwidth_scaling.spectrum(s, sigma, 1e-12) for sigma in (1e-5, 1e3))
    assert narrow["kept"] == len(s) - 1
    assert narrow["smallest"] == approx(1 / len(s), rel=1e-9)
    # wide: the largest is Var(S)/σ², the second of order σ⁻⁴
    assert wide["largest"] == approx(float(s.var(correction=0)) / 1e6, rel=1e-5)
    assert wide["eigenvalues"][1] < 1e-12


def test_in_single_precision_a_wide_kernel_stops_at_the_cut_whatever_the_data():
    s = bandwidth_scaling._distinct_values()
    single = bandwidth_scaling.spectrum(s.float(), 10.0, 1e-6)
    double = bandwidth_scaling.spectrum(s, 10.0, 1e-6)
    # rounding error fills the spectrum of float32 up to the cut
    assert single["kept"] > double["kept"]
    assert single["floor"] <= single["smallest"] < 2 * single["floor"]


def test_spectra_of_both_protocols_run(tmp_path, monkeypatch):
    stand_in(monkeypatch)
    monkeypatch.setattr(bandwidth_scaling, "ROWS", 60)
    options = Options(tmp_path, "cpu", ("crime",))
    published, corrected = (
        bandwidth_scaling.MEASURE(protocol, options) for protocol in (PUBLISHED, CORRECTED)
    )
    assert [r["sigma"] for r in published] == list(bandwidth_scaling.SETTINGS["published"].sigmas)
    assert len(corrected) == len(bandwidth_scaling.SETTINGS["corrected"].sigmas)
    assert bandwidth_scaling.scaling_slope(published, "crime") < 0


# --- times


@pytest.mark.parametrize("anchors", [None, 5])
def test_frem_as_a_loop_is_frem_with_its_gradient(anchors, dtype):
    draw = torch.Generator().manual_seed(0)
    z = torch.randn(20, 3, generator=draw, dtype=dtype, requires_grad=True)
    s = torch.rand(20, 2, generator=draw, dtype=dtype)
    both = [
        penalty(scale_z=1.5, gamma=0.4, anchors=anchors)(z, s) for penalty in (LoopedEIPM, EIPM)
    ]
    gradients = [torch.autograd.grad(value, z)[0] for value in both]
    torch.testing.assert_close(*both)
    torch.testing.assert_close(*gradients, rtol=1e-4 if dtype is torch.float32 else 1e-9, atol=1e-6)


def test_a_timed_loop_trains():
    torch.manual_seed(0)
    x = torch.randn(600, 4)
    y = (x[:, 0] > 0).float()
    encoder, head = MLP((16,), 8)(4), nn.Linear(8, 1)

    def loss():
        with torch.no_grad():
            return float(
                torch.nn.functional.binary_cross_entropy_with_logits(head(encoder(x))[:, 0], y)
            )

    before = loss()
    seconds = Loop.start(encoder, head, NoPenalty(), 0.0, (x, y, x[:, 1])).epochs(
        60, clock=iter(range(200)).__next__
    )
    assert loss() < 0.6 * before
    assert seconds == [1] * 60  # the clock is read once before and once after an epoch


@pytest.mark.parametrize("protocol", [PUBLISHED, CORRECTED], ids=lambda p: p.name)
def test_times_are_recorded_for_every_method(tmp_path, monkeypatch, protocol):
    monkeypatch.setattr(runtime, "SIZES", (300,))
    found = runtime.TRAIN(protocol, Options(tmp_path, "cpu"))
    timing = runtime.SETTINGS[protocol.name]
    assert [r["method"] for r in found if r["repeat"] == 0] == list(timing.methods)
    assert len(found) == timing.count * len(timing.methods)
    assert all(r["seconds"] >= 0 for r in found)


def test_epochs_of_the_warm_up_are_not_timed_and_others_are_averaged_as_asked():
    class Counted:
        def epochs(self, count, clock):
            return [float(i) for i in range(count)]

    def seconds(**timing):
        return [
            r["seconds"]
            for r in Timing((), plain_clock, **timing).records(Counted, torch.device("cpu"))
        ]

    assert seconds(models=3) == [0, 0, 0]
    assert seconds(epochs=2, warm_up=1) == [1, 2]
    assert seconds(epochs=4, averaged=4) == [1.5]


def test_sensitive_columns_are_the_published_ones_and_those_of_the_text(tmp_path, monkeypatch):
    stand_in(monkeypatch)
    monkeypatch.setattr(high_dimensional, "ROWS", 300)
    short = replace(high_dimensional.TIMES["published"], epochs=1, averaged=1)
    monkeypatch.setitem(high_dimensional.TIMES, "published", short)
    monkeypatch.setattr(high_dimensional, "DIMENSIONS", (1, 5))
    for protocol, expected in (
        (PUBLISHED, [ADULT_NUMBERS[i] for i in (0, 3, 4, 5)]),
        (CORRECTED, ["age", "capital-gain", "capital-loss", "hours-per-week"]),
    ):
        found = high_dimensional.TRAIN(protocol, Options(tmp_path, "cpu"))
        assert {tuple(r["columns"]) for r in found} == {tuple(expected[:1]), (*expected, "noise")}
        assert {r["dim_s"]: len(r["columns"]) for r in found} == {1: 1, 5: 5}


# --- several columns of s: known answers


@pytest.mark.parametrize("dim_s", [1, 3, 10])
def test_hsic_of_the_model_with_several_columns_is_known(dim_s):
    draw = np.random.default_rng(dim_s)
    estimates = []
    for seed in range(12):
        pair = gaussian_pair(800, correlation=0.5, random_state=seed)
        s = torch.cat(
            [pair.s[:, None], torch.from_numpy(draw.standard_normal((800, dim_s - 1)))], dim=1
        )
        estimates.append(float(hsic_unbiased(pair.z, s, Gaussian(1.0), Gaussian(math.sqrt(dim_s)))))
    error = np.std(estimates, ddof=1) / math.sqrt(len(estimates))
    assert abs(np.mean(estimates) - high_dimensional.true_hsic(dim_s)) < 4 * error


def test_errors_grow_with_columns_for_eipm_and_hardly_for_hsic(tmp_path, monkeypatch):
    monkeypatch.setitem(
        high_dimensional.ERRORS, "corrected", high_dimensional.Samples((1, 10), (300,), 20)
    )
    found = high_dimensional.MEASURE(CORRECTED, Options(tmp_path, repeats=4))
    assert len(found) == 2 * 4 * 3

    means = pd.DataFrame(found).groupby(["statistic", "dim_s"])["relative_error"].mean()
    assert means["eipm", 10] > 2 * means["eipm", 1]
    assert high_dimensional.MEASURE(PUBLISHED, Options(tmp_path)) == []


# --- mutual information beside a sweep


def test_mutual_information_is_that_of_the_test_rows(tmp_path):
    grid = Grid(
        "tradeoff", ("adult",), methods_by_name("frhsic"), (0.1, 10.0), 3, Splits(), epochs=1
    )
    grid = replace(grid, source=lambda name, protocol: toy_dataset("adult", n=300))
    seen, options = {}, Options(tmp_path, "cpu")

    def keep(trained, options):
        for i, record in enumerate(trained.records):
            test = trained.splits[record["repeat"]].test
            z = trained.fleet.select([i]).transform(test.x)[0]
            expected = (
                float(mutual_information(z, test.s)),
                float(published_mutual_information(z, test.s)),
            )
            seen[trained.method, record["weight"], record["repeat"]] = expected

    run(grid, PUBLISHED, options, (replace(measure_information, repeats=2), keep))
    found = {
        (r["method"], r["weight"], r["repeat"]): (r["mi"], r["mi_published"])
        for r in records.read(options.file("mutual-information", PUBLISHED))
    }
    assert found.keys() == {key for key in seen if key[2] < 2}
    for key, values in found.items():
        assert values == approx(seen[key], rel=1e-5, abs=1e-6)


# --- bound


def sample(n=60):
    draw = torch.Generator().manual_seed(1)
    s = torch.rand(n, generator=draw)
    z = torch.randn(n, 2, generator=draw, dtype=torch.float64)
    z[:, 0] += 2 * s
    return z, s


def test_the_published_sides_are_their_definitions():
    z, s = sample()
    (found,) = published_sides(z, s)
    k = Gaussian(1.0)(z, z)
    l = Gaussian(median_bandwidth(s))(s[:, None].double(), s[:, None].double())
    assert found["hsic"] == approx(float((centered_gram(k) * l).mean()), rel=1e-6)
    assert found["rhs"] == approx(found["hsic"] / found["lambda_hat"])
    variances = [
        float(((row - row.mean()) ** 2).mean()) for row in k
    ]  # 60 rows: every one is an anchor
    assert found["lhs_mean"] == approx(sum(variances) / len(variances))
    assert found["lhs_max"] == approx(max(variances))


def test_the_corrected_sides_are_projected_and_in_order():
    z, s = sample()
    sides = corrected_sides(z, s)
    assert [side["rule"] for side in sides] == list(RULES)
    l = centered_gram(
        Gaussian(median_bandwidth(s))(s[:, None].double(), s[:, None].double())
    ) / len(s)
    values, vectors = torch.linalg.eigh(l)
    k = Gaussian(1.0)(z, z)
    for side in sides:
        m = side["directions"]
        assert side["lambda_hat"] == approx(float(values[-m]), rel=1e-6)
        projected = vectors[:, -m:].T @ (k - k.mean(0))  # of k(z_i, ·), column by column
        gaps = (projected**2).sum(0) / len(s)
        assert side["lhs_max"] == approx(float(gaps.max()), rel=1e-6)
        assert side["lhs_max"] <= side["tight"] <= side["trace"] <= side["rhs"] * (1 + 1e-9)
    assert [side["lhs_max"] for side in sides[:3]] == sorted(side["lhs_max"] for side in sides[:3])


# --- choosing a weight


def test_tests_of_a_model_agree_with_a_permutation_test():
    z, s = sample(200)
    shuffled = s[torch.randperm(200, generator=torch.Generator().manual_seed(3))]
    dependent, independent = _tests(z, s), _tests(z, shuffled)
    assert dependent["rejected"]
    assert dependent["pvalue"] < 1e-3
    kernel = Gaussian(median_bandwidth(z))
    assert dependent["n_hsic"] == approx(200 * float(hsic(z, s.double(), kernel, None)), rel=1e-9)
    exact = permutation_test(z, shuffled, kernel, resamples=499, random_state=0).pvalue
    assert independent["pvalue"] == approx(exact, abs=0.08)  # four standard errors of 499 resamples
    two_moments = gamma_test_two_moments(z, shuffled, kernel, None, moments="permutation")
    assert independent["threshold"] == approx(200 * two_moments.threshold)


def test_a_representation_that_collapsed_is_not_rejected():
    _, s = sample(50)
    found = _tests(torch.zeros(50, 3), s)
    assert (found["rejected"], found["pvalue"]) == (False, 1.0)


def test_the_published_selection_is_the_smallest_weight_whose_statistic_is_below_the_threshold():
    rows = {"adult": 1000, "crime": 299, "compas": 925}
    cells = published_numbers("lambda_selection")
    rejected = [rows[r["dataset"]] * r["hsic_val"] > r["threshold_for_n_times_hsic"] for r in cells]
    assert rejected == [r["reject"] for r in cells]
    made = [{**r, "method": "frhsic", "published_rejected": r["reject"]} for r in cells]
    expected = {(r["dataset"], r["repeat"]): r["selected_lambda"] for r in cells}
    chosen = selection(made, "published_rejected")
    assert {key: record and record["weight"] for key, record in chosen.items()} == expected


# --- transfer


def test_published_heads_are_measured_on_logits_and_on_hard_labels(tmp_path):
    data = toy_dataset("adult", n=400)
    split = split_dataset(data, 42, scaling="all")
    torch.manual_seed(0)
    encoder, head = MLP()(data.d), nn.Linear(50, 1)
    state = {f"encoder.{k}": v for k, v in encoder.state_dict().items()}
    state |= {f"head.{k}": v for k, v in head.state_dict().items()}
    model = Model({"task": "binary"}, state)
    (heads,) = published_heads([model], split, PUBLISHED, Options(tmp_path, epochs=60))
    by_name = {found["head"]: found for found in heads}
    assert list(by_name) == ["linear", "mlp", "forest", "svm"]
    assert all(found["performance"] > 0.6 for found in heads)
    assert max(by_name[name]["gdp"] for name in ("forest", "svm")) <= 1  # labels are 0 or 1
    # a forest's labels, refitted here
    with torch.no_grad():
        z, z_test = encoder(split.train.x).numpy(), encoder(split.test.x).numpy()
    labels = (
        RandomForestClassifier(100, random_state=42).fit(z, split.train.y.numpy()).predict(z_test)
    )
    s = split.test.s.double()
    labels = torch.from_numpy(labels).double()
    expected = gdp_value(labels, s, 0.1, *evaluation_points(s, 0.1, "uniform"))
    assert by_name["forest"]["gdp"] == approx(expected.item(), rel=1e-6)


# --- the statistics of the printed numbers are their formulas, and have the faults that the
# documents name


def rows(n, d, seed):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def test_the_published_null_is_that_of_the_published_formulae():
    n = 40
    z, s = rows(n, 2, 3), rows(n, 1, 4)
    k, l = Gaussian(1.0), Gaussian(0.5)
    k_gram, l_gram = k(z, z).fill_diagonal_(0), l(s, s).fill_diagonal_(0)
    mean = float(k_gram.sum() * l_gram.sum()) / (n * (n - 1) * (n - 2) * (n - 3))
    products = float((k_gram**2).sum() * (l_gram**2).sum())
    variance = 2 * products / (n * (n - 1) * (n - 2) * (n - 3) * (n - 4) * (n - 5))
    result = published_gamma_test(z, s, k, l)
    assert n * result.null_mean == approx(mean, rel=1e-10)
    assert n * result.null_standard_deviation == approx(math.sqrt(variance), rel=1e-10)
    reference = stats.gamma(mean**2 / variance, scale=variance / mean)
    assert n * result.threshold == approx(float(reference.isf(0.05)), rel=1e-9)


def test_the_published_one_is_its_definition_with_inclusive_counts(dtype):
    z, s = (x.to(dtype) for x in normal_pair(8, 0.9, 1, columns=2))
    centred = z.double().numpy() - z.double().numpy().mean(0)
    turned = (
        centred @ np.linalg.svd(centred, full_matrices=False)[2].T
    )  # two components of two: a rotation
    expected = ksg_by_definition(turned.tolist(), s.double().tolist(), 2, lambda d, r: d <= r)
    assert published_mutual_information(z, s, n_neighbors=2) == approx(max(expected, 0), rel=1e-6)
    assert expected != ksg_by_definition(
        turned.tolist(), s.double().tolist(), 2, lambda d, r: d < r
    )


def test_grettons_moments_are_those_of_the_formulae_for_whole_matrices():
    """The formulae of Gretton et al. (2007), evaluated on whole Gram matrices with loops over
    pairs.
    """
    n = 30
    z, s = rows(n, 2, 3), rows(n, 1, 4)
    k, l = Gaussian(1.0), Gaussian(0.5)
    k_gram, l_gram = k(z, z), l(s, s)
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    squares = (centered_gram(k_gram) * centered_gram(l_gram)) ** 2
    mu_k, mu_l, spread = (
        sum(float(gram[pair]) for pair in pairs) / len(pairs) for gram in (k_gram, l_gram, squares)
    )
    mean = (1 + mu_k * mu_l - mu_k - mu_l) / n
    variance = spread * 2 * (n - 4) * (n - 5) / (n * (n - 1) * (n - 2) * (n - 3))
    result = gamma_test_two_moments(z, s, k, l, moments="gretton")
    assert result.null_mean == approx(mean, rel=1e-10)
    assert result.null_standard_deviation == approx(math.sqrt(variance), rel=1e-10)
    reference = stats.gamma(mean**2 / variance, scale=variance / mean)
    assert result.pvalue == approx(float(reference.sf(result.statistic)), rel=1e-9)
    assert result.threshold == approx(float(reference.isf(0.05)), rel=1e-9)


def test_statistic_and_pvalue_agree_with_causal_learn():
    """KCI_UInd(est_width="manual", kwidthx=1, kwidthy=.5) of causal-learn 0.1.4.8 on these 1,000
    rows.

    Its statistic is n² HSIC of the standardised columns. Its moments are those of the limit, ours
    are exact: the p-values differ by O(1/n).
    """
    i = torch.arange(1000, dtype=torch.float64)
    z = torch.cos(1.7 * i**1.5)
    s = torch.sin(0.9 * i**1.3) + 0.1 * z
    z, s = ((x - x.mean()) / x.std() for x in (z, s))
    result = gamma_test_two_moments(z, s, Gaussian(1.0), Gaussian(0.5), moments="permutation")
    assert 1000**2 * result.statistic == approx(1506.618432614998, rel=1e-10)
    assert result.pvalue == approx(7.792611530910154e-05, rel=0.03)
