"""The command line: which commands there are, and the exit status. What a command does stands in its own file.

Exit status: 0 fine, 1 a check failed, 2 wrong use or configuration. Errors are one line that says what to do.
"""

import io
import sys
from typing import Annotated, NoReturn

import typer

from tracescore import __version__
from tracescore.cli.agree import agree
from tracescore.cli.anchors import anchors
from tracescore.cli.baseline import baseline
from tracescore.cli.calibrate import calibrate
from tracescore.cli.check import check
from tracescore.cli.compare import compare
from tracescore.cli.demo import demo
from tracescore.cli.doctor import doctor
from tracescore.cli.erase import erase
from tracescore.cli.gold import gold
from tracescore.cli.inspect import inspect
from tracescore.cli.labels import labels
from tracescore.cli.running import error_of_ours
from tracescore.cli.score import score
from tracescore.cli.serve import serve
from tracescore.cli.spool import spool
from tracescore.errors import ConfigError, TracescoreError

app = typer.Typer(
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Score live RAG answers: traces in, Prometheus metrics, a page and scored traces out.",
)
for command in (
    serve,
    check,
    doctor,
    inspect,
    score,
    agree,
    compare,
    baseline,
    anchors,
    labels,
    calibrate,
    erase,
    demo,
):  # in the order of the help
    app.command()(command)
app.add_typer(gold, name="gold")
app.add_typer(spool, name="spool")


@app.callback(invoke_without_command=True)
def root(*, version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    """Options of the program itself."""
    if version:
        typer.echo(__version__)
        raise typer.Exit


def main() -> NoReturn:
    """Runs the command line and ends the process."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without a character is no reason to fail
    try:
        app()
    except (TracescoreError, BaseExceptionGroup) as error:
        ours = error_of_ours(error)
        if ours is None:
            raise
        prefix = "" if isinstance(ours, ConfigError) else "tracescore: "
        sys.stderr.write(f"{prefix}{ours}\n")
        sys.exit(2)
    sys.exit(0)


if __name__ == "__main__":
    main()
