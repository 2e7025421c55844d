"""Ensembles: K models trained at once from K seeds, deployed as one whose raw score is the mean of theirs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.base import clone
from torch import nn

from estimator_samples import QUICK, biased
from frhsic import load
from frhsic.estimators import FRHSICClassifier, FRHSICRegressor, ParityEncoder, describe, fit_path
from frhsic.estimators.ensemble import joined, member_seeds

SHORT: dict[str, Any] = QUICK | {"epochs": 8}
K = 3
Pairs = list[tuple[nn.Module, nn.Module]]


@pytest.fixture
def joins(monkeypatch: pytest.MonkeyPatch) -> list[Pairs]:
    """Return the members of every ensemble that is fitted, before they are joined."""
    seen: list[Pairs] = []

    def noting(pairs: Pairs) -> tuple[nn.Module, nn.Module]:
        seen.append([(encoder, head) for encoder, head in pairs])
        return joined(pairs)

    monkeypatch.setattr("frhsic.estimators.network.joined", noting)
    return seen


@pytest.mark.parametrize("options", [{}, {"early_stopping": True, "n_iter_no_change": 1}, {"penalty": "adv"}])
def test_raw_scores_are_the_mean_of_the_members_to_twelve_digits(options: dict[str, Any], joins: list[Pairs]):
    X, y, s = biased()
    y = y + (X[:, 2] > 1)  # three classes
    model = FRHSICClassifier(ensemble=K, **(SHORT | options)).fit(X, y, sensitive_features=s)
    x = torch.from_numpy(model.feature_encoding_(X))
    ((*pairs,),) = joins
    assert len(pairs) == K
    with torch.no_grad():
        z = [encoder.double()(x) for encoder, _ in pairs]
        scores = [head.double()(own) for (_, head), own in zip(pairs, z)]
    assert np.abs(model.decision_function(X) - torch.stack(scores).mean(0).numpy()).max() < 1e-12
    assert np.array_equal(model.transform(X), torch.cat(z, dim=1).numpy())
    assert not torch.allclose(scores[0], scores[1], atol=1e-2)
    assert model.transform(X).shape == (len(X), 8 * K)
    assert len(model.get_feature_names_out()) == model.representation_size_ == 8 * K
    if options.get("early_stopping"):
        assert len(model.best_epochs_) == K
        assert len(model.validation_curve_) == len(model.loss_curve_) == min(8, max(model.best_epochs_) + 2)


def test_members_are_the_models_that_their_seeds_give_alone():
    X, y, s = biased()
    model = FRHSICClassifier("hsic", 3.0, ensemble=K, **SHORT).fit(X, y, sensitive_features=s)
    alone = [
        clone(model).set_params(ensemble=1, random_state=seed).fit(X, y, sensitive_features=s)
        for seed in member_seeds(0, K)
    ]
    mean = np.mean([member.decision_function(X) for member in alone], axis=0)
    assert np.allclose(model.decision_function(X), mean, atol=1e-4)  # fleets of other sizes round differently
    assert np.allclose(model.loss_curve_, np.mean([member.loss_curve_ for member in alone], axis=0), atol=1e-4)
    assert model.representation_rank_ == sum(member.representation_rank_ for member in alone)
    assert model.has_bottleneck_
    once = FRHSICClassifier("hsic", 3.0, ensemble=1, **SHORT).fit(X, y, sensitive_features=s)
    assert np.array_equal(once.decision_function(X), alone[0].decision_function(X))


def test_a_path_holds_an_ensemble_for_each_weight():
    X, _, s = biased()
    path = fit_path(FRHSICRegressor("hsic", ensemble=2, **SHORT), X, X[:, 1], weights=[0.0, 5.0], sensitive_features=s)
    for weight, model in zip([0.0, 5.0], path):
        alone = FRHSICRegressor("hsic", weight, ensemble=2, **SHORT).fit(X, X[:, 1], sensitive_features=s)
        assert np.allclose(model.predict(X), alone.predict(X), atol=1e-4)
        assert model.has_bottleneck_ == (weight > 0)
    assert path[0].representation_rank_ == 16


@pytest.mark.parametrize("floor", [0.0, 0.01])
def test_an_ensemble_comes_back_from_its_file_bit_for_bit(floor: float, tmp_path: Path):
    X, _, s = biased()
    model = ParityEncoder(ensemble=K, variance_floor=floor, **SHORT).fit(X, sensitive_features=s)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert np.array_equal(again.transform(X), model.transform(X))
    assert again.representation_rank_ == model.representation_rank_
    assert describe(tmp_path / "model")["architecture"]["ensemble"] == K
    assert again.ensemble == K


def test_an_encoder_of_one_s_own_is_built_for_every_member(tmp_path: Path):
    X, y, s = biased()

    def encoder(columns: int) -> nn.Module:
        return nn.Sequential(nn.Linear(columns, 4), nn.Tanh())

    model = FRHSICClassifier(encoder=encoder, ensemble=2, **SHORT).fit(X, y, sensitive_features=s)
    assert model.transform(X).shape == (len(X), 8)
    model.save(tmp_path / "model")
    assert np.array_equal(load(tmp_path / "model", encoder=encoder).transform(X), model.transform(X))


def test_an_ensemble_cannot_continue_and_says_so():
    X, y, s = biased(60)
    once = SHORT | {"epochs": 1}
    with pytest.raises(ValueError, match="an ensemble of 2 models cannot continue training"):
        FRHSICClassifier(ensemble=2, **once).partial_fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="cannot continue training"):
        FRHSICRegressor(ensemble=2, **once).partial_fit(X, X[:, 0], sensitive_features=s)
    with pytest.raises(ValueError, match="cannot continue training"):
        FRHSICClassifier(ensemble=2, warm_start=True, **once).fit(X, y, sensitive_features=s)
    model = FRHSICClassifier(ensemble=2, **once).fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="an ensemble of 2 models"):
        model.set_params(ensemble=1).partial_fit(X, y, sensitive_features=s)
    with pytest.raises(ValueError, match="an ensemble of 2 models"):
        model.set_params(warm_start=True).fit(X, y, sensitive_features=s)
    assert model.set_params(warm_start=False).fit(X, y, sensitive_features=s).transform(X).shape == (60, 8)


@pytest.mark.parametrize(("asked", "error"), [(0, ValueError), (2.0, TypeError), (True, TypeError)])
def test_a_number_of_members_that_cannot_be_is_refused(asked: Any, error: type[Exception]):
    X, y, s = biased(60)
    with pytest.raises(error, match="ensemble is"):
        FRHSICClassifier(ensemble=asked, **SHORT).fit(X, y, sensitive_features=s)
