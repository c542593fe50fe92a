"""What the command line may ask the page, and what nobody else may."""

from __future__ import annotations

import html
import json
import re
from urllib.parse import urlencode

import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW
from tests.web_results import LEDGER, ask, result
from tracescore.config import DEFAULT_MEASURES, Config, WebConfig
from tracescore.config.types import Secret
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch
from tracescore.gold.live import LiveAnswers, mark
from tracescore.interactions import content_switch
from tracescore.net.access import AccessMetrics
from tracescore.web.pages import Pages

pytestmark = pytest.mark.anyio

OURS = {"x-tracescore": "1"}


class Rig:
    def __init__(self, *, watched: bool = True, web: WebConfig | None = None) -> None:
        config, registry = Config(), CollectorRegistry()
        args = (config.drift, config.sampling, DEFAULT_MEASURES, lambda: NOW)
        self.watch = DriftWatch(registry, *args) if watched else None
        self.app = Pages(
            web or WebConfig(), lambda: LEDGER, lambda: NOW, registry, AccessMetrics(registry),
            releases=Releases(registry, lambda: NOW),
            endpoints={}, target=lambda *_: None, switch=content_switch, changes=self.watch,
        )  # fmt: skip

    async def post(self, body: object, **headers: str):
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        return await ask(self.app, "/api/v1/baseline", method="POST", body=text, **headers)

    async def score(self, count: int = 1) -> None:
        for number in range(count):
            told = result(trace_id=f"{number:032x}", question=f"Question {number}?")
            await self.app.export(told)
            if self.watch:
                await self.watch.export(told)


async def test_what_is_known_can_be_read() -> None:
    rig = Rig()
    await rig.score()
    shown = json.loads((await ask(rig.app, "/api/v1/drift")).body)
    assert shown == json.loads(json.dumps(rig.watch.show()))
    assert shown["services"][0]["service"] == "shop"


async def test_nothing_changes_without_the_header_that_no_other_site_can_send() -> None:
    rig = Rig()
    await rig.score()
    before = rig.watch.state()
    refused = await rig.post({"action": "pin", "detector": "completeness", "at": 0.5})
    assert refused.status == 403
    assert rig.watch.state() == before
    asked_first = await ask(rig.app, "/api/v1/baseline", method="OPTIONS")
    assert asked_first.status == 405
    assert not [name for name in asked_first.headers if name.startswith("access-control")]


async def test_nothing_is_read_or_changed_without_the_token(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGE_TOKEN", "sesame")
    rig = Rig(web=WebConfig(token=Secret(env="PAGE_TOKEN")))
    for path in ("/api/v1/drift", "/api/v1/anchors"):
        assert (await ask(rig.app, path)).status == 401
        assert (await ask(rig.app, path, authorization="Bearer sesame")).status == 200
    assert (await rig.post({"action": "reset"}, **OURS)).status == 401
    assert (await rig.post({"action": "reset"}, authorization="Bearer sesame", **OURS)).status == 200


async def test_a_reference_can_be_fixed_and_forgotten() -> None:
    rig = Rig()
    await rig.score()
    pinned = await rig.post({"action": "pin", "service": "shop", "detector": "completeness", "at": 0.5}, **OURS)
    assert (pinned.status, json.loads(pinned.body)) == (200, {"detectors": 1})
    detectors = {(d["detector"], d["against"]): d for d in rig.watch.show()["services"][0]["detectors"]}
    assert detectors["completeness", "baseline"]["reference_ratio"] == 0.5
    assert json.loads((await rig.post({"action": "reset"}, **OURS)).body) == {"detectors": 8}


@pytest.mark.parametrize(
    ("body", "why"),
    [
        (b"{", "unexpected"),
        ([], "action: one of reset, pin, pause, resume expected"),
        ({"action": "drop"}, "action: one of reset, pin, pause, resume expected"),
        ({"action": "reset", "service": 3}, "service: a text expected"),
        ({"action": "reset", "detector": "latency"}, "detector: one of answer_relevancy"),
        ({"action": "reset", "detector": 3}, "detector: a text expected"),
        ({"action": "pin", "at": 0.5}, "at: a value belongs to one detector; name it with --detector"),
        ({"action": "pin", "detector": "completeness", "at": 1}, "at: a number between 0 and 1 expected"),
        ({"action": "pin", "detector": "completeness", "at": True}, "at: a number between 0 and 1 expected"),
    ],
)
async def test_what_cannot_be_understood_is_refused_with_what_is_expected(body: object, why: str) -> None:
    refused = await Rig().post(body, **OURS)
    assert refused.status == 400
    assert why in json.loads(refused.body)["error"]


async def test_a_body_that_is_too_long_is_refused() -> None:
    assert (await Rig().post(b" " * 5_000, **OURS)).status == 413


async def test_a_process_that_does_not_watch_says_so() -> None:
    refused = await ask(Rig(watched=False).app, "/api/v1/drift")
    assert refused.status == 409
    assert "drift.detector" in json.loads(refused.body)["error"]


async def test_candidates_for_anchors_are_whole_and_differ() -> None:
    rig = Rig()
    await rig.score(20)
    await rig.app.export(result(trace_id="f" * 32, question="A long one?", answer="x" * 30_000))
    await rig.app.export(result(trace_id="e" * 32, question="No passages?", state="no_contexts", contexts=()))
    rows = json.loads((await ask(rig.app, "/api/v1/anchors", "count=10")).body)
    assert len({row["question"] for row in rows}) == 10
    everything = json.loads((await ask(rig.app, "/api/v1/anchors", "count=1000")).body)
    assert {row["question"] for row in everything} == {f"Question {number}?" for number in range(20)}
    assert set(everything[0]) == {"question", "contexts", "answer"}


@pytest.mark.parametrize("count", ["0", "-1", "ten", "1001", "9" * 400, "%B2"])
async def test_a_count_that_is_none_is_refused(count: str) -> None:
    assert (await ask(Rig().app, "/api/v1/anchors", f"count={count}")).status == 400


async def test_the_page_of_drift_says_what_every_detector_knows() -> None:
    rig = Rig()
    await rig.score()
    page = (await ask(rig.app, "/drift")).body
    assert "tracescore still learns what is normal" in page
    assert "from 1 of 1,000 answers so far, until 2027-01-22 08:00 UTC at the earliest" in page
    assert page.count(">learning</span>") == 5
    unwatched = Rig(watched=False).app
    assert (await ask(unwatched, "/drift")).status == 404
    assert 'href="/drift"' not in (await ask(unwatched, "/")).body


async def test_the_page_of_drift_has_every_service_and_none_of_their_names_acts() -> None:
    rig = Rig()
    await rig.score()
    other = result(trace_id="a" * 32, service="<b>bank</b>")
    await rig.watch.export(other)
    page = (await ask(rig.app, "/drift")).body
    assert page.count('action="/pause"') == 2
    assert "/services/%3Cb%3Ebank%3C%2Fb%3E?environment=production" in page
    assert "<b>bank" not in page


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"answers": [mark("yes"), mark("no")]}, 200, {"live": 1}),
        ({"answers": "yes"}, 400, {"error": "answers: a list of hashes expected"}),
        ([], 400, {"error": "answers: a list of hashes expected"}),
    ],
)
async def test_a_gold_run_of_another_process_learns_how_many_of_its_answers_came_as_live_ones(
    body: object, status: int, said: object
) -> None:
    live = LiveAnswers()
    live.add(["yes"])
    registry = CollectorRegistry()
    page = Pages(
        WebConfig(), lambda: LEDGER, lambda: NOW, registry, AccessMetrics(registry),
        releases=Releases(registry, lambda: NOW),
        endpoints={}, target=lambda *_: None, switch=content_switch, live=live.count,
    )  # fmt: skip
    answered = await ask(page, "/api/v1/gold/live", method="POST", body=json.dumps(body).encode(), **OURS)
    assert (answered.status, json.loads(answered.body)) == (status, said)


