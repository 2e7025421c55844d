"""The document and its claims, from made records: every experiment, none, and records that turn a verdict."""

import re
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG

from frhsic_paper.claim import VERDICTS, Cases, Finding, Outcome, judged, verdict
from frhsic_paper.details import WORDS, details, study_pages
from frhsic_paper.options import Options
from frhsic_paper.page import figures, fingerprint, write
from frhsic_paper.protocol import CORRECTED, DATASETS, METHODS
from frhsic_paper.records import write as write_records
from frhsic_paper.results import Results
from frhsic_paper.sources import Source
from frhsic_paper.studies import PAGE, STUDIES, theorems
from frhsic_paper.study import Study
from frhsic_paper.table import Listed, Table
from paper_records import every_experiment, sweep

CLAIMS = [claim for study in STUDIES for claim in study.claims]
SECTIONS = [study for study in STUDIES if study.title]


@pytest.fixture(scope="module")
def everything():
    return Results(every_experiment())


def save_in_place(figure, path):
    """Save a figure without its axes, without arranging its parts, and with letters as text: all that takes long."""
    figure.set_layout_engine("none")
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        axis.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(path)
    return path


@pytest.fixture(scope="module")
def written(tmp_path_factory, everything):
    folder = tmp_path_factory.mktemp("document")
    for (experiment, protocol), records in everything.files.items():
        write_records(folder / f"{experiment}-{protocol}.parquet", records)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frhsic_paper.page.save", save_in_place)
        return folder, write(folder, folder / "docs")


def pages_of(results, drawn=None):
    """Return all pages of the studies as one text."""
    return "\n".join(details(results, judged(CLAIMS, results), drawn or {}).values())


def claim(name):
    return next(c for c in CLAIMS if c.name == name)


def decided(name, files):
    return claim(name).judge(Results(files))


def test_the_pages_hold_every_claim_every_figure_and_no_empty_study(written):
    folder, paths = written
    index = (folder / "docs" / "reproduction" / "claims.md").read_text()
    for study in SECTIONS:
        path = folder / "docs" / "reproduction" / f"{study.name}.md"
        assert path.exists() == (study.name not in {"tuned", "yardsticks"})  # no made records, no claims
        if path.exists():
            page = path.read_text()
            assert page.startswith(f"# {study.title}\n")
            assert f"[{study.title}]({study.name}.md)" in index
            assert f"`frhsic reproduce {study.name}" in page
            assert f"\n{study.name}\n" in index.split("```{toctree}")[1]
        for one in study.claims:
            assert page.count(one.statement) == index.count(one.statement) == 1
            assert page.count(f'<a id="{one.name}"></a>\n') == 1
            assert f'<a id="{one.name}"></a>[{one.statement}]({study.name}.md#{one.name})' in index
    text = "".join(path.read_text() for path in (folder / "docs" / "reproduction").glob("*.md"))
    links = re.findall(r"\]\(\.\./(figures/[^)]+)\)", text)
    assert len(links) == len(set(links)) == sum(path.suffix == ".svg" for path in paths)
    for figure in links:
        assert (folder / "docs" / figure).stat().st_size > 4000


def test_a_page_names_its_records_and_what_is_due(written):
    folder, _ = written
    page = (folder / "docs" / "reproduction" / "bound.md").read_text()
    assert "In the paper: Figure 10. Command: `frhsic reproduce bound --protocol both`." in page
    assert "| `results/bound-corrected.parquet` | 8 | — | — | not recorded |" in page
    assert "- `bound-corrected.parquet` has 0 of 22 records of models. The command makes what is due." in page
    leak = (folder / "docs" / "reproduction" / "leak.md").read_text()
    assert (
        "| `results/tradeoff-corrected.parquet` | 750 | 750 | 90 s | not recorded |" in leak
    )  # it measures its models


