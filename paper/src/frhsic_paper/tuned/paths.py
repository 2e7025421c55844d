"""The methods, their settings, and the paths of scores that they give.

The settings of a penalty differ between the models of one fleet, so that all trials of a method
train at once. A model is known by its random stream: a table holds the settings of a trial by the
seed of that stream, a function of the model's seed and split. The settings are a tensor, which a
fleet stacks like any other state.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any, Literal, NamedTuple

import numpy as np
import pandas as pd
import torch
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.special import expit
from threadpoolctl import threadpool_limits
from torch import Tensor

from frhsic import ParityClassifier, ParityRegressor
from frhsic.kernels import Gaussian
from frhsic.penalties import (
    EIPM,
    GDP,
    HSIC,
    Adversary,
    BinnedAdversary,
    BinnedMMD,
    DistanceCovariance,
    Penalty,
)
from frhsic.penalties.base import Batch
from frhsic.penalties.bins import quantile_edges
from frhsic.tables.encoding import TableEncoding
from frhsic.training import Member, Recipe, TrainingData, train
from frhsic.training.data import Purpose, stream_seed
from frhsic_paper.protocol import METHODS as PAPER_METHODS
from frhsic_paper.protocol import OWN
from frhsic_paper.tuned.rows import SPLITS, Role, Rows, divided
from frhsic_paper.yardsticks import CONTRACTED, REFERENCE, STEPS

TRIALS = 12
"""Trials of each method on each table; the first has the method's own defaults, the others are
quasi-random.
"""

WEIGHTS = (0.0, 0.3, 2.0, 10.0, 50.0, 300.0)
"""Weights of every trial of a network. The chosen trial gets `FINAL_WEIGHTS` of its own, between
those that matter.
"""

FINAL_WEIGHTS = 8

FIRST_SEED = 100

CLOSED_FORM = "closed form"


class Setting(NamedTuple):
    """One setting of a method: its default, and the range that it is drawn from, uniformly in the
    logarithm.
    """

    name: str
    default: float
    low: float
    high: float
    whole: bool = False

    def drawn(self, share: float) -> float:
        """Return the value at a share of the range."""
        value = self.low * (self.high / self.low) ** share
        return float(round(value)) if self.whole else float(f"{value:.4g}")


class Terms(NamedTuple):
    """How long a network is trained, and how it is regularized."""

    epochs: int | Literal["auto"]
    schedule: Literal["constant", "cosine"]
    decay: float
    floor: float


LONG, SHORT = Terms(200, "constant", 0.0, 0.0), Terms("auto", "cosine", 1e-3, 0.01)
"""Terms of trials 0 to 5, the paper's, and of trials 6 to 11."""

OF_TREES = (
    Setting("learning rate", 0.1, 0.03, 0.3),
    Setting("leaves", 31.0, 7.0, 63.0, whole=True),
    Setting("rows in a leaf", 20.0, 5.0, 100.0, whole=True),
)
OF_HSIC = (Setting("unit of z", 1.0, 0.1, 3.0), Setting("unit of s", 1.0, 0.2, 3.0))
RATE = Setting("learning rate of the adversary", 1e-3, 1e-4, 3e-2)
SETTINGS: dict[str, tuple[Setting, ...]] = {
    REFERENCE: (),
    CONTRACTED: OF_TREES,
    CLOSED_FORM: OF_TREES,
    "frhsic": OF_HSIC,
    "frem": (Setting("unit of z", 1.0, 0.3, 10.0), Setting("gamma", 0.5, 0.03, 1.0)),
    "reg-gdp": (Setting("bandwidth of s", 0.2, 0.02, 0.8),),
    "adv": (RATE,),
    "mmd": (Setting("bins", 10.0, 2.0, 20.0, whole=True),),
    "laftr": (RATE, Setting("bins", 4.0, 2.0, 12.0, whole=True)),
    "dcor": (),
    OWN: OF_HSIC,
}
"""Settings of each method. Distance covariance has none of its own: only its terms differ."""

NETWORKS = (*PAPER_METHODS, OWN)


