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
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    OneHotEncoder,
    SplineTransformer,
    StandardScaler,
)
from torch import Tensor, nn

import frhsic.persistence
from estimator_samples import biased, people, quick, saved_and_read
from frhsic import load, save
from frhsic._files import Budget
from frhsic.estimators import (
    FRHSICClassifier,
    FRHSICRegressor,
    ParityClassifier,
    ParityCoupling,
    ParityEncoder,
    ParityRegressor,
)
from frhsic.kernels import Gaussian, Laplacian
from frhsic.penalties import EIPM, GDP, HSIC, PENALTY_NAMES, BinnedMMD, Penalty
from frhsic.penalties.base import Batch
from frhsic.persistence import ARRAYS_ENTRY, HEADER_ENTRY, file_bytes
from frhsic.persistence.values import Reader, Writer

SHORT = quick(epochs=2)
FRAME, PAID, AGE = people(120)
ROWS = FRAME.head(40)


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


def fitted(model: Any, X: Any = FRAME, y: Any = PAID, s: Any = AGE) -> Any:
    with warnings.catch_warnings(action="ignore"):  # of limits that so few rows do not meet
        return model.set_params(random_state=0).fit(X, y, sensitive_features=s)


def wrapped(estimator: Any, **parameters: Any) -> ParityClassifier:
    """A model of the user's own, with a model of S that is quick to fit."""
    linear = make_pipeline(make_column_transformer((StandardScaler(), ["hours"])), Ridge())
    return ParityClassifier(estimator, **{"attribute_estimator": linear, "cv": 2, **parameters})


def one_hot(model: Any) -> Any:
    columns = make_column_transformer(
        (StandardScaler(), ["hours"]),
        (OneHotEncoder(handle_unknown="ignore"), ["job", "size"]),
        remainder="passthrough",
    )
    return make_pipeline(columns, model)


def entries(model: Any) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(file_bytes(model))) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


# The library's own models

pytestmark = pytest.mark.usefixtures("few_trees")  # what is in a file counts, not how good it is

OWN = {
    "scores": (ParityClassifier(cv=2), PAID),
    "three classes": (ParityClassifier(cv=2), FRAME["job"]),
    "decisions": (ParityClassifier(cv=2, aim="decision", condition="positive"), PAID),
    "ranks": (ParityClassifier(cv=2, aim="rank", limit={"age": 0.2}), np.where(PAID, "a", "b")),
    "numbers": (ParityRegressor(cv=2), FRAME["hours"] + AGE),
    "prototypes": (ParityEncoder(cv=2), PAID),
}


@pytest.mark.parametrize("name", OWN)
def test_an_own_model_is_data_and_comes_back_bit_for_bit(name: str, tmp_path: Path):
    model, y = OWN[name]
    frame = FRAME.drop(columns="job") if name == "three classes" else FRAME
    model = fitted(model, frame, y)
    with warnings.catch_warnings(action="error"):
        again = saved_and_loaded(model, tmp_path, frame.head(40))
    assert not any(entry.endswith(".skops") for entry in entries(model))
    pd.testing.assert_frame_equal(again.frontier_.to_frame(), model.frontier_.to_frame())
    assert str(again.choice_) == str(model.choice_)
    assert again.get_params() == model.get_params()
    assert file_bytes(again) == file_bytes(model)  # without a time or an address
    with warnings.catch_warnings(action="ignore"):
        assert str(again.at("20%").choice_) == str(model.at("20%").choice_)


@pytest.mark.parametrize("aim", ["score", "rank", "decision"])
def test_a_model_that_uses_s_comes_back(aim: str, tmp_path: Path):
    model = fitted(ParityClassifier(cv=2, aim=aim, uses_sensitive=True))
    saved_and_loaded(model, tmp_path, s=AGE.head(len(ROWS)))


@pytest.mark.parametrize("name", PENALTY_NAMES)
def test_a_network_comes_back_bit_for_bit(name: str, tmp_path: Path):
    X, y, s = biased(60)
    model = FRHSICClassifier(name, 0.5, **SHORT).fit(X, y, sensitive_features=s)
    again = saved_and_loaded(model, tmp_path, X)
    np.testing.assert_array_equal(again.loss_curve_, model.loss_curve_)
    assert (again.representation_rank_ < 8) == (name == "hsic") == again.has_bottleneck_
    assert again.get_params() == model.get_params()
    torch.testing.assert_close(
        again.penalty_.state_dict(), model.penalty_.state_dict(), rtol=0, atol=0
    )
    for each in (model, again):
        each.partial_fit(X, y, sensitive_features=s)
    np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore::frhsic.tables.problems.SuspiciousColumnWarning")
