"""A fitted model and its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sklearn.base import clone
from torch import Tensor, nn

from estimator_samples import QUICK, biased, people
from frhsic import load, save
from frhsic.estimators import (
    PENALTY_NAMES,
    FRHSICClassifier,
    FRHSICRegressor,
    ParityEncoder,
    describe,
    penalty_named,
    plain,
)
from frhsic.estimators.plain import from_json, to_json
from frhsic.kernels import Gaussian, Laplacian, Linear
from frhsic.penalties import EIPM, GDP, HSIC, BinnedMMD, DistanceCorrelation, Penalty
from frhsic.penalties.base import Batch

SHORT = {**QUICK, "epochs": 2}


def metadata(path: Path) -> dict[str, Any]:
    with safe_open(path, framework="pt") as opened:
        return json.loads(opened.metadata()["frhsic"])


def rewritten(path: Path, header: dict[str, Any], tensors: dict[str, Tensor] | None = None) -> None:
    save_file(load_file(path) if tensors is None else tensors, path, {"frhsic": json.dumps(header)})


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    X, y, s = biased(60)
    path = tmp_path / "model.frhsic"
    save(FRHSICClassifier(**SHORT).fit(X, y, sensitive_features=s), path)
    return path


@pytest.mark.parametrize("name", PENALTY_NAMES)
def test_a_classifier_comes_back_bit_for_bit(name: str, tmp_path: Path):
    X, y, s = biased(60)
    model = FRHSICClassifier(name, 0.5, **SHORT).fit(X, y, sensitive_features=s)
    model.save(tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
    np.testing.assert_array_equal(again.loss_curve_, model.loss_curve_)
    assert again.representation_rank_ == model.representation_rank_
    assert (again.representation_rank_ < 8) == (name == "hsic") == again.has_bottleneck_
    assert again.get_params() == model.get_params()
    assert type(again.penalty_) is type(model.penalty_)
    torch.testing.assert_close(again.penalty_.state_dict(), model.penalty_.state_dict(), rtol=0, atol=0)


def test_a_model_goes_on_training_from_its_file_as_if_it_had_never_been_saved(tmp_path: Path):
    X, y, s = biased(60)
    for name in ("adv", "hsic"):
        model = FRHSICClassifier(name, 0.5, **SHORT).fit(X, y, sensitive_features=s)
        save(model, tmp_path / "model")
        again = load(tmp_path / "model")
        for each in (model, again):
            each.partial_fit(X, y, sensitive_features=s)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


def test_frames_text_labels_and_several_attributes_come_back(tmp_path: Path):
    frame, paid, age = people()
    labels = np.where(paid, "high", "low")
    both = np.column_stack([age, frame["hours"]])
    model = FRHSICClassifier(**SHORT).fit(frame, labels, sensitive_features=both)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    np.testing.assert_array_equal(again.predict(frame), model.predict(frame))
    assert again.classes_.dtype == model.classes_.dtype
    assert list(again.feature_names_in_) == list(frame.columns)
    assert again.feature_encoding_ == model.feature_encoding_
    assert again.sensitive_encoding_ == model.sensitive_encoding_
    assert again.penalty_.n_attributes == 2
    with pytest.raises(ValueError, match="same order"):
        again.predict(frame[["job", "hours", "owner", "size"]])


@pytest.mark.parametrize("labels", [[0, 1], [True, False], [1.0, 2.0], ["a", "bcd"]])
def test_labels_keep_their_type(labels: list[Any], tmp_path: Path):
    X, y, s = biased(40)
    model = FRHSICClassifier(**SHORT).fit(X, np.array(labels)[y], sensitive_features=s)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.classes_.dtype == model.classes_.dtype
    np.testing.assert_array_equal(again.classes_, model.classes_)


def test_regressors_and_encoders_come_back(tmp_path: Path):
    X, _, s = biased(60)
    regressor = FRHSICRegressor(**SHORT).fit(X, 50 * X[:, 1], sensitive_features=s)
    encoder = ParityEncoder(**SHORT).fit(X, sensitive_features=s)
    save(regressor, tmp_path / "r")
    save(encoder, tmp_path / "e")
    np.testing.assert_array_equal(load(tmp_path / "r").predict(X), regressor.predict(X))
    np.testing.assert_array_equal(load(tmp_path / "e").transform(X), encoder.transform(X))
    assert load(tmp_path / "e").task_ == "reconstruction"


def test_a_model_without_attributes_comes_back(tmp_path: Path):
    X, y, _ = biased(60)
    model = FRHSICClassifier(penalty_weight=0, **SHORT).fit(X, y)
    save(model, tmp_path / "model")
    np.testing.assert_array_equal(load(tmp_path / "model").predict_proba(X), model.predict_proba(X))


PENALTIES = [
    HSIC(3 * Gaussian(0.5) + Linear() * Laplacian(2.0), scale_s=(0.3, 0.4), minority_clip=(0.1, 10.0)),
    HSIC(statistic="unbiased", attributes="sum"),
    HSIC.published(condition="positive"),
    EIPM(gamma=0.2, anchors=None),
    GDP(weighting="population", standardize_scores=True),
    BinnedMMD(bins=4, edges="quantile"),
    DistanceCorrelation(statistic="unbiased"),
    *(penalty_named(name) for name in PENALTY_NAMES),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
def test_a_penalty_is_built_again_from_its_json(penalty: Penalty):
    said = json.loads(json.dumps(to_json(penalty)))
    again = from_json(said)
    assert to_json(again) == said
    s, z = torch.rand(40, 2), torch.randn(40, 50)
    y = (torch.rand(40) < 0.7).float()
    values = []
    for each in (penalty, again):
        each.prepare(s, torch.Generator().manual_seed(0))
        each.adapt(z, s, 0)
        values.append(each(z, s, scores=z[:, :1], y=y))
    assert values[0] == values[1]


def test_the_header_says_what_the_model_is_and_reading_it_builds_nothing(saved: Path):
    header = describe(saved)
    assert header["estimator"] == "FRHSICClassifier"
    assert header["parameters"]["penalty"] == "frhsic"
    assert header["penalty"]["penalty"] == "HSIC"
    assert header["architecture"]["head"] == [8, 1]
    assert set(header["versions"]) == {"frhsic", "torch", "scikit-learn"}
    assert [column["name"] for column in header["learned"]["feature_encoding_"]["table"]] == ["x0", "x1", "x2"]
    assert header == metadata(saved)


def test_no_pickle_is_in_the_file(saved: Path):
    length = int.from_bytes(saved.read_bytes()[:8], "little")
    assert json.loads(saved.read_bytes()[8 : 8 + length])["__metadata__"].keys() == {"frhsic"}


# refusals


@pytest.mark.parametrize("part", ["encoder.0.weight", "penalty.scale_s_now", "loss_curve_"])
def test_a_changed_tensor_is_refused(saved: Path, part: str):
    tensors = load_file(saved)
    tensors[part] = tensors[part] + 1e-3
    rewritten(saved, metadata(saved), tensors)
    with pytest.raises(ValueError, match="is not what was written: its checksum"):
        load(saved)


def test_a_changed_header_is_refused(saved: Path):
    header = metadata(saved)
    header["learned"]["feature_encoding_"]["table"][0]["high"] += 1
    rewritten(saved, header)
    with pytest.raises(ValueError, match="is not what was written: its checksum"):
        load(saved)


def test_a_file_that_was_cut_off_is_refused(saved: Path):
    saved.write_bytes(saved.read_bytes()[:-100])
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load(saved)
    saved.write_bytes(b"")
    with pytest.raises(ValueError, match="not a whole safetensors file"):
        load(saved)


@pytest.mark.parametrize("said", [None, {"format": "pt"}, {"frhsic": "no json"}, {"frhsic": "[1]"}])
def test_a_foreign_file_is_refused(said: dict[str, str] | None, tmp_path: Path):
    save_file({"w": torch.zeros(2)}, tmp_path / "other.safetensors", said)
    with pytest.raises(ValueError, match=r"not one that frhsic\.save has written"):
        load(tmp_path / "other.safetensors")


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="there is no saved model"):
        load(tmp_path / "nothing")


def test_only_fitted_models_are_saved_and_nothing_is_left_of_a_failure(tmp_path: Path):
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        save(FRHSICClassifier(), tmp_path / "model")
    with pytest.raises(TypeError, match="pass a fitted FRHSICClassifier"):
        save(nn.Linear(1, 1), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# what a file cannot hold


class Own(nn.Module):
    def __init__(self, columns: int, size: int = 4) -> None:
        super().__init__()
        self.layer = nn.Linear(columns, size)

    def forward(self, x: Tensor) -> Tensor:
        return torch.tanh(self.layer(x))


class Covariance(Penalty):
    """Squared covariance of the first column of z with s."""

    def _value(self, batch: Batch) -> Tensor:
        return (batch.z[:, 0] * (batch.s[:, 0] - batch.s[:, 0].mean())).mean().square()


def test_an_encoder_and_a_penalty_of_one_s_own_are_passed_again(tmp_path: Path):
    X, y, s = biased(60)
    model = FRHSICClassifier(Covariance(), encoder=Own, **SHORT).fit(X, y, sensitive_features=s)
    path = tmp_path / "model"
    save(model, path)
    with pytest.raises(ValueError, match=r"a penalty of the user's own, .*Covariance"):
        load(path, encoder=Own)
    with pytest.raises(ValueError, match=r"an? encoder of the user's own, .*Own.*load\(path, encoder=\.\.\.\)"):
        load(path, penalty=Covariance())
    again = load(path, encoder=Own, penalty=Covariance())
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
    with pytest.raises(ValueError, match="the encoder does not fit the weights in the file"):
        load(path, encoder=lambda columns: Own(columns, 5), penalty=Covariance())
    with pytest.raises(TypeError, match="penalty is 'hsic'; pass an object such as the one that was trained with"):
        load(path, encoder=Own, penalty="hsic")
    with pytest.raises(TypeError, match="encoder made int; it must make a torch"):
        load(path, encoder=lambda columns: 3, penalty=Covariance())


class Weighted(Covariance):
    """A penalty with a parameter of its own."""

    def __init__(self, weights: tuple[float, ...] = (1.0,)) -> None:
        super().__init__()
        self.weights = nn.Parameter(torch.tensor(weights), requires_grad=False)

    def _value(self, batch: Batch) -> Tensor:
        return self.weights.sum() * super()._value(batch)


def test_parameters_of_a_penalty_of_one_s_own_come_back(tmp_path: Path):
    X, y, s = biased(60)
    model = FRHSICClassifier(Weighted((3.0,)), **SHORT).fit(X, y, sensitive_features=s)
    save(model, tmp_path / "model")
    assert load(tmp_path / "model", penalty=Weighted()).penalty_.weights.tolist() == [3.0]
    with pytest.raises(ValueError, match=r"the state 'weights' of Weighted has shape \(1,\)"):
        load(tmp_path / "model", penalty=Weighted((1.0, 2.0)))


def test_numbers_of_other_libraries_are_written_as_numbers():
    assert to_json(np.float32(0.5)) == 0.5
    assert to_json(torch.tensor([2.5])) == 2.5
    with pytest.raises(TypeError, match="cannot be written as JSON; use text or numbers as labels"):
        plain.labels_to_json(np.array([("a", 1), ("b", 2)], dtype="U1,i4"))


def test_a_generator_is_saved_as_the_seed_that_was_drawn_from_it(tmp_path: Path):
    X, y, s = biased(40)
    model = FRHSICClassifier(**{**SHORT, "random_state": np.random.default_rng(5)}).fit(X, y, sensitive_features=s)
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert again.random_state == model.random_seed_
    repeated = clone(again).fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(repeated.predict_proba(X), model.predict_proba(X))


@pytest.mark.parametrize("name", ["Penalty", "NoSuch", "base", "annotations"])
def test_only_known_penalties_are_built(name: str):
    with pytest.raises(ValueError, match="is not known to this version"):
        from_json({"penalty": name, "arguments": {}})