def quasi_random(number: int, dimensions: int) -> list[float]:
    """Return a point of a Kronecker sequence, which fills the unit cube more evenly than random
    draws do.

    Coordinate j is the fractional part of 1/2 + number · g^-(j + 1), where g solves g^(d + 1) = g +
    1.

    Examples
    --------
    >>> [round(quasi_random(number, 1)[0], 3) for number in (1, 2, 3)]
    [0.118, 0.736, 0.354]
    """
    root = 2.0
    for _ in range(40):
        root = (1 + root) ** (1 / (dimensions + 1))
    return [(0.5 + number * root ** -(j + 1)) % 1 for j in range(dimensions)]


def values_of(method: str, trial: int) -> tuple[float, ...]:
    """Return the settings of a trial."""
    settings = SETTINGS[method]
    shares = quasi_random(trial, len(settings))
    return tuple(one.drawn(share) if trial else one.default for one, share in zip(settings, shares))


def terms_of(trial: int) -> Terms:
    """Return the terms of a trial."""
    return LONG if trial < TRIALS // 2 else SHORT


class Point(NamedTuple):
    """One point of a path: scores on the rows that are not trained on, and decisions where a method
    has its own.
    """

    method: str
    trial: int
    split: int
    dial: float
    scores: np.ndarray
    decisions: np.ndarray | None = None


# Trees


def trees(table: Rows, values: Sequence[float], seed: int) -> Any:
    """Return LightGBM on one thread, at its defaults if there are no settings."""
    names = ("learning_rate", "num_leaves", "min_child_samples")
    kinds = (float, int, int)
    settings = {name: kind(value) for name, kind, value in zip(names, kinds, values)}
    return (LGBMClassifier if table.binary else LGBMRegressor)(
        n_jobs=1, verbose=-1, random_state=seed, **settings
    )


def scores_of(model: Any, X: pd.DataFrame) -> np.ndarray:
    """Return predictions, or the probability of class 1."""
    return np.asarray(
        model.predict_proba(X)[:, 1] if hasattr(model, "predict_proba") else model.predict(X)
    )


def contracted(scores: np.ndarray, binary: bool) -> Iterator[tuple[float, np.ndarray]]:
    """Yield shares and scores, contracted towards 1/2, or towards their mean if they predict a
    number.
    """
    center = 0.5 if binary else scores.mean()
    for share in STEPS:
        yield float(share), center + (1 - share) * (scores - center)


def solved(
    model: Any, X: pd.DataFrame, s: np.ndarray | None, aim: str
) -> Iterator[tuple[float, np.ndarray, Any]]:
    """Yield positions along the frontier of a fitted closed form, scores, and decisions if it aims
    at these.
    """
    solution, regressions = model.solution_, model.regressions(X, None if s is None else s[:, None])
    for position in np.linspace(0, len(solution.parameters) - 1, len(STEPS)):
        f = np.mean(
            [solution.scores(own, *part) for own, part in zip(solution.at(position), regressions)],
            axis=0,
        )
        if aim == "decision":
            yield position, np.clip(f + solution.threshold, 0, 1), (f > 0).astype(float)
        else:
            yield position, f, None


def tree_path(table: Rows, method: str, role: Role, split: int, trial: int) -> list[Point]:
    """Return the path of a method on trees; the closed form has a variant for each aim when it is
    tested.
    """
    rows, others = (table.at(part) for part in divided(len(table.y), role, split))
    values = values_of(method, trial)
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if method != CLOSED_FORM:
            f = scores_of(trees(table, values, split).fit(rows.X, rows.y), others.X)
            shrunk = contracted(f, table.binary) if method == CONTRACTED else [(0.0, f)]
            return [Point(method, trial, split, dial, scores) for dial, scores in shrunk]
        points = []
        aims = ("score", "rank", "decision") if table.binary else ("score", "rank")
        for aim in aims if role == "test" else aims[:1]:
            kind: Any = ParityClassifier if table.binary else ParityRegressor
            model = kind(
                trees(table, values, split), limit=None, aim=aim, n_jobs=1, random_state=split
            )
            model.fit(rows.X, rows.y, sensitive_features=rows.s)
            path = solved(model, others.X, None, aim)
            points += [
                Point(f"{method} ({aim})", trial, split, dial, f, own) for dial, f, own in path
            ]
        return points


