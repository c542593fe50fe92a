"""`tracescore anchors`: fixed items that tell the judge from the product."""

import sys
from enum import StrEnum
from typing import Annotated

import typer

from tracescore.cli.options import ConfigPath, configured, print_json
from tracescore.cli.page_client import PageUrl, ask


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
    del action
    rows = ask(configured(config).web, page, f"/api/anchors?count={count}")
    for row in rows:
        print_json(row)
    if len(rows) < count:
        sys.stderr.write(f"tracescore: {len(rows)} of {count}: no more that are whole and differ are kept (web.keep)\n")
