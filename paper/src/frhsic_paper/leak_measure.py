r"""What is left of S in a representation: probes, the worst of fresh heads, and the worst head there is.

Records (`leak-{protocol}.jsonl`, protocol "corrected"), one for each kept model of "tradeoff", which is for every
dataset, method and repeat < 5 the model that validation rows choose at 1 % of performance:

``experiment``        "leak"
``protocol``, ``dataset``, ``method``, ``weight``, ``repeat``   as in the sweep
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
from joblib import Parallel, delayed
from torch import Tensor

from frhsic.certificates import VarianceShare, gdp_certificate
from frhsic.datasets import Split
from frhsic_paper import keeping, records
from frhsic_paper.catalogue import grid_of
from frhsic_paper.keeping import Key
from frhsic_paper.options import Options
from frhsic_paper.protocol import Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.transfer_measure import fresh_heads

__all__ = ["NAME", "run"]

NAME = "leak"

GRID = "tradeoff"

TRAIN_ROWS, TEST_ROWS = 3000, 2000

RULE = VarianceShare(0.95)
"""Directions of S along which the worst head is sought: those with 95 % of its variance in feature space."""


def run(protocol: Protocol, options: Options) -> list[Record]:
    """Measure the kept models of the sweep that are not in the records yet."""
    path, grid = options.file(NAME, protocol), options.applied(grid_of(GRID, protocol))
    models = keeping.model_file(options.out, GRID, protocol.name)
    units: list[Unit] = list(keeping.kept(models, grid.datasets))
    missing = [Key(*unit) for unit in records.resume(path, units, Key.of, dict.fromkeys(units, 1))]
    trained = {Key.of(record): record for record in records.read(options.file(GRID, protocol))}
    for data, splits, states in keeping.groups(grid, protocol, models, missing):
        work = (
            delayed(_measured)(trained[key], key, state, splits[key.repeat], data.task) for key, state in states.items()
        )
        for found in Parallel(n_jobs=options.workers, return_as="generator")(work):
            records.append(path, [found])
        options.say(f"{protocol.name} {NAME} {data.name}: {len(states)} models")
    return records.read(path)


def _measured(model: Record, key: Key, state: dict[str, Tensor], split: Split, task: str) -> Record:
    found = fresh_heads(state, split, TRAIN_ROWS)
    worst = max(found.heads, key=lambda head: head.gdp)
    standardized = max(found.heads, key=lambda head: head.standardized_gdp)
    probe = found.probes[0]
    probes = {"linear": probe.linear_r2, "trees": probe.trees_r2}
    return {
        "experiment": NAME,
        "protocol": model["protocol"],
        **key._asdict(),
        "performance": model["performance"],
        "gdp": model["gdp_probability"],
        "gdp_standardized": model["gdp_standardized"],
        "worst_gdp": worst.gdp,
        "worst_gdp_head": worst.head,
        "worst_gdp_standardized": standardized.standardized_gdp,
        "worst_standardized_head": standardized.head,
        "heads": {head.head: [head.performance, head.gdp, head.standardized_gdp] for head in found.heads},
        "probe_r2": probes,
        "best_probe_r2": max(probes.values()),
        "mutual_information": probe.mutual_information,
        **_worst_head(state, split, task),
    }


def _worst_head(state: dict[str, Tensor], split: Split, task: str) -> Record:
    x, _, s = split.test
    x, s = x[:TEST_ROWS], s[:TEST_ROWS]
    z = keeping.encoded(state, x)
    with torch.no_grad():
        scores = keeping.modules(state)[1](z)[:, 0].double()
    if task != "regression":
        scores = torch.sigmoid(scores)
    try:
        certificate = gdp_certificate(z, s, directions=RULE)
    except ValueError:  # half of the rows of Z coincide: an encoder that has collapsed leaves no head a gap
        return {"worst_head_gap": 0.0, "deployed_gap": 0.0}
    return {"worst_head_gap": certificate.value**0.5, "deployed_gap": certificate.gap(scores) ** 0.5}
