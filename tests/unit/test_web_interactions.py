"""The list of interactions and the page of one: what they show, export, link to, and keep out of the log."""

from __future__ import annotations

import csv
import io
import json
import logging
import re
import time
from html import unescape
from typing import Any, get_args, get_type_hints
from urllib.parse import urlencode

import anyio
import anyio.lowlevel
import httpx2
import pytest

from tests import results
from tests.benchmarks.page import results as results_for_the_page
from tests.results import NOW
from tests.web_results import SPAN, TRACE, Reply, ask, pages, result
from tracescore.config import WebConfig
from tracescore.model import Item, Result, Score, Unscored
from tracescore.net.listener import address_of, bind, serving
from tracescore.web.pages import Pages
from tracescore.web.recent import LONGEST_TEXT

pytestmark = pytest.mark.anyio


def one(number: int, value: float | None = 0.5, **fields: Any) -> Result:
    evaluation = Unscored("faithfulness", "no_contexts") if value is None else Score("faithfulness", value)
    return results.result(evaluation, number=number, **({"ended": NOW - 60 * number} | fields))


async def filled(*kept: Result, **settings: Any) -> Pages:
    app = pages(WebConfig(**settings))
    for each in kept:
        await app.export(each)
    return app


def shown(reply: Reply) -> list[int]:
    """The numbers of the interactions that a list links to, in its order."""
    return [int(each, 16) for each in re.findall(r'<a href="/interactions/([0-9a-f]{32})#', reply.body)]


def text(reply: Reply) -> str:
    return " ".join(unescape(re.sub(r"<[^>]*>", " ", reply.body)).split())


MANY = [
    one(n, (n % 10) / 10, service="shop" if n % 2 else "docs", question=f"Question {n % 7}?") for n in range(1, 121)
]


# ---------------------------------------------------------------- the list


async def test_a_list_shows_what_its_address_asks_for_page_by_page() -> None:
    app = await filled(*MANY)
    first = await ask(app, "/interactions", "service=shop&size=25")
    assert shown(first) == list(range(1, 51, 2))
    assert "60 of 120 interactions" in text(first)
    assert "page 1 of 3" in text(first)
    onward = unescape(re.findall(r'rel="next" href="/interactions\?([^"]*)"', first.body)[0])
    assert shown(await ask(app, "/interactions", onward)) == list(range(51, 101, 2))


async def test_every_link_of_a_list_keeps_the_choice() -> None:
    app = await filled(*MANY)
    body = (await ask(app, "/interactions", "service=shop&q=question&size=25&faithfulness.max=0.9")).body
    links = [unescape(link) for link in re.findall(r'href="(/interactions[.?][^"]*)"', body)]
    kept = [link for link in links if "sort=" in link or "page=" in link or "interactions." in link]
    assert len(kept) >= 4
    assert all("service=shop" in each and "q=question" in each and "faithfulness.max=0.9" in each for each in kept)


async def test_an_address_with_empty_fields_leads_to_the_one_without() -> None:
    app = await filled(*MANY)
    form = {"q": "a b&c", "service": "", "from": "", "faithfulness.min": "", "sort": "", "size": "50", "page": "2"}
    reply = await ask(app, "/interactions", urlencode(form))
    assert (reply.status, reply.headers["location"]) == (303, "/interactions?q=a+b%26c&page=2&size=50")


async def test_a_choice_that_cannot_be_is_answered_with_one_clear_line() -> None:
    app = await filled(*MANY)
    for path in ("/interactions", "/interactions.csv", "/interactions.jsonl"):
        reply = await ask(app, path, "faithfulness.max=2")
        assert reply.status == 400
        assert "faithfulness.max: a number from 0 to 1 expected; got '2'." in text(reply)


async def test_a_page_past_the_end_an_empty_choice_and_an_empty_process_each_say_so() -> None:
    app = await filled(*MANY)
    assert "Page 9 is past the end The last page is 3 ." in text(await ask(app, "/interactions", "page=9"))
    assert "No interaction fits" in text(await ask(app, "/interactions", "q=nowhere"))
    assert "No interaction yet" in text(await ask(pages(), "/interactions"))


async def test_repeated_questions_are_one_row_with_their_number_mean_and_spread() -> None:
    app = await filled(one(1, 0.2, question="Where?"), one(2, 0.6, question="where?"), one(3, 0.9, question="Why?"))
    reply = await ask(app, "/interactions", "group=question")
    assert "2 questions, asked 3 times" in text(reply)
    assert "2\u00d7 0.40 0.20 to 0.60" in text(reply)
    assert shown(reply) == [1, 2, 3]


