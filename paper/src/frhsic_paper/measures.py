"""Measures of all models of a fleet at once.

Each quantity is measured under every convention, in separate columns, from which a protocol selects
its own. The quantities include loss, Brier score, AUC, accuracy, spread, GDP of scores and
decisions, standardized GDP and rank gap.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from frhsic.dependence.grams import hsic_biased_from_gram
from frhsic.kernels import Gaussian
from frhsic.parity import rank_gap
from frhsic.penalties.rivals import gdp_value
from frhsic.training import Fleet
from frhsic_paper.splits import Split, Subset
from frhsic_paper.statistics.smoothed import evaluation_points

PUBLISHED_BANDWIDTH = 0.1
"""Bandwidth of the published evaluator, on S scaled to [0, 1] by the training rows."""

PROBE_ROWS = 6000
"""Number of training rows on which a probe is fitted."""

HSIC_ROWS = 1000
"""Number of test rows on which HSIC is computed."""

RANDOM_FEATURES = 300
"""Number of random cosines on which the nonlinear probe is fitted."""

RIDGE = 1e-4
"""Ridge of the probes on standardized columns; directions with a smaller variance are of no use to
them.
"""


def measure_models(fleet: Fleet, splits: Sequence[Split], task: str) -> list[dict[str, float]]:
    """Return, for each model, performance and dependence on the test rows and, if there are any, on
    the validation rows.

    Keys for validation rows begin with ``validation_``. The probes are fitted on training rows and
    scored on test rows: `probe_r2_linear` by ridge regression on Z, `probe_r2_cosines` by ridge
    regression on random cosines of Z.
    """
    results: list[dict[str, float]] = [{} for _ in fleet.members]
    for number, split in enumerate(splits):
        indices = [index for index, member in enumerate(fleet.members) if member.split == number]
        models = fleet.select(indices)
        columns = _on_part(models, split.test, task)
        if split.validation is not None:
            held_out = _on_part(models, split.validation, task)
            columns |= {f"validation_{name}": values for name, values in held_out.items()}
        columns |= _leaks(models, split)
        for row, index in enumerate(indices):
            results[index] = {name: float(values[row]) for name, values in columns.items()}
    return results


def probe_r2(z_train: Tensor, s_train: Tensor, z_test: Tensor, s_test: Tensor) -> Tensor:
    r"""Share of the variance of s that a ridge regression on z explains on unseen rows, for each
    model.

    :math:`R^2 = 1 - \sum_i (s_i - \hat s_i)^2 / \sum_i (s_i - \bar s)^2`; z (M, n, d), s (n,).
    Coordinates are standardized by the training rows first.
    """
    mean, spread = z_train.mean(1, keepdim=True), z_train.std(1, keepdim=True)
    spread = spread + 1e-8 * spread.mean(2, keepdim=True) + 1e-30
    a, b = ((z_train - mean) / spread).double(), ((z_test - mean) / spread).double()
    target = (s_train.double() - s_train.double().mean())[None, :, None]
    gram = a.mT @ a / a.shape[1] + RIDGE * torch.eye(a.shape[2], dtype=a.dtype, device=a.device)
    # By Cholesky: batched LU (torch.linalg.solve) hangs under some builds of MKL with more than one
    # thread.
    factor, failed = torch.linalg.cholesky_ex(gram)
    coefficients = torch.cholesky_solve(a.mT @ target / a.shape[1], factor)
    coefficients[failed > 0] = math.nan  # a model that diverged has no probe
    predicted = (b @ coefficients)[..., 0] + s_train.double().mean()
    residual = ((s_test.double() - predicted) ** 2).mean(1)
    r2: Tensor = 1 - residual / s_test.double().var(correction=0)
    return r2


def _on_part(fleet: Fleet, part: Subset, task: str) -> dict[str, Tensor]:
    x, y, s = part.to(fleet.device)
    scores = fleet.scores(x)[..., 0].double()  # (M, n)
    y, attributes = y.double(), s.double().reshape(len(s), -1)
    s = attributes[:, 0]
    range_of_s = float(s.max() - s.min())
    columns: dict[str, Tensor] = {}
    kinds = (
        {"logit": scores}
        if task == "regression"
        else {"logit": scores, "probability": torch.sigmoid(scores)}
    )
    if task == "regression":
        columns["performance"] = columns["loss"] = ((scores - y) ** 2).mean(1)
        kinds["probability"] = scores  # the output of a regression is already in the target's unit
    else:
        decisions = (scores > 0).double()
        columns["performance"] = (decisions == y).double().mean(1)
        columns["loss"] = (functional.softplus(scores) - y * scores).mean(1)
        columns["brier"] = ((kinds["probability"] - y) ** 2).mean(1)
        columns["auc"] = torch.stack([_auc(row, y) for row in scores])
        columns["probability_sd"] = kinds["probability"].std(1, correction=0)
        kinds["decision"] = decisions
    columns["rank_gap"] = torch.tensor(
        [
            float(rank_gap(row, s.cpu(), resamples=0)) if row.isfinite().all() else math.nan
            for row in scores.cpu()
        ]
    )
    for name, values in kinds.items():
        columns[f"gdp_{name}"] = smoothed(values, s, 0.1 * range_of_s, "population")
    columns["gdp_logit_uniform"] = smoothed(scores, s, PUBLISHED_BANDWIDTH, "uniform")
    columns["gdp_probability_uniform"] = smoothed(
        kinds["probability"], s, PUBLISHED_BANDWIDTH, "uniform"
    )
    for number, other in enumerate(attributes.T[1:], start=2):
        columns[f"gdp_probability_{number}"] = smoothed(
            kinds["probability"], other, 0.1 * float(other.max() - other.min()), "population"
        )
        columns[f"gdp_logit_uniform_{number}"] = smoothed(
            scores, other, PUBLISHED_BANDWIDTH, "uniform"
        )
    if task != "regression":
        positive = y == 1
        s_positive = s[positive]
        width = 0.1 * float(s_positive.max() - s_positive.min())
        columns["eo_gdp_probability"] = smoothed(
            kinds["probability"][:, positive], s_positive, width, "population"
        )
        columns["eo_gdp_logit_uniform"] = smoothed(
            scores[:, positive], s_positive, PUBLISHED_BANDWIDTH, "uniform"
        )
    spread = scores.std(1, correction=0)
    tiny = 1e-9 * scores.abs().mean(1) + 1e-30
    columns["gdp_standardized"] = columns["gdp_logit"] / (spread + tiny)
    columns["score_sd"] = spread
    return columns


def _auc(scores: Tensor, y: Tensor) -> Tensor:
    """Return the share of pairs of a positive and a negative row that the scores order correctly;
    ties count half.
    """
    negative = scores[y == 0].sort().values
    positive = scores[y == 1].contiguous()
    below = sum(
        torch.searchsorted(negative, positive, right=right).double().sum()
        for right in (False, True)
    )
    return torch.as_tensor(below / 2 / (len(negative) * len(positive)))


def smoothed(scores: Tensor, s: Tensor, bandwidth: float, weighting: str) -> Tensor:
    """Return the GDP of kernel-smoothed means for each model; scores (M, n), s (n,)."""
    grid, weights = evaluation_points(
        s, bandwidth, "uniform" if weighting == "uniform" else "population"
    )
    return gdp_value(scores, s, bandwidth, grid, weights)


def _leaks(fleet: Fleet, split: Split) -> dict[str, Tensor]:
    x, _, s = split.train.to(fleet.device)
    x, s = x[:PROBE_ROWS], s.reshape(len(s), -1)[:PROBE_ROWS, 0]
    x_test, _, s_test = split.test.to(fleet.device)
    s_test = s_test.reshape(len(s_test), -1)[:, 0]
    z, z_test = fleet.transform(x), fleet.transform(x_test)
    directions, phases = _cosines(z.shape[2], z)
    mean, spread = z.mean(1, keepdim=True), z.std(1, keepdim=True)
    spread = spread + 1e-3 * spread.mean(2, keepdim=True) + 1e-30

    def lifted(models: slice, values: Tensor) -> Tensor:
        return torch.cos((values[models] - mean[models]) / spread[models] @ directions + phases)

    return {
        "z_scale": (2 * z_test.var(1, correction=0).sum(1)).sqrt(),
        "hsic_unit": _unit_hsic(z_test[:, :HSIC_ROWS], s_test[:HSIC_ROWS]),
        "probe_r2_linear": probe_r2(z, s, z_test, s_test),
        "probe_r2_cosines": torch.cat(
            [
                probe_r2(lifted(slice(i, i + 16), z), s, lifted(slice(i, i + 16), z_test), s_test)
                for i in range(0, len(z), 16)
            ]
        ),
    }


def _unit_hsic(z: Tensor, s: Tensor) -> Tensor:
    """Return HSIC for each model, under Gaussian kernels with bandwidth 1 on both variables,
    regardless of the bandwidths used in training.
    """
    kernel = Gaussian(1.0)
    l = kernel.shifted(s[:, None], s[:, None])
    parts = [
        hsic_biased_from_gram(kernel.shifted(z[i : i + 16], z[i : i + 16]), l)
        for i in range(0, len(z), 16)
    ]
    return torch.cat(parts)


def _cosines(width: int, like: Tensor) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(0)
    directions = torch.randn(width, RANDOM_FEATURES, generator=generator) / math.sqrt(width)
    phases = torch.rand(RANDOM_FEATURES, generator=generator) * 2 * math.pi
    return directions.to(like), phases.to(like)
