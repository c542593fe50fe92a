"""Which answers people are asked about, what is kept of what they say, and what follows from it."""

from __future__ import annotations

import itertools
import json
import stat
from pathlib import Path

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from tests.results import NOW, SettableClock, interaction
from tests.states import reread
from tracescore.calibration.label_file import read_labels
from tracescore.calibration.labelling import Labelling
from tracescore.config.drift import LabelsConfig
from tracescore.drift.baseline import DAY
from tracescore.errors import UsageError
from tracescore.model import Item, Message, Result, Score, Unscored

pytestmark = pytest.mark.anyio
OF_SHOP = {"judge": "m", "service_name": "shop", "deployment_environment": "production"}
CLAIMS = (
    Item("claim", "Returns take 30 days.", "supported", "30 days", 1.0),
    Item("claim", "They are free.", "not_found", "", 0.0),
)
PARTS = (Item("part", "How long?", "covered", "30 days", 1.0),)
GOOD = {"answer_relevancy": ["relevant"], "completeness": ["covered"], "faithfulness": ["supported", "supported"]}


class Rig:
    """Labelling of a stream of results; a new one over the same file is a restart."""

    def __init__(self, folder: Path, **settings) -> None:
        self.clock, self.numbers, self.settings = SettableClock(), itertools.count(1), {"ratio": 1.0} | settings
        self.path = folder / "labels"
        self.start()

    def start(self) -> None:
        self.registry = CollectorRegistry()
        settings = LabelsConfig(path=str(self.path), **self.settings)
        self.labelling = Labelling(self.registry, settings, "salt", self.clock)
        self.labelling.open()

    async def restart(self) -> None:
        state = reread(self.labelling.state())
        await self.labelling.close()
        self.start()
        self.labelling.resume(state)

    async def score(self, *scores, epoch: int = 0, judge: str = "m", **more) -> Result:
        scores = scores or (Score("answer_relevancy", 0.7), Score("completeness", 1.0, items=PARTS), faithful())
        told = interaction(next(self.numbers), ended=self.clock.now - 1, **({"context_source": "retrieval"} | more))
        result = Result(told, scores, judge, epoch, finished=self.clock.now)
        await self.labelling.export(result)
        return result

    async def label(self, said=None) -> None:
        drawn = await self.labelling.next()
        assert await self.labelling.give(drawn["id"], GOOD if said is None else said)

    def metric(self, name: str, **labels: str) -> float | None:
        source = {"context_source": "retrieval"} if "faithfulness" in name else {}
        return self.registry.get_sample_value(f"tracescore_{name}", OF_SHOP | source | labels)

    def states(self) -> dict[str, int]:
        return self.labelling.counts()


def faithful(score: float = 0.5, items: tuple[Item, ...] = CLAIMS) -> Score:
    return Score("faithfulness", score, items=items)


def holds(folder: Path, text: bytes) -> bool:
    return any(text in file.read_bytes() for file in folder.iterdir())


@pytest.fixture
async def rig(tmp_path: Path):
    rig = Rig(tmp_path)
    yield rig
    await rig.labelling.close()


async def test_whether_an_answer_is_drawn_has_nothing_to_do_with_its_scores(tmp_path: Path) -> None:
    rig, rng = Rig(tmp_path, ratio=0.2, max_waiting=10_000), np.random.default_rng(3)
    all_scores = rng.random(2_000)
    for score in map(float, all_scores):
        await rig.score(Score("answer_relevancy", score), trace_id=rng.bytes(16).hex())
    waiting = rig.states()["waiting"]
    assert abs(waiting - 400) < 3 * 18
    in_order = [
        each.facts["measures"]["answer_relevancy"]["score"]
        for each in rig.labelling._store._rows("WHERE told IS NOT NULL ORDER BY id")
    ]
    assert abs(np.mean(in_order) - all_scores.mean()) < 3 * 0.29 / 20
    assert abs(np.corrcoef(np.arange(waiting), in_order)[0, 1]) < 3 / 20
    await rig.labelling.close()


