"""`tracescore baseline`: what the running service takes for normal."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Annotated, Any

import typer

from tracescore.cli.options import AsJson, ConfigPath, configured, print_json
from tracescore.cli.page_client import PageUrl, ask
from tracescore.errors import UsageError

_LEAST_GIVEN = 0.001
"""The lowest reference that can be written with three digits."""
_HEAD = f"  {'detector':23} {'against':9} {'state':10} {'normal':>7} {'reference':>9}  what is known"


class BaselineAction(StrEnum):
    """What can be done with baselines."""

    show = "show"
    reset = "reset"
    pin = "pin"
    pause = "pause"
    resume = "resume"
    export = "export"


def baseline(
    action: Annotated[
        BaselineAction,
        typer.Argument(
            metavar="show|reset|pin|pause|resume|export",
            help="reset: learn anew; pin: take what is known, or --at, as normal; pause: report nothing of a service "
            "during a planned change and learn anew afterwards; resume: end that now; export: print the references in "
            "force as drift.references.",
        ),
    ],
    *,
    config: ConfigPath = None,
    page: PageUrl = None,
    service: Annotated[str | None, typer.Option(metavar="NAME", help="Only this service.")] = None,
    detector: Annotated[str | None, typer.Option(metavar="NAME", help="Only this detector.")] = None,
    at: Annotated[float | None, typer.Option(metavar="MEAN", help="With pin: the mean to compare with.")] = None,
    until: Annotated[
        str | None, typer.Option(metavar="T", help="With pause: a duration (2h) or a time (2027-01-31T08:00Z).")
    ] = None,
    why: Annotated[str | None, typer.Option(metavar="TEXT", help="With pause: the reason, shown beside it.")] = None,
    json: AsJson = False,
) -> None:
    """Show, forget, fix or pause what the running service has learned as normal."""
    web = configured(config).web
    if action in (BaselineAction.show, BaselineAction.export):
        shown = ask(web, page, "/api/v1/drift")
        if json and action == BaselineAction.show:
            for service_shown in shown["services"]:
                print_json(service_shown | {"threshold_days": shown["threshold_days"]})
            return
        for line in _table(shown) if action == BaselineAction.show else _references(shown, service):
            typer.echo(line)
        return
    if action in (BaselineAction.pause, BaselineAction.resume) and service is None:
        raise UsageError(f"baseline {action.value}: --service NAME expected, as `tracescore baseline show` has it")
    if action == BaselineAction.pause and (until is None or why is None):
        raise UsageError('baseline pause: --until 2h and --why "the reason" expected')
    asked = {"service": service, "detector": detector, "at": at, "until": until, "why": why}
    done = ask(web, page, "/api/v1/baseline", {"action": action.value, **asked})["detectors"]
    typer.echo(f"{action.value}: {done} detectors" + ("" if done else "; see `tracescore baseline show`"))
    if not done:
        raise typer.Exit(1)
    if action == BaselineAction.pin:
        left = _learning(ask(web, page, "/api/v1/drift"), service, detector)
        if left:
            typer.echo(f"still learning, from too few scores: {', '.join(left)}")


def _table(shown: Mapping[str, Any]) -> Iterator[str]:
    """What `baseline show` prints, line by line."""
    from tracescore.drift.words import FORGETS, moment

    if shown["forgot_before"] is not None:
        yield f"Since {moment(shown['forgot_before'])}: {FORGETS}."
    if not shown["services"]:
        yield "No scores yet."
    for service in shown["services"]:
        yield f"{service['service']} ({service['environment']}): {_sentence(service)}"
        yield _HEAD
        for each in service["detectors"]:
            learned, reference = (_number(each[key]) for key in ("baseline_ratio", "reference_ratio"))
            yield (
                f"  {each['detector']:23} {each['against']:9} {each['state']:10} {learned:>7} {reference:>9}  "
                f"{each['says']}"
            )
        if any(each["by_block_advised"] for each in service["detectors"]):
            yield "  Scores swing over the day: set `drift.reference: by_block`, then `tracescore baseline reset`"


def _references(shown: Mapping[str, Any], service: str | None) -> Iterator[str]:
    """The references in force as YAML (a string of JSON is one), the lower of a service in several environments."""
    from json import dumps

    found: dict[str, dict[str, float]] = {}
    for one in shown["services"]:
        for each in one["detectors"] if service in (None, one["service"]) else ():
            reference = each["reference_ratio"]
            if each["against"] == "baseline" and reference is not None and reference >= _LEAST_GIVEN:
                of_service = found.setdefault(one["service"], {})
                of_service[each["detector"]] = min(reference, of_service.get(each["detector"], 1.0))
    for name, given in found.items():
        yield f"{dumps(name)}: {{{', '.join(f'{key}: {value:.3f}' for key, value in given.items())}}}"


def _learning(shown: Mapping[str, Any], service: str | None, detector: str | None) -> list[str]:
    """Detectors, of all services or one and of all names or one, that do not know yet what is normal."""
    every = [each for one in shown["services"] if service in (None, one["service"]) for each in one["detectors"]]
    return sorted({d["detector"] for d in every if d["state"] == "learning" and detector in (None, d["detector"])})


def _sentence(service: Mapping[str, Any]) -> str:
    from tracescore.drift.words import WANTED, moment

    pause = service["pause"]
    if pause and not pause["over"]:
        return f"paused until {moment(pause['until'])} ({pause['why']}); learns anew afterwards."
    said = str(service["advice"])
    if service["verdict"] != "none":
        said = f"{service['pattern']}, {service['verdict']}. {said} {WANTED}"
    return f"{said} Learned anew since {moment(pause['until'])} ({pause['why']})." if pause else said


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"
