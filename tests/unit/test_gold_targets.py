"""How apps are asked, and what is said of one that does not answer as expected."""

from __future__ import annotations

import re
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

import anyio
import anyio.to_thread
import pytest
from opentelemetry import trace

from tests.app_server import Answer, AppServer, app_server
from tests.freeing import TEXT, is_freed_at_once
from tests.servers import free_port
from tracescore.config.gold import HttpTargetConfig, OpenAITargetConfig, PythonTargetConfig, TraceTargetConfig
from tracescore.errors import TargetFailed, UsageError
from tracescore.gold.items import GoldItem
from tracescore.gold.targets import FAILED_BECAUSE, Target, build_target
from tracescore.gold.targets.trace import TraceTarget
from tracescore.gold.trace_ids import GoldTraceIds
from tracescore.model import Interaction, Message

pytestmark = pytest.mark.anyio

HISTORY = (Message("user", "Hello."), Message("assistant", "Good day."))
ITEM = GoldItem("1", 'What "is" {contexts} & {history}?', "It.", contexts=("P.", "Q."), history=HISTORY)
TURNS = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
TRACE = GoldTraceIds("salt").new()


@pytest.fixture
def app() -> Iterator[AppServer]:
    with app_server() as running:
        yield running


@asynccontextmanager
async def made(settings: Any, within: float = 10.0) -> AsyncIterator[Target]:
    target = build_target(settings, within)
    try:
        yield target
    finally:
        await target.close()


async def answered(settings: Any, item: GoldItem = ITEM, within: float = 10.0) -> Interaction:
    async with made(settings, within) as target:
        return await target.ask(item, TRACE)


async def failed(settings: Any, within: float = 10.0) -> TargetFailed:
    with pytest.raises(TargetFailed) as said:
        await answered(settings, within=within)
    assert said.value.reason in FAILED_BECAUSE
    return said.value


def http(app: AppServer, **settings: Any) -> HttpTargetConfig:
    return HttpTargetConfig(kind="http", url=f"{app.url}/ask", **settings)


# ---------------------------------------------------------------- http


async def test_a_question_goes_out_as_data_in_a_marked_trace(app: AppServer) -> None:
    body = {"q": "Please: {question}", "turns": "{history}", "passages": "{contexts}", "n": 3, "list": ["{question}"]}
    await answered(http(app, body=body))
    (asked,) = app.asked
    assert asked.body == {
        "q": f"Please: {ITEM.question}",
        "turns": TURNS,
        "passages": ["P.", "Q."],
        "n": 3,
        "list": [ITEM.question],
    }
    assert re.fullmatch(f"00-{TRACE}-[0-9a-f]{{16}}-01", asked.headers["traceparent"])


async def test_a_get_asks_by_its_url(app: AppServer) -> None:
    await answered(HttpTargetConfig(kind="http", url=f"{app.url}/ask?q={{question}}", method="GET"))
    (asked,) = app.asked
    assert (asked.method, asked.body) == ("GET", None)
    assert parse_qs(urlsplit(asked.path).query) == {"q": [ITEM.question]}


