"""The script that computes the numbers of the pages again: what it reads, what it finds, and the
fair comparison beside the package's own code.
"""

import re
import shutil
import sys
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pytest import approx

from frhsic_paper.agreement import compare_small_tables
from frhsic_paper.crossed import reading, showing
from frhsic_paper.results import Results
from recompute import PAGES, PARTS, differences
from rules import comparison, published, reproduction
from rules.reading import NUMBER, compare, read

ROOT = Path(__file__).parents[2]


def numbers(text):
    return [found[0] for found in re.finditer(NUMBER, read(text))]


@pytest.fixture(scope="module", params=PAGES)
def page(request):
    """Return a page and the phrases of its rules."""
    text = (ROOT / request.param).read_text(encoding="utf-8")
    rules = PAGES[request.param]
    return text, [*rules.phrases(), *rules.GIVEN]


@pytest.mark.parametrize("name", [*PAGES, *PARTS])
def test_every_number_of_the_pages_follows_from_the_records(name):
    assert not differences(name)


@pytest.mark.parametrize(
    "text",
    [
        "`limit=0.5`",
        "```python\nx = 12\n```",
        "[a page](page-2.md#part-3)",
        "<!-- from the records 45cc976d8fbb -->",
        "Table 3 and Figure 12 by Nadeau and Bengio (2003), AIF360, H200, float32",
        "a second network, one of the folds, in two ways",
    ],
)
def test_what_is_no_measured_number_is_not_read(text):
    assert numbers(text) == []


def test_numbers_are_read_in_digits_and_in_words():
    text = """At most 7·10⁻⁸, .05 or 1,024.5 rows in a second, half an hour on **six** or
    ten fresh tables (12 %); about four\nminutes, −3.2 and 36× or 15x faster."""
    found = ["7·10⁻⁸", ".05", "1,024.5", "a", "half an", "ten", "12", "four", "−3.2", "36", "15"]
    assert numbers(text) == found


def test_every_changed_digit_is_found_and_corrected(page):
    text, phrases = page
    *before, _ = compare(text, phrases)
    for number in re.finditer(NUMBER, read(text)):
        if digit := re.search(r"\d", number[0]):
            place = number.start() + digit.start()
            changed = text[:place] + str((int(text[place]) + 1) % 10) + text[place + 1 :]
            *wrong, corrected = compare(changed, phrases)
            assert wrong != before, number[0]
            assert any(before) or corrected == text, number[0]


def test_a_number_without_a_rule_is_found(page):
    text, phrases = page
    _, unclaimed, _ = compare(f"{text}\nIt took 98.7 s on nine more tables.\n", phrases)
    last = [line.partition(":")[0] for line in unclaimed[-2:]]
    assert last == ["no rule for 98.7", "no rule for nine"]


def test_a_rule_without_a_place_is_found(page):
    text, phrases = page
    wrong, _, same = compare(text, [*phrases, "in 3 of 4 cells of a deleted study"])
    assert "no place for: in 3 of 4 cells of a deleted study" in wrong
    assert same == compare(text, phrases)[-1]


def test_the_nearest_row_of_a_table_is_corrected():
    rows = "| a | 1 | 2 |\n| a | 3 | 4 |"
    wrong, _, corrected = compare(rows, ["| a | 1 | 2 |", "| a | 3 | 5 |"])
    assert wrong == ["| a | 3 | 4 |\n    the records give: | a | 3 | 5 |"]
    assert corrected == "| a | 1 | 2 |\n| a | 3 | 5 |"


def test_numbers_that_are_not_there_yet_are_filled_in():
    page = "On [[N]] fresh tables, best in **[[N]]** of [[M]]."
    phrases = ["On three fresh tables", "best in 5 of 6"]
    wrong, _, filled = compare(page, phrases)
    assert len(wrong) == 2
    assert filled == "On three fresh tables, best in **5** of 6."
    assert compare(filled, phrases) == ([], [], filled)
    assert compare(page, [])[1][0].startswith("no rule for [[N]]: ")


def test_changed_counts_of_a_study_are_found(tmp_path):
    shutil.copytree(ROOT / "docs" / "evidence", tmp_path, dirs_exist_ok=True)
    assert not reproduction.file_counts(tmp_path)
    path = tmp_path / "convergence.md"
    text, changes = re.subn(r"(parquet` \| \d+)(?= \|)", r"\g<1>1", path.read_text("utf-8"))
    path.write_text(text, encoding="utf-8")
    wrong = reproduction.file_counts(tmp_path)
    assert len(wrong) == changes == 2
    assert all(line.startswith("convergence-") for line in wrong)


