"""The page on which people label answers: what it shows, what it takes, and from whom."""

from __future__ import annotations

import json
import re
from pathlib import Path
from urllib.parse import urlencode

import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW
from tests.web_results import LEDGER, SPAN, TRACE, Reply, ask, evaluations, result
from tracescore.calibration.correction import calibrate
from tracescore.calibration.label_file import read_labels
from tracescore.calibration.labelling import Labelling
from tracescore.config import WebConfig
from tracescore.config.drift import LabelsConfig
from tracescore.config.types import Secret
from tracescore.drift.releases import Releases
from tracescore.interactions import content_switch
from tracescore.model import Item, Score
from tracescore.net.access import AccessMetrics
from tracescore.web.pages import Pages

pytestmark = pytest.mark.anyio

ANSWERED = ("answer_relevancy", "completeness")
ANSWERS = {"answer_relevancy.0": "relevant", "completeness.0": "covered", "completeness.1": "partial"}


class Rig:
    def __init__(self, folder: Path, web: WebConfig | None = None, *, asking: bool = True) -> None:
        registry = CollectorRegistry()
        self.labels = Labelling(registry, LabelsConfig(path=str(folder / "labels"), ratio=1.0), "salt", lambda: NOW)
        self.labels.open()
        self.app = Pages(
            web or WebConfig(), lambda: LEDGER, lambda: NOW, registry, AccessMetrics(registry),
            releases=Releases(registry, lambda: NOW),
            endpoints={}, target=lambda *_: None, switch=content_switch, labelling=self.labels if asking else None,
        )  # fmt: skip

    async def answer(self, **headers: str) -> Reply:
        return await ask(self.app, "/labels", **headers)

    async def send(self, answers: dict[str, str], *, hidden: dict[str, str] | None = None, **headers: str) -> Reply:
        if hidden is None:
            shown = await self.answer(**headers)
            hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', shown.body))
        return await ask(self.app, "/labels", method="POST", body=urlencode(hidden | answers).encode(), **headers)

    def labelled(self) -> dict[str, dict]:
        return {row["measure"]: row for row in self.labels.lines() if "label" in row}


@pytest.fixture
async def rig(tmp_path: Path):
    rig = Rig(tmp_path)
    yield rig
    await rig.labels.close()


async def test_an_answer_is_shown_with_its_parts_and_without_scores_verdicts_or_quotes(rig: Rig) -> None:
    await rig.labels.export(result(evaluations(0.8147)))
    shown = (await rig.answer()).body
    of_users = ("What is the return window, and does it cover opened items?", "within 30 days of purchase.")
    for text in (*of_users, "What is the return window?", "Does it cover opened items?", "Opened items can be"):
        assert text in shown
    for hidden in ("0.81", "0.50", "blockquote", "verdict", "How long can I return items?", "embedded-v2"):
        assert hidden not in shown
    assert "1 answer to label" in shown
    assert 'href="/labels">1 answer to label' in (await ask(rig.app, "/")).body


async def test_what_the_form_sends_becomes_a_label_and_the_next_answer_comes(rig: Rig) -> None:
    await rig.labels.export(result())
    done = await rig.send(ANSWERS | {"save": "1"})
    assert (done.status, done.headers["location"]) == (303, "/labels")
    found = rig.labelled()
    assert (found["completeness"]["label"], found["completeness"]["labelled"]) == (0.75, ("covered", "partial"))
    assert found["answer_relevancy"]["label"] == 1.0
    assert "No answer waits for a label" in (await rig.answer()).body


async def test_every_field_of_the_form_can_be_sent(rig: Rig) -> None:
    await rig.labels.export(result())
    shown = (await rig.answer()).body
    fields = re.findall(r'type="radio" name="([\w.]+)" value="(\w+)"', shown)
    assert {name for name, _ in fields} == set(ANSWERS)
    assert set(ANSWERS.items()) <= set(fields)
    assert 'method="post" action="/labels"' in shown
    assert shown.count('type="radio"') == shown.count(" required>")  # nothing is passed over by mistake
    assert "checked" not in shown


@pytest.mark.parametrize("given", [{"skip": "1"} | ANSWERS, {"save": "1"}], ids=["cannot tell at all", "nothing said"])
async def test_who_cannot_tell_gives_no_label(rig: Rig, given: dict[str, str]) -> None:
    await rig.labels.export(result())
    assert (await rig.send(given)).status == 303
    assert rig.labelled() == {}
    assert rig.labels.counts() == {"waiting": 0, "labelled": 0, "cannot_tell": 1}


