"""The reference P_Z ⊗ Unif(S), which gives rare values of S the same weight as others; and the
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
from frhsic_paper.claim import Case, case_rule, claim
from frhsic_paper.frontiers import (
    areas_by_repeat,
    corrected_error,
    finite_records,
    swept_datasets,
    variants_table,
    with_contraction,
)
from frhsic_paper.grid import Grid, Method, held_out, methods_by_name
from frhsic_paper.printed import dataset_name, printed_sweeps
from frhsic_paper.protocol import BASELINE, PAPER_WEIGHTS, PUBLISHED, Protocol
from frhsic_paper.records import Record, grouped
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
    theirs = information(printed_sweeps())
    own = information(records)
    datasets = list(dict.fromkeys(dataset for dataset, _ in own))
    rows: list[list[Cell]] = []
    for weight in sorted({weight for _, weight in own}):
        rows.append([f"{weight:g}"])
        for dataset in datasets:
            key = (dataset, weight)
            rows[-1] += [theirs.get(key, [None])[0], mean_and_error(own.get(key, ()))]
    heads = [
        Column(f"{dataset_name(d)}, {whose}", printed=whose == "authors")
        for d in datasets
        for whose in ("authors", "ours ± SE")
    ]
    return Table.from_rows(["λ", *heads], rows)


def information(records: Sequence[Record]) -> dict[tuple[str, float], list[float]]:
    """Return the mutual information of all splits under the paper's method and without penalty, by
    dataset and weight.
    """
    own = [r for r in finite_records(records, "mi_sk") if r["method"] in (BASELINE, "frhsic")]
    groups = grouped(own, "dataset", "weight")
    return {key: [r["mi_sk"] for r in some] for key, some in groups.items()}


def sentences(results: Results) -> list[str]:
    """Return how well `mi_sk` agrees with the authors' files."""
    theirs = information(printed_sweeps())
    ours = information(results.records("minority/coordinates", PUBLISHED.name))
    apart = [
        f"{dataset_name(dataset)} at λ = {weight:g}"
        for (dataset, weight), values in ours.items()
        for own in [mean_and_error(values)]
        if own
        and abs(theirs[dataset, weight][0] - own.mean) > 2 * np.sqrt(2) * (own.deviation or np.inf)
    ]
    if not ours:
        return []
    return [
        "`mi_sk` in the authors' files is within two combined standard errors of ours in"
        f" {len(ours) - len(apart)} of {len(ours)} cases (the files give no spread, so ours counts"
        f" twice). Others: {', '.join(apart) or 'none'}."
    ]


def tables(results: Results) -> list[Listed]:
    """Return the tables of the areas of both references by either GDP, and of the coordinates'
    mutual information.
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
@case_rule(
    "minority/models", "mean nAUP with the uniform reference and the paper's, difference ± SE"
)
def _protects(records: Sequence[Record], protocol: Protocol) -> Iterator[Case]:
    """The claim holds if training with the uniform reference gives a larger area by GDP over a
    uniform distribution of S than training with the paper's reference, by more than two standard
    errors of the paired difference, corrected for the rows that splits share.
    """
    records = with_contraction(records)
    for dataset in swept_datasets(records):
        areas = areas_by_repeat(records, dataset, "gdp_probability_uniform")
        if {EVEN, "frhsic"} <= areas.keys():
            more = areas[EVEN] - areas["frhsic"]
            error = corrected_error(more, protocol)
            even, own = (areas[name].mean() for name in (EVEN, "frhsic"))
            yield (
                more.mean() > 2 * error,
                f"{dataset_name(dataset)} {even:.3f} and {own:.3f}, {more.mean():+.3f}"
                f" ± {error:.3f}",
            )


STUDY = Study(
    name="minority",
    about="the discussion's reference for rare values of S; mutual information of coordinates",
    title="Rare values of S, and single coordinates of Z",
    words="""
        Crime and COMPAS, nine weights, five splits. For the uniform reference, rows of a batch are
        weighted by one over the density of S, so that the penalty compares P(Z | S) with P(Z) under
        a uniform distribution of S. The mutual information of S and the best of the 50 coordinates
        of Z on test rows is estimated by scikit-learn's mutual_info_regression with five
        neighbours, as in the authors' files.
    """,
    train=(Training(grid, (OnTrained("minority", "coordinates", REPEATS, coordinates, "mi_sk"),)),),
    lead=sentences,
    tables=tables,
    claims=(_protects,),
)
