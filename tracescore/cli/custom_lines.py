"""What `tracescore check` says of measures of the user's own: what each adds in series and in calls of the judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tracescore.config import Config


def custom_lines(config: Config) -> list[str]:
    """A line for each. UsageError when a file or a function that one names cannot be used."""
    own = config.evaluators.custom
    if not own:
        return []
    import time

    from prometheus_client import CollectorRegistry

    from tracescore.evaluators.custom import build_custom
    from tracescore.exporters.prometheus.exporter import PrometheusExporter

    settings = config.exporters.prometheus, config.drift, config.sampling
    exporter = PrometheusExporter(CollectorRegistry(), *settings, time.time, own)
    lines = []
    for name, each in own.items():
        version = build_custom(name, each).version
        release, value, _ = exporter.capacity([name])
        calls = "1 judge call for each interaction" if each.kind == "rubric" else "no judge calls"
        lines.append(
            f"  {name} ({each.kind}, version {version}) adds {release} series for each release of a service, "
            f"{value} for each slice value, and {calls}"
        )
    return lines