async def test_what_people_see_holds_no_score_and_no_verdict(rig: Rig) -> None:
    await rig.score(contexts=("30 days.",), history=(Message("user", "Hi"),))
    shown = await rig.labelling.next()
    assert shown["question"] == "How long is the return window?"
    assert shown["contexts"] == ["30 days."]
    assert shown["history"] == [{"role": "user", "text": "Hi"}]
    assert shown["asked"]["faithfulness"] == {
        "items": ["Returns take 30 days.", "They are free."], "answers": ["supported", "not_supported"],
    }  # fmt: skip
    assert shown["asked"]["answer_relevancy"]["items"] == []
    text = json.dumps(shown)
    assert "not_found" not in text
    assert "0.5" not in text
    assert "0.7" not in text


async def test_a_label_is_kept_with_score_judge_epoch_and_both_probabilities(rig: Rig) -> None:
    rig.settings["ratio"] = 1.0
    result = await rig.score(weight=10.0, epoch=3)
    await rig.label(GOOD | {"faithfulness": ["supported", "not_supported"]})
    rows = {row["measure"]: row for row in rig.labelling.lines() if "label" in row}
    assert rows["faithfulness"] == {
        "measure": "faithfulness", "judge": "m", "epoch": 3, "service": "shop", "environment": "production",
        "context_source": "retrieval", "score": 0.5, "label": 0.5, "judged": ("supported", "not_found"),
        "labelled": ("supported", "not_supported"), "pi_score": 0.1, "pi_label": 1.0,
        "at": NOW - 1, "trace_id": result.interaction.trace_id, "span_id": result.interaction.span_id,
    }  # fmt: skip
    assert {m: row["label"] for m, row in rows.items()} == {
        "answer_relevancy": 1.0, "completeness": 1.0, "faithfulness": 0.5,
    }  # fmt: skip


async def test_a_label_survives_a_restart_and_the_text_of_its_answer_is_gone(rig: Rig, tmp_path: Path) -> None:
    await rig.score(question="Is secret-7141 here?")
    assert holds(tmp_path, b"secret-7141")
    await rig.label()
    before = rig.labelling.lines()
    await rig.restart()
    assert rig.labelling.lines() == before
    assert rig.states() == {"waiting": 0, "labelled": 1, "cannot_tell": 0}
    await rig.labelling.close()
    assert not holds(tmp_path, b"secret-7141")
    rig.start()


async def test_an_answer_that_waits_survives_a_restart_and_comes_once_however_often_it_is_delivered(rig: Rig) -> None:
    result = await rig.score()
    await rig.restart()
    await rig.labelling.export(result)
    assert rig.states()["waiting"] == 1
    await rig.label()
    await rig.labelling.export(result)
    assert rig.states()["waiting"] == 0


async def test_half_a_surrogate_pair_in_what_a_judge_wrote_holds_nothing_up(rig: Rig) -> None:
    await rig.score(faithful(1.0, (Item("claim", "Broken \ud83d.", "supported", "", 1.0),)))
    assert (await rig.labelling.next())["asked"]["faithfulness"]["items"] == ["Broken \ud83d."]
    await rig.label({"faithfulness": ["supported"]})
    assert rig.states()["labelled"] == 1


async def test_what_people_cannot_tell_is_no_label_and_does_not_come_again(rig: Rig) -> None:
    await rig.score()
    await rig.label({"answer_relevancy": ["relevant"], "faithfulness": ["supported", ""]})
    assert {row["measure"] for row in rig.labelling.lines() if "label" in row} == {"answer_relevancy"}
    await rig.score()
    await rig.label({})
    assert rig.states() == {"waiting": 0, "labelled": 1, "cannot_tell": 1}
    assert await rig.labelling.next() is None


@pytest.mark.parametrize(
    ("said", "why"),
    [
        ({"faithfulness": ["contradicted", "supported"]}, "faithfulness: one of supported, not_supported expected"),
        ({"answer_relevancy": ["<script>"]}, "answer_relevancy: one of relevant, partly, off_topic expected"),
        ({"completeness": ["covered", "covered"]}, "completeness: 1 answers expected; got 2"),
    ],
)
async def test_answers_that_there_are_not_are_refused_and_the_question_goes_on_waiting(
    rig: Rig, said: dict[str, list[str]], why: str
) -> None:
    await rig.score()
    drawn = await rig.labelling.next()
    with pytest.raises(ValueError, match=why):
        await rig.labelling.give(drawn["id"], said)
    assert rig.states()["waiting"] == 1


