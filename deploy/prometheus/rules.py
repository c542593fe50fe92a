"""Writes tracescore.rules.yaml: `python -m deploy.prometheus.rules`.

The same five sums are needed for three measures over three windows, so the file is written by code; what is
committed is what the code writes (a test compares). Why sums: the gauges that tracescore exposes are the view of
one process, and an average of averages is wrong as soon as two replicas scored differently many interactions.

The interval, with n the effective count, m the mean, V the variance, z = 1.96:

    upper = (n m + 1) / (n + 1) + z sqrt(n V + n (1 - m)^2 / (n + 1)) / (n + 1)
    lower =     n m   / (n + 1) - z sqrt(n V + n      m^2  / (n + 1)) / (n + 1)      both clipped to [0, 1]

This is the normal interval after adding one score of 1 (for the upper limit) or of 0 (for the lower one): the
pseudo-observation of Gaffke's interval, which needs the single scores and is what one process shows in its gauges.
Why not the plain normal interval: it has no width at all when all scores are equal. In simulations it held the mean
in 94.9 % of the runs or more where the plain one went down to 63 % (tests/benchmarks/interval_from_sums.py prints
them). Limits of it: below an effective count of 20 nothing is promised; it holds at each moment, not over all moments
together; and scores of one conversation are taken as independent.

Two things about counters: a series that is new (a new release, a new service) is born with its first score, so what
it counted before it was first scraped is missing, from all the sums alike; and `increase` extrapolates to the edges of
the window, again for all sums of a series nearly alike. Means and intervals stand; counts are not exact.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from tracescore.config import Drift
from tracescore.model import LIVE_MEASURES

FILE = Path(__file__).with_name("tracescore.rules.yaml")
WINDOWS = ("1h", "6h", "1d")
SUMS = (
    "weight",
    "weighted_score",
    "weight_squared",
    "weight_squared_score",
    "weight_squared_score_squared",
    "below_target_weight",
)
PAGE = "http://127.0.0.1:9465"

DEPLOYMENT = "namespace, job"
"""What tells one tracescore deployment from another; its replicas share both."""
IDENTITY = f"{DEPLOYMENT}, service_name, deployment_environment, judge, context_source"

HEADER = f"""\
# Recording and alert rules of tracescore, for Prometheus 2.42 or newer (keep_firing_for).
# Written by `python -m deploy.prometheus.rules`; to change it for good, change rules.py beside it.
#
# To adapt it by hand:
#   targets   the three rules measure:tracescore_target:ratio, as in `drift.targets` of your tracescore.yaml
#   links     replace {PAGE} by the address at which people reach your tracescore page
#   route     alerts carry the labels severity, measure, service_name and deployment_environment
#
# Estimates carry the labels measure and window. Labels that come from the target (instance, pod, ...) are summed
# away, but for namespace and job: they tell one tracescore deployment from another.
"""

Rule = dict[str, Any]


def sums() -> Iterator[Rule]:
    """Per measure and window, the sums over all replicas and releases."""
    for measure in LIVE_MEASURES:
        for window in WINDOWS:
            for name in SUMS:
                yield {
                    "record": f"service:tracescore_{name}:increase",
                    "expr": f"sum by ({IDENTITY}) (increase(tracescore_{measure}_{name}_total[{window}]))",
                    "labels": {"measure": measure, "window": window},
                }


def estimates() -> list[Rule]:
    """Mean, effective count and interval of every measure and window, from the sums alone."""
    mean, variance, count = (f"service:tracescore_score:{name}" for name in ("mean", "variance", "effective_count"))
    total, squares = "service:tracescore_weight:increase", "service:tracescore_weight_squared:increase"
    expressions = {
        mean: f"service:tracescore_weighted_score:increase / ({total} > 0)",
        count: f"{total} ^ 2 / ({squares} > 0)",
        # Rounding, and counters that a scrape caught between two updates, can bring it just below 0.
        variance: f"""\
clamp_min(
  (
      service:tracescore_weight_squared_score_squared:increase
    - 2 * {mean} * service:tracescore_weight_squared_score:increase
    + {mean} ^ 2 * {squares}
  ) / ({squares} > 0),
  0
)""",
        "service:tracescore_score:lower": limit(f"{count} * {mean}", "-", f"{mean} ^ 2"),
        "service:tracescore_score:upper": limit(f"({count} * {mean} + 1)", "+", f"(1 - {mean}) ^ 2"),
        "service:tracescore_below_target:ratio": f"service:tracescore_below_target_weight:increase / ({total} > 0)",
    }
    return [{"record": name, "expr": expression} for name, expression in expressions.items()]


def limit(known: str, sign: str, distance: str) -> str:
    """One limit of the interval; `distance` is the squared distance of the mean from the pseudo-observation."""
    count = "service:tracescore_score:effective_count"
    return f"""\
