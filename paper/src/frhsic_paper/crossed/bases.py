"""Four base models. Each is a type of model that predicts y and functions of S, and is combined
with every method.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pandas as pd
import torch
from lightgbm import LGBMClassifier, LGBMRegressor
from scipy.linalg import solve
from scipy.special import expit
from sklearn.preprocessing import SplineTransformer
from torch import Tensor

from frhsic.tables.encoding import Scaling, TableEncoding
from frhsic.tables.schema import Schema
from frhsic.training import MLP, Member, Recipe, TrainingData, train
from frhsic.training.data import Purpose, stream_seed
from frhsic_paper.crossed.penalties import PENALTIES
from frhsic_paper.crossed.rows import Rows
from frhsic_paper.crossed.settings import Setting

Values = tuple[float, ...]


class Fit(NamedTuple):
    """A regression: its training rows, the rows to predict, the target for every row of the table,
    whether the target is 0/1, and the weights of the training rows.
    """

    train: np.ndarray
    others: np.ndarray
    target: np.ndarray
    binary: bool
    weights: np.ndarray | None = None


class Base(ABC):
    """A type of model. Its `settings` are tuned separately for y and for the functions of S."""

    settings: ClassVar[tuple[Setting, ...]] = ()

    @abstractmethod
    def outputs(
        self, table: Rows, fits: Sequence[Fit], values: Values, device: str
    ) -> list[np.ndarray]:
        """Return the predictions of each regression: probabilities, or numbers."""


class Trees(Base):
    """LightGBM on one thread, with nominal columns as categories."""

    settings = (
        Setting("learning rate", 0.1, 0.03, 0.3),
        Setting("leaves", 31.0, 7.0, 63.0, whole=True),
        Setting("rows in a leaf", 20.0, 5.0, 100.0, whole=True),
    )

    @staticmethod
    def model(binary: bool, values: Values) -> Any:
        """Return the unfitted model."""
        rate, leaves, rows = values
        return (LGBMClassifier if binary else LGBMRegressor)(
            learning_rate=rate,
            num_leaves=int(leaves),
            min_child_samples=int(rows),
            n_jobs=1,
            verbose=-1,
            random_state=0,
        )

    def outputs(
        self, table: Rows, fits: Sequence[Fit], values: Values, device: str
    ) -> list[np.ndarray]:
        X = categorical(table)
        found = []
        for fit in fits:
            model = self.model(fit.binary, values)
            model.fit(X.iloc[fit.train], fit.target[fit.train], sample_weight=fit.weights)
            others = X.iloc[fit.others]
            found.append(model.predict_proba(others)[:, 1] if fit.binary else model.predict(others))
        return found


class Splines(Base):
    """Additive cubic splines of the ranks of numeric columns, and 0/1 columns for categories, with
    a ridge penalty.
    """

    settings = (
        Setting("knots", 6.0, 3.0, 12.0, whole=True),
        Setting("ridge", 1e-3, 1e-5, 1e-1),
    )

    def outputs(
        self, table: Rows, fits: Sequence[Fit], values: Values, device: str
    ) -> list[np.ndarray]:
        found: list[Any] = [None] * len(fits)
        for among in grouped((fit.train.tobytes(), fit.others.tobytes()) for fit in fits):
            own = [fits[i] for i in among]
            design = SplineDesign(table, own[0].train, int(values[0]))
            new = design(own[0].others)
            for i, fit in zip(among, own):
                y = fit.target[fit.train]
                f = new @ ridge_fit(design.training, y, fit.binary, values[1], fit.weights)
                found[i] = expit(f) if fit.binary else f
        return found


class SplineDesign:
    """The columns of additive splines, fitted to rows of a table; the first column is constant."""

    def __init__(self, table: Rows, train: np.ndarray, knots: int) -> None:
        X = categorical(table)
        schema = Schema.learn(X)
        self.codes = schema.codes(X)
        self.encoding = TableEncoding.fit(self.codes[train], schema.columns)
        encoded = self.encoding(self.codes[train])
        self.smooth = [j for j in range(encoded.shape[1]) if len(np.unique(encoded[:, j])) > 2]
        self.plain = [j for j in range(encoded.shape[1]) if j not in self.smooth]
        self.splines = SplineTransformer(
            n_knots=knots, knots=np.linspace(0, 1, knots)[:, None].repeat(len(self.smooth) or 1, 1)
        )
        if self.smooth:
            self.splines.fit(encoded[:, self.smooth])
        self.center = np.zeros(1)
        self.center = self._columns(encoded).mean(axis=0)
        self.center[0] = 0.0
        self.training = self(train)

    def _columns(self, encoded: np.ndarray) -> np.ndarray:
        parts = [np.ones((len(encoded), 1)), encoded[:, self.plain]]
        if self.smooth:
            parts.append(self.splines.transform(encoded[:, self.smooth]))
        return np.column_stack(parts) - self.center

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """Return the columns for the given rows."""
        return self._columns(self.encoding(self.codes[rows]))


def ridge_fit(
    design: np.ndarray,
    y: np.ndarray,
    binary: bool,
    ridge: float,
    weights: np.ndarray | None = None,
    covariances: np.ndarray | None = None,
) -> np.ndarray:
    r"""Return the coefficients β that minimize the mean log loss or half squared error of the
    scores :math:`f = X\beta`, plus :math:`\frac{r}{2} |\beta|^2 + \frac12 |C \beta|^2`, by Newton's
    method; the first column is not penalized.

    Examples
    --------
    >>> x = np.column_stack([np.ones(4), [0.0, 1.0, 2.0, 3.0]])
    >>> ridge_fit(x, np.array([1.0, 3.0, 5.0, 7.0]), False, 1e-12).round(6).tolist()
    [1.0, 2.0]
    """
    shares = np.full(len(y), 1 / len(y)) if weights is None else weights / weights.sum()
    penalty = ridge * np.eye(design.shape[1])
    penalty[0, 0] = 1e-10
    if covariances is not None:
        penalty += covariances.T @ covariances
    beta = np.zeros(design.shape[1])

    def objective(at: np.ndarray) -> float:
        f = design @ at
        losses = np.logaddexp(0, f) - y * f if binary else (f - y) ** 2 / 2
        return float(shares @ losses + at @ penalty @ at / 2)

    for _ in range(50 if binary else 1):
        f = design @ beta
        p = expit(f) if binary else f
        curvature = p * (1 - p) if binary else np.ones(len(y))
        slope = design.T @ (shares * (p - y)) + penalty @ beta
        square = design.T @ ((shares * curvature)[:, None] * design) + penalty
        step = solve(square, -slope, assume_a="pos")
        if -float(slope @ step) < 1e-10:
            break
        length = 1.0
        while binary and objective(beta + length * step) > objective(beta) and length > 1e-4:
            length /= 2
        beta = beta + length * step
    return beta


class Network(Base):
    """A network; numbers are scaled, and categories are converted to 0/1 columns."""

    scaling: ClassVar[Scaling] = "range"

    def recipe(self, task: Any, penalty: Any, values: Values, epochs: int | None) -> Recipe:
        """Return the training recipe; by default, the paper's."""
        return Recipe(task, penalty, epochs=epochs or 200, weight_decay=0.0, variance_floor=0.0)

    def held_out(self, rows: int, method: str | None) -> int:
        """Return how many of the training rows are held out for early stopping."""
        return 0

    def outputs(
        self,
        table: Rows,
        fits: Sequence[Fit],
        values: Values,
        device: str,
        epochs: int | None = None,
    ) -> list[np.ndarray]:
        encoded = Encoded(table, self.scaling)
        found: list[Any] = [None] * len(fits)
        for among in grouped(
            (fit.binary, len(fit.train), encoded.width(fit.train)) for fit in fits
        ):
            own = [fits[i] for i in among]
            held = self.held_out(len(own[0].train), None)
            data = [encoded.data(fit, held) for fit in own]
            recipe = self.recipe("binary" if own[0].binary else "regression", None, values, epochs)
            members = [Member(0.0, 0, split) for split in range(len(own))]
            fleet = train(TrainingData.stacked(data), members, recipe, device=device)
            raw = fleet_scores(fleet, [encoded(fit.train, fit.others) for fit in own])
            for i, fit, f in zip(among, own, raw):
                found[i] = in_units(f, fit)
        return found

    def penalized(
        self,
        table: Rows,
        method: str,
        fits: Sequence[Fit],
        runs: Sequence[tuple[int, int, float, Values]],
        values: Values,
        device: str,
        epochs: int | None = None,
    ) -> list[np.ndarray]:
        """Train with a penalty and return the predictions of each run, given the index of its
        regression, its trial, its weight and the settings of the penalty.
        """
        encoded = Encoded(table, self.scaling)
        found: list[Any] = [None] * len(runs)
        for among in grouped(encoded.width(fits[run[0]].train) for run in runs):
            own = [runs[i] for i in among]
            used = sorted({run[0] for run in own})
            held = self.held_out(len(fits[0].train), method)
            data = TrainingData.stacked([encoded.data(fits[k], held) for k in used])
            members = [Member(w, trial, used.index(k)) for k, trial, w, _ in own]
            settings = {
                stream_seed(m.seed, m.split, Purpose.PENALTY): run[3]
                for m, run in zip(members, own)
            }
            penalty = partial(PENALTIES[method], settings)
            task = "binary" if table.binary else "regression"
            recipe = self.recipe(task, penalty, values, epochs)
            fleet = train(data, members, recipe, device=device)
            x = [encoded(fits[k].train, fits[k].others) for k in used]
            for i, run, f in zip(among, own, fleet_scores(fleet, x)):
                found[i] = in_units(f, fits[run[0]])
        return found


