"""The alert rules. Two kinds of trouble that must not be mixed: answers are bad, and nobody measures them.

Where measuring itself is in trouble, the first kind keeps silent, inside its own expressions, so that nobody's
Alertmanager has to be changed for it.
"""

from __future__ import annotations

from collections.abc import Iterator

from deploy.prometheus.estimates import (
    BELOW,
    BELOW_LOWER,
    DAY,
    DEPLOYMENT,
    IDENTITY,
    MEAN,
    MIN_COUNT,
    RECENT,
    TARGET,
    UPPER,
    VARIANCE,
    WEEK,
    WINDOWS,
    Rule,
    enough,
)

PAGE = "http://127.0.0.1:9465"
RUNBOOK = "docs/alerts.md"
"""Where people read what each alert means and what to do about it: beside the rules, until somebody names a URL."""
KEEP = "15m"
"""How long an alert goes on firing after its condition has ended, so that it does not flap."""

SETTINGS = {
    "tracescore:below_target_budget:ratio": 0.1,
    "tracescore:judge_cost_limit:day": 25,
    "tracescore:judge_tokens_limit:day": 50_000_000,
}
"""Recorded constants: what only the operator can know, each in one place."""
BUDGET, COST_LIMIT, TOKENS_LIMIT = SETTINGS

BURNS = ((5, "6h", "1h"), (2, DAY, "6h"), (1, WEEK, DAY))
"""How many times the budget is used up, over which window, and over which shorter one it still goes on.

The pairs that are usual for services start at 14 times the budget. With a budget of 10 % nothing can burn faster than
10 times, and the five minutes that go with them hold too few scores to say anything.
"""
BURNING = "service:tracescore_below_target:burning"
PARTS = 1.5
"""From so many parts on, a score is taken as discrete.

An answer to a question of two parts of which a share m is right scores 0, 1/2 or 1: below a target over 1/2 lie
1 - m^2 of them (19 % at a mean of .9), which is no trouble of its own. The variance of a score of k such parts is
m (1 - m) / k; that of a score of one part, 0 or 1, keeps to the budget.
"""
BROKEN = "job:tracescore_measurement:broken"
WATCHED = f"{DEPLOYMENT}, service_name, deployment_environment, judge"
"""What a detector is about."""


def settings() -> Iterator[Rule]:
    """What an operator sets."""
    for name, value in SETTINGS.items():
        yield {"record": name, "expr": f"vector({value})"}


# ---------------------------------------------------------------- measuring is in trouble

JUDGE_READY = f"last_over_time(tracescore_judge_ready[{RECENT}])"
JUDGE_DOWN = f"max by ({DEPLOYMENT}, judge) ({JUDGE_READY}) == 0"

STOPPED = f"""\
sum by ({DEPLOYMENT}, measure) (increase(tracescore_evaluations_started_total[30m] offset 10m)) > 0
unless
sum by ({DEPLOYMENT}, measure) (increase(tracescore_evaluations_total[40m])) > 0"""

FAILING = f"""\
sum by ({DEPLOYMENT}, measure, service_name) (
  increase(tracescore_evaluations_total{{reason=~"judge_.+|embedder_failed|internal_error|queue_full"}}[30m])
)
/
(sum by ({DEPLOYMENT}, measure, service_name) (increase(tracescore_evaluations_total{{outcome!="skipped"}}[30m])) >= 20)
> 0.25"""

GONE = f"""\
group by ({DEPLOYMENT}) (last_over_time(tracescore_evaluations_pending[6h]))
unless
group by ({DEPLOYMENT}) (tracescore_evaluations_pending)"""

UNLESS_OUTAGE = f"""\
unless on ({DEPLOYMENT}) last_over_time({BROKEN}{{cause="judge_not_ready"}}[40m])"""
"""While the judge is down evaluations wait or fail, which goes on to count for a while: its outage says it all."""

UNLESS_BROKEN = f"""\
unless on ({DEPLOYMENT}, judge) last_over_time({BROKEN}{{cause="judge_not_ready"}}[{RECENT}])
unless on ({DEPLOYMENT}, measure) last_over_time({BROKEN}{{cause="stopped"}}[{RECENT}])
unless on ({DEPLOYMENT}, measure, service_name) last_over_time({BROKEN}{{cause="failing"}}[{RECENT}])"""
"""A judge or a measure that is out silences what depends on it; evaluations that fail, those of one service."""


def broken() -> Iterator[Rule]:
    """Why scores can't be trusted at present: what the quality alerts look at before they speak."""
    causes = {"judge_not_ready": JUDGE_DOWN, "stopped": STOPPED, "failing": FAILING, "gone": GONE}
    for cause, expression in causes.items():
        yield {"record": BROKEN, "expr": expression, "labels": {"cause": cause}}