clamp(
    {known} / ({count} + 1)
  {sign} 1.96 * sqrt(
      {count} * service:tracescore_score:variance
    + {count} * {distance} / ({count} + 1)
  ) / ({count} + 1),
  0, 1
)"""


def quality_limit() -> Rule:
    """Of the windows, the shortest that holds enough scores speaks: thin traffic is judged by a longer one."""
    upper, count = "service:tracescore_score:upper", "service:tracescore_score:effective_count"
    windows = "\n  or ignoring (window)\n".join(
        f'  ({upper}{{window="{window}"}} and {count}{{window="{window}"}} >= {Drift().min_count})'
        for window in WINDOWS
    )
    return {"record": "service:tracescore_quality:upper", "expr": f"max without (window) (\n{windows}\n)"}


def targets() -> Iterator[Rule]:
    """What the mean of each measure should not fall below."""
    for measure in LIVE_MEASURES:
        yield {
            "record": "measure:tracescore_target:ratio",
            "expr": f"vector({Drift().targets[measure]})",
            "labels": {"measure": measure},
        }


JUDGE_DOWN = f"max by ({DEPLOYMENT}, judge) (tracescore_judge_ready) == 0"

STOPPED = f"""\
sum by ({DEPLOYMENT}, measure) (increase(tracescore_evaluations_started_total[30m] offset 10m)) > 0
unless
sum by ({DEPLOYMENT}, measure) (increase(tracescore_evaluations_total[40m])) > 0"""

FAILING = f"""\
sum by ({DEPLOYMENT}, measure) (
  increase(tracescore_evaluations_total{{reason=~"judge_.+|embedder_failed|internal_error|queue_full"}}[30m])
)
/
(sum by ({DEPLOYMENT}, measure) (increase(tracescore_evaluations_total{{outcome!="skipped"}}[30m])) >= 20)
> 0.25"""

BELOW_TARGET = f"""\
service:tracescore_quality:upper < on (measure) group_left () measure:tracescore_target:ratio
unless on ({DEPLOYMENT}, judge) job:tracescore_measurement:broken{{cause="judge_not_ready"}}
unless on ({DEPLOYMENT}, measure) job:tracescore_measurement:broken{{cause=~"stopped|failing"}}"""


def broken() -> Iterator[Rule]:
    """Why scores can't be trusted at present: what the quality alert looks at before it speaks."""
    for cause, expression in {"judge_not_ready": JUDGE_DOWN, "stopped": STOPPED, "failing": FAILING}.items():
        yield {"record": "job:tracescore_measurement:broken", "expr": expression, "labels": {"cause": cause}}


def alert(name: str, expression: str, wait: str, severity: str, summary: str, description: str, **more: str) -> Rule:
    """An alert rule; `more` are further keys of the rule, such as keep_firing_for."""
    return {
        "alert": name,
        "expr": expression,
        "for": wait,
        **more,
        "labels": {"severity": severity},
        "annotations": {"summary": summary, "description": description},
    }


def quality_alert() -> Rule:
    """One rule for all measures, which is one alert per measure: they are never added up."""
    rule = alert(
        "TracescoreBelowTarget",
        BELOW_TARGET,
        "10m",
        "ticket",
        "{{ $labels.measure }} of {{ $labels.service_name }} {{ $labels.deployment_environment }} is below its target",
        "The mean of {{ $labels.measure }} lies below its target: the upper limit of its 95 % interval is "
        f'{{{{ $value | printf "%.2f" }}}}, over the shortest of {", ".join(WINDOWS)} with {Drift().min_count} scores.',
        # A night with too few scores says nothing; without this it would read as recovered.
        keep_firing_for="1h",
    )
    rule["annotations"]["page"] = (
        f"{PAGE}/?measure={{{{ $labels.measure }}}}&service={{{{ $labels.service_name | urlquery }}}}"
    )
    return rule