async def test_headers_are_read_from_the_environment(app: AppServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("APP_TOKEN", "Bearer secret")
    settings = HttpTargetConfig.model_validate(
        {"kind": "http", "url": app.url, "headers": {"Authorization": {"env": "APP_TOKEN"}}}
    )
    await answered(settings)
    assert app.asked[0].headers["authorization"] == "Bearer secret"
    monkeypatch.delenv("APP_TOKEN")
    with pytest.raises(UsageError, match=r"gold\.target\.headers\.Authorization: environment variable APP_TOKEN"):
        build_target(settings, 1.0)


async def test_answer_contexts_and_release_are_read_where_they_stand(app: AppServer) -> None:
    app.otherwise = Answer({"data": [{"reply": "30.", "docs": [{"t": "A."}, {"t": " "}, {"t": "B."}]}], "v": "2.1"})
    paths = {"answer": "data.0.reply", "contexts": "data.0.docs.*.t", "release": "v"}
    found = await answered(http(app, **paths))
    assert (found.answer, found.contexts, found.release, found.trace_id) == ("30.", ("A.", "B."), "2.1", TRACE)


@pytest.mark.parametrize(("returned", "contexts"), [("A.", ("A.",)), (["A.", "B."], ("A.", "B.")), ([], ())])
async def test_contexts_are_a_text_or_a_list_of_them(app: AppServer, returned: Any, contexts: tuple[str, ...]) -> None:
    app.otherwise = Answer({"answer": "a", "docs": returned})
    assert (await answered(http(app, contexts="docs"))).contexts == contexts


async def test_where_the_app_brings_no_contexts_those_of_the_item_count(app: AppServer) -> None:
    assert (await answered(http(app))).contexts == ITEM.contexts


async def test_contexts_may_be_missing_once_their_path_has_led_somewhere(app: AppServer) -> None:
    app.queue.append(Answer({"answer": "a", "docs": ["A."]}))
    async with made(http(app, contexts="docs")) as target:
        assert (await target.ask(ITEM, TRACE)).contexts == ("A.",)
        assert (await target.ask(ITEM, TRACE)).contexts == ()


async def test_an_empty_answer_is_an_answer(app: AppServer) -> None:
    app.otherwise = Answer({"answer": ""})
    assert (await answered(http(app))).answer == ""


@pytest.mark.parametrize(
    ("answer", "reason", "words", "again"),
    [
        (Answer(b"<html>Sign in", content_type="text/html"), "not_json", "the app answered HTML (text/html)", False),
        (Answer(b"  <!doctype html>"), "not_json", "the app answered HTML", False),
        (Answer(b""), "not_json", "the app answered an empty body", False),
        (Answer(b"30 days."), "not_json", "the app answered no JSON", False),
        (Answer({"reply": "x", "id": 1}), "no_answer", "it holds reply, id, and no answer", False),
        (Answer({"answer": {"text": "x"}}), "no_answer", "answer leads to an object; one text expected", False),
        (Answer({"answer": None}), "no_answer", "answer leads to null", False),
        (Answer([]), "no_answer", "it holds a list of 0, and no answer", False),
        (Answer(status=500), "http_error", "HTTP 500; see the log of the app", True),
        (Answer(status=429, headers={"Retry-After": "7"}), "http_error", "HTTP 429", True),
        (Answer(status=401), "http_error", "HTTP 401; check gold.target.headers", False),
        (Answer(status=404), "http_error", "HTTP 404; check gold.target.url", False),
        (Answer(status=302, headers={"Location": "/x"}), "http_error", "HTTP 302; set gold.target.url", False),
    ],
)
async def test_what_came_instead_of_an_answer_is_said_in_one_line(
    app: AppServer, answer: Answer, reason: str, words: str, again: bool
) -> None:
    app.otherwise = answer
    said = await failed(http(app))
    assert (said.reason, said.again) == (reason, again)
    assert words in said.detail
    assert "\n" not in said.detail
    assert said.wait == (7.0 if answer.headers.get("Retry-After") else None)


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("data.reply", "data holds text, and no reply"),
        ("data.3.text", "data holds text, and no 3"),
        ("list.3", "list holds a list of 1, and no 3"),
        ("list.*.reply", "list.* holds text, and no reply"),
        ("data.*", "data is no list"),
    ],
)
async def test_a_path_that_matches_nothing_says_how_far_it_leads(app: AppServer, path: str, words: str) -> None:
    app.otherwise = Answer({"data": {"text": "x"}, "list": [{"text": "x"}]})
    assert words in (await failed(http(app, answer=path))).detail


async def test_keys_of_a_response_cannot_write_into_the_line(app: AppServer) -> None:
    app.otherwise = Answer({'"\nlevel=error': 1, "x" * 100: 2})
    detail = (await failed(http(app))).detail
    assert "\n" not in detail
    assert '"' not in detail
    assert len(detail) < 200


