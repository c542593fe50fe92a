"""What a page shows of a gold set: its runs, every item over them, and one run against another."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import anyio.to_thread

from tracescore.gold.compare import RIGHT, compare
from tracescore.gold.results import COUNTS, ItemOutcome, Run
from tracescore.gold.runner import GoldRunner

RUNS = 20
"""Runs that are listed, and that the history of an item shows; any other one can be compared by its number."""
PAGE = 50
"""Items of one page."""
PINNED: Literal["pinned"] = "pinned"
OtherRun = int | Literal["pinned"]
"""What a run is compared with: another by its number, or the pinned runs."""

ItemState = Literal["became wrong", "wrong", "not answered", "not scored", "became right", "right"]
ITEM_STATES: Sequence[ItemState] = get_args(ItemState)
"""In the order in which they are shown."""
Histories = Mapping[tuple[str, str], Mapping[int, float | None]]


@dataclass(frozen=True, slots=True)
class GoldChoice:
    """A run and what it is compared with, by their numbers (`pinned`: the reference), and a page of items from 1.

    None: the newest good run, and the pinned runs or else the good run before it.
    """

    run: int | None = None
    against: OtherRun | None = None
    page: int = 1


@dataclass(frozen=True, slots=True)
class GoldItemView:
    """An item in the run that is shown, in the one that it is compared with, and its values in the latest runs.

    `history` is oldest first, None where it has no value.
    """

    now: ItemOutcome
    before: ItemOutcome | None
    state: ItemState
    history: Sequence[float | None]

    @property
    def value(self) -> float | None:
        """The factual part of correctness, or correctness where there is none."""
        return value_of(self.now)

    @property
    def counts(self) -> Mapping[str, int]:
        """Claims by verdict: TP, FP, FN."""
        return {name.upper(): round(self.now.counts[name]) for name in COUNTS if name in self.now.counts}

    @property
    def changed(self) -> bool:
        """Whether the app says something else than it did."""
        return self.before is not None and self.before.answer != self.now.answer


async def view(runner: GoldRunner, choice: GoldChoice) -> dict[str, Any]:
    """Everything that the page shows; ValueError for a run that is not known, or has not ended."""
    return await anyio.to_thread.run_sync(_view, runner, choice)


def value_of(outcome: ItemOutcome) -> float | None:
    """What decides whether an item is right; None where it has no score."""
    return outcome.values.get("factual", outcome.values.get("answer_correctness"))


def _view(runner: GoldRunner, choice: GoldChoice) -> dict[str, Any]:
    findings, ended = runner.findings, [run for run in runner.findings.recent if run.finished]
    good = [run for run in ended if run.state == "done"]
    run = _numbered(ended, choice.run) if choice.run is not None else next(iter(good or ended), None)
    about = {
        "name": runner.name,
        "hash": runner.gold_set.hash,
        "size": len(runner.gold_set.items),
        "running": runner.running,
        "next": runner.schedule.expected,
        "runs": findings.recent[:RUNS],
        "means": {each.run.id: each.estimates for each in findings.latest},
        "lowest": {each.run.id: each.lowest for each in findings.latest},
        "tolerance": runner.settings.tolerance,
    }
    if run is None:
        return about | {"run": None}
    against, before = _before(runner, run, good, choice.against)
    whole = runner.store.whole(run)
    found = items(whole, before[0] if before else None, runner.store.histories(good[:RUNS]))
    first = (choice.page - 1) * PAGE
    if choice.page > 1 and first >= len(found):
        raise ValueError(f"page: 1 to {-(-len(found) // PAGE)} expected; got {choice.page}")
    return about | {
        "run": run,
        "against": against,
        "before": before[0] if before else None,
        "comparison": compare(whole, before, str(against)) if before else None,
        "states": Counter(each.state for each in found),
        "items": found[first : first + PAGE],
        "page": choice.page,
        "pages": -(-len(found) // PAGE),
        "points": len(good[:RUNS]),
    }


def _numbered(runs: Sequence[Run], number: int) -> Run:
    found = next((run for run in runs if run.id == number), None)
    if found is None:
        there_are = ", ".join(str(run.id) for run in runs[:RUNS]) or "none"
        raise ValueError(f"run: the number of one that has ended expected; got {number}; there are {there_are}")
    return found


def _before(
    runner: GoldRunner, run: Run, good: Sequence[Run], chosen: OtherRun | None
) -> tuple[OtherRun | None, list[Run]]:
    """What a run is compared with, as an address names it, and those runs with their outcomes, newest first."""
    pinned = [each for each in good if each.reference]
    if chosen is None:
        older = [each for each in good if each.id < run.id]
        if pinned and run not in pinned:
            chosen = PINNED
        elif older:
            chosen = older[0].id
        else:
            return None, []
    found = pinned if isinstance(chosen, str) else [_numbered(runner.findings.recent, chosen)]
    return chosen, [runner.store.whole(each) for each in found if each.id != run.id]


def items(run: Run, before: Run | None, histories: Histories) -> list[GoldItemView]:
    """Every item of a run (with outcomes): those that became wrong first, then the wrong, the right ones last."""
    then = {(each.id, each.mark): each for each in before.outcomes} if before else {}
    numbers = list(dict.fromkeys(number for known in histories.values() for number in known))
    found = []
    for now in run.outcomes:
        key = now.id, now.mark
        history = [histories.get(key, {}).get(number) for number in sorted(numbers)]
        found.append(GoldItemView(now, then.get(key), state_of(now, then.get(key)), history))
    return sorted(found, key=lambda each: (ITEM_STATES.index(each.state), each.value or 0.0, each.now.id))


def state_of(now: ItemOutcome, before: ItemOutcome | None) -> ItemState:
    """What has become of an item, in words."""
    value, old = value_of(now), value_of(before) if before else None
    if value is None:
        return "not answered" if now.outcome == "unanswered" else "not scored"
    right, was_right = value >= RIGHT, None if old is None else old >= RIGHT
    if right:
        return "became right" if was_right is False else "right"
    return "became wrong" if was_right else "wrong"
