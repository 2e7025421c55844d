"""Text tables such as CSV: detect the format and read cells without converting them."""

from __future__ import annotations

import codecs
import csv
import io
import itertools
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from frhsic._files import TABLE_TIMES, Budget
from frhsic.formatting import format_count, inflect, printable

# Bytes of a text file that are parsed at once.
PARSED_BYTES = 2**24
# Lines, and characters per line, used to detect the format of a text file.
SNIFFED_LINES = 50
SNIFFED_CHARACTERS = 2**22
# Lines at the end of a file that may be a footer, and the number of characters that are searched.
FOOTER_LINES = 10
FOOTER_CHARACTERS = 2**16
# Fewest columns of a table that is found below a title.
TITLED_COLUMNS = 3
# Beginning of the names given to columns without a name.
UNNAMED = "Unnamed: "
# Most characters of a line, and most lines, in a message.
SHOWN_CHARACTERS = 60
SHOWN_LINES = 3

COMPRESSED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd", ".zip": None}
# Encodings tried for text that is not UTF-8: the first in which every byte is valid.
WINDOWS = {"cp1252": "Windows-1252", "cp1250": "Windows-1250", "latin-1": "Latin-1"}
SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_POINT = re.compile(r"[-+]?[0-9]*\.[0-9]+")
_COMMA = re.compile(r"[-+]?([0-9]+|[1-9][0-9]{0,2}(\.[0-9]{3})+),[0-9]+")
_NUMBER = re.compile(r"[-+]?[0-9.,]+")
# Cells that may be decimal numbers, or digits grouped in threes, as next to a cell 1.234,5.
_GROUPS = re.compile(r"[-+]?[1-9][0-9]{0,2}\.[0-9]{3}")
_THOUSANDS = re.compile(r"[-+]?[1-9][0-9]{0,2},[0-9]{3}")
# The beginning of a remark below a table, such as "Source: " and "* preliminary".
_REMARK = re.compile(r"[*\u2020\u2021]\s*[^\W\d_]|[^\W\d_][\w ]*: ")
# Usual labels of a row with totals or means of the others.
TOTALS = re.compile(
    r"((grand|overall) )?(sub)?totals?|sums?|means?|averages?"
    r"|(zwischen|gesamt)?summe|gesamt|insgesamt|mittelwert|durchschnitt"
)
# Text that a spreadsheet would interpret as a formula, except signed numbers and a lone sign.
_FORMULA = re.compile(r"'*(\s*[=+\-@＝＋－＠]|[\t\r\n])")
_SIGNED = re.compile(r"\s*[-+][0-9.,]*([eE][-+]?[0-9]+)?%?\s*")


