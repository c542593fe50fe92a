"""docs/metrics.md: every metric with its type, labels and HELP, from the registry of a service that has them all."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from prometheus_client import CollectorRegistry

from tests.documents import DOCS, cell
from tracescore.config.file import parse
from tracescore.gold.results import GOLD_MEASURES
from tracescore.model import LIVE_MEASURES
from tracescore.service import Service

FILE = DOCS / "metrics.md"
SETTINGS = {
    "judge: {kind: openai}": "judge: {kind: openai, model: m}\n",
    "judge.price": "judge: {kind: openai, model: m, price: {input: 1, output: 1}, budget: {per_day: 1}}\n",
    "embedder: {kind: openai}": "judge: {kind: openai, model: m}\nembedder: {kind: openai, model: e}\n",
    "exporters.otlp": "exporters: {otlp: {endpoint: 'http://elsewhere:4318'}}\n",
    "exporters.phoenix": "exporters: {phoenix: {endpoint: 'http://elsewhere:6006'}}\n",
    "exporters.forward": "exporters: {forward: {http: 'http://elsewhere:4318'}}\n",
    "redaction": "redaction: {patterns: [email]}\n",
    "spool.path": "spool: {path: /nowhere/spool}\n",
    "attach: hold": "spool: {path: /nowhere/spool}\nexporters: {forward: {http: 'http://other:4318', attach: hold}}\n",
    "drift.labels": "spool: {path: /nowhere/spool}\ndrift: {labels: {path: /nowhere/labels}}\n",
    "evaluators.custom": "measures: [polite]\nevaluators: {custom: {polite: {kind: pattern, reads: [answer], "
    "matches: please, value: 1}}}\n",
    "gold": "gold: {set: 'GOLD', target: {kind: http, url: 'http://elsewhere'}}\n",
}
"""What brings metrics of its own: as it is named in the table, and settings with it."""
ROOMS = {
    "measures": "Scores",
    "interactions": "Reading interactions",
    "evaluations": "The ledger of evaluations",
    "evaluators": "The ledger of evaluations",
    "drift": "Drops, targets and labels",
    "target": "Drops, targets and labels",
    "gold": "Gold set",
    "judge": "Judge and embedder",
    "embedder": "Judge and embedder",
    "receiver": "Receiving",
    "net": "Receiving",
    "assembly": "Assembling traces",
    "redaction": "Redaction and sampling",
    "sampling": "Redaction and sampling",
    "exporters": "Exporters",
    "spool": "Spool",
    "service": "The process",
    "web": "The process",
}
"""First word of a name after `tracescore_` -> heading, in the order of the page."""


class Metric(NamedTuple):
    """A row: name as it is scraped, type, labels, HELP, and the setting that brings it, if one does."""

    name: str
    type: str
    labels: tuple[str, ...]
    help: str
    needs: str


def page() -> str:
    """The text of docs/metrics.md: what is written by hand above the first generated heading, and the tables."""
    head = FILE.read_text(encoding="utf-8").split(f"\n## {next(iter(ROOMS.values()))}\n")[0]
    return head + "".join(_tables(list(metrics())))


def metrics() -> Iterator[Metric]:
    """Every metric there is; those that differ by the measure alone are one, with `<measure>` in its name."""
    seen: dict[str, Metric] = {}
    for needs, settings in {"": "", **SETTINGS}.items():
        for found in families(settings):
            seen.setdefault(found.name, found._replace(needs=needs))
    alike: dict[Metric, list[str]] = {}
    for found in seen.values():
        measures = GOLD_MEASURES if "_gold_" in found.name else LIVE_MEASURES
        if "_custom_polite" in found.name:
            continue  # as <measure>, with custom_ and its name in its place
        measure = next((one for one in measures if f"_{one}_" in found.name), "")
        plain = found.name.replace(measure, "<measure>", 1) if measure else found.name
        labels = tuple(label for label in found.labels if label != "context_source")
        alike.setdefault(found._replace(name=plain, labels=labels), []).append(measure)
    for row, among in alike.items():
        several = len(among) > 1 or "<measure>" not in row.name
        yield row if several else row._replace(name=row.name.replace("<measure>", among[0]))


def families(settings: str) -> list[Metric]:
    """The metrics of a service with these settings."""
    with tempfile.TemporaryDirectory() as folder:
        gold = Path(folder, "gold.yaml")
        gold.write_text("[{question: q, reference: r}]", encoding="utf-8")
        registry = Service(parse(settings.replace("GOLD", str(gold)) or "{}", "settings")).registry
        return list(_families(registry))


def _families(registry: CollectorRegistry) -> Iterator[Metric]:
    for collector in registry._collector_to_names:
        for family in collector.collect():
            labels = getattr(collector, "_labelnames", None) or getattr(family, "_labelnames", ())
            name = family.name + ("_total" if family.type == "counter" else "")
            yield Metric(name, family.type, tuple(labels), family.documentation, "")


def _tables(rows: list[Metric]) -> Iterator[str]:
    for heading in dict.fromkeys(ROOMS.values()):
        yield f"\n## {heading}\n\n| metric | type | labels | what it says | there with |\n|---|---|---|---|---|\n"
        yield from (_row(row) for row in rows if ROOMS[_room(row.name)] == heading)


def _room(name: str) -> str:
    """The first word of a name; KeyError where ROOMS knows none."""
    first = name.removeprefix("tracescore_").split("_")[0]
    scores = ("<measure>", *LIVE_MEASURES)
    return "measures" if name.startswith(tuple(f"tracescore_{one}_" for one in scores)) else first


def _row(row: Metric) -> str:
    labels = ", ".join(f"`{label}`" for label in row.labels)
    needs = f"`{row.needs}`" if row.needs else "always"
    return f"| `{row.name}` | {row.type} | {labels} | {cell(row.help)} | {needs} |\n"
