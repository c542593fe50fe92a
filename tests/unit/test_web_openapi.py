"""The API: each answer is what its description says, each call is described, and programs get JSON whatever happens."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry
from pydantic import TypeAdapter

from tests import results
from tests.gold_runs import runner, write_set
from tests.results import NOW
from tests.web_results import LEDGER, TRACE, ask, evaluations, result
from tracescore.calibration.labelling import Labelling
from tracescore.config import DEFAULT_MEASURES, Config, WebConfig
from tracescore.config.drift import LabelsConfig
from tracescore.config.types import Secret
from tracescore.drift.releases import Releases
from tracescore.drift.watch import DriftWatch
from tracescore.interactions import content_switch
from tracescore.model import Found, Item, Message, Score, Unscored
from tracescore.net.access import AccessMetrics
from tracescore.web import api, choice, openapi
from tracescore.web.pages import Pages
from tracescore.web.routes import ROUTES

pytestmark = pytest.mark.anyio

OURS = {"x-tracescore": "1"}
BARE = WebConfig()


class Kept:
    """What stands in for the spool: it says what it was asked."""

    async def erase(self, what: str, value: str) -> dict[str, Any]:
        return {"traces": 1, "what": what}

    async def look(self) -> dict[str, Any]:
        return {"bytes": 1}

    async def back_up(self, path: str) -> dict[str, Any]:
        return {"path": path}

    async def save(self) -> None:
        """Nothing waits here."""


async def whole(folder: Path, web: WebConfig = BARE) -> Pages:
    """A page with every part, and interactions of every kind."""
    config, registry = Config(), CollectorRegistry()
    watch = DriftWatch(registry, config.drift, config.sampling, DEFAULT_MEASURES, lambda: NOW)
    releases = Releases(registry, lambda: NOW)
    labels = Labelling(registry, LabelsConfig(path=str(folder / "labels"), ratio=1.0), "salt", lambda: NOW)
    labels.open()
    gold = runner(write_set(folder / "faq.jsonl"), {"kind": "python", "callable": "tests.unit.test_web_gold:answer"})
    await gold.run("hand")
    app = Pages(
        web, lambda: LEDGER, lambda: NOW, registry, AccessMetrics(registry),
        releases=releases, endpoints={}, target=lambda *_: 0.5, switch=content_switch, changes=watch,
        labelling=labels, gold=gold, kept=Kept, live=len,
    )  # fmt: skip
    items = (Item("claim", "a", "supported", "q", 1.0, 0), Item("claim", "b"))
    scored = (*evaluations(), Score("context_precision", 1.0, items=items, details={"useful": 1.0}))
    history = (Message("user", "Before?"),)
    for each in (
        result(scored, history=history, conversation_id="c", found={"answer": Found("s", "k", ("t",))}),
        results.result(
            Unscored("faithfulness", "no_contexts"), number=2, question=None, answer=None, state="no_answer"
        ),
        results.result(Score("faithfulness", 0.5), number=3, context_source="prompt", service="docs"),
    ):
        for part in (app, app.history, watch, releases, labels):
            await part.export(each)
    return app


BODIES = {
    "/baseline": {"action": "reset", "service": "shop"},
    "/gold/live": {"answers": ["a"]},
    "/spool": {"backup": "/tmp/copy"},
    "/erase": {"trace": TRACE},
}
QUERIES = {"/releases": "service=shop", "/history": "service=shop&range=hour", "/interactions": "group=question"}


def called(call: openapi.ApiCall) -> dict[str, Any]:
    body = json.dumps(BODIES[call.path]).encode() if call.method == "POST" else b""
    path = f"{openapi.ROOT}{call.path}".replace("{trace}", TRACE)
    return {"path": path, "method": call.method, "body": body, **(OURS if call.method == "POST" else {})}


@pytest.mark.parametrize("call", openapi.CALLS, ids=lambda call: f"{call.method} {call.path}")
@pytest.mark.parametrize("with_query", [False, True])
async def test_an_answer_is_exactly_of_the_shape_that_its_description_names(
    call: openapi.ApiCall, with_query: bool, tmp_path: Path
) -> None:
    query = QUERIES.get(call.path, "") if with_query or call.required else ""
    reply = await ask(await whole(tmp_path), query=query, **called(call))
    assert reply.status == 200, reply.body
    answer = json.loads(reply.body)
    assert TypeAdapter(call.gives).validate_python(answer) == answer  # nothing that the type does not have
    described = openapi.description()["paths"][f"{openapi.ROOT}{call.path}".replace("{trace}", "{trace_id}")]
    schema = described[call.method.lower()]["responses"]["200"]["content"]["application/json"]["schema"]
    assert not list(wrong(answer, schema))


def wrong(value: Any, schema: dict[str, Any], where: str = "") -> Any:
    """Where a value is not of its schema, by the keywords that the description uses."""
    if "$ref" in schema:
        schema = openapi.description()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if "anyOf" in schema:
        if all(list(wrong(value, each, where)) for each in schema["anyOf"]):
            yield where
        return
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None), "integer": int}
    kind = schema.get("type")
    fits = isinstance(value, int | float) if kind == "number" else kind is None or isinstance(value, kinds[kind])
    if not fits:
        yield f"{where}: {kind} expected; got {value!r}"
    elif kind == "array":
        for number, each in enumerate(value):
            yield from wrong(each, schema.get("items", {}), f"{where}[{number}]")
    elif kind == "object":
        yield from (f"{where}.{name} is missing" for name in schema.get("required", ()) if name not in value)
        known, other = schema.get("properties", {}), schema.get("additionalProperties", {})
        for name, each in value.items():
            inner = known.get(name) or (other if isinstance(other, dict) else {})
            yield from wrong(each, inner, f"{where}.{name}")


async def test_the_schemas_of_the_test_above_find_what_is_wrong() -> None:
    schema = openapi.description()["components"]["schemas"]["LedgerShape"]
    good = {"spans": 1, "interactions": {"complete": 1}, "evaluations": {}}
    assert not list(wrong(good, schema))
    for bad in ({"spans": 1, "interactions": {}}, good | {"spans": "1"}, good | {"interactions": {"complete": None}}):
        assert list(wrong(bad, schema))


async def test_every_route_of_the_api_is_described_and_the_other_way_round(tmp_path: Path) -> None:
    reply = await ask(await whole(tmp_path), f"{openapi.ROOT}/openapi.json")
    description = json.loads(reply.body)
    described = {(path, method.upper()) for path, of in description["paths"].items() for method in of}
    routes = {
        (route.path.replace("{trace}", "{trace_id}"), method)
        for route in ROUTES
        for method in route.methods
        if route.path.startswith("/api/") and method != "HEAD" and not route.path.endswith("openapi.json")
    }
    assert described == routes
    assert all(path.startswith("/api/v1/") for path, _ in described)
    references = re.findall(r'"#/components/schemas/(\w+)"', reply.body)
    assert references
    assert set(references) <= set(description["components"]["schemas"])
    assert set(description["paths"]["/api/v1/interactions"]["get"]["parameters"][0]) == {
        "name",
        "in",
        "required",
        "schema",
    }
    fields = [each["name"] for each in description["paths"]["/api/v1/interactions"]["get"]["parameters"]]
    assert fields == list(choice.FIELDS)
    assert len({of["operationId"] for path in description["paths"].values() for of in path.values()}) == len(described)


async def test_services_and_their_history_hold_what_was_scored(tmp_path: Path) -> None:
    app = await whole(tmp_path)
    services = json.loads((await ask(app, "/api/v1/services")).body)["services"]
    assert {each["service"] for each in services} == {"shop", "docs"}
    shop = next(each for each in services if each["service"] == "shop")
    relevancy = next(each for each in shop["measures"] if each["measure"] == "answer_relevancy")
    assert (relevancy["mean"]["value"], relevancy["mean"]["scores"], relevancy["target"]) == (0.81, 1, 0.5)
    history = json.loads((await ask(app, "/api/v1/history", "service=shop")).body)
    lines = {line["of"]["measure"]: line["points"] for line in history["series"]}
    assert [point["mean"]["value"] for point in lines["answer_relevancy"]] == [0.81]


async def test_the_list_of_the_api_is_the_list_of_the_page(tmp_path: Path) -> None:
    app = await whole(tmp_path)
    answer = json.loads((await ask(app, "/api/v1/interactions", "faithfulness.max=0.6&sort=-faithfulness")).body)
    assert (answer["kept"], answer["found"], answer["pages"]) == (3, 1, 1)
    assert answer["interactions"][0]["scores"]["faithfulness"]["value"] == 0.5
    assert answer["questions"] == []


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/api/v1/interactions?state=fine", 400, "state: one of complete,"),
        (f"/api/v1/interactions/{'0' * 32}", 404, "none of them is of this trace"),
        ("/api/v1/interactions/nothing", 404, "No page has this address"),
        ("/api/v1/releases", 400, "service: the name of one expected"),
        ("/api/v1/history", 400, "service: the name of one expected"),
        ("/api/v1/history?service=nowhere", 404, "/api/v1/services lists all services"),
        ("/api/v1/history?service=shop&range=year", 400, "range: one of hour, day, week expected; got 'year'"),
        ("/api/v1/anchors?count=0", 400, "count: 1 to 1000 expected; got '0'"),
        ("/api/baseline", 404, "No page has this address"),
    ],
)
async def test_a_program_is_told_in_json_what_is_wrong(path: str, status: int, said: str, tmp_path: Path) -> None:
    reply = await ask(await whole(tmp_path), *path.split("?"))
    assert (reply.status, reply.headers["content-type"]) == (status, "application/json")
    assert said in json.loads(reply.body)["error"]


async def test_a_program_without_a_token_gets_no_form_for_people(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("PAGE_TOKEN", "sesame")
    app = await whole(tmp_path, WebConfig(token=Secret(env="PAGE_TOKEN")))
    for path in ("/api/v1/services", "/api/v1/openapi.json"):
        reply = await ask(app, path)
        assert (reply.status, json.loads(reply.body)["error"][:16]) == (401, "a token expected")
        assert reply.headers["www-authenticate"] == "Bearer"
        assert (await ask(app, path, authorization="Bearer sesame")).status == 200
    posted = await ask(app, "/api/v1/services", method="POST")
    assert (posted.status, posted.headers["content-type"]) == (405, "application/json")


@pytest.mark.parametrize(
    "call", [each for each in openapi.CALLS if each.needs == "operator"], ids=lambda call: call.path
)
async def test_what_takes_an_operator_is_refused_to_a_reader(
    call: openapi.ApiCall, tmp_path: Path, monkeypatch: Any
) -> None:
    monkeypatch.setenv("ANN", "ann-and-her-token")
    web = WebConfig.model_validate({"users": [{"name": "ann", "role": "reader", "token": {"env": "ANN"}}]})
    reply = await ask(await whole(tmp_path, web), authorization="Bearer ann-and-her-token", **called(call))
    assert (reply.status, json.loads(reply.body)) == (
        403,
        {"error": "ann is a reader; this takes an operator (web.users)"},
    )


async def test_a_part_that_this_process_does_not_have_says_so(tmp_path: Path) -> None:
    registry = CollectorRegistry()
    app = Pages(
        WebConfig(), lambda: LEDGER, lambda: NOW, registry, AccessMetrics(registry),
        releases=Releases(registry, lambda: NOW), endpoints={}, target=lambda *_: None, switch=content_switch,
    )  # fmt: skip
    for path in ("/drift", "/gold", "/labels", "/spool"):
        assert (await ask(app, f"/api/v1{path}")).status == 409, path


async def test_half_a_surrogate_pair_of_a_judge_spoils_no_answer(tmp_path: Path) -> None:
    app = await whole(tmp_path)
    await app.export(results.result(Score("faithfulness", 1.0, items=(Item("claim", "\ud800"),)), number=9))
    answer = json.loads((await ask(app, f"/api/v1/interactions/{9:032x}")).body)
    assert answer[0]["evaluations"][0]["items"][0]["text"] == "?"
    assert api.HEADER == "x-tracescore"


async def test_the_docs_name_every_call_and_no_other() -> None:
    page = (Path(__file__).parents[2] / "docs" / "page.md").read_text()
    named = set(re.findall(r"`(GET|POST) (/api/v1/[^`]*)`", page))
    calls = {(call.method, f"{openapi.ROOT}{call.path}".replace("{trace}", "{trace_id}")) for call in openapi.CALLS}
    assert named == calls
