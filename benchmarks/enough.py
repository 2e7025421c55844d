"""How many rows an audit needs, how many epochs and known attributes training needs, and what rare outcomes do.

The tables of docs/choosing.md.

    python benchmarks/enough.py                     # five minutes of one core
    python benchmarks/enough.py --only audit

Tables are made up, so that anybody can repeat them: applicants for a job, of whom half or few are hired, and scores of
which the true gap is known. Models have a penalty weight of 10 unless a row says otherwise, and are measured on rows
that they have not seen: 5,000 applicants, and 20,000 where few are hired.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from frhsic import FRHSICClassifier
from frhsic.parity import gdp
from frhsic.training import Training

GAP = 0.02
RARE = -3.65
"""What is added to the log-odds so that 6 of 100 applicants are hired."""


def applicants(n: int, seed: int, *, shift: float = 0.0) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return features, hired or not, and age: experience counts and depends on age. `shift` moves log-odds."""
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 4, size=n), 0, None).round()
    test = rng.normal(60, 15, size=n).round()
    degree = rng.choice(["none", "bachelor", "master"], size=n, p=[0.4, 0.4, 0.2])
    log_odds = shift + 0.07 * (experience - 20) + 0.06 * (test - 60) + 0.8 * (degree == "master")
    hired = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    table = pd.DataFrame({"experience": experience, "test": test, "degree": degree})
    return table, pd.Series(hired.astype(int), name="hired"), pd.Series(age, name="age")


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 500, 1000, 2000, 5000, 20_000])
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--train", type=int, default=4000, help="rows to train on")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, nargs="+", default=[5, 20, 50, 100])
    options = parser.parse_args(argv)
    for section in options.only.split(","):
        SECTIONS[section](options)


def show_audit(options: argparse.Namespace) -> None:
    print("\n| rows | half width, scores | half width, decisions | share of gaps found, scores | share, decisions |")
    print("|---|---|---|---|---|")
    for n in options.rows:
        draws = [audited(n, seed) for seed in range(options.draws)]
        widths = np.mean([[width for width, _ in draw] for draw in draws], 0)
        found = np.mean([[pvalue <= 0.05 for _, pvalue in draw] for draw in draws], 0)
        print(f"| {n:,} | {widths[0]:.4f} | {widths[1]:.4f} | {found[0]:.2f} | {found[1]:.2f} |")


def audited(n: int, seed: int) -> list[tuple[float, float]]:
    """Return half width and p-value of the gap of scores with a true gap of 0.02, and of decisions drawn from them."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(size=n)
    scores = 0.3 + 4 * GAP * (s - 0.5) + rng.uniform(-0.25, 0.25, size=n)
    decisions = (rng.random(n) < scores).astype(float)
    results = [gdp(values, s, resamples=199, random_state=seed) for values in (scores, decisions)]
    return [((result.interval[1] - result.interval[0]) / 2, result.pvalue) for result in results]


def show_epochs(options: argparse.Namespace) -> None:
    print("\n| epochs | accuracy | GDP |\n|---|---|---|")
    show_models([(f"{epochs}", {"training": Training(epochs=epochs)}, 1.0) for epochs in options.epochs], options)


def show_known(options: argparse.Namespace) -> None:
    print("\n| share of rows with a known attribute | accuracy | GDP |\n|---|---|---|")
    training = {"training": Training(epochs=options.epochs[-1])}
    show_models([(f"{known:.0%}", training, known) for known in (1.0, 0.5, 0.2, 0.05)], options)


def show_models(models: list[tuple[str, dict[str, Any], float]], options: argparse.Namespace) -> None:
    none = {"penalty_weight": 0.0, "training": Training(epochs=options.epochs[-1])}
    for name, settings, known in [("no penalty", none, 1.0), *models]:
        rows = np.array([trained(settings, known, seed, options.train) for seed in range(options.seeds)])
        print("| " + " | ".join([name, *(f"{mean:.3f}" for mean in rows.mean(0))]) + " |")


def trained(settings: dict[str, Any], known: float, seed: int, n: int) -> tuple[float, float]:
    """Return accuracy and GDP on new rows."""
    X, y, age = applicants(n, seed=2 * seed)
    X_new, y_new, age_new = applicants(5000, seed=2 * seed + 1)
    age = age.where(np.random.default_rng(seed).random(n) < known)
    model = FRHSICClassifier(**{"penalty_weight": 10.0, "random_state": seed, **settings})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = model.fit(X, y, sensitive_features=age).predict_proba(X_new)[:, 1]
    return float(((scores > 0.5) == y_new).mean()), float(gdp(scores, age_new, resamples=0).value)


def show_rare(options: argparse.Namespace) -> None:
    print("\n| penalty weight | accuracy | AUC | gain kept | GDP | GDP by base rate |\n|---|---|---|---|---|---|")
    weights, seeds = (0.0, 1.0, 10.0, 30.0), range(options.seeds)
    rows = np.array([[rare(weight, seed, options) for weight in weights] for seed in seeds])
    accuracy, auc, gain, gap, rate = rows.mean(0).T
    print(f"| a constant | {1 - rate[0]:.3f} | .500 | 0 % | 0 | 0 % |")
    for i, name in enumerate(("none", "1", "10", "30")):
        kept, share = gain[i] / gain[0], gap[i] / rate[i]
        print(f"| {name} | {accuracy[i]:.3f} | {auc[i]:.3f} | {kept:.0%} | {gap[i]:.4f} | {share:.0%} |")


def rare(weight: float, seed: int, options: argparse.Namespace) -> tuple[float, float, float, float, float]:
    """Return accuracy, AUC, gain in log loss over a constant, GDP and base rate of a model if few are hired."""
    X, y, age = applicants(options.train, seed=2 * seed, shift=RARE)
    X_new, y_new, age_new = applicants(20_000, seed=2 * seed + 1, shift=RARE)
    model = FRHSICClassifier(penalty_weight=weight, training=Training(epochs=options.epochs[-1]), random_state=seed)
    scores = model.fit(X, y, sensitive_features=age).predict_proba(X_new)[:, 1]
    gain = log_loss(y_new, np.full(len(y_new), y.mean())) - log_loss(y_new, scores)
    gap = gdp(scores, age_new, resamples=0).value
    return ((scores > 0.5) == y_new).mean(), roc_auc_score(y_new, scores), gain, gap, y_new.mean()


SECTIONS = {"audit": show_audit, "epochs": show_epochs, "known": show_known, "rare": show_rare}

if __name__ == "__main__":
    main()
