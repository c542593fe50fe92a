"""The page before the first score: what is missing, and where to send to."""

from __future__ import annotations

import pytest

from tests.unit.test_web_pages import HOSTILE, Reader
from tests.web_results import ask, pages
from tracescore.pipeline.ledger import Snapshot, Tally
from tracescore.web.first import FirstStage, is_waiting, reachable, stage

pytestmark = pytest.mark.anyio

UNSCORED = Tally(0, 0, {"no_contexts": 1})


@pytest.mark.parametrize(
    ("ledger", "missing"),
    [
        (Snapshot(), "spans"),
        (Snapshot(3), "read"),
        (Snapshot(3, {"complete": 0}), "read"),
        (Snapshot(3, {"complete": 1}, {"completeness": Tally(0, 1, {})}), "scoring"),
        (Snapshot(3, {"content_not_captured": 1}, {"completeness": Tally(0, 1, {})}), "scoring"),
        (Snapshot(3, {"content_not_captured": 1}), "texts"),
        (Snapshot(3, {"content_not_captured": 1, "no_contexts": 1}, {"faithfulness": UNSCORED}), "texts"),
        (Snapshot(3, {"no_contexts": 1}, {"faithfulness": UNSCORED}), "scores"),
    ],
)
def test_what_is_missing_follows_from_the_counts(ledger: Snapshot, missing: FirstStage) -> None:
    assert (is_waiting(ledger), stage(ledger)) == (True, missing)


def test_one_score_ends_the_waiting() -> None:
    assert not is_waiting(Snapshot(1, {"complete": 1}, {"completeness": Tally(1, 0, {}), "faithfulness": UNSCORED}))


async def test_why_nothing_is_scored_is_said_with_each_reason() -> None:
    page = Reader((await ask(pages(ledger=Snapshot(3, {"no_contexts": 1}, {"faithfulness": UNSCORED})))).body)
    assert "no_contexts" in page.text
    assert "no passages found to compare the answer with" in page.text


@pytest.mark.parametrize(
    ("url", "host", "shown"),
    [
        ("http://127.0.0.1:4318", "scores.example:9465", "http://127.0.0.1:4318"),
        ("http://0.0.0.0:4318", "scores.example:9465", "http://scores.example:4318"),
        ("http://[::]:4317", "scores.example", "http://scores.example:4317"),
        ("http://0.0.0.0:4318", "", "http://0.0.0.0:4318"),
        ("http://0.0.0.0:4318", '")+evil("', "http://0.0.0.0:4318"),
        ("http://0.0.0.0:4318", "evil/@x:1", "http://0.0.0.0:4318"),
    ],
)
def test_an_endpoint_of_all_addresses_is_shown_by_the_name_the_reader_used(url: str, host: str, shown: str) -> None:
    assert reachable(url, host) == shown


@pytest.mark.parametrize("host", HOSTILE)
def test_a_host_header_never_becomes_code(host: str) -> None:
    assert reachable("http://0.0.0.0:4318", host) == "http://0.0.0.0:4318"


async def test_the_waiting_page_renews_itself_and_the_others_leave_that_to_their_parts() -> None:
    assert ("data-live", "2") in Reader((await ask(pages(ledger=Snapshot()))).body).attributes
    assert '<main id="main">' in (await ask(pages(), "/nowhere")).body