@dataclass(frozen=True)
class TextReader:
    """A text file whose header has been read.

    Attributes
    ----------
    names
        Names of the columns.
    separator
        Character between fields.
    decimal
        Decimal separator.
    encoding
        Encoding of the text.
    header_lines
        Lines up to the end of the header.
    last_lines
        The last lines that are not blank.
    notes
        Sentences about settings that were detected rather than given.
    """

    path: Path
    names: tuple[str, ...]
    separator: str
    decimal: str
    encoding: str
    header_lines: int
    last_lines: tuple[str, ...]
    notes: tuple[str, ...]

    @classmethod
    def open(
        cls,
        path: Path,
        separator: str | None,
        decimal: str | None,
        encoding: str | None,
        max_bytes: int | None = None,
    ) -> TextReader:
        """Detect the format of a file, except for settings that are given."""
        found_encoding, last_lines = _encoding(path, encoding, max_bytes)
        with _open_text(path, found_encoding) as file:
            lines = _first_lines(file)
            whole = not file.readline(1)
        blank = len(list(itertools.takewhile(lambda line: not line.strip(), lines)))
        if blank == len(lines):
            raise ValueError("it is empty, without even a header")
        usual = "\t" if {suffix.lower() for suffix in path.suffixes} & {".tsv", ".txt"} else ","
        delimiter = separator or _separator(lines, usual, whole=whole)
        found = _split_lines(lines, delimiter, whole=whole) or [[]]
        table = _table_rows(found)
        titles = found[: table.start]
        header, *rows = found[table]
        header_lines = _count_lines(lines, delimiter, len(titles) + 1)
        if header_lines >= len(lines):
            raise ValueError("it has a header but no rows")
        sign = decimal or _decimal(rows, delimiter)
        if delimiter == sign:
            raise ValueError(
                f"{sign!r} cannot be both the delimiter and the decimal separator; pass another"
                " delimiter"
            )
        reader = cls(
            path=path,
            names=tuple(name.strip() or f"{UNNAMED}{i}" for i, name in enumerate(header)),
            separator=delimiter,
            decimal=sign,
            encoding=found_encoding,
            header_lines=header_lines,
            last_lines=last_lines,
            notes=(),
        )
        notes = []
        if titles:
            first = next(filter(None, titles[0]))
            notes.append(
                f"The table in {path.name} begins on line {header_lines - _height(header) + 1}."
                f" The {inflect(f'[line|{len(titles)} lines]', len(titles))} above it"
                f" ({_quote_line(first)}{', ...' if len(titles) > 1 else ''})"
                f" {inflect('[was|were]', len(titles))} left out."
            )
        if footer := reader.footer:
            last = inflect(f"The last [line|{len(footer)} lines]", len(footer))
            shown = ", ".join(map(_quote_line, footer[:SHOWN_LINES]))
            more = ", ..." if len(footer) > SHOWN_LINES else ""
            reason = "because [it looks like a remark or a total|they look like remarks or totals]"
            notes.append(
                f"{last} of {path.name} ({shown}{more})"
                f" {inflect(f'[was|were] left out {reason}', len(footer))}."
            )
        if delimiter not in (usual, separator):
            notes.append(f"{path.name} was read with {SEPARATORS[delimiter]} between fields.")
        if decimal is None and sign == ",":
            notes.append(f"{path.name} was read with decimal commas.")
        if encoding is None and found_encoding in WINDOWS:
            notes.append(
                f"{path.name} is not UTF-8; it was read as {WINDOWS[found_encoding]}. If that is"
                " wrong, pass another encoding, such as cp1250, with --encoding."
            )
        return replace(reader, notes=tuple(notes))

    @property
    def footer(self) -> list[str]:
        """The last lines that aren't rows: remarks and totals with fewer fields than the header."""
        if len(self.names) == 1:
            return []
        words = itertools.takewhile(self._is_footer, reversed(self.last_lines))
        return list(words)[::-1]

    def _is_footer(self, line: str) -> bool:
        if line.count('"') % 2:  # the end of a cell with several lines
            return False
        return _is_remark(next(csv.reader([line], delimiter=self.separator)), len(self.names))

    def row_count(self) -> int | None:
        """Return the number of lines after the header; None for a compressed file."""
        if self.path.suffix.lower() in COMPRESSED:
            return None
        with self.path.open("rb") as file:
            blocks = iter(lambda: file.read(PARSED_BYTES), b"")
            lines = sum(block.count(b"\n") for block in blocks)
        return max(lines - self.header_lines, 0)

    def batches(self, columns: list[str]) -> Iterator[Any]:
        """Yield batches of cells without the footer; after the last batch, a row with more or fewer
        fields than the header raises an error.
        """
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        uneven: list[Any] = []
        count = 0

        def skip(row: Any) -> str:
            # an error here would end the reader's thread while Python may be exiting, which aborts
            nonlocal count
            if row.text.strip():
                count += 1
                if count <= FOOTER_LINES + 1:
                    uneven.append(row)
            return "skip"

        read = arrow_csv.ReadOptions(
            use_threads=False,
            block_size=PARSED_BYTES,
            skip_rows=self.header_lines,
            column_names=list(self.names),
            encoding=self.encoding.removesuffix("-sig"),
        )
        parse = arrow_csv.ParseOptions(
            delimiter=self.separator,
            newlines_in_values=True,
            # an empty line of one column is a missing value
            ignore_empty_lines=len(self.names) > 1,
            invalid_row_handler=skip,
        )
        convert = arrow_csv.ConvertOptions(
            column_types=dict.fromkeys(columns, pa.string()), include_columns=columns
        )
        with _open(self.path) as stream:
            yield from arrow_csv.open_csv(stream, read, parse, convert)
        if uneven and [row.text.strip() for row in uneven] != self.footer:
            raise ValueError(self._uneven_sentence(uneven))

    def _uneven_sentence(self, rows: Sequence[Any]) -> str:
        """Describe what is wrong with rows that have more or fewer fields than the header."""
        texts = [row.text.strip() for row in rows]
        first = rows[0]
        said = (
            f"row {first.number:,} has {format_count(first.actual_columns, 'field')}, but the"
            f" header has {first.expected_columns}: {_quote_line(texts[0])}"
        )
        if first.actual_columns > first.expected_columns:
            sign = SEPARATORS.get(self.separator, repr(self.separator))
            return (
                f"fields are separated by {sign}, so text that contains the separator needs quotes;"
                f" {said}"
            )
        if len(texts) <= FOOTER_LINES and texts == list(self.last_lines[-len(texts) :]):
            remedy = f"if the last [line is|{len(texts)} lines are] a footer, delete [it|them]"
            return f"{said}; {inflect(remedy, len(texts))}"
        return f"{said}; complete or delete it"


