"""What the page shows, and that nothing in it can act."""

from __future__ import annotations

import re
from html import unescape
from html.parser import HTMLParser

import httpx2
import pytest

from tests.web_results import SPAN, TRACE, Reply, ask, evaluations, pages, result, watched_pages
from tracescore.exporters.prometheus.label_values import label_value
from tracescore.interactions import content_switch
from tracescore.model import (
    FAIL_REASONS,
    MEASURES,
    SHED_REASONS,
    SKIP_REASONS,
    STATES,
    Found,
    Item,
    Message,
    Score,
    Unscored,
)
from tracescore.net.listener import address_of, bind, serving
from tracescore.pipeline.ledger import Snapshot
from tracescore.web import glossary
from tracescore.web.pages import STATUSES

pytestmark = pytest.mark.anyio

HOSTILE = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '"><svg onload=alert(1)>',
    "' onmouseover='alert(1)",
    "{{ 7 * 191 }}",
    "{% include 'login.html' %}",
    "</textarea></details></main><h6>owned</h6>",
    "javascript:alert(1)",
    "\ud800 lone surrogate",
    "\x00\x1b[31m",
)
NEVER_OURS = {"script", "h6", "iframe", "object", "embed", "style", "textarea"}


OWN_SCRIPT = '<script src="/page.js" defer></script>'