class PaperNetwork(Network):
    """The paper's network and training: 50 (SELU) → 50 → 1, 200 epochs of Adam with learning rate
    .001.
    """


class TunedNetwork(Network):
    """A network with tuned width, learning rate and weight decay, and early stopping on a tenth of
    the rows.
    """

    scaling = "quantile"
    settings = (
        Setting("width", 64.0, 16.0, 256.0, whole=True),
        Setting("learning rate", 2e-3, 3e-4, 1e-2),
        Setting("decay", 1e-4, 1e-5, 1e-2),
    )

    def recipe(self, task: Any, penalty: Any, values: Values, epochs: int | None) -> Recipe:
        width, rate, decay = values
        return Recipe(
            task,
            penalty,
            MLP(hidden=(int(width),)),
            epochs=epochs or 100,
            schedule="cosine",
            learning_rate=rate,
            weight_decay=decay,
            variance_floor=0.0,
        )

    def held_out(self, rows: int, method: str | None) -> int:
        """Return the number of rows to hold out for early stopping: a tenth of the rows, or none
        for adversaries, which learn during training and are weak at first.
        """
        return 0 if method in ("adv", "adv-text", "laftr", "hgr-networks") else rows // 10


class Encoded:
    """A table as matrices, scaled by the training rows."""

    def __init__(self, table: Rows, scaling: Scaling) -> None:
        self.table = table
        X = categorical(table)
        self.schema = Schema.learn(X)
        self.codes = self.schema.codes(X)
        self.scaling = scaling
        self.known: dict[bytes, tuple[TableEncoding, TableEncoding]] = {}

    def _encodings(self, train: np.ndarray) -> tuple[TableEncoding, TableEncoding]:
        key = train.tobytes()
        if key not in self.known:
            self.known[key] = (
                TableEncoding.fit(self.codes[train], self.schema.columns, self.scaling),
                TableEncoding.fit(self.table.s[train][:, None], scaling="range"),
            )
        return self.known[key]

    def __call__(self, train: np.ndarray, rows: np.ndarray) -> Tensor:
        """Return rows with the scaling of the training rows."""
        return torch.as_tensor(self._encodings(train)[0](self.codes[rows]), dtype=torch.float32)

    def width(self, train: np.ndarray) -> int:
        """Return the number of columns; a category may be missing from some rows."""
        return self(train, train[:1]).shape[1]

    def data(self, fit: Fit, held: int) -> TrainingData:
        """Return the training rows of a regression, of which the last are held out; a numeric
        target is standardized.
        """
        center, spread = units_of(fit)
        attribute = self._encodings(fit.train)[1]

        def part(rows: np.ndarray, weights: np.ndarray | None, held: Any = None) -> TrainingData:
            return TrainingData.of(
                self(fit.train, rows),
                (fit.target[rows] - center) / spread,
                attribute(self.table.s[rows][:, None]),
                sample_weight=weights,
                held_out=held,
            )

        kept = len(fit.train) - held
        weights = fit.weights
        rest = None
        if held:
            rest = part(fit.train[kept:], None if weights is None else weights[kept:])
        return part(fit.train[:kept], None if weights is None else weights[:kept], rest)


