"""GDP beside fairlearn's own metrics: models of several weights in one of fairlearn's pictures.

python examples/fairlearn_comparison.py
"""

from __future__ import annotations

import pandas as pd
from applicants import applicants
from fairlearn.metrics import MetricFrame, plot_model_comparison, selection_rate
from sklearn.metrics import accuracy_score

from frhsic import FRHSICClassifier
from frhsic.estimators import fit_path
from frhsic.parity import gdp_difference

WEIGHTS = (0.0, 1.0, 10.0, 100.0)


def main(n: int = 2000, epochs: int = 60, picture: str | None = "comparison.png") -> pd.DataFrame:
    table, hired, age = applicants(n)
    new_table, new_hired, new_age = applicants(n, seed=1)
    model = FRHSICClassifier(epochs=epochs, random_state=0)
    models = fit_path(model, table, hired, weights=WEIGHTS, sensitive_features=age)
    decisions = {f"weight {m.penalty_weight:g}": m.predict(new_table) for m in models}

    axes = plot_model_comparison(
        y_preds=decisions,
        y_true=new_hired,
        sensitive_features=new_age,
        x_axis_metric=gdp_difference,  # continuous: no groups are cut
        y_axis_metric=accuracy_score,
        point_labels=True,
    )
    if picture is not None:
        axes.figure.savefig(picture)

    # the same decisions as fairlearn sees them, once age is cut into groups
    groups = pd.cut(new_age, [0, 35, 50, 100], labels=["to 35", "36 to 50", "over 50"])
    rows = {}
    for name, decided in decisions.items():
        frame = MetricFrame(
            metrics=selection_rate, y_true=new_hired, y_pred=decided, sensitive_features=groups.astype(str)
        )
        rows[name] = {**frame.by_group.to_dict(), "gdp": gdp_difference(None, decided, sensitive_features=new_age)}
    compared = pd.DataFrame(rows).T
    print(compared.round(3).to_string())
    return compared


if __name__ == "__main__":
    main()
