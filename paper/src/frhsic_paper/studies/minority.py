"""P_Z ⊗ Unif(S) as the reference, so that rare values of S have the same weight as others; and the
mutual information of S with the best coordinate of Z.

Part "coordinates" of the records, one for each model of part "models":

``mi_sk``   largest estimate of scikit-learn's ``mutual_info_regression`` over coordinates of Z, on
            test rows
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from sklearn.feature_selection import mutual_info_regression
from torch import Tensor

from frhsic.dependence.grams import centered_gram
from frhsic.kernels import Gaussian
from frhsic.penalties import HSIC
from frhsic.penalties.base import Batch
from frhsic.training import Fleet
from frhsic_paper.claim import Outcome, claim, outcome_from_cases, protocol_rule
from frhsic_paper.frontiers import (
    finite_records,
    frontier,
    naup,
    swept_datasets,
    variants_table,
)
from frhsic_paper.grid import Grid, Method, held_out, methods_by_name
from frhsic_paper.printed import dataset_name, printed_sweeps
from frhsic_paper.protocol import BASELINE, PAPER_WEIGHTS, Protocol
from frhsic_paper.records import Record
from frhsic_paper.results import Results
from frhsic_paper.splits import Split
from frhsic_paper.steps import OnTrained, Training
from frhsic_paper.study import Study
from frhsic_paper.table import Cell, Column, Listed, Table, mean_and_error, protocol_tables

EVEN = "FRHSIC, values of S alike"

REPEATS = 5

KNOWN_ROWS = 1000
"""Number of training rows from which the density of S is estimated."""

WIDTH = 0.1
"""Bandwidth of that density, as in the paper's evaluator; S is scaled to [0, 1]."""

GAPS = {"gdp_probability": "the law of S", "gdp_probability_uniform": "a uniform law of S"}
"""Columns of GDP, and the distribution over which it is averaged."""


def even_weights(s: Tensor, known: Tensor, width: float = WIDTH) -> Tensor:
    r"""Weights of rows that make S uniform, :math:`w_i \propto 1 / \hat p(s_i)`, with sum 1 and a
    Gaussian kernel density of known values.

    Examples
    --------
    Three of four known values are 0, the other is 1:

    >>> even_weights(torch.tensor([0.0, 1.0]), torch.tensor([0.0, 0.0, 0.0, 1.0]))
    tensor([0.2500, 0.7500])
    """
    density = torch.exp(-(((s[:, None] - known) / width) ** 2) / 2).mean(1)
    return 1 / density / (1 / density).sum()


class EvenHSIC(HSIC):
    r"""The paper's penalty with :math:`P_Z \otimes \mathrm{Unif}(S)` instead of :math:`P_Z \otimes
    P_S`,

    .. math:: \Bigl\| \sum_i w_i\, (\varphi(z_i) - \bar\varphi) \otimes \psi(s_i) \Bigr\|^2
        = w^\top (\tilde K \circ L)\, w,

    with :func:`even_weights`. Zero in the population exactly when Z and S are independent; equal to
    HSIC if all weights are equal.
    """

    known: Tensor | None

    def __init__(self) -> None:
        super().__init__(
            Gaussian(1.0),
            scale_z="published",
            scale_s="published",
            head_weight=0.0,
            attributes="isotropic",
        )
        self.register_buffer("known", None)

    def _prepare(self, s: Tensor, generator: torch.Generator) -> None:
        super()._prepare(s, generator)
        self.known = s[:KNOWN_ROWS, 0]

    def _value(self, batch: Batch) -> Tensor:
        assert self.known is not None
        z = self._scaled_z(batch)
        weights = even_weights(batch.s[:, 0], self.known)
        return weights @ (centered_gram(self.kernel_z(z, z)) * self._gram_s(batch.s)) @ weights


def coordinates(fleet: Fleet, split: Split, task: str) -> Iterator[list[Record]]:
    """Yield the mutual information of S and the best coordinate of Z on the test rows."""
    x, _, s = split.test
    for z in fleet.transform(x.to(fleet.device)):
        rows = z.double().cpu().numpy()
        found = np.nan  # from a model that diverged
        if np.isfinite(rows).all():
            found = mutual_info_regression(rows, s.numpy().ravel(), n_neighbors=5, random_state=0)
        yield [{"mi_sk": float(np.max(found))}]


