"""Measures of the user's own (`evaluators.custom`): one file per kind. What each is and why is docs/custom-measures.md.

The table of measures is open like this: a measure is a name. What has a list of measures (ledger, series, detectors,
gold set, page) has those of tracescore and the names in `evaluators.custom`; nothing else knows one from the other, but

- a name: `custom_` comes before it in the names of metrics, which carry it as the label `measure` as well, so that one
  rule of Prometheus reads all of them;
- a scale: an Evaluation says in which `version` of the measure it was made, and where no judge made it, what did. With
  another one that measure alone begins anew, and a new judge changes nothing for what it did not score;
- what it reads, which its section says, so that what is missing is skipped as everywhere.
"""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Gauge

from tracescore.config import CustomConfig
from tracescore.evaluators.custom.measure import OwnMeasure
from tracescore.evaluators.custom.pattern import PatternMeasure
from tracescore.evaluators.custom.python import PythonMeasure
from tracescore.evaluators.custom.rubric import RubricMeasure
from tracescore.model import Measure

__all__ = ["OwnMeasure", "PatternMeasure", "PythonMeasure", "RubricMeasure", "build_custom", "custom_info"]


def build_custom(measure: Measure, settings: CustomConfig) -> OwnMeasure:
    """The measure of a section. UsageError when a file or a function that it names cannot be used."""
    setting = f"evaluators.custom.{measure}"
    if settings.kind == "rubric":
        return RubricMeasure(setting, measure, settings)
    if settings.kind == "python":
        return PythonMeasure(setting, measure, settings)
    return PatternMeasure(measure, settings)


def custom_info(measures: Sequence[OwnMeasure], registry: CollectorRegistry) -> None:
    """The metric that says which measures of the user's own there are, and in which version."""
    about = "1 for each measure of your own; scores of different versions are not comparable."
    info = Gauge("tracescore_evaluators_custom_info", about, ["measure", "kind", "judge", "version"], registry=registry)
    for each in measures:
        info.labels(each.measure, each.kind, each.judge, each.version).set(1)
