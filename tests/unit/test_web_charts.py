"""Charts: everything inside, nothing that acts, and what a page shows of a service over time."""

from __future__ import annotations

import re
from dataclasses import replace
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.results import NOW, SettableClock
from tests.unit.test_web_pages import NEVER_OURS, Reader, flat
from tests.web_results import TRACE, ask, pages, result, watched_pages
from tracescore.drift.weighted_sums import WeightedSums
from tracescore.model import Score, Unscored
from tracescore.pipeline.ledger import Snapshot, Tally
from tracescore.web.charts import CHART, SPARK, ChartMark, chart, spark
from tracescore.web.history import DAY, Bucket
from tracescore.web.lines import Point

pytestmark = pytest.mark.anyio
NUMBERS = re.compile(r"-?\d+(?:\.\d+)?")

POINTS = st.lists(
    st.builds(
        lambda at, score, n: Point(
            NOW - DAY + at,
            NOW - DAY + at + 900,
            score,
            [Bucket(NOW - DAY + at, n, WeightedSums(n, n * score, n, n * score, n * score * score))],
        ),
        st.integers(-10_000, 90_000),
        st.floats(0, 1),
        st.integers(1, 50),
    ),
    min_size=1,
    max_size=6,
)


@settings(max_examples=80, deadline=None)
@given(st.lists(POINTS, max_size=3), st.none() | st.floats(0.01, 0.99), st.lists(st.integers(0, 86_400), max_size=6))
def test_everything_lies_inside_the_drawing(stretches, target, moments) -> None:
    marks = [ChartMark(NOW - at, "release", f"r{at}") for at in moments]
    for drawn, box in (
        (chart(stretches, NOW - DAY, NOW, target, marks), CHART),
        (spark(stretches, NOW - DAY, NOW, target), SPARK),
    ):
        for path in (*drawn.bands, *drawn.lines):
            numbers = [float(each) for each in NUMBERS.findall(path)]
            assert all(box.left - 3 <= x <= box.width for x in numbers[::2])
            assert all(0 <= y <= box.height for y in numbers[1::2])
        assert all(0 <= mark.x <= box.width for mark in drawn.marks)
        assert all(0 <= spot.y <= box.height for spot in drawn.spots)
    assert len(drawn.lines) == len(stretches)


def test_marks_outside_of_what_is_shown_are_left_out_and_names_never_lie_over_each_other() -> None:
    marks = [ChartMark(NOW - at, "release", "a-long-release-name") for at in (2 * DAY, 40_000, 39_900, 100)]
    drawn = chart([], NOW - DAY, NOW, None, marks).marks
    assert [(each.mark.at - NOW, each.named, each.before) for each in drawn] == [
        (-40_000, True, False),
        (-39_900, False, False),
        (-100, True, True),
    ]


async def filled(**fields: object):
    clock = SettableClock(NOW - DAY)
    app, watch = watched_pages(clock, ledger=LEDGER)
    for number in range(90):
        clock.now = NOW - DAY + number * 900
        release, value = ("1.0", 0.9) if number < 50 else ("2.0", 0.3)
        evaluated = (Score("completeness", value), Unscored("faithfulness", "no_contexts"))
        told = {"trace_id": f"{number:032x}", "release": release, "end_unix_nano": int(clock.now * 1e9)}
        made = replace(result(evaluated, **(told | fields)), finished=clock.now)
        for exporter in (app, app.history, watch, app._shared.releases):
            await exporter.export(made)
    clock.now = NOW
    return app


LEDGER = Snapshot(
    0,
    {"complete": 90},
    {"completeness": Tally(90, 0, {})},
    {
        "shop": Snapshot(
            0,
            {"complete": 90},
            {"completeness": Tally(80, 0, {"judge_timeout": 10}), "faithfulness": Tally(0, 0, {"no_contexts": 90})},
        )
    },
)


async def test_the_page_of_a_service_answers_what_is_wrong_since_when_and_what_to_do() -> None:
    app = await filled()
    page = flat(await ask(app, "/services/shop"))
    assert "Below target The detector of completeness reports that it is below its target." in page
    assert "Release 2.0 is worse than 1.0 in completeness." in page
    assert "Faithfulness is not measured: no passages found to compare the answer with." in page
    assert "release 2.0 from 01-14 20:30" in page
    assert "90 answers read from traces 90 of them judged so far" in page
    assert "180 evaluations over 2 measures 80 scored 100 not scored" in page
    assert "The largest loss: no passages found to compare the answer with. Record the retrieved passages" in page
    home = flat(await ask(app))
    assert "1 of 1 service needs a look" in home
    assert "1 below target" in home


@pytest.mark.parametrize(("chosen", "last"), [("hour", True), ("day", True), ("week", True), ("year", False)])
async def test_ranges_are_links_and_no_others_are_understood(chosen: str, last: bool) -> None:
    app = await filled()
    reply = await ask(app, "/services/shop", f"environment=production&range={chosen}")
    assert reply.status == (200 if last else 400)
    if last:
        assert f'range={chosen}" aria-current="true"' in reply.body
    else:
        assert "range is one of hour, day, week; got &#39;year&#39;" in reply.body


@pytest.mark.parametrize(
    ("path", "query", "said"),
    [
        ("/services/nobody", "", "No answer of a service of that name"),
        ("/services/shop", "environment=staging", "shop runs in production, not in 'staging'"),
        ("/services/../../etc/passwd", "", "No answer of a service of that name"),
    ],
)
async def test_a_service_that_is_not_known_is_404_and_says_what_there_is(path: str, query: str, said: str) -> None:
    reply = await ask(await filled(), path, query)
    assert reply.status == 404
    assert said in flat(reply)


async def test_names_in_drawings_and_addresses_are_escaped() -> None:
    name = '"><svg onload=alert(1)>&/?#'
    app = await filled(service=name, release="</text><script>x")
    home = await ask(app)
    assert f"/services/{quote(name, safe='')}?environment=production" in home.body
    page = await ask(app, f"/services/{name}")
    assert page.status == 200
    for reply in (home, page):
        read = Reader(reply.body)
        assert not NEVER_OURS & set(read.tags)
        assert not [key for key, _ in read.attributes if key.startswith("on") or key == "style"]


async def test_every_drawing_has_a_name_and_every_table_a_caption_or_headers_of_columns() -> None:
    app = await filled()
    for path in ("/", "/services/shop"):
        body = (await ask(app, path)).body
        drawings = re.findall(r"<svg [^>]*>", body)
        assert drawings
        assert all('role="img" aria-label="' in each or 'aria-hidden="true"' in each for each in drawings)


async def test_without_any_score_there_is_no_drawing_and_nothing_is_made_up() -> None:
    app = pages()
    await app.export(result((Unscored("completeness", "judge_quota"),), trace_id=TRACE))
    page = flat(await ask(app))
    assert "not measured: the judge's quota is used up" in page
    assert "Top up the judge's account" in page
    assert "0.00" not in page
