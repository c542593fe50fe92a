"""The alerts about changes: what the detectors of tracescore tell, once it is known who moved.

A detector is one process's own and keeps its own promise, so of several replicas the most alarmed one speaks.
"""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.alerts import UNLESS_BROKEN, WATCHED, alert
from deploy.prometheus.estimates import RECENT, Rule


def verdict(values: str) -> str:
    """Services about which one of these verdicts has been reached."""
    return f'max by ({WATCHED}) (last_over_time(tracescore_drift_verdict{{verdict=~"{values}"}}[{RECENT}])) == 1'


def detected(against: str) -> str:
    """Detectors that tell of a change."""
    told = f'last_over_time(tracescore_drift_detected{{against="{against}"}}[{RECENT}])'
    return f"max by ({WATCHED}, detector, measure) ({told}) == 1"


CHANGED = f"""\
{detected("baseline")}
unless on ({WATCHED})
({verdict("judge|pending")})
{UNLESS_BROKEN}"""

MISSED = f"""\
{detected("target")}
unless on ({WATCHED})
({verdict("judge|pending")})
unless on ({WATCHED}, measure)
({detected("baseline")})
unless on ({WATCHED}, measure) ALERTS{{alertname="TracescoreBelowTarget"}}
{UNLESS_BROKEN}"""


def drift_alerts() -> Iterator[Rule]:
    """A fall, a target that is missed, or a judge that moved: never two of them about the same thing."""
    of_service = "{{ $labels.service_name }} {{ $labels.deployment_environment }}"
    told = {"severity": "ticket"}
    yield alert(
        "TracescoreChanged",
        CHANGED,
        wait="1m",
        summary=f"{{{{ $labels.measure }}}} of {of_service} dropped ({{{{ $labels.detector }}}})",
        description=(
            "The detector {{ $labels.detector }} reports a drop below what was normal. The page shows when it began, "
            "which pattern it makes with the other measures, where to look, and the lowest answers. Fixed or "
            "intended? `tracescore baseline` pins or relearns what is normal."
        ),
        filters="measure service",
        **told,
    )
    yield alert(
        "TracescoreTargetMissed",
        MISSED,
        wait="1h",  # what the other alerts show, they show by then
        summary=f"{{{{ $labels.measure }}}} of {of_service} stays below its target",
        description=(
            "The mean of {{ $labels.measure }} stays below drift.targets, perhaps by too little for the interval of "
            "an hour to show. The page shows the lowest answers."
        ),
        filters="measure service",
        **told,
    )
    yield alert(
        "TracescoreJudgeMoved",
        verdict("judge"),
        wait="1m",
        summary=f"judge {{{{ $labels.judge }}}} scores {of_service} lower than it used to",
        description=(
            "The anchors score lower than before, by enough to explain the drop: the judge moved, not the app. Check "
            "its provider, model and parameters, then run `tracescore baseline reset`."
        ),
        filters="service",
        **told,
    )
