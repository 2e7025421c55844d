"""Options that several commands share."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from frhsic.estimators.names import PENALTIES

if TYPE_CHECKING:
    from frhsic.tables import Advice

Table = Annotated[
    Path, typer.Argument(help="CSV, TSV, Parquet or Arrow. Rows that lack a value are dropped and counted.")
]
Target = Annotated[
    str, typer.Option("--target", "-t", help="Column to predict. Two values are classes, other numbers a regression.")
]
Sensitive = Annotated[
    list[str],
    typer.Option(
        "--sensitive",
        "-s",
        help="Numeric column that the prediction is not to depend on; may be repeated. It is needed to train, not to "
        "predict.",
    ),
]
Positive = Annotated[str | None, typer.Option(help="Value of the target that counts as 1; any other is 0.")]
Features = Annotated[
    list[str] | None,
    typer.Option(help='Columns to predict from, as names or a pattern such as "x_*"; all others if not given.'),
]
Drop = Annotated[list[str] | None, typer.Option(help="Columns to leave out, such as identifiers; may be repeated.")]
Penalty = Annotated[
    str,
    typer.Option(help="; ".join(f"{name}: {penalty.description}" for name, penalty in PENALTIES.items()) + "."),
]
Epochs = Annotated[int, typer.Option(help="Passes over the training rows.")]
BatchSize = Annotated[int, typer.Option(help="Rows in a step.")]
LearningRate = Annotated[float, typer.Option(help="Learning rate of Adam.")]
WeightDecay = Annotated[
    float | None,
    typer.Option(help="Weight decay of the encoder; by default 0.001 with hsic, and 0 with the paper's methods."),
]
VarianceFloor = Annotated[
    float | None,
    typer.Option(help="Directions of Z with less variance are cut; by default 0.01 with hsic, else 0."),
]
HeldOut = Annotated[float, typer.Option("--test-share", help="Share of the rows kept for the report alone.")]
Title = Annotated[str | None, typer.Option(help="Title of the report.")]
MaxRows = Annotated[int, typer.Option(help="Rows that the costly statistics use at most.")]
Device = Annotated[str, typer.Option(help="auto, cpu or cuda.")]
Seed = Annotated[int, typer.Option(help="Seed of every random draw.")]
FailAbove = Annotated[
    list[str] | None,
    typer.Option(help="Limit such as gdp=0.1: exit code 1 if the number is above it; may be repeated."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print weight, files and report as JSON.")]


def advice() -> Advice:
    """Return how messages about a table name the options of the command line."""
    from frhsic.tables import Advice

    return Advice(
        drop=lambda names: "Leave out with " + " ".join(f"--drop {shlex.quote(name)}" for name in names),
        positive="Pass --positive VALUE",
    )
