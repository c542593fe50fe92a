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
    action: Annotated[
        AnchorsAction, typer.Argument(metavar="make", help="make: draw them from the latest interactions.")
    ],
    *,
    config: ConfigPath = None,
    page: PageUrl = None,
    count: Annotated[int, typer.Option(metavar="N", min=2, max=1000, help="How many.")] = 100,
) -> None:
    """Draw candidates for anchors from the running service: read them, then name the file as drift.anchors."""
    del action
    rows = ask(configured(config).web, page, f"/api/v1/anchors?count={count}")
    for row in rows:
        print_json(row)
    if len(rows) < count:
        sys.stderr.write(f"tracescore: drew {len(rows)} of {count}; the service keeps no more (web.keep)\n")