def _encoding(path: Path, known: str | None, max_bytes: int | None) -> tuple[str, tuple[str, ...]]:
    """Return the encoding given by a byte-order mark, or the first one that decodes the whole
    file, and the last lines of the file.
    """
    with _open(path) as raw:
        mark = raw.read(2)
    guesses = ["utf-8-sig", *WINDOWS]
    if mark in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        guesses = ["utf-16"]
    for encoding in [known] if known else guesses:
        try:
            budget = Budget.of_file(path, TABLE_TIMES, max_bytes)
            return encoding, _check_text(path, encoding, budget)
        except UnicodeError:
            continue
        except LookupError:
            break
    raise ValueError(
        f"it is not text in the encoding {known or 'utf-16'}; pass the right encoding with"
        " --encoding, such as cp1252"
    )


def _check_text(path: Path, encoding: str, budget: Budget) -> tuple[str, ...]:
    """Read a whole file and return its last lines; raise if it is not text, decompresses to far
    more than its size, or has a line longer than a block.
    """
    line = 0
    end = ""
    with _open_text(path, encoding) as file:
        while text := file.read(2**20):
            if "\0" in text:
                raise ValueError(
                    "it contains a NUL character, so it is damaged or in another encoding, which"
                    " you can pass with --encoding, such as utf-16"
                )
            line = 0 if "\n" in text or "\r" in text else line + len(text)
            if line > PARSED_BYTES:
                raise ValueError(f"it has a line of more than {PARSED_BYTES:,} characters")
            budget.charge(len(text))
            end = (end + text)[-FOOTER_CHARACTERS:]
    lines = [line.strip() for line in re.split(r"[\r\n]+", end)]
    return tuple(list(filter(None, lines))[-FOOTER_LINES:])


def _first_lines(file: Iterable[str]) -> list[str]:
    """Return the header, the next line, and enough more lines to detect the format."""
    lines: list[str] = []
    for line in itertools.islice(file, SNIFFED_LINES):
        lines.append(line)
        if len(lines) > 1 and sum(map(len, lines)) > SNIFFED_CHARACTERS:
            break
    return lines


def _split_lines(lines: list[str], separator: str, *, whole: bool) -> list[list[str]]:
    """Return the fields of rows that are not blank; unless the lines are the whole file, drop the
    last row, which may continue.
    """
    reader = csv.reader(lines, delimiter=separator)
    rows = [row for row in reader if "".join(row).strip()]
    return rows if whole or len(rows) < 2 else rows[:-1]


def _separator(lines: list[str], usual: str, *, whole: bool) -> str:
    """Return the usual separator, unless another one is the only one that splits rows evenly."""
    even = [candidate for candidate in SEPARATORS if _splits_evenly(lines, candidate, whole=whole)]
    if usual in even or len(even) != 1:
        return usual
    return even[0]


def _splits_evenly(lines: list[str], separator: str, *, whole: bool) -> bool:
    """Return whether all rows of the table have as many fields as the header, and more than one."""
    try:
        rows = _split_lines(lines, separator, whole=whole) or [[]]
    except csv.Error:  # an unsplit line is longer than a field may be
        return False
    return _is_even(rows[_table_rows(rows)])


def _is_even(rows: list[list[str]]) -> bool:
    """Return whether all rows have as many fields as the first, and more than one."""
    return len(rows[0]) > 1 and {len(row) for row in rows} == {len(rows[0])}


def _table_rows(rows: list[list[str]]) -> slice:
    """Return which rows belong to the table: all except lines of words below it and, if it has a
    header and equally many fields in all rows, lines above it with a single text or at most half as
    many fields.
    """
    widest = max(map(len, rows))
    remarks = [_is_remark(row, widest) for row in rows]
    wide = [i for i, row in enumerate(rows) if len(row) > 1 and not remarks[i]]
    if not wide:
        return slice(0, len(rows))
    # a spreadsheet writes separators after a title, too, and a title may contain separators
    filled = [sum(map(bool, row)) for row in rows]
    titled = (i for i in wide if filled[i] > 1 and 2 * filled[i] > len(rows[wide[-1]]))
    start = next(titled, wide[0])
    end = wide[-1] + 1
    if not all(remarks[end:]):
        end = len(rows)
    first, *others = [name.strip() for name in rows[start]]
    header = [first, *others] if first else others  # an index has no name
    below_title = (
        len(rows[start]) >= TITLED_COLUMNS
        and end - start > 1
        and _is_even(rows[start:end])
        and len({*header, ""}) == len(header) + 1
        and not any(_NUMBER.fullmatch(name) for name in header)
    )
    return slice(start if below_title else 0, end)


