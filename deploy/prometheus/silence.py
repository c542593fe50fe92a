"""The alert about a service that stopped sending: silent for longer than it ever is, while everything else works."""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.alerts import BROKEN, alert
from deploy.prometheus.estimates import DAY, DEPLOYMENT, MEASURES, RECENT, SCRAPED, Rule, counter

SERVICE = f"{DEPLOYMENT}, service_name, deployment_environment"
LAST, GAP = "service:tracescore_last_seen:timestamp", "service:tracescore_gap:seconds"
REMEMBERED = "8d"
"""Seven days and one to spare: the last weekend is still known at the end of the next."""
FACTOR, AT_LEAST, FORGOTTEN = 1.5, "seconds(1h)", f"seconds({REMEMBERED})"

BEFORE = f"last_over_time({LAST}[{RECENT}])"

SCORED = "\n  or\n  ".join(
    f"sum by ({SERVICE}) (increase({counter(measure, 'weight')}[{RECENT}])) > 0" for measure in MEASURES
)

SEEN = f"""\
(
  sum by ({SERVICE}) (increase(tracescore_interactions_total{{service_name!=""}}[{RECENT}])) > 0
  or
  {SCORED}
)"""
"""Interactions were received, whatever became of them; or scored, by a version that counts them without a service."""

BLIND = f"""\
(
  {BEFORE} and on ({DEPLOYMENT}) {BROKEN}{{cause!="failing"}}
  or
  {BEFORE} unless on ({DEPLOYMENT}) {SCRAPED}
)"""

SILENT = f"""\
time() - {LAST} > {AT_LEAST}
and time() - {LAST} > {FACTOR} * max_over_time({GAP}[{REMEMBERED}])
and last_over_time({LAST}[{RECENT}] offset {DAY})"""


def silences() -> Iterator[Rule]:
    """When each service was last seen, and the gaps between: nobody is silent while nobody can see.

    A gap is recorded when it ends, so it comes before the time that ends it. A service is forgotten after a while: it
    was switched off on purpose.
    """
    yield {"record": GAP, "expr": f"(time() - {BEFORE})\nand on ({SERVICE})\n{SEEN}"}
    yield {
        "record": LAST,
        "expr": f"({SEEN} or {BLIND}) * 0 + time()\nor\n{BEFORE} > time() - {FORGOTTEN}",
    }


def silence_alerts() -> Iterator[Rule]:
    """One alert per service and environment."""
    yield alert(
        "TracescoreServiceStopped",
        SILENT,
        wait="10m",
        severity="ticket",
        summary="{{ $labels.service_name }} {{ $labels.deployment_environment }} stopped sending",
        description=(
            f"It has been silent for {{{{ $value | humanizeDuration }}}}, over {FACTOR} times its longest gap of the "
            "last seven days. Does it run, is its instrumentation on, and do its spans reach tracescore?"
        ),
        filters="service",
    )
