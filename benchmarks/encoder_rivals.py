"""What boosted trees read of S from `ParityEncoder` and from the Z of networks with a penalty, at
equal performance of the task head, on rows that none of them has seen.

    python benchmarks/encoder_rivals.py rivals show --jobs 16 --out FOLDER
    python benchmarks/encoder_rivals.py figure --out FOLDER     # docs/figures/encoder-leak.png

Networks train on a GPU if there is one. Their weights and the terms of training are chosen on a
fifth of the training rows: the trade-offs that no other one beats there are fitted again on all
training rows and measured on fresh ones. The penalties' own settings are their defaults. The
encoder has all of its trade-offs, and nothing of it is chosen. Performance is AUC, or R² of a
number. Between two trade-offs, the leak is interpolated.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from encoder import (
    BOOSTED,
    TABLES,
    Record,
    Study,
    along,
    command_line,
    grouped,
    head_of,
    markdown,
    parts_of,
    recovered,
    standard_error,
)

from frhsic import FRHSICClassifier, FRHSICRegressor, ParityEncoder, load_dataset
from frhsic.datasets import Dataset
from frhsic.estimators.network import fit_path
from frhsic.training import Training
from frhsic_paper.plot import ACCENT, LOOKS, finish, panels, styled
from frhsic_paper.printed import dataset_name, method_name

FIGURE = Path(__file__).parents[1] / "docs" / "figures" / "encoder-leak.png"

# Tables of the figure, and the least sum of R² that it tells apart.
DRAWN = ("adult", "acs_income", "meps", "crime")
FLOOR = 1e-3

# Networks, the weights of their penalties, and the terms of training: the paper's, and shorter ones
# with weight decay.
METHODS = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr", "dcor", "hsic")
WEIGHTS = np.geomspace(0.1, 1000, 7).tolist()
TERMS = (
    Training(),
    Training(epochs="auto", schedule="cosine", weight_decay=1e-3, variance_floor=0.01),
)

# Rows that fit the probes which choose, and fresh rows, at most.
PROBED = 3_000
FRESH = 10_000


def network_score(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Return the predicted number, or the probability of the second class."""
    if isinstance(model, FRHSICRegressor):
        return np.asarray(model.predict(X))
    return np.asarray(model.predict_proba(X)[:, 1])


def undominated(points: Sequence[Sequence[float]]) -> list[int]:
    """Return the places of the points (head, leak) that no other one beats in both.

    >>> undominated([(0.8, 0.3), (0.7, 0.1), (0.7, 0.2)])
    [0, 1]
    """
    kept = []
    for place, (head, leak) in enumerate(points):
        better = [
            other
            for other in points
            if other[0] >= head and other[1] <= leak and tuple(other) != (head, leak)
        ]
        if not better:
            kept.append(place)
    return kept


def tuned_networks(
    data: Dataset, method: str, X: pd.DataFrame, y: np.ndarray, s: np.ndarray, seed: int
) -> list[Any]:
    """Return networks fitted on all rows, at the terms and weights that a fifth of them chose."""
    kind = FRHSICRegressor if data.task == "regression" else FRHSICClassifier
    networks = [kind(penalty=method, training=terms, random_state=seed) for terms in TERMS]
    fitting = np.arange(len(y)) < 4 * len(y) // 5
    probed = np.arange(len(y)) >= fitting.sum() - PROBED
    tried = []
    points = []
    for network in networks:
        path = fit_path(
            network,
            X[fitting],
            y[fitting],
            penalty_weights=WEIGHTS,
            sensitive_features=s[fitting],
        )
        for model, weight in zip(path, WEIGHTS):
            head = head_of(data, y[~fitting], network_score(model, X[~fitting]))
            z = model.transform(X[probed])
            read = recovered(z, s[probed], BOOSTED, fitting[probed])["boosted trees"]
            tried.append((network, weight))
            points.append((head, read[2]))
    chosen = [tried[place] for place in undominated(points)]
    models = []
    for network in networks:
        weights = [weight for own, weight in chosen if own is network]
        if weights:
            models += fit_path(network, X, y, penalty_weights=weights, sensitive_features=s)
    return models


def rivals(split: int, table: str, method: str) -> Record:
    """Return the head's performance and what boosted trees read of S, along the trade-offs."""
    data = load_dataset(table)
    X, y, s, train, fresh = parts_of(data, split)
    fresh = fresh[:FRESH]
    columns = X.iloc[train].reset_index(drop=True)
    new = X.iloc[fresh].reset_index(drop=True)
    pairs = []
    if method == "prototypes":
        encoder = ParityEncoder(limit=None, random_state=split)
        encoder.fit(columns, y[train], sensitive_features=s[train])
        for moved in along(encoder):
            z = np.asarray(moved.transform(new))
            pairs.append((z, z[:, 0]))
    else:
        for model in tuned_networks(data, method, columns, y[train], s[train], split):
            pairs.append((model.transform(new), network_score(model, new)))
    points = []
    for z, score in pairs:
        read = recovered(z, s[fresh], BOOSTED)["boosted trees"]
        points.append([head_of(data, y[fresh], score), *read])
    return {"points": points}