def is_total(label: str, *, begins: bool = False) -> bool:
    """Return whether a text is the label of a row of totals, possibly followed by a colon or the
    number of rows, such as "Total (200 rows)"; with `begins`, whether it begins with such a label.
    """
    if not label.lstrip()[:1].isalpha():  # most cells are numbers
        return False
    if begins:
        return re.match(rf"(?:{TOTALS.pattern})\b", label.strip().casefold()) is not None
    return TOTALS.fullmatch(re.split(r"[:(0-9]", label)[0].strip().casefold()) is not None


def _is_remark(fields: list[str], width: int) -> bool:
    """Return whether a line below a table of this width is a remark or contains totals, rather than
    being a truncated row: it has several words and nothing else, or fewer fields than the header
    after a label such as "Total".
    """
    first = fields[0]
    short = len(fields) < width or len(fields) == 1
    if short and not any(fields[1:]) and any(map(str.isalpha, first)) and len(first.split()) > 1:
        return True
    return len(fields) < width and bool(_REMARK.match(first) or is_total(first))


def _count_lines(lines: list[str], separator: str, rows: int) -> int:
    """Return how many lines the first rows span, including blank lines above them."""
    reader = csv.reader(lines, delimiter=separator)
    filled = (row for row in reader if "".join(row).strip())
    for _ in itertools.islice(filled, rows):
        pass
    return reader.line_num


def _height(row: list[str]) -> int:
    """Return how many lines a row spans."""
    return 1 + sum(cell.count("\n") for cell in row)


def _quote_line(line: str) -> str:
    """Return the beginning of a line, quoted."""
    return repr(printable(line.strip(), SHOWN_CHARACTERS))


def _decimal(rows: list[list[str]], separator: str) -> str:
    if separator == ",":
        return "."
    fields = [cell.strip() for row in rows for cell in row]
    commas = [cell for cell in fields if _COMMA.fullmatch(cell)]
    points = [cell for cell in fields if _POINT.fullmatch(cell)]
    decimals = [cell for cell in points if not _GROUPS.fullmatch(cell)]
    # 1.234 may be a decimal number, and 12.345 is one if 6,789 is a thousand
    large = not decimals and any(len(cell) > len("1.234") for cell in points)
    fractions = not all(_THOUSANDS.fullmatch(cell) for cell in commas)
    if any("." in cell for cell in commas) or (large and fractions):
        points = decimals
    return "," if commas and not points else "."


@contextmanager
def _open_text(path: Path, encoding: str) -> Iterator[io.TextIOWrapper]:
    with _open(path) as raw:
        yield io.TextIOWrapper(raw, encoding, newline="")


def _open(path: Path) -> Any:
    """Open a file that may be compressed, according to its suffix."""
    import pyarrow as pa

    ending = path.suffix.lower()
    if ending != ".zip":
        file = pa.PythonFile(path.open("rb"), mode="r")  # pyarrow rejects names that are not UTF-8
        return pa.input_stream(file, compression=COMPRESSED.get(ending))
    with zipfile.ZipFile(path) as archive:  # its member keeps the file open
        names = [name for name in archive.namelist() if not name.endswith("/")]
        if len(names) != 1:
            raise ValueError(f"it contains {len(names)} files; pass an archive that contains one")
        return archive.open(names[0])


def with_points(value: Any) -> Any:
    """Replace a decimal comma with a point in text that is a number; return anything else
    unchanged.

    Examples
    --------
    >>> with_points("1.216,5"), with_points("007"), with_points("a,5")
    ('1216.5', '007', 'a,5')
    """
    if isinstance(value, str) and _COMMA.fullmatch(value.strip()):
        return value.strip().replace(".", "").replace(",", ".")
    return value


def shield(value: Any) -> Any:
    """Put a quote before text that a spreadsheet would run as a formula; return anything else
    unchanged.

    Examples
    --------
    >>> shield("=1+1"), shield("-1.5"), shield("it's")
    ("'=1+1", '-1.5', "it's")
    """
    if isinstance(value, str) and _FORMULA.match(value) and not _SIGNED.fullmatch(value):
        return f"'{value}"
    return value