def units_of(fit: Fit) -> tuple[float, float]:
    """Return the mean and standard deviation of a numeric target."""
    if fit.binary:
        return 0.0, 1.0
    y = fit.target[fit.train]
    return float(y.mean()), float(y.std()) or 1.0


def in_units(f: np.ndarray, fit: Fit) -> np.ndarray:
    """Convert raw outputs for the rows to predict to probabilities, or to the unit of the
    target.
    """
    f = f[: len(fit.others)]
    center, spread = units_of(fit)
    return expit(f) if fit.binary else center + spread * f


def fleet_scores(fleet: Any, x: Sequence[Tensor]) -> np.ndarray:
    """Return raw outputs, (M, n), for the rows of each split; splits with fewer rows are padded."""
    most = max(map(len, x))
    filled = [torch.cat([rows, rows[-1:].expand(most - len(rows), -1)]) for rows in x]
    raw: np.ndarray = (
        fleet.scores(torch.stack(filled).to(fleet.device))[..., 0].double().cpu().numpy()
    )
    return raw


def grouped(keys: Any) -> list[list[int]]:
    """Return the positions of equal keys.

    Examples
    --------
    >>> grouped("abac")
    [[0, 2], [1], [3]]
    """
    groups: dict[Hashable, list[int]] = {}
    for i, key in enumerate(keys):
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def categorical(table: Rows) -> pd.DataFrame:
    """Return the columns, with nominal ones converted to categories that include -1."""
    kinds = {name: pd.CategoricalDtype(np.unique(table.X[name]).tolist()) for name in table.nominal}
    return table.X.astype(kinds)


BASES: dict[str, Base] = {
    "paper's network": PaperNetwork(),
    "tuned network": TunedNetwork(),
    "trees": Trees(),
    "splines": Splines(),
}