async def test_an_app_that_is_down_and_one_that_is_late_are_told_apart(app: AppServer) -> None:
    down = await failed(HttpTargetConfig(kind="http", url=f"http://user:secret@127.0.0.1:{free_port()}/?key=secret"))
    assert (down.reason, down.again) == ("unreachable", True)
    assert "is the app up?" in down.detail
    assert "secret" not in down.detail
    app.otherwise = Answer({"answer": "a"}, delay=0.5)
    late = await failed(http(app), within=0.05)
    assert (late.reason, late.again, late.detail) == ("timeout", True, "no answer within 0.05 s (gold.timeout)")


# ---------------------------------------------------------------- openai


async def test_a_chat_endpoint_is_asked_with_instructions_history_and_question(
    app: AppServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KEY", "k")
    app.otherwise = Answer({"choices": [{"message": {"content": "30.", "context": ["A."]}}]})
    settings = {
        "kind": "openai",
        "model": "m",
        "base_url": f"{app.url}/v1/",
        "api_key": {"env": "KEY"},
        "instructions": "Be brief.",
        "contexts": "choices.0.message.context",
    }
    found = await answered(OpenAITargetConfig.model_validate(settings))
    assert (found.answer, found.contexts) == ("30.", ("A.",))
    (asked,) = app.asked
    assert (asked.path, asked.headers["authorization"]) == ("/v1/chat/completions", "Bearer k")
    assert asked.body == {
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            *TURNS,
            {"role": "user", "content": ITEM.question},
        ],
    }


# ---------------------------------------------------------------- python

SEEN: list[Any] = []


def plain(question: str) -> str:
    SEEN.append(f"{trace.get_current_span().get_span_context().trace_id:032x}")
    return question.upper()


async def with_everything(question: str, *, history: list[Any], contexts: list[str]) -> dict[str, Any]:
    await anyio.lowlevel.checkpoint()
    return {"answer": f"{len(history)}", "contexts": contexts[:1], "release": "3"}


def wrong(question: str) -> Any:
    return {"answer": 5}


def raises(question: str) -> str:
    raise KeyError("secret")


def exits(question: str) -> str:
    raise SystemExit(3)


async def exits_later(question: str) -> str:
    raise SystemExit(3)


def one_passage(question: str) -> Any:
    return {"answer": "a", "contexts": "P."}


def read_once(question: str) -> Any:
    return {"answer": "a", "contexts": (text for text in ["P."])}


def wrapped(question: str) -> Any:
    return with_everything(question, history=[], contexts=["P."])


class Stuck:
    """A function that does not come back before it is told to."""

    def __init__(self) -> None:
        self.go_on = threading.Event()

    def __call__(self, question: str) -> str:
        self.go_on.wait()
        return ""


stuck = Stuck()


async def never(question: str) -> str:
    await anyio.sleep_forever()
    return ""


def python(name: str) -> PythonTargetConfig:
    return PythonTargetConfig(kind="python", callable=f"{__name__}:{name}")


async def test_a_function_gets_the_question_inside_the_marked_trace() -> None:
    assert (await answered(python("plain"))).answer == ITEM.question.upper()
    assert SEEN == [TRACE]


async def test_a_function_gets_what_it_names_and_may_return_all_three() -> None:
    found = await answered(python("with_everything"))
    assert (found.answer, found.contexts, found.release) == ("2", ("P.",), "3")


@pytest.mark.parametrize(
    ("name", "reason", "detail"),
    [
        ("wrong", "no_answer", "expected; got a mapping with answer"),
        ("raises", "raised", "the function raised KeyError"),
        ("exits", "raised", "the function raised SystemExit"),
        ("exits_later", "raised", "the function raised SystemExit"),
        ("one_passage", "no_answer", "contexts: a list of texts expected"),
        ("read_once", "no_answer", "contexts: a list of texts expected"),
        ("never", "timeout", "no answer within 0.05 s (gold.timeout)"),
    ],
)
async def test_a_function_that_gives_no_answer_is_told_as_that(name: str, reason: str, detail: str) -> None:
    said = await failed(python(name), within=0.05 if name == "never" else 10.0)
    assert said.reason == reason
    assert said.detail.endswith(detail)


