"""A fitted model and its file."""

from __future__ import annotations

import io
import json
import re
import warnings
import zipfile
from pathlib import Path
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import safetensors.numpy
import torch
import xgboost
from frhsic.estimators.conditional import BoostedMeans
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    ExtraTreesRegressor,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from torch import Tensor, nn

from estimator_samples import biased, people, quick
from frhsic import load, save
from frhsic.estimators import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityClassifier,
    ParityCoupling,
    ParityRegressor,
)
from frhsic.kernels import Gaussian, Laplacian
from frhsic.penalties import EIPM, GDP, HSIC, PENALTY_NAMES, BinnedMMD, Penalty
from frhsic.penalties.base import Batch
from frhsic.persistence import file_bytes, from_json, to_json

SHORT = quick(epochs=2)
FRAME, PAID, AGE = people(120)
ROWS = FRAME.head(40)
TREES = {"n_estimators": 3, "num_leaves": 4, "n_jobs": 1, "verbose": -1}


def saved_and_loaded(
    model: Any, folder: Path, rows: Any = ROWS, s: Any = None, **given: Any
) -> Any:
    """Return a model once it is saved and loaded; all that it says of some rows comes back bit for
    bit.
    """
    save(model, folder / "model")
    again = load(folder / "model", **given)
    known = {} if s is None else {"sensitive_features": s}
    for method in ("predict", "predict_proba", "transform"):
        if hasattr(model, method):
            expected = getattr(model, method)(rows, **known)
            np.testing.assert_array_equal(getattr(again, method)(rows, **known), expected)
    return again


def fitted(model: Any, X: Any = FRAME, y: Any = PAID, s: Any = AGE, **arguments: Any) -> Any:
    with warnings.catch_warnings(action="ignore"):  # of limits that so few rows do not meet
        return model.fit(X, y, sensitive_features=s, **arguments)


def closed(estimator: Any = None, **parameters: Any) -> ParityClassifier:
    """A closed form whose parts are quick to fit."""
    linear = make_pipeline(make_column_transformer((StandardScaler(), ["hours"])), Ridge())
    return ParityClassifier(
        estimator, **{"attribute_estimator": linear, "cv": 2, "random_state": 0, **parameters}
    )


# Networks


@pytest.mark.parametrize("name", PENALTY_NAMES)
def test_a_classifier_comes_back_bit_for_bit(name: str, tmp_path: Path):
    X, y, s = biased(60)
    model = FRHSICClassifier(name, 0.5, **SHORT).fit(X, y, sensitive_features=s)
    again = saved_and_loaded(model, tmp_path, X)
    np.testing.assert_array_equal(again.loss_curve_, model.loss_curve_)
    assert again.representation_rank_ == model.representation_rank_
    assert (again.representation_rank_ < 8) == (name == "hsic") == again.has_bottleneck_
    assert again.get_params() == model.get_params()
    assert type(again.penalty_) is type(model.penalty_)
    torch.testing.assert_close(
        again.penalty_.state_dict(), model.penalty_.state_dict(), rtol=0, atol=0
    )
    for each in (model, again):
        each.partial_fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore::frhsic.tables.suspicions.SuspiciousColumnWarning")
