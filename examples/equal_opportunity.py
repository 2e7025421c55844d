"""Equal Opportunity: among those who are qualified (y = 1), the score should not depend on age.

python examples/equal_opportunity.py
"""

from __future__ import annotations

import pandas as pd
from applicants import applicants

from frhsic import FRHSICClassifier
from frhsic.estimators import fit_path
from frhsic.parity import equal_opportunity_gdp, gdp_difference
from frhsic.penalties import HSIC


def main(n: int = 2000, epochs: int = 60) -> pd.DataFrame:
    table, hired, age = applicants(n)
    new_table, new_hired, new_age = applicants(n, seed=1)
    rows = []
    for asked, penalty in (("all rows", HSIC()), ("rows with y = 1", HSIC(condition="positive"))):
        model = FRHSICClassifier(penalty, epochs=epochs, random_state=0)
        for fitted in fit_path(model, table, hired, weights=[0.0, 10.0], sensitive_features=age):
            scores = fitted.predict_proba(new_table)[:, 1]
            rows.append(
                {
                    "penalty on": asked,
                    "weight": fitted.penalty_weight,
                    "accuracy": fitted.score(new_table, new_hired),
                    "gdp": gdp_difference(new_hired, scores, sensitive_features=new_age),
                    "gdp given y = 1": equal_opportunity_gdp(new_hired, scores, sensitive_features=new_age),
                }
            )
    results = pd.DataFrame(rows)
    print(results.round(3).to_string(index=False))
    return results


if __name__ == "__main__":
    main()
