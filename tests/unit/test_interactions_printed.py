"""Whole texts that a program printed are no question, answer or passage; texts of people that look alike are."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.costs import grows_in_step
from tests.spans import Made, chain, chat, read, retrieval, span, trace
from tracescore.interactions import printed
from tracescore.model import Interaction

Q, A, P = "What does a ticket cost?", "A ticket costs nine crowns.", "Tickets cost nine crowns at the gate."

NEVER = (
    "[Doc(1), Doc(2)]",
    "[Document(a), Document(b)]",
    "[Node(id=4), Node(id=7)]",
    "[<Doc 1>, <Doc 2>]",
    "<Document: tickets.md>",
    "<Response [200]>",
    "<coroutine object Agent.run at 0x7f2a10b3c4d0>",
    "<async_generator object stream at 0x7f2a10b3c4d0>",
    "<coroutine Agent.run>",
    "<Task pending name='Task-3' coro=<run() running at /app/main.py:12>>",
    "<Future pending>",
    "<Future at 0x7f11 state=pending>",
    "<function <lambda> at 0x7f2a10b3c4d0>",
    "<bound method Agent.run of Agent(name='desk')>",
    "functools.partial(<function ask at 0x7f2a10b3c4d0>, top_k=3)",
    "array([0.12, 0.45, 0.91])",
    "[0.0123 0.4512 -0.3321 0.9981]",
    "[[0.0123 0.4512]\n [0.3321 0.9981]]",
    "array([1, 2, 3], dtype=int64)",
    "np.float64(0.8812)",
    "[np.float32(0.1), np.float32(0.2)]",
    "tensor([[0.1234, 0.5678]])",
    "tensor([[ 101, 2054]], device='cuda:0')",
    "tensor([[ 101, 2054,  ..., 0, 0]])",
    "   id  score\n0   1   0.91\n1   2   0.88\n\n[2 rows x 2 columns]",
    "   id                 text\n0   1  Evening tickets cost\n1   2  Day tickets cost",
    "0    0.91\n1    0.88\nName: score, dtype: float64",
    "Dataset({\n    features: ['text', 'id'],\n    num_rows: 2\n})",
    'id: "a1"\nscore: 0.91\npayload {\n  key: "page"\n  value {\n    integer_value: 3\n  }\n}',
    'candidates {\n  content {\n    role: "model"\n  }\n  finish_reason: STOP\n}',
    "[HumanMessage(content='', additional_kwargs={}), AIMessage(content='', tool_calls=[])]",
    "Command(goto='agent')",
    "Send(node='worker', arg={})",
    "{1, 2, 3}",
    "OrderedDict([('id', 1), ('score', 0.5)])",
    "Counter({'a': 2})",
    "Row(id=1, score=0.5)",
    "<State.DONE: 2>",
    "State.DONE",
    "3f2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b",
    "UUID('3f2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b')",
    "3f2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b, 8a2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b",
    '["3f2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b", "8a2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b"]',
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "d41d8cd98f00b204e9800998ecf8427e",
    "da39a3ee5e6b4b0d3255bfef95601890afd80709",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
    "[17, 42, 108]",
    "01ARZ3NDEKTSV4RRFFQ69G5FAV",
    "507f1f77bcf86cd799439011",
    "run-3f2b8c1e9d4a4b7e8c210a9f6e5d4c3b",
    "thread_abc123DEF456ghi789JKL012",
    "SGVsbG8gd29ybGQsIHRoaXMgaXMgYmFzZTY0IHRleHQ=",
    "data:application/json;base64,eyJhIjoxfQ==",
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAUA",
    "b'\\x80\\x04\\x95\\x1a\\x00'",
    "PosixPath('/srv/app/q.json')",
    "<state><step>retrieve</step><id>12</id></state>",
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
    "0x7f2a10b3c4d0",
    "deque([1, 2], maxlen=5)",
    "<MagicMock name='mock.run()' id='140123'>",
    "dict_values([1, 2])",
    "<module 'app' from '/srv/app/app.py'>",
    "<zip object at 0x7f2a10b3c4d0>",
    "nan",
    "Timestamp('2024-05-01 00:00:00')",
    "id='a1' score=0.5 metadata={}",
    "Answer(id=3, tokens=[1, 2])",
    "<app.models.Answer object>",
    "[object Object]",
    "[object Object],[object Object]",
    "Promise { <pending> }",
    'a:2:{i:0;s:1:"a";i:1;s:1:"b";}',
    "com.acme.Question@4f2a10b3",
    "[com.acme.Doc@4f2a10b3, com.acme.Doc@5f2a10b3]",
    "&{ID:12 Score:0.5 Tags:[]}",
    "map[id:12 score:0.5]",
    "Document { id: 12, score: 0.5 }",
    "System.Collections.Generic.List`1[System.String]",
    "System.Threading.Tasks.Task`1[System.String]",
    "#<Document:0x000055d5 id=1>",
    "Document { pageContent: '', metadata: {} }",
    "#object[Document 0x4f2a10b3]",
)
"""Neither asked, nor answered, nor evidence."""
UNSAID = (
    "17, 42, 108",
    "1738291",
    "/srv/app/data/questions/2024-05.json",
    "C:\\Users\\app\\questions.txt",
    "s3://bucket/key/questions.json",
    "file:///srv/app/q.json",
    "2024-05-01T10:00:00Z",
    "True",
    "range(0, 5)",
)
"""Neither asked nor evidence, but an answer."""
ASKED = (
    "2+2=?",
    "17*23?",
    "/help",
    "<div> vs <span>: which one?",
    "What is UUID v4?",
    "map[string]int in Go?",
    "Why does <Response [200]> print?",
    "3f2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b: where is this order?",
    "RTX4090-24GB-OC",
    "HttpClientFactory2Builder",
    "Donaudampfschifffahrtsgesellschaftskapitän",
    "README.md",
    "https://example.com/x/y",
    "[urgent] my ticket",
    "(help)",
    "tickets?",
    "#help",
    "Document { id } in Rust: how?",
    "range(0, 5) in Python?",
    "10:30?",
    "Ticket 1738291",
    "A4 vs A5",
    "Node.js",
    "[1] what does source 1 say?",
    "2024-05-01?",
    "10115 Berlin",
    "你好",
    "42?",
    "C:\\Users\\app: permission denied",
    "/etc/hosts not found",
    "What is <b>bold</b>?",
    "<Document 1> is what?",
    "Tensor([1,2]) why",
    "Name: Ada, dtype: how do I drop it?",
    'id: "a1" where is it?',
    "Ticket { open }?",
    "SELECT 1",
    "np.array vs list",
    "State.DONE means what?",
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855 is what hash?",
    "Is it true?",
    "True or false: tickets cost nine crowns",
    "Iron(III) oxide",
)
ANSWERED = (
    "42",
    "3.14",
    "1,200",
    "2024-05-01",
    "True",
    "Yes",
    "/etc/nginx/nginx.conf",
    "s3://bucket/key.csv",
    "[1]: Evening tickets cost nine crowns",
    "<p>Evening tickets cost nine crowns.</p>",
    "<ul><li>Monday</li><li>Tuesday</li></ul>",
    "**42**",
    "1. Monday\n2. Tuesday",
    "Iron(III)",
    "(1) Monday (2) Tuesday",
    "f(x) = 2x",
    "for i in range(5): print(i)",
    "range(0, 5)",
    "map(str, xs)",
    "server {\n  listen 80;\n}",
    'price: "9 crowns"\nday: "Friday"',
    "DE89370400440532013000",
    "Order 3f2b8c1e-9d4a-4b7e-8c21-0a9f6e5d4c3b",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "  Monday\n  Tuesday",
    "0 tickets",
    "9",
    "Math.PI",
    "ASP.NET",
    "Use Document { id: 1 } here",
    "HttpClientFactory2Builder",
    "https://example.com",
    "<answer>Evening tickets cost nine crowns in total</answer>",
    "17, 42, 108",
    "10:30",
    "9-5",
    "+49 30 1234567",
    "Nan",
    "0",
    "x = [1, 2, 3]",
    "10-20 crowns",
    "{x | x > 0}",
    "Monday: 9\nFriday: 10",
    "The frame has [2 rows x 2 columns]",
)
FOUND = (
    "Evening: 9",
    "[1] Evening tickets cost nine.",
    "12.5 | 13.0",
    "+49 30 1234567",
    "Monday 9-5",
    "<p>Evening tickets cost nine crowns.</p>",
    "<table><tr><td>Mon</td><td>9</td></tr></table>",
    "server {\n  listen 80;\n}",
    "A: yes",
    "Iron(III)",
    "  indented text\n  more text",
    "def f(x):\n    return x",
    "Ticket prices: [9, 10, 12]",
    "README.md",
    "Order 507f1f77bcf86cd799439011 was sent",
)


def only(*spans: Made) -> Interaction:
    [got] = read(trace(*spans))
    return got


def searched(**attributes: str) -> Made:
    return span("search", {"openinference.span.kind": "RETRIEVER", "input.value": Q, **attributes})


@pytest.mark.parametrize("text", [*NEVER, *UNSAID])
def test_what_a_program_printed_is_no_question(text: str):
    assert only(chain(text, A, retrieval(Q, P), chat(Q, A))).question == Q
    assert not any(one.question for one in read(trace(chain(text, A))))


@pytest.mark.parametrize("text", NEVER)
def test_what_a_program_printed_is_no_answer(text: str):
    assert only(chain(Q, text, retrieval(Q, P), chat(Q, A))).answer == A
    assert not any(one.answer for one in read(trace(chain(Q, text))))


@pytest.mark.parametrize("text", [*NEVER, *UNSAID])
def test_what_a_program_printed_is_no_passage(text: str):
    for search in (
        searched(**{"output.value": text}),
        searched(**{"output.value": json.dumps([text, text + " "])}),
        searched(**{"retrieval.documents.0.document.content": text}),
    ):
        assert only(chain(Q, A, search, chat(Q, A))).contexts == ()


@pytest.mark.parametrize("text", ASKED)
def test_what_looks_alike_is_a_question(text: str):
    assert only(chain(text, A, retrieval(Q, P), chat(Q, A))).question == text


@pytest.mark.parametrize("text", [*ANSWERED, *UNSAID])
def test_what_looks_alike_is_an_answer(text: str):
    assert only(chain(Q, text, retrieval(Q, P), chat(Q, A))).answer == text


@pytest.mark.parametrize("text", FOUND)
def test_what_looks_alike_is_a_passage(text: str):
    for search in (
        searched(**{"retrieval.documents.0.document.content": text}),
        searched(**{"output.value": json.dumps([text])}),
    ):
        assert only(chain(Q, A, search, chat(Q, A))).contexts == (text,)


@pytest.mark.parametrize("text", [text for text in (*NEVER, *UNSAID) if not text.startswith("data:")])
def test_what_a_person_or_a_model_says_is_never_held_to_be_printed(text: str):
    got = only(chat(text, text))
    assert (got.question, got.answer) == (text.strip(), text)


PARTS = (
    *("[1 2 3] ", "<Doc 1> ", "a: 1\n{\n", "  x\n0  1\n", "map[a:1 ", "3f2b8c1e-", "Doc { a: ", "<a><b></b>", "1, "),
    *("np.float32(1) ", "[com.acme.Doc@4f2a10b3, ", "[<Doc 1>, ", "{ID:1 ", "/a", "0x7f", "#<Doc ", "A.", "Doc({a"),
    *("array([1, ", "],", "\ndtype: x ", "\n[1 rows x 1 columns] ", '"', "aA1", "e:"),
)


def test_a_hostile_text_costs_as_much_per_character_however_long_it_is():
    def reading(size: int) -> Any:
        repeated = [(part * size)[:size] for part in PARTS]
        texts = [begun + text + end for text in repeated for begun in ("", "[", "<A ") for end in ("", "x", "]", "}")]
        return lambda: [printed.printed(text, "question") for text in texts]

    assert grows_in_step(reading, 4_000)
