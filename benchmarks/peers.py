"""What fairlearn and AIF360 do with a continuous sensitive attribute, found by running them.

    python benchmarks/peers.py      # prints a line for each call; runs what is installed, and says
                                    what is not

One table for all: 400 rows, an attribute (age) with 400 distinct values, a 0/1 target and a
logistic regression whose score follows age; and a score that is high in the middle of the range and
low at both ends, which has no correlation with age. Each trial is one call as the library's user
would write it. Nothing is tuned; the question is what the call does, not how well.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

ROWS = 400


class Sample:
    """The rows that every library gets."""

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        self.age = pd.Series(rng.uniform(18, 80, size=ROWS), name="age")
        self.X = pd.DataFrame(
            {"job": self.age / 20 + rng.normal(size=ROWS), "skill": rng.normal(size=ROWS)}
        )
        self.y = (
            rng.random(ROWS) < 1 / (1 + np.exp(-(self.X["job"] - 2.5 + self.X["skill"])))
        ).astype(int)
        self.model = LogisticRegression().fit(self.X, self.y)
        self.decision = self.model.predict(self.X)
        self.hump = (
            0.2
            + 0.6 * np.exp(-(((self.age - 49) / 12) ** 2)).to_numpy()
            + rng.normal(0, 0.05, size=ROWS)
        )


Trials = dict[str, Callable[[Sample], str]]


def fairlearn() -> Trials:
    from fairlearn.adversarial import AdversarialFairnessClassifier
    from fairlearn.metrics import MetricFrame, selection_rate
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.preprocessing import CorrelationRemover
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    def groups(d: Sample) -> str:
        frame = MetricFrame(
            metrics=selection_rate, y_true=d.y, y_pred=d.decision, sensitive_features=d.age
        )
        return f"{len(frame.by_group)} groups of {ROWS} rows"

    def reduction(d: Sample) -> str:
        model = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=3)
        return (
            f"{len(model.fit(d.X, d.y, sensitive_features=d.age).lambda_vecs_)} constraints for"
            f" {ROWS} rows"
        )

    def thresholds(d: Sample) -> str:
        optimizer = ThresholdOptimizer(
            estimator=d.model, prefit=True, predict_method="predict_proba"
        )
        optimizer.fit(d.X, d.y, sensitive_features=d.age)
        return "fitted"

    def remover(d: Sample) -> str:
        table = pd.DataFrame({"hump": d.hump, "job": d.X["job"], "age": d.age})
        hump, job = CorrelationRemover(sensitive_feature_ids=["age"]).fit_transform(table).T
        line = max(abs(np.corrcoef(column, d.age)[0, 1]) for column in (hump, job))
        bend = abs(np.corrcoef(hump, (d.age - 49) ** 2)[0, 1])
        return (
            f"correlation with age {line:.2f}; of the hump with the squared distance from the"
            f" middle {bend:.2f}"
        )

    def adversary(d: Sample) -> str:
        model = AdversarialFairnessClassifier(
            backend="torch", predictor_model=[8], adversary_model=[8], epochs=2, random_state=0
        )
        model.fit(d.X, d.y, sensitive_features=d.age)
        return "fitted"

    return {
        "MetricFrame(sensitive_features=age)": groups,
        "ExponentiatedGradient(DemographicParity()).fit(sensitive_features=age)": reduction,
        "ThresholdOptimizer().fit(sensitive_features=age)": thresholds,
        "CorrelationRemover(['age']).fit_transform(table)": remover,
        "AdversarialFairnessClassifier().fit(sensitive_features=age)": adversary,
    }


def aif360() -> Trials:
    from aif360.algorithms.inprocessing import GerryFairClassifier
    from aif360.algorithms.preprocessing import Reweighing
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import BinaryLabelDatasetMetric

    two = {"unprivileged_groups": [{"age": 0}], "privileged_groups": [{"age": 1}]}

    def dataset(d: Sample) -> BinaryLabelDataset:
        table = d.X.assign(age=d.age, y=d.y)
        return BinaryLabelDataset(df=table, label_names=["y"], protected_attribute_names=["age"])

    def reweighing(d: Sample) -> str:
        weights = Reweighing(**two).fit_transform(dataset(d)).instance_weights
        return f"weights from {weights.min():.2f} to {weights.max():.2f}"

    def subgroups(d: Sample) -> str:
        GerryFairClassifier(fairness_def="FP", max_iters=3).fit(dataset(d))
        return "fitted"

    return {
        "BinaryLabelDatasetMetric(age 0 against 1).mean_difference()": lambda d: str(
            BinaryLabelDatasetMetric(dataset(d), **two).mean_difference()
        ),
        "Reweighing(age 0 against 1).fit_transform(dataset)": reweighing,
        "GerryFairClassifier().fit(dataset)": subgroups,
    }


def main() -> None:
    sample = Sample()
    for library in (fairlearn, aif360):
        try:
            number, trials = version(library.__name__), library()
        except (PackageNotFoundError, ImportError) as error:
            print(f"{library.__name__}: not run ({error})")
            continue
        for call, run in trials.items():
            try:
                outcome = run(sample)
            except Exception as error:  # whatever a library raises is what is asked for
                outcome = f"{type(error).__name__}: {' '.join(str(error).split())[:160]}"
            print(f"{library.__name__} {number} | {call} | {outcome}")


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # AIF360 lists what else could be installed
    warnings.simplefilter("ignore")
    main()
