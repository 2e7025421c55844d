"""How long commands and imports take to start: CPU seconds of eight commands and four imports.

    python benchmarks/startup.py [SRC ...]

SRC are folders that hold the package `frhsic`, such as those of two checkouts; without them it is
the one of this checkout. Each command runs in a fresh process, on one thread, `REPEATS` times; the
smallest user and system time counts, in turns, so that other work on the machine matters little.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

REPEATS = 5
HERE = Path(__file__).parent.parent / "src"

TABLE = """
import numpy as np, pandas as pd
rng = np.random.default_rng(0)
age = rng.uniform(20, 70, 500).round()
x = pd.DataFrame({"skill": rng.normal(size=500), "job": rng.choice(["cook", "nurse"], 500)})
y = (x["skill"] + (age - 45) / 20 + rng.normal(size=500) > 0).astype(int)
x.assign(age=age, y=y, p=(age / 100).round(3)).to_csv("t.csv", index=False)
x[:10].to_csv("ten.csv", index=False)
import frhsic
model = frhsic.ParityClassifier(random_state=0, n_jobs=1)
frhsic.save(model.fit(x, y, sensitive_features=age), "m")
"""
COMMANDS = {
    "--help": 0,
    "train --help": 0,
    "audit t.csv": 2,
    "audit t.csv -s agee --score p": 2,
    "train t.csv -s age -t yy": 2,
    "predict m missing.csv": 2,
    "predict m ten.csv": 0,
    "audit t.csv -s age --score p --json": 0,
}
IMPORTS = {
    "gdp of 200 rows": "from frhsic import gdp; gdp([0.1, 0.2, 0.3, 0.6] * 50, [0, 0, 0, 1] * 50)",
    "ParityClassifier": "from frhsic import ParityClassifier",
    "load, predict ten rows": (
        "import frhsic, pandas; frhsic.load('m').predict(pandas.read_csv('ten.csv'))"
    ),
    "hsic": "from frhsic import hsic",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sources", nargs="*", type=Path, default=[HERE], metavar="SRC")
    sources = [source.resolve() for source in parser.parse_args().sources]
    calls = {
        f"frhsic {words}": (["-m", "frhsic", *words.split()], code)
        for words, code in COMMANDS.items()
    }
    calls |= {name: (["-c", code], 0) for name, code in IMPORTS.items()}
    seconds: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        places = [Path(folder) / str(i) for i in range(len(sources))]
        for source, place in zip(sources, places):
            place.mkdir()
            cpu_seconds(["-c", TABLE], 0, source, place)
        for name, (arguments, code) in calls.items():
            rounds = [
                [cpu_seconds(arguments, code, *where) for where in zip(sources, places)]
                for _ in range(REPEATS)
            ]
            seconds[name] = [min(times) for times in zip(*rounds)]
    print(f"| what | {' | '.join(map(str, sources))} |\n|---|{'---|' * len(sources)}")
    for name, times in seconds.items():
        print(f"| `{name}` | {' | '.join(f'{time:.2f} s' for time in times)} |")


def cpu_seconds(arguments: list[str], code: int, source: Path, place: Path) -> float:
    """Return the user and system time of a process, which has to end with an exit code."""
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, *arguments], cwd=place, env=environment, capture_output=True, text=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != code:
        raise RuntimeError(f"{arguments} ended with {done.returncode}: {done.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


if __name__ == "__main__":
    main()
