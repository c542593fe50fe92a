"""The words that cases.py is written in: streams of scores as counters, and what the rules should make of them."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tracescore.config.drift import DriftConfig
from tracescore.exporters.prometheus.families import series_name
from tracescore.model import MEASURES, Measure

TARGET = {"instance": "10.0.0.1:9464", "job": "tracescore", "namespace": "rag", "pod": "a", "service": "tracescore"}
"""Labels that an operator gives a scrape target."""
APP = {"service_name": "shop", "deployment_environment": "prod", "judge": "gpt"}
READY = {"tracescore_judge_ready": "1x600"}
TARGETS = DriftConfig().targets | {"polite": 0.8, "cites_a_source": 0.5}
"""Those of the defaults, and of two measures of the user's own."""

Series = dict[str, str]
Case = dict[str, Any]

_METRIC = re.compile(r"\b([a-z]+(?:_[a-z]+)*:[a-z_:]+|tracescore_\w+|ALERTS)(\{)?")
_LONG = 240
"""Minutes from which a case is evaluated with others of its kind: what is short would be carried along for days."""


def counter(step: float, *phases: int, restarts: bool = False) -> str:
    """A counter that is flat, rises by `step` a minute, is flat, ...: one phase per number of minutes.

    A phase of 0 minutes is left out. Steps are sums of powers of 2: promtool adds them up, and a sum of 0.1 that
    comes out above the value of the next phase would read as a restart.

    `restarts`: it falls back to 0 wherever a rise begins, as it does when its process is new.
    """
    parts, value = [], 0.0
    for index, minutes in enumerate(phases):
        if minutes == 0:
            continue
        if index % 2 == 0:
            parts.append(f"{value:.10g}x{minutes - 1}")
            continue
        value = 0.0 if restarts else value
        parts.append(f"{value + step:.10g}+{step:.10g}x{minutes - 1}")
        value += step * minutes
    return " ".join(parts)


def named(metric: str, labels: Mapping[str, str]) -> str:
    """A series as PromQL writes it."""
    inner = ", ".join(f'{key}="{value}"' for key, value in labels.items())
    return f"{metric}{{{inner}}}"


