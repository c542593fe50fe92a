"""An empty page says how to send the first span, and turns into the scores by itself: by hand from the page alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.trace import Tracer
from playwright.sync_api import Browser, Page, expect

from tests.browser import NARROW, chromium, faults, sideways, visit
from tests.openai_server import OpenAIServer
from tests.running import FREE_PORTS, Running, serving
from tests.sample_app import answer_silently, provider

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as made:
        yield made


@pytest.fixture
def service(tmp_path: Path, judge: OpenAIServer) -> Iterator[Running]:
    with serving(tmp_path, f"{FREE_PORTS}assembly: {{idle: 200ms}}\n{judge.settings}") as running:
        yield running


def url(service: Running) -> str:
    return f"http://{service.addresses['page']}"


def send(service: Running, spans: Callable[[Tracer], None], scope: str = "plain") -> None:
    app = provider(OTLPSpanExporter(endpoint=f"http://{service.addresses['http']}/v1/traces"))
    spans(app.get_tracer(scope))
    app.shutdown()


def plain(tracer: Tracer) -> None:
    with tracer.start_as_current_span("GET /"):
        pass


def hide(page: Page, hidden: bool) -> None:
    """As the browser does when another window covers the page."""
    page.evaluate(
        """hidden => {
            Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        hidden,
    )


def test_the_program_on_the_empty_page_leads_to_the_first_score_without_a_reload_or_by_a_link(
    browser: Browser, service: Running
) -> None:
    window, bare = visit(browser, url(service)), visit(browser, url(service), script=False, width=NARROW)
    window.page.goto("/")
    bare.page.goto("/")
    expect(window.page.get_by_role("heading", level=1)).to_have_text("Send the first span")
    shown = window.page.inner_text("main")
    assert service.addresses["grpc"] in shown
    assert service.addresses["http"] in shown
    assert not faults(window.page)
    assert not sideways(bare.page)
    window.page.evaluate("window.opened = true")
    program = window.page.inner_text("#snippet")
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    expect(window.page.locator(".steps")).to_have_count(0, timeout=30_000)
    expect(window.page.locator("main")).to_contain_text("first-app")
    assert window.page.evaluate("window.opened")  # the same document: nobody reloaded it
    assert not window.errors
    bare.page.get_by_role("link", name="look again").click()
    expect(bare.page.locator(".steps")).to_have_count(0)
    expect(bare.page.locator("main")).to_contain_text("first-app")


def test_the_empty_page_follows_what_comes_and_leaves_the_reader_alone(browser: Browser, service: Running) -> None:
    page = visit(browser, url(service)).page
    page.clock.install()
    page.goto("/")
    heading, said = page.get_by_role("heading", level=1), page.locator("#news")
    page.get_by_role("link", name="look again").focus()
    hide(page, hidden=True)
    send(service, plain)
    service.wait_value(1, "tracescore_receiver_spans_total")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.clock.run_for(60_000)
    assert (asked, heading.inner_text(), said.inner_text()) == ([], "Send the first span", "")
    hide(page, hidden=False)
    expect(heading).to_have_text("Spans have arrived")
    expect(said).to_have_text("The first spans have arrived.")
    assert page.evaluate("document.activeElement.textContent") == "look again"
    send(service, answer_silently, "openinference.instrumentation.langchain")
    service.wait_value(1, "tracescore_interactions_total")
    page.clock.run_for(2_000)
    expect(heading).to_have_text("The texts are missing")
    expect(page.locator("main")).to_contain_text("openinference.instrumentation.langchain")
    assert not faults(page)


def test_the_page_asks_ever_less_often_while_the_service_is_away(browser: Browser, service: Running) -> None:
    page = visit(browser, url(service)).page
    page.clock.install()
    page.goto("/")
    asked: list[str] = []
    page.on("requestfailed", lambda request: asked.append(request.url))
    service.terminate()
    for _ in range(60):
        page.clock.run_for(2_000)
        page.evaluate("1")  # a turn of the event loop, in which a failed request is noticed
    assert 3 <= len(asked) <= 6  # after 2, 4, 8, 16 and 32 seconds
    expect(page.get_by_role("heading", level=1)).to_have_text("Send the first span")
