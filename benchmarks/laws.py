"""Coverage of the interval of GDP, and level of its test, on random laws whose truth is known.

    python benchmarks/laws.py --laws 600                 # of the commit that is checked out
    python benchmarks/laws.py --laws 4000 --jobs 16      # goes on where its file ends
    python benchmarks/laws.py --page FILE...             # only the tables of some counts
    python benchmarks/laws.py --laws 600 --trial word    # for development: any source, not kept

Every draw is a new law, so no interval can be tuned to a list of them. The seed of a count is the
hash of the tested commit, so it cannot be chosen after looking; the sources must be those of the
commit. A count is one JSON line a law in `benchmarks/results/laws/HASH.jsonl`, and every count is
kept, failures included. A law on which the measure raises is a miss on both sides.

An interval says two things. The gap E|E[f | S] - E f| is at least its lower end. The gap at the
resolution that the result states (the same with E[f | S] averaged over the people within so large
a share of all along S; the share is 0 if the values of S are compared themselves) is at most its
upper end. "Covers" below means both. The share of intervals that hold the gap itself, whatever the
resolution, is in the column beside it.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import betaincinv, ndtr, ndtri, stdtrit

from frhsic.parity import gdp

ROOT = Path(__file__).parents[1]
RESULTS = Path(__file__).parent / "results" / "laws"
GRID = 100_000
RESAMPLES = 199
LEVEL = 0.05
SLACK = 1e-9
FLAT = 1e-12

Array = np.ndarray
Random = np.random.Generator
Ingredients = dict[str, Any]


def log_uniform(rng: Random, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


@dataclass(frozen=True)
class Attribute:
    """S as a function of u, uniform on [0, 1]. `atoms` are the u at which single values of S begin
    and end.
    """

    kind: str
    value: Callable[[Array], Array]
    atoms: tuple[tuple[float, float], ...] = ()

    def rank(self, u: Array) -> Array:
        """Return the rank of S, the middle of those that share its value."""
        result = np.array(u, dtype=np.float64)
        for start, end in self.atoms:
            result[(u >= start) & (u < end)] = (start + end) / 2
        return result


def uniform_attribute(rng: Random) -> Attribute:
    return Attribute("uniform", lambda u: u)


def skewed_attribute(rng: Random) -> Attribute:
    sigma = rng.uniform(0.5, 2)
    return Attribute("skewed", lambda u: np.exp(sigma * ndtri(np.clip(u, 1e-12, 1 - 1e-12))))


def zero_inflated_attribute(rng: Random) -> Attribute:
    zeros = rng.uniform(0.2, 0.95)

    def value(u: Array) -> Array:
        rest = np.clip((u - zeros) / (1 - zeros), 1e-12, 1 - 1e-12)
        return np.where(u < zeros, 0.0, np.exp(ndtri(rest)))

    return Attribute("zero-inflated", value, ((0.0, zeros),))


def levelled_attribute(rng: Random) -> Attribute:
    count = round(log_uniform(rng, 2, 60))
    ends = np.append(np.cumsum(rng.dirichlet(np.ones(count)))[:-1], 1.0)
    starts = np.append(0.0, ends[:-1])

    def value(u: Array) -> Array:
        return np.searchsorted(ends[:-1], u, side="right").astype(np.float64)

    return Attribute("levels", value, tuple(zip(starts.tolist(), ends.tolist())))


def gapped_attribute(rng: Random) -> Attribute:
    border = rng.uniform(0.1, 0.9)
    width = rng.uniform(0.2, 2)
    return Attribute("gap in support", lambda u: u + width * (u > border))


ATTRIBUTES = (
    uniform_attribute,
    skewed_attribute,
    zero_inflated_attribute,
    levelled_attribute,
    gapped_attribute,
)

Curve = Callable[[Array], Array]


def waves(rng: Random) -> tuple[str, Curve]:
    count = rng.uniform(0, 12)
    phase = rng.random()
    for most in (2, 6, 12):
        if count <= most:
            return f"up to {most} waves", lambda x: np.sin(2 * np.pi * (count * x + phase))
    raise AssertionError


def jumps(rng: Random) -> tuple[str, Curve]:
    cuts = np.sort(rng.random(rng.integers(1, 6)))
    heights = rng.standard_normal(len(cuts) + 1)
    return "jumps", lambda x: heights[np.searchsorted(cuts, x)]


def bump(rng: Random) -> tuple[str, Curve]:
    share = log_uniform(rng, 0.01, 0.2)
    start = rng.uniform(0, 1 - share)
    return "bump", lambda x: ((x >= start) & (x < start + share)) * 1.0


def random_levels(rng: Random) -> tuple[str, Curve]:
    heights = rng.standard_normal(round(log_uniform(rng, 2, 60)))

    def curve(x: Array) -> Array:
        return heights[np.minimum((x * len(heights)).astype(int), len(heights) - 1)]

    return "random levels", curve


def flat(rng: Random) -> tuple[str, Curve]:
    return "flat", np.zeros_like


CURVES = (waves, jumps, bump, random_levels, flat)


@dataclass(frozen=True)
class Scores:
    """Scores of one kind: their standard deviation, the most that their mean may move from `mean`,
    and the score with a given mean and a given rank among the scores with that mean.
    """

    kind: str
    mean: float
    spread: float
    room: float
    score: Callable[[Array, Array], Array]


def normal_scores(rng: Random) -> Scores:
    return Scores("normal", 0.0, 1.0, math.inf, lambda mean, v: mean + ndtri(v))


def decisions(rng: Random) -> Scores:
    rate = log_uniform(rng, 0.01, 0.5)
    kind = "0/1, rate below .1" if rate < 0.1 else "0/1, rate from .1"
    spread = math.sqrt(rate * (1 - rate))
    return Scores(kind, rate, spread, rate, lambda mean, v: (v > 1 - mean) * 1.0)


def beta_scores(rng: Random) -> Scores:
    mean = rng.uniform(0.05, 0.5)
    size = log_uniform(rng, 0.5, 20)
    spread = math.sqrt(mean * (1 - mean) / (1 + size))

    def score(mean: Array, v: Array) -> Array:
        return betaincinv(size * mean, size * (1 - mean), v)

    return Scores("beta", mean, spread, 0.9 * mean, score)


def heavy_scores(rng: Random) -> Scores:
    if rng.random() < 0.5:
        freedom = rng.uniform(2.5, 5)
        scale = math.sqrt(freedom / (freedom - 2))
        return Scores(
            "heavy tails", 0.0, 1.0, math.inf, lambda mean, v: mean + stdtrit(freedom, v) / scale
        )
    sigma = rng.uniform(0.7, 1.5)
    side = rng.choice([-1.0, 1.0])
    middle = math.exp(sigma**2 / 2)
    scale = side * middle * math.sqrt(math.expm1(sigma**2))
    return Scores(
        "heavy tails",
        0.0,
        1.0,
        math.inf,
        lambda mean, v: mean + (np.exp(sigma * ndtri(v)) - middle) / scale,
    )


def zero_inflated_scores(rng: Random) -> Scores:
    share = rng.uniform(0.05, 0.5)

    def score(mean: Array, v: Array) -> Array:
        rest = np.clip((v - 1 + mean) / mean, 1e-12, 1 - 1e-12)
        return np.where(v < 1 - mean, 0.0, np.exp(ndtri(rest) - 0.5))

    spread = math.sqrt(share * math.e - share**2)
    return Scores("zero-inflated", share, spread, 0.95 * share, score)


SCORES = (normal_scores, decisions, beta_scores, heavy_scores, zero_inflated_scores)


def no_weights(rng: Random, n: int) -> tuple[str, Array | None]:
    return "none", None


def log_normal_weights(rng: Random, n: int) -> tuple[str, Array | None]:
    sigma = rng.uniform(0.1, 1.5)
    kind = "log-normal, sigma " + ("up to .75" if sigma < 0.75 else "from .75")
    return kind, np.exp(sigma * rng.standard_normal(n))


def one_heavy_row(rng: Random, n: int) -> tuple[str, Array | None]:
    share = rng.uniform(0.02, 0.3)
    weights = np.ones(n)
    weights[rng.integers(n)] = share / (1 - share) * (n - 1)
    return "one heavy row", weights


WEIGHTS = (no_weights, no_weights, log_normal_weights, one_heavy_row)


def no_clusters(rng: Random, n: int) -> tuple[str, Array | None]:
    return "none", None


def pairs(rng: Random, n: int) -> tuple[str, Array | None]:
    return "pairs", np.arange(n) // 2


def pareto_clusters(rng: Random, n: int) -> tuple[str, Array | None]:
    tail = rng.uniform(1.2, 3)
    sizes = np.minimum(np.floor(rng.pareto(tail, n) + 1), n // 5).astype(int)
    return "Pareto sizes", np.repeat(np.arange(n), sizes)[:n]


CLUSTERS = (no_clusters, no_clusters, pairs, pareto_clusters)


@dataclass(frozen=True)
class Law:
    """A law of S and of the score f, and a design: weights and clusters of n rows.

    Rows of a cluster share what their scores have beside the mean, to the extent of `within`, and
    where `together` their S too. Weights and sizes of clusters are independent of S and f, so that
    the law of a row is the same in every design.
    """

    attribute: Attribute
    curve: str
    shape: Callable[[Array], Array]
    strength: float
    scores: Scores
    weights: str
    clusters: str
    n: int
    within: float
    together: bool
    design: tuple[Array | None, Array | None] = field(repr=False)

    @classmethod
    def random(cls, rng: Random) -> Law:
        """Draw a law."""
        n = round(log_uniform(rng, 60, 20_000))
        attribute = ATTRIBUTES[rng.integers(len(ATTRIBUTES))](rng)
        curve, shape = CURVES[rng.integers(len(CURVES))](rng)
        strength = 3 * rng.random() ** 2
        scores = SCORES[rng.integers(len(SCORES))](rng)
        weights, row_weights = WEIGHTS[rng.integers(len(WEIGHTS))](rng, n)
        clusters, labels = CLUSTERS[rng.integers(len(CLUSTERS))](rng, n)
        shape = cls._scaled(cls._along(attribute, shape, by_rank=rng.random() < 0.5))
        return cls(
            attribute=attribute,
            curve=curve,
            shape=shape,
            strength=strength,
            scores=scores,
            weights=weights,
            clusters=clusters,
            n=n,
            within=rng.random(),
            together=clusters == "pairs" or rng.random() < 0.5,
            design=(row_weights, labels),
        )

    @staticmethod
    def _along(attribute: Attribute, shape: Curve, *, by_rank: bool) -> Curve:
        """Return a curve of u that follows the ranks of S, or its values up to outer ones."""
        if by_rank:
            return lambda u: shape(attribute.rank(u))
        low, high = attribute.value(np.array([0.005, 0.995]))
        if low == high:
            return lambda u: shape(attribute.rank(u))
        return lambda u: shape(np.clip((attribute.value(u) - low) / (high - low), 0, 1))

    @staticmethod
    def _scaled(shape: Curve) -> Curve:
        """Return the curve with the range -1 to 1."""
        values = shape(middles(GRID))
        low, high = float(values.min()), float(values.max())
        if high - low < FLAT:
            return np.zeros_like
        return lambda u: np.clip((2 * shape(u) - low - high) / (high - low), -1, 1)

    def mean(self, u: Array) -> Array:
        """Return the mean score at u."""
        height = min(self.strength * self.scores.spread, self.scores.room)
        return self.scores.mean + height * self.shape(u)

    @cached_property
    def gaps(self) -> Array:
        """The mean score less its mean, on a grid of u."""
        mean = self.mean(middles(GRID))
        return mean - mean.mean()

    def gap(self, resolution: float = 0.0) -> float:
        """Return the gap, of means over the people within a share of all, half on either side."""
        gaps = self.gaps
        if resolution > 0:
            reach = max(round(resolution * GRID / 2), 1)
            sums = np.append(0.0, np.cumsum(gaps))
            first = np.maximum(np.arange(GRID) - reach, 0)
            last = np.minimum(np.arange(GRID) + reach + 1, GRID)
            gaps = (sums[last] - sums[first]) / (last - first)
        return float(np.abs(gaps).mean())

    def sample(self, rng: Random) -> tuple[Array, Array, dict[str, Array]]:
        """Draw scores, S, and the weights or clusters; again where S has one value in all rows."""
        n = self.n
        weights, labels = self.design
        u = rng.random(n)
        noise = rng.standard_normal(n)
        options = {}
        if weights is not None:
            options["sample_weight"] = weights
        if labels is not None:
            options["groups"] = labels
            shared = rng.standard_normal(n)[labels]
            noise = math.sqrt(self.within) * shared + math.sqrt(1 - self.within) * noise
            if self.together:
                u = u[labels]
        s = self.attribute.value(u)
        if np.ptp(s) == 0:
            return self.sample(rng)
        v = np.clip(ndtr(noise), 1e-12, 1 - 1e-12)
        return self.scores.score(self.mean(u), v), s, options

    @property
    def ingredients(self) -> Ingredients:
        """What the law is made of, in words."""
        is_flat = self.gap() < FLAT
        return {
            "attribute": self.attribute.kind,
            "curve": "flat" if is_flat else self.curve,
            "strength": 0.0 if is_flat else rounded(self.strength),
            "scores": self.scores.kind,
            "weights": self.weights,
            "clusters": self.clusters,
            "rows": self.n,
        }


def middles(count: int) -> Array:
    return (np.arange(count) + 0.5) / count


def rounded(number: float) -> float:
    return float(f"{number:.5g}")


def generator_of(word: str, number: int) -> Random:
    """Return the random numbers of a law of a count."""
    digest = hashlib.sha256(f"{word} {number}".encode()).digest()
    return np.random.default_rng(list(digest))


def record(word: str, number: int) -> dict[str, Any]:
    """Draw a law and a sample of it, and return what the interval says beside the truth."""
    rng = generator_of(word, number)
    law = Law.random(rng)
    result: dict[str, Any] = {"law": number, **law.ingredients, "gap": rounded(law.gap())}
    f, s, options = law.sample(rng)
    start = time.process_time()
    try:
        found = gdp(f, s, resamples=RESAMPLES, random_state=number, **options)
    except Exception as error:
        return {**result, "failed": repr(error)}
    seconds = time.process_time() - start
    numbers = {
        "resolution": found.resolution,
        "gap_at": law.gap(found.resolution),
        "value": found.value,
        "low": found.interval[0],
        "high": found.interval[1],
        "error": found.standard_error,
        "pvalue": found.pvalue,
        "seconds": seconds,
    }
    return {**result, **{name: rounded(number) for name, number in numbers.items()}}


# --- what a count says


def above(one: dict[str, Any]) -> bool:
    """Whether the gap at the stated resolution is above the upper end."""
    return "failed" in one or not one["gap_at"] <= one["high"] * (1 + 1e-4) + SLACK


def below(one: dict[str, Any]) -> bool:
    """Whether the gap is below the lower end."""
    return "failed" in one or not one["gap"] >= one["low"] * (1 - 1e-4) - SLACK


def missed(one: dict[str, Any]) -> bool:
    return above(one) or below(one)


def missed_itself(one: dict[str, Any]) -> bool:
    """Whether the gap itself is outside the interval."""
    return below(one) or not one["gap"] <= one["high"] * (1 + 1e-4) + SLACK


def contradicts(one: dict[str, Any]) -> bool:
    """Whether the interval excludes 0 and the test does not, or the other way round."""
    return "failed" in one or (one["low"] > 0) != (one["pvalue"] <= LEVEL)


def is_flat(one: dict[str, Any]) -> bool:
    return one["curve"] == "flat"


def is_smooth(one: dict[str, Any]) -> bool:
    """Whether the curve is smooth and there are no weights: the laws on which widths are compared
    between counts.
    """
    return one["curve"] in ("flat", "up to 2 waves") and one["weights"] == "none"


def strength_of(one: dict[str, Any]) -> str:
    if is_flat(one):
        return "flat"
    return next(
        f"up to {most:g} standard deviations" for most in (0.3, 1, 3) if one["strength"] <= most
    )


def rows_of(one: dict[str, Any]) -> str:
    return next(f"up to {most:,}" for most in (250, 1_000, 5_000, 20_000) if one["rows"] <= most)


def share(records: list[dict[str, Any]], error: Callable[[dict[str, Any]], bool]) -> float:
    return sum(map(error, records)) / len(records) if records else math.nan


def most(draws: int) -> float:
    """Return the largest share of errors that .05 and two Monte Carlo errors allow."""
    return LEVEL + 2 * math.sqrt(LEVEL * (1 - LEVEL) / max(draws, 1))


def parts(records: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Yield the name and the laws of all, and of each ingredient."""
    yield "all", records
    names: dict[str, Callable[[dict[str, Any]], str]] = {
        name: partial(lambda one, key: str(one[key]), key=name)
        for name in ("attribute", "curve", "scores", "weights", "clusters")
    }
    for name, of in {**names, "strength": strength_of, "rows": rows_of}.items():
        for kind in sorted({of(one) for one in records}):
            yield f"{name}: {kind}", [one for one in records if of(one) == kind]