def test_the_longest_tables_of_a_long_page_stand_on_a_page_of_their_own():
    def pages(rows):
        table = Table.of(["word"], [["one two three"]] * rows)
        short = Table.of(["word"], [["short"]])
        listed = [Listed("Long", table), Listed("Short", short), Listed("Longer", Table(table.columns, table.rows * 2))]
        return study_pages(Study("made", "", "Made", "Words."), Results({}), {}, listed, (), ())

    (page,) = pages(20).values()
    assert page.count("| one two three |") == 60
    page, tables = pages(400).values()
    assert len(page.split()) <= WORDS
    assert "**Longer**: [on the page of long tables](made_tables.md#made-table-3)." in page
    assert "| short |" in page
    assert "| short |" not in tables
    assert tables.count("| one two three |") == 1200
    assert re.findall(r'<a id="(.*)"></a>\n\*\*(.*)\*\*', tables) == [
        ("made-table-1", "Long"),
        ("made-table-3", "Longer"),
    ]


def test_every_row_of_every_table_has_as_many_cells_as_its_heading(written):
    folder, _ = written
    for path in (folder / "docs").rglob("*.md"):
        width = None
        for line in path.read_text().splitlines():
            if line.startswith("|"):
                cells = len(re.split(r"(?<!\\)\|", line))
                assert width in (None, cells), line
                width = cells
            else:
                width = None


def test_the_same_records_give_the_same_bytes(everything, tmp_path):
    few = {key: value for key, value in everything.files.items() if key[0] in ("leak", "runtime")}
    for (experiment, protocol), records in few.items():
        write_records(tmp_path / f"{experiment}-{protocol}.parquet", records)
    first, again = ({path.name: path.read_bytes() for path in write(tmp_path, tmp_path / name)} for name in "ab")
    assert {"leak.svg", "runtime-published.svg", "runtime-corrected.svg"} < set(first)
    for name, content in first.items():
        assert content == again[name], name


def test_without_any_record_no_verdict_is_made_up(everything):
    # these read the published files alone
    of_print_alone = {"one-grid", "tables-agree", "adult-rows", "held-out-weight", "mean-and-std", "one-hot"}
    of_print_alone |= {"meps-panel", "transfer-datasets", "timing"}
    for one in CLAIMS:
        finding = one.judge(Results({}))
        assert (finding.verdict == "cannot be judged") == (one.name not in of_print_alone), one.name
    assert "It was not run." in pages_of(Results({}))


def test_one_experiment_alone_gives_a_document(everything, monkeypatch):
    monkeypatch.setattr("frhsic_paper.details.due", lambda *_: ())  # a second for each document
    for key, records in everything.files.items():
        if key[0] not in ("tradeoff", "leaky-scaling"):
            assert "It was not run." in pages_of(Results({key: records}))


def test_every_claim_is_decided_once_everything_was_run(everything):
    claims = [one for section in SECTIONS if section.name in PAGE for one in section.claims]
    verdicts = {name: finding.verdict for name, finding in judged(claims, everything).items()}
    assert set(verdicts.values()) <= set(VERDICTS)
    assert "cannot be judged" not in verdicts.values()


def test_names_of_claims_are_unique_and_stand_in_a_section():
    assert len({one.name for one in CLAIMS}) == len(CLAIMS)
    assert all(study.title for study in STUDIES if study.claims)
    assert {section.name for section in SECTIONS} >= set(PAGE)


def test_an_empty_directory_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="run `frhsic reproduce NAME` first"):
        write(tmp_path, tmp_path / "docs")


def test_a_share_is_in_part_and_silence_is_no_verdict():
    assert verdict(Outcome(Cases(1, 2), "")) == "holds in part"
    assert verdict(Outcome(True, ""), Outcome(None, "")) == "holds"
    assert verdict(Outcome(Cases(0, 3), ""), Outcome(False, "")) == "does not hold"


