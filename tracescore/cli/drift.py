"""The commands about changes: what is normal, who moved, and what people say."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Optional

import typer

from tracescore.cli.options import ConfigPath, configured, lines_of, print_json
from tracescore.errors import UsageError

PageUrl = Annotated[
    Optional[str],  # noqa: UP045 - typer reads the annotation at run time
    typer.Option(metavar="URL", help="Where the page of the service is, when the configuration does not tell."),
]


class BaselineAction(StrEnum):
    """What can be done with baselines."""

    show = "show"
    reset = "reset"
    pin = "pin"


def baseline(
    action: Annotated[
        BaselineAction,
        typer.Argument(help="show; reset: learn anew what is normal; pin: what is known, or --at, stands from now on."),
    ],
    *,
    config: ConfigPath = None,
    page: PageUrl = None,
    service: Annotated[Optional[str], typer.Option(help="Only this service.")] = None,  # noqa: UP045
    detector: Annotated[Optional[str], typer.Option(help="Only this detector.")] = None,  # noqa: UP045
    at: Annotated[Optional[float], typer.Option(help="With pin: the reference.")] = None,  # noqa: UP045
) -> None:
    """Shows, forgets or fixes what the running service takes for normal."""
    from tracescore.cli import page_client

    web = configured(config).web
    if action == BaselineAction.show:
        for line in page_client.table(page_client.ask(web, page, "/api/baseline")):
            typer.echo(line)
        return
    body = {"action": action.value, "service": service, "detector": detector, "at": at}
    done = page_client.ask(web, page, "/api/baseline", body)["detectors"]
    typer.echo(f"{action.value}: {done} detectors" + ("" if done else "; see `tracescore baseline show`"))
    if not done:
        raise typer.Exit(1)
    if action == BaselineAction.pin:
        left = page_client.learning(page_client.ask(web, page, "/api/baseline"), service, detector)
        if left:
            typer.echo(f"still learning, from too few scores: {', '.join(left)}")


class AnchorsAction(StrEnum):
    """What can be done with anchors."""

    make = "make"


def anchors(
    action: Annotated[AnchorsAction, typer.Argument(help="make: draw candidates from what was scored lately.")],
    *,
    config: ConfigPath = None,
    page: PageUrl = None,
    count: Annotated[int, typer.Option(metavar="N", min=2, max=1000, help="How many.")] = 100,
) -> None:
    """Prints interactions of the running service as JSON lines, to be read by you and named as drift.anchors."""
    from tracescore.cli import page_client

    del action
    rows = page_client.ask(configured(config).web, page, f"/api/anchors?count={count}")
    for row in rows:
        print_json(row)
    if len(rows) < count:
        sys.stderr.write(f"tracescore: {len(rows)} of {count}: no more that are whole and differ are kept (web.keep)\n")


def labels(*, config: ConfigPath = None, page: PageUrl = None) -> None:
    """Prints what people have labelled on the page of the running service, as the LABELS.jsonl of `calibrate`."""
    from tracescore.cli import page_client

    for row in page_client.ask(configured(config).web, page, "/api/labels"):
        print_json(row)


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


COMMANDS = (baseline, anchors, labels, calibrate)
"""In the order of the help."""
