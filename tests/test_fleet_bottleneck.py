"""The floor under the variance of Z, against NumPy."""

from dataclasses import replace

import numpy as np
import torch

import fleet_samples
from frhsic.penalties import HSIC
from frhsic.training import Member, TrainingData
from frhsic.training.result import floor_variance

FLOOR = 0.05


def sample(dtype=torch.float64):
    return fleet_samples.sample(rows=400, dtype=dtype)


def trained(data, members, floor=0.0, **asked):
    options = {
        "task": "binary",
        "penalty": HSIC,
        "epochs": 3,
        "device": "cpu",
        "variance_floor": floor,
    }
    return fleet_samples.trained(data, members, **options, **asked)


def by_numpy(z_train, z, floor):
    """Project standardised rows onto the eigenvectors of their correlation matrix that are above
    the floor.
    """
    mean, spread = z_train.mean(0), z_train.std(0)
    values, vectors = np.linalg.eigh(np.corrcoef(z_train.T))
    kept = vectors[:, values >= floor]
    return (z - mean) / spread @ kept @ kept.T * spread + mean


MEMBERS = [Member(5.0, 1, 0), Member(0.0, 1, 0), Member(1.0, 2, 1)]


def test_z_is_that_of_the_principal_directions_above_the_floor_and_the_head_sees_it():
    data = sample()
    plain, cut = trained(data, MEMBERS), trained(data, MEMBERS, FLOOR)
    fresh = torch.randn(30, 4, dtype=torch.float64)
    z_train, z = plain.transform(data.x).numpy(), plain.transform(fresh).numpy()
    for i in (0, 2):
        expected = by_numpy(z_train[i], z[i], FLOOR)
        assert np.abs(expected - z[i]).max() > 1e-3
        np.testing.assert_allclose(cut.transform(fresh)[i].numpy(), expected, atol=1e-9)
        encoder, head = cut.module(i)
        np.testing.assert_allclose(encoder(fresh).detach().numpy(), expected, atol=1e-9)
        scores = expected @ head.weight.detach().numpy().T + head.bias.detach().numpy()
        np.testing.assert_allclose(cut.scores(fresh)[i].numpy(), scores, atol=1e-9)
    assert torch.equal(cut.transform(fresh)[1], plain.transform(fresh)[1])  # λ = 0
    assert [cut.cuts(i) for i in range(3)] == [True, False, True]
    assert len(cut.module(1)[0]) == len(plain.module(1)[0]) == 3


def test_nothing_of_what_is_cut_passes_not_even_by_rounding():
    data = sample(dtype=torch.float32)
    cut = trained(data, MEMBERS, FLOOR)
    encoder, _ = cut.module(0)
    rank = encoder[1].rank
    assert 1 <= rank < 50
    z = encoder.double()(data.x[0].double()).detach().numpy()
    spectrum = np.linalg.svd(z - z.mean(0), compute_uv=False)
    assert spectrum[rank - 1] > 1e-2 * spectrum[0]
    assert spectrum[rank] < 1e-13 * spectrum[0]


def test_no_floor_no_penalty_or_few_rows_leave_all_as_it_is():
    data = sample()
    first = {n: TrainingData(data.x[:, :n], data.y[:, :n], data.s[:, :n]) for n in (199, 200)}
    assert not trained(data, MEMBERS).cuts(0)
    assert not trained(data, [Member(0.0)], FLOOR).cuts(0)
    assert not trained(first[199], MEMBERS, FLOOR).cuts(0)
    assert trained(first[200], MEMBERS, FLOOR).cuts(0)


def test_a_constant_coordinate_stays_and_a_model_that_is_not_finite_is_left_alone():
    data = sample()
    fleet = trained(data, MEMBERS)
    weights = fleet.parameters["encoder.2.weight"].clone()
    weights[0, 7] = 0
    weights[2] = torch.nan
    cut = floor_variance(
        replace(fleet, parameters=fleet.parameters | {"encoder.2.weight": weights}), data, FLOOR
    )
    constant = fleet.parameters["encoder.2.bias"][0, 7]
    torch.testing.assert_close(cut.transform(data.x)[0, :, 7], constant.expand(data.rows))
    assert cut.transform(data.x)[0].isfinite().all()
    assert cut.module(2)[0][1].rank == 50