def test_a_label_gives_the_cases_of_each_protocol():
    label = Finding.of(Outcome(Cases(1, 5), ""), Outcome(Cases(5, 5), ""), "").label
    assert label == "holds in part (published 1 of 5, corrected 5 of 5)"
    assert Finding.of(Outcome(None, ""), Outcome(Cases(0, 5), ""), "").label == "does not hold (corrected 0 of 5)"
    assert Finding.of(Outcome(True, ""), Outcome(False, ""), "").label == "holds in part (published yes, corrected no)"
    assert Finding.of(Outcome(True, ""), Outcome(True, ""), "").label == "holds"


def test_fewer_than_three_repeats_are_not_judged(everything):
    files = {
        key: [r for r in value if r["repeat"] < 2] for key, value in everything.files.items() if key[0] == "transfer"
    }
    finding = decided("transfer-caption", files)
    assert finding.verdict == "cannot be judged"
    assert "2 repeats, too few to judge" in finding.corrected
    few = [r for r in everything.files["equal-opportunity", "corrected"] if r["repeat"] < 2]
    assert decided("eo-full-gdp", {("equal-opportunity", "corrected"): few}).verdict == "cannot be judged"


def test_a_bound_is_held_against_the_trivial_one(everything):
    files = {("bound", "corrected"): everything.files["bound", "corrected"]}
    assert decided("bound-non-vacuous", files).label == "does not hold (corrected 0 of 4)"
    low = [r | {"rhs": 0.2} for r in files["bound", "corrected"]]
    assert decided("bound-non-vacuous", {("bound", "corrected"): low}).verdict == "holds"
    lower = [r | {"trivial": 1e-3} for r in low]  # below a quarter, and still above what holds anyway
    assert decided("bound-non-vacuous", {("bound", "corrected"): lower}).verdict == "does not hold"


def test_binning_turns_with_the_number_of_datasets_that_a_binned_method_leads(everything):
    made = everything.files["tradeoff", "corrected"]

    def judged(datasets):
        low = [
            r | {"gdp_probability": 0.3 * r["gdp_probability"]}
            if r["dataset"] in datasets and r["method"] == "mmd"
            else r
            for r in made
        ]
        return decided("binning", {("tradeoff", "corrected"): low}).corrected

    assert judged(DATASETS[:4]).startswith("a binned method leads on 4 of 5")


def test_pages_of_other_records_are_not_overwritten_silently(tmp_path, everything, monkeypatch):
    monkeypatch.setattr("frhsic_paper.details.due", lambda *_: ())
    monkeypatch.setattr("frhsic_paper.page.figures", lambda *_: {})
    files = {key: value for key, value in everything.files.items() if key[0] == "runtime"}
    for (experiment, protocol), records in files.items():
        write_records(tmp_path / f"{experiment}-{protocol}.parquet", records)
    write(tmp_path, tmp_path / "docs")
    write(tmp_path, tmp_path / "docs")  # the same records
    write_records(tmp_path / "runtime-published.parquet", files["runtime", "published"][:-1])
    with pytest.raises(ValueError, match="pass --overwrite"):
        write(tmp_path, tmp_path / "docs")
    write(tmp_path, tmp_path / "docs", overwrite=True)
    for name in (
        "reproduction/yardsticks.md",
        "reproduction/runtime.md",
    ):  # of another run, or a person
        (tmp_path / "docs" / name).write_text("another page", encoding="utf-8")
        with pytest.raises(ValueError, match=f"{name} was not written from the records"):
            write(tmp_path, tmp_path / "docs")
        (tmp_path / "docs" / name).unlink()


def test_a_page_of_a_study_that_has_none_any_more_goes(tmp_path, everything, monkeypatch):
    monkeypatch.setattr("frhsic_paper.details.due", lambda *_: ())
    monkeypatch.setattr("frhsic_paper.page.figures", lambda *_: {})
    folder = tmp_path / "docs" / "reproduction"
    names = ("scaling", "activation")
    for name in names:
        write_records(tmp_path / f"{name}-corrected.parquet", everything.files[name, "corrected"])
    write(tmp_path, tmp_path / "docs")
    assert (folder / "activation.md").exists()
    (folder / "notes.md").write_text("of a person", encoding="utf-8")
    (tmp_path / "activation-corrected.parquet").unlink()
    write(tmp_path, tmp_path / "docs", overwrite=True)
    assert not (folder / "activation.md").exists()
    assert (folder / "scaling.md").exists()
    assert (folder / "notes.md").read_text(encoding="utf-8") == "of a person"


