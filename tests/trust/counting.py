"""Counts of what the trust tests have tried, kept in one file that runs of any length add to.

An entry is named by a section, a subject and a part, such as ("inputs", "hsic", "seed 3"), and holds how often each
outcome came. Writing an entry again replaces it, so that a repeated run counts nothing twice. Run as a program, this
file writes the tables of docs/evidence/trust_counts.md from the counts. Its arguments are reports that it puts into the
counts first: JSON of coverage, or XML of a run of tests, with the versions of the environment that this file runs in.
"""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import sys
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import torch

from frhsic._files import write_whole

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "benchmarks" / "results" / "trust.json"
PAGE = ROOT / "docs" / "evidence" / "trust_counts.md"
ENOUGH = 0.95
BEGIN, END = "<!-- counts -->\n", "<!-- end of counts -->\n"

Entries = dict[str, dict[str, dict[str, dict[str, Any]]]]
"""By section, subject and part."""


def read(path: Path = FILE) -> Entries:
    """Return the entries of a file, or no entries if it does not exist."""
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


class Counts:
    """The entries of one file; several processes may add to it."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def has(self, section: str, subject: str, part: str) -> bool:
        """Return whether the file has an entry, so that its test need not run again."""
        return self.path is not None and part in read(self.path).get(section, {}).get(subject, {})

    def put(self, section: str, subject: str, part: str, outcomes: Mapping[str, int]) -> None:
        """Write an entry, in place of an earlier one."""
        if self.path is None:
            return
        day = datetime.datetime.now(datetime.UTC).date().isoformat()
        folder = os.open(self.path.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)
            entries = read(self.path)
            entries.setdefault(section, {}).setdefault(subject, {})[part] = {**outcomes, "on": day}
            write_whole(self.path, (json.dumps(entries, indent=1, sort_keys=True) + "\n").encode())
        finally:
            os.close(folder)


def rooms(report: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """Return lines and branches that the tests reach, by package or module of the library, of a report of coverage."""
    sums: dict[str, dict[str, int]] = {}
    for path, file in report["files"].items():
        room = Path(path.split("src/frhsic/")[-1]).parts[0].removesuffix(".py")
        own = sums.setdefault(room, {"lines": 0, "lines reached": 0, "branches": 0, "branches reached": 0})
        for kind in ("lines", "branches"):
            reached, missed = (file["summary"][f"{verb}_{kind}"] for verb in ("covered", "missing"))
            own[kind] += reached + missed
            own[f"{kind} reached"] += reached
    return sums


def outcomes(report: str) -> dict[str, int]:
    """Return how many tests passed, were skipped and failed, of the XML report of a run."""
    suites = list(ElementTree.fromstring(report).iter("testsuite"))
    every, skipped, failures, errors = (
        sum(int(suite.get(name, 0)) for suite in suites) for name in ("tests", "skipped", "failures", "errors")
    )
    failed = failures + errors
    return {"passed": every - skipped - failed, "skipped": skipped, "failed": failed}


def versions() -> str:
    """Return the versions that matter most of the environment, and its GPU."""
    names = {"torch": "torch", "NumPy": "numpy", "SciPy": "scipy", "pandas": "pandas", "scikit-learn": "scikit-learn"}
    listed = (f"{shown} {version(name)}" for shown, name in names.items())
    gpu = [torch.cuda.get_device_name(0)] if torch.cuda.is_available() else []
    return ", ".join([f"Python {sys.version_info.major}.{sys.version_info.minor}", *listed, *gpu])


def reached(entries: Entries) -> str:
    """Return the paragraph on what the tests reach of the library, lines and branches apart."""
    by_room = {name: total(entries, "coverage", name) for name in entries["coverage"]}
    shares, below = [], []
    for kind in ("lines", "branches"):
        counts = {name: (got[f"{kind} reached"], got[kind]) for name, got in by_room.items() if got[kind]}
        share = sum(some for some, _ in counts.values()) / sum(every for _, every in counts.values())
        low = sorted((some / every, name) for name, (some, every) in counts.items() if some / every < ENOUGH)
        shares.append(f"{kind} {share:.1%}")
        below.append(f"{kind}: " + (", ".join(f"{name} {part:.1%}" for part, name in low) or "none"))
    return (
        f"**Code that the tests reach**: {', '.join(shares)}. Counted on a machine without a GPU, where Triton's "
        "interpreter runs the kernels. What needs a GPU is not reached there, above all CUDA graphs "
        f"(`training/execution.py`). Rooms below {ENOUGH:.0%}, {'; '.join(below)}.\n"
    )


def total(entries: Entries, section: str, subject: str) -> dict[str, int]:
    """Return the outcomes of a subject, summed over its parts; a peak is the largest."""
    sums: dict[str, int] = {}
    for outcomes in entries[section][subject].values():
        for outcome, count in outcomes.items():
            if outcome.startswith("peak"):
                sums[outcome] = max(sums.get(outcome, 0), count)
            elif outcome != "on":
                sums[outcome] = sums.get(outcome, 0) + count
    return sums


def table(entries: Entries) -> str:
    """Return the counts in Markdown, by section."""
    days = [part["on"] for subjects in entries.values() for parts in subjects.values() for part in parts.values()]
    lines = [f"Counted on {' to '.join(sorted({min(days), max(days)}))}. No outcome was other than those named here.\n"]
    inputs = {name: total(entries, "inputs", name) for name in entries.get("inputs", {})}
    if inputs:
        counted = sum(sum(outcomes.values()) for outcomes in inputs.values())
        lines.append(f"**Inputs**: {counted:,} to {len(inputs)} functions and estimators.\n")
        lines += ["| function | a finite number | an error that names the argument |", "|---|---|---|"]
        lines += [f"| {name} | {got.get('number', 0):,} | {got.get('refused', 0):,} |" for name, got in inputs.items()]
        lines.append("")
    if "signals" in entries:
        of = {name: total(entries, "signals", name) for name in entries["signals"]}
        counted = sum(sum(outcomes.values()) for outcomes in of.values())
        lines.append(
            f"**Signals at random moments**: {counted:,}. After each, a second run equals an undisturbed one.\n"
        )
        lines += ["| command | stopped | had ended already |", "|---|---|---|"]
        lines += [f"| {name} | {got['stopped']} | {got['had ended']} |" for name, got in of.items()]
        lines.append("")
    if "other faults" in entries:
        kinds = sorted({kind for parts in entries["other faults"].values() for kind in parts})
        lines += [
            "**Other faults**, all survived.\n",
            f"| command | {' | '.join(kinds)} |",
            "|---" * (1 + len(kinds)) + "|",
        ]
        for name, parts in entries["other faults"].items():
            cells = [str(parts.get(kind, {}).get("survived", "–")) for kind in kinds]
            lines.append(f"| {name} | {' | '.join(cells)} |")
        lines.append("")
    if "versions" in entries:
        lines += ["**Tests by versions.**\n", "| versions | passed | failed | skipped |", "|---|---|---|---|"]
        for name in entries["versions"]:
            got = total(entries, "versions", name)
            lines.append(f"| {name} | {got['passed']:,} | {got['failed']:,} | {got['skipped']:,} |")
        lines.append("")
    if "coverage" in entries:
        lines.append(reached(entries))
    return "\n".join(lines)


def page(text: str, entries: Entries) -> str:
    """Return the page with the counts in their place."""
    before, rest = text.split(BEGIN)
    return before + BEGIN + table(entries) + END + rest.split(END)[1]


if __name__ == "__main__":
    for argument in map(Path, sys.argv[1:]):
        report = argument.read_text(encoding="utf-8")
        if argument.suffix == ".xml":
            Counts(FILE).put("versions", versions(), argument.stem, outcomes(report))
        else:
            for name, counted in rooms(json.loads(report)).items():
                Counts(FILE).put("coverage", name, "lines and branches", counted)
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), read()), encoding="utf-8")