def scores(
    measure: Measure,
    score: float,
    *phases: int,
    weight: float = 1.0,
    a_minute: float = 1,
    born: int = 0,
    restarts: bool = False,
    ends: bool = False,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> Series:
    """The six counters of equal scores that come every minute in every second phase.

    `born`: minutes before the series exist at all. `ends`: after the phases they exist no more.
    """
    steps = {
        "weight": weight,
        "weighted_score": weight * score,
        "weight_squared": weight**2,
        "weight_squared_score": weight**2 * score,
        "weight_squared_score_squared": (weight * score) ** 2,
        "below_target_weight": weight * (score < TARGETS[measure]),
    }
    every = TARGET | APP | dict(labels) | ({} if measure in MEASURES else {"measure": measure})
    before, after = f"_x{born} " if born else "", " stale" if ends else ""
    return {
        named(f"tracescore_{series_name(measure)}_{name}_total", every): (
            before + counter(a_minute * step, *phases, restarts=restarts) + after
        )
        for name, step in steps.items()
    }


def evaluations(
    measure: str, outcome: str, reason: str, *phases: int, a_minute: int = 1, service: str = "shop"
) -> Series:
    """One column of the ledger; `service` is empty where it is not known."""
    labels = TARGET | {"measure": measure, "outcome": outcome, "reason": reason}
    labels |= {"service_name": service} if service else {}
    return {named("tracescore_evaluations_total", labels): counter(a_minute, *phases)}


def estimate(scored: Sequence[float], weights: Sequence[float]) -> dict[str, float]:
    """What the rules should find, from single scores: the pseudo-observation is really added."""
    w = [weight / (sum(v * v for v in weights) / sum(weights)) for weight in weights]
    mean = math.fsum(a * s for a, s in zip(w, scored, strict=True)) / math.fsum(w)
    found = {"mean": mean, "effective_count": math.fsum(w) ** 2 / math.fsum(a * a for a in w)}
    for name, extra, sign in (("lower", 0.0, -1), ("upper", 1.0, 1)):
        weight, values = [*w, 1.0], [*scored, extra]
        total = math.fsum(weight)
        centre = math.fsum(a * s for a, s in zip(weight, values, strict=True)) / total
        spread = math.fsum(a * a * (s - mean) ** 2 for a, s in zip(w, scored, strict=True))
        spread += math.fsum(b * (s - centre) ** 2 for b, s in ((total - 1, mean), (1.0, extra)))
        found[name] = min(1.0, max(0.0, centre + sign * 1.96 * math.sqrt(spread) / total))
    return found


def share(bad: int, good: int) -> dict[str, float]:
    """What the rules should find of the share of scores below the target."""
    return estimate([1.0] * bad + [0.0] * good, [1.0] * (bad + good))


def case(name: str, *series: Series, minute: int, values: Mapping[str, float | None], firing: Sequence[str]) -> Case:
    """At `minute`, each expression has its value (None: there is nothing) and these alerts fire, and no others."""
    given = {named("tracescore_target_ratio", TARGET | {"measure": m}): f"{t}x{minute}" for m, t in TARGETS.items()}
    for one in series:
        given |= one
    time = f"{minute}m"
    tests = [
        {
            "expr": f"round({expression}, 0.0001)",
            "eval_time": time,
            "exp_samples": []
            if value is None
            else [{"labels": "{}", "value": round(round(value / 0.0001) * 0.0001, 4)}],
        }
        for expression, value in values.items()
    ]
    fired = [{"labels": f'{{alertname="{alert}"}}', "value": 1} for alert in firing]
    tests.append(
        {
            "expr": "count by (alertname) (count by (alertname, measure)"
            ' (ALERTS{alertstate="firing", alertname!="TracescoreHourBelowTarget"})) > 0',
            "eval_time": time,
            "exp_samples": fired,
        }
    )
    return {
        "name": name,
        "interval": "1m",
        "input_series": [{"series": key, "values": text} for key, text in given.items()],
        "promql_expr_test": tests,
    }


def together(cases: Iterable[Case]) -> Iterator[Case]:
    """The cases as few that are evaluated at once, each case a deployment (`job`) that is called like it.

    Most of the time goes into evaluating hundreds of rules that find nothing; no rule looks across deployments.
    """
    kinds: dict[tuple[str, bool], list[Case]] = {}
    for each in cases:
        minutes = max(int(test["eval_time"][:-1]) for test in each["promql_expr_test"])
        kinds.setdefault((each["interval"], minutes > _LONG), []).append(each)
    for (interval, _), of_kind in kinds.items():
        yield {
            "interval": interval,
            "input_series": [
                one | {"series": _deployed(one["series"], each["name"])}
                for each in of_kind
                for one in each["input_series"]
            ],
            "promql_expr_test": [
                test | {"expr": _deployed(test["expr"], each["name"])}
                for each in of_kind
                for test in each["promql_expr_test"]
            ],
        }


def _deployed(expression: str, job: str) -> str:
    """Of a series or an expression: every metric is that of the deployment."""
    open_to_all = expression.replace('job="tracescore", ', "")
    return _METRIC.sub(lambda metric: f'{metric[1]}{{job="{job}"{", " if metric[2] else "}"}', open_to_all)


def found(measure: str, window: str, expected: Mapping[str, float | None]) -> dict[str, float | None]:
    """Expectations about the recorded estimates of a measure; `sum` also fails when there are two series."""
    where = f'{{measure="{measure}", window="{window}", service_name="shop", judge="gpt"}}'
    return {f"sum(service:tracescore_score:{name}{where})": value for name, value in expected.items()}
