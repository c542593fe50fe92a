"""The rules with every duration divided: Prometheus' clock cannot be set, so a test makes its hours short."""

from __future__ import annotations

import re
from typing import Any

_UNITS = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_DURATION = re.compile(r"(?:(?<=[\[:])|(?<=offset ))\d+[smhd]\b")
"""Of ranges, subqueries and offsets; the values of the label `window` are names and stay."""
_SECONDS = re.compile(r"\bseconds\((\d+[smhd])\)")
"""What the expressions in the modules write for a number of seconds, which PromQL has no word for in 2.42."""


def in_seconds(duration: str) -> int:
    """The seconds of a duration with one unit."""
    return int(duration[:-1]) * _UNITS[duration[-1]]


def scaled(document: dict[str, Any], scale: float) -> dict[str, Any]:
    """The groups of a rule file with all durations divided by `scale`, as PromQL that Prometheus reads."""
    groups = [
        group | {"interval": _shorter(group["interval"], scale), "rules": [_rule(r, scale) for r in group["rules"]]}
        for group in document["groups"]
    ]
    return {"groups": groups}


def _rule(rule: dict[str, Any], scale: float) -> dict[str, Any]:
    expression = _SECONDS.sub(lambda found: f"{in_seconds(found[1]) / scale:g}", rule["expr"])
    expression = _DURATION.sub(lambda found: _shorter(found[0], scale), expression)
    waits = {key: _shorter(rule[key], scale) for key in ("for", "keep_firing_for") if key in rule}
    return {**rule, "expr": expression, **waits}


def _shorter(duration: str, scale: float) -> str:
    return duration if scale == 1 else f"{round(1000 * in_seconds(duration) / scale)}ms"