def grid(protocol: Protocol) -> Grid:
    """Return the grid of the paper's method and, under the corrected protocol, the method with the
    other reference.
    """
    methods = methods_by_name("frhsic", protocol=protocol)
    if not protocol.printed:
        methods += (Method(EVEN, EvenHSIC),)
    return Grid(
        "minority",
        ("crime", "compas"),
        methods,
        PAPER_WEIGHTS,
        REPEATS,
        held_out(protocol),
    )


def coordinate_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Return a table by weight and dataset: the mutual information of S and the best coordinate of
    Z under the paper's method, in the authors' files, which have the published attributes, and in
    ours.
    """
    theirs = {(r["dataset"], r["weight"]): r["mi_sk"] for r in printed_sweeps() if _is_own(r)}
    own = [r for r in finite_records(records, "mi_sk") if _is_own(r)]
    datasets = list(dict.fromkeys(r["dataset"] for r in own))
    rows: list[list[Cell]] = []
    for weight in sorted({r["weight"] for r in own}):
        rows.append([f"{weight:g}"])
        for dataset in datasets:
            values = [r["mi_sk"] for r in own if (r["dataset"], r["weight"]) == (dataset, weight)]
            rows[-1] += [theirs.get((dataset, weight)), mean_and_error(values)]
    heads = [
        Column(f"{dataset_name(d)}, {whose}", printed=whose == "authors")
        for d in datasets
        for whose in ("authors", "ours ± SE")
    ]
    return Table.from_rows(["λ", *heads], rows)


def _is_own(record: Record) -> bool:
    """Return whether a record is for the paper's method or the unpenalized model."""
    return record["method"] in (BASELINE, "frhsic")


def tables(results: Results) -> list[Listed]:
    """Return tables of the areas of both references by either GDP, and of the coordinates' mutual
    information.
    """
    records = results.records("minority/models", "corrected")
    areas = [
        Listed(f"nAUP by GDP over {law}", variants_table(records, column))
        for column, law in GAPS.items()
        if records
    ]
    heading = "Mutual information of S and the best coordinate of Z (`mi_sk`), FRHSIC"
    return [*areas, *protocol_tables("minority/coordinates", heading, coordinate_table)(results)]


@claim(
    "minority",
    "Discussion",
    "Replacing the reference P_Z ⊗ P_S by P_Z ⊗ Unif(S) yields a minority-protection target in"
    " which rare values of S receive equal weight.",
    published=False,
)
@protocol_rule("minority/models")
def _protects(records: Sequence[Record], protocol: Protocol) -> Outcome:
    """Trained with that reference, the area by GDP over a uniform law of S is larger than with the
    paper's.
    """
    good = []
    parts = []
    for dataset in swept_datasets(records):
        full = frontier(records, dataset, "gdp_probability_uniform")
        areas = naup(full)
        if {EVEN, "frhsic"} <= areas.keys():
            good.append(areas[EVEN] > areas["frhsic"])
            parts.append(f"{dataset_name(dataset)} {areas[EVEN]:.3f} and {areas['frhsic']:.3f}")
    return outcome_from_cases(good, "areas with the uniform reference and the paper's", parts)


STUDY = Study(
    name="minority",
    about="the discussion's reference for rare values of S; mutual information of coordinates",
    title="Rare values of S, and single coordinates of Z",
    words="""
        Crime and COMPAS, nine weights, five splits. For the uniform reference, rows of a batch are
        weighted by one over the density of S, so that the penalty compares P(Z | S) with P(Z) under
        a uniform law of S. The mutual information of S and the best of the 50 coordinates of Z on
        test rows is estimated by scikit-learn's mutual_info_regression with five neighbours, as in
        the authors' files.
    """,
    train=(Training(grid, (OnTrained("minority", "coordinates", REPEATS, coordinates, "mi_sk"),)),),
    tables=tables,
    claims=(_protects,),
)
