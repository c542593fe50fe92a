"""What `tracescore gold run` is asked to hold a run against, and what is said of it then."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from tracescore.errors import UsageError
from tracescore.gold.compare import FEWEST, Comparison, compare
from tracescore.gold.report import GoldReport, check_name, read_run
from tracescore.gold.results import GOLD_MEASURES, Run
from tracescore.gold.runner import GoldRunner


@dataclass(frozen=True, slots=True)
class Checks:
    """What the command was asked: limits by measure, what to compare with (PINNED, LAST, a file), files to write."""

    fail_under: tuple[tuple[str, float], ...] = ()
    compare_with: str | None = None
    reports: tuple[Path, ...] = ()
    release: str | None = None

    @classmethod
    def of(
        cls,
        limits: Sequence[str],
        compare_with: str | None,
        reports: Sequence[Path],
        release: str | None,
        own: Iterable[str] = (),
    ) -> Self:
        """Checks what was typed; UsageError. `own`: measures of the user's own."""
        for path in reports:
            check_name(path)
        if compare_with not in (None, "PINNED", "LAST"):
            read_run(Path(compare_with))
        known = [*GOLD_MEASURES, *own]
        return cls(tuple(_limit(each, known) for each in limits), compare_with, tuple(reports), release)


def _limit(text: str, known: Sequence[str]) -> tuple[str, float]:
    measure, _, number = text.rpartition("=")
    measure = measure or "factual"
    try:
        value = float(number)
    except ValueError:
        value = -1.0
    if measure not in known or not 0 <= value <= 1:
        names = ", ".join(known)
        raise UsageError(
            f"--fail-under: MEASURE=VALUE expected, with VALUE from 0 to 1; got {text!r}; measures: {names}"
        )
    return measure, value


def reported(runner: GoldRunner, done: Run, checks: Checks, before: Sequence[Run]) -> GoldReport:
    """A run with what the checks say of it; `before` holds the last good run before it, if there is one."""
    settings = runner.settings
    comparison = _compared(runner, done, checks.compare_with, before)
    failures, notes = list(_failures(done, checks, settings.min_scored)), list[str]()
    if checks.compare_with is not None and done.state == "done":
        if comparison is not None:
            failures += _falls(comparison, settings.tolerance)
            pairs = max((change.pairs for change in comparison.changes.values()), default=0)
            if pairs < FEWEST:
                notes.append(
                    f"compare-with: {pairs} items are too few to detect a drop; at least {FEWEST} must get worse"
                )
        elif checks.compare_with == "PINNED" and any(run.id == done.id for run in runner.references()):
            notes.append("compare-with: this run becomes part of the reference for later runs")
        elif checks.compare_with == "LAST" and not before:
            notes.append("compare-with: there is no good run before this one")
        else:
            failures.append(f"compare-with: {checks.compare_with} has no item in common that this judge scored")
    return GoldReport(done, settings.min_scored, settings.tolerance, comparison, tuple(failures), tuple(notes))


def _falls(comparison: Comparison, tolerance: float) -> Iterator[str]:
    for measure, change in comparison.changes.items():
        if change.fell(tolerance):
            yield f"compare-with {measure}: dropped from {change.before:.3f} to {change.after:.3f} (p {change.p:.4f})"


def _compared(runner: GoldRunner, done: Run, what: str | None, before: Sequence[Run]) -> Comparison | None:
    if what in (None, "PINNED"):
        return runner.compared(done)
    if what == "LAST":
        return compare(done, [runner.store.whole(run) for run in before], "the last run")
    return compare(done, [read_run(Path(str(what)))], str(what))


def _failures(done: Run, checks: Checks, min_scored: float) -> list[str]:
    if done.state != "done":
        return [f"run: {done.detail}"]
    estimates = {str(name): each for name, each in done.estimates(min_scored).items()}
    failures = []
    for measure, limit in checks.fail_under:
        found = estimates.get(measure)
        if found is None:
            failures.append(
                f"{measure}: not measured on {min_scored:.0%} of the items; at least {limit:g} was asked for"
            )
        elif found.mean < limit:
            failures.append(f"{measure}: {found.mean:.3f} is under {limit:g}")
    return failures
