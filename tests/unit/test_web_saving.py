"""A trace saved from its page is read by `inspect` as the page shows it, redacted, with a draft of the expectation."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from typer.testing import CliRunner

from tests import otlp
from tests.captures.loading import raw_traces
from tests.results import SettableClock
from tests.web_results import ask, pages
from tracescore.assembly import assemble
from tracescore.cli.main import app
from tracescore.config import InteractionsConfig, RedactionConfig, WebConfig
from tracescore.config.types import Secret
from tracescore.model import Interaction, RawTrace, Result
from tracescore.otlp.files import read_json
from tracescore.pipeline.trace_reader import TraceReader
from tracescore.redaction import Redactor
from tracescore.web import saving
from tracescore.web.saving import Saving

FIELDS = ("span_id", "state", "question", "answer", "contexts", "context_source", "history", "convention")
CAPTURES = ("openai-v2-event", "langgraph-openinference", "openai-v2-nocontent", "own-spans-bold", "dspy-openinference")
"""With log records, JSON in attributes, without content, and plain."""


def redactor(*patterns: str, **custom: str) -> Redactor:
    return Redactor(RedactionConfig.model_validate({"patterns": patterns, "custom": custom}), CollectorRegistry())


def read(raw: RawTrace, by: Redactor) -> list[Interaction]:
    return TraceReader(InteractionsConfig(), redactor=by).interactions(raw)


def saved(raw: RawTrace, by: Redactor, what: str = "trace") -> bytes:
    keeping = Saving(InteractionsConfig(), by.text)
    keeping.keep(raw)
    response = keeping.answer(f"/interactions/{raw.trace_id.hex()}/{what}.json")
    assert response is not None
    name = {"trace": "001.traces", "expected": "expected"}[what]
    (disposition,) = (value for key, value in response.headers if key == "content-disposition")
    assert disposition == f'attachment; filename="trace-{raw.trace_id.hex()[:8]}.{name}.json"'
    return response.body


def fields(of: Interaction) -> dict[str, Any]:
    return {name: getattr(of, name) for name in FIELDS}


@pytest.mark.parametrize("name", CAPTURES)
def test_a_saved_trace_is_read_as_the_page_shows_it(name: str):
    for by in (redactor(), redactor("email", word=r"\b(?:bike|Vellin|parcel|the)\b")):
        for raw in raw_traces(name):
            again = assemble(*read_json(saved(raw, by)))
            assert list(map(fields, read(again, redactor()))) == list(map(fields, read(raw, by)))


def test_inspect_reads_the_saved_file_and_the_draft_says_the_same(tmp_path: Path):
    raw = raw_traces("openai-v2-event")[0]
    by = redactor(word="bike")
    file = tmp_path / "trace.001.traces.json"
    file.write_bytes(saved(raw, by))
    done = CliRunner().invoke(app, ["inspect", "--explain", str(file)])
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    draft = json.loads(saved(raw, by, "expected"))
    assert draft["files"] == [f"trace-{raw.trace_id.hex()[:8]}.001.traces.json"]
    assert len(rows) == len(draft["interactions"]) > 0
    for row, wanted in zip(rows, draft["interactions"], strict=True):
        same = ("trace_id", "question", "answer", "state", "context_source")
        assert {key: row[key] for key in same} == {key: wanted[key] for key in same}
        assert wanted["root_span_id"] == row["span_id"]
        assert (wanted["contexts"] or wanted.get("contexts_in_prompt") or []) == row["contexts"]
        place = row["found"]["question"]
        assert wanted["found_at"]["question"] == [f"{place['span']} @ {place['key']}"]


@pytest.mark.anyio
@pytest.mark.parametrize("token", [None, "secret"])
async def test_the_page_of_an_interaction_leads_to_its_trace_and_asks_whoever_it_asks(
    token: str | None, tmp_path: Path
):
    raw = raw_traces("openai-v2-nocontent")[0]
    (told,) = read(raw, redactor())
    keeping = Saving(InteractionsConfig(), str)
    (tmp_path / "token").write_text(token or "")
    settings = WebConfig(token=Secret(file=str(tmp_path / "token")) if token else None)
    shown = pages(settings, saving=keeping)
    await shown.export(Result(told, (), "embedded-v2"))
    known: dict[str, Any] = {"authorization": f"Bearer {token}"} if token else {}
    address = f"/interactions/{told.trace_id}"
    assert f"{address}/trace.json" not in (await ask(shown, address, **known)).body
    keeping.keep(raw)
    page = await ask(shown, address, **known)
    for file in (f"{address}/trace.json", f"{address}/expected.json"):
        assert f'href="{file}"' in page.body
        assert (await ask(shown, file, **known)).status == 200
        assert (await ask(shown, file)).status == (401 if token else 200)
        assert (await ask(shown, file, method="POST", **known)).status == 405


@pytest.mark.parametrize("what", ["trace", "expected"])
def test_nothing_that_redaction_takes_out_is_in_the_files(what: str):
    raw = raw_traces("langgraph-openinference")[0]
    texts = saved(raw, redactor(), what).decode()
    asked = " ".join(one.question or "" for one in read(raw, redactor()))
    word = max(re.findall(r"[a-z]{6,}", asked), key=len)
    assert word in texts
    assert word not in saved(raw, redactor(word=word), what).decode()


def test_a_number_that_is_a_card_is_taken_out_and_leaves_json_behind():
    paid = '{"card": 4111111111111111, "n": 7, "ok": true}'
    raw = RawTrace(otlp.trace_id(1), (otlp.raw_span(otlp.span(1, attrs={"output.value": paid})),), (), "complete")
    (attribute,) = TraceReader(InteractionsConfig()).read(assemble(*read_json(saved(raw, redactor("card")))))[0].spans
    assert attribute.attributes["output.value"] == '{"card":"[card]","n":7,"ok":true}'


@pytest.mark.parametrize("path", ["trace.json", "other.json", "trace.json/"])
def test_what_is_not_kept_is_not_there(path: str):
    assert Saving(InteractionsConfig(), str).answer(f"/interactions/{'ab' * 16}/{path}") is None


def test_no_more_is_kept_than_fits(monkeypatch: pytest.MonkeyPatch):
    raws = [*raw_traces("openai-v2-event"), *raw_traces("openai-v2-span")]
    keeping = Saving(InteractionsConfig(), str)
    for raw in (*raws, *raws):
        keeping.keep(raw)
    assert all(keeping.has(raw.trace_id.hex()) for raw in raws)
    monkeypatch.setattr(saving, "_MOST", 1)
    keeping.keep(raws[0])
    assert not any(keeping.has(raw.trace_id.hex()) for raw in raws)


def test_a_trace_that_is_older_than_the_page_keeps_is_not_there_and_leaves_when_a_new_one_comes() -> None:
    clock = SettableClock()
    old, new = (assemble([otlp.raw_span(otlp.span(1, trace=trace))], []) for trace in (1, 2))
    keeping = Saving(InteractionsConfig(), str, age=60.0, clock=clock)
    keeping.keep(old)
    path = f"/interactions/{old.trace_id.hex()}/trace.json"
    clock.now += 59
    assert keeping.has(old.trace_id.hex())
    assert keeping.answer(path) is not None
    clock.now += 1
    assert not keeping.has(old.trace_id.hex())
    assert keeping.answer(path) is None
    keeping.keep(new)
    assert keeping.forget([old.trace_id.hex()]) == 0
    assert keeping.has(new.trace_id.hex())
