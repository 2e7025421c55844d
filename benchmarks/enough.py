"""How many rows an audit needs, how many epochs and known attributes training needs, and what rare
outcomes do.

The tables of docs/choosing.md.

    python benchmarks/enough.py [--draws 40] [--seeds 3]     # five minutes of one core

Tables are made up, so that anybody can repeat them: applicants for a job, of whom half or few are
hired, and scores of which the true gap is known. Models have a penalty weight of 10 unless a row
says otherwise, and are measured on rows that they have not seen: 5,000 applicants, and 20,000 where
few are hired.
"""

from __future__ import annotations

import argparse
import warnings

import numpy as np
import pandas as pd
from sklearn.metrics import log_loss, roc_auc_score

from frhsic import FRHSICClassifier
from frhsic.parity import gdp
from frhsic.training import Training

GAP = 0.02
TRAIN = 4_000
MOST_EPOCHS = 100
RARE = -3.65
"""What is added to the log-odds so that 6 of 100 applicants are hired."""


def applicants(
    n: int, seed: int, *, shift: float = 0.0
) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return features, hired or not, and age: experience counts and depends on age. `shift` moves
    log-odds.
    """
    rng = np.random.default_rng(seed)
    age = rng.uniform(20, 65, size=n).round()
    experience = np.clip(age - 22 + rng.normal(0, 4, size=n), 0, None).round()
    test = rng.normal(60, 15, size=n).round()
    degree = rng.choice(["none", "bachelor", "master"], size=n, p=[0.4, 0.4, 0.2])
    log_odds = shift + 0.07 * (experience - 20) + 0.06 * (test - 60) + 0.8 * (degree == "master")
    hired = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    table = pd.DataFrame({"experience": experience, "test": test, "degree": degree})
    return table, pd.Series(hired.astype(int), name="hired"), pd.Series(age, name="age")


def show_audit(draws: int) -> None:
    print(
        "\n| rows | half width, scores | half width, decisions | share of gaps found, scores |"
        " share, decisions |"
    )
    print("|---|---|---|---|---|")
    for n in (200, 500, 1000, 2000, 5000, 20_000):
        widths, pvalues = np.array([audited(n, seed) for seed in range(draws)]).transpose(2, 0, 1)
        cells = [
            *(f"{width:.4f}" for width in widths.mean(0)),
            *(f"{share:.2f}" for share in (pvalues <= 0.05).mean(0)),
        ]
        print(f"| {n:,} | {' | '.join(cells)} |")


def audited(n: int, seed: int) -> list[tuple[float, float]]:
    """Return half width and p-value of the gap of scores with a true gap of 0.02, and of decisions
    drawn from them.
    """
    rng = np.random.default_rng(seed)
    s = rng.uniform(size=n)
    scores = 0.3 + 4 * GAP * (s - 0.5) + rng.uniform(-0.25, 0.25, size=n)
    decisions = (rng.random(n) < scores).astype(float)
    results = [gdp(values, s, resamples=199, random_state=seed) for values in (scores, decisions)]
    return [((result.interval[1] - result.interval[0]) / 2, result.pvalue) for result in results]


def trained(
    seed: int,
    weight: float = 10.0,
    epochs: int = MOST_EPOCHS,
    known: float = 1.0,
    shift: float = 0.0,
) -> tuple[float, float, float, float, float]:
    """Return accuracy, GDP, AUC, gain in log loss over a constant and base rate of a model on new
    rows.
    """
    X, y, age = applicants(TRAIN, seed=2 * seed, shift=shift)
    X_new, y_new, age_new = applicants(20_000 if shift else 5000, seed=2 * seed + 1, shift=shift)
    age = age.where(np.random.default_rng(seed).random(TRAIN) < known)
    model = FRHSICClassifier(
        penalty_weight=weight, training=Training(epochs=epochs), random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scores = model.fit(X, y, sensitive_features=age).predict_proba(X_new)[:, 1]
    gain = log_loss(y_new, np.full(len(y_new), y.mean())) - log_loss(y_new, scores)
    gap = gdp(scores, age_new, resamples=0).value
    return ((scores > 0.5) == y_new).mean(), gap, roc_auc_score(y_new, scores), gain, y_new.mean()


def show_models(seeds: int) -> None:
    print("\n| model | accuracy | GDP |\n|---|---|---|")
    models: dict[str, dict[str, float]] = {
        "no penalty": {"weight": 0.0},
        **{f"{epochs} epochs": {"epochs": epochs} for epochs in (5, 20, 50, MOST_EPOCHS)},
        **{f"{known:.0%} of the attributes known": {"known": known} for known in (0.5, 0.2, 0.05)},
    }
    for name, settings in models.items():
        accuracy, gap, *_ = np.mean([trained(seed, **settings) for seed in range(seeds)], axis=0)
        print(f"| {name} | {accuracy:.3f} | {gap:.3f} |")


def show_rare(seeds: int) -> None:
    print(
        "\n| penalty weight | accuracy | AUC | gain kept | GDP | GDP by base rate"
        " |\n|---|---|---|---|---|---|"
    )
    weights = (0.0, 1.0, 10.0, 30.0)
    rows = np.array(
        [[trained(seed, weight, shift=RARE) for weight in weights] for seed in range(seeds)]
    ).mean(0)
    print(f"| a constant | {1 - rows[0, 4]:.3f} | .500 | 0 % | 0 | 0 % |")
    for weight, (accuracy, gap, auc, gain, rate) in zip(weights, rows):
        kept, share = gain / rows[0, 3], gap / rate
        print(f"| {weight:g} | {accuracy:.3f} | {auc:.3f} | {kept:.0%} | {gap:.4f} | {share:.0%} |")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=40, help="tables that are audited")
    parser.add_argument("--seeds", type=int, default=3, help="models of each kind")
    options = parser.parse_args()
    show_audit(options.draws)
    show_models(options.seeds)
    show_rare(options.seeds)
