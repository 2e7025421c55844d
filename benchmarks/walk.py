"""Files of the library that a batch, a score, a cell of a CSV file and a saved model pass.

A file counts if a function of it runs during the walk; what runs at import does not, so each walk
is done twice.

python benchmarks/walk.py
"""

from __future__ import annotations

import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
from typer.testing import CliRunner

import frhsic
from frhsic.cli import app

LIBRARY = Path(frhsic.__file__).parent


def files_of(walk: Callable[[], object]) -> list[str]:
    """Return the library's files with a function that runs during a walk, in the order in which
    they are entered.
    """
    entered: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_name != "<module>"
            and code.co_filename.startswith(f"{LIBRARY}/")
        ):
            entered[str(Path(code.co_filename).relative_to(LIBRARY))] = None

    walk()  # imports
    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        walk()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return list(entered)


def main() -> None:
    """Print the number of files of each walk, and their names."""
    rng = np.random.default_rng(0)
    age, skill = rng.uniform(20, 70, 400), rng.normal(size=400)
    frame = pd.DataFrame(
        {
            "age": age.round(),
            "skill": skill + age / 20,
            "repaid": (skill + rng.normal(size=400) > 0),
        }
    )
    X, y, s = frame[["skill"]], frame["repaid"], frame["age"]
    network = frhsic.FRHSICClassifier(random_state=0)
    with tempfile.TemporaryDirectory() as folder:
        table, model = Path(folder, "loans.csv"), Path(folder, "model.frhsic")
        frame.to_csv(table, index=False)
        fitted = frhsic.ParityClassifier(random_state=0).fit(X, y, sensitive_features=s)
        walks = {
            "a batch": lambda: network.fit(X, y, sensitive_features=s),
            "a score": lambda: str(frhsic.audit(frame["skill"], s)),
            "a cell of a CSV file": lambda: CliRunner().invoke(
                app,
                ["predict", str(model), str(table), "-o", str(Path(folder, "scores.csv"))],
                catch_exceptions=False,
            ),
            "a saved model": lambda: (frhsic.save(fitted, model), frhsic.load(model)),
        }
        for name in ("a batch", "a score", "a saved model", "a cell of a CSV file"):
            files = files_of(walks[name])
            print(f"{name}: {len(files)} files\n    {', '.join(files)}")


if __name__ == "__main__":
    main()
