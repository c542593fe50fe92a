"""What `tracescore doctor --prometheus` finds: whether a Prometheus scrapes, evaluates rules and alerts somebody."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tracescore.cli.doctor_checks import Finding
from tracescore.cli.prometheus_api import ask, series
from tracescore.errors import UsageError

_SCRAPED = 'count({__name__="tracescore_judge_ready"})'
_SCRAPE = "add deploy/prometheus/scrape.yaml to it, with the address of this service"
_RULES = "add deploy/prometheus/tracescore.rules.yaml to its rule_files, and reload it"
_CHECK = "promtool check rules FILE says why; its log too"
_LONGEST = 200
"""Characters of a message of Prometheus that are shown."""


def prometheus_findings(url: str, metrics: str) -> Iterator[Finding]:
    """The findings about the Prometheus at `url`; `metrics` is the address that it should scrape."""
    try:
        scraped = series(url, "query", query=_SCRAPED)
        targets = ask(url, "targets", state="active").get("activeTargets", [])
        groups = ask(url, "rules").get("groups", [])
        managers = ask(url, "alertmanagers").get("activeAlertmanagers", [])
    except UsageError as error:
        yield Finding("scrape", "fail", str(error), "say where your Prometheus is with --prometheus URL")
        return
    yield _scrape(scraped, targets, metrics)
    rules = [each for group in groups if str(group.get("name")).startswith("tracescore-") for each in group["rules"]]
    yield _rules(rules)
    if rules:
        yield _alerts(managers)


def _scrape(scraped: Sequence[Mapping[str, Any]], targets: Sequence[Mapping[str, Any]], metrics: str) -> Finding:
    port = metrics.rpartition(":")[2].strip("/")
    down = [
        f"{each.get('scrapeUrl')}: {each.get('lastError')}"
        for each in targets
        if each.get("health") == "down" and f":{port}/" in str(each.get("scrapeUrl"))
    ]
    if down:
        return Finding("scrape", "fail", f"a scrape fails: {_cut(down[0])}", "check address, TLS and token of the job")
    if not scraped:
        return Finding("scrape", "fail", "Prometheus has no series of tracescore", _SCRAPE)
    return Finding("scrape", "ok", f"Prometheus has the series of {float(scraped[0]['value'][1]):.0f} replica(s)")


def _rules(rules: Sequence[Mapping[str, Any]]) -> Finding:
    if not rules:
        return Finding("rules", "fail", "Prometheus has no rules of tracescore: nothing alerts", _RULES)
    broken = [each for each in rules if each.get("health") == "err"]
    if broken:
        said = f"{broken[0].get('name')} cannot be evaluated: {_cut(str(broken[0].get('lastError')))}"
        return Finding("rules", "fail", said, _CHECK)
    firing = sorted({str(each["name"]) for each in rules if each.get("state") == "firing"})
    said = f"{len(rules)} rules are evaluated"
    if firing:
        return Finding("rules", "warn", f"{said}; firing now: {', '.join(firing)}", "docs/alerts.md says what to do")
    return Finding("rules", "ok", f"{said}, no alert fires")


def _alerts(managers: Sequence[object]) -> Finding:
    if managers:
        return Finding("alerts", "ok", f"go to {len(managers)} Alertmanager(s)")
    fix = "add your Alertmanager to alerting.alertmanagers of Prometheus (docs/alerts.md)"
    return Finding("alerts", "warn", "go nowhere: Prometheus knows no Alertmanager", fix)


def _cut(text: str) -> str:
    return " ".join(text.split())[:_LONGEST]
