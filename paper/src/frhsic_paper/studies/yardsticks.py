"""The closed form and other libraries at their defaults, by yardsticks that shrinking cannot
win.
"""

from __future__ import annotations

import pandas as pd

from frhsic_paper.results import Results
from frhsic_paper.study import Study
from frhsic_paper.table import Listed
from frhsic_paper.yardsticks import CONTRACTED, Frame, headline, listed

FIRST = "closed form"
RIVALS = (
    CONTRACTED,
    "AIF360 Reweighing, 10 bands",
    "fairlearn GridSearch, 4 bands",
    "fairlearn EG, 10 bands",
)
OTHERS = (
    "default network",
    "penalised boosting",
    "closed form, S a feature",
    "transport",
    "transport, S a feature",
    "fairlearn CorrelationRemover",
    "fairlearn ThresholdOptimizer, 10 bands",
    "fairlearn ThresholdOptimizer, 4 bands",
)
"""Earlier variants of this library, and what needs S to predict."""

TEST_PER_TRAINING = 0.2 / 0.6


def frame(results: Results) -> Frame:
    """Return the records of test rows."""
    return pd.DataFrame(results.of("yardsticks/test", "corrected"))


def tables(results: Results) -> list[Listed]:
    """Return standings and cells."""
    records = frame(results)
    return listed(records, FIRST, RIVALS, OTHERS) if len(records) else []


def sentences(results: Results) -> list[str]:
    """Return what the summary says of the comparison."""
    records = frame(results)
    return headline(records, FIRST, RIVALS, TEST_PER_TRAINING) if len(records) else []


STUDY = Study(
    name="yardsticks",
    about="the closed form and other libraries, by yardsticks that shrinking cannot win",
    title="Yardsticks that shrinking cannot win",
    words="""
        Thirteen tables, up to ten splits into 60 % training, 20 % validation and 20 % test rows,
        every method at its defaults on LightGBM. Accuracy at 1/2 against the GDP of scores can be
        won by p → 1/2 + t(p − 1/2), which keeps every decision; so performance is read as log loss
        (squared error for numbers) at equal GDP of the scores, as AUC at equal rank gap, and as
        accuracy at equal GDP of the decisions (balanced accuracy where the base rate is under .2),
        each at 75, 50 and 25 % of the gap of LightGBM without constraint on the same rows. A level
        that a path does not reach (†) is read between its last point and a constant; AUC loses
        there. Regret is the loss beyond the best method, as a share of what the reference gains
        over a constant. A yardstick is left out on a table whose reference gap is below three of
        its standard deviations over splits. Tests are corrected t-tests for splits that share rows,
        after Holm. The default network, penalised boosting and transport are earlier variants of
        this library, at commit 92a9509; they and the rows that need S to predict (S a feature,
        transport, CorrelationRemover, ThresholdOptimizer) are shown and are no rivals.
    """,
    tables=tables,
    made_by="python benchmarks/yardsticks.py run",
    published=False,
)
