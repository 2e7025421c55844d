"""HSIC of parts: the same number as of the whole."""

import numpy as np
import pytest

from frhsic.dependence import hsic_features
from frhsic.distributed import hsic_of_parts
from frhsic.kernels import Gaussian, Laplacian


def rows(n=400):
    rng = np.random.default_rng(0)
    s = rng.normal(size=(n, 1))
    return np.hstack([s**2, rng.normal(size=(n, 2))]) + 0.1 * rng.normal(size=(n, 3)), s


KERNELS = (Gaussian(1.5), Laplacian(1.0))


@pytest.mark.parametrize("cuts", [[200], [1, 2, 399], list(range(50, 400, 50))])
def test_parts_of_any_size_give_the_number_of_the_whole(cuts):
    z, s = rows()
    whole = hsic_features(z, s, *KERNELS, random_state=3)
    apart = hsic_of_parts(zip(np.split(z, cuts), np.split(s, cuts)), *KERNELS, random_state=3)
    assert float(apart) == pytest.approx(float(whole), rel=1e-10)
    assert apart.standard_error == pytest.approx(whole.standard_error, rel=1e-8)
    assert apart.n == whole.n == 400


def test_bad_input_names_the_part():
    with pytest.raises(ValueError, match="no parts"):
        hsic_of_parts([], *KERNELS)
    z, s = rows(10)
    with pytest.raises(ValueError, match="z of part 1 holds 1 values that are NaN"):
        hsic_of_parts([(z, s), (np.full((1, 3), 1.0) * [[np.nan, 1, 1]], s[:1])], *KERNELS)
