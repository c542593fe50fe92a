"""What `tracescore doctor` makes of the metrics of a running service: a finding per question, each with the fix."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from prometheus_client.parser import text_string_to_metric_families

from tracescore.interactions.report import REASON_ADVICE

FindingState = Literal["ok", "warn", "fail"]

_UNUSED_SCRAPE = 300.0
"""Seconds without a scrape after which nobody scrapes: five of the usual minutes."""
_SKEW = 5.0
"""Seconds that two clocks may lie apart."""
_BEHIND = 300.0
"""Age of the oldest pending evaluation, in seconds, from which scoring is behind."""
_JUDGE_FAILURES = 0.25
"""Share of the evaluations that may fail."""
_ENOUGH = 10
"""Interactions or evaluations from which a share says something."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer to one question about the service. `fix` is what to do, empty where nothing is wrong."""

    name: str
    state: FindingState
    said: str
    fix: str = ""


class Exposition:
    """The metrics of a service at one moment."""

    def __init__(self, text: str) -> None:
        """ValueError when it is no exposition."""
        self._samples: dict[str, list[tuple[Mapping[str, str], float]]] = {}
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                self._samples.setdefault(sample.name, []).append((sample.labels, sample.value))

    def __contains__(self, name: str) -> bool:
        return name in self._samples

    def total(self, name: str, **labels: str) -> float:
        """Sum of the samples that have these labels."""
        return sum(self.by(name, None, **labels).values())

    def by(self, name: str, label: str | None, **labels: str) -> dict[str, float]:
        """The sums by the values of one label, without those that are 0, the largest first."""
        found: dict[str, float] = {}
        for given, value in self._samples.get(name, ()):
            if labels.items() <= given.items() and value:
                key = given.get(label, "") if label else ""
                found[key] = found.get(key, 0.0) + value
        return dict(sorted(found.items(), key=lambda one: -one[1]))


def findings(reading: Exposition, now: float, service_time: float | None, endpoints: str) -> Iterator[Finding]:
    """All findings. `now` is this machine's time, `service_time` the service's; `endpoints` is where it receives."""
    yield _spans(reading, endpoints)
    yield _content(reading)
    yield _judge(reading)
    yield _scoring(reading)
    yield from _spool(reading)
    yield from _exporters(reading)
    yield _prometheus(reading, now)
    yield _clock(reading, now, service_time)


def _spans(reading: Exposition, endpoints: str) -> Finding:
    received = reading.total("tracescore_receiver_spans_total")
    refused = reading.by("tracescore_receiver_refused_requests_total", "reason")
    if not received:
        fix = f"point the OTLP exporter of your app to {endpoints}; docs/pipeline.md lists what goes wrong on the way"
        told = f"; refused requests: {_listed(refused)}" if refused else ""
        return Finding("spans", "fail", f"none received{told}", fix)
    said = f"{received:,.0f} received"
    if not reading.total("tracescore_receiver_admitted_spans_total"):
        return Finding("spans", "fail", f"{said}, none chosen by sampling", "raise sampling.ratio or add a rule")
    if not reading.total("tracescore_interactions_genai_spans_total"):
        fix = "instrument the model client or the framework (docs/instrument.md), or name your keys in interactions"
        return Finding("spans", "fail", f"{said}, none of a GenAI convention", fix)
    if refused:
        return Finding("spans", "warn", f"{said}; refused requests: {_listed(refused)}", "see receiver in the log")
    return Finding("spans", "ok", said)


def _content(reading: Exposition) -> Finding:
    states = reading.by("tracescore_interactions_total", "state")
    read, complete = sum(states.values()), states.get("complete", 0.0)
    if not read:
        reasons = reading.by("tracescore_interactions_none_total", "reason")
        advice = next((text for reason, text in REASON_ADVICE.items() if reason in list(reasons)[:1]), "")
        said = f"no interaction read; traces without one: {_listed(reasons)}" if reasons else "no interaction read yet"
        return Finding(
            "content", "fail" if reasons else "warn", said, advice or "ask your app a question and look again"
        )
    lacking = {state: count for state, count in states.items() if state != "complete"}
    said = f"{complete:,.0f} of {read:,.0f} interactions complete"
    said += f"; the others: {_listed(lacking)}" if lacking else ""
    if lacking.get("content_not_captured", 0.0) * 2 > read:
        fix = "turn on the recording of texts in your app; the page names the setting, and docs/instrument.md lists all"
        return Finding("content", "fail", said, fix)
    if complete * 2 < read:
        return Finding("content", "warn", said, "tracescore inspect --explain FILE shows what is read from which span")
    return Finding("content", "ok", said)


