r"""The library's own representation, `ParityEncoder`, compared with FRHSIC's on the paper's tables.

Part "limits" of the records, one for each dataset, repeat and limit:

- ``dataset`` and ``repeat`` are those of the sweep; ``method`` is "prototypes";
- ``weight`` is the share of the unconstrained gap that is allowed: 1 means no limit, 0 the smallest
  gap that is reached;
- ``performance`` and the other measures are those of the sweep
  (:func:`frhsic_paper.measures.measure_models`), for the paper's affine head on Z, where Z has
  variance 1;
- ``mi`` and ``mi_published`` are those of the study "mutual-information";
- ``heads`` is {head: [performance, gdp]} for the heads of the study "transfer", and
  ``head_deviation`` (published) the standard deviation of their GDP;
- ``worst_gdp`` and ``best_probe_r2`` (corrected) are those of the study "leak".

The encoder is fitted on four fifths of the training rows, and heads and probes on the rest, since Z
can't be evaluated on the rows to which it was fitted.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.preprocessing import StandardScaler
from torch import nn

from frhsic.datasets.dataset import Task
from frhsic.estimators import IndistinctGapWarning, ParityEncoder, UnmetLimitWarning
from frhsic.training import Member, Recipe, TrainingData, train
from frhsic_paper.claim import FEWEST_SPLITS, Cases
from frhsic_paper.datasets import load_variant
from frhsic_paper.frontiers import (
    column_means,
    finite_records,
    is_error,
    matched_by_split,
    printed_name,
    record_datasets,
    shared_repeats,
    swept_datasets,
)
from frhsic_paper.grid import FIRST_SEED, held_out
from frhsic_paper.measures import measure_models
from frhsic_paper.models import Key
from frhsic_paper.options import Options
from frhsic_paper.printed import method_name
from frhsic_paper.protocol import BASELINE, DATASETS, PROTOCOLS, Protocol
from frhsic_paper.records import Record, Unit, matching
from frhsic_paper.results import Results
from frhsic_paper.splits import Split, Subset
from frhsic_paper.steps import Computation
from frhsic_paper.studies.leak import TRAIN_ROWS
from frhsic_paper.studies.synthetic import is_clearly_below
from frhsic_paper.studies.transfer import fit_published_heads, fresh_heads
from frhsic_paper.study import Study
from frhsic_paper.sweep import CHOSEN_REPEATS, information
from frhsic_paper.table import Cell, Column, Listed, Table

OWN = "prototypes"

RIVAL = "frhsic"

LIMITS = {1.0: None, 0.8: "80%", 0.6: "60%", 0.4: "40%", 0.2: "20%", 0.0: 0}

HEAD_ROWS = 0.2
"""Share of the training rows to which the encoder is not fitted."""

HEAD_EPOCHS, HEAD_RATE = 200, 0.1
"""Training of the affine head. The learning rate is above the paper's and falls to zero: with few
rows, a head that hasn't converged has small scores, and so a small GDP.
"""

MEASURES = {
    "published": {
        "GDP": "gdp_logit_uniform",
        "HSIC × 1000": "hsic_unit",
        "MI": "mi",
        "MI, as published": "mi_published",
        "R² of a linear probe": "probe_r2_linear",
        "deviation over four heads": "head_deviation",
    },
    "corrected": {
        "GDP": "gdp_probability",
        "HSIC × 1000": "hsic_unit",
        "MI": "mi",
        "R² of the best probe": "best_probe_r2",
        "worst of five fresh heads": "worst_gdp",
    },
}
"""Columns that are compared, by heading; smaller is better."""


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the tables and their splits."""
    repeats = range(options.limit_repeats(CHOSEN_REPEATS))
    return {(name, r): len(LIMITS) for name in options.chosen_datasets(DATASETS) for r in repeats}


