"""Rows, from a file or from memory, as cases: told apart, and found again in an earlier output."""

from __future__ import annotations

import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import orjson

from tracescore.datasets import files
from tracescore.datasets.case import Case, conversation
from tracescore.datasets.keys import KEYS, find, known, unclear
from tracescore.datasets.printed import unprinted
from tracescore.errors import UsageError
from tracescore.model import Interaction

_ADDED = ("scores", "judge", "usage")
_ABSENT = ("NAType", "NaTType")
"""What pandas holds where there is nothing, beside NaN."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A row as given, as a case and as an interaction; equal `key`s are equal rows, but for what a run adds to them."""

    given: dict[str, Any]
    case: Case
    interaction: Interaction
    key: bytes


# ---------------------------------------------------------------- files


def read_rows(file: Path, refuse: Callable[[UsageError], None]) -> list[ScoreRow]:
    """The rows of a file in their order; a broken one goes to `refuse` and does not stop the rest.

    UsageError when the file cannot be read, or when no row has a question: what else it may hold, it is another file.
    """
    problems: files.Problems = []
    try:
        raw = list(files.read(files.content_of(file), file.suffix, problems))
    except UsageError as error:
        raise type(error)(str(error) if str(file) in str(error) else f"{file}: {error}") from None
    broken = {number for number, _ in problems}
    rows: list[ScoreRow] = []
    for number, given in raw:
        if number not in broken:
            try:
                rows.append(_row(given, number))
            except UsageError as error:
                problems.append((number, str(error)))
    for number, what in sorted(problems):
        refuse(UsageError(f"line {number}: {what}"))
    if not problems or rows:
        _check_texts([row.given for row in rows], rows, f"{file}: ")
    return rows


def _check_texts(given: Sequence[Mapping[str, Any]], rows: Sequence[ScoreRow], where: str) -> None:
    """Raises UsageError when no row has a question, or none anything to judge beside it."""
    keys = ", ".join(list(dict.fromkeys(key for row in given for key in row))[:12])
    got = f"the keys {keys}" if keys else "no rows"
    if not any(row.interaction.question is not None for row in rows):
        raise UsageError(f"{where}no row has a question; {known('question')} expected; got {got}")
    if not any(row.interaction.answer is not None or row.interaction.contexts for row in rows):
        raise UsageError(f"{where}no row has an answer; {known('answer')} expected; got {got}")


def already_scored(out: Path, judge: str) -> Counter[bytes]:
    """How often each row stands in an earlier output; a last line that was cut off is taken away.

    UsageError when it cannot be read, or when another judge has scored it.
    """
    try:
        content = out.read_bytes() if out.exists() else b""
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            out.write_bytes(whole)
    except OSError as error:
        raise UsageError(f"{out}: cannot be read and written: {error.strerror}") from None
    done: Counter[bytes] = Counter()
    for number, line in enumerate(whole.splitlines(), start=1):
        try:
            row = orjson.loads(line)
            other = row["judge"]
        except (orjson.JSONDecodeError, KeyError, TypeError):
            raise UsageError(f"{out}: line {number}: not a row of `tracescore score`; choose another file") from None
        if other != judge:
            raise UsageError(f"{out}: line {number}: scored by judge {other}, not by {judge}; choose another file")
        done[_key(row)] += 1
    return done


def dumped(row: Mapping[str, Any], option: int = 0) -> bytes:
    """A row as JSON; what JSON has no value for (a decimal number, a set) as text."""
    return orjson.dumps(row, default=str, option=option | orjson.OPT_NON_STR_KEYS | orjson.OPT_SERIALIZE_NUMPY)


def _key(row: Mapping[str, Any]) -> bytes:
    given = {name: value for name, value in row.items() if name not in _ADDED}
    return hashlib.sha256(dumped(given, orjson.OPT_SORT_KEYS)).digest()


# ---------------------------------------------------------------- memory


