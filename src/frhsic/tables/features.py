"""Columns that should not be features: copies of the target or of an attribute, weights, names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from frhsic._arrays import effective_number, has_few_effective
from frhsic.formatting import capitalize, format_count, inflect, percent
from frhsic.tables.codes import LEAST_VALUES, number_problems
from frhsic.tables.columns import (
    MOST_ENCODED_LEVELS,
    column_kind,
    examples,
    feature,
    level_text,
    list_names,
    quote_names,
    repeated_rows,
    row_number,
)
from frhsic.tables.identifiers import (
    ALIKE,
    LEAST_COLUMNS,
    count_repeated,
    examined_rows,
    identifier_problem,
    identifiers,
    repeated_problem,
)
from frhsic.tables.leaks import (
    LEAST_IN_CLASS,
    PAIR_EXPLAINS,
    PAIR_REPEATS,
    clearest_pair,
    explained_share,
    is_banded,
    joint_leak,
    leaks,
    one_sided_rows,
    pair_separates,
    rank_correlation,
    revealed_class,
)
from frhsic.tables.people import NAMED_FIXED, filled_by_class, repeated_people_problems
from frhsic.tables.problems import (
    LEAST_SUSPECTED_ROWS,
    UNREAD,
    Certainty,
    Problem,
    drop_option,
    not_dropped,
    option_text,
)
from frhsic.tables.view import View

# Shares of the errors in predicting a class, or of the variance of a number, that one column
# removes: above the first, it seems to follow from the target; above the second, the user is asked.
MOST_EXPLAINED = 0.95
MUCH_EXPLAINED = 0.5
MOST_ASKED = 3
# Names of weights, names of what may be weights of bodies or things, and names that always mean row
# weights.
NAMED_WEIGHT = re.compile(
    r"(.*[^a-zA-Z])?(p|per|person|hh|household|final|fnl|samp|sample|sampling|survey)?"
    r"(weights?|wt|wgt|gewicht(ung(sfaktor)?)?|hochrechnung(sfaktor)?|poids|pond[eé]ration|pesos?"
    r"|pondera(dor|ci[oó]n)|factor_?expansi[oó]n)([^a-zA-Z].*)?",
    re.IGNORECASE,
)
BODY_WEIGHT = re.compile("(weight|gewicht|poids|peso)(?![a-z])", re.IGNORECASE)
SAMPLED = re.compile("per|hh|household|fi?na?l|samp|survey|row|design|post", re.IGNORECASE)
# Words in names of columns that may be known late: units of time, ends of a duration, and states at
# the end of an observation; short names of durations and states, such as ptime and pstat; and the
# most levels of a state.
TIME_WORDS = {"time", "date", "days", "weeks", "months", "years", "zeit", "tage", "monate", "jahre"}
UNTIL_WORDS = {"to", "until", "till", "bis"}
FOLLOWED_WORDS = {"followup", "followed", "futime", "survival", "surv", "nachbeobachtung"}
DEATH_WORDS = {"died", "dead", "death", "deceased", "alive", "censored", "verstorben"}
STATE_WORDS = DEATH_WORDS | {"recur", "recurred", "recurrence", "relapse", "relapsed"}
SHORT_TIME = re.compile("([a-z]{0,2})(time|days)")
SHORT_STATE = re.compile("[a-z]{0,2}(stat|status|event|cens)")
MOST_STATES = 5
# Smallest share of distinct values in text that seems to be names.
LEAST_NAMES = 0.5
# Smallest score at which columns probably, not just possibly, give the target away together.
CERTAIN_TOGETHER = 0.999
DAYS_OF_YEAR = 365.25
# Largest ratio of the largest body weight to the median.
MOST_BODIES = 20


def feature_problems(
    X: pd.DataFrame, y: np.ndarray | None, classes: int, s: pd.DataFrame
) -> Iterator[Problem]:
    """Yield problems with features.

    - A column has no values.
    - A column of numbers identifies rows or people by the rules of :func:`identifiers`.
    - A column repeats a sensitive attribute: it has the same name, a rank correlation with the
      attribute of at least 0.99 in absolute value, or bands of the attribute as values; or the
      attribute follows from two columns, as an age follows from two years.
    - Columns reveal the target, by the rules of :func:`~frhsic.tables.leaks.leaks`.
    - At least 1 % of the rows, and at least ten, repeat an earlier row in all columns except
      identifiers, and hardly any other row repeats an earlier one in all columns except the
      target: this suggests people who occur twice, rather than coarse columns.

    Parameters
    ----------
    X, s
        Features and sensitive attributes.
    y, classes
        Target: codes 0, 1, ... of `classes` classes, or numbers if `classes` is 0.

    Examples
    --------
    >>> age = np.arange(100.0) ** 2
    >>> X = pd.DataFrame({"x": np.sin(age), "born": 2000 - age})
    >>> [problem.text for problem in feature_problems(X, None, 0, pd.DataFrame({"age": age}))]
    ["'born' repeats the sensitive attribute 'age', which the prediction must not depend on; ..."]
    """
    rows = examined_rows(X)
    columns = {str(name): feature(X[name].iloc[rows], str(name)) for name in X}
    if empty := [str(name) for name in X if X[name].isna().all()]:
        verb, them = ("has", "it") if len(empty) == 1 else ("have", "them")
        text = f"{quote_names(empty)} {verb} no value in any row; drop {them}."
        yield Problem("empty", text, tuple(empty))
    different = ~repeated_rows(X) if X.shape[1] >= LEAST_COLUMNS else np.ones(len(X), dtype=bool)
    for name in identifiers(X):
        yield identifier_problem(X[name][different], left_out=False)
    for attribute in map(str, s):
        known = s[attribute].to_numpy()[rows]
        yield from _attribute_problems(columns, known, attribute)
    if y is None or len(X) < LEAST_SUSPECTED_ROWS:
        return
    for leak in leaks(columns, y[rows], classes):
        dates = [name for name in leak.columns if column_kind(X[name]) == "date"]
        late = dates if len(dates) > 1 else leak.columns[:1]  # of two dates, both are late
        remedy = "is known only after the target, drop it"
        if len(late) > 1:
            remedy = "are known only after the target, drop both"
        elif len(leak.columns) == 2 and not leak.empty:
            remedy += f", and {leak.columns[1]!r} if that is, too"
        text = f"{capitalize(leak.text)}. If {' and '.join(map(repr, late))} {remedy}."
        if leak.empty:
            text = f"{capitalize(leak.text)}. If that is why they are empty, leave these rows out."
        yield Problem(
            "leak",
            text,
            leak.columns,
            certainty="possible" if leak.empty else "likely",
            option="" if leak.empty else " ".join(option_text("drop", name) for name in late),
        )
    if repeated := count_repeated(X, y, s):
        yield repeated_problem(repeated, len(X))


def _attribute_problems(
    columns: dict[str, np.ndarray], s: np.ndarray, attribute: str
) -> Iterator[Problem]:
    """Yield columns that repeat a sensitive attribute, alone or in a pair."""
    rest = {}
    for name, values in columns.items():
        if name == attribute or rank_correlation(values, s, LEAST_SUSPECTED_ROWS) >= ALIKE:
            how = f"{name!r} repeats the sensitive attribute {attribute!r}"
        elif is_banded(values, s):
            how = f"{name!r} has bands of the sensitive attribute {attribute!r}"
        else:
            rest[name] = values
            continue
        yield Problem(
            "attribute repeated",
            f"{how}, which the prediction must not depend on; drop it.",
            (name, attribute),
            option=option_text("drop", name),
        )
    pair = clearest_pair(rest, s, 0, PAIR_REPEATS)
    if pair is not None:
        name, other, phrase = pair
        yield Problem(
            "attribute repeated",
            f"{name!r} and {other!r} together repeat the sensitive attribute {attribute!r}"
            f" ({phrase}), which the prediction must not depend on; drop one of them.",
            (name, other, attribute),
            option=option_text("drop", name),
        )


def searched_features(view: View) -> Iterator[Problem]:
    """Yield the problems found by :func:`feature_problems`, except those that other searches
    found.
    """
    answers = view.known or view.answers
    table = view.features
    s = view.s
    if answers is not None:
        table = table.iloc[answers.rows]
        s = s.iloc[answers.rows]
    codes = None if view.known is None else view.known.codes
    late = {*table} - {*view.facts}
    repeated = any(problem.kind == "repeated rows" for problem in view.problems)
    for problem in feature_problems(table, codes, view.count, s):
        if problem.kind == "repeated rows":
            yield from () if repeated else repeated_people_problems(view)
        elif problem.kind == "leak" and late.issuperset(problem.columns):
            continue
        elif "identifier" not in problem.kind:  # these identifiers were requested
            yield problem


def late_problems(view: View) -> Iterator[Problem]:
    """Yield columns whose names suggest durations or states that may be known only after the
    target. The problem is likely if there are both, or if a duration lasts until the target.

    Examples
    --------
    >>> from frhsic.tables import check
    >>> table = pd.DataFrame({"months_to_exit": np.arange(60) % 9, "died": np.arange(60) % 2})
    >>> problems = check(table.assign(ill=np.arange(60) % 7 > 3), "ill")
    >>> [problem.option for problem in problems if problem.kind == "known late"]
    ['--drop months_to_exit --drop died']
    """
    if view.known is None:
        return
    X = view.features
    few = [str(name) for name in X if X[name].nunique() <= MOST_STATES]
    many = [str(name) for name in X if column_kind(X[name]) in ("number", "date")]
    short = [name for name in few if SHORT_STATE.fullmatch(name.casefold())]
    states = [name for name in few if STATE_WORDS & _name_words(name) or name in short]
    ends = [view.target, *states]
    durations = [name for name in many if name not in few and _is_late_duration(name, ends)]
    if not durations:  # a column such as status may be anything
        states = [name for name in states if name not in short]
    late = [*durations, *states]
    if not late:
        return
    own = _name_words(view.target)
    ended = STATE_WORDS & own or SHORT_STATE.fullmatch(view.target.casefold())
    until = any(UNTIL_WORDS & words and own <= words for words in map(_name_words, durations))
    subject = f"The name of {list_names(late)} suggests a duration or state that is"
    remedy = "it"
    if len(late) > 1:
        subject = f"The names of {list_names(late)} suggest durations and states that are"
        remedy = "both" if len(late) == 2 else "all of them"
    yield Problem(
        "known late",
        f"{subject} known only after the target {view.target!r}. If so, drop {remedy}.",
        tuple(late),
        certainty="likely" if durations and (states or ended or until) else "possible",
        option=drop_option(*late),
    )


def _name_words(name: str) -> set[str]:
    """Return the words of a name such as months_to_exit, monthsToExit or follow-up time."""
    spaced = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", re.sub("(?i)follow[-_ .]?up", "followup", name))
    return set(re.findall(r"[^\W\d_]+", spaced.casefold()))


def _is_late_duration(name: str, ends: Sequence[str]) -> bool:
    """Return whether a name denotes how long an observation lasted, or the time until one of `ends`
    or another event.
    """
    words = _name_words(name)
    if FOLLOWED_WORDS & words:
        return True
    if short := SHORT_TIME.fullmatch(name.casefold()):
        folded = [end.casefold() for end in ends]
        if not short[1]:
            return any(map(SHORT_STATE.fullmatch, folded))
        return any(end.startswith(short[1]) for end in folded)
    known = any(_name_words(end) and _name_words(end) <= words for end in ends)
    return bool(TIME_WORDS & words and (known or (UNTIL_WORDS | STATE_WORDS) & words))


def late_attribute_problems(view: View) -> Iterator[Problem]:
    """Yield columns with two values that divide a sensitive attribute into two ranges, and further
    pairs of columns (dates in years) from which the attribute follows, until there are no more.

    Examples
    --------
    >>> from frhsic.tables import check
    >>> random = np.random.default_rng(0)
    >>> X = pd.DataFrame({"age": random.integers(20, 60, 100)})
    >>> X = X.assign(year=random.integers(1990, 2010, 100), old=X["age"] > 40)
    >>> [problem.option for problem in check(X.assign(born=X["year"] - X["age"]), sensitive="age")]
    ['--drop born', '--drop old']
    """
    rows = examined_rows(view.table)
    for attribute, column in view.s.items():
        facts = view.facts.iloc[rows]
        s = column.to_numpy()[rows]
        columns = {}
        for name in map(str, facts):
            columns[name] = feature(facts[name], name)
            if _divides(facts[name], s):
                yield Problem(
                    "attribute repeated",
                    f"{name!r} divides the rows at a value of the sensitive attribute"
                    f" {attribute!r}. If the prediction must not depend on this value, drop"
                    f" {name!r}.",
                    (name, str(attribute)),
                    certainty="possible",
                    option=drop_option(name),
                )
            if column_kind(facts[name]) == "date":
                columns[name] = columns[name] / DAYS_OF_YEAR
        while pair := clearest_pair(columns, s, 0, PAIR_REPEATS):
            name, other, phrase = pair
            yield Problem(
                "attribute repeated",
                f"{name!r} and {other!r} together repeat the sensitive attribute {attribute!r}"
                f" ({phrase}, with dates in years), which the prediction must not depend on; drop"
                " one.",
                (name, other, str(attribute)),
                option=drop_option(name),
            )
            del columns[name]


def _divides(column: pd.Series[Any], s: np.ndarray) -> bool:
    """Return whether a column has two frequent values that divide an attribute into two ranges."""
    sizes = column.value_counts()
    if len(sizes) != 2 or sizes.min() < LEAST_IN_CLASS:
        return False
    bands = pd.factorize(column)[0].astype(float)
    bands[bands == -1] = np.nan
    # add a third band of one row, since is_banded needs three
    return is_banded(np.append(bands, -1), np.append(s, np.nanmin(s) - 1))


def class_leaks(view: View) -> Iterator[Problem]:
    """Yield what reveals one of several classes: columns that have a value only for some classes,
    columns with a value that only one class has or lacks, and the first pair of columns.
    """
    if view.examined is None or view.classes is None or view.count < 3:
        return
    codes = view.examined.codes.astype(np.int64)
    columns = view.numbers
    for name, values in columns.items():
        absent = pd.isna(values).any()
        if absent and (leak := [*filled_by_class(view.features[name], view.examined)]):
            yield from leak
        elif (place := revealed_class(values, codes, view.count)) is not None:
            yield Problem(
                "leak",
                f"{name!r} alone reveals which rows have {level_text(view.classes[place])!r}. If it"
                " is known only after the target, drop it.",
                (name,),
                option=drop_option(name),
            )
    columns = view.numbers
    for place, label in enumerate(view.classes):
        own = (codes == place).astype(np.int64)
        weak = {
            name: values
            for name, values in columns.items()
            if explained_share(values, own, 2) < MUCH_EXPLAINED
        }
        pair = clearest_pair(weak, own, 2, PAIR_EXPLAINS)
        # with many classes and columns, weaker criteria would be met by chance
        if pair is not None and pair_separates(weak[pair[0]], weak[pair[1]], own):
            name, other, phrase = pair
            yield Problem(
                "leak",
                f"{name!r} and {other!r} together reveal which rows have {level_text(label)!r}:"
                f" {phrase}. If {name!r} is known only after the target, drop it; the same"
                f" applies to {other!r}.",
                (name, other),
                option=drop_option(name),
            )
            return


def later_problems(view: View) -> Iterator[Problem]:
    """Yield a question about columns of dates, except dates of birth, that are later than the first
    such column in nearly all rows; and a question about columns whose names end in a later year
    than the name of the target or of an attribute.

    Examples
    --------
    >>> from frhsic.tables import check
    >>> asked = pd.Series(pd.date_range("2020-01-01", periods=60))
    >>> dates = pd.DataFrame({"closed": asked + pd.Timedelta(days=9), "asked": asked})
    >>> problems = check(dates.assign(paid=[0, 1] * 30), "paid")
    >>> [problem.option for problem in problems if problem.kind == "known late"]
    ['--drop closed']
    """
    if view.examined is None:
        return
    facts = view.facts
    dates = {
        str(name): pd.Series(feature(column, str(name)))
        for name, column in facts.items()
        if pd.api.types.is_datetime64_any_dtype(column) and not NAMED_FIXED.match(str(name))
    }
    first = min(dates, key=lambda name: dates[name].median(), default="")
    late = []
    for name, days in dates.items():
        waits = (days - dates[first]).dropna()
        if len(waits) >= LEAST_SUSPECTED_ROWS and (waits > 0).mean() >= ALIKE:
            late.append(name)
    dated = [name for name in (view.target, *map(str, view.s)) if _last_year(name)]
    base = min(dated, key=_last_year, default="")
    named = [name for name in map(str, facts) if base and _last_year(name) > _last_year(base)]
    remedy = "If [it is|they are] also later than the decision, drop [it|them]."
    for names, when in (
        (late, f"{first!r} in nearly all rows"),
        (named, f"{base!r}, judging by the years in their names"),
    ):
        if names:
            yield Problem(
                "known late",
                f"{list_names(names)} {inflect('[is|are]', len(names))} later than {when}."
                f" {inflect(remedy, len(names))}",
                tuple(names),
                certainty="possible",
                option=drop_option(*names),
            )


def _last_year(name: str) -> str:
    """Return the year at the end of a name; empty if there is none."""
    return "".join(re.findall("(?<![0-9])(?:19|20)[0-9]{2}$", name))


def one_sided_problems(view: View) -> Iterator[Problem]:
    """Yield a question about each column with a value that nearly determines the class, and a
    single question about all columns whose missing values predict the class well.
    """
    if view.examined is None or view.known is None or not view.count:
        return
    rows, codes, _ = view.known
    missing: dict[str, str] = {}
    for name in _unnamed_features(view):
        values = feature(view.features[name].iloc[rows], name)
        for side in one_sided_rows(values, codes, view.count):
            share, other = (percent(round(part, 3)) for part in (side.share, side.other))
            if side.missing:
                missing[name] = f"{name!r} ({share} of {side.rows:,} rows, {other} of the others)"
                continue
            yield Problem(
                "leak",
                f"{name!r} {side.side} in {side.rows:,} rows, {share} of which have the same"
                f" target, compared with {other} of the others. If {name!r} is known only after the"
                " target, drop it.",
                (name,),
                side.rows,
                "possible",
                drop_option(name),
            )
            break
    if missing:
        shown = ", ".join([*missing.values()][:MOST_ASKED])
        more = f" and {len(missing) - MOST_ASKED} more" if len(missing) > MOST_ASKED else ""
        yield Problem(
            "leak",
            "One class of the target is much more frequent in rows without a value:"
            f" {shown}{more}. A model would learn this from the missing values. If they are missing"
            " because of the target, drop the columns.",
            tuple(missing),
            certainty="possible",
            option=drop_option(*missing),
        )


def _unnamed_features(view: View) -> list[str]:
    """Return the features still in question that no problem names as a leak, not even as a possible
    one.
    """
    leaks = {name for p in view.problems if p.kind == "leak" for name in p.columns}
    return [name for name in map(str, view.facts) if name not in leaks]


def strong_features(view: View) -> Iterator[Problem]:
    """Yield each column that removes 95 % of the errors or variance of a constant prediction, and a
    question about the strongest other columns, at most three, that remove at least half.
    """
    if view.examined is None:
        return
    numbers = view.numbers
    codes = view.examined.codes
    shares = {
        name: explained_share(numbers[name], codes, view.count) for name in _unnamed_features(view)
    }
    what = "variance of the target"
    verb = "explains"
    if view.count:
        what = "errors made by always predicting one class"
        verb = "removes"
    asked: dict[str, str] = {}
    for name in sorted(shares, key=lambda name: -shares[name]):
        if shares[name] >= MOST_EXPLAINED:
            yield Problem(
                "leak",
                f"{name!r} alone {verb} {percent(round(shares[name], 3))} of the {what}. If it is"
                " known only after the target, drop it.",
                (name,),
                option=drop_option(name),
            )
        elif shares[name] >= MUCH_EXPLAINED and len(asked) < MOST_ASKED:
            asked[name] = f"{name!r} ({percent(round(shares[name], 2))})"
    if asked:
        which = "it"
        if len(asked) > 1:
            which = "one"
            verb = f"each {verb.removesuffix('s')}"
        yield Problem(
            "strong feature",
            f"{', '.join(asked.values())} {verb} at least half of the {what}. If {which} is known"
            " only after the target, drop it.",
            tuple(asked),
            certainty="possible",
            option=drop_option(*asked),
        )


def joint_problems(view: View) -> Iterator[Problem]:
    """Yield the fewest columns that predict the target almost perfectly together."""
    if view.examined is None:
        return
    leak = joint_leak(view.numbers, view.examined.codes, view.count)
    if leak is None:
        return
    late = inflect("[it is|one of them is]", len(leak.columns))
    yield Problem(
        "leak",
        f"A linear model of {list_names(leak.columns)} predicts the target of held-out rows almost"
        f" perfectly ({leak.name} {leak.score:.4g}). If {late} known only after the target, drop"
        " it.",
        leak.columns,
        certainty="likely" if leak.score >= CERTAIN_TOGETHER else "possible",
        option=drop_option(leak.columns[0]),
    )


def weight_problems(view: View) -> Iterator[Problem]:
    """Yield columns of numbers with names like those of row weights."""
    for name, column in view.table[view.kept].select_dtypes("number").items():
        text = str(name)
        named = NAMED_WEIGHT.fullmatch(text)
        if named and column.min() >= 0 and column.nunique() > LEAST_VALUES:
            option = option_text("row-weights", text)
            # may be body or birth weight
            if view.check.schema.select([text]).columns[0].unit:
                continue
            body = BODY_WEIGHT.match(text) and column.min() > 0
            body = body and column.max() <= MOST_BODIES * column.median()
            things = named[1] and not SAMPLED.search(text) and BODY_WEIGHT.search(text)
            yield Problem(
                "weights",
                f"{text!r} may contain row weights; until it is declared as such, it is used as a"
                f" feature. {_few_effective_sentence(column.dropna())}".strip(),
                (text,),
                certainty="possible" if body or things else "likely",
                option=option,
            )


def row_weight_problems(view: View) -> Iterator[Problem]:
    """Yield problems with row weights: codes and outliers, negative numbers, and a few rows that
    outweigh all others.
    """
    name = view.roles.weights
    if name is None or name not in view.table:
        return
    column = view.table[name]
    numbers = pd.to_numeric(column, errors="coerce")
    weights = numbers.dropna()
    yield from number_problems(weights)
    if len(weights) < column.count() or (weights < 0).any():
        wrong = column[column.notna() & ~(numbers >= 0)]
        text = f"the weights in {name!r} must be nonnegative, but {examples(wrong)}."
        yield Problem("row weights", text, (name,), len(wrong), "error")
    elif text := _few_effective_sentence(weights):
        yield Problem("row weights", text, (name,), len(weights))


def _few_effective_sentence(weights: pd.Series[Any]) -> str:
    """Return a sentence with the number of rows of equal weight that would be as precise, if that
    number is small.
    """
    effective = effective_number(weights.to_numpy(dtype=np.float64))
    if not has_few_effective(len(weights), effective):
        return ""
    largest = int(np.argmax(weights))
    share = percent(weights.iloc[largest] / weights.sum())
    return (
        f"With weights {str(weights.name)!r}, {len(weights):,} rows are only as precise as"
        f" {format_count(effective, 'row')} of equal weight, so intervals are wide: row"
        f" {row_number(weights, largest):,} alone has {share} of the weight."
    )


def many_levels_problems(view: View) -> Iterator[Problem]:
    """Yield a question about columns of text with more levels than are encoded separately; such a
    column probably contains names if at least half of its values are distinct.
    """
    known = {p.columns[0] for p in view.problems if p.kind in (*UNREAD, "repeated identifier")}
    names: dict[str, int] = {}
    others: dict[str, int] = {}
    for name in not_dropped(view.kept, view.problems):
        column = view.table[name]
        if name in view.named or name in known or column_kind(column) != "category":
            continue
        levels = column.nunique()
        if levels > MOST_ENCODED_LEVELS:
            (names if levels >= LEAST_NAMES * column.count() else others)[name] = levels
    merged = (
        f"more than {MOST_ENCODED_LEVELS} distinct text values; rare ones are merged. Drop columns"
        " with names of people."
    )
    different = (
        "a different value in most rows, like names or comments, from which a model can't learn."
        " Drop such columns."
    )
    yield from _levels_problems(names, different, "likely")
    yield from _levels_problems(others, merged, "possible")


def _levels_problems(levels: dict[str, int], what: str, certainty: Certainty) -> Iterator[Problem]:
    if levels:
        shown = ", ".join(f"{name!r} ({number:,})" for name, number in levels.items())
        text = f"{shown} {inflect('[has|have]', len(levels))} {what}"
        option = drop_option(*levels)
        yield Problem("many levels", text, (*levels,), certainty=certainty, option=option)
