"""The page of the gold set: its runs, what changed, and the items that changed sides."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.gold_runs import runner, write_set
from tests.unit.test_web_pages import HOSTILE, NEVER_OURS, Reader, flat
from tests.web_results import ask, pages
from tracescore.config import WebConfig
from tracescore.config.types import Secret
from tracescore.gold.runner import GoldRunner
from tracescore.gold.view import view
from tracescore.web.pages import Pages

pytestmark = pytest.mark.anyio

ANSWERS: dict[str, str] = {}


def answer(question: str) -> str:
    return ANSWERS.get(question, question)


def gold(file: Path, release: str) -> GoldRunner:
    ANSWERS.clear()
    return runner(file, {"kind": "python", "callable": "tests.unit.test_web_gold:answer"}, release=release)


def page_of(of: GoldRunner, settings: WebConfig | None = None) -> Pages:
    return pages(settings, gold=partial(view, of))


async def test_before_the_first_run_the_page_says_so(tmp_path: Path) -> None:
    app = page_of(gold(write_set(tmp_path / "faq.jsonl"), "1"))
    assert "No good run yet" in flat(await ask(app, "/gold"))
    assert 'href="/gold"' in (await ask(app)).body


async def test_the_page_shows_what_fell_and_the_items_behind_it(tmp_path: Path) -> None:
    file = write_set(tmp_path / "faq.jsonl")
    await gold(file, "1").run("hand")
    of = gold(file, "2")
    ANSWERS.update({f"q{number}": f"wrong answer {number}" for number in range(9)})
    await of.run("release")
    shown = flat(await ask(page_of(of), "/gold"))
    assert "9 became wrong, 0 became right" in shown
    assert "factual 1.000 0.250 -0.750" in shown
    assert "1.00 → 0.00 q4" in shown
    assert "wrong answer 4" in shown
    assert "release 2 done" in shown
    assert "hand 1 pinned done" in shown


@pytest.mark.parametrize("hostile", [text for text in HOSTILE if text.isprintable()])
async def test_text_of_others_stays_text(tmp_path: Path, hostile: str) -> None:
    file = write_set(tmp_path / "faq.jsonl", 1, tags=[hostile])
    await gold(file, "1").run("hand")
    of = gold(file, hostile)
    ANSWERS["q0"] = hostile
    await of.run("hand")
    reply = await ask(page_of(of), "/gold")
    read = Reader(reply.body)
    assert reply.status == 200
    assert not NEVER_OURS & set(read.tags)
    assert not [name for name, _ in read.attributes if name.startswith("on")]
    assert " ".join(hostile.split()) in flat(reply)


async def test_without_a_gold_set_there_is_no_such_page() -> None:
    assert (await ask(pages(), "/gold")).status == 404
    assert "/gold" not in (await ask(pages())).body


async def test_the_page_needs_the_token_and_a_login_leads_back_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0ken")
    settings = WebConfig(listen="0.0.0.0:9465", token=Secret(env="TOKEN"))
    app = page_of(gold(write_set(tmp_path / "faq.jsonl"), "1"), settings)
    asked = await ask(app, "/gold")
    assert (asked.status, "faq" in asked.body) == (401, False)
    assert 'value="/gold"' in asked.body
    led = await ask(app, "/login", "token=t0ken&next=/gold")
    assert (led.status, led.headers["location"]) == (303, "/gold")
