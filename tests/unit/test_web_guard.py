"""Who may read the page."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest
from prometheus_client import CollectorRegistry

from tests.web_results import TRACE, Reply, ask, pages, result
from tracescore.config import WebConfig
from tracescore.config.types import Secret
from tracescore.errors import UsageError
from tracescore.net.access import AccessMetrics
from tracescore.web.guard import Guard, audit
from tracescore.web.messages import Request
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
@pytest.mark.parametrize("path", ["/services/shop", f"/interactions/{TRACE}"])
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
    assert set(attributes) == {"Path=/", "HttpOnly", "SameSite=Strict", "Max-Age=43200"}
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
        ("/releases?service=shop%26x", "/releases?service=shop%26x"),
        ("/releases?a=\r\nset-cookie: a=b", "/releases?a=%0D%0Aset-cookie%3A%20a=b"),
        ("/style.css", "/"),
        ("/logout", "/"),
    ],
)
async def test_login_leads_back_to_pages_of_ours_only(app: Pages, target: str, led_to: str) -> None:
    body = f"token={TOKEN}&next=".encode() + quote(target).encode()
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
    expected = 303 if status == 200 and path == "/login" else status
    reply = await ask(pages(WebConfig(token=None)), path, host=host)
    assert reply.status == expected


async def test_the_name_the_page_listens_on_is_answered_too() -> None:
    assert (await ask(pages(WebConfig(listen="127.0.0.9:9465")), host="127.0.0.9:9465")).status == 200


async def test_with_a_token_the_page_may_be_called_by_any_name(app: Pages) -> None:
    reply = await ask(app, host="pages.example.com", authorization=f"Bearer {TOKEN}")
    assert reply.status == 200


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


USERS = {"ann": ("reader", "token-of-ann"), "lee": ("labeller", "token-of-lee"), "olu": ("operator", "token-of-olu")}


@pytest.fixture
def users(tmp_path: Path) -> list[dict]:
    for name, (_, token) in USERS.items():
        (tmp_path / name).write_text(token)
    return [{"name": name, "role": role, "token": {"file": str(tmp_path / name)}} for name, (role, _) in USERS.items()]


def guarded(**settings: object) -> tuple[Guard, Clock]:
    clock = Clock()
    return Guard(WebConfig.model_validate(settings), AccessMetrics(CollectorRegistry()), clock), clock


def request(address: str = "10.0.0.1", **headers: str) -> Request:
    return Request("GET", "/", "", headers, None, address)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", USERS)
async def test_a_role_may_what_those_below_it_may(users, name: str) -> None:
    app = pages(WebConfig.model_validate({"users": users}))
    bearer = {"authorization": f"Bearer {USERS[name][1]}"}
    rank = list(USERS).index(name)
    assert (await ask(app, **bearer)).status == 200
    assert (await ask(app, "/labels", **bearer)).status == (404 if rank >= 1 else 403)
    guard, _ = guarded(users=users)
    visitor = guard.visitor(request(**bearer))
    assert visitor is not None
    assert (visitor.name, visitor.role) == (name, USERS[name][0])
    assert [visitor.may(role) for role, _ in USERS.values()] == [each <= rank for each in range(3)]


def test_a_login_lasts_as_long_as_it_is_set_and_ends_with_its_token(users, tmp_path: Path) -> None:
    guard, clock = guarded(users=users, session="1h")
    cookies = [str(guard.login(USERS["ann"][1], request())).partition(";")[0] for _ in range(2)]
    assert cookies[0] != cookies[1]
    assert guard.visitor(request(cookie=cookies[0]))
    clock.now = 3600.0
    assert not guard.visitor(request(cookie=cookies[0]))
    cookie = str(guard.login(USERS["ann"][1], request())).partition(";")[0]
    assert guard.visitor(request(cookie=cookie))
    (tmp_path / "ann").write_text("another-token")
    for kept in guard._users._kept.values():
        kept._looked -= 2
    assert not guard.visitor(request(cookie=cookie))


async def test_logout_ends_the_session_and_takes_a_form_of_the_page(users) -> None:
    app = pages(WebConfig.model_validate({"users": users}))
    led = await ask(app, "/login", method="POST", body=b"token=token-of-ann")
    cookie = led.headers["set-cookie"].partition(";")[0]
    shown = await ask(app, cookie=cookie)
    (form,) = re.findall(r'name="form" value="(\w+)"', shown.body)
    assert "ann, reader" in shown.body
    for body in (b"", b"form=0123"):
        assert (await ask(app, "/logout", method="POST", body=body, cookie=cookie)).status == 403
    assert (await ask(app, "/logout", cookie=cookie)).status == 403, "a link does not"
    out = await ask(app, "/logout", method="POST", body=f"form={form}".encode(), cookie=cookie)
    assert out.status == 303
    assert "Max-Age=0" in out.headers["set-cookie"]
    assert (await ask(app, cookie=cookie)).status == 401


async def test_the_form_of_one_session_is_none_of_another(users) -> None:
    guard, _ = guarded(users=users)
    visitors = [
        guard.visitor(request(cookie=str(guard.login(token, request())).partition(";")[0]))
        for token in ("token-of-ann", "token-of-ann", "token-of-olu")
    ]
    assert len({visitor.form for visitor in visitors if visitor}) == 3


def test_after_five_wrong_logins_a_minute_not_even_the_right_one_opens_but_a_session_goes_on(users) -> None:
    guard, clock = guarded(users=users)
    cookie = str(guard.login("token-of-ann", request())).partition(";")[0]
    for _ in range(5):
        assert guard.login("wrong", request()) is None
    assert guard.wait("10.0.0.1")
    assert guard.login("token-of-ann", request()) is None
    assert guard.visitor(request(authorization="Bearer token-of-ann")) is None
    assert guard.visitor(request(cookie=cookie)), "who is in stays in"
    assert guard.login("token-of-ann", request("10.0.0.2")), "elsewhere"
    clock.now = 61.0
    assert guard.login("token-of-ann", request())


async def test_too_many_wrong_logins_are_answered_with_429(users, caplog: pytest.LogCaptureFixture) -> None:
    app = pages(WebConfig.model_validate({"users": users}))
    statuses = [(await ask(app, "/login", method="POST", body=b"token=wr0ng")).status for _ in range(7)]
    assert statuses == [401] * 4 + [429] * 3
    assert "wr0ng" not in caplog.text
    assert "event=access_denied listener=page reason=wrong_token" in caplog.text


@pytest.mark.parametrize(("headers", "secure"), [({}, False), ({"x-forwarded-proto": "https"}, True)])
def test_a_cookie_that_came_by_tls_is_sent_by_tls_alone(users, headers: dict[str, str], secure: bool) -> None:
    guard, _ = guarded(users=users)
    assert str(guard.login("token-of-ann", request(**headers))).endswith("; Secure") is secure


@pytest.mark.parametrize(
    ("named", "visitor"),
    [
        ("olu@example.com", ("olu@example.com", "operator")),
        ("kim@example.com", ("kim@example.com", "reader")),
        ('a"b\nevent=audit', ("a?b?event=audit", "reader")),
        ("", None),
    ],
)
def test_a_proxy_says_who_reads_and_the_users_what_they_may(named: str, visitor: tuple[str, str] | None) -> None:
    guard, _ = guarded(trust_header="X-Forwarded-Email", users=[{"name": "olu@example.com", "role": "operator"}])
    found = guard.visitor(request(**{"x-forwarded-email": named}))
    assert (found and (found.name, found.role)) == visitor


async def test_what_changes_something_is_logged_with_who_and_what(users, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "tracescore.web")
    guard, _ = guarded(users=users)
    cookie = str(guard.login("token-of-olu", request())).partition(";")[0]
    visitor = guard.visitor(request(cookie=cookie))
    assert visitor is not None
    guard.logout(visitor, request())
    audit("olu", "baseline_reset", service='sh"op\nx', detector=None, detectors=3)
    assert [record.getMessage() for record in caplog.records] == [
        'event=audit who="olu" what=login',
        'event=audit who="olu" what=logout',
        'event=audit who="olu" what=baseline_reset service="sh?op?x" detectors="3"',
    ]