def test_speedup_that_is_only_a_loop_holds_in_part(everything):
    runtime = {key: value for key, value in everything.files.items() if key[0] == "runtime"}
    assert decided("speedup", runtime).verdict == "holds in part"
    assert "36.0×" in decided("speedup", runtime).published
    slow = [r | {"seconds": 7.2} if r["method"].startswith("frem") else r for r in runtime["runtime", "corrected"]]
    assert decided("speedup", runtime | {("runtime", "corrected"): slow}).verdict == "holds"


def test_rates_are_read_from_intervals(everything):
    files = {key: value for key, value in everything.files.items() if key[0] == "convergence"}
    assert decided("hsic-rate", files).verdict == "holds"
    # γ fixed has HSIC's rate, γ shrinking is slower: one protocol of two
    assert decided("eipm-rate", files).verdict == "holds in part"


def test_a_rate_holds_only_where_the_interval_contains_it(everything):
    files = {key: value for key, value in everything.files.items() if key[0] == "convergence"}
    steeper = {
        key: [r | {"error": r["error"] * r["n"] ** -0.3} if r["statistic"] == "hsic" else r for r in value]
        for key, value in files.items()
    }
    assert decided("hsic-rate", steeper).verdict == "does not hold"


def test_a_rise_counts_if_it_exceeds_its_noise_over_paired_splits():
    def judged(last, repeats=5):
        made = [
            {
                "dataset": "synthetic",
                "method": "none" if w == 0 else "frhsic",
                "weight": w,
                "repeat": r,
                "gdp_probability": gdp + 0.01 * r,
                "gdp_logit_uniform": gdp + 0.01 * r,
            }
            for r in range(repeats)
            for w, gdp in ((0.0, 0.5), (0.1, 0.3), (1.0, last(r)))
        ]
        return decided("synthetic-monotone", {("synthetic", "corrected"): made}).verdict

    assert judged(lambda r: 0.29) == "holds"
    assert judged(lambda r: 0.32) == "does not hold"
    assert judged(lambda r: 0.32 if r else 0.2) == "holds"  # a rise on average, within its noise
    assert judged(lambda r: 0.32, repeats=1) == "cannot be judged"


def test_crime_claim_compares_the_unpenalised_gdp_with_the_published_one():
    def files(published, corrected):
        return {
            ("tradeoff", name): [
                r | {"gdp_logit_uniform": value} for r in sweep("tradeoff", name, ("crime",), ("frhsic",), repeats=2)
            ]
            for name, value in (("published", published), ("corrected", corrected))
        }

    assert decided("crime-attribute", files(0.029, 0.19)).verdict == "does not hold"
    assert decided("crime-attribute", files(0.029, 0.029)).verdict == "holds"


def test_best_on_compas_turns_with_the_areas():
    records = sweep("tradeoff", "published", ("compas",), METHODS)
    lower = [r | {"gdp_logit_uniform": 0.2 * r["gdp_logit_uniform"]} if r["method"] == "frhsic" else r for r in records]
    higher = [r | {"gdp_logit_uniform": 2 * r["gdp_logit_uniform"]} if r["method"] == "frhsic" else r for r in records]
    assert decided("best-on-compas", {("tradeoff", "published"): lower}).verdict == "holds"
    assert decided("best-on-compas", {("tradeoff", "published"): higher}).verdict == "does not hold"


def test_the_second_verdict_is_that_of_decisions():
    records = sweep("tradeoff", "corrected", ("compas",), METHODS)
    lower = [r | {"validation_gdp_decision": 0.1 * r["gdp_decision"]} for r in records]
    lower = [r | {"gdp_decision": 0.1 * r["gdp_decision"]} if r["method"] == "frhsic" else r for r in lower]
    higher = [r | {"gdp_probability": 2 * r["gdp_probability"]} if r["method"] == "frhsic" else r for r in lower]
    finding = decided("best-on-compas", {("tradeoff", "corrected"): higher})
    assert (finding.verdict, finding.on_decisions.verdict) == ("does not hold", "holds")