def leak_at(points: list[list[float]], heads: np.ndarray) -> np.ndarray:
    """Return the sum of positive R² at performances of the head, interpolated along a path."""
    ordered = sorted(points)
    reached = [point[0] for point in ordered]
    return np.asarray(np.interp(heads, reached, [point[3] for point in ordered]))


def common_heads(*paths: list[list[float]], count: int = 5) -> np.ndarray:
    """Return performances that all paths reach, evenly spaced; none, if there are none."""
    low = max(min(point[0] for point in path) for path in paths)
    high = min(max(point[0] for point in path) for path in paths)
    return np.linspace(low, high, count) if low < high else np.zeros(0)


def common_leaks(own: list[list[float]], other: list[list[float]]) -> list[float]:
    """Return the mean leak of two paths over performances that both reach, or nothing."""
    heads = common_heads(own, other)
    return [float(leak_at(path, heads).mean()) for path in (own, other)] if len(heads) else []


def beats(better: list[list[float]], worse: list[list[float]]) -> bool:
    """Return whether a trade-off of a path has more performance than another path at its best, and
    less leak.
    """
    most = max(worse)
    return any(point[0] > most[0] and point[3] < most[3] for point in better)


def show_rivals(records: list[Record]) -> str:
    """Return by how much each rival leaks more than prototypes at equal performance of the head:
    the mean over five performances that both reach, and over the splits, with its error.
    """
    paths = {
        key: own[0]["points"] for key, own in grouped(records, "table", "split", "method").items()
    }
    lines = []
    tables = dict.fromkeys(record["table"] for record in records)
    splits = sorted({record["split"] for record in records})
    for table, method in product(tables, METHODS):
        leaks = []
        apart = ahead = behind = 0
        for split in splits:
            own = paths.get((table, split, "prototypes"))
            other = paths.get((table, split, method))
            if own is None or other is None:
                continue
            if common := common_leaks(own, other):
                leaks.append(common)
            else:
                apart += 1
                ahead += beats(own, other)
                behind += beats(other, own)
        means = np.mean(leaks, axis=0) if leaks else np.full(2, np.nan)
        error = standard_error([other - own for own, other in leaks])
        difference = means[1] - means[0]
        lines.append([table, method, *means, difference, error, len(leaks), apart, ahead, behind])
    names = ["table", "rival", "prototypes", "its leak", "difference", "error", "splits", "apart"]
    frame = pd.DataFrame(lines, columns=[*names, "ahead", "behind"])
    known = frame.dropna(subset=["difference", "error"])
    less = int((known["difference"] > 2 * known["error"]).sum())
    more = int((known["difference"] < -2 * known["error"]).sum())
    return (
        f"{markdown(frame)}\n\nAt equal performance of the head, prototypes leak less by more than"
        f" two errors in {less} of {len(known)} cells, and more in {more}."
        f" {len(frame) - len(known)} cells have fewer than two splits in which both reach a common"
        " performance, and no error. apart: splits in which they reach none; ahead: of these,"
        " prototypes have more performance than the rival at its best, and less leak; behind: the"
        f" rival has both. Of {frame['apart'].sum()} such splits, prototypes are ahead in"
        f" {frame['ahead'].sum()} and behind in {frame['behind'].sum()}."
    )


def figure(records: list[Record]) -> None:
    """Draw what trees read of S against the head's performance, means over splits."""
    by_method = grouped(records, "table", "method")

    def paths_of(table: str, method: str) -> list[list[list[float]]]:
        return [record["points"] for record in by_method.get((table, method), [])]

    with styled():
        canvas, axes = panels(len(DRAWN))
        for axis, table in zip(axes, DRAWN):
            for method in ("prototypes", *METHODS):
                paths = paths_of(table, method)
                if not paths or not paths_of(table, "prototypes"):
                    continue
                heads = common_heads(*paths, *paths_of(table, "prototypes"), count=7)
                if not len(heads):
                    continue
                leaks = np.mean([leak_at(path, heads) for path in paths], axis=0)
                own = method == "prototypes"
                look = {"color": ACCENT, "marker": "o"} if own else LOOKS[method]
                axis.plot(
                    heads,
                    np.maximum(leaks, FLOOR),
                    **look,
                    label="ParityEncoder" if own else method_name(method),
                    linewidth=3 if own else 1.2,
                    markersize=6 if own else 3.5,
                    zorder=3 if own else 2,
                )
            regression = load_dataset(table).task == "regression"
            axis.set(
                title=dataset_name(table),
                xlabel="R² of the head" if regression else "AUC of the head",
                ylabel="S read from Z by trees (sum of R²)",
                yscale="log",
            )
            axis.locator_params(axis="x", nbins=4)
        finish(canvas, axes)
        canvas.savefig(FIGURE, dpi=144, metadata={"Software": None})


STUDY = Study(
    rivals,
    {"split": range(5), "table": TABLES, "method": ("prototypes", *METHODS)},
    show_rivals,
)


if __name__ == "__main__":
    command_line({"rivals": STUDY}, __doc__, figure)
