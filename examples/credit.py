"""Halve the gap of a LightGBM model that is in production, without fitting it again.

A bank predicts default, and six of a hundred applicants default. The model stays as it is: only what its columns tell
of age is learned, on rows that it has not seen. The report is on other rows again.

python examples/credit.py FOLDER
"""

from __future__ import annotations

import argparse
from pathlib import Path

import lightgbm
import numpy as np
import pandas as pd
from sklearn.frozen import FrozenEstimator

from frhsic import ParityClassifier
from frhsic.auditing import Context, Settings
from frhsic.report import Report, trained_report, write


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


def main(n: int = 4000, folder: str | Path = ".") -> Report:
    X, y, age = credit(3 * n)
    X["home"] = pd.Categorical(np.where(X["years_at_address"] > 8, "owned", "rented"))
    old, new, test = slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n)
    small = {"n_estimators": 60, "num_leaves": 7, "learning_rate": 0.05, "n_jobs": 1}
    production = lightgbm.LGBMClassifier(**small, verbosity=-1, random_state=0).fit(X[old], y[old])

    model = ParityClassifier(FrozenEstimator(production), limit="50%", n_jobs=1, random_state=0)
    model.fit(X[new], y[new], sensitive_features=age[new])
    print(model.choice_)

    report = trained_report(
        model,
        X[test],
        y[test],
        sensitive_features=age[test],
        favourable=0,
        threshold=0.15,  # a higher chance of default, and no loan is granted
        context=Context(
            title="Default score and age",
            decision="whether a loan is granted",
            people="applicants",
            period="a made-up year",
        ).stamped(),
        settings=Settings(max_rows=300, probe_rows=500, resamples=99),
    )
    print(report.summary)
    write(report, Path(folder, "credit.html"))
    return report


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", default=".", help="where the report goes; by default here")
    main(folder=parser.parse_args().folder)
