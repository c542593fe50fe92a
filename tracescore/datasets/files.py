"""A file of rows -> the rows as plain values, each with its number; what is wrong with one does not stop the rest.

JSONL, JSON (a list of rows, an object that holds one, or a column each), CSV (comma, semicolon or tab) and Parquet.
"""

from __future__ import annotations

import codecs
import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tracescore.datasets.keys import LISTS, find
from tracescore.datasets.printed import unprinted
from tracescore.errors import MissingExtra, UsageError

Row = tuple[int, object]
"""The line a row begins on (in JSON and Parquet: which row it is, from 1), and what stands there."""
Problems = list[tuple[int, str]]
"""What is wrong, by line."""

_NOTHING = frozenset({"nan", "NaN", "<NA>", "NaT"})
"""Cells that pandas and numpy write where there is nothing."""
SUFFIXES = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet")


_OTHER = {
    b"PK\x03\x04": "is a spreadsheet or a zip file; save it as CSV (a spreadsheet: 'CSV UTF-8')",
    b"\x1f\x8b": "is compressed; unpack it first: gunzip FILE",
    b"PAR1": "is Parquet; give it the ending .parquet",
    b"ARROW1": "is an Arrow file; save it as Parquet",
    b"SQLite format 3": "is a SQLite database; export the table as CSV or JSON lines",
}
"""How files begin that hold rows in a format which is not read, and what to do with each."""


def read(content: bytes, suffix: str, problems: Problems) -> Iterator[Row]:
    """The rows of a file with that ending; one that is not of `SUFFIXES` is read as JSONL. MissingExtra, UsageError."""
    return _unprinted(_rows(content, suffix.lower(), problems), problems)


def _unprinted(rows: Iterator[Row], problems: Problems) -> Iterator[Row]:
    for number, row in rows:
        try:
            yield number, unprinted(row) if isinstance(row, Mapping) else row
        except UsageError as error:
            problems.append((number, str(error)))


def _rows(content: bytes, suffix: str, problems: Problems) -> Iterator[Row]:
    if suffix == ".parquet":
        return _parquet_rows(content)
    text = text_of(content)
    if suffix in (".csv", ".tsv"):
        return _csv_rows(text, problems)
    return _document_rows(text, problems) if suffix == ".json" else _json_rows(text, problems)


def content_of(file: Path) -> bytes:
    """The bytes of a file that somebody named; UsageError when it cannot be read."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(f"{file}: cannot read it: {error.strerror}") from None


def text_of(content: bytes) -> str:
    """UTF-8, or UTF-16 with its byte order mark; UsageError for anything else: which it is would be a guess."""
    for begins, said in _OTHER.items():
        if content.startswith(begins):
            raise UsageError(said)
    wide = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    if b"\0" in content and not wide:
        raise UsageError("holds NUL bytes, as UTF-16 without its mark does; save it as UTF-8")
    try:
        return content.decode("utf-16" if wide else "utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        where = "" if wide else f", from line {line}"
        raise UsageError(
            f"is not UTF-8 text{where}; save it as UTF-8 (a spreadsheet: 'CSV UTF-8'; "
            "else: iconv -f cp1252 -t utf-8 FILE)"
        ) from None


# ---------------------------------------------------------------- JSON


def _json_rows(text: str, problems: Problems) -> Iterator[Row]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        twice: list[str] = []
        try:
            row = _parsed(line, twice)
        except (ValueError, RecursionError) as error:
            problems.append((number, f"is not JSON: {getattr(error, 'msg', 'nested too deep')}"))
            continue
        problems += [(number, f"{name}: set twice in one item") for name in twice]
        yield number, row


def _parsed(text: str, twice: list[str]) -> Any:
    """A JSON value; names that an object in it has twice go to `twice`. ValueError, RecursionError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        twice.extend(repeated([name for name, _ in pairs]))
        return dict(pairs)

    return json.loads(text, object_pairs_hook=once)


