"""Whether the running release of a service is worse than the one before it, and each release with its interval."""

from __future__ import annotations

from pathlib import Path

from grafana_foundation_sdk.builders import dashboard, timeseries

from deploy.grafana.panels import APP, banded, board, by_source, chart, chosen, row
from deploy.prometheus.releases import CHANGE, COUNT, LOWER, MEAN, UPPER

FILE = Path(__file__).with_name("releases.json")
NAMES = ("service_name", "deployment_environment", "judge", "measure", "service_version")
WHOLE = f'{APP}, measure="$measure", traffic="adjacent"'
BAND = "The band is the 95 % interval at each moment alone."


def of(release: str, metric: str) -> str:
    """An estimate of one of the two releases that were chosen."""
    return f'sum without (service_version) ({metric}{{{WHOLE}, service_version="${release}"}})'


def build() -> dashboard.Dashboard:
    """The dashboard."""
    picks = [chosen(name, MEAN, NAMES[:place]) for place, name in enumerate(NAMES)]
    where = ", ".join(f'{name}="${name}"' for name in NAMES[:-1])
    before = chosen("before", MEAN).query(f"label_values({MEAN}{{{where}}}, service_version)")
    made = board(
        "releases",
        "releases",
        "Did the last release make it worse? Over all replicas and the last seven days.",
        [*picks, before],
    )
    app = f'{APP}, measure="$measure"'
    row(made, "The running release less the one before", _change(app))
    row(made, "Any two releases", _any_two(), _means(), _counts())
    return made


def _change(app: str) -> timeseries.Panel:
    queries = {"{{service_version}} less {{before}} {{traffic}} {{context_source}}": f"{CHANGE}:mean{{{app}}}"}
    for name, widest in (("lower", "min"), ("upper", "max")):
        queries[f"{name} {{{{context_source}}}}"] = f"{widest} by (context_source) ({CHANGE}:{name}{{{app}}})"
    panel = chart(
        "Change",
        "Below 0 with the whole band: worse. `side_by_side`: by the hours that both ran in; `adjacent`: one after "
        f"the other, so that what else has changed meanwhile counts too. {BAND}",
        queries,
    )
    return banded(panel, *by_source("lower", "upper")).min(-1).decimals(3).span(24)


def _any_two() -> timeseries.Panel:
    mean = f"({of('service_version', MEAN)} - {of('before', MEAN)})"
    down = _root(("service_version", MEAN, LOWER), ("before", UPPER, MEAN))
    up = _root(("service_version", UPPER, MEAN), ("before", MEAN, LOWER))
    panel = chart(
        "$service_version less $before",
        f"By all the hours that each of them has. `tracescore compare` takes those of both where it can. {BAND}",
        {
            "difference {{context_source}}": mean,
            "lower {{context_source}}": f"{mean} - {down}",
            "upper {{context_source}}": f"{mean} + {up}",
        },
    )
    return banded(panel, *by_source("lower", "upper")).min(-1).decimals(3)


def _means() -> timeseries.Panel:
    queries = {"{{service_version}} {{context_source}}": f"{MEAN}{{{WHOLE}}}"}
    bands: list[tuple[str, str]] = []
    for word, release in (("release", "service_version"), ("before", "before")):
        for edge, metric in (("lower", LOWER), ("upper", UPPER)):
            queries[f"{edge}, {word} {{{{context_source}}}}"] = of(release, metric)
        bands += by_source(f"lower, {word}", f"upper, {word}")
    panel = chart("Mean by release", f"Of seven days, with bands for the two that were chosen. {BAND}", queries)
    return banded(panel, *bands).decimals(3).max(1)


def _counts() -> timeseries.Panel:
    return chart(
        "Scores by release",
        "As many equally weighted scores would say as much; a conversation counts once.",
        {"{{service_version}} {{context_source}}": f"{COUNT}{{{WHOLE}}}"},
    )


def _root(*sides: tuple[str, str, str]) -> str:
    squares = " + ".join(f"({of(release, one)} - {of(release, other)}) ^ 2" for release, one, other in sides)
    return f"sqrt({squares})"