def test_frames_text_labels_and_several_attributes_come_back(tmp_path: Path):
    labels = np.where(PAID, "high", "low")
    both = np.column_stack([AGE, np.random.default_rng(0).normal(size=len(AGE))])
    model = FRHSICClassifier(**SHORT).fit(FRAME, labels, sensitive_features=both)
    again = saved_and_loaded(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype
    assert list(again.feature_names_in_) == list(FRAME.columns)
    assert again.feature_encoding_ == model.feature_encoding_
    assert again.sensitive_encoding_ == model.sensitive_encoding_
    assert again.penalty_.n_attributes == 2
    with pytest.raises(ValueError, match="same order"):
        again.predict(FRAME[["job", "hours", "owner", "size"]])


def test_regressors_and_models_without_attributes_come_back(tmp_path: Path):
    X, y, s = biased(60)
    saved_and_loaded(
        FRHSICRegressor(**SHORT).fit(X, 50 * X[:, 1], sensitive_features=s), tmp_path, X
    )
    saved_and_loaded(FRHSICClassifier(penalty_weight=0, **SHORT).fit(X, y), tmp_path, X)


PENALTIES = [
    HSIC(3 * Gaussian(0.5) + Laplacian(2.0), scale_s=0.3),
    HSIC(attributes="sum"),
    HSIC.published(condition="positive"),
    EIPM(gamma=0.2, anchors=None),
    GDP(points=7),
    BinnedMMD(bins=4),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
def test_a_penalty_is_built_again_from_its_json(penalty: Penalty):
    text = json.loads(json.dumps(to_json(penalty)))
    again = from_json(text)
    assert to_json(again) == text
    s, z = torch.rand(40, 2), torch.randn(40, 50)
    y = (torch.rand(40) < 0.7).float()
    values = []
    for each in (penalty, again):
        each.prepare(s, torch.Generator().manual_seed(0))
        each.adapt(z, s, 0)
        values.append(each(z, s, scores=z[:, :1], y=y))
    assert values[0] == values[1]


# The closed form


def probability(rows: pd.DataFrame) -> np.ndarray:
    """A model in production that is a function."""
    return np.asarray(1 / (1 + np.exp(30 - rows["hours"])))


def one_hot(model: Any) -> Any:
    columns = make_column_transformer(
        (StandardScaler(), ["hours"]),
        (OneHotEncoder(handle_unknown="ignore"), ["job", "size"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, model)


def ordinal(model: Any) -> Any:
    return make_pipeline(
        make_column_transformer((OrdinalEncoder(), ["job", "size"]), remainder="passthrough"), model
    )


CLOSED = {
    "boosted trees": closed(make_pipeline(ordinal(lightgbm.LGBMClassifier(**TREES)))),
    "a forest": closed(
        ordinal(RandomForestClassifier(3)), attribute_estimator=ordinal(ExtraTreesRegressor(3))
    ),
    "histograms": closed(ordinal(HistGradientBoostingClassifier(max_iter=3))),
    "xgboost": closed(ordinal(xgboost.XGBClassifier(n_estimators=3, n_jobs=1))),
    "decisions": closed(one_hot(LogisticRegression()), aim="decision", condition="positive"),
    "an upper end": closed(one_hot(LogisticRegression()), confidence=0.9, limit={"age": 0.2}),
}


@pytest.mark.parametrize("name", CLOSED)
def test_a_closed_form_comes_back_bit_for_bit(name: str, tmp_path: Path):
    labels = PAID.astype(int) if name == "xgboost" else np.where(PAID, "high", "low")
    model = fitted(clone(CLOSED[name]), y=labels)
    again = saved_and_loaded(model, tmp_path)
    pd.testing.assert_frame_equal(
        again.frontier_.to_frame(), model.frontier_.to_frame(), check_exact=True
    )
    assert again.choice_ == model.choice_
    assert again.threshold_ == model.threshold_
    with warnings.catch_warnings(action="ignore"):
        moved, expected = again.at("20%"), model.at("20%")
    np.testing.assert_array_equal(moved.predict_proba(ROWS), expected.predict_proba(ROWS))
    assert repr(again.estimator) == repr(model.estimator)


def test_the_default_models_of_a_table_come_back(tmp_path: Path):
    model = fitted(ParityClassifier(cv=2, n_jobs=1, random_state=np.random.default_rng(3)))
    again = saved_and_loaded(model, tmp_path)
    assert again.random_state == model.random_seed_  # the seed that was drawn from the generator
    assert file_bytes(model) == file_bytes(model)  # without a time or an address


def test_regressors_several_classes_and_models_that_use_s_come_back(tmp_path: Path):
    linear = make_pipeline(
        make_column_transformer((StandardScaler(), ["hours"])), LinearRegression()
    )
    numbers = ParityRegressor(linear, attribute_estimator=linear, cv=2, random_state=0)
    saved_and_loaded(fitted(numbers, y=FRAME["hours"] + AGE), tmp_path)
    for given in ({"y": FRAME["job"]}, {"s": None}):
        saved_and_loaded(fitted(closed(one_hot(LogisticRegression())), **given), tmp_path)
    aware = fitted(closed(make_pipeline(ordinal(LogisticRegression())), uses_sensitive=True))
    saved_and_loaded(aware, tmp_path, s=AGE.head(len(ROWS)))


@pytest.fixture(scope="module")
def booster() -> lightgbm.LGBMClassifier:
    """A model in production, trained on other rows with columns of pandas' categories."""
    frame, paid, _ = people(120, seed=1)
    return lightgbm.LGBMClassifier(**TREES).fit(frame.astype({"job": "category"}), paid)


def test_a_frozen_booster_with_categories_comes_back(
    booster: lightgbm.LGBMClassifier, tmp_path: Path
):
    frame = FRAME.astype({"job": "category"})
    model = fitted(closed(FrozenEstimator(booster)), X=frame)
    again = saved_and_loaded(
        model, tmp_path, frame.iloc[5:6]
    )  # the file knows categories from training
    assert again.models_ == [again.estimator]
    assert isinstance(again.estimator, FrozenEstimator)


def test_a_booster_that_parts_missing_values_from_the_others_comes_back(tmp_path: Path):
    frame = FRAME[["hours"]].copy()
    frame.iloc[::3] = np.nan
    trees = lightgbm.LGBMClassifier(**TREES).fit(frame, frame["hours"].isna())
    assert "threshold=inf" in trees.booster_.model_to_string()
    attribute = make_pipeline(SimpleImputer(), Ridge())
    model = fitted(closed(FrozenEstimator(trees), attribute_estimator=attribute), X=frame)
    with warnings.catch_warnings(action="error"):  # that whoever loads it has to trust its classes
        saved_and_loaded(model, tmp_path, frame)


def test_folds_of_one_s_own_are_not_in_the_file(tmp_path: Path):
    fold = np.arange(len(FRAME)) % 3
    pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(3)]
    new, _, ages = people(300, seed=1)
    for cv in (PredefinedSplit(fold), pairs):
        linear = fitted(closed(one_hot(LogisticRegression()), cv=cv))
        coupling = fitted(ParityCoupling(BoostedMeans(n_estimators=2, n_jobs=1), cv=cv))
        assert saved_and_loaded(linear, tmp_path).cv == 5
        assert len(saved_and_loaded(coupling, tmp_path, new, ages).models_) == 3


def test_a_function_is_passed_again(tmp_path: Path):
    model = fitted(closed(probability))
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"an estimator of the user's own, .*probability"):
        load(tmp_path / "model")
    saved_and_loaded(model, tmp_path, estimator=probability)


def test_what_the_file_has_is_not_passed_again(tmp_path: Path):
    model = fitted(closed(one_hot(LogisticRegression())))
    save(model, tmp_path / "model")
    for name in ("estimator", "encoder"):
        with pytest.raises(ValueError, match=f"{name} is .*probability.* load without {name}="):
            load(tmp_path / "model", **{name: probability})


def test_a_model_for_each_function_of_the_attribute_comes_back_without_trust(tmp_path: Path):
    """Models of one output are wrapped, one for each of several functions of S."""
    boosted = ordinal(lightgbm.LGBMRegressor(**TREES))
    model = fitted(closed(one_hot(LogisticRegression()), attribute_estimator=boosted))
    with warnings.catch_warnings(action="error"):
        again = saved_and_loaded(model, tmp_path)
    assert "MultiOutputRegressor" in repr(again.attribute_models_)


def test_an_attribute_of_a_listed_class_that_does_not_fit_is_said(tmp_path: Path):
    """A listed class needs no trust as long as its attributes are as the list says."""
    frame = FRAME[["hours"]]
    linear = LogisticRegression().fit(frame, PAID)
    linear.n_iter_ = [probability]
    model = fitted(closed(FrozenEstimator(linear), attribute_estimator=Ridge()), X=frame)
    with pytest.warns(UserWarning, match="'n_iter_' of a sklearn.linear_model.LogisticRegression"):
        save(model, tmp_path / "model")


def test_a_fitted_attribute_that_no_file_holds_is_refused(tmp_path: Path):
    model = fitted(closed(one_hot(LogisticRegression())))
    model.classes_ = np.array([b"no", b"yes"])
    with pytest.raises(TypeError, match=r"classes_ of the ParityClassifier is .*b'no'.* Fit with"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


class Rounded(LinearRegression):
    """An estimator of one's own."""


def test_a_class_that_is_not_listed_is_said_when_it_is_saved(tmp_path: Path):
    """The line that the warning gives is the one that loads the file."""
    linear = make_pipeline(make_column_transformer((StandardScaler(), ["hours"])), Rounded())
    model = fitted(closed(one_hot(LogisticRegression()), attribute_estimator=linear))
    with pytest.warns(UserWarning, match=r"load\(path, trusted=\[.*Rounded'\]\)") as warned:
        save(model, tmp_path / "model")
    (warning,) = [one for one in warned if "trusted=" in str(one.message)]
    assert warning.filename == __file__
    names = re.findall(r"'([^']*)'", str(warning.message))
    with pytest.raises(ValueError, match="which may run code"):
        load(tmp_path / "model")
    again = load(tmp_path / "model", trusted=names)
    np.testing.assert_array_equal(again.predict_proba(ROWS), model.predict_proba(ROWS))


class Remembering(LinearRegression):
    """An estimator that keeps a table of pandas, which skops cannot write."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Remembering:
        self.seen_ = X[:1]
        return super().fit(X, y, sample_weight)


def test_a_model_that_no_file_can_hold_is_refused_by_the_name_of_its_part(tmp_path: Path):
    scaled = StandardScaler().set_output(transform="pandas")
    linear = make_pipeline(scaled, Remembering())
    hours = FRAME[["hours"]]
    model = fitted(closed(LogisticRegression(), attribute_estimator=linear), X=hours)
    with pytest.raises(TypeError, match=rf"^the model holds a {__name__}.Remembering, .*joblib"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


class Called(LinearRegression):
    """An estimator that can be called, as a function can."""

    def __call__(self, rows: Any) -> Any:
        return self.predict(rows)


def test_an_estimator_that_can_be_called_is_in_the_file(tmp_path: Path):
    hours = FRAME[["hours"]]
    model = fitted(closed(LogisticRegression(), attribute_estimator=Called()), X=hours)
    with pytest.warns(UserWarning, match="trusted="):
        again = saved_and_loaded(model, tmp_path, hours, trusted=[f"{__name__}.Called"])
    assert isinstance(again.attribute_estimator, Called)


def test_training_rows_are_not_in_the_file(tmp_path: Path):
    """No array of the file, and no list of its JSON, is as long as the table; values of S are not
    in it as text.
    """
    model = fitted(closed(one_hot(LogisticRegression())))
    with zipfile.ZipFile(io.BytesIO(file_bytes(model))) as archive:
        arrays = safetensors.numpy.load(archive.read("weights.safetensors"))
        assert arrays
        assert all(len(FRAME) not in values.shape for values in arrays.values())
        solution = json.loads(archive.read("model.json"))["fitted"]["solution_"]["fields"]
    basis = solution["constraints"][0]["fields"]["basis"]["fields"]
    # 120 different ages are nodes of the basis: the values of S, in order, without their rows
    assert basis["starts"]["fields"]["values"] == sorted(AGE)


# Any model


def test_a_coupling_hands_out_the_same_rows_once_it_is_loaded(tmp_path: Path):
    rng = np.random.default_rng(0)
    age = np.where(rng.random(900) < 0.05, np.nan, rng.uniform(20, 60, 900))
    X = pd.DataFrame(
        {
            "years": np.nan_to_num(age) + rng.normal(size=900),
            "job": pd.Categorical(rng.choice(["a", "b"], 900), ["a", "b", "never"]),
            "town": rng.choice(["A", "B", None], 900),
            "since": pd.Timestamp("2020-01-01", tz="UTC")
            + pd.to_timedelta(rng.integers(0, 500, 900), unit="D"),
            "size": pd.Categorical(rng.integers(1, 4, 900), ordered=True),
            "rooms": pd.array(
                np.where(rng.random(900) < 0.1, None, rng.integers(1, 5, 900)), dtype="Int64"
            ),
        }
    )
    means = BoostedMeans(n_estimators=10, n_jobs=1)
    model = ParityCoupling(means, cv=2, random_state=0)
    model.fit(X[:600], X["years"][:600], sensitive_features=age[:600])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    assert file_bytes(again) == file_bytes(model)
    for rows, s in ((X[600:], age[600:]), (X[:600], age[:600])):  # a new table, and the fitted rows
        pd.testing.assert_frame_equal(
            again.transform(rows, sensitive_features=s), model.transform(rows, sensitive_features=s)
        )


def test_a_file_that_is_not_there_is_said_to_be_so(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="there is no saved model"):
        load(tmp_path / "nothing")


def test_only_fitted_models_are_saved_and_nothing_is_left_of_a_failure(tmp_path: Path):
    for model in (FRHSICClassifier(), ParityClassifier()):
        with pytest.raises(NotFittedError):
            save(model, tmp_path / "model")
    with pytest.raises(TypeError, match="pass a fitted ParityClassifier"):
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
    model = FRHSICClassifier(Covariance(), **{**SHORT, "encoder": Own}).fit(
        X, y, sensitive_features=s
    )
    path = tmp_path / "model"
    save(model, path)
    own: dict[str, Any] = {"encoder": Own, "penalty": Covariance()}
    others: dict[str, dict[str, Any]] = {
        "a penalty of the user's own, .*Covariance": {"penalty": None},
        "an encoder of the user's own, .*Own": {"encoder": None},
        "the encoder does not fit the weights": {"encoder": lambda columns: Own(columns, 5)},
        "its penalty is 'hsic'": {"penalty": "hsic"},
        "encoder must make a torch": {"encoder": lambda columns: 3},
    }
    for message, given in others.items():
        with pytest.raises(ValueError, match=message):
            load(path, **own | given)
    saved_and_loaded(model, tmp_path, X, **own)


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
    assert saved_and_loaded(model, tmp_path, X, penalty=Weighted()).penalty_.weights.tolist() == [
        3.0
    ]
    with pytest.raises(ValueError, match="size mismatch for weights"):
        load(tmp_path / "model", penalty=Weighted((1.0, 2.0)))


def test_numbers_of_other_libraries_and_infinities_are_written_as_numbers():
    assert to_json(np.float32(0.5)) == 0.5
    assert to_json(torch.tensor([2.5])) == 2.5
    values = np.array([[np.inf, np.nan], [-np.inf, 0.1 + 0.2]])
    np.testing.assert_array_equal(
        from_json(json.loads(json.dumps(to_json(values), allow_nan=False))), values
    )
