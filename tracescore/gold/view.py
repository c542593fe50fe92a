"""What a page shows of a gold set, as plain data."""

from typing import Any

from tracescore.gold.compare import Comparison
from tracescore.gold.results import Run
from tracescore.gold.runner import GoldRunner

_RUNS, _FLIPS = 20, 50


def view(runner: GoldRunner) -> dict[str, Any]:
    """The set, its latest runs, the means of each release's newest one, and what changed against the reference."""
    findings, settings = runner.findings, runner.settings
    return {
        "name": runner.name,
        "hash": runner.gold_set.hash,
        "size": len(runner.gold_set.items),
        "running": runner.running,
        "next": runner.schedule.expected,
        "runs": [_line(run) for run in findings.recent[:_RUNS]],
        "releases": [_line(each.run) | {"means": each.estimates, "lowest": each.lowest} for each in findings.latest],
        "comparison": _compared(findings.comparison, settings.tolerance),
    }


def _line(run: Run) -> dict[str, Any]:
    names = ("service", "release", "judge", "trigger", "started", "finished", "state", "detail", "reference", "size")
    return {name: getattr(run, name) for name in names}


def _compared(comparison: Comparison | None, tolerance: float) -> dict[str, Any] | None:
    if comparison is None:
        return None
    return {
        "runs": comparison.runs,
        "changes": [(name, each, each.fell(tolerance)) for name, each in comparison.changes.items()],
        "worse": sum(flip.worse for flip in comparison.flips),
        "better": sum(not flip.worse for flip in comparison.flips),
        "flips": comparison.flips[:_FLIPS],
    }
