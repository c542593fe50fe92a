"""Items lost to a defect of tracescore: it counts the item and goes on with the next."""

import logging
from typing import Literal

from prometheus_client import CollectorRegistry

from tracescore import logs
from tracescore.exporters.prometheus.families import from_zero

Stage = Literal["interactions", "evaluators", "exporters"]
STAGES: tuple[Stage, ...] = ("interactions", "evaluators", "exporters")


class Defects:
    """Counts them by stage; the log says where it happened, without the item's text."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._errors = from_zero(
            registry,
            "tracescore_service_errors",
            "Items lost to a defect of tracescore, by stage; please report event=defect from the log.",
            "stage",
            STAGES,
        )
        self._said: set[str] = set()

    def count(self, stage: Stage, error: Exception, once_for: str = "") -> None:
        """One item is lost. With `once_for` only the first defect of that name is logged."""
        self._errors.labels(stage).inc()
        if once_for not in self._said:
            logs.defect(logging.getLogger(f"tracescore.{stage}"), error)
        if once_for:
            self._said.add(once_for)
