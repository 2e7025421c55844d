"""Certificates on real data: how tight they are, and how much training lowers them.

    python benchmarks/certificates.py                                                  # as the documentation has it
    python benchmarks/certificates.py --sections train --device cuda --models trained  # train where a GPU is ...
    python benchmarks/certificates.py --models trained --device cpu --out found.jsonl  # ... and measure elsewhere
    python benchmarks/certificates.py --sections models --datasets crime --epochs 20 --splits 42    # a quick look

Sections:

`forms`   Adult and Crime, test rows, an encoder trained without a penalty: the published, the trace and the tight
          form of the finite-sample theorem for several numbers of directions, for heads of norm 1.
`models`  Adult, COMPAS and Crime, test rows: FRHSIC as published, the default penalty, and none. The worst
          head's gap under one common kernel, what it would be with s shuffled, kernel-ridge heads of known norm
          below it, five other fresh heads beside it, and the factor by which training lowered it.

The common kernel is a Gaussian with bandwidth 1 on z divided by its median distance on the training rows, so that a
model that merely shrinks z gains nothing; s has one kernel and one set of directions for all models of a split. Each
result is one JSON line, appended to --out as it comes.
"""

from __future__ import annotations

import argparse
import json
import math
import time
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.neural_network import MLPClassifier, MLPRegressor
from torch import Tensor, nn

from frhsic._arrays import resolve_device
from frhsic.certificates import gdp_certificate, held_out_bound
from frhsic.certificates.directions import DirectionRule, NumericalRank, VarianceShare
from frhsic.certificates.gap import GapCertificate
from frhsic.datasets import Dataset, Split, load_dataset
from frhsic.dependence.operators import gram_times
from frhsic.kernels import Gaussian, Linear, median_bandwidth
from frhsic.kernels.bandwidth import gaussian_at_median
from frhsic.parity import gdp
from frhsic.penalties import HSIC
from frhsic.training import MLP, Member, Recipe, TrainingData, grid, train
from frhsic_paper.theory import KernelExpansion

RULES: dict[str, DirectionRule] = {
    "95 % of the variance of s": VarianceShare(0.95),
    "eigenvalues above 1e-6": NumericalRank(1e-6),
}
RIDGE_ROWS = 2000
FRESH_ROWS = 5000
RIDGES = (1e-3, 1e-2, 1e-1)
SHUFFLES = 20
KERNEL = Gaussian(1.0)


@dataclass(frozen=True)
class Trained:
    """The models of one method on all splits of a dataset: members, and their stacked parameters."""

    method: str
    members: list[Member]
    parameters: dict[str, Tensor]

    def module(self, index: int, columns: int) -> tuple[nn.Module, nn.Module]:
        """One model as (encoder, head)."""
        pair = nn.ModuleDict({"encoder": MLP()(columns), "head": nn.Linear(50, 1)})
        pair.load_state_dict({name: values[index] for name, values in self.parameters.items()})
        pair.requires_grad_(False)
        return pair["encoder"], pair["head"]

    def save(self, file: Path) -> None:
        members = np.array([[m.weight, m.seed, m.split] for m in self.members])
        np.savez(file, members=members, **{name: values.cpu().numpy() for name, values in self.parameters.items()})

    @classmethod
    def load(cls, method: str, file: Path) -> Trained:
        with np.load(file) as stored:
            members = [Member(float(w), int(seed), int(split)) for w, seed, split in stored["members"]]
            parameters = {name: torch.from_numpy(stored[name]) for name in stored.files if name != "members"}
        return cls(method, members, parameters)


METHODS = {"none": None, "FRHSIC": HSIC.published, "default": HSIC}


def trained_models(
    data: Dataset, splits: list[Split], weights: list[float], epochs: int, device: str, folder: Path | None
) -> Iterator[Trained]:
    """Every method on every split; models that lie in `folder` are taken from there."""
    rows = TrainingData.stacked([TrainingData.of(*split.train) for split in splits])
    seeds = [split.seed for split in splits]
    for method, penalty in METHODS.items():
        file = None if folder is None else folder / f"{data.name}-{method.replace(' ', '')}.npz"
        if file is not None and file.exists():
            yield Trained.load(method, file)
            continue
        members = grid(weights if penalty else [0.0], seeds, range(len(seeds)))
        fleet = train(
            rows,
            members,
            Recipe(data.task, penalty, epochs=epochs, weight_decay=0.0, variance_floor=0.0),
            device=device,
        )
        print(f"{data.name}, {method}: {len(members)} models, {epochs} epochs in {fleet.seconds:.0f} s", flush=True)
        result = Trained(method, list(fleet.members), {k: v.cpu() for k, v in fleet.parameters.items()})
        if file is not None:
            file.parent.mkdir(parents=True, exist_ok=True)
            result.save(file)
        yield result