def test_nothing_that_it_checks_is_imported():
    allowed = {"numpy", "pandas", "rules", *sys.stdlib_module_names}
    folder = ROOT / "paper"
    for path in (folder / "recompute.py", *(folder / "rules").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        modules = set(re.findall(r"^ *(?:from|import) (\S+)", text, re.MULTILINE))
        assert {module.partition(".")[0] for module in modules} <= allowed, path.name


# --- the same base, the same rows


def records_of_ways(seed, folds=5):
    """Return made-up records of paths on two fresh tables, one of them with decisions."""
    rng = np.random.default_rng(seed)
    records = []
    for table, base in product(("neuroticism", "plebiscite"), ("trees", "splines")):
        for quantity in comparison.QUANTITIES if table == "plebiscite" else ("scores",):
            ways = ["none", "constant", "closed form", "contraction", "frhsic"]
            ways += ["closed form, with S", "fairlearn CorrelationRemover"]
            for way in ways:
                dials = np.zeros(1) if way in ("none", "constant") else np.linspace(0, 1, 4)
                gap = 0.0 if way == "constant" else 0.1 * (1 - 0.9 * dials[:, None])
                loss = 0.69 if way == "constant" else 0.5 + 0.1 * dials[:, None] ** 2
                noise = 1 + 0.02 * rng.normal(size=(2, len(dials), folds + 1))
                record = {"part": "final", "dataset": table, "base": base, "way": way}
                record |= {"quantity": quantity, "dials": dials.tolist()}
                record |= {"gaps": (gap * noise[0]).tolist(), "losses": (loss * noise[1]).tolist()}
                records.append(record | {"training_rows": 900, "test_rows": 100})
    return records


def test_a_cost_by_hand():
    """A constant loses 9; at gaps 6, 4 and 2 of a base with gap 8 and loss 1 the line through
    (0, 9), (3, 5), (5, 2), (8, 1) has 5/3, 7/2 and 19/3.
    """
    paths = {
        "none": [(8, 1)],
        "constant": [(0, 9)],
        "closed form": [(8, 1), (5, 2), (6, 4), (3, 5)],
    }
    cost = comparison.costs_of(paths)
    assert cost["closed form"] == approx(((5 / 3 + 7 / 2 + 19 / 3) / 3 - 1) / 8)


def test_standings_by_hand():
    """Way a is ahead in the first cell, b and c are level there by two errors; in the second all
    are level; in the third the error is undefined, and no way counts as level.
    """

    def cell(*costs, spread=1.0):
        # the errors of all differences are `spread` times the root of 3
        shifts = np.array([[0, 0, 0, 0], [-1, 1, -1, 1], [1, 1, -1, -1]]) * spread
        ways = ("closed form", "b", "c")
        return {
            way: comparison.Cost(cost, shift, 1.0, 1.0)
            for way, cost, shift in zip(ways, costs, shifts)
        }

    cells = {
        ("scores", "trees", "one"): cell(0.0, 3.0, 4.0),
        ("scores", "trees", "two"): cell(0.0, 0.5, 0.5),
        ("scores", "splines", "three"): cell(1.0, np.nan, np.nan),
    }
    found = comparison.standings(cells, "scores", False)
    assert found["closed form", "trees"] == (1, 1, 0)
    assert found["b", "trees"] == (0, 1, 1)
    assert found["closed form", "splines"] == (0, 0, 1)
    assert comparison.standing_of("closed form", cells, "scores", False) == (1, 1, 1)
    assert comparison.standing_of("closed form", cells, "scores", False, 3.0).ahead == 0


@pytest.mark.parametrize("seed", range(2))
def test_costs_counts_and_sentences_are_those_of_the_package(seed):
    records = records_of_ways(seed)
    results = Results({("crossed", "corrected"): records})
    theirs = showing.all_costs(results)
    ours = comparison.cells_of(pd.DataFrame(records))
    assert {cell: set(costs) for cell, costs in ours.items()} == {
        cell: set(costs) for cell, costs in theirs.items()
    }
    assert len(ours) == 8
    for cell, costs in ours.items():
        first = next(iter(costs))
        for way, cost in costs.items():
            other = theirs[cell][way]
            assert cost.value == approx(other.value, rel=1e-12)
            error = comparison.error_between(cost, costs[first])
            assert error == approx(other.difference_error(theirs[cell][first]), rel=1e-9, abs=1e-15)
    for with_s, quantity in product((False, True), reading.YARDSTICKS):
        for errors in (1.0, 2.0):
            every = showing.standings(theirs, quantity, with_s, errors)
            for way in set(every.way):
                own = comparison.standing_of(way, ours, quantity, with_s, errors)
                assert "/".join(map(str, own)) == showing.counted(every.standing[every.way == way])
    tables = f"The cells are from {comparison.tables_phrase(ours)}."
    assert [reproduction.goal(ours), tables] == showing.sentences(results)


def test_numbers_of_the_small_tables_near_ours_are_those_of_the_package():
    results = Results.read(ROOT / "paper" / "results")
    assert published.beside_small_tables() == list(map(str, compare_small_tables(results)))


def test_tables_and_bases_are_those_of_the_package():
    assert comparison.FRESH == showing.FRESH
    assert comparison.QUANTITIES == reading.YARDSTICKS
    assert tuple(showing.BASES) == comparison.BASES