def shown(number: float) -> str:
    return "" if math.isnan(number) else f"{number:.3f}".removeprefix("0")


def table(records: list[dict[str, Any]]) -> str:
    """Return a Markdown table of coverage and one-sided errors."""
    lines = [
        "| laws | draws | covers | holds the gap itself | truth above | truth below |"
        " flat laws | of them excluded |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for name, some in parts(records):
        flat_ones = [one for one in some if is_flat(one)]
        cells = [
            name,
            str(len(some)),
            shown(1 - share(some, missed)),
            shown(1 - share(some, missed_itself)),
            shown(share(some, above)),
            shown(share(some, below)),
            str(len(flat_ones)),
            shown(share(flat_ones, below)),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def misses(records: list[dict[str, Any]], enough: int = 200) -> list[str]:
    """Return what misses the criterion: coverage of .94, one-sided errors of .05 and two Monte
    Carlo errors in each ingredient with enough draws, no error and no contradiction.
    """
    lines = []
    if share(records, missed) > 0.06:
        lines.append(f"coverage {shown(1 - share(records, missed))}")
    for name, some in parts(records):
        flat_ones = [one for one in some if is_flat(one)]
        for what, chosen, error in (
            ("truth above the upper end", some, above),
            ("flat laws excluded", flat_ones, below),
        ):
            if len(chosen) >= enough and share(chosen, error) > most(len(chosen)):
                found, limit = shown(share(chosen, error)), shown(most(len(chosen)))
                lines.append(f"{name}: {what} in {found} of {len(chosen)}, more than {limit}")
    failed = [one for one in records if "failed" in one]
    lines += [f"law {one['law']} raised {one['failed']}" for one in failed]
    count = sum(map(contradicts, records)) - len(failed)
    if count:
        lines.append(f"interval and p-value contradict each other in {count}")
    return lines


def page(records: list[dict[str, Any]]) -> str:
    """Return the tables and the criterion of a count."""
    widths = [one["high"] - one["low"] for one in records if is_smooth(one) and "high" in one]
    scaled = [
        (one["high"] - one["low"]) * math.sqrt(one["rows"])
        for one in records
        if is_smooth(one) and "high" in one
    ]
    seconds = [one["seconds"] for one in records if "seconds" in one]
    lines = [
        table(records),
        "",
        f"Smooth laws without weights: {len(widths)}, median width {np.median(widths):.4g},"
        f" times the root of rows {np.median(scaled):.4g}.",
        f"Seconds of a call: median {np.median(seconds):.3f}, largest {max(seconds):.2f}.",
        "",
        "Misses:",
        *(f"- {line}" for line in misses(records) or ["none"]),
    ]
    return "\n".join(lines)


def read(path: Path) -> list[dict[str, Any]]:
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return sorted(records, key=lambda one: one["law"])


def tested_commit() -> str:
    """Return the hash of the commit; raise if the sources are not those of the commit."""
    changed = subprocess.check_output(
        ["git", "status", "--porcelain", "--", "src", "benchmarks/laws.py"], cwd=ROOT, text=True
    )
    if changed:
        raise SystemExit(f"Commit first; these files differ from the commit:\n{changed}")
    return subprocess.check_output(["git", "rev-parse", "HEAD"], cwd=ROOT, text=True).strip()


def count(path: Path, word: str, laws: int, jobs: int) -> None:
    """Append the records of laws that the file does not have."""
    path.parent.mkdir(parents=True, exist_ok=True)
    done = {one["law"] for one in read(path)}
    rest = [number for number in range(laws) if number not in done]
    with path.open("a") as file, ProcessPoolExecutor(jobs) as pool:
        calls = map if jobs == 1 else pool.map
        for one in calls(partial(record, word), rest):
            file.write(json.dumps(one) + "\n")
            file.flush()


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--laws", type=int, default=600)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--commit", help="hash of the sources, where there is no repository")
    parser.add_argument(
        "--trial", help="a word in place of the hash, of the file FOLDER/WORD.jsonl"
    )
    parser.add_argument("--folder", type=Path, default=Path("."), help="of the file of a trial")
    parser.add_argument("--page", type=Path, nargs="+", help="only print the tables of some files")
    options = parser.parse_args(arguments)
    if options.page:
        print(page([one for path in options.page for one in read(path)]))
        return
    if options.trial:
        word = options.trial
        path = options.folder / f"{word}.jsonl"
    else:
        word = options.commit or tested_commit()
        path = RESULTS / f"{word[:12]}.jsonl"
    count(path, word, options.laws, options.jobs)
    print(page(read(path)))


if __name__ == "__main__":
    main()