def limits(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the records of each table and split."""
    alone = replace(options, watch=None, workers=1, device="cpu")
    tasks = (delayed(on_split)(*unit, protocol, alone) for unit in missing)
    yield from Parallel(
        n_jobs=min(options.workers, len(missing)), return_as="generator", pre_dispatch="n_jobs"
    )(tasks)


def on_split(name: str, repeat: int, protocol: Protocol, options: Options) -> list[Record]:
    """Fit an encoder, and the paper's heads on its Z, and measure both at every limit."""
    data = load_variant(name, protocol)
    splits = encode_split(held_out(protocol).make(data, repeat + 1)[repeat])
    rows = TrainingData.stacked([TrainingData.of(*split.train) for split in splits])
    epochs = min(options.epochs or HEAD_EPOCHS, HEAD_EPOCHS)
    recipe = Recipe(
        data.task,
        encoder=nn.Identity,
        epochs=epochs,
        learning_rate=HEAD_RATE,
        schedule="cosine",
    )
    members = [Member(0.0, FIRST_SEED + repeat, k) for k in range(len(splits))]
    fleet = train(rows, members, recipe, device="cpu")
    found = []
    for k, (share, columns) in enumerate(zip(LIMITS, measure_models(fleet, splits, data.task))):
        (known,) = next(iter(information(fleet.select([k]), splits[k], data.task)))
        about = {"method": OWN, "weight": share, "task": data.task}
        transferred = _transferred(splits[k], data.task, protocol, options)
        found.append(about | columns | known | transferred)
    return found


def encode_split(split: Split) -> list[Split]:
    """Return the split at every limit, with Z in place of X. Its training rows are those of the
    heads, which also determine the scale of Z.
    """
    rows = split.train.rows
    seen = round((1 - HEAD_ROWS) * len(rows))
    x, y, s = split.train
    encoder = ParityEncoder(n_jobs=1, random_state=split.seed)
    encoder.fit(x[:seen].numpy(), y[:seen].numpy(), sensitive_features=s[:seen].numpy())
    heads = Subset(x=x[seen:], y=y[seen:], s=s[seen:], rows=rows[seen:])
    found = []
    for limit in LIMITS.values():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UnmetLimitWarning)
            warnings.simplefilter("ignore", IndistinctGapWarning)
            served = encoder.at(limit)
        scaler = StandardScaler().fit(served.transform(heads.x.numpy()))
        in_z = partial(_in_z, served=served, scaler=scaler)
        validation = None if split.validation is None else in_z(split.validation)
        found.append(
            replace(split, train=in_z(heads), test=in_z(split.test), validation=validation)
        )
    return found


def _in_z(part: Subset, served: ParityEncoder, scaler: StandardScaler) -> Subset:
    z = scaler.transform(served.transform(part.x.numpy()))
    return replace(part, x=torch.from_numpy(z).float())


def _transferred(split: Split, task: Task, protocol: Protocol, options: Options) -> Record:
    """Fit the heads of the study "transfer" on Z."""
    if protocol.printed:
        (heads,) = fit_published_heads([(split.train.x, split.test.x)], split, task, options)
        return {
            "heads": {head["head"]: [head["performance"], head["gdp"]] for head in heads},
            "head_deviation": float(np.std([head["gdp"] for head in heads])),
        }
    fresh = fresh_heads(lambda z: z, split, TRAIN_ROWS)
    probe = fresh.probes[0]
    return {
        "heads": {head.head: [head.performance, head.gdp] for head in fresh.heads},
        "worst_gdp": fresh.worst.gdp,
        "best_probe_r2": max(probe.linear_r2, probe.trees_r2),
    }


SETTINGS = (LIMITS, HEAD_ROWS, HEAD_EPOCHS, HEAD_RATE, TRAIN_ROWS)

MEASURE = Computation(
    OWN, "limits", ("dataset", "repeat"), units, limits, dict.fromkeys(PROTOCOLS, SETTINGS)
)


def join_networks(results: Results, protocol: Protocol) -> list[Record]:
    """Return the records, with those of FRHSIC and the unpenalized model on the same splits."""
    own, sweep = (results.records(name, protocol.name) for name in (OWN, "tradeoff"))
    known: dict[Key, Record] = {}
    for study in ("mutual-information", "leak"):
        for r in results.records(study, protocol.name):
            known.setdefault(Key.from_record(r), {}).update(r)
    rivals = [
        known.get(Key.from_record(r), {}) | r for r in sweep if r["method"] in (BASELINE, RIVAL)
    ]
    datasets = {*swept_datasets(rivals)} & {*record_datasets(own)}
    return shared_repeats([r for r in (*rivals, *own) if r["dataset"] in datasets])


def matched_records(
    records: Sequence[Record], dataset: str, protocol: Protocol
) -> dict[str, list[Record]]:
    """Return the records of each method at its smallest GDP within 1 % of the unpenalized
    performance, chosen as in the protocol; none if no model is within 1 %.
    """
    points = matched_by_split(records, dataset, protocol)
    return {method: [r for r, inside in some if inside] for method, some in points.items()}


def headings(columns: Mapping[str, str]) -> list[Column]:
    """Return the headings of the measures."""
    return [Column(name, 3, 1000.0 if "1000" in name else 1.0) for name in columns]


def estimated(protocol: Protocol) -> dict[str, str]:
    """Return the measures except the published estimate of mutual information, which is 0 for any Z
    with few values.
    """
    return {name: c for name, c in MEASURES[protocol.name].items() if c != "mi_published"}


