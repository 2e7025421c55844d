r"""How many directions of S the Gram matrix resolves on each dataset.

Part "ranks" of the records (protocol "corrected"), one for each dataset: that of :func:`spectrum`
on 1,500 rows at the median bandwidth in double precision, with

``single``       λ̂_S from the same rows in single precision, as the published code computes it
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from frhsic.kernels import median_bandwidth
from frhsic_paper.claim import Outcome, by_protocol, claim, outcome_of
from frhsic_paper.options import Options
from frhsic_paper.printed import dataset_name
from frhsic_paper.protocol import DATASETS, Protocol
from frhsic_paper.records import Record, Unit
from frhsic_paper.steps import Computation
from frhsic_paper.studies.bandwidth_scaling import PUBLISHED_CUT, ROWS, sensitive, spectrum
from frhsic_paper.study import Study
from frhsic_paper.table import Column, Table, tables_of

SHOWN = ("adult", "crime")
"""Datasets on which the paper shows its bound; COMPAS is left out because of its rank."""

STABLE = 2.0
"""Factor between two precisions up to which an eigenvalue is called stable."""


def units(protocol: Protocol, options: Options) -> dict[Unit, int]:
    """Return the datasets."""
    return {(name,): 1 for name in options.chosen(DATASETS)}


def ranks(missing: Sequence[Unit], protocol: Protocol, options: Options) -> Iterator[list[Record]]:
    """Yield the spectrum of each dataset at the median bandwidth."""
    for (name,) in missing:
        s = sensitive(name, protocol)
        sigma = float(median_bandwidth(s, name="s"))
        single = spectrum(s.to(torch.float32), sigma, PUBLISHED_CUT)
        yield [{"sigma": sigma, **spectrum(s, sigma, PUBLISHED_CUT), "single": single["smallest"]}]


def rank_table(records: Sequence[Record], protocol: Protocol) -> Table:
    """Different values, directions above the cut and λ̂_S in both precisions."""
    columns = ("n", "distinct", "kept", "smallest", "single")
    rows = [[dataset_name(r["dataset"]), *(r[column] for column in columns)] for r in records]
    names = ("directions above 1e-6", Column("λ̂_S, double", None), Column("λ̂_S, single", None))
    return Table.of(["S of", "rows", "different values", *names], rows)


@claim(
    "compas-rank",
    "Section 5.3 and Appendix, bound",
    "COMPAS' age has few distinct values, so that its Gram matrix has small rank and λ̂_S is"
    " unstable, unlike Adult and Crime.",
    reason=f"""
        Three cases: fewer directions than Adult, fewer than Crime, and λ̂_S that differs by more
        than {STABLE:g}× between single and double precision on COMPAS alone.
    """,
    published=False,
)
@by_protocol("rank", splits=0)
def _lower_rank(records: Sequence[Record], protocol: Protocol) -> Outcome:
    found = {r["dataset"]: r for r in records}
    if not {"compas", *SHOWN} <= set(found):
        return outcome_of([], "")
    factors = {
        d: max(r["single"] / r["smallest"], r["smallest"] / r["single"]) for d, r in found.items()
    }
    lower = [found["compas"]["kept"] < found[d]["kept"] for d in SHOWN]
    unstable = factors["compas"] > STABLE >= max(factors[d] for d in SHOWN)
    text = "; ".join(
        f"{dataset_name(d)} {r['kept']} directions, {r['distinct']} values, λ̂_S off by"
        f" {factors[d]:.1f}×"
        for d, r in found.items()
    )
    return outcome_of([*lower, unstable], text)


STUDY = Study(
    name="rank",
    about="remark: the rank of S on COMPAS",
    title="Directions of S that a Gram matrix resolves",
    words="1,500 rows of S at the median bandwidth, eigenvalues above 1e-6 of the largest.",
    measure=(
        Computation(
            "rank", "ranks", ("dataset",), units, ranks, {"corrected": (ROWS, PUBLISHED_CUT)}
        ),
    ),
    tables=tables_of("rank", "Directions", rank_table),
    claims=(_lower_rank,),
    published=False,
)
