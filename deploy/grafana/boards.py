"""Writes the JSON of every dashboard: `python -m deploy.grafana.boards`."""

from __future__ import annotations

from deploy.grafana import coverage, drift, gold, judge, overview, releases, services, slices
from deploy.grafana.panels import text

BOARDS = (services, overview, drift, releases, slices, coverage, judge, gold)

if __name__ == "__main__":
    for module in BOARDS:
        module.FILE.write_text(text(module.build()))
