"""Every page in a real Chromium: accessible, narrow, by keyboard, without a script, within its content policy."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page

from tests.browser import NARROW, OF_LOOKS, WIDE, by_keyboard, chromium, faults, pages_of, sideways, visit
from tests.seeded import TOKEN, seeded
from tracescore.web.routes import ROUTES

pytestmark = [pytest.mark.server, pytest.mark.timeout(300)]

UNLINKED = ("/nowhere", "/?measure=beauty")
"""Pages that no link leads to: those of errors."""
Look = dict[str, list[str]]
"""What is wrong with a page, by what was looked at."""


@pytest.fixture(scope="module")
def looks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Look]]:
    """What is wrong with one page of each kind, by its address."""
    with chromium() as browser, seeded(tmp_path_factory.mktemp("week")) as service:
        window, without = visit(browser, service.url), visit(browser, service.url, script=False)
        window.page.goto("/")
        found = {"the login": look(window.page)}
        window.log_in(TOKEN)
        without.log_in(TOKEN)
        for address in (*pages_of(window.context.request), *UNLINKED):
            window.errors.clear()
            window.page.goto(address)
            without.page.goto(address)
            same = window.page.inner_text("body") == without.page.inner_text("body")
            renew(window.page)
            ran = ["markup of users was run"] if window.page.evaluate("window.owned") else []
            found[address] = {
                "script": [] if same else ["another text without a script"],
                "policy": ran + ([] if address in UNLINKED else window.errors),
                **look(window.page),
            }
        yield found


def renew(page: Page) -> None:
    """Has the script fetch the page anew at once, where it does that at all."""
    if page.locator("[data-live]").count():
        with page.expect_response(page.url) as renewed:
            page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
        renewed.value.finished()


def look(page: Page) -> Look:
    """A look at the page that is shown, in both colours and widths."""
    found = {"light": faults(page), "keyboard": by_keyboard(page)}
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": NARROW, "height": 900})
    found |= {"dark": faults(page, *OF_LOOKS), "narrow": sideways(page)}
    page.emulate_media(color_scheme="light")
    page.set_viewport_size({"width": WIDE, "height": 900})
    return found


def of(looks: dict[str, Look], what: str) -> dict[str, list[str]]:
    return {address: found[what] for address, found in looks.items() if found.get(what)}


def test_every_page_that_a_login_may_lead_to_is_looked_at(looks: dict[str, Look]) -> None:
    paths = [urlsplit(address).path for address in looks]
    assert not [
        route.path for route in ROUTES if route.page and not any(route.match(path) is not None for path in paths)
    ]


def test_axe_finds_nothing_serious_on_any_page_in_light_colours(looks: dict[str, Look]) -> None:
    assert not of(looks, "light")


def test_axe_finds_nothing_serious_on_any_page_in_dark_colours_on_a_telephone(looks: dict[str, Look]) -> None:
    assert not of(looks, "dark")


def test_no_page_scrolls_sideways_on_a_telephone(looks: dict[str, Look]) -> None:
    assert not of(looks, "narrow")


def test_the_keyboard_reaches_everything_in_the_order_of_the_page_and_shows_where_it_is(
    looks: dict[str, Look],
) -> None:
    assert not of(looks, "keyboard")


def test_no_page_runs_markup_of_users_or_asks_for_what_its_content_policy_forbids(looks: dict[str, Look]) -> None:
    assert not of(looks, "policy")


def test_every_page_shows_the_same_without_a_script(looks: dict[str, Look]) -> None:
    assert not of(looks, "script")