def measurement_alerts() -> Iterator[Rule]:
    """The other kind of trouble: not the answers are bad, but nobody measures them."""
    causes = {
        # Louder than the silence above: one replica without its judge is worth a word, all of them silence.
        "judge_not_ready": (
            f"avg by ({DEPLOYMENT}, judge) (tracescore_judge_ready) < 1",
            "judge {{ $labels.judge }} does not answer",
            (
                "Only {{ $value | humanizePercentage }} of the replicas reach judge {{ $labels.judge }}; the others "
                "score nothing. The log of tracescore says why (stage=judge)."
            ),
        ),
        "stopped": (
            'job:tracescore_measurement:broken{cause="stopped"}',
            "{{ $labels.measure }}: interactions arrive but none is evaluated",
            (
                "Evaluations of {{ $labels.measure }} are started and none has ended for 40 minutes. Compare "
                "tracescore_evaluations_pending and the log of the judge."
            ),
        ),
        "failing": (
            'job:tracescore_measurement:broken{cause="failing"}',
            "{{ $labels.measure }}: {{ $value | humanizePercentage }} of the evaluations fail",
            (
                "What fails is seldom like what succeeds, so the scores that are left are not to be trusted. "
                "tracescore_evaluations_total by reason says why they fail."
            ),
        ),
    }
    for cause, (expression, summary, description) in causes.items():
        rule = alert("TracescoreMeasurementBroken", expression, "5m", "page", summary, description)
        rule["labels"]["cause"] = cause
        rule["annotations"]["page"] = f"{PAGE}/"
        yield rule


def upkeep_alerts() -> Iterator[Rule]:
    """What makes scores late, few or coarse, while those that come are right."""
    uncaught = 'tracescore_interactions_total{state="content_not_captured"}'
    for name, expression, summary, description in (
        (
            # The most common reason for no scores on the first day.
            "TracescoreContentNotRecorded",
            (
                f"sum by ({DEPLOYMENT}) (increase({uncaught}[1h]))\n/\n"
                f"(sum by ({DEPLOYMENT}) (increase(tracescore_interactions_total[1h])) >= 20)\n> 0.5"
            ),
            "{{ $value | humanizePercentage }} of the interactions come without their text",
            (
                "The instrumentation of the app does not record questions and answers, so they can't be scored. The "
                "log of tracescore names the switch of the instrumentation that records them (stage=interactions)."
            ),
        ),
        (
            "TracescoreLagging",
            f"max by ({DEPLOYMENT}, measure) (tracescore_evaluations_oldest_pending_seconds) > 900",
            "{{ $labels.measure }} is {{ $value | humanizeDuration }} behind the traffic",
            (
                "The judge is slower than the traffic. Lower sampling.ratio, raise the judge's max_concurrency, or add "
                "replicas."
            ),
        ),
        (
            "TracescoreRefusing",
            f'sum by ({DEPLOYMENT}) (increase(tracescore_receiver_refused_requests_total{{reason="full"}}[15m])) > 0',
            "tracescore holds all the spans it may and asks senders to come back later",
            (
                "Scores come late, and spans are lost where a sender gives up. Raise assembly.max_held, lower "
                "sampling.ratio, or add replicas."
            ),
        ),
        (
            "TracescoreSeriesCapped",
            f"sum by ({DEPLOYMENT}, group) (increase(tracescore_exporters_folded_scores_total[1h])) > 0",
            "scores of {{ $labels.group }} are counted under `other`",
            (
                "There are more label sets than exporters.prometheus.max_series. Often a request id has got into the "
                "name or the version of a service."
            ),
        ),
    ):
        rule = alert(name, expression, "10m", "ticket", summary, description)
        rule["annotations"]["page"] = f"{PAGE}/"
        yield rule


def groups() -> dict[str, Any]:
    """The whole file. Rules of a group are evaluated in order, each seeing the ones before it."""
    return {
        "groups": [
            {
                "name": "tracescore-estimates",
                "interval": "1m",
                "rules": [*sums(), *estimates(), quality_limit(), *targets()],
            },
            {"name": "tracescore-measurement", "interval": "1m", "rules": [*broken(), *measurement_alerts()]},
            {"name": "tracescore-quality", "interval": "1m", "rules": [quality_alert()]},
            {"name": "tracescore-upkeep", "interval": "1m", "rules": [*upkeep_alerts()]},
        ]
    }


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as blocks, as a person would."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def render() -> str:
    """The text of tracescore.rules.yaml."""
    return HEADER + yaml.dump(groups(), Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)


if __name__ == "__main__":
    FILE.write_text(render())
