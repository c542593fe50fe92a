"""`tracescore labels`: what people have said of answers."""

from tracescore.cli.options import ConfigPath, configured, print_json
from tracescore.cli.page_client import PageUrl, ask


def labels(*, config: ConfigPath = None, page: PageUrl = None) -> None:
    """Print the labels that people gave on the page of the running service, for `tracescore calibrate`."""
    for row in ask(configured(config).web, page, "/api/v1/labels"):
        print_json(row)
