"""Libraries that people use beside this one, each tried with a few lines that a user would write.

    python benchmarks/neighbours.py             # all that are installed
    python benchmarks/neighbours.py Modin SHAP  # these, beside the records of the others

The lines are the cells of `neighbours_trials.py`. Records are in `results/neighbours.json`, and
`docs/evidence/neighbours.md` is made of them. The exit status is 1 if a cell does not do what it
says. `tests/test_neighbours.py` runs the cells whose packages are installed.
"""

from __future__ import annotations

import importlib.util
import json
import os
import re
import sys
import tempfile
import warnings
from dataclasses import dataclass
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from typing import Any

import sklearn

BENCHMARKS = Path(__file__).resolve().parent
CELLS = BENCHMARKS / "neighbours_trials.py"
RECORDS = BENCHMARKS / "results" / "neighbours.json"
PAGE = BENCHMARKS.parent / "docs" / "evidence" / "neighbours.md"

SECTION = "# %%%% "
CELL = "# %% "
REFUSED = re.compile(r"^# refused: (.*)\n", re.MULTILINE)


@dataclass(frozen=True)
class Trial:
    """A cell.

    Attributes
    ----------
    library, used
        The name of the library, and what is used of it.
    modules
        What the cell imports; the first has the version.
    note
        What the user has to know or to do.
    code
        Lines that work, or that raise what `refused` says.
    refused
        A pattern of the message, or an empty text.
    instead
        Lines that work in place of those that are refused.
    """

    library: str
    used: str
    modules: tuple[str, ...]
    note: str
    code: str
    refused: str
    instead: str

    @property
    def key(self) -> str:
        return f"{self.library}: {self.used}"

    @property
    def missing(self) -> list[str]:
        """Return the packages that are not installed."""
        return [name for name in self.modules if importlib.util.find_spec(name) is None]


def sections() -> dict[str, list[Trial]]:
    """Return the cells by section."""
    _, *texts = CELLS.read_text("utf-8").split(SECTION)
    result = {}
    for text in texts:
        title, *cells = text.split(CELL)
        result[title.strip()] = [_trial(cell) for cell in cells]
    return result


def _trial(cell: str) -> Trial:
    title, code = cell.split("\n", 1)
    library, modules, used = title.split(" | ")
    comments = re.match(r"(?:# (?!refused: ).*\n)*", code)[0]
    note = " ".join(line.removeprefix("# ") for line in comments.splitlines())
    code, refused, instead = (*REFUSED.split(code), "", "")[:3]
    return Trial(library, used, tuple(modules.split()), note, code, refused, instead)


@cache
def applicants() -> dict[str, Any]:
    """Return the names that all cells share."""
    names: dict[str, Any] = {"__name__": "neighbours"}
    exec(compile(CELLS.read_text("utf-8").split(SECTION)[0], CELLS.name, "exec"), names)
    return names


def attempt(trial: Trial) -> str:
    """Run a cell in a folder of its own; return the error if it does not do what it says."""
    names = dict(applicants())
    home = Path.cwd()
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.chdir(folder)
        try:
            with sklearn.config_context():
                _run(trial.code, trial.refused, names)
                _run(trial.instead, "", names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        finally:
            os.chdir(home)
    return ""


def _run(code: str, refused: str, names: dict[str, Any]) -> None:
    try:
        exec(compile(code, CELLS.name, "exec"), names)
    except Exception as error:
        if not refused or not re.search(refused, str(error), re.DOTALL):
            raise
    else:
        if refused:
            raise AssertionError(f"nothing was refused with {refused!r}")


def page(records: dict[str, dict[str, str]]) -> str:
    """Return the page: for each library what works, or what to do instead."""
    tried = [trial for trials in sections().values() for trial in trials if trial.key in records]
    worked = sum(not trial.refused for trial in tried)
    lines = [
        "# Other libraries, tried",
        "",
        f"{len(tried)} uses of {len({trial.library for trial in tried})} libraries, each a program"
        " of a few lines on 600 made-up applicants. Where possible, the result is compared with"
        f" that of plain pandas or a calculation by hand. {worked} work as they are. For the others"
        " the last column says what to do instead, also tried. The programs are in"
        " `benchmarks/neighbours_trials.py`; `make test-all` runs those whose packages are"
        " installed, and `benchmarks/neighbours.py` makes this page.",
    ]
    for title, trials in sections().items():
        lines += ["", f"## {title}", ""]
        lines += ["| library | used | works | what to know or do |", "|---|---|---|---|"]
        for trial in trials:
            if trial.key in records:
                record = records[trial.key]
                works = record["failed"] or ("no" if trial.refused else "yes")
                library = f"{trial.library} {record['version']}"
                lines.append(f"| {library} | {trial.used} | {works} | {trial.note} |")
    return "\n".join(lines) + "\n"


def main(libraries: list[str]) -> int:
    """Try some libraries or all, keep the records of the others, and write the page."""
    known = json.loads(RECORDS.read_text("utf-8")) if libraries else {}
    distributions = packages_distributions()
    records: dict[str, dict[str, str]] = {}
    for trial in [trial for trials in sections().values() for trial in trials]:
        if trial.missing or (libraries and trial.library not in libraries):
            if trial.key in known:
                records[trial.key] = known[trial.key]
            continue
        failed = attempt(trial).split("\n")[0]
        print(f"{trial.key}: {failed or 'as said'}", flush=True)
        number = version(distributions[trial.modules[0]][0])
        records[trial.key] = {"version": number, "failed": failed}
    RECORDS.write_text(json.dumps(records, indent=1) + "\n", encoding="utf-8")
    PAGE.write_text(page(records), encoding="utf-8")
    return int(any(record["failed"] for record in records.values()))


if __name__ == "__main__":
    os.environ.setdefault("MLFLOW_TRACKING_URI", f"sqlite:///{tempfile.mkdtemp()}/mlflow.db")
    sys.exit(main(sys.argv[1:]))