# Networks

Table = Mapping[int, tuple[float, ...]]
"""Settings of the trials, by the seed of a random stream."""

MOST_BINS = 20


def setting(place: int) -> Any:
    """Return an attribute that reads one of the settings; what the constructor writes into it is
    ignored.
    """
    return property(lambda self: self.settings[place], lambda self, value: None)


class Varied(Penalty):
    """A penalty that takes its settings from a table when it is prepared."""

    settings: Tensor | None

    def __init__(self, table: Table, **options: Any) -> None:
        super().__init__(**options)
        self.table = table
        self.register_buffer("settings", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        self.settings = torch.tensor(self.table[generator.initial_seed()], dtype=s.dtype)
        super()._prepare(s, generator)


class VariedUnit(Varied):
    """The first setting is the unit of Z, on top of the penalty's own scale."""

    def _in_units(self, batch: Batch) -> Tensor:
        assert self.settings is not None
        # a mixin: the penalty beside it has the method
        z: Tensor = super()._in_units(batch)  # type: ignore[misc]
        return z / self.settings[0]


class VariedHSIC(VariedUnit, HSIC):
    """HSIC with the unit of Z, and the bandwidth on S as a multiple of its own."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        assert self.scale_s_now is not None
        self.scale_s_now = self.scale_s_now * self.settings[1]


class VariedEIPM(VariedUnit, EIPM):
    """FREM with the bandwidth on Z, and γ."""

    gamma = setting(1)


class VariedGDP(Varied, GDP):
    """Reg-GDP with its bandwidth."""

    bandwidth = setting(0)


class VariedMMD(Varied, BinnedMMD):
    """Binned MMD with its number of bins: edges that are not used lie above every value."""

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        self.edges = torch.stack(
            [padded_edges(column, int(self.settings[0]), MOST_BINS) for column in s.mT]
        )


class VariedDistance(Varied, DistanceCovariance):
    """Distance covariance, which has no setting."""


class VariedAdversary(Varied, Adversary):
    """ADV with the learning rate of its adversary."""

    learning_rate = setting(0)


class VariedBinnedAdversary(Varied, BinnedAdversary):
    """LAFTR with the learning rate of its adversary, and its number of bins: outputs that are not
    used get no mass.
    """

    learning_rate = setting(0)
    unused: Tensor | None

    def __init__(self, table: Table, **options: Any) -> None:
        super().__init__(table, **options)
        self.register_buffer("unused", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        assert self.settings is not None
        bins = int(self.settings[1])
        self.edges = torch.stack([padded_edges(column, bins, self.bins) for column in s.mT])
        self.unused = torch.where(torch.arange(self.bins) < bins, 0.0, -1e4).to(s)

    def _loss(self, outputs: Tensor, s: Tensor) -> Tensor:
        assert self.unused is not None
        return super()._loss(outputs + self.unused, s)


def padded_edges(column: Tensor, bins: int, most: int) -> Tensor:
    """Return the inner edges of some quantile bins, followed by edges that no value reaches.

    Examples
    --------
    >>> padded_edges(torch.arange(5.0), 2, 4)
    tensor([2., inf, inf])
    """
    edges = quantile_edges(column, bins)
    return torch.cat([edges, torch.full((most - bins,), torch.inf).to(edges)])


PENALTIES: dict[str, Callable[[Table], Penalty]] = {
    "hsic": VariedHSIC,
    "frhsic": partial(
        VariedHSIC,
        kernel_z=Gaussian(1.0),
        scale_z="published",
        scale_s="published",
        head_weight=0.0,
        attributes="isotropic",
    ),
    "frem": VariedEIPM,
    "reg-gdp": VariedGDP,
    "mmd": VariedMMD,
    "dcor": VariedDistance,
    "adv": VariedAdversary,
    "laftr": partial(VariedBinnedAdversary, bins=12),
}
"""How each penalty is made from a table of settings."""


def network_paths(
    table: Rows,
    method: str,
    role: Role,
    weights: Mapping[int, Sequence[float]],
    device: str,
    **limits: int | None,
) -> tuple[list[Point], float]:
    """Train some trials of a network on every split, each at its weights, and return their paths
    and the seconds.

    Trials with the same terms are one fleet; the model's random stream tells the penalty which
    settings it has.
    """
    splits, epochs = limits.get("splits") or SPLITS[role], limits.get("epochs")
    parts = [_encoded(table, role, split) for split in range(splits)]
    points, seconds = list[Point](), 0.0
    for terms, group in groupby(sorted(weights), key=terms_of):
        own = [
            (trial, split, w) for trial in group for split in range(splits) for w in weights[trial]
        ]
        for width in sorted(
            {part.data.columns for part in parts}
        ):  # a category may be missing from a split
            among = [k for k, part in enumerate(parts) if part.data.columns == width]
            here = [one for one in own if one[1] in among]
            members = [
                Member(w, FIRST_SEED + trial, among.index(split)) for trial, split, w in here
            ]
            settings = {
                stream_seed(m.seed, m.split, Purpose.PENALTY): values_of(
                    method, m.seed - FIRST_SEED
                )
                for m in members
            }
            recipe = Recipe(
                "binary" if table.binary else "regression",
                partial(PENALTIES[method], settings),
                epochs=epochs or terms.epochs,
                schedule=terms.schedule,
                weight_decay=terms.decay,
                variance_floor=terms.floor,
            )
            fleet = train(
                TrainingData.stacked([parts[k].data for k in among]), members, recipe, device=device
            )
            seconds += fleet.seconds
            x = torch.stack([parts[k].x for k in among]).to(fleet.device)
            raw = fleet.scores(x)[..., 0].double().cpu().numpy()
            for (trial, split, w), f in zip(here, raw):
                scores = expit(f) if table.binary else f * parts[split].spread + parts[split].center
                points.append(Point(method, trial, split, w, scores))
    return points, seconds


class _Part(NamedTuple):
    """One split, encoded: rows to train on, the other rows, and the scale of a real target."""

    data: TrainingData
    x: Tensor
    center: float
    spread: float


def _encoded(table: Rows, role: Role, split: int) -> _Part:
    """Encode one split as the paper does: columns, attribute and a real target scaled by the
    training rows.
    """
    rows, others = (table.at(part) for part in divided(len(table.y), role, split))
    features = TableEncoding.fit(rows.X, scaling="range")
    attribute = TableEncoding.fit(pd.DataFrame({"s": rows.s}), scaling="range")
    center, spread = (0.0, 1.0) if table.binary else (float(rows.y.mean()), float(rows.y.std()))
    data = TrainingData.of(
        features(rows.X), (rows.y - center) / spread, attribute(pd.DataFrame({"s": rows.s}))
    )
    return _Part(data, torch.as_tensor(features(others.X), dtype=torch.float32), center, spread)


def refined(weights: Sequence[float], gaps: Sequence[float], reference: float) -> tuple[float, ...]:
    """Return 0 and weights between the one that does nothing yet and the one that does all that is
    asked.

    From the last weight whose mean GDP is above 90 % of the reference to the first below 15 %,
    equal steps in the logarithm. Where a path has no such weight, a third of its least or three
    times its largest weight is taken.

    Examples
    --------
    >>> refined((0.0, 1.0, 10.0, 100.0), (1.0, 0.95, 0.5, 0.1), 1.0)
    (0.0, 1.0, 2.15443, 4.64159, 10.0, 21.5443, 46.4159, 100.0)
    """
    positive = [(w, g) for w, g in zip(weights, gaps) if w > 0]
    low = max((w for w, g in positive if g > 0.9 * reference), default=positive[0][0] / 3)
    high = min(
        (w for w, g in positive if g < 0.15 * reference and w > low), default=3 * positive[-1][0]
    )
    return (0.0, *(float(f"{w:.6g}") for w in np.geomspace(low, high, FINAL_WEIGHTS - 1)))
