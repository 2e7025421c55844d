"""The sentences of an audit: one for each number, the finding, and what the numbers do not tell."""

from __future__ import annotations

import math

from frhsic.auditing._format import figure, percent, plain, probability
from frhsic.auditing.results import Note, Number, Population

__all__ = ["contrast_sentence", "finding", "limits", "sentence"]


def sentence(key: str, value: float, *, z: str, s: str, null: float | None = None, pvalue: float | None = None) -> str:
    """Return the plain sentence of a number; `z` and `s` are the names of what is compared.

    Examples
    --------
    >>> sentence("probe_linear", 0.25, z="the score", s="age")
    'A linear model recovers 25 % of the variance of age from the score, on rows it has not seen.'
    """
    v, shuffled = figure(value), "" if null is None else f" With {s} shuffled it is {figure(null)}."
    test = ""
    if pvalue is not None:
        chance = "p " + probability(pvalue) if pvalue < 0.001 else f"p = {probability(pvalue)}"
        test = f" Chance alone {'does not explain' if pvalue <= 0.05 else 'could explain'} it ({chance})."
    texts = {
        "gdp": f"The mean of {z} at a value of {s} is {v} away from its overall mean, on average over the rows."
        f"{shuffled}{test}",
        "standardized_gdp": f"The same in standard deviations of {z}, so that scores which merely shrink do not look "
        f"better: {v}.{shuffled}",
        "hsic": f"The joint law of {z} and {s} lies {v} from independence, in squared kernel distance.{shuffled}{test}",
        "hsic_effect": f"HSIC on a scale from 0 (independent) to 1 (each determines the other): {v}.{shuffled}",
        "eipm": f"At a typical value of {s} the law of {z} lies {v} from its overall law, in kernel distance."
        f"{shuffled}",
        "distance_correlation": f"Distances between rows in {z} and in {s} correlate at {v}; 0 means independent."
        f"{shuffled}",
        "kernel_hgr": f"The best smooth function of {z} correlates at {v} with the best smooth function of {s}."
        f"{shuffled}",
        "mutual_information": f"Knowing {z} tells {v} nats ({figure(value / math.log(2))} bits) about {s}.{shuffled}",
        "probe_linear": f"A linear model {_recovers(value)} of the variance of {s} from {z}, on rows it has not seen.",
        "probe_trees": f"Boosted trees {_recover(value)} of the variance of {s} from {z}, on rows they have not seen.",
    }
    return texts[key]


def finding(population: Population, *, z: str, f: str | None, s: str) -> tuple[str, tuple[str, ...]]:
    """Return what an attribute comes to in one sentence, and what that rests on."""
    numbers = {number.key: number for number in population.numbers}
    said = []
    if f is not None and population.curve is not None and "gdp" in numbers:
        said += _gap(numbers["gdp"], population.curve.overall, f, s)
    test = numbers.get("hsic")
    if test is not None and test.pvalue is not None:
        if test.pvalue <= 0.05:
            said.append(f"{_capital(z)} and {s} are dependent (HSIC test, p {_chance(test.pvalue)}).")
        else:
            said.append(
                f"The HSIC test finds no dependence between {z} and {s} in {test.rows:,} rows "
                f"(p {_chance(test.pvalue)})."
            )
    probes = [numbers[key] for key in ("probe_linear", "probe_trees") if key in numbers]
    if probes:
        best = max(probes, key=lambda number: number.value)
        who = "a linear model" if best.key == "probe_linear" else "boosted trees"
        if best.value < 0.01:
            said.append(f"Neither a linear model nor boosted trees recover {s} from {z}.")
        else:
            said.append(f"From {z} alone, {who} can recover {percent(best.value)} of the variance of {s}.")
    return said[0], tuple(said[1:])


def limits(*, target: bool, embedding: bool, several: bool) -> tuple[Note, ...]:
    """Return what these numbers do not tell."""
    notes = [
        Note(
            "Equal means are not equal laws",
            "GDP compares mean scores. Two groups with the same mean can still differ in spread or in the tails, where "
            "decisions are made. HSIC, the probes and mutual information look at the whole law.",
        ),
        Note(
            "Parity does not ask who is right",
            "Demographic parity says that a score does not move with the attribute. It does not say that the score is "
            "accurate, or equally accurate: errors can fall on some values of the attribute more than on others."
            + ("" if target else " Without a target, errors could not be looked at here."),
        ),
        Note(
            "HSIC = 0 is necessary, not sufficient, for counterfactual fairness",
            "Independence is a property of the data's law. Whether one person would have been scored alike had the "
            "attribute been different is a question about causes; the answer can be no even where HSIC is zero.",
        ),
        Note(
            "A small HSIC is no proof",
            "HSIC falls when a representation merely shrinks, and a kernel can be blind at its bandwidth. That is why "
            "the probes stand beside it. A better model than these probes might recover more.",
        ),
        Note(
            "Only what was audited",
            "Nothing is said about attributes that are not listed, nor about groups inside a value of the attribute."
            + (" Attributes are looked at one by one and all together, not in every combination." if several else ""),
        ),
        Note(
            "These rows, not the world",
            "Intervals cover the chance of drawing these rows. They do not cover who is missing from the table, an "
            "attribute that was recorded wrongly, or a population that changes.",
        ),
    ]
    if embedding:
        notes.append(
            Note(
                "A representation is used by heads that do not exist yet",
                "The curve shows one head. Another head on the same representation can move with the attribute more; "
                "the probes and the certificate for every head bound how much is there to be used.",
            )
        )
    return tuple(notes)


def contrast_sentence(at: float, value: float, overall: float, f: str, s: str, sparse: bool) -> str:
    """Return the sentence of a contrast at one value of the attribute."""
    side = "above" if value > 0 else "below"
    text = (
        f"Near {s} = {plain(at)} the mean of {f} is {figure(abs(value))} {side} its overall mean of {figure(overall)}."
    )
    return text + (" Too few rows are near to trust this." if sparse else "")


def _gap(number: Number, overall: float, f: str, s: str) -> list[str]:
    interval, null = number.interval, number.under_independence
    size = f"on average over the rows it is {figure(number.value)} away from its overall mean of {figure(overall)}."
    moves = number.pvalue is not None and number.pvalue <= 0.05
    said = [f"{_capital(f)} moves with {s}: {size}" if moves else f"{_capital(f)} is not seen to move with {s}: {size}"]
    if interval is not None and null is not None:
        said.append(
            f"The {percent(interval.level)} interval for this gap (GDP) is {figure(interval.low)} to "
            f"{figure(interval.high)}; if {s} made no difference, chance alone would show about {figure(null)}."
        )
    return said


def _recovers(value: float) -> str:
    return "recovers nothing" if value <= 0 else f"recovers {percent(value)}"


def _recover(value: float) -> str:
    return "recover nothing" if value <= 0 else f"recover {percent(value)}"


def _chance(pvalue: float) -> str:
    return probability(pvalue) if pvalue < 0.001 else f"= {probability(pvalue)}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
