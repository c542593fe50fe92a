"""Estimates over time, and what tells that they have changed."""

from prometheus_client import CollectorRegistry

from tracescore.config import Config
from tracescore.drift.anchors import Anchors, Rescore, read_anchors
from tracescore.drift.references import with_references
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch, GoldFell
from tracescore.model import Clock

__all__ = ["Releases", "build_watch"]


def build_watch(
    config: Config, registry: CollectorRegistry, clock: Clock, rescore: Rescore, gold_fell: GoldFell
) -> DriftWatch | None:
    """What watches for changes, if anything is to; UsageError when anchors or references cannot be read."""
    if not config.drift.detector:
        return None
    settings, keeps = with_references(config.drift, config.evaluators.custom), config.spool.path is not None
    anchors = None
    if settings.anchors:
        anchors = Anchors(read_anchors(settings.anchors), rescore, clock, settings.anchor_deadline)
    return DriftWatch(registry, settings, config.sampling, config.measures, clock, anchors, gold_fell, keeps=keeps)
