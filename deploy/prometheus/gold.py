"""The alert rules of the gold set: correctness fell, no good run when there should have been one, runs that fail."""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.alerts import PAGE, UNLESS_OUTAGE, alert
from deploy.prometheus.estimates import DEPLOYMENT, Rule
from tracescore.gold.compare import P_LIMIT
from tracescore.gold.results import GOLD_MEASURES

RUN = f"{DEPLOYMENT}, gold_set, service_name, service_version, judge"

# The factual part tells, because similarity lifts a wrong answer; correctness where the method knows no such part. Each
# measure of the user's own tells for itself.
CHANGE = f"""\
(
  (
    min by ({RUN}, measure) (tracescore_gold_change_ratio{{measure="factual"}})
    or ignoring (measure)
    min by ({RUN}, measure) (tracescore_gold_change_ratio{{measure="answer_correctness"}})
  )
  or
  min by ({RUN}, measure) (tracescore_gold_change_ratio{{measure!~"{"|".join(GOLD_MEASURES)}"}})
)"""

FELL = f"""\
{CHANGE}
< on ({DEPLOYMENT}, gold_set) group_left ()
-max by ({DEPLOYMENT}, gold_set) (tracescore_gold_tolerance_ratio)
and on ({RUN}, measure)
max by ({RUN}, measure) (tracescore_gold_change_p_value) < {P_LIMIT}"""

FAILING = f"max by ({DEPLOYMENT}, gold_set) (tracescore_gold_last_run_ok) == 0"

OVERDUE = f"""\
time() - max by ({DEPLOYMENT}, gold_set) (tracescore_gold_next_run_timestamp_seconds) > seconds(1h)
unless on ({DEPLOYMENT}, gold_set)
max by ({DEPLOYMENT}, gold_set) (tracescore_gold_running) == 1
unless on ({DEPLOYMENT}, gold_set)
{FAILING}"""


def gold_alerts() -> Iterator[Rule]:
    """A run that fails is told as that, and not as one that is overdue as well."""
    for name, expression, summary, description in (
        (
            "TracescoreGoldFell",
            FELL,
            "{{ $labels.service_name }} {{ $labels.service_version }} answers gold set {{ $labels.gold_set }} worse",
            (
                "{{ $labels.measure }} of release {{ $labels.service_version }} changed by "
                '{{ $value | printf "%.2f" }} against the pinned reference, over the same questions, and chance is no '
                "explanation. The page names the items. Where correctness fell and tracescore_gold_faithfulness_ratio "
                "stayed, the app repeats wrong or stale passages; where it fell too, it makes things up. If this is "
                "how it is meant to be: tracescore gold pin."
            ),
        ),
        (
            "TracescoreGoldFailing",
            f"{FAILING}\n{UNLESS_OUTAGE}",
            "the last run of gold set {{ $labels.gold_set }} failed",
            (
                "The app did not answer, or the judge could not score the answers: correctness is not being measured. "
                "The page and the log of tracescore (stage=gold) say why."
            ),
        ),
        (
            "TracescoreGoldOverdue",
            f"{OVERDUE}\n{UNLESS_OUTAGE}",
            "gold set {{ $labels.gold_set }} is overdue by {{ $value | humanizeDuration }}",
            (
                "No good run has begun since the schedule asked for one. Does the process with the section `gold` run, "
                "and is its judge ready?"
            ),
        ),
    ):
        rule = alert(name, expression, "5m", "ticket", summary, description)
        rule["annotations"]["page"] = f"{PAGE}/gold"
        yield rule
