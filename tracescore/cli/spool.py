"""`tracescore spool`: what is in the spool, and a copy of it, whether the service runs or not."""

from __future__ import annotations

import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tracescore.cli.options import ConfigPath, configured, print_json
from tracescore.cli.page_client import PageUrl, ask
from tracescore.errors import UsageError

if TYPE_CHECKING:
    from tracescore.config import Config

spool = typer.Typer(help="Look into the spool and copy it while the service runs.", no_args_is_help=True)


@spool.command()
def stats(*, config: ConfigPath = None, page: PageUrl = None) -> None:
    """Print what is in the spool, as JSON."""
    settings = configured(config)
    print_json(_stats_of_file(_path(settings)) if _is_free(settings) else ask(settings.web, page, "/api/v1/spool"))


@spool.command()
def backup(
    to: Annotated[Path, typer.Argument(metavar="FILE", help="A new file, on the machine of the service.")],
    *,
    config: ConfigPath = None,
    page: PageUrl = None,
) -> None:
    """Copy the spool to a file; to restore it, set spool.path to that file. It holds your users' texts."""
    _copy(configured(config), page, to)
    typer.echo(f"{to}: a copy of the spool")


@spool.command()
def export(*, config: ConfigPath = None, page: PageUrl = None) -> None:
    """Print every result in the spool, one JSON line each, with the texts that are still there."""
    from tracescore.net.wire import dumps_utf8
    from tracescore.spool import look

    settings = configured(config)
    beside = _path(settings).parent
    with tempfile.TemporaryDirectory(dir=beside, prefix=".tracescore-export-") as folder:
        copy = Path(folder) / "spool"
        _copy(settings, page, copy)
        with look.reading(copy) as db:
            for result in look.results(db):
                sys.stdout.buffer.write(dumps_utf8(result) + b"\n")


def _path(config: Config) -> Path:
    if config.spool.path is None:
        raise UsageError("spool.path: not set, so there is no spool; name the configuration of the service with -c")
    return Path(config.spool.path)


def _is_free(config: Config) -> bool:
    """Whether no process has the spool open. UsageError when there is none."""
    path = _path(config)
    if not path.exists():
        raise UsageError(f"spool.path: {path} is not there; run this where the service runs")
    try:
        db = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=0)
        try:
            db.execute("SELECT count(*) FROM sqlite_schema")
        finally:
            db.close()
    except sqlite3.OperationalError as error:
        return "locked" not in str(error)
    except sqlite3.Error:
        return True  # damaged: the command that reads it says so
    return True


def _stats_of_file(path: Path) -> dict[str, Any]:
    from tracescore.spool import look

    with look.reading(path) as db:
        return look.stats(db)


def _copy(config: Config, page: str | None, to: Path) -> None:
    """UsageError when that is not possible."""
    if not _is_free(config):
        ask(config.web, page, "/api/v1/spool", {"backup": str(to.absolute())})
        return
    from tracescore.spool import look

    with look.reading(_path(config)) as db:
        made = look.Backup(str(to.absolute()))
        made.copy(db)
    if made.error:
        raise UsageError(made.error)
