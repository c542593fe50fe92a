"""`tracescore calibrate`: how far the judge is from people."""

from pathlib import Path
from typing import Annotated

import typer

from tracescore.cli.options import lines_of
from tracescore.errors import UsageError


def calibrate(
    file: Annotated[Path, typer.Argument(metavar="LABELS.jsonl", help="What `tracescore labels` prints.")],
) -> None:
    """Tells how far the judge is from people, and the means that people would give."""
    from tracescore.calibration.label_file import read_labels, report

    lines = lines_of(file)
    try:
        samples = read_labels(lines)
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    for line in report(samples):
        typer.echo(line)
