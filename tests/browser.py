"""A real Chromium, driven by Playwright, and what tests ask of a page in it. Chromium comes from the system."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from html import unescape
from typing import Any, Literal
from urllib.parse import parse_qs, unquote, urlsplit

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import APIRequestContext, Browser, BrowserContext, Page, sync_playwright

from tests.servers import INSTALL, cannot_run
from tracescore.web.routes import ROUTES

Colours = Literal["light", "dark"]
NARROW, WIDE = 390, 1280
"""Widths of a telephone and of a window, in CSS pixels."""


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser of its own. Where there is none the test is skipped, or fails where CI=true says it must run."""
    path = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if path is None:
        cannot_run(f"chromium is not installed: {INSTALL}")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--force-color-profile=srgb"])
        try:
            yield browser
        finally:
            browser.close()


def visit(browser: Browser, url: str, *, width: int = WIDE, colours: Colours = "light", script: bool = True) -> Visit:
    """A window of its own, logged in nowhere."""
    context = browser.new_context(
        base_url=url,
        viewport={"width": width, "height": 900},
        color_scheme=colours,
        java_script_enabled=script,
        reduced_motion="reduce",
    )
    context.set_default_timeout(10_000)
    return Visit(context)


class Visit:
    """One window and what went wrong in it."""

    def __init__(self, context: BrowserContext) -> None:
        self.context = context
        self.page: Page = context.new_page()
        self.errors: list[str] = []
        """What the browser reported: blocked by the content policy, failed scripts, failed requests."""
        self.page.on("console", lambda said: self.errors.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))

    def log_in(self, token: str) -> None:
        """Logs in by the form, as people do."""
        self.page.goto("/")
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button").click()
        self.page.wait_for_url("**/")
        self.errors.clear()  # the form comes with status 401, which the browser reports

    def close(self) -> None:
        """Closes the window."""
        self.context.close()


ALIKE = 3
"""Pages of one kind that are looked at, each with a field in its address that those before do not have."""


def pages_of(client: APIRequestContext) -> Iterator[str]:
    """The pages that links lead to, from the first one on; of those that differ in ids and values alone, one."""
    waiting, known = ["/"], {"/": [frozenset[str]()]}
    while waiting:
        reply = client.get(address := waiting.pop(0))
        assert reply.ok, address
        if "text/html" not in reply.headers["content-type"]:
            continue
        yield address
        for link in map(unescape, re.findall(r'<a [^>]*href="(/[^"#]*)', reply.text())):
            parts = urlsplit(link)
            kind = next((route.path for route in ROUTES if route.match(unquote(parts.path)) is not None), parts.path)
            fields, alike = frozenset(parse_qs(parts.query)), known.setdefault(kind, [])
            if len(alike) < ALIKE and (not alike or fields - frozenset.union(*alike)):
                alike.append(fields)
                waiting.append(link)


GUIDELINES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
OF_LOOKS = ("color-contrast", "link-in-text-block", "scrollable-region-focusable", "target-size")
"""What can differ between colours and widths."""


def faults(page: Page, *rules: str) -> list[str]:
    """What axe-core finds serious or worse, by all rules or by these: the rule, what it is about, and the elements."""
    only = {"type": "rule", "values": rules} if rules else {"type": "tag", "values": GUIDELINES}
    found: list[dict[str, Any]] = (
        Axe().run(page, options={"runOnly": only, "resultTypes": ["violations"]}).response["violations"]
    )
    return [
        f"{each['id']}: {each['help']}: " + "; ".join(node["html"][:160] for node in each["nodes"][:4])
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


def sideways(page: Page) -> list[str]:
    """What reaches beyond the right edge of a page that scrolls sideways; empty when it does not."""
    return page.evaluate("""() => {
        const wide = document.documentElement.clientWidth;
        if (document.documentElement.scrollWidth <= wide) return [];
        const out = [...document.body.querySelectorAll("*")].filter(e => e.getBoundingClientRect().right > wide + 1);
        return out.slice(0, 5).map(e => e.outerHTML.slice(0, 160)).concat(
            out.length ? [] : ["the page is " + document.documentElement.scrollWidth + " px wide"]);
    }""")


REACHABLE = "a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex='0']"


def by_keyboard(page: Page) -> list[str]:
    """What can be acted on and the Tab key does not reach, and what it reaches unseen or against the page's order.

    Elements are told by their place in the document, as a number before their beginning.
    """
    page.evaluate(
        """selector => {
            window.all = [...document.querySelectorAll("*")];
            window.said = e => all.indexOf(e) + " " + e.outerHTML.slice(0, 100);
            window.style = e => { const s = getComputedStyle(e);
                return [s.outlineStyle, s.outlineWidth, s.outlineColor, s.boxShadow, s.borderColor].join(); };
            window.groups = new Set();
            window.actable = [...document.querySelectorAll(selector)].filter(e => {
                if (!e.checkVisibility({visibilityProperty: true}) || e.disabled) return false;
                if (e.type !== "radio") return true;
                const name = (e.form ? all.indexOf(e.form) : "") + e.name;  // arrows reach the rest of it
                const first = !groups.has(name); groups.add(name);
                return first || e.checked;
            });
            const top = document.createElement("i");  // where the keys begin, whatever has the focus
            top.tabIndex = -1;
            document.body.prepend(top);
            top.focus();
            top.remove();
            window.before = new Map(actable.map(e => [e, style(e)]));
            window.scrollTo(0, 0);
        }""",
        REACHABLE,
    )
    wanted: list[str] = page.evaluate("() => actable.map(said)")
    reached: list[str] = []
    wrong: list[str] = []
    for _ in range(len(wanted) + 2):
        page.keyboard.press("Tab")
        now = page.evaluate("""() => {
            const e = document.activeElement;
            if (e === document.body || e === document.documentElement) return null;
            const box = e.getBoundingClientRect();
            const inside = box.bottom > 0 && box.top < innerHeight && box.width > 0 && box.height > 0;
            const visible = inside && (!before.has(e) || style(e) !== before.get(e));
            return [said(e), visible];
        }""")
        if now is None or now[0] in reached:
            break
        if not now[1]:
            wrong.append(f"no visible focus: {now[0]}")
        if reached and int(now[0].split()[0]) < int(reached[-1].split()[0]):
            wrong.append(f"against the order: {now[0]}")
        reached.append(now[0])
    return wrong + [f"not reached: {each}" for each in wanted if each not in reached]
