"""What becomes of an exporter stands in its class alone: one that nobody has heard of is served like the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import anyio
import pytest

from tests.results import interaction, relevancy, result
from tests.running import FREE_PORTS
from tracescore.config.file import parse
from tracescore.exporters import Continuing, Delivering, Exporter
from tracescore.model import Interaction, Result
from tracescore.pipeline.scorer import Scorer
from tracescore.service import Service
from tracescore.spool.state import Persisted, StateCodec

pytestmark = pytest.mark.anyio


class Pigeon(Delivering):
    """Brings home what is about the first interaction; the others it never gets rid of."""

    name = "pigeon"

    def __init__(self) -> None:
        super().__init__(durable=True)
        self.given: list[str] = []

    async def export(self, result: Result) -> None:
        self.given.append(result.interaction.span_id)
        if result.interaction.span_id == interaction(1).span_id:
            self.settled(result)

    async def close(self) -> None:
        """Nothing to release."""


@dataclass(frozen=True, slots=True)
class TallyState(Persisted):
    counted: int


class Tally(Continuing):
    """Counts."""

    name, codec = "tally", StateCodec(TallyState)

    def __init__(self, enough: int = 0) -> None:
        self.counted, self.refilled, self._enough = 0, 0, enough
        self.has_enough = anyio.Event()

    async def export(self, result: Result) -> None:
        del result
        self.counted += 1
        if self.counted == self._enough:
            self.has_enough.set()

    def state(self) -> TallyState:
        return TallyState(self.counted)

    def resume(self, state: TallyState) -> None:
        self.counted = state.counted

    def refill(self, result: Result) -> None:
        del result
        self.refilled += 1


class Plain:
    """Is neither kind."""

    def __init__(self) -> None:
        self.given: list[str] = []

    async def export(self, result: Result) -> None:
        self.given.append(result.interaction.span_id)

    async def close(self) -> None:
        """Nothing to release."""


async def test_a_new_exporter_is_delivered_to_persisted_and_restored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def score(self: Scorer, interaction: Interaction, evaluators: object) -> Result:
        return replace(result(relevancy(0.5)), interaction=interaction)

    monkeypatch.setattr(Scorer, "score", score)

    async def lead(watchers: Sequence[Exporter], until: anyio.Event | None, *numbers: int) -> None:
        service = Service(parse(f"{FREE_PORTS}spool: {{path: '{tmp_path}/spool'}}", "test"), watchers=watchers)
        stop = anyio.Event()
        async with anyio.create_task_group() as tasks:
            await tasks.start(service.run, stop)
            for number in numbers:
                service.queue.put(interaction(number))
            if until is not None:
                with anyio.fail_after(30):
                    await until.wait()
            stop.set()

    ids = [interaction(number).span_id for number in (1, 2, 3)]
    first = Pigeon(), Tally(enough=3), Plain()
    await lead(first, first[1].has_enough, 1, 2, 3)
    assert sorted(first[0].given) == ids
    pigeon, tally, plain = Pigeon(), Tally(), Plain()
    await lead([pigeon, tally, plain], None)
    assert sorted(pigeon.given) == ids[1:], "what was not delivered is delivered again, and nothing else"
    assert (tally.counted, tally.refilled) == (3, 3), "figures go on, and count nothing twice"
    assert sorted(plain.given) == ids, "any other exporter is shown what is recent"
