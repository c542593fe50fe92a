"""When the alerts of the gold set must speak, and when not."""

from __future__ import annotations

from collections.abc import Sequence

from deploy.prometheus.streams import TARGET, Case, Series, case, named

SET = {"gold_set": "faq"}
RUN = SET | {"service_name": "shop", "service_version": "2", "judge": "gpt"}
MINUTE = 150


def _set(**values: float) -> Series:
    """Series of the set, all with one value."""
    known = {"tolerance_ratio": 0.02, "running": 0.0, "last_run_ok": 1.0} | values
    return {named(f"tracescore_gold_{name}", TARGET | SET): f"{value}x{MINUTE}" for name, value in known.items()}


def _change(measure: str, difference: float, p: float) -> Series:
    labels = TARGET | RUN | {"measure": measure}
    return {
        named("tracescore_gold_change_ratio", labels): f"{difference}x{MINUTE}",
        named("tracescore_gold_change_p_value", labels): f"{p}x{MINUTE}",
    }


def gold_cases() -> list[Case]:
    """One per thing that can be told, and per thing that looks like it."""
    fell, failing, overdue = (f"TracescoreGold{name}" for name in ("Fell", "Failing", "Overdue"))
    now = MINUTE * 60.0
    told: Sequence[tuple[str, Sequence[Series], list[str]]] = (
        ("a fall that chance does not explain", [_change("factual", -0.25, 0.001)], [fell]),
        ("a fall that chance explains", [_change("factual", -0.25, 0.02)], []),
        ("a fall within the tolerance", [_change("factual", -0.0125, 0.001)], []),
        ("a rise", [_change("factual", 0.25, 1.0)], []),
        (
            "correctness falls and its factual part does not",
            [_change("factual", 0.0, 1.0), _change("answer_correctness", -0.25, 0.001)],
            [],
        ),
        ("correctness by likeness has no factual part", [_change("answer_correctness", -0.25, 0.001)], [fell]),
        ("another measure falls", [_change("completeness", -0.25, 0.001)], []),
        ("a measure of one's own falls", [_change("factual", 0.0, 1.0), _change("polite", -0.25, 0.001)], [fell]),
        ("chance explains the fall of one's own measure", [_change("polite", -0.25, 0.02)], []),
        ("a run failed", [_set(last_run_ok=0, next_run_timestamp_seconds=now - 7200)], [failing]),
        ("no good run for two hours after its time", [_set(next_run_timestamp_seconds=now - 7200)], [overdue]),
        ("it is going on", [_set(next_run_timestamp_seconds=now - 7200, running=1)], []),
        ("its time was half an hour ago", [_set(next_run_timestamp_seconds=now - 1800)], []),
        ("its time comes", [_set(next_run_timestamp_seconds=now + 7200)], []),
    )
    return [
        case(f"gold set: {name}", _set(), *series, minute=MINUTE, values={}, firing=firing)
        for name, series, firing in told
    ]
