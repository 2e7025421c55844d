"""`frhsic predict`: the scores of a saved model for the rows of a table, read with the schema of
its training table.
"""

from __future__ import annotations

import zipfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import frhsic
from frhsic import _progress
from frhsic._files import open_whole, require_regular, require_writable
from frhsic.cli import _terminal
from frhsic.formatting import printable

if TYPE_CHECKING:
    import pandas as pd

    from frhsic.tables.files import TableFile
    from frhsic.tables.schema import Schema

DEFAULT_SCORES = Path("frhsic-scores.csv")
# Number of rows in each block passed to a custom model, always the same.
BLOCK = 1024
# A table with at least this many rows is rejected if most of them have a level that didn't occur in
# training.
LEAST_REFUSED = 20
# If a label is expected for at least this many rows but predicted for less than a tenth of them, a
# note says so.
LEAST_EXPECTED = 10
# Most unseen levels of a column that are counted in order to show the most frequent ones.
MOST_UNSEEN = 1000
# Most characters of an unseen level in a message.
LONGEST_LEVEL = 60


@_terminal.with_fields
def predict(
    model: Annotated[Path, Argument(help="Model written by `frhsic train` or `frhsic.save`.")],
    table: Annotated[
        Path,
        Argument(
            help=(
                "CSV, TSV, Parquet or Excel with the columns that the model was fitted on; or a"
                ' folder or a pattern such as "part-*.parquet" (then --out is a folder).'
            )
        ),
    ],
    *,
    out: Annotated[
        Path,
        Option("--out", "-o", help="CSV file for the scores, or a folder with a file per part."),
    ] = DEFAULT_SCORES,
    keep: Annotated[
        list[str] | None,
        Option(help="Columns of the table to copy, such as an identifier, separated by commas."),
    ] = None,
    trusted: _terminal.Trusted = None,
    formulas: Annotated[
        bool,
        Option(
            "--keep-formulas",
            help=(
                "Copy text such as =1+1 unchanged. By default it gets a leading quote, so that a"
                " spreadsheet shows it as text; frhsic ignores the quote."
            ),
        ),
    ] = False,
    reading: _terminal.Reading,
) -> None:
    """Write the score and the prediction of a saved model for each row of a table.

    Columns are read as in training, and a row's score depends only on that row. Values that did not
    occur in training are counted; if most rows have one, the command fails. Only a model trained
    with --uses-sensitive needs the sensitive attribute. Other columns are ignored.

    [bold]Examples[/bold]

    [cyan]frhsic predict frhsic-model.frhsic new.csv[/cyan]

    Writes one row to frhsic-scores.csv for each row of the table, in the same order.

    [cyan]frhsic predict frhsic-model.frhsic new.parquet --keep id -o scores.csv[/cyan]

    The column id is copied from the table, next to the scores; decimal commas become points.

    [cyan]frhsic predict frhsic-model.frhsic "part-*.parquet" -o scores/[/cyan]

    Many files: part-1.csv for part-1.parquet, each written completely or not at all.

    [bold]What is written[/bold]

    For two classes, the columns score (the probability of --positive or of the second class) and
    predicted (the label at the model's threshold: one half, or the --threshold that the model was
    trained with). For more classes, the column predicted, and a column score_CLASS for each class.
    For a numeric target, the column predicted. For a model without a target, the columns of its
    representation.

    [bold]Exit codes[/bold]

    0 done; 2 any error; 130 interrupted.
    """
    from threadpoolctl import threadpool_limits

    from frhsic.tables.files import TableFile

    with _terminal.one_thread(), threadpool_limits(1, "blas"):
        pattern = not table.exists() and any(mark in str(table) for mark in "*?[")
        several = table.is_dir() or pattern
        if not several:
            require_writable({"scores": out}, {"table": table, "model": model})
            _check_order(model, table)
        served = None
        files = _part_files(table, out) if several else {table: out}
        notes: list[str] = []
        with _terminal.progress() as watch:
            watch(f"predicting {table.name}")
            for number, (part, scores) in enumerate(files.items()):
                file = TableFile.open(part, **vars(reading))  # before the slower load of the model
                if served is None:
                    served = Served.load(model, trusted, reading.max_bytes)
                own = replace(served, unseen={}, labels={"given": 0.0, "expected": 0.0})
                file = own.reopen(file, reading)
                told = own.write(file, scores, keep or (), formulas, counted=not several)
                if several:
                    _progress.tell(number + 1, len(files), "files")
                    told = [f"{part.name}: {note}" for note in told]
                notes.extend(told)
    _terminal.show(notes, {"scores": out})


