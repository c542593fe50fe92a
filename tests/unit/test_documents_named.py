"""Each passage has the id or URI that its span gave, and each supported claim names it."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry

from tests.captures.loading import traces
from tests.scripted import ScriptedSession, interaction
from tracescore.config import InteractionsConfig, RedactionConfig
from tracescore.evaluators.context_precision import ContextPrecision
from tracescore.evaluators.faithfulness import Faithfulness
from tracescore.exporters.otlp.messages import explanation
from tracescore.interactions.documents import id_of, passages
from tracescore.interactions.reader import read
from tracescore.judge.operations import Vocabulary
from tracescore.model import Result, Score
from tracescore.redaction import Redactor
from tracescore.spool.codec import brief


@pytest.mark.parametrize(
    ("name", "first"),
    [
        ("openai-openinference", "lost-key"),
        ("genai-openai-span", "lost-key"),
        ("openai-v2-event", "lost-key"),
        ("openai-v2-legacy-logs", "lost-key"),
        ("util-genai-workflow", "lost-key"),
        ("langchain-openinference", "lost-key"),
        ("langfuse5-observe", "lost-key"),
        ("mlflow-otlp", "lost-key"),
        ("langsmith-otel", "helmets"),
        ("traceloop-langchain", "helmets"),
        ("haystack2-otel", "deposit"),
        ("llamaindex-native-otel", "61fa38ed-1c1b-46fe-8688-46ece24fd3d5"),
        ("llamaindex-openinference", "72ac627c-4e9d-4d2d-89b0-f3b10cd38cc2"),
        ("bedrock-retrieve-and-generate", "s3://b/0"),
    ],
)
def test_documents_are_named_as_each_convention_records_them(name: str, first: str) -> None:
    found = [told for trace in traces(name) for told in read(trace, InteractionsConfig()).interactions]
    named = [told for told in found if told.documents]
    assert any(told.documents[0] == first for told in named)
    assert all(len(told.documents) == len(told.contexts) for told in named)


TEXT = "Parcels cost 4 euros."


@pytest.mark.parametrize(
    ("document", "name"),
    [
        ({"id": "fees", "content": TEXT}, "fees"),
        ({"id": 7, "content": TEXT}, "7"),
        ({"id": 0, "content": TEXT}, "0"),
        ({"node": {"id_": "n1", "text": TEXT}, "score": 0.5}, "n1"),
        ({"node_id": "n2", "text": TEXT, "score": 0.5}, "n2"),
        ({"page_content": TEXT, "metadata": {"source": "fees.md"}}, "fees.md"),
        ({"page_content": TEXT, "metadata": {"source": "fees.md", "doc_id": "d"}}, "d"),
        ({"page_content": TEXT, "id": None, "metadata": {"url": "https://a/fees"}}, "https://a/fees"),
        ({"content": TEXT, "metadata": json.dumps({"file_name": "fees.pdf"})}, "fees.pdf"),
        ({"id": ["langchain", "schema", "Document"], "kwargs": {"page_content": TEXT, "metadata": {"id": "x"}}}, "x"),
        ({"content": {"text": TEXT}, "location": {"s3Location": {"uri": "s3://b/fees"}}, "score": 1}, "s3://b/fees"),
        ({"id": "a" * 300, "content": TEXT}, "a" * 200),
        ({"id": "two\nlines", "content": TEXT}, "two lines"),
        ({"id": True, "content": TEXT}, ""),
        ({"id": "", "content": TEXT}, ""),
        ({"content": TEXT, "score": 0.5}, ""),
        (TEXT, ""),
    ],
)
def test_a_document_has_one_name_of_bounded_length_its_id_before_its_place(document: object, name: str) -> None:
    assert id_of(document) == name


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda x: st.dictionaries(st.sampled_from(["id", "metadata", "source", "node"]), x),
    )
)
def test_whatever_was_recorded_gives_one_line_of_at_most_200_characters(document: object) -> None:
    found = id_of(document)
    assert len(found) <= 200
    assert "\n" not in found


def test_texts_keep_their_names_whatever_is_left_out_between_them() -> None:
    found = passages(
        [{"id": "a", "content": TEXT}, {"id": "b", "content": " "}, {"id": "c", "content": "Free above 40."}]
    )
    assert found is not None
    assert (found.texts, [found.ids.get(text) for text in found.texts]) == ((TEXT, "Free above 40."), ["a", "c"])


ASKED = interaction(contexts=("Fees.", "shows supported"), documents=("fees.md", "mail to ann@example.org"))


@pytest.mark.anyio
async def test_a_supported_claim_and_a_judged_passage_name_their_document() -> None:
    session = ScriptedSession(
        questions=["Q?"],
        claims={"A.": ["It costs 4."]},
        verdicts={Vocabulary.SUPPORT: ["supported"], Vocabulary.USEFULNESS: ["useful", "not_useful"]},
    )
    claimed = await Faithfulness(3).evaluate(ASKED, session)
    ranked = await ContextPrecision().evaluate(ASKED, session)
    assert isinstance(claimed, Score)
    assert isinstance(ranked, Score)
    assert [(item.passage, item.document) for item in claimed.items] == [(1, "mail to ann@example.org")]
    assert [item.document for item in ranked.items] == list(ASKED.documents)
    assert explanation(claimed.items).endswith("(passage 2: mail to ann@example.org)")
    assert "(fees.md)" in explanation(ranked.items)


def test_names_are_redacted_like_texts_and_leave_with_them() -> None:
    redactor = Redactor(RedactionConfig.model_validate({"patterns": ["email"]}), CollectorRegistry())
    assert redactor.interaction(ASKED).documents == ("fees.md", "mail to [email]")
    assert brief(Result(ASKED, (), "j")).interaction.documents == ()
