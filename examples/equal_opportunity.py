"""Equal Opportunity: among those who were hired (y = 1), the score should not depend on age.

python examples/equal_opportunity.py
"""

from __future__ import annotations

import pandas as pd
from applicants import applicants
from sklearn.metrics import log_loss

from frhsic import ParityClassifier
from frhsic.parity import equal_opportunity_gdp, gdp_difference


def main(n: int = 2000) -> pd.DataFrame:
    table, hired, age = applicants(n)
    new_table, new_hired, new_age = applicants(n, seed=1)
    rows = {}
    for name, condition in (("all rows", None), ("rows with y = 1", "positive")):
        model = ParityClassifier(limit="25%", condition=condition, n_jobs=1, random_state=0)
        model.fit(table, hired, sensitive_features=age)
        for limit in (None, "25%"):
            p = model.at(limit).predict_proba(new_table)[:, 1]
            rows[name, str(limit)] = {
                "log loss": log_loss(new_hired, p),
                "gdp": gdp_difference(new_hired, p, sensitive_features=new_age),
                "gdp given y = 1": equal_opportunity_gdp(new_hired, p, sensitive_features=new_age),
            }
    results = pd.DataFrame(rows).T.rename_axis(["compared", "limit"])
    print(results.round(3).to_string())
    return results


if __name__ == "__main__":
    main()