def matched_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of measures within 1 % of the unpenalized performance."""
    rows: list[list[Cell]] = []
    for dataset in record_datasets(records):
        points = matched_records(records, dataset, protocol)
        for method in (BASELINE, RIVAL, OWN):
            names = ("performance", *MEASURES[protocol.name].values())
            means = column_means(points.get(method, []), names)
            rows.append([printed_name(dataset), method_name(method), *means])
    columns = headings(MEASURES[protocol.name])
    return Table.from_rows(["dataset", "method", "performance", *columns], rows)


def limits_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of measures at every limit."""
    measures = estimated(protocol)
    rows: list[list[Cell]] = []
    for dataset in record_datasets(records):
        for share in LIMITS:
            own = matching(records, dataset=dataset, weight=share)
            columns = ("performance", "auc", *measures.values())
            rows.append([printed_name(dataset), f"{share:.0%}", *column_means(own, columns)])
    names = ("dataset", "allowed share of the gap", "performance", "AUC")
    return Table.from_rows([*names, *headings(measures)], rows)


def verdict_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table of the number of datasets on which each of two methods is better, by more than
    two standard errors over paired splits.
    """
    datasets = record_datasets(records)
    points = {d: matched_records(records, d, protocol) for d in datasets}
    near = {d: (p.get(OWN, []), p.get(RIVAL, [])) for d, p in points.items()}
    compared = {
        f"{name.removesuffix(' × 1000')}, within 1 % of Unfair's performance": (column, near)
        for name, column in estimated(protocol).items()
    }
    compared["performance at these points"] = "performance", near
    for share, words in ((1.0, "without a limit"), (0.0, "at the least gap")):
        pairs = {
            d: (
                matching(records, dataset=d, method=OWN, weight=share),
                matching(records, dataset=d, method=BASELINE),
            )
            for d in datasets
        }
        compared[f"performance {words}, beside Unfair"] = "performance", pairs
    rows = []
    for words, (column, pairs) in compared.items():
        if cases := _better_and_worse(column, pairs):
            counts = (Cases.counted(some) for some in zip(*cases))
            rows.append([words, *map(str, counts)])
    return Table.from_rows(("", "ParityEncoder better", "worse"), rows)


def _better_and_worse(
    column: str, pairs: Mapping[str, tuple[Sequence[Record], ...]]
) -> list[tuple[bool, bool]]:
    """Return whether the first of two methods is better, and whether it is worse, on each dataset
    with enough splits of both methods.
    """
    cases = []
    for dataset, records in pairs.items():
        own, other = (
            {r["repeat"]: float(r[column]) for r in finite_records(some, column)}
            for some in records
        )
        if len(own.keys() & other.keys()) >= FEWEST_SPLITS:
            less_is_better = column != "performance" or is_error(dataset)
            least, most = (own, other) if less_is_better else (other, own)
            cases.append((is_clearly_below(least, most), is_clearly_below(most, least)))
    return cases


def tables(results: Results) -> list[Listed]:
    """Return the verdict, matched points and all limits, under each protocol."""
    listed = []
    for protocol in PROTOCOLS.values():
        if not (records := join_networks(results, protocol)):
            continue
        of = f", {protocol.name} protocol"
        own = matching(records, method=OWN)
        listed += [
            Listed(
                f"Tables on which ParityEncoder is better or worse than FRHSIC or Unfair{of}",
                verdict_table(records, protocol),
            ),
            Listed(f"Within 1 % of Unfair's performance{of}", matched_table(records, protocol)),
            Listed(f"Every limit{of}", limits_table(own, protocol), folded=True),
        ]
    return listed


STUDY = Study(
    name=OWN,
    about="the library's ParityEncoder compared with FRHSIC by the paper's measures",
    title="Prototypes in place of a trained representation",
    words="""
        `ParityEncoder` gives each row one of a few prototypes, so that no head of Z can have a
        large gap; it is solved, not trained, and S is not needed to predict. Here it is compared
        with FRHSIC on the five tables and five splits of the sweep, at six limits: none, 80, 60, 40
        and 20 % of the unconstrained gap, and the least gap. It is fitted on four fifths of the
        training rows; the paper's affine head, its other heads and the probes are fitted on the
        rest, so that no row is used both to solve for Z and to judge it. FRHSIC uses all training
        rows for both. On a table, one of the two is better if it leads by more than two standard
        errors over paired splits; a table on which one of them never keeps 99 % of Unfair's
        performance is not counted.

        Limits of this comparison. Z keeps only the target: even without a limit it reveals less of
        S than 50 columns do, and it is of no use for other targets. (The paper's transfer is to
        other heads of the same target.) Prototypes come from boosted trees and splines, FRHSIC's Z
        from a network: part of the difference in performance is due to these models. HSIC has
        bandwidth 1 and depends on the scale of Z, which is 1 for prototypes and results from
        training for FRHSIC. The published estimate of mutual information counts ties as neighbours
        and is 0 for every Z with few values. The deviation over four heads mixes logits and labels
        ([the paper's](transfer.md#transfer-below-unfair)); the networks among those heads are
        trained for the paper's 100 epochs, so they take fewer steps on the fewer rows here, and
        have smaller scores.
    """,
    measure=(MEASURE,),
    tables=tables,
)