async def test_a_form_of_another_site_changes_nothing(rig: Rig) -> None:
    await rig.labels.export(result())
    drawn = await rig.labels.next()
    for form in ({}, {"form": ""}, {"form": "0" * 32}, {"form": "\ud83d"}):
        hidden = {name: value.encode(errors="replace").decode() for name, value in form.items()}
        refused = await rig.send(ANSWERS, hidden=hidden | {"id": drawn["id"]}, origin="http://evil.example")
        assert refused.status == 403
    assert rig.labels.counts()["waiting"] == 1


async def test_another_process_has_another_form(rig: Rig, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Rig(tmp_path / "other")
    for each in (rig, other):
        await each.labels.export(result())
    forms = [re.findall(r'name="form" value="(\w+)"', (await each.answer()).body) for each in (rig, other)]
    assert forms[0] != forms[1]
    await other.labels.close()


async def test_nobody_without_the_token_sees_or_gives_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGE_TOKEN", "sesame")
    rig = Rig(tmp_path, WebConfig(token=Secret(env="PAGE_TOKEN")))
    await rig.labels.export(result())
    for path in ("/labels", "/api/v1/labels"):
        assert (await ask(rig.app, path)).status == 401
    asked = (await rig.answer()).body
    assert "return window" not in asked
    assert 'name="next" value="/labels"' in asked
    led = await ask(rig.app, "/login", method="POST", body=b"token=sesame&next=%2Flabels")
    assert led.headers["location"] == "/labels"
    assert (await rig.send(ANSWERS, hidden={"form": "x"})).status == 401
    assert (await rig.send(ANSWERS, authorization="Bearer sesame")).status == 303
    assert (await ask(rig.app, "/api/v1/labels", authorization="Bearer sesame")).status == 200
    await rig.labels.close()


async def test_text_of_users_and_of_the_judge_is_shown_as_text(rig: Rig) -> None:
    bad = "</legend><script>alert(1)</script>"
    parts = (Item("part", bad, "covered", "", 1.0),)
    await rig.labels.export(
        result((Score("completeness", 1.0, items=parts),), question=bad, answer=bad, contexts=(bad,))
    )
    shown = (await rig.answer()).body
    assert shown.count("<script") == 1
    assert shown.count("&lt;script&gt;") >= 4


@pytest.mark.parametrize(
    ("answers", "status"),
    [
        ({"completeness.0": "perfect"}, 400),
        ({"completeness.7": "covered"}, 400),
        ({"completeness.9999": "covered"}, 400),
        ({"completeness.99999999999": "covered"}, 400),
        ({"completeness.0": "covered", "nonsense.0": "covered"}, 400),
        ({"text": "x" * 70_000}, 413),
        ({f"f{number}": "1" for number in range(3_000)}, 413),
    ],
    ids=["no such answer", "no such part", "far too many parts", "a huge number", "unknown fields", "long", "many"],
)
async def test_what_no_form_of_ours_sends_is_refused(rig: Rig, answers: dict[str, str], status: int) -> None:
    await rig.labels.export(result())
    assert (await rig.send(answers)).status == status
    assert rig.labelled() == {}


async def test_an_answer_that_somebody_else_has_labelled_meanwhile_stays_as_it_is(rig: Rig) -> None:
    await rig.labels.export(result())
    shown = (await rig.answer()).body
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', shown))
    await rig.send(ANSWERS, hidden=hidden)
    before = rig.labelled()
    assert (await rig.send({"answer_relevancy.0": "off_topic"}, hidden=hidden)).status == 303
    assert rig.labelled() == before


async def test_labels_can_be_exported_as_the_lines_of_a_file(rig: Rig) -> None:
    await rig.labels.export(result())
    await rig.send(ANSWERS)
    exported = await ask(rig.app, "/api/v1/labels")
    assert exported.headers["content-type"] == "application/json"
    assert json.loads(exported.body) == json.loads(json.dumps(rig.labels.lines()))
    assert (await ask(rig.app, "/api/v1/labels", method="POST")).status == 405


async def test_where_no_labels_are_asked_for_the_page_says_what_to_set(tmp_path: Path) -> None:
    rig = Rig(tmp_path, asking=False)
    shown = await rig.answer()
    assert shown.status == 404
    assert "drift.labels.path" in shown.body
    assert (await ask(rig.app, "/api/v1/labels")).status == 409
    assert "/labels" not in (await ask(rig.app, "/")).body
    await rig.labels.close()


# ---------------------------------------------------------------- an answer that somebody chose

CHOSEN = f"/interactions/{TRACE}/label"


async def choose(rig: Rig, answers: dict[str, str], **headers: str) -> Reply:
    shown = await ask(rig.app, CHOSEN, f"span={SPAN}", **headers)
    hidden = dict(re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', shown.body))
    return await ask(
        rig.app, CHOSEN, method="POST", body=urlencode(hidden | answers | {"save": "1"}).encode(), **headers
    )


async def test_an_answer_that_somebody_chose_is_labelled_and_its_label_counts_in_no_estimate(rig: Rig) -> None:
    await rig.app.export(result())
    shown = (await ask(rig.app, CHOSEN, f"span={SPAN}")).body
    assert "counts in no estimate" in shown
    assert "0.81" not in shown
    assert (await choose(rig, ANSWERS)).headers["location"] == f"/interactions/{TRACE}"
    found = rig.labelled()
    assert found["completeness"]["label"] == 0.75
    assert [found[name]["pi_label"] for name in ANSWERED] == [None, None]
    assert rig.labels.counts() == {"waiting": 0, "labelled": 0, "cannot_tell": 0}
    assert not any(sample.labels for sample in rig.labels.samples().values())
    page = (await ask(rig.app, f"/interactions/{TRACE}")).body
    assert "People say: answer relevancy 1.00, completeness 0.75" in " ".join(re.sub("<[^>]*>", " ", page).split())


async def test_who_labels_a_chosen_answer_again_changes_their_mind(rig: Rig) -> None:
    await rig.app.export(result())
    for said in ("relevant", "off_topic"):
        await choose(rig, {"answer_relevancy.0": said})
    assert [row["label"] for row in rig.labels.lines() if "label" in row] == [0.0]


async def test_a_chosen_label_leaves_the_draw_of_the_same_answer_as_it_is(rig: Rig, tmp_path: Path) -> None:
    for part in (rig.labels, rig.app):
        await part.export(result())
    await choose(rig, ANSWERS)
    assert rig.labels.counts()["waiting"] == 1
    await rig.send(ANSWERS | {"save": "1"})
    labels = [row for row in rig.labels.lines() if "label" in row]
    assert sorted(row["pi_label"] is None for row in labels) == [False, False, True, True]
    assert [len(sample.labels) for sample in rig.labels.samples().values() if sample.labels] == [1, 1]
    read = read_labels(json.dumps(row).encode() for row in rig.labels.lines())
    assert all(calibrate(sample).labels == 1 for sample in read.values() if sample.labels)


async def test_a_chosen_label_is_on_the_disk_and_is_erased_with_its_trace(rig: Rig, tmp_path: Path) -> None:
    await rig.app.export(result())
    await choose(rig, ANSWERS)
    await rig.labels.close()
    again = Rig(tmp_path)
    assert len(again.labels.said_of(TRACE)) == 2
    assert await again.labels.forget_traces(frozenset({TRACE})) == 1
    assert again.labels.said_of(TRACE) == []
    await again.labels.close()


@pytest.mark.parametrize(
    ("answers", "said"),
    [
        ({}, "an answer to every question of at least one measure expected"),
        ({"completeness.0": "covered"}, "an answer to every question of at least one measure expected"),
        ({"completeness.0": "lovely", "completeness.1": "missing"}, "one of covered, partial, missing expected"),
        (ANSWERS | {"id": "0" * 16}, "an answer that the page still keeps expected"),
        (ANSWERS | {"colour": "red"}, "only the fields of the form on this page expected"),
    ],
)
async def test_a_label_that_is_none_is_refused(rig: Rig, answers: dict[str, str], said: str) -> None:
    await rig.app.export(result())
    refused = await choose(rig, answers)
    assert (refused.status, said in refused.body) == (400, True)
    assert rig.labelled() == {}


async def test_a_reader_neither_sees_nor_sends_the_form_of_a_chosen_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANN", "ann-and-her-token")
    rig = Rig(tmp_path, WebConfig.model_validate({"users": [{"name": "ann", "token": {"env": "ANN"}}]}))
    await rig.app.export(result())
    ann = {"authorization": "Bearer ann-and-her-token"}
    assert (await ask(rig.app, CHOSEN, f"span={SPAN}", **ann)).status == 403
    assert (await choose(rig, ANSWERS, **ann)).status == 403
    assert "/label?span" not in (await ask(rig.app, f"/interactions/{TRACE}", **ann)).body
    await rig.labels.close()


async def test_where_nothing_can_be_labelled_the_page_says_so(rig: Rig) -> None:
    await rig.app.export(result((Score("context_precision", 1.0),)))
    assert (await ask(rig.app, CHOSEN, f"span={SPAN}")).status == 404
    assert (await ask(rig.app, CHOSEN, f"span={'0' * 16}")).status == 404