def alert(
    name: str,
    expression: str,
    wait: str,
    severity: str,
    summary: str,
    description: str,
    filters: str = "",
) -> Rule:
    """An alert rule. `filters` names the labels by which the linked page is filtered."""
    chosen = {"measure": "{{ $labels.measure }}", "service": "{{ $labels.service_name | urlquery }}"}
    query = "?" + "&".join(f"{key}={chosen[key]}" for key in filters.split()) if filters else ""
    return {
        "alert": name,
        "expr": expression,
        "for": wait,
        "keep_firing_for": KEEP,
        "labels": {"severity": severity},
        "annotations": {
            "summary": summary,
            "description": description,
            "page": f"{PAGE}/{query}",
            "runbook_url": f"{RUNBOOK}#{name.lower()}",
        },
    }


def measurement_alerts() -> Iterator[Rule]:
    """Nobody measures, or nobody can."""
    causes = {
        # Louder than the silence above: one replica without its judge is worth a word, all of them silence.
        "judge_not_ready": (
            f"avg by ({DEPLOYMENT}, judge) ({JUDGE_READY}) < 1",
            "judge {{ $labels.judge }} does not answer",
            (
                "Only {{ $value | humanizePercentage }} of the replicas reach judge {{ $labels.judge }}; the others "
                "score nothing. tracescore's log says why (stage=judge)."
            ),
            "",
        ),
        "stopped": (
            f'{BROKEN}{{cause="stopped"}}\n{UNLESS_OUTAGE}',
            "{{ $labels.measure }}: interactions arrive, but none is evaluated",
            (
                "Evaluations of {{ $labels.measure }} start, and none has ended for 40 minutes. See "
                "tracescore_evaluations_pending and the judge's lines in the log."
            ),
            "measure",
        ),
        "failing": (
            f'{BROKEN}{{cause="failing"}}\n{UNLESS_OUTAGE}',
            (
                "{{ $labels.measure }}: {{ $value | humanizePercentage }} of the evaluations "
                "{{ with $labels.service_name }}of {{ . }} {{ end }}fail"
            ),
            (
                "What fails is rarely like what succeeds, so do not trust the scores that are left. "
                "tracescore_evaluations_total shows the reasons."
            ),
            "measure service",
        ),
        "gone": (
            f'{BROKEN}{{cause="gone"}}',
            "Prometheus scrapes no replica of tracescore",
            (
                "Prometheus scraped {{ $labels.job }} {{ $labels.namespace }} within the last 6 hours and no longer "
                "does: it is down or out of reach. After 6 hours the rules take it as removed on purpose."
            ),
            "",
        ),
    }
    for cause, (expression, summary, description, filters) in causes.items():
        rule = alert("TracescoreMeasurementBroken", expression, "5m", "page", summary, description, filters)
        rule["labels"]["cause"] = cause
        yield rule


# ---------------------------------------------------------------- answers are bad


def burning() -> Iterator[Rule]:
    """Where bad scores use up their budget, at several speeds.

    The long window has to be sure of it (the lower limit of its interval), the short one only says that it goes on.
    """
    two_parts = f"""\
(
  {BELOW_LOWER} <= 1 - {MEAN} ^ 2
  and {VARIANCE} <= {MEAN} * (1 - {MEAN}) / {PARTS}
  and on ({DEPLOYMENT}, measure, service_name) {TARGET} > 0.5
)"""
    for times, long, short in BURNS:
        speed = f"{times} * scalar({BUDGET})"
        yield {
            "record": BURNING,
            "expr": (
                f"{enough(BELOW_LOWER, long)} > {speed}\nand ignoring (window)\n{enough(BELOW, short)} > {speed}\n"
                f"unless\n{two_parts}"
            ),
            "labels": {"window": long},
        }


BELOW_TARGET = f"""\
{UPPER}
unless on ({WATCHED}, measure) ALERTS{{alertname="TracescoreChanged", alertstate="firing"}}
{UNLESS_BROKEN}"""

TOLD_TODAY = f'last_over_time(ALERTS{{{{alertname="{{}}", alertstate="firing"}}}}[{DAY}])'
"""An alert that fires or did so lately: low scores that it told of stay in the windows of the budget for a day."""

TOO_MANY = f"""\
max without (window) ({BURNING})
unless on ({IDENTITY}, measure) ALERTS{{alertname="TracescoreBelowTarget"}}
unless on ({IDENTITY}, measure) {TOLD_TODAY.format("TracescoreBelowTarget")}
unless on ({WATCHED}, measure) {TOLD_TODAY.format("TracescoreChanged")}
unless on ({WATCHED}) {TOLD_TODAY.format('TracescoreChanged", detector="answered')}
{UNLESS_BROKEN}"""


