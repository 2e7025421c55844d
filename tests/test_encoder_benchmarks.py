"""What the benchmark of the encoder reads from its records."""

import sys
from pathlib import Path

import numpy as np
import pytest
from pytest import approx

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(scope="module")
def encoder():
    sys.path.insert(0, str(BENCHMARKS))
    yield __import__("encoder")
    sys.path.remove(str(BENCHMARKS))
    for name in ("encoder", "bases"):
        del sys.modules[name]


def test_the_leak_of_a_rival_is_compared_at_equal_performance(encoder):
    """The encoder leaks 0.1 · (head − 0.6), the rival 0.02 more at every performance that it
    reaches: so says the table, whatever the ends of the paths. In the third split it is better and
    leaks less wherever the rival is.
    """
    records = []
    for split in range(2):
        paths = {"prototypes": (np.linspace(0.6, 0.9, 7), 0.0), "adv": (np.array([0.5, 0.8]), 0.02)}
        for method, (heads, more) in paths.items():
            points = [[head, 0, 0, 0.1 * (head - 0.6) + more] for head in heads.tolist()]
            records.append({"split": split, "table": "t", "method": method, "points": points})
    for method, points in {"prototypes": [[0.9, 0, 0, 0.1]], "adv": [[0.8, 0, 0, 0.2]]}.items():
        records.append({"split": 2, "table": "t", "method": method, "points": points})
    text = encoder.show_rivals(records)
    assert "| t | adv | 0.0100 | 0.0300 | 0.0200 | 0 | 2 | 1 | 1 | 0 |" in text
    assert "less by more than two errors in 1 of 1 cells, and more in 0. 7 cells" in text
    assert "Of 1 such splits, prototypes are ahead in 1 and behind in 0." in text


def test_undominated_trade_offs(encoder):
    points = [(0.8, 0.3), (0.7, 0.1), (0.7, 0.2), (0.6, 0.1), (0.5, 0.05)]
    assert encoder.undominated(points) == [0, 1, 4]


def test_a_head_on_the_frontier_of_the_closed_form_loses_nothing(encoder):
    """Gain 0.4. The second trade-off has a loss of 0.02 more, the last one less than any GDP of the
    closed form and 0.04 more than its end.
    """
    closed = [[0.1, 0.3], [0.05, 0.35], [0.01, 0.39]]
    own = [[0.075, 0.325], [0.05, 0.37], [0.0, 0.43]]
    record = {"constant": 0.7, "free": 0.3, "closed": closed, "served": own}
    assert encoder.excess(record, "served") == approx([0.0, 5.0, 10.0])


def test_the_head_of_cells_is_their_mean(encoder):
    """One row at the overall mean 0.5 is added to each cell; an unknown cell has that mean."""
    predicted = encoder.cell_head(
        np.array([1, 1, 2, 2]), np.array([0, 0, 1, 1]), np.array([1, 2, 3])
    )
    assert predicted == approx([0.5 / 3, 2.5 / 3, 0.5])
