"""The page of the gold set: its runs, what changed, and the items that changed sides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.gold_runs import outcome, run, runner, write_set
from tests.unit.test_web_pages import HOSTILE, NEVER_OURS, Reader, flat
from tests.web_results import ask, pages
from tracescore.config import WebConfig
from tracescore.config.types import Secret
from tracescore.gold.runner import GoldRunner
from tracescore.gold.view import items
from tracescore.web.pages import Pages

pytestmark = pytest.mark.anyio

ANSWERS: dict[str, str] = {}


def answer(question: str) -> str:
    return ANSWERS.get(question, question)


def gold(file: Path, release: str) -> GoldRunner:
    ANSWERS.clear()
    return runner(file, {"kind": "python", "callable": "tests.unit.test_web_gold:answer"}, release=release)


def page_of(of: GoldRunner, settings: WebConfig | None = None) -> Pages:
    return pages(settings, gold=of)


async def test_before_the_first_run_the_page_says_so(tmp_path: Path) -> None:
    app = page_of(gold(write_set(tmp_path / "faq.jsonl"), "1"))
    assert "No run yet" in flat(await ask(app, "/gold"))
    assert 'href="/gold"' in (await ask(app)).body


async def two_releases(folder: Path) -> GoldRunner:
    """Three runs of release 1, all right, and one of release 2, in which the first nine items are wrong."""
    file = write_set(folder / "faq.jsonl")
    for _ in range(3):
        await gold(file, "1").run("hand")
    of = gold(file, "2")
    ANSWERS.update({f"q{number}": f"wrong answer {number}" for number in range(9)})
    await of.run("release")
    return of


async def test_the_page_shows_what_dropped_and_the_wrong_items_first_with_their_history(tmp_path: Path) -> None:
    shown = flat(await ask(page_of(await two_releases(tmp_path)), "/gold"))
    assert "Release 2 : 9 items became wrong" in shown
    assert "against 3 pinned runs of release 1" in shown
    assert "factual dropped 1.000 0.250 -0.750" in shown
    assert "9 became wrong, 3 right" in shown
    assert shown.index("became wrong 0.00 q8") < shown.index("right 1.00 q9")
    assert "Answer now wrong answer 4 Answer before q4 Reference q4" in shown
    assert "run 3" in shown
    page = (await ask(page_of(gold(tmp_path / "faq.jsonl", "2")), "/gold")).body
    assert page.count('aria-label="the last 4 runs, oldest first: 1.00, 1.00, 1.00, 0.00"') == 9
    assert page.count('aria-label="the last 4 runs, oldest first: 1.00, 1.00, 1.00, 1.00"') == 3


async def test_any_two_runs_are_compared_by_an_address(tmp_path: Path) -> None:
    app = page_of(await two_releases(tmp_path))
    shown = flat(await ask(app, "/gold", "run=1&against=4"))
    assert "Release 1 : no item is wrong" in shown
    assert "against run 4 of release 2" in shown
    assert "factual rose 0.250 1.000 +0.750" in shown
    assert "9 became right, 3 right" in shown
    assert "against run 1 of release 1" in flat(await ask(app, "/gold", "run=2"))
    first = flat(await ask(app, "/gold", "run=1"))
    assert "12 right" in first
    assert "By chance" not in first


@pytest.mark.parametrize(
    ("query", "why"),
    [
        ("run=9", "got 9; there are 4, 3, 2, 1"),
        ("run=-1", "run: a number from 1 on expected; got '-1'"),
        ("run=1&against=the+last", "against: a number from 1 on expected; got 'the last'"),
        ("page=2", "page: 1 to 1 expected; got 2"),
        ("item=3", "got 'item' too"),
        ("run=%D9%A1", "run: a number from 1 on expected"),
    ],
)
async def test_an_address_that_cannot_be_understood_says_what_is_allowed(tmp_path: Path, query: str, why: str) -> None:
    reply = await ask(page_of(await two_releases(tmp_path)), "/gold", query)
    assert (reply.status, why in flat(reply)) == (400, True), flat(reply)


async def test_items_without_an_answer_or_a_score_say_why(tmp_path: Path) -> None:
    file = write_set(tmp_path / "faq.jsonl")
    of = gold(file, "1")
    ANSWERS.update({"q3": "unscored: judge_timeout", "q4": ""})
    await of.run("hand")
    shown = flat(await ask(page_of(of), "/gold"))
    assert "1 wrong, 1 not scored, 10 right" in shown
    assert "not scored judge timeout q3" in shown
    assert "wrong 0.00 q4" in shown


def test_a_changed_item_is_another_one(tmp_path: Path) -> None:
    before, now = run([1.0], 1), run([0.0], 2, outcomes=(outcome(0, 0.0, mark="other"),))
    (item,) = items(now, before, {("i00", "m"): {1: 1.0}, ("i00", "other"): {2: 0.0}})
    assert (item.state, item.before, list(item.history)) == ("wrong", None, [None, 0.0])


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
