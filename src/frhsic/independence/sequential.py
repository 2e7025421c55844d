"""A test of independence for a stream of batches, valid at every time at which one looks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from frhsic import _arrays
from frhsic.independence.permutation import BLOCK_ENTRIES

Waves = NDArray[np.float64]

WAVES = 6
"""Cosines of the ranks of each column; the k-th has the weight 1/k²."""

BETS = np.array([0.25, 0.5, 1.0, 2.0, 4.0])
"""Strengths of the bets, in standard deviations of the statistic; the e-value is the mean over
them.
"""


class SequentialTest:
    r"""Test of :math:`H_0`: scores and S are independent within each batch of a stream, at all
    times at once.

    The e-value is the wealth of a gambler who bets against independence and starts with 1. A batch
    multiplies it by

    .. math:: E = \frac{e^{\kappa T}}{\frac{1}{1 + B} \sum_{b=0}^{B} e^{\kappa T_b}},

    where :math:`T_0 = T` is the association of scores and S in this batch along the direction that
    earlier batches showed, and :math:`T_b` is the same with the rows of S permuted. If the rows of
    a batch are exchangeable under :math:`H_0`, the mean of E is one whatever happened before. So
    the probability that the e-value *ever* reaches :math:`1 / \alpha` is at most :math:`\alpha`
    (Ville), however often one looks and whenever one stops.

    Use it to monitor a model in use. The law of scores and of S may change from batch to batch. A
    test with a p-value of its own for each batch would sooner or later reject without any
    dependence.

    Parameters
    ----------
    level
        Level of the test, for :attr:`rejected`.
    resamples
        Number B of permutations of each batch. One batch multiplies the e-value by at most 1 + B.
    random_state
        Seed of the permutations; None draws one.

    Attributes
    ----------
    n, batches
        Numbers of rows and of batches so far.
    history
        The e-value after each batch.

    Notes
    -----
    Scores and S enter by their mid-ranks u within the batch, so increasing maps do not matter. The
    association is :math:`\sum_{jk} \theta_{jk} \frac1m \sum_i \cos(\pi j u_i) \cos(\pi k v_i)` with
    j, k up to six, divided by its standard deviation over the permutations; :math:`\theta_{jk}` is
    the sum of the same means over earlier batches, times :math:`1/(jk)^2`. The e-value is the mean
    of those with :math:`\kappa` = 1/4, 1/2, 1, 2 and 4. The first batch only sets the direction.
    With several columns of scores the associations of all columns are added; a dependence that only
    several columns together show is not seen. Dependence on S that is not of interest, such as a
    spread that follows S, counts too.

    References
    ----------
    Shafer (2021), *Testing by betting*. Ramdas et al. (2023), *Game-theoretic statistics and safe
    anytime-valid inference*. Podkopaev et al. (2023), *Sequential kernelized independence testing*.

    Examples
    --------
    >>> test, rng = SequentialTest(random_state=0), np.random.default_rng(0)
    >>> for week in range(12):
    ...     age = rng.uniform(20, 60, 100)
    ...     test = test.update(0.02 * age + rng.normal(size=100), age)
    ...     if test.rejected:
    ...         break
    >>> test.batches < 12, test.pvalue <= 0.05
    (True, True)
    """

    def __init__(
        self, *, level: float = 0.05, resamples: int = 999, random_state: _arrays.RandomState = 0
    ) -> None:
        _arrays.require_fraction(level, "level")
        _arrays.require_integer(resamples, "resamples")
        self.level = level
        self.resamples = int(resamples)
        self.seed = _arrays.seed_of(random_state)
        self.n = 0
        self.history: tuple[float, ...] = ()
        self._wealth = np.zeros(len(BETS))  # logarithm, for each strength
        self._direction: Waves | None = None

    def __repr__(self) -> str:
        return f"SequentialTest(batches={self.batches}, n={self.n}, evalue={self.evalue:.3g})"

    @property
    def batches(self) -> int:
        """Number of batches so far."""
        return len(self.history)

    @property
    def evalue(self) -> float:
        """Evidence against independence now; its mean is at most 1 under independence."""
        return self.history[-1] if self.history else 1.0

    @property
    def pvalue(self) -> float:
        """One over the largest e-value so far, at most 1; a p-value at every time."""
        return min(1.0, 1 / max(self.history, default=1.0))

    @property
    def rejected(self) -> bool:
        """Whether independence has been rejected at `level`, now or after an earlier batch."""
        return self.pvalue <= self.level

    def update(self, scores: Any, s: Any) -> SequentialTest:
        """Take in a batch of new rows, none of which was in an earlier one, and return the test
        itself.

        A batch of one row, or one whose scores or S are constant, leaves the e-value as it is.

        Parameters
        ----------
        scores
            One row per observation; several columns are classes or coordinates, as many in every
            batch.
        s
            One sensitive attribute.
        """
        f, v = (x.astype(np.float64) for x in _arrays.paired((scores, "scores"), (s, "s")))
        if v.shape[1] > 1:
            raise ValueError(
                f"s has {v.shape[1]} columns; pass one attribute, and use a test for each."
            )
        a = _waves(f)  # (rows, waves of all columns)
        b = _waves(v)  # (rows, waves)
        if self._direction is None:
            self._direction = np.zeros((a.shape[1], b.shape[1]))
        elif len(self._direction) != a.shape[1]:
            columns = len(self._direction) // WAVES
            raise ValueError(f"scores has {f.shape[1]} columns; earlier batches had {columns}.")
        self._wealth = self._wealth + self._gain(a @ (self._direction * _weights(f.shape[1])), b)
        self._direction = self._direction + a.T @ b / len(a)
        self.n += len(f)
        logarithm = float(np.logaddexp.reduce(self._wealth)) - math.log(len(BETS))
        self.history = (*self.history, math.exp(min(logarithm, 700.0)))
        return self

    def _gain(self, along: Waves, b: Waves) -> Waves:
        """Return the logarithm of the factor of this batch for each strength of the bet."""
        rng = np.random.default_rng([self.seed, self.batches])
        rows = np.arange(len(b))
        values = [float((along * b).sum())]
        step = max(1, BLOCK_ENTRIES // b.size)
        for start in range(0, self.resamples, step):
            copies = np.tile(rows, (min(step, self.resamples - start), 1))
            orders = rng.permuted(copies, axis=1)
            values += (b[orders].reshape(len(orders), -1) @ along.ravel()).tolist()
        all_values = np.asarray(values)
        spread = float(all_values.std())
        if spread <= 1e-12 * float(np.linalg.norm(along) * np.linalg.norm(b) + 1e-300):
            return np.zeros(len(BETS))
        # symmetric in the permutations, so the mean of E stays one
        t = (all_values - all_values.mean()) / spread
        bets = BETS[:, None] * t
        return np.asarray(bets[:, 0] - np.logaddexp.reduce(bets, axis=1) + math.log(len(t)))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as plain data, which JSON can hold."""
        return {
            "level": self.level,
            "resamples": self.resamples,
            "seed": self.seed,
            "n": self.n,
            "history": list(self.history),
            "wealth": self._wealth.tolist(),
            "direction": None if self._direction is None else self._direction.tolist(),
        }

    @classmethod
    def from_dict(cls, state: dict[str, Any]) -> SequentialTest:
        """Return the test of a state of :meth:`to_dict`; it continues where that one stopped."""
        test = cls(level=state["level"], resamples=state["resamples"], random_state=state["seed"])
        test.n = state["n"]
        test.history = tuple(state["history"])
        test._wealth = np.asarray(state["wealth"])
        test._direction = None if state["direction"] is None else np.asarray(state["direction"])
        return test


def _waves(x: Waves) -> Waves:
    """Return cosines of the mid-ranks of each column within the batch, centred: of shape (rows,
    columns · waves).
    """
    u = (rankdata(x, axis=0) - 0.5) / len(x)
    waves = np.cos(math.pi * u[:, :, None] * np.arange(1, WAVES + 1)).reshape(len(x), -1)
    return np.asarray(waves - waves.mean(axis=0))


def _weights(columns: int) -> Waves:
    squares = 1.0 / np.arange(1, WAVES + 1) ** 2
    return np.tile(squares, columns)[:, None] * squares
