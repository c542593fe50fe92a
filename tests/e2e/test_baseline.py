"""`tracescore baseline` and `anchors` as they are typed, against a service that runs, and what outlives its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter

from tests.app_server import Answer, app_server
from tests.live import GOOD, WINDOW
from tests.openai_server import OpenAIServer, openai_server
from tests.running import FREE_PORTS, Running, run, serving
from tests.sample_app import Asked, answer, provider

SETTINGS = """
assembly: {{idle: 200ms}}
judge: {{kind: openai, model: m, base_url: "{url}", max_retries: 0}}
embedder: {{kind: openai, model: e, base_url: "{url}"}}
spool: {{path: "{spool}"}}
"""


def settings(judge: OpenAIServer, tmp_path: Path) -> str:
    return FREE_PORTS + SETTINGS.format(url=judge.url, spool=tmp_path / "spool")


def ask(service: Running, *asked: Asked) -> None:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['grpc']}", insecure=True))
    for each in asked:
        answer(app.get_tracer("app"), each)
    app.shutdown()
    service.wait_value(3 * len(asked), "tracescore_evaluations_total")


def row(shown: str, detector: str, against: str = "baseline") -> str:
    (found,) = [line for line in shown.splitlines() if line.split()[:2] == [detector, against]]
    return found


def test_baselines_are_shown_pinned_and_reset_and_go_on_after_a_restart(tmp_path: Path) -> None:
    with openai_server() as judge:
        with serving(tmp_path, settings(judge, tmp_path)) as service:
            page = ("--page", f"http://{service.addresses['page']}")
            assert "No scores yet" in run("baseline", "show", *page).stdout
            ask(service, GOOD, GOOD)
            assert "learning" in row(run("baseline", "show", *page).stdout, "completeness")
            early = run("baseline", "pin", *page)
            assert (early.returncode, early.stdout.split(";")[0].strip()) == (1, "pin: 0 detectors")
            pinned = run("baseline", "pin", *page, "--detector", "completeness", "--at", "0.8", "--service", "shop")
            assert pinned.stdout == "pin: 1 detectors\n"
            assert "0.800" in row(run("baseline", "show", *page).stdout, "completeness")
            exported = run("baseline", "export", *page)
            assert exported.stdout == '"shop": {completeness: 0.800}\n'
            again = run("baseline", "pin", *page).stdout
            assert "still learning, from too few scores: answer_relevancy, answered, completeness_mu" in again
            paused = run("baseline", "pause", *page, "--service", "shop", "--until", "2h", "--why", "a new prompt")
            assert paused.stdout == "pause: 8 detectors\n"
            service.terminate()
        known = run("check", "--spool", str(tmp_path / "spool"), str(tmp_path / "tracescore.yaml"))
        assert (known.returncode, known.stderr) == (0, "")
        assert "completeness: too few answers yet" in known.stdout
        with serving(tmp_path, settings(judge, tmp_path)) as service:
            page = ("--page", f"http://{service.addresses['page']}")
            shown = run("baseline", "show", *page).stdout
            assert "(a new prompt); learns anew afterwards" in shown
            assert "paused" in row(shown, "completeness")
            assert "0.800" in row(shown, "completeness")
            assert run("baseline", "resume", *page, "--service", "shop").stdout == "resume: 8 detectors\n"
            assert run("baseline", "reset", *page).stdout == "reset: 8 detectors\n"
            assert "learning" in row(run("baseline", "show", *page).stdout, "completeness")


def test_anchors_are_drawn_from_what_was_scored_and_can_be_used(tmp_path: Path) -> None:
    with openai_server() as judge:
        with serving(tmp_path, settings(judge, tmp_path)) as service:
            other = Asked(
                "Where do I return it?",
                "You return it at the desk.",
                ("Items are returned at the desk.", "Or by post, for 5 €."),
            )
            ask(service, GOOD, other, GOOD)
            page = f"http://{service.addresses['page']}"
            made = run("anchors", "make", "--page", page, PYTHONIOENCODING="ascii")
        rows = [json.loads(line) for line in made.stdout.splitlines()]
        assert {each["question"] for each in rows} == {WINDOW[0], other.question}
        assert list(other.contexts) in [each["contexts"] for each in rows]
        assert "2 of 100" in made.stderr
        anchors = tmp_path / "anchors.jsonl"
        anchors.write_text(made.stdout)
        with serving(tmp_path, f"{settings(judge, tmp_path)}drift: {{anchors: {anchors}}}\n") as service:
            service.wait_log("event=anchors_known")
        anchors.write_text("{}\n{}\n")
        refused = run("check", str(tmp_path / "tracescore.yaml"))
    assert refused.returncode == 2
    assert f"drift.anchors: {anchors}:1: {{question, contexts, answer}} expected" in refused.stderr


def test_the_token_of_the_page_goes_to_the_page_and_past_every_proxy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PAGE_TOKEN", "sesame")
    file = tmp_path / "commands.yaml"
    file.write_text("web: {token: {env: PAGE_TOKEN}}\n")
    with openai_server() as judge, app_server() as proxy:
        listening = settings(judge, tmp_path).replace("web: {", "web: {token: {env: PAGE_TOKEN}, ")
        labels = f"drift: {{labels: {{path: {tmp_path / 'labels'}}}}}\n"
        with serving(tmp_path, listening + labels) as service:
            page = ("-c", str(file), "--page", f"http://{service.addresses['page']}")
            for command in (("baseline", "show"), ("anchors", "make"), ("labels",)):
                done = run(*command, *page, http_proxy=proxy.url, HTTP_PROXY=proxy.url, no_proxy="", NO_PROXY="")
                assert done.returncode == 0, done.stderr
    assert proxy.asked == []


def test_the_token_of_the_page_follows_no_redirect(tmp_path: Path) -> None:
    file = tmp_path / "commands.yaml"
    file.write_text("web: {token: {env: PAGE_TOKEN}}\n")
    with app_server() as elsewhere, app_server() as page:
        page.otherwise = Answer({}, status=302, headers={"location": elsewhere.url})
        done = run("baseline", "show", "-c", str(file), "--page", page.url, PAGE_TOKEN="sesame")
    assert (done.returncode, len(page.asked), elsewhere.asked) == (2, 1, [])
    assert "answered 302; is it a tracescore page of this version?" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("baseline", "show", "--page", "http://127.0.0.1:9"), "no tracescore answers there"),
        (("baseline", "show", "--page", "127.0.0.1:9465"), "--page: a URL such as"),
        (("anchors", "make", "--page", "http://127.0.0.1:9"), "no tracescore answers there"),
        (("baseline", "pause", "--until", "2h", "--why", "x"), "baseline pause: --service NAME expected"),
        (("baseline", "pause", "--service", "shop", "--until", "2h"), '--until 2h and --why "the reason" expected'),
    ],
)
def test_a_service_that_is_not_there_is_said_in_one_line(arguments: tuple[str, ...], why: str) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert why in done.stderr


def test_with_any_free_port_the_page_must_be_named(tmp_path: Path) -> None:
    file = tmp_path / "tracescore.yaml"
    file.write_text(FREE_PORTS)
    done = run("baseline", "show", "-c", str(file))
    assert done.returncode == 2
    assert "--page URL" in done.stderr
