"""`tracescore compare`: whether one release of a service is worse than another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlencode

import typer

from tracescore.cli.options import ConfigPath, configured, print_json
from tracescore.cli.page_client import PageUrl, ask
from tracescore.errors import UsageError

if TYPE_CHECKING:
    from tracescore.config import WebConfig

WEEK = 7 * 24
_TRAFFIC = {"side_by_side": "side by side", "adjacent": "one after the other"}


def compare(
    before: Annotated[str | None, typer.Argument(metavar="[A]", help="The earlier release.")] = None,
    release: Annotated[str | None, typer.Argument(metavar="[B]", help="The release to compare with it.")] = None,
    *,
    service: Annotated[str, typer.Option(metavar="NAME", help="The service.")],
    environment: Annotated[
        str | None, typer.Option(metavar="NAME", help="Its environment, if it runs in several.")
    ] = None,
    hours: Annotated[int, typer.Option(metavar="N", min=1, max=WEEK, help="Compare the last N hours.")] = WEEK,
    prometheus: Annotated[
        str | None, typer.Option(metavar="URL", help="Ask this Prometheus, whose recording rules cover all replicas.")
    ] = None,
    config: ConfigPath = None,
    page: PageUrl = None,
    json: Annotated[bool, typer.Option("--json", help="Print one line of JSON.")] = False,
) -> None:
    """Compare release B of a service with release A; by default the running release with the one before it.

    Exit status: 0 if no measure of B is worse, 1 if one is, 2 if there is nothing to compare.
    """
    if (before is None) != (release is None):
        raise UsageError(f"compare: two releases expected, or none; got {before!r} alone")
    if prometheus is not None:
        from tracescore.cli.compare_prometheus import compared

        found = compared(
            prometheus, service=service, environment=environment, before=before, release=release, hours=hours
        )
    else:
        asked = {"service": service, "environment": environment, "before": before, "release": release, "hours": hours}
        found = _of_process(configured(config).web, page, asked)
    if json:
        print_json(found)
    else:
        for line in _lines(found):
            typer.echo(line)
    verdicts = {each["verdict"] for each in found["measures"]}
    if not verdicts - {"too few scores"}:
        raise UsageError(f"{service}: nothing to compare yet; {_why(found)}")
    if "worse" in verdicts:
        raise typer.Exit(1)


def _of_process(web: WebConfig, page: str | None, asked: Mapping[str, Any]) -> dict[str, Any]:
    query = urlencode({name: value for name, value in asked.items() if value is not None})
    found: dict[str, Any] = ask(web, page, f"/api/v1/releases?{query}")
    return found


def _why(found: Mapping[str, Any]) -> str:
    if found["before"] is None:
        return "there is one release so far" if found["release"] else "no release has been seen"
    return f"20 scores of {found['before']} and of {found['release']} by the same judge are needed"


def _lines(found: Mapping[str, Any]) -> Iterator[str]:
    """What is printed, line by line."""
    if found["before"] is None:
        return
    judge = f", judge {found['judge']}" if found["judge"] else ""
    yield (
        f"{found['service']} ({found['environment']}): {found['release']} less {found['before']}, "
        f"of {found['of']}{judge}, last {found['hours']} hours"
    )
    for each in found["measures"]:
        yield f"  {_name(each):26} {_figures(each)}"
    yield "Each interval (95 %) holds for its measure and at this moment alone."


def _name(row: Mapping[str, Any]) -> str:
    source = " (prompt)" if row["context_source"] == "prompt" else ""
    return f"{row['measure'].replace('_', ' ')}{source}"


def _figures(row: Mapping[str, Any]) -> str:
    if row["difference"] is None:
        return "too few scores: 20 of each release are needed"
    new, old = (f"{row[of]['mean']:.3f} of {row[of]['scores']:,.0f}" for of in ("of_release", "of_before"))
    return (
        f"{row['difference']:+.3f} ({row['lower']:+.3f} to {row['upper']:+.3f})  {row['verdict']:18}  "
        f"{new} scores against {old}, {_TRAFFIC[row['traffic']]}, {_moment(row['since'])} to {_moment(row['until'])}"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")