def quality_alerts() -> Iterator[Rule]:
    """One rule for all measures, which is one alert per measure: they are never added up.

    A fall that a detector tells says more than a mean below its target, and either says more than too many scores
    below it; so do evasions, which score 0 in every measure.
    """
    what = "{{ $labels.measure }} of {{ $labels.service_name }} {{ $labels.deployment_environment }}"
    told = {"severity": "ticket", "filters": "measure service"}
    yield alert(
        "TracescoreBelowTarget",
        BELOW_TARGET,
        wait="10m",
        summary=f"{what} is below its target",
        description=(
            "The mean of {{ $labels.measure }} lies below its target: the upper limit of its 95 % interval is "
            f'{{{{ $value | printf "%.2f" }}}}, over one of {", ".join(WINDOWS)} with {MIN_COUNT} scores.'
        ),
        **told,
    )
    yield alert(
        "TracescoreTooManyBelowTarget",
        TOO_MANY,
        wait="1h",  # where the mean is below the target as well, that shows by then
        summary=f"{what}: more answers below the target than the budget allows",
        description=(
            "At least {{ $value | humanizePercentage }} of the answers score below the target of "
            f"{{{{ $labels.measure }}}}. That is more than {BUDGET} allows: "
            + ", or ".join(f"{times} times over {long} and {short}" for times, long, short in BURNS)
            + "."
        ),
        **told,
    )


# ---------------------------------------------------------------- scores are late, few, coarse or dear


def upkeep_alerts() -> Iterator[Rule]:
    """What makes scores late, few, coarse or dear, while those that come are right."""
    uncaught = 'tracescore_interactions_total{state="content_not_captured"}'
    for name, expression, summary, description, filters in (
        (
            # The most common reason for no scores on the first day.
            "TracescoreContentNotRecorded",
            (
                f"sum by ({DEPLOYMENT}, service_name) (increase({uncaught}[1h]))\n/\n"
                f"(sum by ({DEPLOYMENT}, service_name) (increase(tracescore_interactions_total[1h])) >= 20)\n> 0.5"
            ),
            (
                "{{ $value | humanizePercentage }} of the interactions "
                "{{ with $labels.service_name }}of {{ . }} {{ end }}come without their text"
            ),
            (
                "The app's instrumentation does not record questions and answers, so tracescore cannot score them. "
                "Its log names the setting that records them (stage=interactions)."
            ),
            "",
        ),
        (
            "TracescoreNothingRead",
            (
                f"sum by ({DEPLOYMENT}) (increase(tracescore_interactions_genai_spans_total[1h])) >= 20\nunless\n"
                f"sum by ({DEPLOYMENT}) (increase(tracescore_interactions_total[1h])) > 0"
            ),
            "{{ $value | humanize }} GenAI spans arrived in an hour, and tracescore read no interaction from them",
            (
                "tracescore finds no question and answer in these traces. Run `tracescore inspect --explain` on a "
                "saved OTLP request to see what it reads from which span; add keys of your own under `interactions`."
            ),
            "",
        ),
        (
            "TracescoreLagging",
            (
                f"max by ({DEPLOYMENT}, measure) (tracescore_evaluations_oldest_pending_seconds) > seconds(15m)\n"
                f"{UNLESS_OUTAGE}"
            ),
            "{{ $labels.measure }} is {{ $value | humanizeDuration }} behind the traffic",
            (
                "The judge is slower than the traffic. Lower sampling.ratio, raise the judge's max_concurrency, or add "
                "replicas."
            ),
            "measure",
        ),
        (
            "TracescoreRefusing",
            f'sum by ({DEPLOYMENT}) (increase(tracescore_receiver_refused_requests_total{{reason="full"}}[15m])) > 0',
            "tracescore is full and asks senders to retry",
            (
                "Scores are late, and spans are lost where a sender gives up. Raise assembly.max_held, lower "
                "sampling.ratio, or add replicas."
            ),
            "",
        ),
        (
            "TracescoreSeriesCapped",
            f"sum by ({DEPLOYMENT}, group) (increase(tracescore_exporters_folded_scores_total[1h])) > 0",
            "tracescore counts scores of {{ $labels.group }} under `other`",
            (
                "There are more label sets than exporters.prometheus.max_series. Often a request id has got into the "
                "name or the version of a service."
            ),
            "",
        ),
        (
            "TracescoreBudgetSpent",
            f"max by ({DEPLOYMENT}, judge) (tracescore_judge_budget_used_ratio) >= 1",
            "the budget of judge {{ $labels.judge }} is spent: nothing is scored until midnight UTC",
            (
                "Even at sampling.min_ratio the traffic costs more than judge.budget.per_day. Raise the budget, lower "
                "sampling.min_ratio, or choose a cheaper judge."
            ),
            "",
        ),
    ):
        yield alert(name, expression, "10m", "ticket", summary, description, filters)


def spending_alerts() -> Iterator[Rule]:
    """The judge costs more than was meant.

    Over a day, because cost follows the traffic of the day; what spends twenty times as fast is noticed within the
    hour all the same.
    """
    for unit, limit in (("cost", COST_LIMIT), ("tokens", TOKENS_LIMIT)):
        rule = alert(
            "TracescoreJudgeOverBudget",
            f"sum by ({DEPLOYMENT}, judge) (increase(tracescore_judge_{unit}_total[{DAY}])) > scalar({limit})",
            "10m",
            "ticket",
            f"judge {{{{ $labels.judge }}}} used {{{{ $value | humanize }}}} ({unit}) within a day",
            (
                f"More than the {limit} of the rules. Lower sampling.ratio, score fewer `measures`, or raise the limit "
                f"where the recording rule {limit} sets it."
            ),
        )
        rule["labels"]["unit"] = unit
        yield rule
