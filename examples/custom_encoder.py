"""Your own encoder: a function that makes a torch module from the number of encoded columns.

python examples/custom_encoder.py
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import torch
from applicants import applicants
from torch import Tensor, nn

from frhsic import FRHSICClassifier, load, save
from frhsic.parity import gdp_difference
from frhsic.training import Training


class Residual(nn.Module):
    """Two layers with a way around them."""

    def __init__(self, columns: int, size: int = 16) -> None:
        super().__init__()
        self.first = nn.Linear(columns, size)
        self.second = nn.Linear(size, size)

    def forward(self, x: Tensor) -> Tensor:
        z = torch.relu(self.first(x))
        return z + torch.relu(self.second(z))


def main(n: int = 2000, epochs: int = 60) -> dict[str, float]:
    table, hired, age = applicants(n)
    model = FRHSICClassifier(encoder=Residual, penalty_weight=10.0, training=Training(epochs=epochs), random_state=0)
    model.fit(table, hired, sensitive_features=age)

    # the weights are in the file, the code of the encoder is not: it is passed again
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.frhsic"
        save(model, path)
        again = load(path, encoder=Residual)
    assert np.array_equal(again.predict_proba(table), model.predict_proba(table))

    new_table, new_hired, new_age = applicants(n, seed=1)
    scores = model.predict_proba(new_table)[:, 1]
    result = {
        "columns of Z": float(model.transform(new_table).shape[1]),
        "accuracy": float(model.score(new_table, new_hired)),
        "gdp": gdp_difference(new_hired, scores, sensitive_features=new_age),
    }
    print(result)
    return result


if __name__ == "__main__":
    main()