def scaled(z_train: Tensor, z_test: Tensor) -> tuple[Tensor, Tensor, float]:
    """Both in units of the median distance of the training rows, in float64, and that unit."""
    unit = median_bandwidth(z_train)
    return z_train.double() / unit, z_test.double() / unit, unit


def shuffled(certificate: GapCertificate, z: Tensor, seed: int) -> float:
    """The tight form with the rows of s in random order, averaged: what is left without any dependence."""
    e = certificate.directions.vectors
    generator = torch.Generator().manual_seed(seed)
    order = [torch.randperm(len(e), generator=generator).to(e.device) for _ in range(SHUFFLES)]
    many = torch.cat([e[rows] for rows in order], dim=1)
    product = gram_times(KERNEL.shifted, z, many)
    m = e.shape[1]
    values = [
        float(torch.linalg.eigvalsh(many[:, i : i + m].T @ product[:, i : i + m])[-1]) / len(e)
        for i in range(0, many.shape[1], m)
    ]
    return float(np.mean(values))


def ridge_heads(z: Tensor, targets: dict[str, Tensor]) -> Iterator[tuple[str, KernelExpansion]]:
    """Kernel-ridge heads of known norm, fitted on training rows, for the target and for s itself."""
    z = z[:RIDGE_ROWS]
    gram = KERNEL(z, z)
    for ridge in RIDGES:
        solve = torch.linalg.cholesky(gram + ridge * len(z) * torch.eye(len(z), dtype=z.dtype, device=z.device))
        for name, target in targets.items():
            y = target[: len(z)].double()
            a = torch.cholesky_solve((y - y.mean())[:, None], solve)[:, 0]
            yield f"kernel ridge {ridge:g} for {name}", KernelExpansion(a, z)


def fresh_heads(task: str, seed: int) -> dict[str, Any]:
    """Five heads that no certificate has seen."""
    if task == "binary":
        return {
            "affine": LogisticRegression(max_iter=1000),
            "neighbours": KNeighborsClassifier(25),
            "forest": RandomForestClassifier(100, n_jobs=-1, min_samples_leaf=5, random_state=seed),
            "boosting": HistGradientBoostingClassifier(random_state=seed),
            "network": MLPClassifier(hidden_layer_sizes=(64,), max_iter=50, random_state=seed),
        }
    return {
        "affine": LinearRegression(),
        "neighbours": KNeighborsRegressor(25),
        "forest": RandomForestRegressor(100, n_jobs=-1, min_samples_leaf=5, random_state=seed),
        "boosting": HistGradientBoostingRegressor(random_state=seed),
        "network": MLPRegressor(hidden_layer_sizes=(64,), max_iter=50, random_state=seed),
    }


def fresh_scores(task: str, seed: int, z_train: Tensor, y: Tensor, z_test: Tensor) -> dict[str, np.ndarray]:
    rows = slice(0, FRESH_ROWS)
    x, target, test = z_train[rows].cpu().numpy(), y[rows].cpu().numpy(), z_test.cpu().numpy()
    scores = {}
    for name, head in fresh_heads(task, seed).items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the fresh network stops after 50 epochs
            head.fit(x, target)
        scores[name] = head.predict_proba(test)[:, 1] if task == "binary" else head.predict(test)
    return scores


def performance(task: str, scores: Tensor, y: Tensor) -> float:
    if task == "binary":
        return float(((scores > 0) == (y > 0.5)).double().mean())
    return float(((scores - y) ** 2).mean())


