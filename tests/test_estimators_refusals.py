"""What the estimators refuse and warn of, by whole sentences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Ridge
from sklearn.model_selection import KFold, PredefinedSplit, ShuffleSplit, TimeSeriesSplit
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from frhsic import FRHSICClassifier, ParityClassifier, ParityRegressor, distill
from frhsic.estimators import (
    MissingSensitiveFeaturesWarning,
    ParityCoupling,
    ParityEncoder,
    UnlabelledRowsWarning,
)
from frhsic.estimators.fitting import class_probabilities
from frhsic.estimators.frontier import Choice, Gap
from frhsic.estimators.inputs import require_scores
from frhsic.estimators.network import fit_path
from frhsic.formatting import printable
from frhsic.penalties import HSIC
from frhsic.tables.attributes import BandedAttributeWarning
from frhsic.training import Training

N = 24
k = np.arange(N)
X = np.column_stack([np.sin(k), np.cos(3 * k)])
Y = k % 2
AGE = 20.0 + k % 7
FRAME = pd.DataFrame(X)
BOTH = pd.DataFrame({"age": AGE, "hours": X[:, 0]})


def fitted(model: Any, x: Any = X, y: Any = Y, s: Any = AGE, **options: Any) -> Any:
    return model.fit(x, y, sensitive_features=s, **options)


def parity(kind: type, **options: Any) -> Any:
    models = {"estimator": LogisticRegression(), "attribute_estimator": Ridge()}
    return kind(**{**models, "cv": 2, "random_state": 0, **options})


def classifier(**options: Any) -> ParityClassifier:
    return parity(ParityClassifier, **options)


def regressor(**options: Any) -> ParityRegressor:
    return parity(ParityRegressor, **{"estimator": LinearRegression(), **options})


def network(**options: Any) -> FRHSICClassifier:
    return FRHSICClassifier(**{"training": Training(epochs=1), "random_state": 0, **options})


FOLDS = (
    "the rows (n_samples=24) cannot be split into two folds; pass at least two rows of each class"
    " and, with groups, at least two groups."
)
NOT_ONCE = (
    "cv is {}, but each of these 24 rows must be in exactly one test set, with all other rows used"
    " for training. Pass a number of folds, a splitter such as GroupKFold, or"
    " PredefinedSplit(folds) with the fold of each row."
)
ROUTING = (
    " A Pipeline or a search passes them to a step that requests them, after"
    " sklearn.set_config(enable_metadata_routing=True)."
)
WEIGHTS = (
    "KNeighborsClassifier doesn't support sample_weight. Pass an estimator that does, or fit"
    " without sample_weight."
)
SAME = (
    "pass at least one penalty weight, and sensitive_features, without which the weights have no"
    " effect."
)
REFUSED: list[tuple[str, Callable[[], Any]]] = [
    (
        "limit is 0.6, but a gap is between 0 and 0.5; write a share as '50%'.",
        lambda: fitted(classifier(limit=0.6)),
    ),
    (
        "limit is 110% of the unconstrained gap; pass at most 100%.",
        lambda: fitted(classifier(limit="110%")),
    ),
    (FOLDS, lambda: fitted(classifier(), y=k == 3)),
    (FOLDS, lambda: fitted(classifier(), groups=0 * k)),
    *(
        (NOT_ONCE.format(printable(repr(cv), 80)), lambda cv=cv: fitted(classifier(cv=cv)))
        for cv in (
            TimeSeriesSplit(2),
            ShuffleSplit(2, test_size=0.5),
            PredefinedSplit(k % 3 - 1),
            Y,
            [(k[12:], k[:12]), (k[:11], k[12:])],  # row 11 does not train
            [(k[:0], k)],
            [(k[12:], k[:12]), (k[:12], k[12:] + 1)],  # there is no row 24
        )
    ),
    (
        "cv is KFold(n_splits=2, random_state=None, shuffle=False), which assigns rows of one"
        " group to several folds. Pass GroupKFold, or fit without groups.",
        lambda: fitted(classifier(cv=KFold(2)), groups=k % 4),
    ),
    (NOT_ONCE.format(TimeSeriesSplit(2)), lambda: fitted(ParityCoupling(cv=TimeSeriesSplit(2)))),
    (
        "estimator is LinearRegression, but y contains labels: pass a classifier.",
        lambda: fitted(classifier(estimator=LinearRegression())),
    ),
    (
        "estimator is LogisticRegression, but y contains numbers: pass a regressor.",
        lambda: fitted(regressor(estimator=LogisticRegression()), y=X[:, 1]),
    ),
    *(
        (
            WEIGHTS,
            lambda model=model: fitted(classifier(estimator=model), sample_weight=np.ones(N)),
        )
        for model in (KNeighborsClassifier(3), make_pipeline(KNeighborsClassifier(3)))
    ),
    (
        f"this model uses the sensitive attributes to predict: pass sensitive_features.{ROUTING}",
        lambda: fitted(classifier(uses_sensitive=True, limit=None)).predict(X),
    ),
    (
        "transform needs sensitive_features, because Z depends on both X and S. Pass the attributes"
        f" that the estimator was fitted with.{ROUTING}",
        lambda: fitted(ParityCoupling(LinearRegression(), cv=2)).transform(X),
    ),
    (
        "sensitive_features has missing values, but this model needs every attribute to predict."
        " Fill in these values, or drop these rows.",
        lambda: fitted(classifier(uses_sensitive=True, limit=None)).predict(
            X, sensitive_features=np.where(k == 3, np.nan, AGE)
        ),
    ),
    (
        "this model was fitted without sensitive_features, so it has no trade-offs to choose from;"
        " fit it with sensitive_features.",
        lambda: classifier(limit=None).fit(X, Y).at("50%"),
    ),
    (
        "X has the columns ['1', '2'], but this model was fitted on ['0', '1']. Pass these"
        " columns.",
        lambda: fitted(classifier(limit=None), FRAME).predict(FRAME.set_axis([1, 2], axis=1)),
    ),
    (
        "ParityClassifier requires y to be passed, but the target y is None.",
        lambda: fitted(classifier(), y=None),
    ),
    (
        "lengths differ: X has 24 rows, but sensitive_features has 23. Pass the attributes of each"
        " row of X.",
        lambda: fitted(classifier(), s=AGE[1:]),
    ),
    (
        "sensitive attribute 'sensitive' is 1.5 in every row, so nothing can depend on it. Leave it"
        " out.",
        lambda: fitted(classifier(), s=np.full(N, 1.5)),
    ),
    (
        "sensitive attribute 'sensitive' is missing in every row. Fill in its values, or leave it"
        " out.",
        lambda: fitted(classifier(), s=np.full(N, np.nan)),
    ),
    (
        "no row has values for all sensitive_features (sensitive_1, sensitive_2). Fill in the"
        " missing values, or leave out attributes that are mostly missing.",
        lambda: fitted(
            network(), s=np.where(np.column_stack([k % 2, 1 - k % 2]), np.nan, AGE[:, None])
        ),
    ),
    *(
        (
            "fit takes X and y by position, and all other arguments by name: fit(X, y,"
            " sensitive_features=...).",
            lambda make=make: make().fit(X, Y, AGE),
        )
        for make in (classifier, regressor, network)
    ),
    (
        "Classifier can't train when only one class is present: [0.0].",
        lambda: fitted(classifier(), y=np.zeros(N)),
    ),
    *(
        (
            "y has 3 classes, which requires aim='score' and condition=None.",
            lambda options=options: fitted(classifier(**options), y=k % 3),
        )
        for options in ({"aim": "rank"}, {"condition": "positive"})
    ),
    (
        "'sensitive' is constant among positive rows, so there is no gap to limit. Leave this"
        " attribute out, or choose another condition.",
        lambda: fitted(classifier(condition="positive"), s=np.where(Y == 1, 30.0, AGE)),
    ),
    (
        "'sensitive' is constant among negative rows, so there is no gap to limit. Leave this"
        " attribute out, or choose another condition.",
        lambda: fitted(classifier(condition="both"), s=np.where(Y == 0, 30.0, AGE)),
    ),
    *(
        (
            "a regressor supports only aim='score' or 'rank', and condition=None. For decisions or"
            " conditions, use ParityClassifier.",
            lambda options=options: fitted(regressor(**options), y=X[:, 1]),
        )
        for options in ({"aim": "decision"}, {"condition": "positive"})
    ),
    *(
        (
            f"the estimator returns scores of shape {shape} between {ends}; pass one"
            " that returns probabilities of 2 classes.",
            lambda scores=scores: class_probabilities(lambda x: scores, X, np.arange(2)),
        )
        for shape, ends, scores in (
            ("(2,)", "-0.5 and 1", np.array([1.0, -0.5])),
            ("(2, 1)", "0 and 1.5", np.array([[1.5], [0.0]])),
            ("(2,)", "nan and nan", np.array([np.nan, 0.5])),
            ("(1, 3)", "0.2 and 0.4", np.array([[0.2, 0.4, 0.4]])),
        )
    ),
    (
        "fit doesn't accept eval_set. Arguments cannot be passed on to the fit of your own model,"
        " because each fold fits a clone of the model on different rows. Set the model's parameters"
        " in its constructor, or fit the model yourself and pass FrozenEstimator(model).",
        lambda: fitted(classifier(), eval_set=[(X, Y)]),
    ),
    (
        "y has 3 classes; distill needs two classes, or a numeric target.",
        lambda: distill(classifier(), None, X, k % 3, sensitive_features=AGE),
    ),
    (
        "estimator is a Pipeline, which gets only the columns of X, but the predictor uses the"
        " attributes as well. Pass None, or a model that accepts arrays.",
        lambda: distill(
            classifier(uses_sensitive=True),
            make_pipeline(LogisticRegression()),
            X,
            Y,
            sensitive_features=AGE,
        ),
    ),
    (
        "estimator is a fitted model, which predicts one column, but y has 2. Pass one column, or"
        " an estimator that can be refitted.",
        lambda: fitted(
            parity(ParityEncoder, estimator=FrozenEstimator(LogisticRegression().fit(X, Y))),
            y=np.column_stack([Y, Y]),
        ),
    ),
    (
        "sensitive_features are the same in every row, so nothing can depend on them. Leave them"
        " out.",
        lambda: ParityCoupling().fit(X, sensitive_features=np.ones(N)),
    ),
    (
        "encoder returned int; pass a function that returns a torch.nn.Module.",
        lambda: fitted(network(encoder=lambda width: 3)),
    ),
    (
        "the penalty has condition='positive', which needs two classes, but the task is multiclass."
        " Pass a penalty without a condition.",
        lambda: fitted(network(penalty=HSIC(condition="positive")), y=k % 3),
    ),
    (
        "early stopping needs rows with sensitive_features among both the training and the held-out"
        " rows. Pass more rows, or turn off early stopping.",
        lambda: fitted(
            network(training=Training(epochs=1, early_stopping=True)),
            s=np.where(k < 2, AGE, np.nan),
        ),
    ),
    ("y has only one class, 0; pass at least two classes.", lambda: fitted(network(), y=0 * k)),
    (
        "classes=[0, 1, 2] differs from the classes of the first call, [0, 1]. Pass the same"
        " classes in each call.",
        lambda: network().partial_fit(X, Y).partial_fit(X, Y, classes=np.arange(3)),
    ),
    (
        "y has new labels, [7, 8]; pass all labels in the first call: classes=[...].",
        lambda: network().partial_fit(X, Y).partial_fit(X, Y + 7),
    ),
    (
        "sensitive_features are hours, wage, but this model was fitted with age, hours. Pass the"
        " attributes that it was fitted with.",
        lambda: fitted(network(), s=BOTH).partial_fit(
            X, Y, sensitive_features=BOTH.set_axis(["hours", "wage"], axis=1)
        ),
    ),
    (
        "sensitive_features is 'wage', but X has no column 'wage'; it has age, hours.",
        lambda: fitted(classifier(), BOTH, s="wage"),
    ),
    (
        "sensitive_features is 'age', but X has no column names. Pass the column itself, or X"
        " as a DataFrame.",
        lambda: fitted(classifier(), s="age"),
    ),
    (
        "estimator is ParityClassifier; pass an FRHSICClassifier or FRHSICRegressor.",
        lambda: fit_path(classifier(), X, Y, penalty_weights=[1.0], sensitive_features=AGE),
    ),
    (SAME, lambda: fit_path(network(), X, Y, penalty_weights=[], sensitive_features=AGE)),
    (SAME, lambda: fit_path(network(), X, Y, penalty_weights=[1.0], sensitive_features=None)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("sentence", "call"), REFUSED)
def test_what_an_estimator_refuses_is_said_in_a_whole_sentence(sentence, call):
    with pytest.raises((ValueError, TypeError)) as refused:
        call()
    assert str(refused.value) == sentence


def test_an_estimator_says_what_it_does_without_attributes_and_with_some_of_them():
    with pytest.warns(MissingSensitiveFeaturesWarning) as caught:
        classifier().fit(X, Y)
    assert str(caught[0].message) == (
        "ParityClassifier was given no sensitive_features, so nothing is constrained: pass them, or"
        f" limit=None.{ROUTING}"
    )
    with pytest.warns(UnlabelledRowsWarning) as caught:
        fitted(classifier(limit=None), s=np.where(k < 4, np.nan, AGE))
    assert str(caught[0].message) == (
        "4 of 24 rows lack sensitive_features: they are used for the model of y, but each gap is"
        " limited and measured only on rows that have its attribute."
    )


@pytest.mark.parametrize(
    ("met", "indistinct", "rows", "end"),
    [
        (True, (), None, ""),
        (
            True,
            ("age",),
            None,
            ". The unconstrained gap by age is not significant",
        ),
        (False, (), None, ". The limit 0.1 is not met: this is the closest trade-off"),
        (
            False,
            (),
            4000,
            ". The limit 0.1 is probably met, but not certainly; about 4,000 rows in total would"
            " settle it",
        ),
    ],
)
def test_a_choice_says_where_the_gap_goes_and_whether_the_limit_is_kept(met, indistinct, rows, end):
    first = Gap(0.25, 0.2, 0.3)
    last = Gap(0.15, 0.1, 0.25)
    choice = Choice(0.1, 2, met, {"age": last}, {"age": first}, indistinct, rows)
    was, now = ("0 to 0.3", "0 to 0.25") if indistinct else ("0.2 to 0.3", "0.1 to 0.25")
    text = f"The gap by age goes from 0.25 ({was}) to 0.15 ({now}){end}."
    assert str(choice) == text
    assert repr(choice) == f"<Choice at 2: {text}>"
    assert str(Choice(None, 0, True, {}, {}, ())) == "No gap is limited."
    same = Choice("50%", 0, True, {"age": Gap(0, 0, 0.1)}, {"age": Gap(0, 0, 0.1)}, ())
    assert str(same) == "The gap by age stays at 0 (0 to 0.1)."
    free = Choice(
        "50%", 0, True, {"age": first, "pay": last}, {"age": first, "pay": last}, ("age",)
    )
    assert str(free) == (
        "The gap by age stays at 0.25 (0 to 0.3); the gap by pay stays at 0.15 (0.1 to 0.25)."
        " The unconstrained gap by age is not significant."
    )
    assert "0.25 (0 to 0.3)" in free._repr_html_()


@pytest.mark.parametrize("limit", [0.05, "20%", 0, {"age": 0.1}])
def test_a_limit_without_attributes_is_refused(limit: Any):
    with pytest.raises(ValueError, match=r"limit is .*, but fit was given no sensitive_features"):
        fitted(classifier(limit=limit), s=None)
    fitted(classifier(limit=None), s=None)
    with pytest.raises(ValueError, match="limit is '50%'"):
        ParityEncoder(limit="50%").fit(X, Y)


def test_numbers_that_cannot_be_computed_with_name_column_and_row():
    table = np.column_stack([X, X]).astype(np.float64)
    table[5, 1] = np.inf
    with pytest.raises(ValueError, match=r"infinity \(inf\), first at index \[5, 1\]"):
        fitted(classifier(), table)
    table[5, 1] = 1e300
    default = classifier(estimator=None, attribute_estimator=None, limit=None)
    assert np.isfinite(fitted(default, table).predict_proba(table)).all()
    with pytest.raises(ValueError, match=r"column 1 of X has .* beyond 1e\+150: .* in row 6"):
        fitted(classifier(), table)


def test_arrays_of_pandas_are_taken_as_attributes():
    ages = pd.array(AGE, "Float64")
    plain = fitted(classifier(limit=None)).predict_proba(X)
    np.testing.assert_array_equal(fitted(classifier(limit=None), s=ages).predict_proba(X), plain)
    ages[3] = pd.NA
    with pytest.warns(UnlabelledRowsWarning, match="1 of 24 rows"):
        fitted(classifier(limit=None), s=ages)
    levels = np.where(np.arange(len(AGE)) % 2, "young", "old")
    with pytest.warns(BandedAttributeWarning, match="ordered levels"):
        fitted(classifier(limit=None), s=pd.Categorical(levels, ["young", "old"], ordered=True))
    with pytest.raises(TypeError, match="two groups as 0 and 1"):
        fitted(classifier(limit=None), s=pd.Categorical(levels))


@pytest.mark.parametrize("scores", [[0.5, np.nan], [0.5, np.inf], [0.5, 1.5], [[0, 1], [-0.5, 1]]])
def test_scores_that_are_not_probabilities_are_an_error_that_names_the_row(scores: list[Any]):
    with pytest.raises(ValueError, match="not a probability, first in row 1 of X"):
        require_scores(np.array(scores), probabilities=True)
    if np.isfinite(scores).all():
        require_scores(np.array(scores), probabilities=False)
        return
    with pytest.raises(ValueError, match="not a finite number, first in row 1 of X"):
        require_scores(np.array(scores), probabilities=False)
