"""`tracescore calibrate`: how far the judge is from people."""

from pathlib import Path
from typing import Annotated

import typer

from tracescore.cli.options import AsJson, lines_of, print_json
from tracescore.errors import UsageError


def calibrate(
    file: Annotated[Path, typer.Argument(metavar="LABELS.jsonl", help="What `tracescore labels` prints.")],
    *,
    json: AsJson = False,
) -> None:
    """Compare the judge with people's labels, and correct its means by them."""
    from tracescore.calibration.label_file import as_row, calibrated, read_labels, report

    lines = lines_of(file)
    try:
        found = calibrated(read_labels(lines))
    except UsageError as error:
        raise UsageError(f"{file}: {error}") from None
    for group, of_group in found if json else ():
        print_json(as_row(group, of_group))
    for line in () if json else report(found):
        typer.echo(line)
