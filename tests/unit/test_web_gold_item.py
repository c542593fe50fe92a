"""An answer of the page as an item of a gold set: what the form makes, a gold set can read."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from tests.web_results import SPAN, TRACE, Reply, ask, pages, result
from tracescore.config import WebConfig
from tracescore.config.types import Secret
from tracescore.gold.items import load
from tracescore.model import Message
from tracescore.web.pages import Pages

pytestmark = pytest.mark.anyio

PATH = f"/interactions/{TRACE}/gold"
HOSTILE = '</textarea><script>alert(1)</script>"'


async def filled(**fields: object) -> Pages:
    app = pages()
    await app.export(result(**fields))
    return app


async def send(app: Pages, **fields: str) -> Reply:
    form = re.findall(r'name="form" value="(\w+)"', (await ask(app, PATH, f"span={SPAN}")).body)
    given = {"form": form[0] if form else "", "span": SPAN, "save": "1"} | fields
    return await ask(app, PATH, method="POST", body=urlencode(given).encode())


async def test_the_form_starts_with_the_question_and_the_answer() -> None:
    body = (await ask(await filled(question=HOSTILE, answer="Yes & no."), PATH, f"span={SPAN}")).body
    texts = [unescape(text) for text in re.findall(r"<textarea[^>]*>(.*?)</textarea>", body, re.DOTALL)]
    assert texts == [HOSTILE, "Yes & no."]
    assert "<script>alert" not in body


@pytest.mark.parametrize("suffix", [".jsonl", ".yaml"])
async def test_the_line_of_the_page_is_an_item_that_a_gold_set_reads(suffix: str, tmp_path: Path) -> None:
    app = await filled(history=(Message("user", "Before: ?"), Message("assistant", "#1 - yes")))
    question = 'Can I "return" it:\n- today? # \u00fc \\ {x} \u2028'
    reply = await send(app, question=question, reference="Yes:\r\n1. today", tags="returns, shop,,", id="r-1", show="1")
    shown = (await send(app, question=question, reference="Yes:\r\n1. today", tags="returns, shop,,", id="r-1")).body
    assert reply.status == 200
    line = shown.strip()
    (tmp_path / f"set{suffix}").write_text(line if suffix == ".jsonl" else f"- {line}\n", encoding="utf-8")
    (item,) = load(tmp_path / f"set{suffix}").items
    assert (item.id, item.question, item.reference) == ("r-1", question.strip(), "Yes:\n1. today")
    assert item.tags == ("returns", "shop")
    assert [turn.text for turn in item.history] == ["Before: ?", "#1 - yes"]


async def test_the_line_is_shown_to_copy_or_saved_as_a_file() -> None:
    app = await filled()
    shown, form = await ask(app, PATH, f"span={SPAN}"), ""
    form = re.findall(r'name="form" value="(\w+)"', shown.body)[0]
    given = {"form": form, "span": SPAN, "question": "Q?", "reference": HOSTILE, "show": "1"}
    page = await ask(app, PATH, method="POST", body=urlencode(given).encode())
    line = unescape(re.findall(r'<textarea id="line"[^>]*>(.*?)</textarea>', page.body, re.DOTALL)[0])
    saved = await send(app, question="Q?", reference=HOSTILE)
    assert saved.body == line + "\n"
    assert saved.headers["content-disposition"] == 'attachment; filename="gold-item.jsonl"'
    assert "<script>alert" not in page.body


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"question": " ", "reference": "r"}, 400, "question: a text that is not blank expected"),
        ({"question": "q", "reference": ""}, 400, "reference: a text that is not blank expected"),
        ({"question": "q", "reference": "r", "id": "x" * 129}, 400, "id: at most 128 printable characters expected"),
        ({"question": "q", "reference": "r", "tags": "x" * 65}, 400, "tags: at most 64 characters each expected"),
        ({"question": "q", "reference": "r", "colour": "red"}, 400, "got &#39;colour&#39; too"),
        ({"question": "q", "reference": "r", "form": "another"}, 403, "tracescore restarted meanwhile"),
        ({"question": "q", "reference": "r", "span": "0" * 16}, 404, "none of them is of this trace"),
        ({"question": "q", "reference": "r" * 70_000}, 413, "tracescore does not know this form"),
    ],
)
async def test_what_is_no_item_is_refused_with_what_is_expected(fields: dict[str, str], status: int, said: str) -> None:
    reply = await send(await filled(), **fields)
    assert (reply.status, said in reply.body) == (status, True)


async def test_a_reader_may_make_a_line_and_nobody_unknown_may(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANN", "ann-and-her-token")
    web = WebConfig.model_validate({"users": [{"name": "ann", "role": "reader", "token": {"env": "ANN"}}]})
    assert web.users[0].token == Secret(env="ANN")
    app = pages(web)
    await app.export(result())
    assert (await ask(app, PATH, f"span={SPAN}")).status == 401
    assert (await ask(app, PATH, f"span={SPAN}", authorization="Bearer ann-and-her-token")).status == 200


async def test_the_page_of_an_interaction_leads_to_the_form_where_there_is_something_to_add() -> None:
    link = f'href="/interactions/{TRACE}/gold?span={SPAN}"'
    assert link in (await ask(await filled(), f"/interactions/{TRACE}")).body
    for missing in ({"question": None}, {"question": " "}, {"answer": None}):
        assert link not in (await ask(await filled(**missing), f"/interactions/{TRACE}")).body