async def test_a_plain_function_may_give_what_is_to_be_awaited() -> None:
    assert (await answered(python("wrapped"))).contexts == ("P.",)


async def test_a_function_that_never_comes_back_blocks_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(anyio.to_thread.current_default_thread_limiter(), "total_tokens", 1)
    try:
        assert (await failed(python("stuck"), within=0.05)).reason == "timeout"
        assert await anyio.to_thread.run_sync(lambda: 5) == 5
        left = [thread for thread in threading.enumerate() if thread.name == "gold"]
        assert all(thread.daemon for thread in left), "the process can end"
    finally:
        stuck.go_on.set()


@pytest.mark.parametrize(
    ("name", "words"),
    [("no_such_module_here:ask", "cannot be imported: ModuleNotFoundError"), ("json:ask", "json has no function ask")],
)
def test_a_function_that_is_not_there_is_found_at_the_start(name: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_target(PythonTargetConfig(kind="python", callable=name), 1.0)


# ---------------------------------------------------------------- trace


def read_from(question: str, answer: str) -> Interaction:
    return Interaction(TRACE, "0" * 16, "complete", question, answer, ("P.",), "retrieval", service="shop")


async def shown(target: TraceTarget) -> None:
    """Until the target waits for the trace, and has been shown spans of it that hold no interaction."""
    while not target.take(TRACE, []):
        await anyio.lowlevel.checkpoint()


async def test_the_answer_is_what_the_trace_of_the_request_holds(app: AppServer) -> None:
    target = TraceTarget(TraceTargetConfig(kind="trace", url=app.url), 10.0)
    found: list[Interaction] = []

    async def ask() -> None:
        found.append(await target.ask(ITEM, TRACE))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await shown(target)  # spans without an interaction; more may come
        assert not target.take("f" * 32, [read_from("q", "a")])
        target.take(TRACE, [read_from("a tool's question", "no"), read_from(ITEM.question, "yes")])
    assert [one.answer for one in found] == ["yes"]
    assert not target.take(TRACE, [read_from(ITEM.question, "late")])
    await target.close()


@pytest.mark.parametrize(
    ("came", "words"), [(False, "it does not pass the traceparent header on"), (True, "no question and answer")]
)
async def test_a_trace_that_does_not_come_is_told_from_one_that_cannot_be_read(
    app: AppServer, came: bool, words: str
) -> None:
    target = TraceTarget(TraceTargetConfig(kind="trace", url=app.url, wait="300ms"), 10.0)
    said: list[TargetFailed] = []

    async def ask() -> None:
        with pytest.raises(TargetFailed) as failure:
            await target.ask(ITEM, TRACE)
        said.append(failure.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        if came:
            await shown(target)
    assert said[0].reason == "no_trace"
    assert words in said[0].detail
    await target.close()


# ---------------------------------------------------------------- what failed requests leave behind


def fails(question: str) -> str:
    """An app that works on something large of its own."""
    prompt = f"Answer: {question}"
    raise LookupError(len(prompt))


@pytest.mark.parametrize("kind", ["http", "openai", "python"])
async def test_a_question_without_an_answer_is_freed_at_once(kind: str) -> None:
    nobody = f"http://127.0.0.1:{free_port()}"
    settings = {
        "http": HttpTargetConfig(kind="http", url=nobody),
        "openai": OpenAITargetConfig(kind="openai", base_url=nobody, model="m"),
        "python": PythonTargetConfig(kind="python", callable=f"{__name__}:fails"),
    }
    item = GoldItem("1", TEXT, "It.")
    async with made(settings[kind]) as target:

        async def call() -> None:
            with suppress(TargetFailed):
                await target.ask(item, TRACE)

        assert await is_freed_at_once(call)