def _check_order(model: Path, table: Path) -> None:
    """Raise an error if model and table seem to be swapped."""
    regular = model.is_file() and table.is_file()  # a pipe or a device may never end
    swapped = regular and zipfile.is_zipfile(table) and not zipfile.is_zipfile(model)
    if swapped and table.suffix.lower() != ".zip":
        raise ValueError(
            f"{model.name} is not a saved model, but {table.name} may be. Pass the model first,"
            " then the table."
        )


def _part_files(table: Path, folder: Path) -> dict[Path, Path]:
    """Create the output folder, and return an output file in it for each file of a table."""
    from frhsic.distributed.frames import table_files

    parts = [Path(path) for path in table_files(str(table))]
    names = [f"{part.stem}.csv" for part in parts]
    if folder.is_file() or (not folder.exists() and folder.suffix):
        raise ValueError(
            f"{str(table)!r} matches {len(parts)} files, but --out is the file {str(folder)!r};"
            " pass a folder, such as -o scores/."
        )
    if len({*names}) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"two files would be written to {twice}; rename one of them.")
    folder.mkdir(parents=True, exist_ok=True)
    outputs = {part: folder / name for part, name in zip(parts, names)}
    for part, scores in outputs.items():
        require_writable({"scores": scores}, {"table": part})
    return outputs


def shield_text(lines: pd.DataFrame) -> pd.DataFrame:
    """Return lines with text that a spreadsheet won't run as a formula."""
    from frhsic.tables.columns import column_kind
    from frhsic.tables.text import shield

    text = [str(name) for name in lines if column_kind(lines[name]) == "category"]
    lines = lines.assign(**{name: lines[name].astype(object).map(shield) for name in text})
    return lines.rename(columns=shield)