def test_frames_text_labels_and_several_attributes_come_back(tmp_path: Path):
    labels = np.where(PAID, "high", "low")
    both = np.column_stack([AGE, np.random.default_rng(0).normal(size=len(AGE))])
    model = FRHSICClassifier(**SHORT).fit(FRAME, labels, sensitive_features=both)
    again = saved_and_loaded(model, tmp_path)
    assert again.classes_.dtype == model.classes_.dtype
    assert again.feature_encoding_ == model.feature_encoding_
    assert again.penalty_.n_attributes == 2
    turned = FRAME[["job", "hours", "owner", "size"]]  # columns have names
    np.testing.assert_array_equal(again.predict(turned), model.predict(FRAME))
    X, y, s = biased(60)
    saved_and_loaded(
        FRHSICRegressor(**SHORT).fit(X, 50 * X[:, 1], sensitive_features=s), tmp_path, X
    )
    saved_and_loaded(FRHSICClassifier(penalty_weight=0, **SHORT).fit(X, y), tmp_path, X)


PENALTIES = [
    HSIC(3 * Gaussian(0.5) + Laplacian(2.0), scale_s=0.3),
    HSIC.published(condition="positive"),
    EIPM(gamma=0.2, anchors=None),
    GDP(points=7),
    BinnedMMD(bins=4),
]


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda p: type(p).__name__)
def test_a_penalty_is_built_again_from_its_json(penalty: Penalty):
    text = json.dumps(Writer().value(penalty))
    again = saved_and_read(penalty)
    assert json.dumps(Writer().value(again)) == text
    s, z = torch.rand(40, 2), torch.randn(40, 50)
    y = (torch.rand(40) < 0.7).float()
    values = []
    for each in (penalty, again):
        each.prepare(s, torch.Generator().manual_seed(0))
        each.adapt(z, s, 0)
        values.append(each(z, s, scores=z[:, :1], y=y))
    assert values[0] == values[1]


def test_a_coupling_hands_out_the_same_rows_once_it_is_loaded(tmp_path: Path):
    rng = np.random.default_rng(0)
    age = np.where(rng.random(900) < 0.05, np.nan, rng.uniform(20, 60, 900))
    dates = pd.Timestamp("2020-01-01", tz="UTC") + pd.to_timedelta(
        rng.integers(0, 500, 900), unit="D"
    )
    rooms = np.where(rng.random(900) < 0.1, None, rng.integers(1, 5, 900))
    X = pd.DataFrame(
        {
            "years": np.nan_to_num(age) + rng.normal(size=900),
            "job": pd.Categorical(rng.choice(["a", "b"], 900), ["a", "b", "never"]),
            "town": rng.choice(["A", "B", None], 900),
            "since": dates,
            "size": pd.Categorical(rng.integers(1, 4, 900), ordered=True),
            "rooms": pd.array(rooms, dtype="Int64"),
        }
    )
    model = ParityCoupling(cv=2, random_state=0)
    model.fit(X[:600], X["years"][:600], sensitive_features=age[:600])
    save(model, tmp_path / "model")
    again = load(tmp_path / "model")
    for rows, s in ((X[600:], age[600:]), (X[:600], age[:600])):  # a new table, and the fitted rows
        pd.testing.assert_frame_equal(
            again.transform(rows, sensitive_features=s), model.transform(rows, sensitive_features=s)
        )


def test_training_rows_are_not_in_the_file():
    """No array of the file is as long as the table, but the ages in order, without their rows; and
    no made-up row is a training row.
    """
    model = fitted(ParityClassifier(cv=2))
    parts = entries(model)
    arrays = safetensors.numpy.load(parts[ARRAYS_ENTRY])
    long = [values for values in arrays.values() if len(FRAME) in values.shape]
    assert sorted(AGE) in [values.tolist() for values in long]
    assert len(long) == 3  # the ages, their shares of the rows, and functions of them
    reader = Reader(dict(arrays), parts.__getitem__, Budget(2**20))
    columns = reader.value(json.loads(parts[HEADER_ENTRY])["proof"])["columns"]
    made_up = set(zip(*(columns[name] for name in FRAME), strict=True))
    assert len(made_up) == 6
    assert not made_up & set(FRAME.itertuples(index=False, name=None))


