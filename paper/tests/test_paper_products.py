"""Products with Gram matrices by tiles are products with the whole matrices."""

import pytest
import torch

from frhsic.kernels import Gaussian, Laplacian, Linear
from frhsic_paper import products
from frhsic_paper.products import gram_times


def rows(n, d, dtype, seed):
    return torch.randn(n, d, dtype=dtype, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("kernel", [Gaussian(0.7), Laplacian(1.3), Linear()], ids=repr)
def test_product_by_tiles_is_the_product(kernel, dtype, monkeypatch):
    monkeypatch.setattr(products, "TILE_ENTRIES", 100)  # tiles of 2 rows, and a last one of 1
    x, y, b = (rows(n, d, dtype, n) for n, d in ((37, 3), (41, 3), (41, 2)))
    close = {"rtol": 1e-5, "atol": 1e-5}
    torch.testing.assert_close(gram_times(kernel, x, b, y=y), kernel(x, y) @ b, **close)
    torch.testing.assert_close(gram_times(kernel.shifted, y, b), kernel.shifted(y, y) @ b, **close)