def forms(data: Dataset, trained: Trained, split: Split, device: str) -> Iterator[dict[str, Any]]:
    encoder, _ = trained.module(0, data.d)
    _, z, _ = scaled(*(encoder(part.x).to(device) for part in (split.train, split.test)))
    s = split.test.s.to(z)
    kernel_s = gaussian_at_median(split.train.s)
    for rule, label in [(m, f"{m}") for m in (1, 2, 3, 5, 8)] + [(r, n) for n, r in RULES.items()]:
        certificate = gdp_certificate(z, s, kernel_z=KERNEL, kernel_s=kernel_s, directions=rule, form="published")
        found = certificate.details
        yield {
            "section": "forms",
            "dataset": data.name,
            "n": found["n"],
            "rule": label,
            "m": found["directions"],
            "lambda_m": found["eigenvalues"][-1],
            "hsic": found["hsic"],
            "published": found["published"],
            "trace": found["trace"],
            "tight": found["tight"],
            "trivial": certificate.trivial,
            "published_vacuous": certificate.vacuous,
            "gain_trace": found["published"] / found["trace"],
            "gain_tight": found["published"] / found["tight"],
            "trace_if_shuffled": found["trace_if_shuffled"],
        }


def models(data: Dataset, trained: Trained, splits: list[Split], device: str) -> Iterator[dict[str, Any]]:
    for index, member in enumerate(trained.members):
        split = splits[member.split]
        encoder, head = trained.module(index, data.d)
        scores = head(encoder(split.test.x))[:, 0].double().to(device)
        z_train, z, unit = scaled(*(encoder(part.x).to(device) for part in (split.train, split.test)))
        s, s_train = split.test.s.to(z), split.train.s.to(z)
        kernel_s = gaussian_at_median(s_train)
        held_out = held_out_bound(z, s, KERNEL, kernel_s)
        ridge = {
            label: (head.norm(KERNEL, z), head.values(KERNEL, z))
            for label, head in ridge_heads(z_train, {"y": split.train.y.to(z), "s": s_train})
        }
        fresh = fresh_scores(data.task, member.seed, z_train, split.train.y, z)
        for rule, directions in RULES.items():
            worst = gdp_certificate(z, s, kernel_z=KERNEL, kernel_s=kernel_s, directions=directions)
            # the same head on z / unit has weights w · unit
            norm = float((head.weight[0].double().to(device) * unit).norm())
            affine = gdp_certificate(
                z, s, kernel_z=Linear(), kernel_s=kernel_s, scores=scores, norm=norm, directions=directions
            )
            unit_scores = (scores - scores.mean()) / scores.std().clamp_min(1e-12)
            deployed = gdp_certificate(
                z, s, kernel_z=KERNEL, kernel_s=kernel_s, scores=unit_scores, directions=directions
            )
            reached = {label: worst.gap(values) / (norm**2 * worst.value) for label, (norm, values) in ridge.items()}
            if max(reached.values()) > 1 + 1e-9:
                raise AssertionError(f"{data.name}: a head of known norm has a gap above its bound: {reached}")
            yield {
                "section": "models",
                "dataset": data.name,
                "method": trained.method,
                "weight": member.weight,
                "seed": member.seed,
                "rule": rule,
                "n": len(z),
                "m": worst.details["directions"],
                "performance": performance(data.task, scores, split.test.y.to(z)),
                "hsic": held_out.details["hsic"],
                "hsic_population_95": held_out.value,
                "gdp": float(gdp(scores, s, resamples=0)),
                "head_share_of_variance": share(worst, scores),
                "worst_gap": worst.value,
                "worst_gap_shuffled": shuffled(worst, z, member.seed),
                "deployed_gap": deployed.bounded,
                "deployed_bound": deployed.value,
                "own_affine_gap": affine.bounded,
                "own_affine_bound": affine.value,
                "own_affine_norm": affine.details["norm"],
                "worst_affine_gap": affine.details["tight"],
                "published_form": worst.details["published"],
                "trivial": worst.trivial,
                "ridge_norms": {label: norm for label, (norm, _) in ridge.items()},
                "ridge_share_of_bound": reached,
                "fresh_root_gap": {name: math.sqrt(worst.gap(values)) for name, values in fresh.items()},
                "fresh_share_of_variance": {name: share(worst, values) for name, values in fresh.items()},
            }


def share(certificate: GapCertificate, scores: Tensor | np.ndarray) -> float:
    """The share of the variance of scores that s explains along the directions; does not notice their scale."""
    values = torch.as_tensor(scores, dtype=torch.float64)
    return certificate.gap(values) / max(float(values.var(correction=0)), 1e-300)


def write(record: dict[str, Any], out: Path | None) -> dict[str, Any]:
    if out is not None:
        with out.open("a") as file:
            file.write(json.dumps(record) + "\n")
    return record


