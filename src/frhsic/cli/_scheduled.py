"""`frhsic audit --scheduler`: the audit of files on a Dask cluster."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from frhsic.auditing import Audit
    from frhsic.cli import _options
    from frhsic.cli._terminal import Watch
    from frhsic.cli.audit import _Options


def audit(options: _Options, stated: _options.Stated, at: dict[str, list[float]] | list[float], watch: Watch) -> Audit:
    """Audit all rows of the files that the table stands for; workers have to see them under the same paths."""
    from frhsic import distributed, tables
    from frhsic.auditing import Settings
    from frhsic.distributed.files import file_columns, read_files, table_files

    if options.model is not None:
        raise ValueError("--model is not applied on a cluster; write its scores by frhsic predict, and pass --score.")
    if options.delimiter is not None or options.decimal is not None:
        raise ValueError("--delimiter and --decimal are not used with --scheduler; write the table as Parquet.")
    if options.design:
        raise ValueError(
            "--groups and --row-weights are not used with --scheduler, whose audit takes rows as independent and "
            "equal. Write all rows of some of the groups into one file, and audit it without --scheduler."
        )
    paths = table_files(str(options.table))
    names = file_columns(paths[0])
    parts = list(dict.fromkeys(chain(*(tables.expand(one, names, paths[0]) for one in options.embedding or ()))))
    roles = [*options.sensitive, *([options.target] if options.target else [])]
    parts = [name for name in parts if name not in roles]
    if options.embedding and not parts:
        raise ValueError("--embedding matches only the sensitive attribute or the target; nothing is left to audit.")
    named = [tables.find(name, names, paths[0]) for name in (*roles, *([options.score] if options.score else []))]
    columns = list(dict.fromkeys([*parts, *named]))
    assert options.scheduler is not None
    watch(f"connecting to {options.scheduler}")
    with distributed.cluster(options.scheduler):
        return distributed.audit(
            read_files(paths, columns),
            sensitive=options.sensitive,
            score=options.score,
            embedding=parts,
            target=options.target,
            positive=options.positive,
            favourable=options.favourable,
            at=at,
            settings=Settings(confidence=options.confidence, max_rows=options.max_rows, seed=options.seed),
            title=options.title,
            source=str(options.table),
            limit=stated.require or (),
            threshold=stated.threshold,
            context=stated.context(None),
            watch=watch,
        )
