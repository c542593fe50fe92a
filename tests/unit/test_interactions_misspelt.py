"""Spans that say wrongly, or not at all, what they do: never silence, always what to set."""

from __future__ import annotations

import json
import logging

import pytest
from prometheus_client import CollectorRegistry

from tests import otlp, results
from tests.results import SettableClock
from tests.spans import Made, chain, chat, read, span, trace
from tracescore import interactions
from tracescore.assembly import Assembly
from tracescore.config import AssemblyConfig, InteractionsConfig
from tracescore.interactions import MARKERS, Reading, content_switch
from tracescore.interactions.deduplication import Deduplication
from tracescore.interactions.report import Report

Q, A, P = "What does a ticket cost?", "A ticket costs nine crowns.", "Tickets cost nine crowns at the gate."
KIND = "openinference.span.kind"


def reading(*spans: Made) -> Reading:
    return interactions.read(trace(*spans), InteractionsConfig())


@pytest.mark.parametrize(
    ("attributes", "told"),
    [
        ({KIND: "CHIAN"}, f"{KIND} CHIAN is unknown; set CHAIN (or one of LLM,"),
        ({KIND: "Retreiver"}, f"{KIND} Retreiver is unknown; set RETRIEVER"),
        ({KIND: "my own secret words"}, f"{KIND} holds none of its kinds; set one of LLM,"),
        ({KIND: ""}, f"{KIND} holds none of its kinds"),
        (
            {"openinference.span.knd": "CHAIN"},
            f"the key openinference.span.knd is unknown; the kind of a span stands at {KIND}",
        ),
        ({"span.kind": "llm"}, "the key span.kind is unknown"),
        ({"spanKind": "RETRIEVER"}, "the key spanKind is unknown"),
        ({"kind": "of all sorts"}, ""),
        ({}, ""),
    ],
)
def test_a_misspelt_kind_is_named_with_the_right_one(attributes: dict[str, str], told: str):
    got = reading(span("ask", {**attributes, "input.value": Q, "output.value": A}))
    assert got.reason == "no_step"
    assert got.misspelt.startswith(told)
    assert bool(got.misspelt) == bool(told)
    assert "secret" not in got.misspelt


def test_a_misspelt_retriever_is_named_where_contexts_are_missing():
    lost = span("search", {KIND: "RETREIVER", "input.value": Q, "output.value": json.dumps([P])})
    got = reading(chain(Q, A, lost, chat(Q, A)))
    assert [one.state for one in got.interactions] == ["no_contexts"]
    assert "set RETRIEVER" in got.misspelt


def test_nothing_is_named_where_nothing_is_missing():
    found = span("search", {KIND: "RETRIEVER", "input.value": Q, "output.value": json.dumps([P])})
    got = reading(chain(Q, A, found, span("other", {KIND: "CHIAN"}), chat(Q, A)))
    assert [one.state for one in got.interactions] == ["complete"]
    assert got.misspelt == ""


@pytest.mark.parametrize(
    "attributes",
    [
        {"output.value": "[Doc(1), Doc(2)]"},
        {"output.value": "<generator object search at 0x7f2a10>"},
        {"output.value": json.dumps({"ids": ["a"], "distances": [0.2]})},
        {"retrieval.docs.0.content": P},
        {},
    ],
)
def test_a_retriever_whose_documents_cannot_be_read_is_explained(attributes: dict[str, str]):
    [got] = read(trace(chain(Q, A, span("search", {KIND: "RETRIEVER", "input.value": Q, **attributes}), chat(Q, A))))
    assert got.contexts == ()
    told = [line for line in got.found["contexts"].tried if line.startswith("search lists no documents")]
    assert told
    assert "retrieval.documents.N.document.content" in told[0]


@pytest.mark.parametrize("key", ["input.value", "output.value"])
def test_a_trace_with_an_input_or_an_output_is_read(key: str):
    assembly = Assembly(AssemblyConfig(), MARKERS, CollectorRegistry(), SettableClock())
    assembly.take([otlp.raw_span(otlp.span(1, attrs={key: Q}))], [])
    assert len(assembly.flush()) == 1
    assert assembly.unmarked == 0


def report(unmarked: int = 0) -> Report:
    return Report(InteractionsConfig(), CollectorRegistry(), SettableClock(), content_switch, lambda: unmarked)


def test_traces_without_any_marker_are_told_until_one_with_a_marker_comes(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.INFO, "tracescore.interactions")
    told = report(unmarked=3)
    told.say()
    assert [record.levelno for record in caplog.records] == [logging.WARNING]
    assert "no_marker=3" in caplog.messages[0]
    assert "openinference.span.kind" in caplog.messages[0]
    told.tick()
    assert len(caplog.messages) == 1
    told.trace(Reading((), 1, {}), [results.interaction()])
    told.tick()
    assert caplog.messages[1:] == ["genai_spans=1 interactions=1 complete=1"]


def test_the_log_names_a_misspelt_kind(caplog: pytest.LogCaptureFixture):
    told = report()
    told.trace(reading(span("ask", {KIND: "CHIAN", "input.value": Q})), [])
    told.say()
    assert f'no_step=1 advice="{KIND} CHIAN is unknown; set CHAIN' in caplog.text


def test_a_trace_that_is_read_again_counts_once_as_holding_none():
    registry = CollectorRegistry()
    told = Report(InteractionsConfig(), registry, SettableClock(), content_switch)
    known = Deduplication(CollectorRegistry())
    known.resume_read("of-an-earlier-process")
    empty = span("ask", {"input.value": Q})
    for trace_id in ("one", "one", "of-an-earlier-process", "two"):
        made = trace(empty, trace_id=trace_id)
        again = known.has_read(trace_id)
        got = interactions.read(made, InteractionsConfig())
        told.trace(got, known.new(made, got.interactions), again=again)
    assert registry.get_sample_value("tracescore_interactions_none_total", {"reason": "no_step"}) == 2