async def test_the_choices_on_offer_are_what_the_page_keeps_and_what_was_chosen() -> None:
    app = await filled(one(1, slices={"tenant": "acme"}), one(2, service="docs", slices={"tenant": "=evil"}))
    body = (await ask(app, "/interactions", "tenant=gone")).body
    assert re.findall(r'<option(?: selected)?(?: value="[^"]*")?>(acme|=evil|gone)</option>', body) == [
        "gone",
        "=evil",
        "acme",
    ]
    assert "Environment" not in text(await ask(app, "/interactions"))  # there is only one


async def test_scores_below_their_target_are_marked_and_what_has_none_says_why() -> None:
    kept = results.result(Score("completeness", 0.4), Unscored("faithfulness", "no_contexts"))
    body = (await ask(await filled(kept), "/interactions")).body
    assert '<span class="number low">0.40</span>' in body
    assert 'title="no passages found to compare the answer with">no contexts</span>' in body


async def test_others_have_their_turn_while_a_long_list_is_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between any two interactions, where each takes longer than a slice."""
    monkeypatch.setattr("tracescore.runtime.SLICE", 0.0)
    app, turns, over = await filled(*MANY), 0, False

    async def others() -> None:
        nonlocal turns
        while not over:
            turns += 1
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(others)
        await ask(app, "/interactions", "q=question&group=question")
        over = True
    assert turns >= 3 * len(MANY)  # searching, grouping, and what there is to choose


async def test_a_page_of_ten_thousand_interactions_takes_less_than_300_milliseconds() -> None:
    """Of the processor, so that a busy machine does not count; twice that is allowed."""
    app = await filled(*results_for_the_page(10_000, 100), keep=10_000)
    for query in ("", "q=refund", "sort=faithfulness&page=100"):
        began = time.process_time()
        assert (await ask(app, "/interactions", query)).status == 200
        assert time.process_time() - began < 0.6, query


# ---------------------------------------------------------------- files


async def test_a_file_holds_all_rows_of_the_choice_and_not_the_page_alone() -> None:
    app = await filled(*MANY)
    query = "service=shop&size=25&page=2&sort=oldest"
    rows = list(csv.DictReader(io.StringIO((await ask(app, "/interactions.csv", query)).body)))
    lines = [json.loads(line) for line in (await ask(app, "/interactions.jsonl", query)).body.splitlines()]
    expected = list(range(119, 0, -2))
    assert [int(row["trace_id"], 16) for row in rows] == [int(line["trace_id"], 16) for line in lines] == expected
    assert {line["service"] for line in lines} == {"shop"}


async def test_a_file_of_grouped_questions_holds_the_groups() -> None:
    app = await filled(*MANY)
    reply = await ask(app, "/interactions.csv", "group=question")
    assert reply.headers["content-disposition"] == 'attachment; filename="tracescore-questions.csv"'
    rows = list(csv.DictReader(io.StringIO(reply.body)))
    assert sum(int(row["asked"]) for row in rows) == 120
    lines = (await ask(app, "/interactions.jsonl", "group=question")).body.splitlines()
    assert [json.loads(line)["asked"] for line in lines] == [int(row["asked"]) for row in rows]


async def test_a_long_file_comes_over_a_real_connection_whole() -> None:
    app = await filled(*(one(n, answer="\u00e4" * 5_000) for n in range(1, 301)))
    with bind("127.0.0.1:0", "test") as listener:
        url = f"http://{address_of(listener)}"
        async with serving(app, listener), httpx2.AsyncClient() as client:
            reply = await client.get(f"{url}/interactions.jsonl")
            assert len(reply.text.splitlines()) == 300
            assert "content-length" not in reply.headers
            empty = await client.head(f"{url}/interactions.jsonl")
            assert (empty.status_code, empty.content) == (200, b"")


async def test_an_export_is_in_the_log_and_a_search_never_is(caplog: pytest.LogCaptureFixture) -> None:
    """Real requests, every logger at its most talkative: of a search neither words nor the query reach a log."""
    secret = "my-own-name"
    app = await filled(*MANY)
    caplog.set_level(logging.DEBUG)
    with bind("127.0.0.1:0", "test") as listener:
        url = f"http://{address_of(listener)}"
        async with serving(app, listener):
            for path in ("/interactions", "/interactions.csv", "/nowhere", "/api/interactions"):
                await _raw(url, f"{path}?q={secret}&faithfulness.max=7")
                await _raw(url, f"{path}?q={secret}")
    said = [record for record in caplog.records if not record.name.startswith(("httpx", "httpcore", "asyncio"))]
    assert any('what=export kind="csv" rows="0"' in each.getMessage() for each in said)
    assert not [each for each in said if secret in each.getMessage() or "q=" in each.getMessage()]


async def _raw(url: str, target: str) -> bytes:
    host, port = url.removeprefix("http://").split(":")
    async with await anyio.connect_tcp(host, int(port)) as stream:
        await stream.send(f"GET {target} HTTP/1.1\r\nHost: {host}:{port}\r\nConnection: close\r\n\r\n".encode())
        return b"".join([chunk async for chunk in stream])


async def test_a_defect_of_the_page_logs_nothing_of_the_search(monkeypatch, caplog) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("q=my-own-name")

    app = await filled(*MANY)
    monkeypatch.setattr("tracescore.web.listing.read_choice", fail)
    with caplog.at_level(logging.DEBUG):
        assert (await ask(app, "/interactions", "q=my-own-name")).status == 500
    assert "my-own-name" not in caplog.text


# ---------------------------------------------------------------- one interaction

CLAIMS = (
    Item("claim", "You can return items within 30 days of purchase.", "supported", "returned within 30 days", 1.0, 0),
    Item("claim", "The shop pays for the parcel.", "not_found", "", 0.0),
)
PAGE = f"/interactions/{TRACE}"


async def test_claims_are_marked_in_the_answer_and_quotes_in_their_passage() -> None:
    app = await filled(result((Score("faithfulness", 0.5, items=CLAIMS),)))
    body = (await ask(app, PAGE)).body
    assert (
        '<mark class="claim supported">You can return items within 30 days of purchase</mark>'
        '<a class="ref" href="#i1-claim-1" aria-label="supported: claim 1">1</a>.' in body
    )
    assert '<mark class="claim supported">returned within 30 days</mark>' in body
    assert body.count('<mark class="claim not_found">') == 1  # in the key alone
    assert 'id="i1-claim-1"' in body
    assert re.search(r'id="i1-claim-2">.*?not found.*?not word for word in the answer', body, re.DOTALL)


async def test_a_claim_in_other_words_is_listed_and_marked_nowhere() -> None:
    items = (Item("claim", "Returns are possible for a month.", "contradicted", "", 0.0),)
    body = (await ask(await filled(result((Score("faithfulness", 0.0, items=items),))), PAGE)).body
    answer = re.findall(r'<div class="text marked" dir="auto">(.*?)</div>', body, re.DOTALL)[0]
    assert answer == "You can return items within 30 days of purchase."
    assert "No claim stands word for word in the answer" in body


async def test_two_judges_of_one_interaction_have_ids_of_their_own() -> None:
    scored = (Score("faithfulness", 0.5, items=CLAIMS),)
    body = (await ask(await filled(result(scored, judge="a"), result(scored, judge="b")), PAGE)).body
    ids = re.findall(r' id="([^"]*)"', body)
    assert len(ids) == len(set(ids)) == 6 + len(("main", "news"))
    targets = set(re.findall(r'href="#([^"]*)"', body))
    assert targets <= set(ids)


async def test_the_trace_opens_elsewhere_by_the_templates_of_the_configuration() -> None:
    templates = {
        "Jaeger": "https://jaeger.example/trace/{trace_id}?uiFind={span_id}",
        'Tempo "2"': "http://grafana/explore?left=%7B%22a%22:{start}%7D&to={end}&x='\"",
    }
    body = (await ask(await filled(result(start_unix_nano=int((NOW - 3) * 1e9)), trace_links=templates), PAGE)).body
    links = [unescape(link) for link in re.findall(r'<a href="(http[^"]*)" rel="noreferrer noopener"', body)]
    first, last = int((NOW - 3 - 1800) * 1000), int((NOW + 1800) * 1000)
    assert links == [
        f"https://jaeger.example/trace/{TRACE}?uiFind={SPAN}",
        f"http://grafana/explore?left=%7B%22a%22:{first}%7D&to={last}&x='\"",
    ]
    assert "open in <bdi>Tempo &#34;2&#34;</bdi>" in body


async def test_the_page_of_an_interaction_with_the_longest_texts_is_made_in_time() -> None:
    long = "word. " * (LONGEST_TEXT // 6)
    items = tuple(Item("claim", f"word {n}", "supported", f"word word {n}", 1.0, n % 3) for n in range(100))
    app = await filled(result((Score("faithfulness", 1.0, items=items),), answer=long, contexts=(long,) * 3))
    began = anyio.current_time()
    assert (await ask(app, PAGE)).status == 200
    assert anyio.current_time() - began < 1.0


async def test_a_blank_and_a_missing_answer_are_told_apart() -> None:
    assert "Answer blank" in text(await ask(await filled(result((), answer=" ")), PAGE))
    assert "Answer not recorded" in text(await ask(await filled(result((), answer=None)), PAGE))


async def test_an_item_of_any_kind_is_shown_also_without_a_verdict() -> None:
    kinds = get_args(get_type_hints(Item)["kind"])
    items = tuple(Item(kind, f"an item: {kind}") for kind in kinds)
    app = await filled(result((Unscored("context_precision", "judge_incomplete", items=items),)))
    reply = await ask(app, PAGE)
    assert reply.status == 200
    assert all(f"an item: {kind}" in reply.body for kind in kinds)