@dataclass(frozen=True, eq=False)
class Served:
    """A model, the schema of its features, and the attributes that its predictions need."""

    path: Path
    model: Any
    schema: Schema
    sensitive: list[str]
    unseen: dict[str, Counter[str]] = field(default_factory=dict)
    unseen_rows: Counter[str] = field(default_factory=Counter)
    labels: dict[str, float] = field(default_factory=lambda: {"given": 0.0, "expected": 0.0})

    @classmethod
    def load(
        cls, path: Path, trusted: list[str] | None = None, max_bytes: int | None = None
    ) -> Served:
        """Load a model that was fitted on named columns."""
        require_regular(path, "saved model")
        if not zipfile.is_zipfile(path):
            raise ValueError(
                f"{path.name} is not a saved model; pass the file that frhsic train --out wrote."
            )
        model = frhsic.load(path, trusted=trusted or (), max_bytes=max_bytes)
        if getattr(model, "schema_", None) is None:
            raise ValueError(
                f"the model {path.name} was fitted on an array without column names, so its columns"
                " cannot be found in a table. Fit it on a DataFrame."
            )
        sensitive = model.sensitive_names_in_ if getattr(model, "uses_sensitive", False) else ()
        if hasattr(model, "device"):
            model.device = "cpu"
        return cls(path, model, model.schema_, [str(name) for name in sensitive])

    @property
    def columns(self) -> list[str]:
        """All columns that a prediction needs."""
        return list(dict.fromkeys([*self.schema.names, *self.sensitive]))

    def reopen(self, file: TableFile, reading: _terminal.Reading) -> TableFile:
        """Return a file with the columns that a prediction needs; settings that can't be detected
        are taken from the training file.
        """
        from frhsic.tables.files import TableFile

        table = file.path
        if not {*self.columns} <= {*file.names}:
            if not reading.separator and self.schema.separator:
                reading = replace(reading, separator=self.schema.separator)
            file = TableFile.open(table, **vars(reading), named=self.columns)
        other = file.decimal not in (None, self.schema.decimal)
        if other and not reading.decimal and file.separator == self.schema.separator:
            file = TableFile.open(table, **vars(replace(reading, decimal=self.schema.decimal)))
        replacements = dict(getattr(self.schema, "replacements", {}))
        for name, values in file.replacements.items():
            replacements[name] = replacements.get(name, {}) | values
        file = replace(
            file,
            missing=self.schema.missing | file.missing,
            replacements=replacements,
            new_rows=True,
        )
        missing = [name for name in self.columns if name not in file.names]
        if missing:
            shown = ", ".join(map(repr, missing[:10])) + ", ..." * (len(missing) > 10)
            raise ValueError(
                f"{table.name} lacks {len(missing)} of the columns that {self.path.name} needs:"
                f" {shown}."
            )
        return file

    def inputs(self, rows: pd.DataFrame, file: TableFile) -> tuple[pd.DataFrame, pd.DataFrame]:
        """Return the features and attributes of rows of a file, and count levels that did not occur
        in training.
        """
        import pandas as pd

        from frhsic.tables.attributes import attribute, new_numbers
        from frhsic.tables.schema import ColumnType

        for name, counts in self.schema.count_unseen(rows).items():
            self.unseen_rows[name] += counts.total()
            counts = self.unseen.get(name, Counter()) + counts
            self.unseen[name] = Counter(dict(counts.most_common(MOST_UNSEEN)))
        schema = getattr(self.model, "sensitive_schema_", None)
        known = {} if schema is None else {column.name: column for column in schema.columns}
        attributes = {}
        for name in self.sensitive:
            column = known.get(name, ColumnType(name, "number"))
            values = column(rows[name], file.decimal or ".")
            if column.levels:  # bands are converted to the same numbers as in training
                levels = [*column.levels, *new_numbers(values, column.levels)]
                values = values.astype(pd.CategoricalDtype(levels, ordered=column.ordered))
            attributes[name] = attribute(values, f"column {name!r}")[0]
        return self.schema(rows, file.decimal, file.date_format), pd.DataFrame(
            attributes, rows.index
        )

    def write(
        self, file: TableFile, out: Path, keep: Sequence[str], formulas: bool, *, counted: bool
    ) -> list[str]:
        """Write the scores of a file's rows, and print the number of rows if `counted`; return
        notes for the user.
        """
        from frhsic.tables.files import LeftOut
        from frhsic.tables.text import with_points

        named = _terminal.split_names(keep, file.names)
        kept = list(dict.fromkeys(file.find(name) for name in named))
        rows = 0
        left_out = LeftOut()
        read = list(dict.fromkeys([*self.columns, *kept, *file.label_columns]))
        with open_whole(out, [file.path, self.path]) as stream:
            total = file.row_count() if counted and _progress.has_listener() else None
            for piece in file.pieces(read):
                frame = left_out.drop(piece)
                if frame.empty:
                    continue
                with file.name_in_errors(), self.name_in_errors():
                    outputs = self.outputs(frame, file)
                if taken := [name for name in kept if name in outputs]:
                    raise ValueError(
                        f"--keep {taken[0]}: the output already has a column with this name; rename"
                        f" it in {file.path.name}."
                    )
                self.count_labels(outputs)
                copies = frame[kept]
                if file.decimal == ",":  # the output file uses decimal points
                    copies = copies.map(with_points)
                lines = copies.join(outputs)
                lines = lines if formulas else shield_text(lines)
                lines.to_csv(stream, index=False, header=rows == 0)
                rows += len(frame)
                if counted:
                    _progress.tell(rows, total, "rows")
            if rows == 0:
                raise ValueError(f"{file.path.name} has a header but no rows.")
            with file.name_in_errors():
                unseen = self.unseen_notes(rows)
        return [*file.notes, *map(str, left_out.problems), *unseen, *self.rare_notes(rows)]

    def count_labels(self, outputs: pd.DataFrame) -> None:
        """Count the rows that are predicted to have the second of two labels, and the rows that the
        scores imply.
        """
        classes = list(getattr(self.model, "classes_", ()))
        if len(classes) == 2 and {"score", "predicted"} <= {*outputs}:
            self.labels["given"] += int((outputs["predicted"] == classes[1]).sum())
            self.labels["expected"] += float(outputs["score"].sum())

    def rare_notes(self, rows: int) -> Iterator[str]:
        """Yield a note if far fewer rows get the second label than the scores imply."""
        given, expected = self.labels["given"], self.labels["expected"]
        if expected >= LEAST_EXPECTED and 10 * given < expected:
            label = str(list(self.model.classes_)[-1])
            threshold = getattr(self.model, "threshold_", 0.5)
            yield (
                f"{given:,.0f} of {rows:,} rows {'is' if given == 1 else 'are'} labeled {label!r},"
                f" although the scores add up to {expected:,.0f}: the threshold of the model is"
                f" {threshold:g}. Use the column 'score' to decide, or train with --threshold."
            )

    @contextmanager
    def name_in_errors(self) -> Iterator[None]:
        """Name the model in errors that aren't about the table, such as those from a forged
        file.
        """
        try:
            yield
        except (ValueError, TypeError, MemoryError, OSError):
            raise
        except Exception as error:
            raise ValueError(
                f"the model {self.path.name} cannot predict ({type(error).__name__}: {error}). If"
                " you got it from someone else, ask for the file again."
            ) from error

    def outputs(self, rows: pd.DataFrame, file: TableFile) -> pd.DataFrame:
        """Return the model's predictions for rows, keyed by the names of the written columns."""
        import numpy as np
        import pandas as pd

        from frhsic.scoring import model_outputs

        X, s = self.inputs(rows, file)
        if getattr(self.model, "estimator", None) is None:
            return model_outputs(self.model, X, s)
        # rounding in linear algebra depends on both the number of rows and their layout
        blocks = []
        for start in range(0, len(X), BLOCK):
            places = np.minimum(np.arange(start, start + BLOCK), len(X) - 1)
            block = [
                pd.DataFrame({name: column.array.take(places) for name, column in table.items()})
                for table in (X, s)
            ]
            blocks.append(model_outputs(self.model, *block).iloc[: len(X) - start])
        return pd.concat(blocks).set_axis(rows.index)

    def representation_and_scores(
        self, rows: pd.DataFrame, file: TableFile, positive: str | None = None
    ) -> tuple[Any, Any]:
        """Return Z and the scores of rows; None for either that the model lacks. With several
        classes, the score is the probability of the positive one.
        """
        import numpy as np

        from frhsic.scoring import model_scores
        from frhsic.tables.columns import fold_text, quote_names
        from frhsic.tables.targets import positive_labels

        classes = [str(label) for label in getattr(self.model, "classes_", (0, 1))]
        named = {*map(fold_text, positive_labels(positive, classes))}
        places = [i for i, label in enumerate(classes) if fold_text(label) in named]
        if len(classes) > 2 and not places:
            raise ValueError(
                f"the model {self.path.name} predicts {len(classes)} classes:"
                f" {quote_names(classes)}. Specify which class to audit (--target COLUMN --positive"
                " CLASS)."
            )
        X, s = self.inputs(rows, file)
        z = np.asarray(self.model.transform(X)) if hasattr(self.model, "transform") else None
        if not hasattr(self.model, "predict"):
            return z, None
        scores = model_scores(self.model, X, s).astype(np.float64)
        return z, scores[:, places].sum(axis=1) if len(classes) > 2 else scores

    def unseen_notes(self, rows: int) -> list[str]:
        """Return a sentence for each column with levels that did not occur in training; raise if
        most rows have such a level, unless there are few rows, or so many levels that new ones are
        expected.
        """
        from frhsic.tables.columns import MOST_ENCODED_LEVELS

        notes = []
        known = {column.name: column.levels for column in self.schema.columns}
        for name, counts in self.unseen.items():
            if total := self.unseen_rows[name]:
                shown = ", ".join(
                    f"{printable(str(level), LONGEST_LEVEL)!r} ({n:,})"
                    for level, n in counts.most_common(3)
                )
                more = ", ..." if len(counts) > 3 else ""
                have = "row has" if total == 1 else "rows have"
                note = f"{have} a value in {name!r} that did not occur in training: {shown}{more}."
                few = len(known[name]) <= MOST_ENCODED_LEVELS
                if few and rows >= LEAST_REFUSED and total > rows / 2:
                    levels = ", ".join(repr(str(level)) for level in known[name][:5])
                    etc = ", ..." if len(known[name]) > 5 else ""
                    raise ValueError(
                        f"{total:,} of {rows:,} {note} In training, {name!r} contained"
                        f" {levels}{etc}; write its values the same way, or train a model on such"
                        " rows."
                    )
                notes.append(f"{total:,} {note}")
        return notes