@pytest.mark.parametrize(
    ("seconds", "verdict"),
    [([1.0, 1.1, 1.2], "holds"), ([1.0, 1.1, 1.6], "does not hold"), ([1.0, 0.9, 0.5], "cannot be judged")],
)
def test_time_that_falls_does_not_count_as_insensitive(seconds, verdict):
    times = [
        {"part": "time", "device": "cpu", "method": "frhsic", "dim_s": d, "repeat": r, "seconds": value + r}
        for d, value in enumerate(seconds, start=1)
        for r in range(3)
    ]
    assert decided("dimension-flat", {("high-dimensional", "corrected"): times}).verdict == verdict


def test_a_theorem_fails_where_its_sides_are_the_wrong_way_round(everything):
    made = everything.files["theorems", "corrected"]
    for name in ("theorem-fubini", "theorem-khgr"):
        assert decided(name, {("theorems", "corrected"): made}).verdict == "holds"
        turned = [r | {"left": 0.11} for r in made]
        assert decided(name, {("theorems", "corrected"): turned}).verdict == "does not hold"


def test_every_theorem_holds_on_laws_whose_two_sides_are_known():
    names = list(theorems.units(CORRECTED, Options(Path(), repeats=2)))
    drawn = zip(names, theorems.draws(names, CORRECTED, Options(Path(), repeats=2)))
    made = [r | {"name": name, "part": "draws"} for (name,), rows in drawn for r in rows]
    made += [r | {"repeat": 2} for r in made if r["repeat"] == 0]  # a verdict needs three
    files = {("theorems", "corrected"): made}
    assert {claim.judge(Results(files)).verdict for claim in theorems.STUDY.claims} == {"holds"}


def test_a_dataset_whose_baseline_is_missing_is_left_out_not_fatal():
    records = sweep("tradeoff", "corrected", DATASETS[:2], (*METHODS, "hsic"))
    records = [r for r in records if not (r["dataset"] == "acs_income" and r["method"] == "none")]
    text = pages_of(Results({("tradeoff", "corrected"): records}))
    assert "Matched performance" in text
    assert "ACS Income" not in text.split("**Matched performance, corrected")[1].split("**Pareto summary")[0]


def test_results_are_read_by_experiment_and_protocol(tmp_path):
    write_records(tmp_path / "ablation-dimension-published.parquet", [{"part": "2", "a": 1}, {"part": "8", "a": 2}])
    write_records(tmp_path / "notes.parquet", [{"a": 1}])
    results = Results.read(tmp_path)
    assert set(results.files) == {("ablation-dimension", "published")}
    assert results.of("ablation-dimension/8", "published") == ({"part": "8", "a": 2},)
    assert len(results.of("ablation-dimension", "published")) == 2
    assert results.of("tradeoff", "corrected") == ()


def test_seconds_of_a_fleet_are_counted_once():
    assert Source.of("tradeoff", "published", sweep("tradeoff", "published", ("compas",), ("frhsic",))).seconds == 4.0


@pytest.mark.slow
def test_the_document_in_the_repository_is_what_its_records_give():
    root = Path(__file__).parents[2]
    results = Results.read(root / "results")
    assert results.files  # they are part of the repository
    docs, again = root / "docs", "run `frhsic reproduce all --docs --overwrite`"
    stamp = f"\n<!-- from the records {fingerprint(root / 'results')} -->\n"
    pages = details(results, judged(CLAIMS, results), figures(results))
    for name, text in pages.items():
        assert (docs / name).read_text() == text + stamp, again
    shipped = {path.relative_to(docs).as_posix() for path in (docs / "reproduction").glob("*.md")}
    assert shipped == set(pages), again
