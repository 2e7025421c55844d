"""Transport of the scores of a model that cannot be trained again. The age of each applicant is needed to predict.

python examples/transport_scores.py
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from applicants import applicants
from sklearn.ensemble import HistGradientBoostingClassifier

from frhsic.parity import gdp, standardized_gdp
from frhsic.transport import ScoreTransport


def main(n: int = 4000) -> pd.DataFrame:
    table, hired, age = applicants(3 * n)
    X = table.assign(degree=table["degree"].astype("category"))
    model = HistGradientBoostingClassifier(random_state=0).fit(X[:n], hired[:n])
    scores = model.predict_proba(X)[:, 1]
    # the model was trained on the first rows, the transport is fitted on the second, both are measured on the third
    transport = ScoreTransport().fit(scores[n : 2 * n], age[n : 2 * n])
    rows = []
    for amount in (0.0, 0.5, 1.0):
        moved = transport.set_params(amount=amount).transform(scores[2 * n :], age[2 * n :])
        rows.append(
            {
                "amount": amount,
                "accuracy": np.mean((moved > 0.5) == hired[2 * n :]),
                "gdp": float(gdp(moved, age[2 * n :])),
                "standardized gdp": float(standardized_gdp(moved, age[2 * n :])),
            }
        )
    results = pd.DataFrame(rows)
    print(transport)
    print(results.round(3).to_string(index=False))
    return results


if __name__ == "__main__":
    main()
