"""Tables with hundreds of columns, on a law whose directions and dependence are known.

A hidden B is 1 with probability ½ + 0.4 cos(πS), and each column is B with noise. All that X tells
of S is B, and E[φ(S) | B] is along the first cosine alone, of which B explains 0.32.
"""

import numpy as np
import pytest
from pytest import approx
from sklearn.linear_model import Ridge

from frhsic import ParityCoupling, ParityEncoder
from frhsic.estimators.additive import Basis, Design, Grams, RidgePath, leading_components
from frhsic.estimators.basis import SensitiveBasis
from frhsic.estimators.engine import fit_engine
from frhsic.estimators.responses import Response

EXPLAINED = 0.32


def hidden(n: int, d: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return a table, B and S."""
    rng = np.random.default_rng(seed)
    s = rng.uniform(size=n)
    b = (rng.random(n) < 0.5 + 0.4 * np.cos(np.pi * s)).astype(float)
    return b[:, None] + rng.normal(size=(n, d)), b, s


def first_cosine(s: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(2) * np.cos(np.pi * s))


def test_components_keep_all_inner_products_of_few_rows():
    rng = np.random.default_rng(0)
    values = rng.normal(size=(60, 500)) * rng.uniform(0.1, 3, size=500)
    values[:, 7] = 1.0
    weights = rng.uniform(1, 2, size=60)
    shares = weights / weights.sum()
    components = values @ leading_components(values, weights)
    centered = components - shares @ components
    sizes = np.sqrt(shares @ centered**2)
    varies = sizes > 1e-8
    own = centered[:, varies] / np.sqrt(sizes[varies])
    whole = values - shares @ values
    spread = np.sqrt(shares @ whole**2)
    scaled = whole[:, spread > 0] / np.sqrt(spread[spread > 0])
    assert own @ own.T == approx(scaled @ scaled.T, rel=1e-6, abs=1e-6)


def test_a_ridge_on_components_is_that_on_all_columns():
    """With fewer rows than components nothing is left out but the change of scales by fold."""
    x, b, _ = hidden(300, 500)
    fold = np.arange(300) % 5
    basis = Basis.fit(x, [], np.ones(300))
    rows = Design(basis, basis.bins.incidence(x), fold, np.ones(300))
    path = RidgePath.fit(Grams.of(rows, b[:, None]), 1)
    own = path.best(basis).out_of_fold(rows)[:, 0]
    functions = (rows.incidence @ basis.functions).toarray()
    spread = functions.std(axis=0)
    scaled = functions / np.sqrt(spread)
    best = np.inf
    for ridge in np.logspace(-4, 1, 11):
        expected = np.empty(300)
        for j in range(5):
            train = fold != j
            model = Ridge(ridge * train.sum()).fit(scaled[train], b[train])
            expected[~train] = model.predict(scaled[~train])
        error = np.mean((expected - b) ** 2)
        if error < best:
            best, full = error, expected
    assert np.mean((own - b) ** 2) == approx(best, rel=0.02)
    assert np.corrcoef(own, full)[0, 1] > 0.995


@pytest.mark.slow
def test_a_wide_table_has_the_directions_of_its_law():
    x, b, s = hidden(400, 420)
    phi = SensitiveBasis.fit(s)(s)
    fold = np.arange(400) % 5
    fit = fit_engine(x, [], [Response(phi, reduced=True)], fold, np.ones(400), seed=0, n_jobs=1)
    (along,) = fit.directions
    assert along.shape == (8, 1)
    assert along[0, 0] ** 2 > 0.9
    # as well as B itself predicts the direction
    target = phi @ along[:, 0]
    means = np.array([target[b == 0].mean(), target[b == 1].mean()])[b.astype(int)]
    known = np.mean((target - means) ** 2)
    assert 1 - known == approx(EXPLAINED, abs=0.15)  # four standard errors
    gain = (target - fit.out_of_fold[:, 0]) ** 2 - (target - means) ** 2
    assert gain.mean() < 3 * gain.std() / 20


@pytest.mark.slow
def test_heads_of_an_encoder_of_768_columns_keep_its_bound():
    """The encoder is asked to keep B, which tells all that X tells of S, and a sign beside it."""
    x, b, s = hidden(400, 768)
    sign = x[:, 0] > 0.5
    encoder = ParityEncoder(random_state=0, n_jobs=1, prototypes=4)
    encoder.fit(x, np.column_stack([b, sign]), sensitive_features=s)
    fresh, _, age = hidden(2000, 768, seed=1)
    z = np.unique(encoder.transform(fresh), axis=0, return_inverse=True)[1].ravel()
    target = first_cosine(age)
    means = np.bincount(z, target) / np.bincount(z)
    (gap,) = encoder.choice_.gaps.values()
    assert np.sqrt(np.mean(means[z] ** 2)) / 2 < gap.high
    assert gap.high < 0.5 * np.sqrt(EXPLAINED)


@pytest.mark.slow
def test_a_coupling_of_768_columns_hides_what_they_tell():
    x, _, s = hidden(400, 768)
    coupling = ParityCoupling(random_state=0, n_jobs=1).fit(x, sensitive_features=s)
    fresh, _, age = hidden(2000, 768, seed=1)
    means = fresh.mean(axis=1)
    Z = coupling.transform(fresh, sensitive_features=age)
    assert np.corrcoef(means, first_cosine(age))[0, 1] ** 2 == approx(EXPLAINED, abs=0.06)
    assert abs(np.corrcoef(Z.mean(axis=1), first_cosine(age))[0, 1]) < 3 / np.sqrt(2000)
