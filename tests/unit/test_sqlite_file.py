"""The files of spool, gold runs and labels: each opens its own, whoever made it, and nothing else."""

from __future__ import annotations

import sqlite3
import stat
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tracescore.calibration.store import LabelStore
from tracescore.errors import UsageError
from tracescore.gold.store import Store
from tracescore.spool.file import File

OPENERS: dict[str, Callable[[Path], object]] = {
    "spool.path": lambda path: File(path, 2**30).close(),
    "gold.store": Store,
    "drift.labels.path": lambda path: LabelStore(str(path)).close(),
}
every_file = pytest.mark.parametrize("setting", OPENERS)


def run(path: Path, statements: str) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statements)


@every_file
def test_a_file_is_for_its_owner_alone_also_one_that_was_there(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "file"
    for _ in range(2):
        OPENERS[setting](path)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o644)


FOREIGN = {
    "tables of another program": "CREATE TABLE theirs (a)",
    "a log beside the file": "PRAGMA journal_mode = WAL; CREATE TABLE theirs (a)",
    "the same version number": "CREATE TABLE theirs (a); PRAGMA user_version = 1",
    "the mark of another program": "CREATE TABLE theirs (a); PRAGMA application_id = 5; PRAGMA user_version = 1",
    "a mark and nothing else": "PRAGMA application_id = 5",
    "a version to come": "CREATE TABLE pieces (a); CREATE TABLE runs (a); PRAGMA user_version = 2",
}


@every_file
@pytest.mark.parametrize("statements", FOREIGN.values(), ids=FOREIGN.keys())
def test_a_database_of_something_else_is_refused_and_not_touched(tmp_path: Path, setting: str, statements: str) -> None:
    path = tmp_path / "theirs"
    run(path, statements)
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(UsageError) as refused:
        OPENERS[setting](path)
    assert str(refused.value) == f"{setting}: {path} is of another version or program; name another file"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before, 0o644)
    assert [file.name for file in tmp_path.iterdir()] == ["theirs"]


@every_file
def test_each_of_our_files_is_something_else_to_the_others(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "file"
    OPENERS[setting](path)
    for other in OPENERS.keys() - {setting}:
        with pytest.raises(UsageError, match=f"^{other}: .* is of another version or program"):
            OPENERS[other](path)


@every_file
def test_a_file_from_before_there_were_marks_opens_and_gets_its_mark(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "file"
    OPENERS[setting](path)
    with closing(sqlite3.connect(path)) as db:
        mark = db.execute("PRAGMA application_id").fetchone()
        db.execute("PRAGMA application_id = 0")
    for other in OPENERS.keys() - {setting}:
        with pytest.raises(UsageError):
            OPENERS[other](path)
    OPENERS[setting](path)
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("PRAGMA application_id").fetchone() == mark != (0,)


@pytest.mark.parametrize("setting", ["gold.store", "drift.labels.path"])
def test_what_is_no_database_is_refused_and_not_touched(tmp_path: Path, setting: str) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Nothing to do with scores. " * 400)
    path.chmod(0o644)
    before = path.read_bytes()
    with pytest.raises(UsageError, match=f"^{setting}: "):
        OPENERS[setting](path)
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (before, 0o644)


def test_what_is_no_database_is_moved_aside_from_the_spool_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("Nothing to do with scores. " * 400)
    path.chmod(0o644)
    before = path.read_bytes()
    OPENERS["spool.path"](path)
    aside = tmp_path / "notes.txt.damaged"
    assert (aside.read_bytes(), stat.S_IMODE(aside.stat().st_mode)) == (before, 0o644)
