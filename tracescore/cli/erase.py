"""`tracescore erase`: forgets a user, a trace or a conversation, and says where it cannot reach."""

from typing import Annotated

import typer

from tracescore.cli.options import ConfigPath, configured
from tracescore.cli.page_client import PageUrl, ask
from tracescore.errors import UsageError


def erase(
    *,
    user: Annotated[str | None, typer.Option(metavar="ID", help="As `retain.user` names them in their spans.")] = None,
    trace: Annotated[str | None, typer.Option(metavar="ID", help="A trace: 32 hex digits.")] = None,
    conversation: Annotated[str | None, typer.Option(metavar="ID", help="All traces of a conversation.")] = None,
    config: ConfigPath = None,
    page: PageUrl = None,
) -> None:
    """Erase what the running service keeps of a user, a conversation or a trace: spool, page, labels, gold store."""
    given = {name: each for name, each in (("user", user), ("trace", trace), ("conversation", conversation)) if each}
    if len(given) != 1:
        raise UsageError("erase: one of --user, --trace and --conversation expected")
    receipt = ask(configured(config).web, page, "/api/v1/erase", given)
    typer.echo(f"erased: {receipt['traces']} traces of this {receipt['erased']}")
    for name, count in receipt["gone"].items():
        typer.echo(f"  {name}: {count}")
    typer.echo(f"stays: {receipt['stays']}")
    typer.echo("not reached; erase there, too:")
    for name in receipt["not_reached"]:
        typer.echo(f"  {name}")
