"""What version 0.1.0 left when it was killed is read by the code of today: no figure, baseline or work is lost.

`tests/unit/data/released_0_1_0.py` says what is in the files and how they came to be.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import anyio
import pytest
import yaml
from anyio import to_thread

from tests.openai_server import OpenAIServer, Reply, Request, by, openai_server
from tests.otlp_sink import Sink, otlp_sink
from tests.results import SettableClock
from tracescore.config import Config
from tracescore.service import Service

pytestmark = pytest.mark.anyio

DATA = Path(__file__).parents[1] / "unit" / "data"
LEFT = json.loads((DATA / "released-0.1.0.json").read_text())
"""The configuration, the moment, and all that the process showed and had in hand then."""
DELIVERED = "tracescore_exporters_otlp_waiting"
"""The one figure that changes, as the destination is there again."""

COMPARED = {f"tracescore_drift_release_change{each}_ratio" for each in ("", "_lower", "_upper")}
"""Releases are compared anew, from scores that 0.1.0 did not keep by hours."""

Figures = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def answering(request: Request) -> Reply:
    return by("another")(request)


def silent(request: Request) -> Reply:
    """A judge that is fit and never answers."""
    return replace(answering(request), delay=0 if request.is_probe else 600)


@dataclass
class Rig:
    """A folder with the files, what is around the service, and its clock."""

    folder: Path
    judge: OpenAIServer
    sink: Sink
    relay: Sink
    clock: SettableClock

    @asynccontextmanager
    async def running(self, script: Any) -> AsyncIterator[Service]:
        self.judge.script = script
        places = {"FOLDER": self.folder, "JUDGE": self.judge.url, "SINK": self.sink.http, "RELAY": self.relay.http}
        text = f"shutdown_grace: 200ms\n{LEFT['config']}".replace('"APP"', '"http://127.0.0.1:9"')
        for name, place in places.items():
            text = text.replace(name, str(place))
        service, stop = Service(Config.model_validate(yaml.safe_load(text)), self.clock), anyio.Event()
        async with anyio.create_task_group() as tasks:
            await tasks.start(service.run, stop)
            yield service
            stop.set()


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    with zipfile.ZipFile(DATA / "released-0.1.0.zip") as archive:
        archive.extractall(tmp_path)
    with ExitStack() as stack:
        judge = stack.enter_context(openai_server())
        sink, relay = (stack.enter_context(otlp_sink()) for _ in range(2))
        yield Rig(tmp_path, judge, sink, relay, SettableClock(LEFT["now"]))


LEDGER = ("tracescore_interactions_total", "tracescore_evaluations_total")
APP = ("service_name", "deployment_environment")
"""Labels that 0.1.0 did not have everywhere; an empty one is none."""


def figures(rows: Any) -> Figures:
    """Those that are not 0, and not the one that may change; of the ledger, those of all services together."""
    found: Figures = {}
    for name, labels, value in rows:
        if value and name not in {DELIVERED, *COMPARED}:
            of_all = name in LEDGER
            by = {k: v for k, v in labels.items() if k not in APP or (not of_all and v)}
            key = name, tuple(sorted(by.items()))
            found[key] = found.get(key, 0.0) + value
    return found


def shown(service: Service) -> Figures:
    """The figures of today that version 0.1.0 had, too."""
    known = {name for name, _, _ in LEFT["samples"]} - COMPARED
    samples = (sample for family in service.registry.collect() for sample in family.samples)
    return figures((s.name, s.labels, s.value) for s in samples if s.name in known)


def total(service: Service, name: str, **labels: str) -> float:
    samples = [s for family in service.registry.collect() for s in family.samples if s.name == f"tracescore_{name}"]
    return sum(s.value for s in samples if labels.items() <= s.labels.items())


async def until(service: Service, wanted: float, name: str, **labels: str) -> None:
    with anyio.fail_after(60):
        while total(service, name, **labels) != wanted:  # noqa: ASYNC110 - a metric has no event
            await anyio.sleep(0.05)


def _known(service: dict[str, Any]) -> dict[str, Any]:
    """What is kept of a service, but for the evidence, which the figures show, and the words for it."""
    detectors = [each | {"evidence_days": None, "release_change": None} for each in service["detectors"]]
    return service | {"detectors": detectors, "advice": None, "releases": None}


async def test_every_figure_baseline_and_label_is_what_it_was_and_stays_so_over_a_restart(rig: Rig) -> None:
    for life in ("of the files of 0.1.0", "of its own"):
        async with rig.running(silent) as service:
            assert total(service, "spool_errors_total") == 0, life
            now, left = shown(service), figures(LEFT["samples"])
            assert now.keys() == left.keys(), life
            # Evidence of a told change has another ceiling since; the scores after the last checkpoint meet it.
            told = {key for key in left if key[0] == "tracescore_drift_evidence_days" and left[key] > 1_000}
            assert {k: v for k, v in now.items() if k not in told} == {
                k: v for k, v in left.items() if k not in told
            }, life
            assert all(now[key] > 1_000 for key in told), life
            assert service.drift is not None
            assert service.labelling is not None
            drift = json.loads(json.dumps(service.drift.show()))
            new = [each.pop("between_days_ratio") for one in drift["services"] for each in one["detectors"]]
            assert set(new) == {None}, "0.1.0 did not learn how days differ"
            for one in drift["services"]:
                assert one.pop("pause") is None
                for each in one["detectors"]:
                    words = [each.pop(name) for name in ("says", "drop", "gap")]
                    assert words[0], "what 0.1.0 knew is said in words"
            assert [_known(one) for one in drift["services"]] == [_known(one) for one in LEFT["baseline"]["services"]]
            assert json.loads(json.dumps(service.labelling.lines())) == LEFT["labels"], life
            epochs = service.scorer.judge.epochs
            assert epochs is not None
            assert [epochs.number, epochs.model] == LEFT["epoch"][:2], "the prompts are those of 0.1.0"


async def test_what_waited_for_the_judge_or_for_a_destination_comes_to_its_end_once(rig: Rig) -> None:
    owed = {key.partition("/")[0] for exporter, key in LEFT["owed"] if exporter == "otlp"}
    before = {measure: sum(v for (name, labels), v in figures(LEFT["samples"]).items()
                           if name == "tracescore_evaluations_total" and ("measure", measure) in labels)
              for measure in ("answer_relevancy", "completeness", "faithfulness")}  # fmt: skip
    async with rig.running(silent):
        delivered = await rig.sink.awaited(spans=len(owed))
        assert {span["trace_id"] for span in delivered.spans} == owed
    rig.sink.clear()
    async with rig.running(answering) as service:
        for measure, count in before.items():
            await until(service, count + len(LEFT["waiting"]), "evaluations_total", measure=measure)
        delivered = await rig.sink.awaited(spans=len(LEFT["waiting"]))
        assert sorted(span["trace_id"] for span in delivered.spans) == LEFT["waiting"]
        await until(service, 2, "exporters_forward_held_spans")
        rig.clock.now += 300  # the trace that was open has waited for its root
        await until(service, sum(before.values()) + 3 * 3, "evaluations_total")
        await until(service, 0, "exporters_forward_held_spans")
        passed_on = await rig.relay.awaited(spans=len(LEFT["withheld"]))
        assert sorted([each["trace_id"], each["span_id"]] for each in passed_on.spans) == LEFT["withheld"]
        scored = [each["trace_id"] for each in passed_on.spans if "tracescore.answer_relevancy" in each["attributes"]]
        assert sorted(scored) == [*LEFT["waiting"], LEFT["withheld"][-1][0]]
        await to_thread.run_sync(rig.relay.clear)
    async with rig.running(silent) as service:
        assert total(service, "evaluations_pending") == 0
        assert total(service, "exporters_forward_held_spans") == 0
        assert rig.relay.received().spans == []
