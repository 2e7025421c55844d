"""How often the population's gap is beyond a limit that the upper end of its interval keeps, for
docs/choosing.md and the docstring of Frontier.
"""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from rules.records import benchmark


def fits() -> pd.DataFrame:
    """Return the fits without controls whose interval is within the limit."""
    records = benchmark("promise.jsonl")
    met = records[records["met"] & (records["law"] != "equal")]
    return met.assign(beyond=met["gap"] > met["limit"])


def counts() -> list[str]:
    """Return of scores, ranks and decisions how many fits are beyond, of how many."""
    by_aim = fits().groupby("aim")["beyond"].agg(["sum", "size"])
    return [
        f"{by_aim.loc[aim, 'sum']} of {by_aim.loc[aim, 'size']:,}"
        for aim in ("score", "rank", "decision")
    ]


def phrases() -> Iterator[str]:
    """Yield what docs/choosing.md says of bounds."""
    scores, ranks, decisions = counts()
    yield f"{scores} fits for scores, {ranks} for ranks and {decisions} for decisions"
    own = fits().query("law == 'coarse' and aim == 'decision' and not beyond")
    loss = 100 * own.groupby("rows")["loss"].median()
    yield (
        f"misclassify {loss[500]:.0f} % of people when fitted on 500 rows and {loss[3000]:.0f} %"
        " when fitted on 3,000"
    )


def docstring() -> Iterator[str]:
    """Yield what the docstring of Frontier says."""
    scores, ranks, decisions = counts()
    cells = fits().groupby(["aim", "law", "rows"])["beyond"].agg(["sum", "size"])
    most, size = cells.loc[(cells["sum"] / cells["size"]).idxmax()]
    yield f"for {scores} (scores), {ranks} (ranks) and {decisions} (decisions)"
    yield f"at most {most} of {size} for one distribution and number of rows"
