"""Who may talk to the page: the browser that was given the token, from the page itself, and nobody else."""

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ordinalq.app.sessions import Sessions
from ordinalq.app.uploads import Refused

# Nothing from elsewhere, no script or style within a page, no page within another.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Other sites learn nothing; our own forms say where they come from, which "no-referrer" would forbid.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
# A link from elsewhere brings no strict cookie along, not even over a redirection: the page goes on by itself.
ENTERED = '<!DOCTYPE html><title>ordinalq</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Go on</a>'
NO_ENTRY = "This page is private: open the address that `ordinalq app` has printed, with its token.\n"


class Guard:
    """Refuses what does not come from the page itself, and adds the headers that keep the browser from helping others.

    A request must name this host (a foreign name that leads here is DNS rebinding), carry the cookie of a session, and
    come from a page of ours or from the address bar; what changes anything must say its origin. The token in the
    address is exchanged for the cookie.
    """

    def __init__(self, app: ASGIApp, sessions: Sessions, port: int, token: str) -> None:
        self.app = app
        self.sessions = sessions
        self.token = token
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        # Cookies know no ports: another page on this machine must not overwrite ours.
        self.cookie = f"ordinalq-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or hand it on."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return

        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        request = Request(scope, receive)
        answer = self._refused(request) or self._entered(request)
        if answer is None:
            session = self.sessions.get(request.cookies.get(self.cookie, ""))
            if session is not None:
                scope.setdefault("state", {})["session"] = session
                await self.app(scope, receive, guarded)
                return
            answer = PlainTextResponse(NO_ENTRY, 403)
        await answer(scope, receive, guarded)

    def _refused(self, request: Request) -> Response | None:
        """Refuse requests for another host, or from another page."""
        headers: Headers = request.headers
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return PlainTextResponse("Wrong host.\n", 403)
        own = f"http://{hosts[0]}"
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("No such method.\n", 405)
        if any(origin != own for origin in origins) or (request.method == "POST" and len(origins) != 1):
            return PlainTextResponse("Wrong origin.\n", 403)
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not (request.method == "GET" and self._has_token(request)):
            return PlainTextResponse("Wrong origin.\n", 403)
        return None

    def _has_token(self, request: Request) -> bool:
        given = request.query_params.get("token", "")
        return request.url.path == "/" and secrets.compare_digest(given.encode(), self.token.encode())

    def _entered(self, request: Request) -> Response | None:
        """Exchange the token for a cookie; who has one keeps it."""
        if request.method != "GET" or not self._has_token(request):
            return None
        response = HTMLResponse(ENTERED)
        if self.sessions.get(request.cookies.get(self.cookie, "")) is None:
            try:
                key = self.sessions.begin()
            except Refused as error:
                return PlainTextResponse(f"{error}\n", error.status)
            response.set_cookie(self.cookie, key, httponly=True, samesite="strict", path="/")
        return response
