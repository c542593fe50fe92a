"""The way in and out: a login by a form or a link begins a session, a button ends it."""

from collections.abc import Callable
from urllib.parse import parse_qs, quote, unquote

from tracescore.net.asgi import Response
from tracescore.web.guard import Guard
from tracescore.web.messages import (
    LARGEST_BODY,
    Request,
    html,
    is_call,
    message,
    only_known,
    read_form,
    refused,
    told,
)
from tracescore.web.render import page
from tracescore.web.visit import Visit


class Entrance:
    """Lets people in. `is_page` says whether a login may lead to a path: what asks for it could be another site."""

    def __init__(self, guard: Guard, is_page: Callable[[str], bool]) -> None:
        self._guard, self._is_page = guard, is_page

    async def login(self, request: Request) -> Response:
        """Takes a token by a form (GET /login?token=... by a link) and leads to the page that was asked for."""
        text = request.query
        if request.method == "POST":
            body = await request.body()
            if body is None:
                return message(413, "Too long", f"A login has at most {LARGEST_BODY} bytes.")
            text = body.decode(errors="replace")
        given = {name: values[0] for name, values in parse_qs(text, errors="replace").items()}
        try:
            only_known(given, {"token", "next"}.__contains__)
        except ValueError as error:
            return message(400, "Not a login", f"{error}.")
        target = self._ours(given.get("next", "/"))
        if not self._guard.has_logins:
            return html(303, b"", headers=(("location", target),))
        cookie = self._guard.login(given["token"], request) if "token" in given else None
        if cookie is None:
            return self._ask(target, request, wrong="token" in given)
        return html(303, b"", headers=(("location", target), ("set-cookie", cookie)))

    def ask(self, request: Request) -> Response:
        """The form for a token, that leads to what was asked for; a refusal where no token would help."""
        address = quote(request.path, errors="replace")
        return self._ask(self._ours(f"{address}?{request.query}" if request.query else address), request, wrong=False)

    def _ask(self, target: str, request: Request, *, wrong: bool) -> Response:
        if self._guard.wait(request.address):
            wait = "Five wrong tokens came from this address. Wait a minute, then log in with the right one."
            return told(request, 429, "Too many wrong tokens", wait, (("retry-after", "60"),))
        if not self._guard.has_logins:
            return told(request, 401, "By the proxy only", "The proxy in front says who you are, and it has not.")
        asked = (("www-authenticate", "Bearer"),)
        if is_call(request):
            return refused(401, "a token expected, as Authorization: Bearer TOKEN", asked)
        return html(401, page("login.html", next=target, wrong=wrong), headers=asked)

    def _ours(self, address: str) -> str:
        """The address where it is one of this page, else the first page; written so that it fits a header."""
        path, _, query = address.partition("?")
        path = unquote(path, errors="replace")
        if not self._is_page(path):
            return "/"
        path = quote(path, errors="replace")
        return f"{path}?{quote(query, safe='=&%+', errors='replace')}" if query else path


async def logout(visit: Visit) -> Response:
    """Ends the session of the visitor who sent the form."""
    guard, request = visit.shared.guard, visit.request
    given = await read_form(request) if request.method == "POST" else {}
    if not given or not guard.form_allowed(visit.visitor, given.get("form", "")):
        return visit.message(403, "Not from here", "Log out by the button on the page.")
    cookie = guard.logout(visit.visitor, request)
    return html(303, b"", headers=(("location", "/"), ("set-cookie", cookie)))