def show_forms(records: list[dict[str, Any]]) -> None:
    print(
        f"\n{'dataset':8}{'m':>4} {'λ_m':>9} {'published':>10} {'trace':>9} {'tight':>9} "
        f"{'÷ trace':>9} {'÷ tight':>9}  rule"
    )
    for r in records:
        note = " (vacuous)" if r["published_vacuous"] else ""
        print(
            f"{r['dataset']:8}{r['m']:4} {r['lambda_m']:9.2e} {r['published']:10.4g} {r['trace']:9.4g} "
            f"{r['tight']:9.4g} {r['gain_trace']:9.3g} {r['gain_tight']:9.3g}  {r['rule']}{note}"
        )


def show_models(records: list[dict[str, Any]]) -> None:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for r in sorted(records, key=lambda r: (r["dataset"], r["rule"])):
        groups[r["dataset"], r["rule"], r["method"], r["weight"]].append(r)
    header = ("perf", "gdp", "worst gap", "shuffled", "lowered", "net", "ridge y", "ridge s", "own", "affine", "fresh")
    print("\nmeans over splits; worst gap: tight form for norm 1; lowered: none ÷ this; net: the same less shuffled;")
    print(
        "ridge: largest share of the bound that a kernel-ridge head for y or for s reaches; own, affine, fresh: share"
    )
    print(
        "of the variance of the scores that s explains, for the model's own head, a fresh affine one, the worst of five"
    )
    last = None
    for (dataset, rule, method, weight), rows in groups.items():
        if (dataset, rule) != last:
            print(f"\n{dataset}, {rule}, m = {rows[0]['m']}, n = {rows[0]['n']}")
            print(f"{'':26}" + "".join(f"{h:>10}" for h in header))
            last = (dataset, rule)
        base = {r["seed"]: r for r in groups[dataset, rule, "none", 0.0]}
        pairs = [(base[r["seed"]], r) for r in rows]
        above = [[r["worst_gap"] - r["worst_gap_shuffled"] for r in pair] for pair in pairs]
        cells = [
            *(np.mean([r[key] for r in rows]) for key in ("performance", "gdp", "worst_gap", "worst_gap_shuffled")),
            np.exp(np.mean([math.log(none["worst_gap"] / r["worst_gap"]) for none, r in pairs])),
            net(*np.mean(above, axis=0)),
            *(
                np.mean([max(v for k, v in r["ridge_share_of_bound"].items() if k.endswith(target)) for r in rows])
                for target in (" y", " s")
            ),
            np.mean([r["head_share_of_variance"] for r in rows]),
            np.mean([r["fresh_share_of_variance"]["affine"] for r in rows]),
            np.mean([max(r["fresh_share_of_variance"].values()) for r in rows]),
        ]
        print(f"{method:18}λ={weight:<6g}" + "".join(f"{c:10.3g}" for c in cells))


def net(before: float, after: float) -> float:
    """How many times smaller the gap beyond chance is; infinite where nothing is left beyond chance."""
    return before / after if after > 0 else math.inf


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sections", default="forms,models")
    parser.add_argument("--datasets", default="adult,compas,crime")
    parser.add_argument("--epochs", type=int, default=200)
    parser.add_argument("--splits", default="42,43,44")
    parser.add_argument("--weights", default="1,10,100")
    parser.add_argument("--models", type=Path, help="folder of trained models: read where they are, else written")
    parser.add_argument("--rows", type=int, default=None, help="take the first rows of a dataset alone")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(argv)
    device = str(resolve_device(options.device))
    seeds = [int(seed) for seed in options.splits.split(",")]
    weights = [float(weight) for weight in options.weights.split(",")]
    sections = options.sections.split(",")
    found: dict[str, list[dict[str, Any]]] = {"forms": [], "models": []}
    for name in options.datasets.split(","):
        data = load_dataset(name)
        data = data.take(range(data.n)[: options.rows])
        splits = [data.split(seed, validation=0.15) for seed in seeds]
        for trained in trained_models(data, splits, weights, options.epochs, device, options.models):
            start = time.perf_counter()
            if "forms" in sections and trained.method == "none" and name != "compas":
                found["forms"] += [write(r, options.out) for r in forms(data, trained, splits[0], device)]
            if "models" in sections:
                found["models"] += [write(r, options.out) for r in models(data, trained, splits, device)]
                print(f"{name}, {trained.method}: measured in {time.perf_counter() - start:.0f} s", flush=True)
            elif sections == ["forms"]:
                break
    if found["forms"]:
        show_forms(found["forms"])
    if found["models"]:
        show_models(found["models"])


if __name__ == "__main__":
    main()