async def test_a_planned_change_is_begun_and_ended_by_the_command_line() -> None:
    rig = Rig()
    await rig.score()
    paused = await rig.post({"action": "pause", "service": "shop", "until": "2h", "why": "a new prompt"}, **OURS)
    assert (paused.status, json.loads(paused.body)) == (200, {"detectors": 8})
    (service,) = rig.watch.show()["services"]
    assert service["pause"] == {"since": NOW, "until": NOW + 7_200, "why": "a new prompt", "over": False}
    assert (await rig.post({"action": "resume", "service": "shop"}, **OURS)).status == 200
    assert rig.watch.show()["services"][0]["pause"]["over"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ({"action": "pause", "service": "shop", "until": "soon", "why": "x"}, "until: a duration such as 2h"),
        ({"action": "pause", "service": "shop", "until": "2h"}, "why: one line of 1 to 200 characters expected"),
        ({"action": "pause", "service": "shpo", "until": "2h", "why": "x"}, "(shop); got 'shpo'"),
        ({"action": "pause", "service": "shop", "until": 2, "why": "x"}, "until: a text expected"),
        ({"action": "resume", "service": "shop"}, "service: a paused one expected"),
    ],
)
async def test_a_pause_that_cannot_be_is_refused_with_what_is_expected(body: object, why: str) -> None:
    rig = Rig()
    await rig.score()
    refused = await rig.post(body, **OURS)
    assert refused.status == 400
    assert why in json.loads(refused.body)["error"]


async def test_a_planned_change_is_begun_and_ended_on_the_page_and_by_no_other_site() -> None:
    rig = Rig()
    await rig.score()
    (form,) = set(re.findall(r'name="form" value="([0-9a-f]+)"', (await ask(rig.app, "/drift")).body))

    async def send(**fields: str):
        return await ask(rig.app, "/pause", method="POST", body=urlencode(fields).encode())

    asked = {"service": "shop", "until": "2h", "why": "<b>a new prompt</b>", "pause": "1"}
    assert (await send(**asked)).status == 403
    assert (await send(**asked, form=form[::-1])).status == 403
    assert rig.watch.show()["services"][0]["pause"] is None
    assert (await send(**asked, form=form, more="1")).status == 400
    done = await send(**asked, form=form)
    assert (done.status, done.headers["location"]) == (303, "/drift")
    page = (await ask(rig.app, "/drift")).body
    assert "until 2027-01-15 10:00:00 UTC: <bdi>&lt;b&gt;a new prompt&lt;/b&gt;</bdi>" in page
    assert page.count(">paused</span>") == 9  # of the service and its eight detectors
    refused = await send(**asked | {"until": "soon"}, form=form)
    assert refused.status == 400
    assert "until: a duration such as 2h" in html.unescape(refused.body)
    assert (await send(service="shop", resume="1", form=form)).status == 303
    assert ">paused</span>" not in (await ask(rig.app, "/drift")).body
    assert "What is normal has been learned anew since" in (await ask(rig.app, "/drift")).body


async def test_the_page_can_begin_a_pause_only_where_changes_are_watched() -> None:
    refused = await ask(Rig(watched=False).app, "/pause", method="POST", body=b"")
    assert refused.status == 403
    assert (await ask(Rig(watched=False).app, "/pause")).status == 404
