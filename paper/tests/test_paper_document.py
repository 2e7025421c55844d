"""The document and its claims, from made records: every experiment, none, and records that turn a
verdict.
"""

import re
from pathlib import Path

import matplotlib as mpl
import pytest
from matplotlib.backends.backend_svg import FigureCanvasSVG

from frhsic_paper.claim import VERDICTS, Cases, Finding, Outcome, judge_claims, verdict
from frhsic_paper.options import Options
from frhsic_paper.page import Source, details, figures, fingerprint, write
from frhsic_paper.protocol import CORRECTED, DATASETS, METHODS
from frhsic_paper.records import write as write_records
from frhsic_paper.results import Results
from frhsic_paper.studies import PAGE, STUDIES, theorems
from frhsic_paper.summary import summary
from paper_records import every_experiment, made, sweep

ROOT = Path(__file__).parents[2]
CLAIMS = {claim.name: claim for study in STUDIES for claim in study.claims}
SECTIONS = [study for study in STUDIES if study.title]


@pytest.fixture(scope="module")
def everything():
    return Results(every_experiment())


def save_in_place(figure, path):
    """Save a figure without its axes, without arranging its parts, and with letters as text: all
    that takes long.
    """
    figure.set_layout_engine("none")
    for axis in (axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)):
        axis.set_visible(False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with mpl.rc_context({"svg.fonttype": "none"}):
        FigureCanvasSVG(figure).print_svg(path)
    return path


def stored(folder, everything, *studies):
    """Write the records of some studies, or of all, into a folder."""
    for (study, protocol), records in everything.files.items():
        if not studies or study in studies:
            write_records(folder / f"{study}-{protocol}.parquet", records)
    return folder


@pytest.fixture(scope="module")
def written(tmp_path_factory, everything):
    folder = stored(tmp_path_factory.mktemp("document"), everything)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("frhsic_paper.page.save", save_in_place)
        return folder / "docs", write(folder, folder / "docs")


@pytest.fixture
def nothing_slow(monkeypatch):
    """No figures, and no count of the records that are due."""
    monkeypatch.setattr("frhsic_paper.page.due_records", lambda *_: ())
    monkeypatch.setattr("frhsic_paper.page.figures", lambda *_: {})


def pages_of(results):
    """Return all pages of the studies as one text."""
    return "\n".join(details(results, judge_claims(CLAIMS.values(), results), {}).values())


def decided(name, files):
    return CLAIMS[name].judge(Results(files))


def test_the_pages_hold_every_claim_every_figure_and_no_empty_study(written):
    docs, paths = written
    index = (docs / "evidence" / "claims.md").read_text()
    for study in SECTIONS:
        path = docs / "evidence" / f"{study.name}.md"
        assert path.exists() == (study.name != "crossed")  # no made records, no claims
        if path.exists():
            page = path.read_text()
            assert page.startswith(f"# {study.title}\n")
            assert f"[{study.title}]({study.name}.md)" in index
            assert f"`frhsic reproduce {study.name}" in page
            assert f"\n{study.name}\n" in index.split("```{toctree}")[1]
        for one in study.claims:
            assert page.count(one.statement) == 1
            assert page.count(f'<a id="{one.name}"></a>\n') == 1
            if one.about != "theory":
                assert index.count(f"[{one.statement}]({study.name}.md#{one.name})") == 1
    text = "".join(path.read_text() for path in (docs / "evidence").glob("*.md"))
    links = re.findall(r"\]\(\.\./(figures/[^)]+)\)", text)
    assert len(links) == len(set(links)) == sum(path.suffix == ".svg" for path in paths)
    assert all((docs / figure).stat().st_size > 4000 for figure in links)


def test_a_page_names_its_records_and_what_is_due(written):
    bound, leak = (
        (written[0] / "evidence" / f"{name}.md").read_text() for name in ("bound", "leak")
    )
    assert "Command: `frhsic reproduce bound --protocol both`." in bound
    assert "| `paper/results/bound-corrected.parquet` | 8 | — | — |" in bound
    assert "`bound-corrected.parquet` has 0 of 110 records of models" in bound
    assert (
        "| `paper/results/tradeoff-corrected.parquet` | 750 | 750 | 90 s |" in leak
    )  # it measures its models


def test_the_same_records_give_the_same_bytes(everything, tmp_path):
    stored(tmp_path, everything, "leak", "runtime")
    first, again = (
        {path.name: path.read_bytes() for path in write(tmp_path, tmp_path / name)} for name in "ab"
    )
    assert {"leak.svg", "runtime-published.svg", "runtime-corrected.svg"} < set(first)
    for name, content in first.items():
        assert content == again[name], name


def test_without_any_record_no_verdict_is_made_up(everything):
    # these read the published files alone
    of_print_alone = {
        "one-grid",
        "tables-agree",
        "adult-rows",
        "held-out-weight",
        "mean-and-std",
        "one-hot",
    }
    of_print_alone |= {"meps-panel", "transfer-datasets", "timing"}
    for name in CLAIMS:
        assert (decided(name, {}).verdict == "cannot be judged") == (name not in of_print_alone), (
            name
        )
    assert "It was not run." in pages_of(Results({}))


def test_every_claim_is_decided_once_everything_was_run(everything):
    claims = [one for section in SECTIONS if section.name in PAGE for one in section.claims]
    verdicts = {finding.verdict for finding in judge_claims(claims, everything).values()}
    assert verdicts <= set(VERDICTS) - {"cannot be judged"}


def test_an_empty_directory_is_an_error_that_says_what_to_do(tmp_path):
    with pytest.raises(ValueError, match="reproduce NAME"):
        write(tmp_path, tmp_path / "docs")


def test_a_share_is_in_part_and_silence_is_no_verdict():
    assert verdict(Outcome(Cases(1, 2), "")) == "holds in part"
    assert verdict(Outcome(True, ""), Outcome(None, "")) == "holds"
    assert verdict(Outcome(Cases(0, 3), ""), Outcome(False, "")) == "does not hold"


@pytest.mark.parametrize(
    ("published", "corrected", "label"),
    [
        (Cases(1, 5), Cases(5, 5), "holds in part (published 1 of 5, corrected 5 of 5)"),
        (None, Cases(0, 5), "does not hold (corrected 0 of 5)"),
        (True, False, "holds in part (published yes, corrected no)"),
        (True, True, "holds"),
    ],
)
def test_a_label_gives_the_cases_of_each_protocol(published, corrected, label):
    assert Finding.from_outcomes(Outcome(published, ""), Outcome(corrected, ""), "").label == label


def times(factor, column, **where):
    """Return the values of a column, those of some records times a factor."""
    return lambda r: r[column] * (factor if where.items() <= r.items() else 1)


def gap_of(method, factor):
    """The GDP of a method on COMPAS, as both protocols read it, times a factor."""
    columns = ("gdp_logit_uniform", "gdp_probability")
    return {column: times(factor, column, method=method, dataset="compas") for column in columns}


TURNED = [
    ("bound-non-vacuous", {}, "does not hold"),
    ("bound-non-vacuous", {"rhs": 0.2}, "holds"),
    # still above what holds anyway
    ("bound-non-vacuous", {"rhs": 0.2, "trivial": 1e-3}, "does not hold"),
    ("speedup", {}, "holds in part"),  # only a loop is slow
    (
        "speedup",
        {"seconds": lambda r: 7.2 if r["method"].startswith("frem") else r["seconds"]},
        "holds",
    ),
    ("hsic-rate", {}, "holds"),
    # no longer in the interval
    ("hsic-rate", {"error": lambda r: r["error"] * r["n"] ** -0.3}, "does not hold"),
    # γ fixed has HSIC's rate, γ shrinking is slower: one protocol of two
    ("eipm-rate", {}, "holds in part"),
    ("theorem-fubini", {}, "holds"),
    ("theorem-fubini", {"left": 0.11}, "does not hold"),
    ("theorem-khgr", {}, "holds"),
    ("theorem-khgr", {"left": 0.11}, "does not hold"),
    (
        "crime-attribute",
        {"gdp_logit_uniform": lambda r: 0.03 if r["protocol"] == "published" else 0.2},
        "does not hold",
    ),
    ("crime-attribute", {"gdp_logit_uniform": 0.029}, "holds"),
    ("best-on-compas", gap_of("frhsic", 0.2), "holds"),
    ("best-on-compas", gap_of("frhsic", 2), "does not hold"),
    ("any-head", {}, "does not hold"),
    ("any-head", {"best_probe_r2": 0.01}, "holds"),
    # two repeats are too few
    ("transfer-caption", {"repeat": lambda r: r["repeat"] % 2}, "cannot be judged"),
    ("eo-full-gdp", {"repeat": lambda r: r["repeat"] % 2}, "cannot be judged"),
]


@pytest.mark.parametrize(("name", "changes", "expected"), TURNED)
def test_a_verdict_turns_with_the_records(everything, name, changes, expected):
    studies = {study.name for study in STUDIES if name in {claim.name for claim in study.claims}}
    files = {
        key: [
            r | {c: value(r) if callable(value) else value for c, value in changes.items()}
            for r in records
        ]
        for key, records in everything.files.items()
        if key[0] in studies
    }
    assert decided(name, files).verdict == expected


def test_pages_of_other_records_are_not_overwritten_silently(tmp_path, everything, nothing_slow):
    docs = stored(tmp_path, everything, "runtime") / "docs"
    write(tmp_path, docs)
    write(tmp_path, docs)  # the same records
    write_records(
        tmp_path / "runtime-published.parquet", everything.files["runtime", "published"][:-1]
    )
    with pytest.raises(ValueError, match="pass --overwrite"):
        write(tmp_path, docs)
    write(tmp_path, docs, overwrite=True)
    for name in (
        "evidence/crossed.md",
        "evidence/runtime.md",
    ):  # of another run, or a person
        (docs / name).write_text("another page", encoding="utf-8")
        with pytest.raises(ValueError, match=name):
            write(tmp_path, docs)
        (docs / name).unlink()


def test_a_page_of_a_study_that_has_none_any_more_goes(tmp_path, everything, nothing_slow):
    stored(tmp_path, everything, "scaling", "baseline-settings")
    folder = tmp_path / "docs" / "evidence"
    write(tmp_path, tmp_path / "docs")
    assert (folder / "baseline-settings.md").exists()
    (folder / "notes.md").write_text("of a person", encoding="utf-8")
    (tmp_path / "baseline-settings-corrected.parquet").unlink()
    write(tmp_path, tmp_path / "docs", overwrite=True)
    assert not (folder / "baseline-settings.md").exists()
    assert (folder / "scaling.md").exists()
    assert (folder / "notes.md").read_text(encoding="utf-8") == "of a person"


@pytest.mark.parametrize(
    ("last", "repeats", "spread", "expected"),
    [
        (lambda r: 0.29, 5, 1.0, "holds"),
        (lambda r: 0.32, 5, 1.0, "does not hold"),
        (lambda r: 0.32 if r else 0.2, 5, 1.0, "holds"),  # a rise on average, within its noise
        (lambda r: 0.32, 1, 1.0, "cannot be judged"),
        (lambda r: 0.32, 5, 0.01, "holds"),  # between scores that are constant
    ],
)
def test_a_rise_counts_if_it_exceeds_its_noise_over_paired_splits(last, repeats, spread, expected):
    def gap(r):
        return {0.0: 0.5, 0.1: 0.3, 1.0: last(r["repeat"])}[r["weight"]] + 0.01 * r["repeat"]

    columns = {
        "repeat": range(repeats),
        "weight": (0.0, 0.1, 1.0),
        "gdp_probability": gap,
        "gdp_logit_uniform": gap,
        "score_sd": lambda r: spread if r["weight"] else 1.0,
    }
    records = made(
        dataset="synthetic", **columns, method=lambda r: "frhsic" if r["weight"] else "none"
    )
    assert decided("synthetic-monotone", {("synthetic", "corrected"): records}).verdict == expected


def test_the_second_verdict_is_that_of_decisions():
    records = sweep("corrected", ("compas",), METHODS)
    lower = [r | {"validation_gdp_decision": 0.1 * r["gdp_decision"]} for r in records]
    lower = [
        r | {"gdp_decision": 0.1 * r["gdp_decision"]} if r["method"] == "frhsic" else r
        for r in lower
    ]
    higher = [
        r | {"gdp_probability": 2 * r["gdp_probability"]} if r["method"] == "frhsic" else r
        for r in lower
    ]
    finding = decided("best-on-compas", {("tradeoff", "corrected"): higher})
    assert (finding.verdict, finding.on_decisions.verdict) == ("does not hold", "holds")


def test_the_summary_counts_the_largest_areas_by_scores_and_by_decisions():
    led = {"gdp_probability": {"meps"}, "gdp_decision": {"adult", "meps"}}
    records = [
        r
        | {
            column: r[column] * (0.2 if r["dataset"] in datasets else 4)
            for column, datasets in led.items()
            if r["method"] == "frhsic" and column in r
        }
        for r in sweep("corrected", ("adult", "meps", "crime"), METHODS)
    ]
    page = summary(Results({("tradeoff", "corrected"): records}), {}, ())
    assert "on 1 of 3 datasets by the GDP of scores, and on 2 of 2 by that of decisions." in page


@pytest.mark.parametrize(
    ("factors", "expected"),
    [
        ([1.0, 1.1, 1.05], "holds"),
        ([1.5, 1.6, 1.55], "does not hold"),
        ([0.5, 0.6, 0.55], "does not hold"),
        ([1.0, 1.6, 1.2], "cannot be judged"),  # the interval holds 1.25
        ([1.0, 1.0], "cannot be judged"),  # two rounds
    ],
)
def test_time_is_insensitive_if_its_interval_over_rounds_says_so(factors, expected):
    def seconds(r):
        drift = 1 + r["repeat"]  # common to a round, so that it cancels
        return drift * (factors[r["repeat"]] if r["dim_s"] == 5 else 1.0)

    columns = {"dim_s": (1, 3, 5), "repeat": range(len(factors)), "seconds": seconds}
    times = made(part="time", device="cpu", method="frhsic", **columns)
    assert decided("dimension-flat", {("high-dimensional", "corrected"): times}).verdict == expected


def test_every_theorem_holds_on_laws_whose_two_sides_are_known():
    names = list(theorems.units(CORRECTED, Options(Path(), repeats=2)))
    drawn = zip(names, theorems.draws(names, CORRECTED, Options(Path(), repeats=2)))
    records = [r | {"name": name, "part": "draws"} for (name,), rows in drawn for r in rows]
    records += [r | {"repeat": 2} for r in records if r["repeat"] == 0]  # a verdict needs three
    results = Results({("theorems", "corrected"): records})
    assert {claim.judge(results).verdict for claim in theorems.STUDY.claims} == {"holds"}


def test_a_dataset_whose_baseline_is_missing_is_left_out_not_fatal():
    records = sweep("corrected", DATASETS[:2], (*METHODS, "hsic"))
    records = [r for r in records if not (r["dataset"] == "acs_income" and r["method"] == "none")]
    text = pages_of(Results({("tradeoff", "corrected"): records}))
    assert "ACS Income" not in text.split("Matched performance, corrected")[1].split("under")[0]


def test_results_are_read_by_experiment_and_protocol(tmp_path):
    write_records(
        tmp_path / "ablation-dimension-published.parquet",
        [{"part": "2", "a": 1}, {"part": "8", "a": 2}],
    )
    write_records(tmp_path / "notes.parquet", [{"a": 1}])
    results = Results.read(tmp_path)
    assert set(results.files) == {("ablation-dimension", "published")}
    assert results.records("ablation-dimension/8", "published") == ({"part": "8", "a": 2},)
    assert len(results.records("ablation-dimension", "published")) == 2
    assert results.records("tradeoff", "corrected") == ()


def test_seconds_of_a_fleet_are_counted_once():
    assert (
        Source.from_records(
            "tradeoff", "published", sweep("published", ("compas",), ("frhsic",))
        ).seconds
        == 4.0
    )


@pytest.mark.slow
def test_the_document_in_the_repository_is_what_its_records_give():
    results = Results.read(ROOT / "paper" / "results")
    assert results.files  # they are part of the repository
    docs, again = ROOT / "docs", "run `frhsic reproduce all --docs --overwrite`"
    stamp = f"\n<!-- from the records {fingerprint(ROOT / 'paper' / 'results')} -->\n"
    pages = details(results, judge_claims(CLAIMS.values(), results), figures(results))
    for name, text in pages.items():
        assert (docs / name).read_text() == text + stamp, again
    shipped = {
        path.relative_to(docs).as_posix()
        for path in (docs / "evidence").glob("*.md")
        if path.read_text().endswith(stamp)
    }
    assert shipped == set(pages), again


# --- the page on top
