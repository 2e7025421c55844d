"""What other libraries do with a continuous sensitive attribute, found by running them.

    python benchmarks/peers.py      # runs what is installed, says what is not, writes results/peers.json

One table for all: 400 rows, an attribute (age) with 400 distinct values, a 0/1 target and a logistic regression whose
score follows age. Where a library takes the attribute as it is, it also gets a score that is high in the middle of the
range and low at both ends, which has no correlation with age. Each trial is one call as the library's user would
write it. Nothing is tuned; the question is what the call does, not how well.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import logging
import platform
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

RESULTS = Path(__file__).parent / "results" / "peers.json"
ROWS = 400
COLUMNS = {"train": "trains with it", "audit": "measures", "test": "tests", "interval": "interval"}


@dataclass(frozen=True)
class Trial:
    """One call: what it is for, how a user writes it, one word on what came of it, and the numbers."""

    task: str
    call: str
    outcome: str
    detail: str


class Sample:
    """The rows that every library gets."""

    def __init__(self, n: int = ROWS, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.age = pd.Series(rng.uniform(18, 80, size=n), name="age")
        self.X = pd.DataFrame({"job": self.age / 20 + rng.normal(size=n), "skill": rng.normal(size=n)})
        self.y = (rng.random(n) < 1 / (1 + np.exp(-(self.X["job"] - 2.5 + self.X["skill"])))).astype(int)
        self.model = LogisticRegression().fit(self.X, self.y)
        self.score = self.model.predict_proba(self.X)[:, 1]
        self.decision = self.model.predict(self.X)
        self.hump = 0.2 + 0.6 * np.exp(-(((self.age - 49) / 12) ** 2)).to_numpy() + rng.normal(0, 0.05, size=n)


Run = Callable[[Sample], tuple[str, str]]


def fairlearn_trials() -> list[tuple[str, str, Run]]:
    from fairlearn.adversarial import AdversarialFairnessClassifier
    from fairlearn.metrics import MetricFrame, demographic_parity_difference, selection_rate
    from fairlearn.postprocessing import ThresholdOptimizer
    from fairlearn.preprocessing import CorrelationRemover
    from fairlearn.reductions import DemographicParity, ExponentiatedGradient

    def frame(d: Sample, **more: Any) -> MetricFrame:
        return MetricFrame(metrics=selection_rate, y_true=d.y, y_pred=d.decision, sensitive_features=d.age, **more)

    def groups(d: Sample) -> tuple[str, str]:
        count = len(frame(d).by_group)
        return each_value(count), f"{count} groups of {len(d.age)} rows"

    def difference(d: Sample) -> tuple[str, str]:
        value = demographic_parity_difference(d.y, d.decision, sensitive_features=d.age)
        return each_value(d.age.nunique()), f"difference of selection rates {value:.2f}"

    def bootstrap(d: Sample) -> tuple[str, str]:
        low, high = frame(d, n_boot=20, ci_quantiles=[0.025, 0.975], random_state=0).difference_ci()
        return each_value(d.age.nunique()), f"bootstrap interval of the difference from {low:.2f} to {high:.2f}"

    def reduction(d: Sample) -> tuple[str, str]:
        model = ExponentiatedGradient(LogisticRegression(), DemographicParity(), max_iter=3)
        count = len(model.fit(d.X, d.y, sensitive_features=d.age).lambda_vecs_)
        return each_value(count // 2), f"{count} constraints for {len(d.age)} rows"

    def thresholds(d: Sample) -> tuple[str, str]:
        optimizer = ThresholdOptimizer(estimator=d.model, prefit=True, predict_method="predict_proba")
        optimizer.fit(d.X, d.y, sensitive_features=d.age)
        return "yes", "fitted"

    def remover(d: Sample) -> tuple[str, str]:
        table = pd.DataFrame({"hump": d.hump, "job": d.X["job"], "age": d.age})
        out = CorrelationRemover(sensitive_feature_ids=["age"]).fit_transform(table)
        line, hump = (abs(np.corrcoef(out[:, k], d.age)[0, 1]) for k in (1, 0))
        bend = abs(np.corrcoef(out[:, 0], (d.age - 49) ** 2)[0, 1])
        return "linear part", (
            f"correlation with age after it {max(line, hump):.2f}; "
            f"of the hump with the squared distance from the middle {bend:.2f}"
        )

    def adversary(d: Sample) -> tuple[str, str]:
        model = AdversarialFairnessClassifier(
            backend="torch", predictor_model=[8, "relu"], adversary_model=[3], epochs=2, batch_size=64, random_state=0
        )
        model.fit(d.X.to_numpy(), d.y.to_numpy(), sensitive_features=d.age.to_numpy())
        return "yes", f"the adversary's loss is {model.backendEngine_.adversary_loss}"

    return [
        ("audit", "MetricFrame(sensitive_features=age)", groups),
        ("audit", "demographic_parity_difference(sensitive_features=age)", difference),
        ("interval", "MetricFrame(n_boot=20, ci_quantiles=...)", bootstrap),
        ("train", "ExponentiatedGradient(DemographicParity()).fit(sensitive_features=age)", reduction),
        ("train", "ThresholdOptimizer().fit(sensitive_features=age)", thresholds),
        ("train", "CorrelationRemover(['age']).fit_transform(table)", remover),
        ("train", "AdversarialFairnessClassifier(backend='torch').fit(sensitive_features=age)", adversary),
    ]


def aif360_trials() -> list[tuple[str, str, Run]]:
    from aif360.algorithms.inprocessing import GerryFairClassifier
    from aif360.algorithms.inprocessing.gerryfair.auditor import Auditor
    from aif360.algorithms.preprocessing import Reweighing
    from aif360.datasets import BinaryLabelDataset
    from aif360.metrics import BinaryLabelDatasetMetric
    from aif360.sklearn.metrics import kl_divergence, statistical_parity_difference
    from sklearn.linear_model import LinearRegression

    two = [{"age": 0}], [{"age": 1}]

    def dataset(d: Sample) -> BinaryLabelDataset:
        table = d.X.assign(age=d.age, y=d.y)
        return BinaryLabelDataset(df=table, label_names=["y"], protected_attribute_names=["age"])

    def indexed(d: Sample) -> pd.Series:
        return pd.Series(d.y.to_numpy(), index=pd.Index(d.age, name="age"))

    def parity(d: Sample) -> tuple[str, str]:
        value = statistical_parity_difference(indexed(d), d.decision, prot_attr="age")
        return ("NaN" if np.isnan(value) else "a number"), f"value {value}"

    def divergence(d: Sample) -> tuple[str, str]:
        return "a number", f"value {kl_divergence(indexed(d), d.decision, prot_attr='age')}"

    def mean_difference(d: Sample) -> tuple[str, str]:
        metric = BinaryLabelDatasetMetric(dataset(d), unprivileged_groups=two[0], privileged_groups=two[1])
        value = metric.mean_difference()
        return ("NaN" if np.isnan(value) else "a number"), f"value {value}"

    def reweighing(d: Sample) -> tuple[str, str]:
        weights = Reweighing(*two).fit_transform(dataset(d)).instance_weights
        same = bool(np.all(weights == 1))
        return ("does nothing" if same else "yes"), f"weights from {weights.min():.2f} to {weights.max():.2f}"

    def gerry(d: Sample) -> tuple[str, str]:
        model = GerryFairClassifier(
            C=10, printflag=False, gamma=0.01, max_iters=2, fairness_def="FP", predictor=LinearRegression()
        )
        model.fit(dataset(d), early_termination=True)
        members = np.asarray(Auditor(dataset(d), "FP").audit(tuple(d.decision.astype(float)))[0], dtype=bool)
        inside, outside = d.age[members], d.age[~members]
        one_sided = inside.min() > outside.max() or inside.max() < outside.min()
        outcome = "groups on one side of an age" if one_sided else "other groups"
        return outcome, f"fitted; the subgroup that its auditor finds has {members.sum()} rows"

    return [
        ("audit", "aif360.sklearn statistical_parity_difference(prot_attr='age')", parity),
        ("audit", "BinaryLabelDatasetMetric(age 0 against 1).mean_difference()", mean_difference),
        ("audit", "aif360.sklearn kl_divergence(prot_attr='age')", divergence),
        ("train", "Reweighing(age 0 against 1).fit_transform(dataset)", reweighing),
        ("train", "GerryFairClassifier().fit(dataset)", gerry),
    ]


def fairret_trials() -> list[tuple[str, str, Run]]:
    import torch
    from fairret.loss import NormLoss
    from fairret.statistic import PositiveRate

    def column(values: Any) -> torch.Tensor:
        return torch.tensor(np.asarray(values), dtype=torch.float32)[:, None]

    def logit(chance: np.ndarray) -> torch.Tensor:
        clipped = np.clip(chance, 0.01, 0.99)
        return column(np.log(clipped / (1 - clipped)))

    def loss(d: Sample) -> tuple[str, str]:
        share = column((d.age - 18) / 62)
        scores = logit(d.score).requires_grad_()
        line = NormLoss(PositiveRate())(scores, share)
        line.backward()
        hump = float(NormLoss(PositiveRate())(logit(d.hump), share))
        return "linear part", f"loss {float(line.detach()):.3f} for the score, {hump:.3f} for the hump"

    def standardized(d: Sample) -> tuple[str, str]:
        value = float(NormLoss(PositiveRate())(logit(d.score), column((d.age - d.age.mean()) / d.age.std())))
        return "fails on centred values", f"loss {value:.3g} with age centred and divided by its deviation"

    def statistic(d: Sample) -> tuple[str, str]:
        value = float(PositiveRate()(column(d.score), column((d.age - 18) / 62)))
        return "one weighted mean", f"mean score weighted by age {value:.3f}, overall {d.score.mean():.3f}"

    return [
        ("train", "NormLoss(PositiveRate())(logit, age from 0 to 1)", loss),
        ("train", "NormLoss(PositiveRate())(logit, standardized age)", standardized),
        ("audit", "PositiveRate()(score, age from 0 to 1)", statistic),
    ]


def hyppo_trials() -> list[tuple[str, str, Run]]:
    from hyppo.independence import Hsic

    def test(d: Sample) -> tuple[str, str]:
        found = [Hsic().test(f[:, None], d.age.to_numpy()[:, None], reps=99, auto=False) for f in (d.score, d.hump)]
        return "yes", "p-values of score and hump " + ", ".join(f"{one.pvalue:.2f}" for one in found)

    def measure(d: Sample) -> tuple[str, str]:
        value = Hsic().statistic(d.score[:, None], d.age.to_numpy()[:, None])
        return "yes, HSIC and others", f"HSIC {value:.4f}"

    return [("audit", "Hsic().statistic(score, age)", measure), ("test", "Hsic().test(score, age)", test)]


def dcor_trials() -> list[tuple[str, str, Run]]:
    import dcor

    def test(d: Sample) -> tuple[str, str]:
        age = d.age.to_numpy()
        run = dcor.independence.distance_covariance_test
        found = [run(f, age, num_resamples=99, random_state=0).pvalue for f in (d.score, d.hump)]
        return "yes", "p-values of score and hump " + ", ".join(f"{one:.2f}" for one in found)

    def measure(d: Sample) -> tuple[str, str]:
        value = float(dcor.distance_correlation(d.score, d.age.to_numpy()))
        return "yes, distance correlation", f"distance correlation {value:.3f}"

    return [
        ("audit", "distance_correlation(score, age)", measure),
        ("test", "independence.distance_covariance_test(score, age)", test),
    ]


def frhsic_trials() -> list[tuple[str, str, Run]]:
    from frhsic import FRHSICClassifier
    from frhsic.independence import gamma_test
    from frhsic.parity import gdp
    from frhsic.training import Training

    def train(d: Sample) -> tuple[str, str]:
        gaps = []
        for weight in (0, 10):
            model = FRHSICClassifier("hsic", weight, training=Training(epochs=30), random_state=0)
            model.fit(d.X, d.y, sensitive_features=d.age)
            gaps.append(float(gdp(model.predict_proba(d.X)[:, 1], d.age, resamples=0)))
        return "yes, HSIC and others", f"GDP on the training rows {gaps[0]:.3f} without penalty, {gaps[1]:.3f} with"

    def measure(d: Sample) -> tuple[str, str]:
        score, hump = (float(gdp(f, d.age, resamples=0)) for f in (d.score, d.hump))
        return "yes, GDP, HSIC and others", f"GDP {score:.3f} of the score, {hump:.3f} of the hump"

    def test(d: Sample) -> tuple[str, str]:
        found = [gamma_test(f, d.age).pvalue for f in (d.score, d.hump)]
        return "yes", "p-values of score and hump " + ", ".join(f"{one:.2g}" for one in found)

    def interval(d: Sample) -> tuple[str, str]:
        low, high = gdp(d.score, d.age).interval
        return "yes", f"GDP from {low:.3f} to {high:.3f}"

    return [
        ("train", "FRHSICClassifier().fit(sensitive_features=age)", train),
        ("audit", "parity.gdp(score, age)", measure),
        ("test", "independence.gamma_test(score, age)", test),
        ("interval", "parity.gdp(score, age).interval", interval),
    ]


LIBRARIES: dict[str, Callable[[], list[tuple[str, str, Run]]]] = {
    "frhsic": frhsic_trials,
    "fairlearn": fairlearn_trials,
    "aif360": aif360_trials,
    "fairret": fairret_trials,
    "hyppo": hyppo_trials,
    "dcor": dcor_trials,
}


def each_value(groups: int) -> str:
    return "each value a group" if groups == ROWS else f"{groups} groups"


def attempt(task: str, call: str, run: Run, sample: Sample) -> Trial:
    """Run one trial; an error is an outcome too."""
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")
            outcome, detail = run(sample)
    except Exception as error:  # whatever a library raises is what is asked for
        first = " ".join(str(error).split())[:160]
        outcome, detail = "error", f"{type(error).__name__}: {first}"
    return Trial(task, call, outcome, detail)


def row(trials: Sequence[Trial]) -> dict[str, str]:
    """Return a cell for each column: what the calls did, by name if they differ, or a dash if none was tried."""
    cells = {}
    for task, column in COLUMNS.items():
        tools: dict[str, list[str]] = {}
        for trial in trials:
            if trial.task == task:
                tools.setdefault(trial.outcome, []).append(trial.call.partition("(")[0].split()[-1])
        named = len({name for names in tools.values() for name in names}) > 1 and len(tools) > 1
        parts = [f"{outcome} ({', '.join(names)})" if named else outcome for outcome, names in tools.items()]
        cells[column] = "; ".join(parts) or "–"
    return cells


def markdown(table: dict[str, dict[str, str]]) -> str:
    """The table of the README."""
    head = ["library", *COLUMNS.values()]
    lines = [head, ["---"] * len(head), *([name, *cells.values()] for name, cells in table.items())]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args(argv)
    sample, libraries = Sample(), {}
    table: dict[str, dict[str, str]] = {}
    for name, trials_of in LIBRARIES.items():
        try:
            number, trials = version(name), trials_of()
        except (PackageNotFoundError, ImportError) as error:
            print(f"{name}: not run ({error})")
            continue
        found = [attempt(*trial, sample) for trial in trials]
        libraries[name] = {"version": number, "trials": [asdict(trial) for trial in found]}
        table[f"{name} {number}"] = row(found)
        for trial in found:
            print(f"{name} {number} | {trial.task} | {trial.call} | {trial.outcome}: {trial.detail}")
    print("\n" + markdown(table))
    record = {"rows": ROWS, "python": platform.python_version(), "libraries": libraries, "table": table}
    options.out.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    logging.disable(logging.WARNING)  # AIF360 lists what else could be installed
    main()
