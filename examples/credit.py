"""From a credit model to a page that a committee signs: audit, train, choose, report.

A bank has a LightGBM model of default, and six of a hundred applicants default. Is its score free of age? If not, what
does it cost to make it so?

python examples/credit.py FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd

from frhsic.auditing import Context, Settings, audit
from frhsic.estimators import FRHSICClassifier
from frhsic.report import Report, trained_report, write
from frhsic.selection import select_weight

LIMITS = ["gdp=25%", "eo=25%"]  # of the base rate: the average gap along age, of all and of those who repaid
THRESHOLD = 0.15  # a higher chance of default, and no loan is granted
CONTEXT = Context.now(decision="whether a loan is granted", people="applicants", period="a made-up year")


def credit(n: int, seed: int = 0) -> tuple[pd.DataFrame, pd.Series, pd.Series]:
    """Return features, default or not, and age. Years at an address and in a job grow with age."""
    rng = np.random.default_rng(seed)
    age = np.round(20 + 50 * rng.beta(1.6, 2.6, size=n))
    job = np.clip((age - 20) * rng.uniform(0, 0.7, size=n), 0, None).round()
    address = np.clip((age - 18) * rng.uniform(0, 0.5, size=n), 0, None).round()
    income = np.exp(rng.normal(7.6, 0.45, size=n)).round(-1)
    debt = (income * rng.gamma(1.2, 0.35, size=n)).round(-1)
    log_odds = -3.3 + 2.8 * debt / income - 0.16 * job - 0.14 * address - 1.5 * np.log(income / 2000)
    default = rng.random(n) < 1 / (1 + np.exp(-log_odds))
    table = pd.DataFrame({"income": income, "debt": debt, "years_in_job": job, "years_at_address": address})
    return table, pd.Series(default.astype(int), name="default"), pd.Series(age, name="age")


def main(n: int = 4000, epochs: int = 40, folder: str | Path = ".") -> dict[str, object]:
    X, y, age = credit(3 * n)
    old, new, test = slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n)
    settings = Settings(max_rows=300, probe_rows=500, resamples=99, shuffles=1)

    # The model that is there, trained on old rows.
    small = {"n_estimators": 60, "num_leaves": 7, "learning_rate": 0.05, "n_jobs": 1}  # threads would wait
    model = lightgbm.LGBMClassifier(**small, verbosity=-1, random_state=0).fit(X[old], y[old])

    # 1. Audit: is the limit kept?
    stated = {
        "limit": LIMITS,
        "threshold": THRESHOLD,
        "context": CONTEXT,
        "target_name": "default",
        "source": "a made-up table",
    }
    scores = pd.Series(model.predict_proba(X[test])[:, 1], name="probability of default")
    before = audit(scores, age[test], y[test], favourable=0, settings=settings, **stated)
    print("The model that is there:", before.limits[0].verdict, "-", before["age"].finding)
    write(before, Path(folder, "credit-before.html"))

    # 2. Train a model with a penalty, and choose its weight on validation rows, by what the penalty costs.
    penalised = FRHSICClassifier("hsic", scaling="robust", epochs=epochs, learning_rate=0.01, random_state=0)
    chosen = select_weight(
        penalised,
        X[new],
        y[new],
        sensitive_features=age[new],
        weights=[1, 10, 100],
        rule="gain >= 50%",
        random_state=0,
    )
    print(chosen)

    # 3. Report on test rows, which had no part in training or choice.
    report: Report = trained_report(
        chosen.models,
        chosen.position,
        X[test],
        y[test],
        sensitive_features=age[test],
        reason=f"Chosen on validation rows: {chosen.reason}.",
        title="Default score and age",
        favourable=0,
        settings=settings,
        **stated,
    )
    write(report, Path(folder, "credit-after.html"))
    print("The penalised model:", report.audit.limits[0].verdict, "-", report.summary)
    return {"before": before, "chosen": chosen, "report": report}


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=".", help="where the two reports go; by default here")
    main(folder=parser.parse_args().folder)