class Reader(HTMLParser):
    """Every tag and attribute of a page but those of the one script, and its text."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(html.replace(OWN_SCRIPT, "", 1))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += " " + data


def flat(reply: Reply) -> str:
    return " ".join(Reader(reply.body).text.split())


@pytest.mark.parametrize("hostile", HOSTILE)
@pytest.mark.parametrize(
    "path", ["/", "/services/", "/drift", "/interactions", "/interactions?group=question", f"/interactions/{TRACE}"]
)
async def test_text_of_users_stays_text_wherever_it_is_shown(hostile: str, path: str) -> None:
    app, watch = watched_pages()
    items = (Item("claim", hostile, "contradicted", hostile, 0.0, 0),)
    evaluated = (
        Score("answer_relevancy", 0.1, hostile, items),
        Score("faithfulness", 0.1, hostile, items),
        Unscored("completeness", "no_parts", hostile),
    )
    told = dict.fromkeys(("question", "answer", "service", "release", "environment", "convention"), hostile)
    shown = result(
        evaluated,
        judge=hostile,
        contexts=(hostile,),
        history=(Message("user", hostile),),
        slices={"route": hostile},
        reference=hostile,
        **told,
    )
    for exporter in (app, app.history, watch):
        await exporter.export(shown)
    safe = label_value(hostile)
    address, _, query = path.partition("?")
    page = Reader((await ask(app, address + safe if path == "/services/" else address, query)).body)
    assert not NEVER_OURS & set(page.tags)
    assert page.tags.count("img") == 1
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    links = [value or "" for name, value in page.attributes if name in {"href", "src", "action"}]
    assert all(link.startswith(("/", "#")) and not link.startswith("//") for link in links)
    assert hostile.encode(errors="replace").decode().split()[0].strip("\x00") in page.text.replace("\x00", "") or (
        safe.split()[0] in page.text
    )
    assert "1337" not in page.text


async def test_every_response_forbids_other_scripts_frames_guessing_referrers_and_caches() -> None:
    app = pages()
    for path in ("/", f"/interactions/{TRACE}", "/nowhere", "/style.css", "/login"):
        headers = (await ask(app, path)).headers
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self';"), path
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


async def test_pages_hold_one_script_no_inline_style_and_nothing_from_elsewhere() -> None:
    app = pages()
    await app.export(result())
    for path in ("/", f"/interactions/{TRACE}", "/nowhere"):
        body = (await ask(app, path)).body
        assert body.count(OWN_SCRIPT) == 1
        body = body.replace(OWN_SCRIPT, "")
        assert not re.search(r"<script|style=|https?://(?!127\.0\.0\.1)", body), path


async def test_the_ledger_shows_the_very_numbers_of_the_snapshot() -> None:
    page = flat(await ask(pages()))
    assert "Answer relevancy 6,907 298 0 0 19 298 unscored: needs_history" in page
    assert "Completeness 6,811 390 0 0 23 331 unscored: needs_history" in page
    assert "59 unscored: no_parts" in page
    assert "Faithfulness 6,503 463 211 18 29 463 unscored: no_claims" in page
    assert "211 skipped: no_contexts" in page
    assert "18 shed: queue_full" in page
    assert "Interactions read: 7,224 7,013 complete question, answer and passages found 211 no_contexts" in page


async def test_before_anything_came_the_page_says_where_to_send_it() -> None:
    page = flat(await ask(pages(ledger=Snapshot())))
    assert "Send the first span" in page
    assert "ENDPOINT=http://127.0.0.1:14317 export OTEL_EXPORTER_OTLP_PROTOCOL=grpc" in page
    assert "ENDPOINT=http://127.0.0.1:14318 export OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf" in page


async def test_spans_without_an_interaction_are_not_called_nothing() -> None:
    page = flat(await ask(pages(ledger=Snapshot(spans=1234))))
    assert "Your app sends spans done, 1,234 received" in page
    assert "Send the first span" not in page


async def test_switches_are_named_for_the_conventions_that_record_no_content_and_for_no_others() -> None:
    app = pages(ledger=Snapshot(1, {"complete": 3, "content_not_captured": 7}, {}))
    await app.export(result(convention="openinference"))
    for number, convention in enumerate(("otel-genai", "haystack", "haystack")):
        silent = {"state": "content_not_captured", "question": None, "answer": None, "convention": convention}
        await app.export(result((), span_id=f"{number:016x}", **silent))
    page = flat(await ask(app))
    assert "7 of 10 interactions carry no texts" in page
    assert page.count(content_switch("haystack")) == page.count(content_switch("otel-genai")) == 1
    assert content_switch("openinference") not in page


async def test_without_a_silent_convention_among_the_results_kept_the_log_is_referred_to() -> None:
    page = flat(await ask(pages(ledger=Snapshot(1, {"complete": 3, "content_not_captured": 7}, {}))))
    assert "by the setting of its instrumentation; the log names it." in page


async def test_nothing_is_said_of_switches_while_all_content_is_recorded() -> None:
    page = flat(await ask(pages(ledger=Snapshot(1, {"complete": 3, "content_not_captured": 0}, {}))))
    assert "came without their texts" not in page


async def test_an_interaction_shows_the_evidence_behind_each_score() -> None:
    app = pages()
    await app.export(result(history=(Message("user", "Hello there"),), weight=4.0))
    reply = await ask(app, f"/interactions/{TRACE}")
    page = flat(reply)
    for shown in (
        "What is the return window, and does it cover opened items?",
        "You can return items within 30 days of purchase.",
        "Opened items can be returned for store credit.",
        "Hello there",
        "Answer relevancy 0.81 0.81 generated How long can I return items?",
        "Completeness 0.50 1.00 covered What is the return window? within 30 days 0.00 missing Does it cover opened",
        "counting partly covered parts as missing: 0.5",
        "Faithfulness no score unscored: judge_incomplete",
        "it lies within 0.25 to 0.75",
        f"Span {SPAN}",
        "Question input.value of span ask",
        "Judge embedded-v2 epoch 0",
        "Calls 4 and 2 from the cache Tokens 812 in, 96 out Cost 0.0012",
        "Weight 4 ",
        "from a retrieval span",
        "2027-01-15 08:00:00 UTC",
    ):
        assert shown in page
    assert f'id="{SPAN}"' in reply.body


async def test_a_field_that_was_not_found_tells_where_it_was_looked_for() -> None:
    app = pages()
    await app.export(result(answer=None, found={"answer": Found("", "", ("output.value", "gen_ai.output.messages"))}))
    page = flat(await ask(app, f"/interactions/{TRACE}"))
    assert "Answer not recorded" in page
    assert "Answer not found; looked at output.value, gen_ai.output.messages" in page


async def test_a_trace_id_may_be_written_in_upper_case() -> None:
    app = pages()
    await app.export(result())
    assert (await ask(app, f"/interactions/{TRACE.upper()}")).status == 200


async def test_all_interactions_of_a_trace_are_on_its_page() -> None:
    app = pages()
    await app.export(result(span_id="1" * 16, question="First?"))
    await app.export(result(span_id="2" * 16, question="Second?"))
    await app.export(result(trace_id="f" * 32, question="Third?"))
    page = flat(await ask(app, f"/interactions/{TRACE}"))
    assert "First?" in page
    assert "Second?" in page
    assert "Third?" not in page


async def test_the_lowest_scores_of_each_measure_lead_to_their_interactions() -> None:
    app = pages()
    for number, value in enumerate([0.9, 0.11, 0.7, 0.42]):
        await app.export(result(evaluations(value), trace_id=f"{number:032x}"))
    body = (await ask(app, "/services/shop")).body
    links = re.findall(r'class="score">.*?>([\d.]+)</span>.*?href="(.*?)"', body, re.DOTALL)
    assert links[:2] == [("0.11", f"/interactions/{1:032x}#{SPAN}"), ("0.42", f"/interactions/{3:032x}#{SPAN}")]


@pytest.mark.parametrize(
    ("query", "status", "shown"),
    [
        ("", 200, "Faithfulness"),
        ("measure=&service=", 200, "Faithfulness"),
        ("measure=completeness", 200, "Completeness"),
        ("service=nobody", 200, "No answer of nobody has been read lately."),
        ("measure=coverage", 400, f"measure is one of {', '.join(MEASURES)}"),
        ("measure=completeness&measure=faithfulness", 400, "one measure and one service"),
        ("colour=red", 400, "the page filters by measure and service; got 'colour'"),
        ("service=" + "x" * 300, 400, "at most 255 characters"),
        ("&".join(f"a{n}=1" for n in range(50)), 400, "too many parameters"),
        ("measure=%3Cscript%3E", 400, "got '<script>'"),
    ],
)
async def test_what_can_be_chosen_and_what_is_refused(query: str, status: int, shown: str) -> None:
    app = pages()
    await app.export(result())
    reply = await ask(app, query=query)
    assert reply.status == status
    assert shown in flat(reply)
    assert "<script>" not in reply.body


async def test_an_address_that_alerts_and_boards_name_leads_to_the_service_and_its_measure() -> None:
    app = pages()
    await app.export(result(service="a/b c", environment="prod"))
    reply = await ask(app, query="measure=completeness&service=a%2Fb+c")
    assert (reply.status, reply.headers["location"]) == (303, "/services/a%2Fb%20c?environment=prod#completeness")
    assert (await ask(app, "/services/a/b c", "environment=prod")).status == 200


@pytest.mark.parametrize(
    "path",
    [
        "/interactions/",
        f"/interactions/{'0' * 32}",
        f"/interactions/{TRACE}/",
        f"/interactions/{TRACE}\r\nset-cookie: a=b",
        f"/interactions/{TRACE}\n",
        "/interactions/\N{ARABIC-INDIC DIGIT ZERO}af7651916cd43dd8448eb211c80319c",
        "/interactions/../../etc/passwd",
        "/interactions/<script>alert(1)</script>",
        "/templates/base.html",
        "//",
        "",
    ],
)
async def test_unknown_addresses_are_404_and_come_back_nowhere(path: str) -> None:
    app = pages()
    await app.export(result())
    reply = await ask(app, path)
    assert reply.status == 404
    assert "script>" not in reply.body.replace(OWN_SCRIPT, "", 1)
    assert "set-cookie" not in reply.headers
    assert not [value for value in reply.headers.values() if "\n" in value or "\r" in value]


@pytest.mark.parametrize("path", ["/", f"/interactions/{TRACE}", "/style.css", "/nowhere"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
async def test_nothing_but_reading_is_allowed(path: str, method: str) -> None:
    reply = await ask(pages(), path, method=method)
    assert reply.status == 405
    assert reply.headers["allow"] == "GET, HEAD"


async def test_head_gives_the_headers_of_get_and_no_body() -> None:
    app = pages()
    whole, head = await ask(app), await ask(app, method="HEAD")
    assert head.body == ""
    assert head.headers == whole.headers
    assert head.headers["content-length"] == str(len(whole.body.encode()))


async def test_a_long_text_is_folded_and_a_right_to_left_one_keeps_its_direction() -> None:
    app = pages()
    await app.export(result(question="ما هي سياسة الإرجاع؟", reference="word " * 400))
    body = (await ask(app, f"/interactions/{TRACE}")).body
    assert '<h1 dir="auto">ما هي سياسة الإرجاع؟</h1>' in body
    assert re.search(r'<details class="prose"><summary dir="auto">word .*all 2,000 characters', body)


async def test_a_page_that_fails_is_told_apart_from_an_empty_one_and_logs_no_text(caplog) -> None:
    reply = await ask(pages(ledger=lambda: {}["What did my user ask?"]))
    assert reply.status == 500
    (line,) = caplog.messages
    assert line.startswith("event=defect error=KeyError ")
    assert "my user" not in line
    assert "What did my user ask?" not in caplog.text + reply.body


async def test_the_navigation_marks_the_place_where_one_is_and_leads_only_to_places_that_there_are() -> None:
    async def places(path: str, **there) -> tuple[list[str], list[str]]:
        body = (await ask(pages(**there), path)).body
        nav = re.search(r"<nav .*?</nav>", body, re.DOTALL)[0]
        return re.findall(r'href="([^"]*)"', nav), re.findall(r'href="([^"]*)" aria-current="page"', nav)

    assert (await places("/"))[1] == ["/"]
    assert (await places("/releases"))[1] == ["/releases"]
    assert (await places("/releasesx"))[1] == []
    assert "/gold" not in (await places("/"))[0]
    assert "/gold" in (await places("/", gold=dict))[0]


def test_every_word_of_the_closed_lists_has_its_sentence() -> None:
    assert set(glossary.MEASURE_NAMES) == set(glossary.MEASURE_MEANINGS) == set(MEASURES)
    assert set(glossary.STATE_MEANINGS) == set(STATES)
    assert set(glossary.REASON_MEANINGS) == {*SKIP_REASONS, *FAIL_REASONS, *SHED_REASONS}


async def test_over_a_real_socket_the_page_is_read_with_head_get_and_hostile_paths() -> None:
    app = pages()
    await app.export(result())
    bound = bind("127.0.0.1:0", "web.listen")
    async with serving(app, bound), httpx2.AsyncClient(base_url=f"http://{address_of(bound)}") as client:
        whole = await client.get("/")
        head = await client.head("/")
        hostile = await client.get("/interactions/%0d%0aset-cookie:%20a=b")
        style = await client.get("/style.css")
    assert whole.status_code == head.status_code == 200
    assert "7,224 interactions read" in unescape(whole.text)
    assert head.content == b""
    assert head.headers["content-length"] == whole.headers["content-length"]
    assert hostile.status_code == 404
    assert "set-cookie" not in hostile.headers
    assert style.headers["content-type"].startswith("text/css")


async def test_requests_are_counted_by_status() -> None:
    app = pages()
    await ask(app)
    await ask(app, "/nowhere")
    counts = {
        sample.labels["status"]: sample.value
        for sample in app._requests.collect()[0].samples
        if sample.name.endswith("_total")
    }
    assert counts["200"] == counts["404"] == 1
    assert set(counts) == {str(status) for status in STATUSES}