def _judge(reading: Exposition) -> Finding:
    name = next(iter(reading.by("tracescore_judge_info", "judge")), "")
    if not reading.total("tracescore_judge_ready"):
        return Finding("judge", "fail", f"{name or 'the judge'} is not ready", "tracescore check --probe FILE says why")
    ended = reading.total("tracescore_evaluations_total")
    failed = {
        reason: count
        for reason, count in reading.by("tracescore_evaluations_total", "reason", outcome="unscored").items()
        if reason.startswith(("judge_", "embedder_"))
    }
    said = f"{name} is ready"
    if ended >= _ENOUGH and sum(failed.values()) > _JUDGE_FAILURES * ended:
        said += f", but {sum(failed.values()):,.0f} of {ended:,.0f} evaluations failed: {_listed(failed)}"
        return Finding("judge", "fail", said, "see judge in the log, and docs/judges.md; check --probe asks the judge")
    return Finding("judge", "ok", said)


def _scoring(reading: Exposition) -> Finding:
    scored = reading.total("tracescore_evaluations_total", outcome="scored")
    shed = reading.total("tracescore_evaluations_total", outcome="shed")
    age = reading.total("tracescore_evaluations_oldest_pending_seconds")
    said = f"{scored:,.0f} scores, {reading.total('tracescore_evaluations_pending'):,.0f} evaluations pending"
    if age > _BEHIND or shed:
        said += f", the oldest for {age:,.0f} s" if age else ""
        said += f", {shed:,.0f} shed (dropped because too many wait)" if shed else ""
        return Finding("scoring", "warn", said, "lower sampling.ratio, or give the judge more max_concurrency")
    defects = reading.by("tracescore_service_errors_total", "stage")
    if defects:
        return Finding("scoring", "fail", f"{said}; defects: {_listed(defects)}", "report event=defect from the log")
    return Finding("scoring", "ok", said)


def _spool(reading: Exposition) -> Iterator[Finding]:
    if "tracescore_spool_writable" not in reading:
        said = "none: a restart loses what waits and starts all counters at 0"
        yield Finding("spool", "warn", said, "set spool.path to a file on a disk that stays")
    elif not reading.total("tracescore_spool_writable"):
        yield Finding("spool", "fail", "cannot be written", "free the disk, or check the rights of the folder")
    else:
        yield Finding("spool", "ok", f"{reading.total('tracescore_spool_bytes') / 2**20:,.0f} MiB")


def _exporters(reading: Exposition) -> Iterator[Finding]:
    for name in ("otlp", "phoenix"):
        prefix = f"tracescore_exporters_{name}"
        if f"{prefix}_sent_total" in reading:
            sent, dropped = (reading.total(f"{prefix}_{what}_total") for what in ("sent", "dropped"))
            said = f"{sent:,.0f} delivered, {dropped:,.0f} dropped"
            waits = reading.total(f"{prefix}_waiting")
            if dropped or (waits and not sent):
                fix = f"check exporters.{name}.endpoint and its headers; the log says how the destination answers"
                yield Finding(name, "fail" if not sent else "warn", said, fix)
            else:
                yield Finding(name, "ok", said)


def _prometheus(reading: Exposition, now: float) -> Finding:
    last = reading.total("tracescore_exporters_prometheus_scrape_timestamp_seconds")
    fix = "add deploy/prometheus/scrape.yaml to your Prometheus, with the address of this service"
    if not last:
        return Finding("prometheus", "fail", "nobody has scraped /metrics", fix)
    age = max(0.0, now - last)
    if age > _UNUSED_SCRAPE:
        return Finding("prometheus", "fail", f"the last scrape was {age / 60:,.0f} minutes ago", fix)
    return Finding("prometheus", "ok", f"scraped {age:,.0f} s ago")


def _clock(reading: Exposition, now: float, service_time: float | None) -> Finding:
    lag = "tracescore_evaluations_lag_seconds"
    ended, at_once = reading.total(f"{lag}_count"), reading.total(f"{lag}_bucket", le="1.0")
    late = reading.total("tracescore_drift_late_scores_total")
    skew = 0.0 if service_time is None else service_time - now
    if abs(skew) > _SKEW:
        said = f"the service's clock is {abs(skew):,.0f} s {'ahead of' if skew > 0 else 'behind'} this machine's"
        return Finding("clock", "fail", said, "synchronise both by NTP (chrony, systemd-timesyncd)")
    if ended >= _ENOUGH and at_once * 2 > ended:
        said = "spans end later than they arrive: the clock of your app is ahead of the service's"
        return Finding("clock", "fail", said, "synchronise the machines of your app by NTP")
    if late and late > _JUDGE_FAILURES * reading.total("tracescore_evaluations_total", outcome="scored"):
        said = f"{late:,.0f} scores came too late for drift.window: the clock of your app is behind, or spans wait long"
        return Finding("clock", "warn", said, "synchronise clocks by NTP; do not replay old traces")
    return Finding("clock", "ok", f"agrees with {'that of the spans' if ended else 'this machine'}")


def _listed(counts: Mapping[str, float]) -> str:
    return ", ".join(f"{count:,.0f} {name}" for name, count in counts.items())
