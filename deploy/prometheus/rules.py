"""Writes tracescore.rules.yaml: `python -m deploy.prometheus.rules [--runbook URL] [--page URL] [--scale N] [FILE]`.

The same sums are needed for three measures over four windows, so the file is written by code; what is committed is
what the code writes (a test compares). estimates.py has the recording rules, alerts.py those that tell people.
"""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

import yaml

from deploy.prometheus import alerts
from deploy.prometheus.alerts import PAGE, RUNBOOK, SETTINGS
from deploy.prometheus.drift_alerts import drift_alerts
from deploy.prometheus.estimates import estimates, firsts, quality_limit, sums, targets
from deploy.prometheus.gold import gold_alerts
from deploy.prometheus.releases import release_rules
from deploy.prometheus.scaling import scaled
from deploy.prometheus.silence import silence_alerts, silences

RELEASES = "tracescore-releases"
"""These rules look at whole hours: every five minutes is often enough, and as seldom as Prometheus allows."""

FILE = Path(__file__).with_name("tracescore.rules.yaml")

HEADER = f"""\
# Recording and alert rules of tracescore, for Prometheus 2.42 or newer (keep_firing_for).
# Written by `python -m deploy.prometheus.rules`; to change it for good, change the modules beside it.
#
# To adapt it by hand:
#   limits    the numbers that only you can know are recorded constants, at the top of the file:
#             {", ".join(SETTINGS)}
#             (share of scores that may lie below their target; money and tokens of a judge within a day)
#   targets   nothing to do: they come from `drift.targets` of your tracescore.yaml, by tracescore_target_ratio
#   links     `python -m deploy.prometheus.rules --runbook URL --page URL FILE` writes them with the address of your
#             copy of docs/alerts.md and with that at which people reach your tracescore page
#   route     alerts carry the labels severity, measure, service_name and deployment_environment
#
# Estimates carry the labels measure and window. Labels that come from the target (instance, pod, ...) are summed
# away, but for namespace and job: they tell one tracescore deployment from another.
"""


def groups() -> dict[str, Any]:
    """The whole file. Rules of a group are evaluated in order, each seeing the ones before it."""
    return {
        "groups": [
            {"name": name, "interval": "5m" if name == RELEASES else "1m", "rules": rules}
            for name, rules in {
                "tracescore-settings": [*alerts.settings()],
                "tracescore-estimates": [*firsts(), *sums(), *estimates(), targets(), quality_limit()],
                RELEASES: [*release_rules()],
                "tracescore-measurement": [*alerts.broken(), *alerts.measurement_alerts()],
                "tracescore-silence": [*silences(), *silence_alerts()],
                "tracescore-quality": [*alerts.burning(), *alerts.quality_alerts()],
                "tracescore-drift": list(drift_alerts()),
                "tracescore-gold": [*gold_alerts()],
                "tracescore-upkeep": [*alerts.upkeep_alerts(), *alerts.spending_alerts()],
            }.items()
        ]
    }


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as blocks, as a person would."""


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style="|" if "\n" in value else None)


_Dumper.add_representer(str, _text)


def render(*, runbook: str = RUNBOOK, page: str = PAGE, scale: float = 1) -> str:
    """The text of tracescore.rules.yaml, with these addresses and with all durations divided by `scale`."""
    document = scaled(groups(), scale)
    for rule in (rule for group in document["groups"] for rule in group["rules"] if "alert" in rule):
        for name, before, after in (("runbook_url", RUNBOOK, runbook), ("page", PAGE, page.rstrip("/"))):
            rule["annotations"][name] = after + rule["annotations"][name].removeprefix(before)
    return HEADER + yaml.dump(document, Dumper=_Dumper, sort_keys=False, width=10_000, allow_unicode=True)


def main(arguments: list[str] | None = None) -> None:
    """Writes the file."""
    parser = ArgumentParser(prog="python -m deploy.prometheus.rules", description="Writes the rules of tracescore.")
    parser.add_argument("--runbook", metavar="URL", default=RUNBOOK, help="where people read docs/alerts.md")
    parser.add_argument("--page", metavar="URL", default=PAGE, help="where people reach the page of tracescore")
    parser.add_argument("--scale", metavar="N", type=float, default=1, help="divides all durations, to try the rules")
    parser.add_argument("file", metavar="FILE", nargs="?", type=Path, default=FILE, help="what to write")
    given = parser.parse_args(arguments)
    given.file.write_text(render(runbook=given.runbook, page=given.page, scale=given.scale), encoding="utf-8")


if __name__ == "__main__":
    main()