async def test_of_two_people_who_label_the_same_answer_the_first_is_heard(rig: Rig) -> None:
    await rig.score()
    drawn = await rig.labelling.next()
    assert await rig.labelling.give(drawn["id"], GOOD)
    before = rig.labelling.lines()
    assert not await rig.labelling.give(drawn["id"], {"answer_relevancy": ["off_topic"]})
    assert not await rig.labelling.give("nothing", GOOD)
    assert rig.labelling.lines() == before


async def test_the_oldest_leave_when_too_many_wait(tmp_path: Path) -> None:
    rig = Rig(tmp_path, max_waiting=3)
    results = []
    for _ in range(5):
        rig.clock.now += 60
        results.append(await rig.score())
    assert rig.states()["waiting"] == 3
    seen = set()
    for _ in range(3):
        await rig.label()
    seen = {row["trace_id"] for row in rig.labelling.lines() if "label" in row}
    assert seen == {result.interaction.trace_id for result in results[2:]}
    await rig.labelling.close()


async def test_a_blank_answer_covers_nothing_and_nobody_need_say_so(rig: Rig) -> None:
    await rig.score(Score("answer_relevancy", 0.0, "blank"), Score("completeness", 0.0, "blank"), answer="")
    assert list((await rig.labelling.next())["asked"]) == ["answer_relevancy"]
    await rig.label({"answer_relevancy": ["off_topic"]})
    assert [(row["measure"], row["label"]) for row in rig.labelling.lines() if "label" in row] == [
        ("answer_relevancy", 0.0), ("completeness", 0.0),
    ]  # fmt: skip
    await rig.score(Score("completeness", 0.0, "blank"), answer="")
    assert rig.states() == {"waiting": 0, "labelled": 2, "cannot_tell": 0}


async def test_without_a_score_nobody_is_asked(rig: Rig) -> None:
    await rig.score(Unscored("faithfulness", "abstained"), Score("answer_correctness", 0.5))
    assert rig.states()["waiting"] == 0


# ---------------------------------------------------------------- what follows from labels


async def labelled(rig: Rig, count: int, **more) -> None:
    for number in range(count):
        good = number % 4 != 0
        await rig.score(faithful(0.9 if good else 0.2), **more)
        await rig.label({"faithfulness": ["supported"] * 2 if good else ["not_supported"] * 2})


async def test_the_corrected_mean_is_a_series_of_its_own_once_there_are_100_labels(rig: Rig) -> None:
    await labelled(rig, 99)
    assert rig.metric("faithfulness_effective_labels") == pytest.approx(99)
    assert rig.metric("faithfulness_corrected_ratio") is None
    await labelled(rig, 1)
    middle = rig.metric("faithfulness_corrected_ratio")
    assert middle == pytest.approx(0.74, abs=0.02)
    lower, upper = (rig.metric(f"faithfulness_corrected_{end}_ratio") for end in ("lower", "upper"))
    assert lower < middle < upper
    assert rig.metric("completeness_corrected_ratio") is None


async def test_scores_that_nobody_labelled_count_towards_it_also_after_a_restart(tmp_path: Path) -> None:
    rig = Rig(tmp_path)
    await labelled(rig, 200)
    before = rig.metric("faithfulness_corrected_ratio")
    rig.labelling._settings = LabelsConfig(path=str(rig.path), ratio=1e-9)
    for _ in range(2_000):
        await rig.score(faithful(0.2))
    after = rig.metric("faithfulness_corrected_ratio")
    assert after < before - 0.5
    await rig.restart()
    assert rig.metric("faithfulness_corrected_ratio") == pytest.approx(after)
    (sums,) = [row["unlabelled"] for row in rig.labelling.lines() if "unlabelled" in row]
    assert sums["weight"] == pytest.approx(2_000)
    assert sums["weighted_score"] == pytest.approx(400)
    await rig.labelling.close()