def _document_rows(text: str, problems: Problems) -> Iterator[Row]:
    """A list of rows, an object that holds one, or a list per column; or JSONL, which is often called .json as well."""
    twice: list[str] = []
    try:
        found = _parsed(text, twice)
    except json.JSONDecodeError as error:
        if error.msg == "Extra data":
            yield from _json_rows(text, problems)
        else:
            problems.append((error.lineno, f"is not JSON: {error.msg}"))
        return
    except (ValueError, RecursionError):
        problems.append((1, "is not JSON: nested too deep"))
        return
    problems += [(1, f"{name}: set twice in one item") for name in twice]
    rows = rows_within(found)
    if rows is None:
        problems.append((1, "a list of rows expected, or an object that holds one"))
    yield from enumerate(rows or (), start=1)


def rows_within(found: Any) -> Sequence[Any] | None:
    """A list of rows, an object that is one or holds a list of them, or a list per column; None for anything else."""
    if isinstance(found, list):
        return found
    if not isinstance(found, Mapping):
        return None
    question = find(found, "question")
    if question is not None and (
        isinstance(question.value, str) or question.key.path in LISTS or "." in question.key.path
    ):
        return [found]
    columns = [list(column.values()) if isinstance(column, dict) else column for column in found.values()]
    lists = [column for column in columns if isinstance(column, list)]
    of_rows = [each for each in found.values() if isinstance(each, list) and each and isinstance(each[0], dict)]
    if len(of_rows) == 1 and len(lists) == 1:
        return of_rows[0]
    if lists and len(lists) == len(found) and len(set(map(len, lists))) == 1:
        return [dict(zip(found, values, strict=True)) for values in zip(*lists, strict=True)]
    return None


# ---------------------------------------------------------------- CSV


def _csv_rows(text: str, problems: Problems) -> Iterator[Row]:
    """A header, and a row per case. A cell with several values is a list in JSON or Python; a blank one is None."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=_delimiter(text), strict=True)
    header: list[str] | None = None
    line = 1
    try:
        for cells in reader:
            began, line = line, reader.line_num + 1
            if not any(cell.strip() for cell in cells):
                continue
            if header is None:
                header = [cell.strip() for cell in cells]
                problems += [(began, f"{name}: two columns of that name") for name in repeated(header)]
                continue
            if len(cells) > len(header):
                problems.append((began, f"{len(header)} cells expected, as in the header; got {len(cells)}"))
                continue
            yield began, {name: _cell(name, cell) for name, cell in zip(header, cells, strict=False) if name}
    except csv.Error as error:
        problems.append((line, f"is not CSV: {error}"))


def _delimiter(text: str) -> str:
    """Comma, semicolon or tab: that which makes the most columns of the header."""
    head = next((line for line in text.splitlines() if line.strip()), "")
    return max(",;\t", key=lambda each: len(next(csv.reader([head], delimiter=each), [])))


def repeated(names: list[str]) -> list[str]:
    """The names that stand there more than once."""
    return [name for name in dict.fromkeys(names) if names.count(name) > 1]


def _cell(name: str, cell: str) -> object:
    if not cell.strip() or cell.strip() in _NOTHING:
        return None
    return [tag.strip() for tag in cell.split(";")] if name == "tags" and cell.lstrip()[0] != "[" else cell


# ---------------------------------------------------------------- Parquet


def _parquet_rows(content: bytes) -> Iterator[Row]:
    try:
        from pyarrow import ArrowException, parquet  # noqa: PLC0415 - large, and for these files only
    except ImportError:
        raise MissingExtra("reading Parquet needs pyarrow: pip install pyarrow, or save the rows as JSONL") from None
    try:
        rows = parquet.read_table(io.BytesIO(content)).to_pylist()
    except (ArrowException, OSError) as error:
        raise UsageError(f"is not Parquet: {str(error).splitlines()[0]}") from None
    return iter(list(enumerate(rows, start=1)))