# The proof


def test_the_header_has_the_versions_and_an_equal_score_needs_no_equal_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = fitted(ParityClassifier(cv=2))
    versions = json.loads(entries(model)[HEADER_ENTRY])["versions"]
    assert versions["numpy"] == np.__version__
    assert versions.keys() == {"python", "frhsic", "numpy", "scikit-learn", "lightgbm", "skops"}
    monkeypatch.setattr("frhsic.persistence.version", lambda name: "0.0")
    with warnings.catch_warnings(action="error"):
        saved_and_loaded(model, tmp_path)


class Drifting(LogisticRegression):
    """An estimator that another version of its library computes otherwise."""

    version = 1

    def predict_proba(self, X: Any) -> np.ndarray:
        if self.version == 3:
            raise AttributeError("no attribute '_fill_dtype'")
        chances = super().predict_proba(X) ** self.version
        return chances / chances.sum(axis=1, keepdims=True)


@pytest.mark.parametrize(
    ("version", "reason"), [(2, "scores .* have changed "), (3, "_fill_dtype")]
)
def test_other_scores_or_an_error_name_both_versions_and_what_to_do(
    version: int, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = fitted(wrapped(one_hot(Drifting())))
    name = f"{__name__}.Drifting"
    with pytest.warns(UserWarning, match="trusted="):
        save(model, tmp_path / "model")
    load(tmp_path / "model", trusted=[name])
    monkeypatch.setattr(Drifting, "version", version)
    with pytest.raises(ValueError, match=f"^model cannot be loaded: .*{reason}"):
        load(tmp_path / "model", trusted=[name])
    known = frhsic.persistence.version
    monkeypatch.setattr(
        "frhsic.persistence.version", lambda name: "9.9" if name == "numpy" else known(name)
    )
    advice = f"saved with numpy {np.__version__} (here 9.9). Load it with the versions"
    with pytest.raises(ValueError, match=f"{reason}.*{re.escape(advice)}"):
        load(tmp_path / "model", trusted=[name])


# Models of other libraries


# Splines of newer versions of SciPy hold a function.
SPLINES = SplineTransformer(3).fit(FRAME[["hours"]])
WRAPPED = {
    "a frozen regression": (FrozenEstimator(one_hot(LogisticRegression()).fit(FRAME, PAID)), []),
    "a pipeline": (one_hot(LogisticRegression()), []),
    "a forest": (one_hot(RandomForestClassifier(3, random_state=0)), ["Tree"]),
    "histograms": (one_hot(HistGradientBoostingClassifier(max_iter=3)), ["TreePredictor"]),
    "LightGBM": (
        one_hot(lightgbm.LGBMClassifier(n_estimators=3, verbose=-1)),
        ["OrderedDict", "Booster", "LGBMClassifier"],
    ),
    "splines": (
        make_pipeline(make_column_transformer((SPLINES, ["hours"])), LogisticRegression()),
        ["asarray"] * hasattr(SPLINES.bsplines_[0], "_asarray") + ["BSpline"],
    ),
    "XGBoost": (one_hot(xgboost.XGBClassifier(n_estimators=3)), ["Booster", "XGBClassifier"]),
}


@pytest.mark.parametrize("name", WRAPPED)
@pytest.mark.filterwarnings("ignore:.*trusted=:UserWarning")
def test_a_wrapped_model_comes_back_by_the_line_that_save_gives(name: str, tmp_path: Path):
    """Classes that skops trusts need no line."""
    estimator, named = WRAPPED[name]
    model = fitted(wrapped(estimator))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        save(model, tmp_path / "model")
    lines = [str(one.message) for one in caught if "trusted=" in str(one.message)]
    trusted = re.findall(r"'([^']*)'", "".join(lines))
    assert [one.rpartition(".")[2] for one in trusted] == named
    again = saved_and_loaded(model, tmp_path, trusted=trusted)
    assert repr(again.estimator) == repr(model.estimator)
    assert (again.models_[0][0] is again.estimator) == (name == "a frozen regression")
    for missing in trusted:
        rest = [one for one in trusted if one != missing]
        with pytest.raises(ValueError, match=rf"may run code.*trusted=\[.*'{missing}'"):
            load(tmp_path / "model", trusted=rest)


def test_the_warning_of_save_is_at_the_line_of_the_user(tmp_path: Path):
    model = fitted(wrapped(one_hot(Drifting())))
    with pytest.warns(UserWarning, match="trusted=") as caught:
        save(model, tmp_path / "model")
    assert caught[-1].filename == __file__


def probability(rows: pd.DataFrame) -> np.ndarray:
    """A model in production that is a function."""
    return np.asarray(1 / (1 + np.exp(30 - rows["hours"])))


def test_a_function_is_passed_again(tmp_path: Path):
    model = fitted(wrapped(probability))
    save(model, tmp_path / "model")
    with pytest.raises(ValueError, match=r"the code of its estimator, .*probability, is not in"):
        load(tmp_path / "model")
    again = saved_and_loaded(model, tmp_path, estimator=probability)
    assert again.models_ == [[probability]]
    with pytest.raises(ValueError, match="scores on the synthetic rows stored with it"):
        load(tmp_path / "model", estimator=lambda rows: probability(rows) / 2)


def test_what_the_file_has_is_not_passed_again(tmp_path: Path):
    save(fitted(wrapped(one_hot(LogisticRegression()))), tmp_path / "model")
    for name in ("estimator", "encoder"):
        with pytest.raises(ValueError, match=f"{name} is .*probability.* load without {name}="):
            load(tmp_path / "model", **{name: probability})


class Remembering(LinearRegression):
    """An estimator that keeps a table of pandas, which skops cannot write."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Remembering:
        self.seen_ = X[:1]
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (
            make_pipeline(FunctionTransformer(np.log1p), Ridge()),
            "log1p, a function, which is never saved; .* use your own transformer class",
        ),
        (make_pipeline(Ridge(), memory="/tmp"), "a cache folder; set memory=None"),
        (Remembering(), "joblib.dump"),
    ],
)
def test_a_model_that_no_file_can_hold_is_refused_and_nothing_is_left(
    model: Any, reason: str, tmp_path: Path
):
    model = fitted(wrapped(LogisticRegression(), attribute_estimator=model), FRAME[["hours"]])
    with pytest.raises(TypeError, match=f"the model contains a .*{reason}"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


# What is not in a file


def test_folds_and_generators_are_not_in_the_file(tmp_path: Path):
    fold = np.arange(len(FRAME)) % 3
    pairs = [(np.flatnonzero(fold != j), np.flatnonzero(fold == j)) for j in range(3)]
    for cv in (PredefinedSplit(fold), pairs):
        model = ParityClassifier(cv=cv, limit=None, random_state=np.random.default_rng(3))
        model.fit(FRAME, PAID)
        again = saved_and_loaded(model, tmp_path)
        assert again.cv == 5
        assert again.random_state == model.random_seed_


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
        "the code of its penalty, .*Covariance": {"penalty": None},
        "the code of its encoder, .*Own": {"encoder": None},
        "size mismatch": {"encoder": lambda columns: Own(columns, 5)},
        "'str' object": {"penalty": "hsic"},
        "encoder must return a torch": {"encoder": lambda columns: 3},
    }
    for message, given in others.items():
        with pytest.raises(ValueError, match=message):
            load(path, **own | given)
    saved_and_loaded(model, tmp_path, X, **own)


def test_only_fitted_models_are_saved_and_nothing_is_left_of_a_failure(tmp_path: Path):
    for model in (FRHSICClassifier(), ParityClassifier()):
        with pytest.raises(NotFittedError):
            save(model, tmp_path / "model")
    with pytest.raises(TypeError, match="pass a fitted ParityClassifier"):
        save(nn.Linear(1, 1), tmp_path / "model")
    model = fitted(ParityClassifier(cv=2))
    model.other_ = 1
    with pytest.raises(TypeError, match="other_ of the ParityClassifier cannot be stored"):
        save(model, tmp_path / "model")
    assert list(tmp_path.iterdir()) == []
