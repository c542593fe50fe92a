"""A look into a spool beside its owner: nothing is written, and what is no spool is said so."""

from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from tracescore.drift.watch import DriftWatch
from tracescore.errors import UsageError
from tracescore.spool.peek import totals

DATA = Path(__file__).parent / "data"


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """The files of version 0.1.0."""
    with zipfile.ZipFile(DATA / "released-0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    return tmp_path


def test_what_the_first_release_left_is_read_and_stays_as_it_was(left: Path) -> None:
    before = {file: file.read_bytes() for file in left.iterdir()}
    state = DriftWatch.codec.load(totals(left / "spool")["drift"])
    assert [each.population for each in state.family.watched] == [("shop", "test")]
    assert {file: file.read_bytes() for file in left.iterdir()} == before


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("nowhere", "the file of a spool expected"),
        ("", "the file of a spool expected"),
        ("gold", "is of another version or program"),
        ("gold.jsonl", "cannot be read (DatabaseError)"),
    ],
)
def test_what_is_no_spool_is_refused_in_one_line(left: Path, name: str, why: str) -> None:
    with pytest.raises(UsageError) as refused:
        totals(left / name)
    assert why in str(refused.value)
    assert str(refused.value).startswith("--spool: ")
    assert "\n" not in str(refused.value)
