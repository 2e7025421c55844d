"""The paper's printed numbers and the runs behind them, with the names used in this package."""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from frhsic_paper.records import Record

METHOD_NAMES = {
    "none": "Unfair",
    "frhsic": "FRHSIC",
    "frem": "FREM",
    "reg-gdp": "Reg-GDP",
    "adv": "ADV",
    "mmd": "MMD (binned)",
    "laftr": "LAFTR (binned)",
    "dcor": "dCor",
    "hsic": "HSIC with the head",
}
"""Display names of the methods; the last is this library's own."""

VARIANT_NAMES = {"head Joint": "Joint, head in the kernel", "head EO": "EO, head in the kernel"} | {
    "contracted": "contracted, no penalty",
    "prototypes": "ParityEncoder",
    "adv-text": "ADV, as in the text",
    "mmd-text": "MMD, as in the text",
    "dcor-text": "dCor, as in the text",
    "hgr-kde": "HGR, kernel densities",
    "hgr-networks": "HGR, two networks",
    "gedi": "GeDI",
    "cosines": "cosines of S (a penalty)",
}
"""Display names of variants, if they differ from their names in the records."""

PRINTED_SIX = ("frhsic", "frem", "reg-gdp", "adv", "mmd", "laftr")
"""The methods in the paper's main table, in its order; areas are normalized over these and
Unfair.
"""

DATASET_NAMES = {
    "adult": "Adult",
    "acs_income": "ACS Income",
    "meps": "MEPS",
    "crime": "Crime",
    "compas": "COMPAS",
    "bank": "Bank",
    "credit": "Credit",
    "support": "SUPPORT",
    "pension": "Pension",
    "wages": "Wages",
    "synthetic": "synthetic",
}

_METHODS = {name: key for key, name in METHOD_NAMES.items()} | {
    "FRHSIC-Joint": "Joint",
    "FRHSIC-Sum": "Sum",
}
_DATASETS = {name: key for key, name in DATASET_NAMES.items()} | {"communities": "crime"}
_COLUMNS = {
    "lambda": "weight",
    "perf": "performance",
    "perf_mean": "performance",
    "gdp_mean": "gdp",
    "accuracy": "performance",
}


def method_name(name: str) -> str:
    """Return the display name of a method or variant.

    Examples
    --------
    >>> method_name("mmd"), method_name("head EO"), method_name("8 anchors")
    ('MMD (binned)', 'EO, head in the kernel', '8 anchors')
    """
    return METHOD_NAMES.get(name, VARIANT_NAMES.get(name, name))


def dataset_name(name: str) -> str:
    """Return the display name of a dataset."""
    return DATASET_NAMES.get(name, name)


def printed_records(table: str) -> list[Record]:
    """Return the rows of a table of the paper: `matched_performance`, `pareto_summary`,
    `equal_opportunity`, …

    Examples
    --------
    >>> row = printed_records("convergence_slopes")[0]
    >>> row["estimator"], row["slope"]
    ('HSIC', -0.46)
    """
    return [_renamed(row) for row in _content()["paper"][table]]


@cache
def printed_sweeps() -> tuple[Record, ...]:
    """Return the means of the published sweeps, with their standard deviations, in one row per
    dataset, method and weight.

    Examples
    --------
    >>> first = printed_sweeps()[0]
    >>> first["dataset"], first["method"], first["performance"], first["gdp"]
    ('adult', 'none', 0.8492, 0.7488)
    """
    return tuple(_renamed(row) for row in _content()["repo_sweeps"])


def published_numbers(name: str) -> Any:
    """Return the numbers of one study in the paper's repository: `convergence`, `lambda_selection`,
    …
    """
    numbers = _content()["repo_json"][name]
    return [_renamed(row) for row in numbers] if isinstance(numbers, list) else numbers


@cache
def _content() -> dict[str, Any]:
    text = (files("frhsic_paper") / "published.json").read_text(encoding="utf-8")
    content: dict[str, Any] = json.loads(text)
    return content


def _renamed(row: Record) -> Record:
    renamed = {_COLUMNS.get(key, key): value for key, value in row.items()}
    if "dataset" in renamed:
        renamed["dataset"] = _DATASETS.get(renamed["dataset"], renamed["dataset"])
    if "method" in renamed:
        renamed["method"] = _METHODS.get(renamed["method"], renamed["method"])
    return renamed
