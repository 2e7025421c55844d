r"""What is left of S in a representation: probes, the worst of fresh heads, and the worst head there is.

Part "leaks" of the records of the study "leak" (protocol "corrected"), one for each stored model of "tradeoff": for
every dataset, method and stored repeat the model that validation rows choose at 1 % of performance.

``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
``performance``       of the deployed head, on test rows
``gdp``, ``gdp_standardized``   of the deployed head, on probabilities
``worst_gdp``, ``worst_gdp_head``                     largest GDP over five fresh heads, and which it is
``worst_gdp_standardized``, ``worst_standardized_head``   the same, divided by the standard deviation of the outputs
``heads``             {head: [performance, gdp, gdp_standardized]}
``probe_r2``          {probe: R² of predicting S from Z on test rows}, "linear" and "trees"
``best_probe_r2``     the larger; ``mutual_information`` of Z and S on test rows
``worst_head_gap``    root of the tight bound: the largest root-mean-square gap of a head of norm 1 in the RKHS of a
                      Gaussian at the median distance of Z, on ≤ 2,000 test rows
``deployed_gap``      that of the deployed probabilities, along the same directions of S
"""

from __future__ import annotations

import torch

from frhsic.certificates import VarianceShare, gdp_certificate
from frhsic.datasets import Split
from frhsic_paper import tradeoff
from frhsic_paper.models import Model
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record
from frhsic_paper.steps import Measurement, each
from frhsic_paper.transfer_measure import fresh_heads

__all__ = ["MEASURE"]

TRAIN_ROWS, TEST_ROWS = 3000, 2000

RULE = VarianceShare(0.95)
"""Directions of S along which the worst head is sought: those with 95 % of its variance in feature space."""


def leaks(model: Model, split: Split, protocol: Protocol) -> list[Record]:
    """Measure what is left of S in the representation of a model."""
    fresh = fresh_heads(model, split, TRAIN_ROWS)
    worst = max(fresh.heads, key=lambda head: head.gdp)
    standardized = max(fresh.heads, key=lambda head: head.standardized_gdp)
    probe = fresh.probes[0]
    probes = {"linear": probe.linear_r2, "trees": probe.trees_r2}
    return [
        {
            "performance": model.record["performance"],
            "gdp": model.record["gdp_probability"],
            "gdp_standardized": model.record["gdp_standardized"],
            "worst_gdp": worst.gdp,
            "worst_gdp_head": worst.head,
            "worst_gdp_standardized": standardized.standardized_gdp,
            "worst_standardized_head": standardized.head,
            "heads": {head.head: [head.performance, head.gdp, head.standardized_gdp] for head in fresh.heads},
            "probe_r2": probes,
            "best_probe_r2": max(probes.values()),
            "mutual_information": probe.mutual_information,
            **_worst_head(model, split),
        }
    ]


def _worst_head(model: Model, split: Split) -> Record:
    x, _, s = split.test
    x, s = x[:TEST_ROWS], s[:TEST_ROWS]
    z = model.encode(x)
    scores = model.score(z)[:, 0].double()
    if model.record["task"] != "regression":
        scores = torch.sigmoid(scores)
    try:
        certificate = gdp_certificate(z, s, directions=RULE)
    except ValueError:  # half of the rows of Z coincide: an encoder that has collapsed leaves no head a gap
        return {"worst_head_gap": 0.0, "deployed_gap": 0.0}
    return {"worst_head_gap": certificate.value**0.5, "deployed_gap": certificate.gap(scores) ** 0.5}


MEASURE = Measurement("leak", "leaks", tradeoff.grid, {"corrected": each(leaks)}, (TRAIN_ROWS, TEST_ROWS, RULE))
