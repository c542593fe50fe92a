"""`tracescore baseline`: what the running service takes for normal."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import Annotated, Any

import typer

from tracescore.cli.options import AsJson, ConfigPath, configured, print_json
from tracescore.cli.page_client import PageUrl, ask

_HEAD = (
    f"  {'detector':23} {'against':9} {'state':10} {'baseline':>8} {'reference':>9} {'scores':>8}  "
    f"{'release change':22} evidence"
)


class BaselineAction(StrEnum):
    """What can be done with baselines."""

    show = "show"
    reset = "reset"
    pin = "pin"


def baseline(
    action: Annotated[
        BaselineAction,
        typer.Argument(
            metavar="show|reset|pin",
            help="reset: learn anew; pin: take what is known, or --at, as normal.",
        ),
    ],
    *,
    config: ConfigPath = None,
    page: PageUrl = None,
    service: Annotated[str | None, typer.Option(metavar="NAME", help="Only this service.")] = None,
    detector: Annotated[str | None, typer.Option(metavar="NAME", help="Only this detector.")] = None,
    at: Annotated[float | None, typer.Option(metavar="MEAN", help="With pin: the mean to compare with.")] = None,
    json: AsJson = False,
) -> None:
    """Show, forget or fix what the running service has learned as normal."""
    web = configured(config).web
    if action == BaselineAction.show:
        shown = ask(web, page, "/api/baseline")
        for service_shown in shown["services"] if json else ():
            print_json(service_shown | {"threshold_days": shown["threshold_days"]})
        for line in () if json else _table(shown):
            typer.echo(line)
        return
    body = {"action": action.value, "service": service, "detector": detector, "at": at}
    done = ask(web, page, "/api/baseline", body)["detectors"]
    typer.echo(f"{action.value}: {done} detectors" + ("" if done else "; see `tracescore baseline show`"))
    if not done:
        raise typer.Exit(1)
    if action == BaselineAction.pin:
        left = _learning(ask(web, page, "/api/baseline"), service, detector)
        if left:
            typer.echo(f"still learning, from too few scores: {', '.join(left)}")


def _table(shown: Mapping[str, Any]) -> Iterator[str]:
    """What `baseline show` prints, line by line."""
    threshold = shown["threshold_days"]
    if not shown["services"]:
        yield "No scores yet."
    for service in shown["services"]:
        yield f"{service['service']} ({service['environment']}): {_sentence(service)}"
        yield _HEAD
        for each in service["detectors"]:
            learned, reference = (_number(each[key]) for key in ("baseline_ratio", "reference_ratio"))
            evidence = f"{100 * min(1, each['evidence_days'] / threshold):.1f} %"
            yield (
                f"  {each['detector']:23} {each['against']:9} {each['state']:10} {learned:>8} {reference:>9} "
                f"{each['scores']:8,}  {_change(each):22} {evidence:>7}{_since(each)}"
            )
        if any(each["by_block_advised"] for each in service["detectors"]):
            yield "  Scores swing over the day: set `drift.reference: by_block`, then `tracescore baseline reset`"


def _learning(shown: Mapping[str, Any], service: str | None, detector: str | None) -> list[str]:
    """Detectors, of all services or one and of all names or one, that do not know yet what is normal."""
    every = [each for one in shown["services"] if service in (None, one["service"]) for each in one["detectors"]]
    return sorted({d["detector"] for d in every if d["state"] == "learning" and detector in (None, d["detector"])})


def _sentence(service: Mapping[str, Any]) -> str:
    if service["verdict"] == "none":
        return str(service["advice"])
    return f"{service['pattern']}, {service['verdict']}. {service['advice']}"


def _since(detector: Mapping[str, Any]) -> str:
    if detector["learned_at"] is not None:
        return f", learned by {_moment(detector['learned_at'])} at the earliest"
    if detector["change_timestamp_seconds"] is None:
        return ""
    return (
        f", dropping since about {_moment(detector['change_timestamp_seconds'])} ({detector['change_scores']:,} scores)"
    )


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M UTC")


def _change(detector: Mapping[str, Any]) -> str:
    """The newest release less the one before."""
    if detector["release_change"] is None:
        return "-"
    mean, lower, upper = detector["release_change"]
    return f"{mean:+.3f} ({lower:+.3f}, {upper:+.3f})"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
