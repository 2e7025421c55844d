"""Ten cells of the fair comparison in two environments: are scores and decisions the same?

    python paper/again.py run here.npz       # in either environment
    python paper/again.py show here.npz there.npz

Five fresh tables with two classes, each with trees and with splines, and the closed form's whole
path for all three quantities, on the first division of the half that tunes: no test row is
predicted. `show` prints by cell the largest difference of a score, and how many decisions differ.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from frhsic_paper.crossed.bases import BASES
from frhsic_paper.crossed.rows import FRESH, NUMBERS, load
from frhsic_paper.crossed.settings import CLOSED_FORM, setting_values
from frhsic_paper.crossed.task import Task
from frhsic_paper.crossed.ways import path

TABLES = [name for name in FRESH if name not in NUMBERS][:5]


def paths() -> Iterator[tuple[str, np.ndarray]]:
    """Yield the name of each path, and its points by rows."""
    for name in TABLES:
        for base in ("trees", "splines"):
            default = setting_values(BASES[base].settings, 0)
            task = Task(load(name), BASES[base], default, default, "tune", "cpu", splits=1)
            points = [one for one in path(task, "plain", {}) if one.way == CLOSED_FORM]
            for quantity in dict.fromkeys(one.quantity for one in points):
                own = [one.values for one in points if one.quantity == quantity]
                yield f"{name} {base} {quantity}", np.array(own)


def show(first: str, second: str) -> None:
    """Print how far the paths of two files are apart."""
    with np.load(first) as here, np.load(second) as there:
        for name in here.files:
            apart = np.abs(here[name] - there[name])
            if name.endswith("decisions"):
                print(f"{name}: {int(apart.sum())} of {apart.size} decisions differ")
            else:
                print(f"{name}: scores differ by at most {apart.max():.1e}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("run").add_argument("out")
    shown = commands.add_parser("show")
    shown.add_argument("first")
    shown.add_argument("second")
    options = parser.parse_args()
    if options.command == "show":
        show(options.first, options.second)
    else:
        with threadpool_limits(1), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            np.savez_compressed(options.out, **dict(paths()))
