"""A question that follows up in a trace of its own is known as a later turn, with what was said before it."""

from __future__ import annotations

import orjson
import pytest

from tests import otlp, results
from tracescore.assembly import assemble
from tracescore.config import Config
from tracescore.evaluators.eligibility import lacks_history
from tracescore.model import MEASURES, Interaction, Message
from tracescore.pipeline import known_turns
from tracescore.pipeline.known_turns import KnownTurns
from tracescore.service import Service

Q1, A1, Q2, A2 = "When is the dome open?", "On Fridays.", "And for pupils?", "On Fridays, too."


def turn(at: int, question: str | None = Q2, answer: str | None = A2, **fields: object) -> Interaction:
    known = {"conversation_id": "c1", "slices": {"turn": "first", "route": "ask"}, **fields}
    return results.interaction(at, question=question, answer=answer, start_unix_nano=at, **known)


def told(*turns: tuple[str, str]) -> tuple[Message, ...]:
    return tuple(Message(*one) for one in turns)


NEED = {"answer_relevancy", "completeness", "context_precision"}
BEFORE = told(("user", Q1), ("assistant", A1))


def test_the_next_trace_of_a_conversation_is_a_later_turn_with_what_was_said_before():
    known = KnownTurns()
    first = turn(1, Q1, A1)
    assert known.placed(first) == first
    second = known.placed(turn(2))
    assert (second.slices, second.history) == ({"turn": "later", "route": "ask"}, BEFORE)
    assert known.placed(turn(3)).history == (*BEFORE, *told(("user", Q2), ("assistant", A2)))


@pytest.mark.parametrize(
    "other",
    [
        {"conversation_id": ""},
        {"conversation_id": "c2"},
        {"service": "another"},
    ],
)
def test_of_another_conversation_it_is_a_first_turn(other: dict[str, str]):
    known = KnownTurns()
    known.placed(turn(1, Q1, A1, **({"conversation_id": ""} if not other.get("conversation_id", "c") else {})))
    alone = turn(2, **other)
    assert known.placed(alone) == alone


def test_the_same_turn_again_stays_what_it_was():
    known = KnownTurns()
    first, second = turn(1, Q1, A1), turn(2)
    assert [known.placed(one).slices["turn"] for one in (first, second, first, second)] == [
        *("first", "later", "first", "later")
    ]
    assert known.placed(second).history == BEFORE


def test_a_history_that_the_trace_itself_tells_is_left_as_it_is():
    known = KnownTurns()
    known.placed(turn(1, Q1, A1))
    itself = turn(2, history=told(("user", "Hello")), slices={"turn": "later"})
    assert known.placed(itself) == itself


def test_after_a_restart_it_is_known_that_there_were_turns_but_not_what_was_said():
    before, after = KnownTurns(), KnownTurns()
    before.placed(turn(1, Q1, A1))
    after.resume(after.codec.load(orjson.loads(orjson.dumps(before.codec.plain(before.state())))))
    later = after.placed(turn(2))
    assert (later.slices["turn"], later.history) == ("later", ())
    assert [lacks_history(later, measure) for measure in MEASURES] == [measure in NEED for measure in MEASURES]
    assert not lacks_history(after.placed(turn(3)), "completeness")


def test_no_more_is_remembered_than_fits(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(known_turns, "_MOST", 3)
    known = KnownTurns()
    for number in range(5):
        known.placed(turn(number + 1, conversation_id=f"c{number}"))
    assert len(known.state().first) == 3
    monkeypatch.setattr(known_turns, "_CHARACTERS", 40)
    for number in range(10):
        known.placed(turn(number + 10, conversation_id="long", question="q" * 9_000))
    assert known.state().first == ()
    assert known.placed(turn(30)).slices["turn"] == "first"


@pytest.mark.anyio
async def test_the_service_reads_a_second_trace_of_a_session_as_a_follow_up():
    service = Service(Config())
    found = []
    for number, (question, answer) in enumerate(((Q1, A1), (Q2, A2)), 1):
        keys = {"openinference.span.kind": "CHAIN", "session.id": "c1", "input.value": question, "output.value": answer}
        made = otlp.span(number, trace=number, attrs=keys, start_time_unix_nano=number, end_time_unix_nano=number + 1)
        raw = assemble([otlp.raw_span(made)], [])
        read = await service.reading._read(raw)
        found += [interaction for interaction, _ in read.fresh]
    assert [one.slices["turn"] for one in found] == ["first", "later"]
    assert found[1].history == BEFORE
