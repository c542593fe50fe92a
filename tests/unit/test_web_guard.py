"""Who may read the page."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.web_results import TRACE, Reply, ask, pages, result
from tracescore.config import WebConfig
from tracescore.config.types import Secret
from tracescore.errors import UsageError
from tracescore.web.pages import Pages

pytestmark = pytest.mark.anyio

TOKEN = "correct-horse-battery"


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    path = tmp_path / "token"
    path.write_text(TOKEN + "\n")
    return str(path)


@pytest.fixture
def app(token_file: str) -> Pages:
    return pages(WebConfig(listen="0.0.0.0:9465", token=Secret(file=token_file)))


@pytest.mark.parametrize("listen", ["127.0.0.1:9465", "127.0.0.2:9465", "localhost:9465", "[::1]:9465"])
async def test_on_loopback_no_token_is_needed(listen: str) -> None:
    reply = await ask(pages(WebConfig(listen=listen)), host=listen)
    assert reply.status == 200


def test_a_token_that_cannot_be_read_is_an_error_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"web\.token: file .* cannot be read"):
        pages(WebConfig(token=Secret(file=str(tmp_path / "none"))))


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer  {TOKEN} "}, 200),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": f"Bearer {TOKEN[:-1]}"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": TOKEN}, 401),
        ({"authorization": "Bearer \u00e9\u00e9"}, 401),
        ({"cookie": f"tracescore={TOKEN}"}, 401),
        ({"cookie": "tracescore="}, 401),
        ({"cookie": "other=1; ; =; tracescore"}, 401),
    ],
)
@pytest.mark.parametrize("path", ["/", f"/interactions/{TRACE}"])
async def test_which_headers_open_the_page(app: Pages, path: str, headers: dict[str, str], status: int) -> None:
    await app.export(result(question="Something private?"))
    reply = await ask(app, path, **headers)
    assert reply.status == status
    assert ("Something private?" in reply.body) == (status == 200)
    if status == 401:
        assert reply.headers["www-authenticate"] == "Bearer"
        assert 'action="/login"' in reply.body


async def test_on_loopback_a_token_that_is_set_is_required(token_file: str) -> None:
    app = pages(WebConfig(token=Secret(file=token_file)))
    assert (await ask(app)).status == 401
    assert (await ask(app, authorization=f"Bearer {TOKEN}")).status == 200


def _cookie(reply: Reply) -> str:
    assert reply.status == 303
    value, *attributes = [part.strip() for part in reply.headers["set-cookie"].split(";")]
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict"}
    assert TOKEN not in value
    return value


async def test_the_form_sets_a_cookie_that_opens_the_page_but_is_not_the_token(app: Pages) -> None:
    reply = await ask(app, "/login", method="POST", body=f"token={TOKEN}&next=%2F".encode())
    cookie = _cookie(reply)
    assert reply.headers["location"] == "/"
    assert (await ask(app, cookie=f"a=b; {cookie}; c=d")).status == 200
    assert (await ask(app, authorization=f"Bearer {cookie.partition('=')[2]}")).status == 401
    assert (await ask(app, cookie=cookie + "0")).status == 401


async def test_a_link_with_the_token_opens_the_page_and_does_not_stay_in_the_address(app: Pages) -> None:
    reply = await ask(app, "/login", query=f"token={TOKEN}")
    assert (await ask(app, cookie=_cookie(reply))).status == 200
    assert TOKEN not in reply.headers["location"]


@pytest.mark.parametrize("body", [b"token=wrong", b"token=", b"", b"\xff\xfe", b"token=%00%0d%0a"])
async def test_a_wrong_token_sets_no_cookie(app: Pages, body: bytes) -> None:
    reply = await ask(app, "/login", method="POST", body=body)
    assert reply.status == 401
    assert "set-cookie" not in reply.headers


async def test_a_login_with_a_field_that_is_not_of_it_is_refused(app: Pages) -> None:
    reply = await ask(app, "/login", method="POST", body=f"token={TOKEN}&role=operator".encode())
    assert reply.status == 400
    assert "set-cookie" not in reply.headers


async def test_a_login_that_is_too_long_is_not_read_to_its_end(app: Pages) -> None:
    reply = await ask(app, "/login", method="POST", body=b"token=" + b"x" * 5000)
    assert reply.status == 413


@pytest.mark.parametrize(
    ("target", "led_to"),
    [
        (f"/interactions/{TRACE}", f"/interactions/{TRACE}"),
        ("//evil.example/", "/"),
        ("https://evil.example/", "/"),
        ("/\r\nset-cookie: a=b", "/"),
        (f"/interactions/{TRACE}\n", "/"),
    ],
)
async def test_login_leads_back_to_pages_of_ours_only(app: Pages, target: str, led_to: str) -> None:
    body = f"token={TOKEN}&next=".encode() + target.encode().replace(b"\r", b"%0d").replace(b"\n", b"%0a")
    assert (await ask(app, "/login", method="POST", body=body)).headers["location"] == led_to


async def test_the_form_remembers_the_interaction_that_was_asked_for(app: Pages) -> None:
    reply = await ask(app, f"/interactions/{TRACE}")
    assert f'name="next" value="/interactions/{TRACE}"' in reply.body


async def test_styles_need_no_token(app: Pages) -> None:
    assert (await ask(app, "/style.css")).status == 200


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:9465", 200),
        ("127.0.0.1:40000", 200),
        ("localhost:9465", 200),
        ("LOCALHOST", 200),
        ("[::1]:9465", 200),
        ("[0:0:0:0:0:0:0:1]", 200),
        ("127.evil.example", 403),
        ("127.0.0.1:port", 403),
        ("[::1", 403),
        ("rebound.example:9465", 403),
        ("127.0.0.1.rebound.example", 403),
        ("localhost.rebound.example:9465", 403),
        ("", 403),
    ],
)
@pytest.mark.parametrize("path", ["/", "/login", "/style.css"])
async def test_on_loopback_only_local_names_are_answered(host: str, status: int, path: str) -> None:
    expected = 401 if status == 200 and path == "/login" else status
    reply = await ask(pages(WebConfig(token=None)), path, host=host)
    assert reply.status == (status if path != "/login" else expected)


async def test_the_name_the_page_listens_on_is_answered_too() -> None:
    assert (await ask(pages(WebConfig(listen="127.0.0.9:9465")), host="127.0.0.9:9465")).status == 200


async def test_with_a_token_the_page_may_be_called_by_any_name(app: Pages) -> None:
    reply = await ask(app, host="pages.example.com", authorization=f"Bearer {TOKEN}")
    assert reply.status == 200
