"""Gaps among people with the same controls: their definition, error, test, and place in an
audit.
"""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from frhsic import audit, gdp
from frhsic.auditing import Audit, Settings, since
from frhsic.auditing.gaps import gaps_and_curves
from frhsic.auditing.rows import Rows
from frhsic.formatting import figure, format_estimate
from frhsic.parity.column import GapOptions, column_from_sums, column_gap, stratified_covariance
from frhsic.parity.gap import gaps_by_column
from frhsic.parity.ranks import RankGap
from frhsic.parity.rows import check_rows
from frhsic.parity.strata import Strata
from frhsic.parity.sums import ALL_NODES, Cells
from frhsic.report import Report, render, text
from frhsic.report.equals import equal_sentence, stratum_pictures, worst_stratum_sentence
from frhsic.report.first_page import closing_lines, limit_sentence

QUICK = Settings(fast=True, resamples=99)


def approx(expected):
    return pytest.approx(expected, rel=1e-9, abs=1e-12)


def sample(seed, n=1500, strata=4, clusters=False, weights=False, strength=0.2):
    """Scores whose curve along s differs between strata, where s and w are dependent."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(n // 3, size=n) if clusters else None
    w = rng.integers(strata, size=n)
    names = w.astype(str)
    s = rng.uniform(size=n) + 0.2 * w
    shared = 0 if labels is None else 0.3 * rng.standard_normal(n)[labels]
    f = strength * np.sin(6 * s + w) + 0.2 * w + 0.3 * rng.standard_normal(n) + shared
    row_weights = rng.uniform(0.2, 2, n) if weights else None
    return f, s, names, row_weights, labels


def test_the_gap_within_strata_is_a_sum_over_a_finite_law():
    counts = {("cook", 1): 30, ("cook", 2): 50, ("cook", 3): 20, ("nurse", 1): 90, ("nurse", 3): 10}
    means = dict(zip(counts, (0.1, 0.5, 0.3, 0.7, 0.9)))
    rows = [key for key, count in counts.items() for _ in range(count)]
    table = pd.DataFrame(rows, columns=["job", "age"])
    table["f"] = [means[key] for key in rows]
    center = table.groupby("job")["f"].transform("mean")
    mean = table.groupby(["job", "age"])["f"].transform("mean")
    result = gdp(table["f"], table["age"], control_features=table["job"])
    assert float(result) == approx((mean - center).abs().mean())
    assert result.controls.names == ("cook", "nurse", "other")
    assert "equal='job'" in repr(result)


def test_two_values_give_differences_of_rates_as_binned_metrics_do():
    rng = np.random.default_rng(3)
    n = 4000
    table = pd.DataFrame({"sex": rng.integers(2, size=n), "job": rng.integers(3, size=n)})
    table["yes"] = (rng.random(n) < 0.2 + 0.2 * table["job"] + 0.1 * table["sex"]) * 1.0
    rates = table.groupby(["job", "sex"])["yes"].mean().unstack()
    share = table.groupby("job")["sex"].mean()
    size = table["job"].value_counts(normalize=True).sort_index()
    expected = (size * 2 * share * (1 - share) * (rates[1] - rates[0]).abs()).sum()
    result = gdp(table["yes"], table["sex"], control_features=table["job"])
    assert float(result) == pytest.approx(expected, rel=0.01)  # less what noise would add
    assert result.interval[0] < expected < result.interval[1]


def test_one_stratum_is_the_gap_of_all_people():
    f, s, *_ = sample(0, strata=1)
    one = gdp(f, s, control_features=["all"] * len(f), resamples=99)
    whole = gdp(f, s, resamples=99)
    assert (one.value, *one.interval, one.pvalue) == approx(
        (whole.value, *whole.interval, whole.pvalue)
    )


@pytest.mark.parametrize("design", [{}, {"weights": True}, {"clusters": True, "weights": True}])
def test_the_error_is_that_of_what_each_cluster_adds(design):
    f, s, w, weights, labels = sample(1, **design)
    rows = check_rows(f, s, None, weights, labels, w)
    column = column_gap(rows, rows.scores[:, 0])
    cells = Cells.from_rows(rows)
    node = cells.node(rows.s, rows.strata)
    center = rows.stratum_means[rows.strata, 0]
    terms = column.signs.slope[node] * (rows.scores[:, 0] - center) - column.signs.gap
    terms = rows.weights * terms / len(f)
    each = terms if labels is None else np.bincount(rows.clusters, terms)
    bessel = rows.effective / (rows.effective - 1)
    variance, third = column.sums.influence(
        np.full(len(column.signs.slope), -column.signs.gap), column.signs.slope
    )
    assert variance == approx(bessel * (each**2).sum())
    assert third == approx((each**3).sum())
    # of the gap of all rows, with which it is compared
    sums = cells.score_sums(rows, rows.scores[:, 0])
    whole = column_from_sums(sums.pooled(), cells)
    other = whole.signs.slope[cells.node(rows.s)] * (rows.scores[:, 0] - sums.mean)
    other = rows.weights * (other - whole.signs.gap) / len(f)
    both = other if labels is None else np.bincount(rows.clusters, other)
    covariance = stratified_covariance(sums, cells, whole, column)
    assert covariance == approx(bessel * float(each @ both))
    assert whole.value == approx(float(gdp(f, s, sample_weight=weights, groups=labels)))


@pytest.mark.slow
def test_the_error_is_that_of_other_samples_of_the_law():
    values = []
    errors = []
    for seed in range(100):
        f, s, w, _, _ = sample(seed, n=1000)
        rows = audit(f, s, control_features=w, settings=Settings(fast=True, resamples=20))["s"]
        (change,) = rows.all_rows.within.differences
        values.append([change.after, change.after - change.before])
        width = change.interval.high - change.interval.low
        errors.append([rows.all_rows.within["gdp"].standard_error, width / 3.92])
    (within, difference), (error, wide) = np.std(values, axis=0), np.mean(errors, axis=0)
    assert error == pytest.approx(within, rel=0.2)
    assert 0.9 * difference < wide < 1.6 * difference  # what signs may hide widens it, too


def test_flat_curves_are_not_called_a_gap_however_many_strata_there_are():
    rejected = 0
    values = []
    plain = []
    for seed in range(80):
        f, s, w, _, _ = sample(seed, n=800, strata=8, strength=0.0)
        result = gdp(f, s, control_features=w, resamples=99)
        rejected += result.pvalue <= 0.05
        values.append(result.value)
        if seed < 10:
            table = pd.DataFrame({"f": f, "w": w, "s": s})
            fifths = table.groupby("w")["s"].transform(lambda x: pd.qcut(x, 5, labels=False))
            gap = table.groupby(["w", fifths])["f"].transform("mean")
            plain.append((gap - table.groupby("w")["f"].transform("mean")).abs().mean())
    assert rejected <= 4 + 2 * np.sqrt(80 * 0.05 * 0.95)
    assert np.mean(values) < 0.1 * np.mean(plain)  # the plug-in gap is noise alone


def test_the_gap_of_all_people_is_a_signed_sum_of_a_part_within_strata_and_one_between():
    """The score is 0.1 higher for nurses, who are older, and 0.1 higher for the old among cooks."""
    counts = {("cook", 1): 60, ("cook", 2): 20, ("nurse", 1): 20, ("nurse", 2): 60}
    means = dict(zip(counts, (0.1, 0.2, 0.3, 0.3)))
    rows = [key for key, count in counts.items() for _ in range(5 * count)]
    table = pd.DataFrame(rows, columns=["job", "age"])
    table["f"] = [means[key] for key in rows]
    table["w"] = table.groupby("job")["f"].transform("mean")
    sign = np.sign(table.groupby("age")["f"].transform("mean") - table["f"].mean())
    result = audit(table["f"], table["age"], control_features=table["job"], settings=QUICK)
    rows = result["age"].all_rows
    assert rows.within.between == pytest.approx((sign * (table["w"] - table["f"].mean())).mean())
    inside = (sign * (table["f"] - table["w"])).mean()
    assert rows["gdp"].value - rows.within.between == pytest.approx(inside)


def test_strata_add_up_to_all_rows():
    f, s, w, weights, labels = sample(4, clusters=True, weights=True)
    rows = check_rows(f, s, None, weights, labels, w)
    cells = Cells.from_rows(rows)
    sums = cells.score_sums(rows, rows.scores[:, 0])
    everyone = check_rows(f, s, None, weights, labels)
    whole = cells._refined(cells.starts).score_sums(everyone, everyone.scores[:, 0])
    pooled = sums.pooled()
    for name in ("powers", "rows", "low", "high", "at_ends"):
        np.testing.assert_allclose(
            getattr(pooled, name), getattr(whole, name), rtol=1e-9, atol=1e-9
        )
    assert abs(pooled.clusters[1] - whole.clusters[1]).max() < 1e-9
    parts = [sums.take([i]) for i in range(4)]
    assert sum(part.rows.sum() for part in parts) == len(f)
    for i, part in enumerate(parts):
        kept = w == str(i)
        own = check_rows(f[kept], s[kept], None, weights[kept], labels[kept])
        assert part.effective == approx(own.effective)
        assert part.mean == approx(np.average(f[kept], weights=weights[kept]))


def test_many_strata_share_the_nodes():
    f, s, w, _, _ = sample(5, n=60_000, strata=30)
    rows = check_rows(f, s, strata=w)
    column = column_gap(rows, rows.scores[:, 0])
    assert len(column.shares) <= ALL_NODES
    assert min(column.windows.shares) >= 4 * 30 / ALL_NODES


def test_a_stratum_in_which_s_is_constant_adds_nothing():
    f, s, w, _, _ = sample(6, strata=2)
    s = np.where(w == "0", 5.0, s)
    result = audit(f, s, control_features=w, settings=QUICK)
    within = result["s"].all_rows.within
    assert within.strata["0"].numbers == ()
    gap = float(gdp(f[w == "1"], s[w == "1"], resamples=0))
    assert within["gdp"].value == pytest.approx((w == "1").mean() * gap, rel=0.05)
    assert "s has only one value in control 0, where its gap is 0." in result.context.remarks


def test_the_rank_gap_within_strata_is_the_mean_over_deciles():
    f, s, w, _, _ = sample(7)
    ranks, shifted = gaps_by_column(np.column_stack([f, 2 * f]), s, ranks=True, strata=w)
    deciles = np.quantile(f, np.arange(1, 10) / 10, method="inverted_cdf")
    gaps = [float(gdp(f > q, s, control_features=w, resamples=0)) for q in deciles]
    assert ranks.value == approx(np.mean(gaps))
    assert ranks.interval == approx(shifted.interval)
    values = []
    for seed in range(40):
        others, t, v, _, _ = sample(seed)
        values.append(RankGap(check_rows(others, t, strata=v)).value)
    assert ranks.standard_error == pytest.approx(np.std(values), rel=0.35)
    flat = RankGap(check_rows(np.random.default_rng(0).random(len(f)), s, strata=w))
    assert flat.value < np.quantile(flat.null(GapOptions(0.95, 999, 0)), 0.99)


@pytest.fixture(scope="module")
def people():
    f, s, w, _, _ = sample(8)
    rng = np.random.default_rng(9)
    return pd.DataFrame(
        {
            "score": 1 / (1 + np.exp(-3 * f)),
            "age": s,
            "job": np.array(["cook", "nurse", "pilot", "diver"])[w.astype(int)],
            "hours": rng.permutation(len(f)) * 1.0,
            "paid": rng.random(len(f)) < 0.5,
        }
    )


@pytest.fixture(scope="module")
def audited(people):
    return audit(
        people["score"],
        people["age"],
        people["paid"] * 1,
        control_features=people[["job"]],
        limit=["gdp <= 0.3", "within <= 0.3", "within.decision_gdp <= 0.4"],
        settings=QUICK,
    )


def test_an_audit_has_both_gaps_and_their_difference(people, audited):
    without = audit(people["score"], people["age"], people["paid"] * 1, settings=QUICK)
    rows = audited["age"].all_rows
    assert [number.key for number in rows.numbers] == [
        n.key for n in without["age"].all_rows.numbers
    ]
    for mine, other in zip(rows.numbers, without["age"].all_rows.numbers):
        assert (mine.value, *mine.interval) == pytest.approx((other.value, *other.interval))
    within = rows.within
    gaps = [key for key in rows.curves if key != "calibration_windows"]
    assert [number.key for number in within.numbers] == gaps
    alone = gdp(people["score"], people["age"], control_features=people["job"], resamples=99)
    assert within["gdp"].value == approx(alone.value)
    assert [*within["gdp"].interval] == approx(alone.interval)
    for change, number in zip(within.differences, within.numbers):
        assert (change.before, change.after) == (rows[change.key].value, number.value)
        assert change.interval.low <= number.value - rows[change.key].value <= change.interval.high
        assert change.reduction is None
    assert str(within) == (
        f"Among people with the same job, the gap is {within['gdp'].value:.3g}; among all"
        f" people, it is {rows['gdp'].value:.3g}."
    )
    verdicts = [(check.among, check.key, check.verdict) for check in audited.limits]
    assert verdicts == [
        ("all", "gdp", "kept"),
        ("equal", "gdp", "kept"),
        ("equal", "decision_gdp", "kept"),
    ]


def test_each_stratum_has_its_gap_and_curve_and_the_worst_is_named(people, audited):
    within = audited["age"].all_rows.within
    assert list(within.strata) == ["cook", "diver", "nurse", "pilot"]
    for name, stratum in within.strata.items():
        own = people[people["job"] == name]
        alone = gdp(own["score"], own["age"], resamples=99)
        assert stratum["gdp"].value == pytest.approx(alone.value, rel=0.05)
        assert stratum["gdp"].adjusted >= stratum["gdp"].pvalue
        assert sum(stratum.curves["gdp"].rows) == stratum.rows == len(own)
        assert stratum.curves["gdp"].overall == approx(own["score"].mean())
    largest = max(within.strata, key=lambda name: within.strata[name]["gdp"].value)
    assert within.worst == largest
    flat = audit(people["hours"], people["age"], control_features=people["job"], settings=QUICK)
    assert flat["age"].all_rows.within.worst is None


def test_a_stratum_of_few_rows_is_not_named(audited):
    rows = audited["age"].all_rows
    largest = rows.within.worst
    strata = {**rows.within.strata}
    strata[largest] = replace(strata[largest], rows=29)
    within = replace(rows.within, strata=strata)
    attribute = replace(audited["age"], all_rows=replace(rows, within=within))
    few = replace(audited, attributes=(attribute,))
    assert f"“{largest}”" in worst_stratum_sentence(audited, "age")
    assert f"“{largest}”" not in worst_stratum_sentence(few, "age")


def test_an_audit_with_controls_is_plain_data(audited):
    assert Audit.from_json(audited.to_json()) == audited


def test_equal_opportunity_has_a_gap_within_strata_too(people):
    settings = Settings(resamples=20, max_rows=100, probe_rows=100)
    result = audit(
        people["score"],
        people["age"],
        people["paid"] * 1,
        control_features=people["job"],
        settings=settings,
    )
    paid = people[people["paid"]]
    alone = gdp(paid["score"], paid["age"], control_features=paid["job"], resamples=20)
    assert result["age"].positives.within["gdp"].value == approx(alone.value)
    where = gdp(
        people["score"],
        people["age"],
        control_features=people["job"],
        where=people["paid"],
        resamples=20,
    )
    assert where.value == approx(alone.value)


def test_remarks_say_what_was_cut_and_joined(people):
    jobs = people["job"].where(people.index > 20, "pope").where(people.index != 30)
    controls = people[["hours"]].assign(job=jobs)
    result = audit(people["score"], people["age"], control_features=controls, settings=QUICK)
    remarks = " ".join(result.context.remarks)
    assert "hours is numeric and was split into 5 bins" in remarks
    assert "small groups with the same hours and job were merged into 'other'" in remarks
    assert "1 row has no value of hours and job" in remarks
    assert len(result["age"].all_rows.within.strata) == 21


def test_errors_name_control_features(people):
    with pytest.raises(ValueError, match="control_features has 3 rows"):
        gdp(people["score"], people["age"], control_features=["a", "b", "a"])
    with pytest.raises(ValueError, match="control_features has 3"):
        audit(people["score"], people["age"], control_features=["a", "b", "a"])
    with pytest.raises(ValueError, match="Pass control_features"):
        audit(people["score"], people["age"], limit="within <= 0.1", settings=QUICK)
    with pytest.raises(ValueError, match="a different order"):
        gdp(people["score"], people["age"], control_features=people["job"][::-1])


def gaps_phrase(gap, whole):
    numbers = (gap.value, *gap.interval, whole.value, *whole.interval)
    shown = [format_estimate(number) for number in numbers]
    return (
        "Among people with the same job, the gap is {} ({} to {}); among all people, it is {}"
        " ({} to {})"
    ).format(*shown)


@pytest.mark.parametrize(("sign", "word"), [(-1, "larger"), (1, "smaller")])
def test_it_is_said_whether_the_gap_over_all_people_is_significantly_different(audited, sign, word):
    attribute = audited["age"]
    rows = attribute.all_rows
    gap, whole = rows.within["gdp"], replace(rows["gdp"], value=0.05)
    ends = sorted([sign * 0.01, sign * 0.04])
    change = replace(
        rows.within.differences[0],
        before=0.05,
        after=0.05 + 0.02 * sign,
        interval=replace(gap.interval, low=ends[0], high=ends[1]),
        pvalue=0.001,
    )
    within = replace(rows.within, differences=(change, *rows.within.differences[1:]))
    numbers = (whole, *(n for n in rows.numbers if n.key != "gdp"))
    moved = replace(attribute, all_rows=replace(rows, numbers=numbers, within=within))
    said = equal_sentence(replace(audited, attributes=(moved,)), "age")
    tail = f", which is significantly {word}, by 0.020 (0.010 to 0.040)."
    assert said == gaps_phrase(gap, whole) + tail


def test_the_report_has_both_gaps_beside_each_other_and_each_stratum(audited):
    report = Report(audited)
    lines = closing_lines(report)
    rows = audited["age"].all_rows
    gap, whole = rows.within["gdp"], rows["gdp"]
    said = gaps_phrase(gap, whole)
    assert f"{said}; the difference of" in lines["equal"]
    assert "is not significant" in lines["equal"]
    name = rows.within.worst
    worst = rows.within.strata[name]
    ends = " to ".join(format_estimate(end) for end in worst["gdp"].interval)
    assert (
        f"Of the values of job with at least 30 people and a significant gap, “{name}” has the"
        f" largest estimate: {format_estimate(worst['gdp'].value)} ({ends}), {worst.rows:,} people."
    ) in lines["equal"]
    assert said in text(audited)
    page = render(report).replace("\xa0", " ")
    first, rest = page.split('id="decision"')
    assert said in first
    assert first.count(f"“{rows.within.worst}”") == 1
    section = rest[rest.index('id="equal-1"') : rest.index('id="method"')]
    assert "All people, whatever their job." in first
    assert said not in section  # the first screen has the sentence
    assert section.index("<svg") < section.index("<details>") < section.index("<table")
    assert section.count("<svg") == 4
    assert section.count('class="worst"') == 1
    for number in (gap, *(group["gdp"] for group in rows.within.strata.values())):
        assert figure(number.value) in section
    assert "explained" not in section
    assert figure(rows.within.between) in section
    assert "Whether a difference in job justifies different scores" in page
    limited = replace(audited, limits=audited.limits[1:2])
    first = render(Report(limited)).replace("\xa0", " ").split('id="decision"')[0]
    assert said in first  # the verdict has no interval of the gap
    limits = [limit_sentence(check, audited) for check in audited.limits]
    assert limits[1].startswith(
        "The limit of 0.3 is met: the gap by age among people with the same job is"
    )


def test_eight_strata_are_shown_and_others_folded_on_one_scale(people):
    jobs = pd.Series(np.arange(len(people)) % 10, name="job").astype(str)
    result = audit(people["score"], people["age"], control_features=jobs, settings=QUICK)
    page = render(Report(result))
    shown, _ = page.split("<summary>2 more</summary>")
    assert shown[shown.index('id="equal-1"') :].count("<svg") == 8
    pictures = [picture for _, picture in stratum_pictures(result, "age")]
    ticks = [re.findall(r'text-anchor="end">([^<]*)<', picture) for picture in pictures]
    assert ticks == [ticks[0]] * 10


def test_a_small_group_neither_flattens_the_curves_of_others_nor_leaves_its_picture():
    rng = np.random.default_rng(0)
    n = 1000
    age = rng.integers(20, 60, n + 25).astype(float)
    score = 0.5 + 0.002 * (age - 40) + 0.02 * rng.standard_normal(n + 25)
    score[n:] = rng.random(25)
    job = np.array(["cook"] * n + ["pope"] * 25)
    rows = Rows(
        score[:, None],
        age[:, None],
        score,
        strata=(job == "pope").astype(int),
        controls=Strata.fit(job, least=1),
    )
    result = audit(score, age, control_features=job, settings=QUICK)
    attribute = result["s"]
    population = gaps_and_curves(rows, QUICK)
    attribute = replace(attribute, all_rows=replace(attribute.all_rows, within=population.within))
    pictures = dict(stratum_pictures(replace(result, attributes=(attribute,)), "s"))
    ticks = re.findall(r'text-anchor="end">([^<]*)<', pictures["cook"])
    assert max(float(tick.replace("−", "-")) for tick in ticks) <= 0.1
    for path in re.findall(r'class="(?:band|line)"[^>]* d="M([^"]*?)Z?"', pictures["pope"]):
        heights = [float(corner.split()[1]) for corner in path.split("L")]
        assert min(heights) >= 6 - 0.1
        assert max(heights) <= 200 - 18 + 0.1


def test_flat_curves_of_few_rows_are_not_called_a_gap():
    """Single rows at a value show no noise: most such laws were called a gap."""
    rng = np.random.default_rng(0)
    for n, values in ((17, 20), (22, 45), (60, 20)):
        rejected = 0
        for _ in range(150):
            age = rng.integers(20, 20 + values, n).astype(float)
            rejected += gdp(rng.beta(0.3, 2, n), age, resamples=199).pvalue <= 0.05
        assert rejected <= 150 * 0.05 + 2 * np.sqrt(150 * 0.05 * 0.95)


@pytest.mark.slow
def test_no_stratum_is_called_the_worst_where_no_curve_moves():
    """Random laws of strata of 10 to 300 people, whose scores differ in mean and spread."""
    rng = np.random.default_rng(1)
    settings = Settings(fast=True, resamples=199)
    named = 0
    for _ in range(120):
        sizes = rng.integers(10, 60, 10).tolist() + rng.integers(100, 300, 2).tolist()
        strata = np.repeat(np.arange(12), sizes)
        age = rng.integers(17, rng.integers(25, 80), len(strata)).astype(float)
        chance = rng.beta(*rng.uniform(0.3, 3, (2, 12)))[strata]
        score = rng.beta(5 * chance, 5 * (1 - chance))
        rows = Rows(
            score[:, None],
            age[:, None],
            score,
            strata=strata,
            controls=Strata.fit(strata.astype(str), least=1),
        )
        named += gaps_and_curves(rows, settings).within.worst is not None
    assert named <= 120 * 0.05 + 2 * np.sqrt(120 * 0.05 * 0.95)


def test_no_group_stands_out_where_none_is_significant(people):
    flat = audit(people["hours"], people["age"], control_features=people["job"], settings=QUICK)
    said = closing_lines(Report(flat))["equal"]
    assert said.endswith(
        "No single value of job with at least 30 people has a significant gap of its own."
    )
    assert "is not significant" in said


def test_drift_compares_the_gap_among_equals_and_limits_can_be_shares_of_it(people):
    half = np.arange(len(people)) % 2 == 0
    controls = people["job"]
    audits = []
    for rows, factor in ((half, 1.0), (~half, 0.2)):
        own = people[rows]
        score = 0.5 + factor * (own["score"] - 0.5)
        audits.append(audit(score, own["age"], control_features=controls[rows], settings=QUICK))
    old, new = audits
    result = since(new, old, "within <= 50%")
    (change,) = (change for change in result.drift if change.key == "within")
    assert (change.before, change.after) == tuple(
        each["age"].all_rows.within["gdp"].value for each in audits
    )
    assert change.improved
    assert result.limits[0].verdict == "kept"
    assert result.limits[0].reference == old["age"].all_rows.within["gdp"]
    page = render(Report(replace(result, limits=()), earlier=old)).replace("\xa0", " ")
    assert f"earlier, it was {format_estimate(change.before)} (changed)" in page
    other = audit(
        people["score"][half],
        people["age"][half],
        control_features=people["paid"][half],
        settings=QUICK,
    )
    assert "within" not in [change.key for change in since(new, other).drift]