def rows_of(given: Any) -> list[ScoreRow]:
    """The rows of whatever holds some: cases, dicts, a frame of pandas or polars, a dataset, or the path of a file.

    Which of them it is, its methods say, so that none of these packages is needed. UsageError for the first row that
    is wrong, and when none has a question.
    """
    if isinstance(given, str | os.PathLike):
        refused: list[UsageError] = []
        rows = read_rows(Path(given), refused.append)
        if refused:
            raise UsageError(f"{given}: {refused[0]}")
        return rows
    rows = []
    for number, each in enumerate(_plain_rows(given), start=1):
        try:
            rows.append(_row(unprinted(each) if isinstance(each, Mapping) else each, number))
        except UsageError as error:
            raise UsageError(f"row {number}: {error}") from None
    _check_texts([row.given for row in rows], rows, "")
    return rows


def _plain_rows(given: Any) -> Iterable[Any]:
    if hasattr(given, "iloc"):  # pandas
        return _of_pandas(given)
    for name in ("to_dicts", "to_pylist", "to_list"):  # polars; pyarrow; a dataset of RAGAS or of Hugging Face
        if hasattr(given, name) and not isinstance(given, Sequence):
            return list(getattr(given, name)())
    if isinstance(given, Case):
        return [given]
    if isinstance(given, Mapping) and find(given, "question") is not None:
        within = files.rows_within(given)
        if within is not None:
            return within
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        got = f"a mapping of {', '.join(map(str, given))}; choose one" if isinstance(given, Mapping) else type(given)
        raise UsageError(f"rows expected: a list of cases or dicts, a frame, a dataset or a path; got {got}")
    return given


def _of_pandas(given: Any) -> list[Any]:
    """The rows of a frame, or the values of a series."""
    if given.ndim == 1:
        return list(given)
    twice = files.repeated(list(map(str, given.columns)))
    if twice:
        raise UsageError(f"{twice[0]}: two columns of that name; keep one")
    return list(given.to_dict("records"))


# ---------------------------------------------------------------- one row


def _row(given: object, number: int) -> ScoreRow:
    """A row; UsageError says what is wrong with it."""
    if isinstance(given, Case):
        case = given
        row = {
            name: value for name, value in asdict(case).items() if name != "metadata" and value not in (None, (), "")
        }
        row |= case.metadata
    elif isinstance(given, Mapping):
        row = {str(key): _plain(value) for key, value in given.items()}
        case = case_of(row)
    else:
        raise UsageError(f"an object with question and answer expected; got {type(given).__name__}")
    try:
        key = _key(row)
    except TypeError as error:  # half of a surrogate pair, or a number beyond 64 bits
        raise UsageError(f"cannot be written as JSON: {error}") from None
    return ScoreRow(row, case, case.interaction(number), key)


def case_of(row: Mapping[str, Any]) -> Case:
    """A row by the keys of whichever tool wrote it (keys.py); UsageError says what is wrong with it."""
    for what in unclear(row):
        raise UsageError(what)
    fields = {field: found for field in KEYS if (found := find(row, field)) is not None}
    values = {field: found.value for field, found in fields.items()}
    if isinstance(values.get("question"), list | tuple):
        question, history, answer = conversation(values["question"])
        values = {"history": history, "answer": answer} | values | {"question": question}
    if isinstance(values.get("reference"), list | tuple) and len(values["reference"]) == 1:
        (values["reference"],) = values["reference"]
    taken = {found.key.path.partition(".")[0] for found in fields.values()}
    given_id = row.get("id")
    return Case(
        **{"question": None, **values},
        id="" if given_id is None else str(given_id),
        metadata={key: value for key, value in row.items() if key not in {*taken, *_ADDED, "id"}},
    )


def _plain(value: Any) -> Any:
    """A value without what frames wrap it in: an array as a list, and None for what pandas holds in its place."""
    if hasattr(value, "tolist"):  # an array, or a number of numpy's
        value = value.tolist()
    if (isinstance(value, float) and math.isnan(value)) or type(value).__name__ in _ABSENT:
        return None
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return {key: _plain(each) for key, each in value.items()} if isinstance(value, dict) else value