async def test_another_judge_or_epoch_begins_anew_and_late_scores_of_the_old_one_count_no_more(rig: Rig) -> None:
    await labelled(rig, 100)
    await rig.score()
    assert rig.metric("faithfulness_corrected_ratio") is not None
    await rig.score(faithful(), epoch=1)
    assert rig.metric("faithfulness_corrected_ratio") is None
    assert rig.metric("faithfulness_effective_labels") is None
    assert rig.states()["waiting"] == 1
    await rig.score(faithful(), epoch=0)
    assert rig.states()["waiting"] == 1
    assert len([row for row in rig.labelling.lines() if "label" in row]) == 100


async def test_labels_and_scores_leave_the_window_together(rig: Rig) -> None:
    await labelled(rig, 100)
    await rig.score(faithful())
    rig.clock.now += 29 * DAY
    assert rig.metric("faithfulness_corrected_ratio") is not None
    rig.clock.now += 2 * DAY
    assert rig.metric("faithfulness_corrected_ratio") is None
    (sums,) = [row["unlabelled"] for row in rig.labelling.lines() if "unlabelled" in row]
    assert sums["weight"] == 0


async def test_agreement_of_judge_and_people_is_shown_per_verdict(rig: Rig) -> None:
    for said in (["supported", "not_supported"], ["not_supported", "not_supported"]):
        await rig.score(faithful())
        await rig.label({"faithfulness": said})
    assert rig.metric("faithfulness_agreement_ratio") == pytest.approx(0.75)
    assert (
        0 < rig.metric("faithfulness_agreement_lower_ratio") < 0.75 < rig.metric("faithfulness_agreement_upper_ratio")
    )
    shown = {
        (judged, said): rig.metric("faithfulness_labelled_verdicts", judged=judged, labelled=said)
        for judged in ("supported", "contradicted", "not_found")
        for said in ("supported", "not_supported")
    }
    assert {key: value for key, value in shown.items() if value} == {
        ("supported", "supported"): 1, ("supported", "not_supported"): 1, ("not_found", "not_supported"): 2,
    }  # fmt: skip
    assert None not in shown.values()


async def test_what_is_exported_is_what_the_command_reads_and_says_the_same(rig: Rig) -> None:
    await labelled(rig, 120)
    for _ in range(30):
        await rig.score(faithful(0.9))
    samples = read_labels(json.dumps(row).encode() for row in rig.labelling.lines())
    assert samples == rig.labelling.samples()


async def test_services_beyond_twenty_are_left_out(rig: Rig) -> None:
    for number in range(25):
        await rig.score(service=f"service {number}")
    assert rig.states()["waiting"] == 20
    assert len({group.service for group in rig.labelling.samples()}) == 20


# ---------------------------------------------------------------- the file


async def test_only_the_owner_can_read_the_file_and_one_process_can_have_it(rig: Rig) -> None:
    assert stat.S_IMODE(rig.path.stat().st_mode) == 0o600
    second = Labelling(CollectorRegistry(), LabelsConfig(path=str(rig.path)), "salt", rig.clock)
    with pytest.raises(UsageError, match=r"drift\.labels\.path: .* cannot be used: database is locked"):
        second.open()


@pytest.mark.parametrize("content", [b"not a database at all" * 100, None], ids=["something else", "no such folder"])
async def test_a_file_that_cannot_be_used_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "labels" if content else tmp_path / "nowhere" / "labels"
    if content:
        path.write_bytes(content)
    with pytest.raises(UsageError, match=r"drift\.labels\.path: .*; name a file of its own there"):
        Labelling(CollectorRegistry(), LabelsConfig(path=str(path)), "salt", SettableClock()).open()
    assert not content or path.read_bytes() == content


def test_building_it_opens_nothing(tmp_path: Path) -> None:
    labelling = Labelling(CollectorRegistry(), LabelsConfig(path=str(tmp_path / "labels")), "salt", SettableClock())
    assert labelling.counts() == {"waiting": 0, "labelled": 0, "cannot_tell": 0}
    assert not list(tmp_path.iterdir())
