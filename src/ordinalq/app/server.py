"""The server of the web app: routes, access checks, start and clean-up."""

import contextlib
import math
import multiprocessing
import os
import secrets
import shutil
import socket
import tempfile
import threading
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h11
import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers, MutableHeaders
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from ordinalq._utils.parallel import try_lock
from ordinalq.app import actions, jobs, pages, work
from ordinalq.app.pages import HERE, Site
from ordinalq.app.sessions import Project, Session, Sessions
from ordinalq.app.uploads import RequestError

# Access control.


# Nothing from elsewhere, no script or style within a page, no page within another.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # Other sites receive no referrer. "no-referrer" would remove the origin of our forms.
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Cache-Control": "no-store",
}
# Browsers do not send a strict cookie after a link from another site, so this page reloads by itself.
ENTERED = '<!DOCTYPE html><title>ordinalq</title><meta http-equiv="refresh" content="0; url=/"><a href="/">Continue</a>'
NO_ENTRY = "Access denied. Open the address that `ordinalq app` printed, including its token.\n"


class Guard:
    """Middleware that rejects foreign requests and adds security headers.

    A request must have this host (another one may be DNS rebinding) and the cookie of a session. It must come from the
    web app or from the address bar. A POST request must have an origin. The token in the URL is exchanged for the
    cookie.
    """

    def __init__(self, app: ASGIApp, sessions: Sessions, port: int, token: str) -> None:
        self.app = app
        self.sessions = sessions
        self.token = token
        self.hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        # Cookies are shared between ports: the name keeps other programs from overwriting ours.
        self.cookie = f"ordinalq-{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject a request or pass it on."""
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
        answer = self._rejection(request) or self._exchange_token(request)
        if answer is None:
            session = self.sessions.get(request.cookies.get(self.cookie, ""))
            if session is not None:
                scope.setdefault("state", {})["session"] = session
                await self.app(scope, receive, guarded)
                return
            answer = PlainTextResponse(NO_ENTRY, 403)
        await answer(scope, receive, guarded)

    def _rejection(self, request: Request) -> Response | None:
        """Return the response to a request with a wrong host or origin, else None."""
        headers: Headers = request.headers
        hosts, origins = headers.getlist("host"), headers.getlist("origin")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return PlainTextResponse("Invalid host.\n", 403)
        own = f"http://{hosts[0]}"
        if request.method not in ("GET", "HEAD", "POST"):
            return PlainTextResponse("Method not allowed.\n", 405)
        if any(origin != own for origin in origins) or (request.method == "POST" and len(origins) != 1):
            return PlainTextResponse("Invalid origin.\n", 403)
        site = headers.get("sec-fetch-site", "none")
        if site not in ("none", "same-origin") and not (request.method == "GET" and self._has_token(request)):
            return PlainTextResponse("Invalid origin.\n", 403)
        return None

    def _has_token(self, request: Request) -> bool:
        given = request.query_params.get("token", "")
        return request.url.path == "/" and secrets.compare_digest(given.encode(), self.token.encode())

    def _exchange_token(self, request: Request) -> Response | None:
        """Exchange the token for a cookie; a valid cookie is kept."""
        if request.method != "GET" or not self._has_token(request):
            return None
        response = HTMLResponse(ENTERED)
        if self.sessions.get(request.cookies.get(self.cookie, "")) is None:
            try:
                key = self.sessions.begin()
            except RequestError as error:
                return PlainTextResponse(f"{error}\n", error.status)
            response.set_cookie(self.cookie, key, httponly=True, samesite="strict", path="/")
        return response


# The application and its routes.


Endpoint = Callable[[Request, Site, Project], Awaitable[Response]]


def build(folder: Path, port: int, token: str) -> Starlette:
    """Return the application for this port and token.

    The private folder has all files of all sessions, and is emptied at the end.
    """
    site = Site(folder)

    @contextlib.asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        try:
            yield
        finally:
            site.sessions.end()

    guard = Middleware(Guard, sessions=site.sessions, port=port, token=token)
    app = Starlette(routes=_routes(site), middleware=[guard], lifespan=lifespan)
    app.add_exception_handler(404, lambda request, error: _problem(site, "Page not found.", 404))
    app.state.site = site
    return app


def _problem(site: Site, text: str, status: int, project: Project | None = None) -> Response:
    return site.page("problem.html", status, problem=text, project=project)


def _routes(site: Site) -> list[BaseRoute]:
    def session_route(endpoint: Callable[[Request, Site, Session], Awaitable[Response]]) -> Any:
        """Return the route of an endpoint without a project."""

        async def answer(request: Request) -> Response:
            return await _response_or_error(endpoint(request, site, request.state.session), site, None)

        return answer

    def project_route(endpoint: Endpoint, while_busy: Endpoint | None = None) -> Any:
        """Return the route of an endpoint of a project of this session."""

        async def answer(request: Request) -> Response:
            project = request.state.session.projects.get(request.path_params["key"])
            if project is None:
                return _problem(site, "This project does not exist or was deleted.", 404)
            project.store_result()
            chosen = while_busy if project.is_busy and while_busy is not None else endpoint
            return await _response_or_error(chosen(request, site, project), site, project)

        return answer

    steps = {
        "": pages.current,
        "/table": pages.table,
        "/model": pages.model,
        "/new": pages.new,
        "/results": pages.results,
    }
    files = {
        "/job": pages.job,
        "/file/{name}": actions.file,
        "/report.html": actions.report,
        "/{name}.{kind}": actions.figure,
    }
    posts = {
        "/read": actions.read,
        "/fit": actions.fit,
        "/sample": actions.sample,
        "/use": actions.use,
        "/predict": actions.predict,
        "/compare": actions.compare,
        "/plan": actions.plan,
        "/labels": actions.labels,
    }
    ends = {"/cancel": actions.cancel, "/delete": actions.delete}
    return [
        Route("/", session_route(pages.home)),
        Route("/upload", session_route(actions.upload), methods=["POST"]),
        Route("/example", session_route(actions.example), methods=["POST"]),
        *(Route(f"/w/{{key}}{path}", project_route(endpoint, pages.working)) for path, endpoint in steps.items()),
        *(Route(f"/w/{{key}}{path}", project_route(endpoint)) for path, endpoint in files.items()),
        *(
            Route(f"/w/{{key}}{path}", project_route(one, actions.busy), methods=["POST"])
            for path, one in posts.items()
        ),
        *(Route(f"/w/{{key}}{path}", project_route(one), methods=["POST"]) for path, one in ends.items()),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]


async def _response_or_error(answer: Awaitable[Response], site: Site, project: Project | None) -> Response:
    """Return the response, or a page with the error message."""
    try:
        return await answer
    except RequestError as error:
        return _problem(site, str(error), error.status, project)
    except ClientDisconnect:
        return Response(status_code=400)


# Local only: the web app has no users, passwords or encryption.
HOST = "127.0.0.1"
PREFIX = "ordinalq-app-"
LOCK = "lock"
# Characters of a folder in which sockets can be made: their whole path has at most 104 on some systems.
LONGEST_FOLDER = 80
# Requests at the same time; a browser makes a handful.
MAX_REQUESTS = 64
# Seconds for open requests at the end.
PATIENCE = 2
# Seconds within which the headers of a request must arrive, and within which some of its body must.
HEADER_SECONDS = 10.0
BODY_SECONDS = 30.0


class Connection(H11Protocol):
    """Connection that is closed if it is idle or if newer ones need its place.

    Neither is done by uvicorn: connections without a request would count as requests until their client closes them.
    """

    def connection_made(self, transport: Any) -> None:
        """Wait for a request; close the longest idle connection if there are too many."""
        super().connection_made(transport)
        self._wait()
        self._timer = self.loop.call_later(1, self._check)
        waiting = [one for one in self.connections if isinstance(one, Connection) and one.is_waiting]
        if len(self.connections) >= MAX_REQUESTS and waiting:
            min(waiting, key=lambda one: one.since).abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timer."""
        self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Receive data; data of a body restart the timer."""
        super().data_received(data)
        if self.conn.their_state is h11.SEND_BODY:
            self._wait()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        super().on_response_complete()
        self._wait()

    @property
    def is_waiting(self) -> bool:
        """Whether no request has begun."""
        return self.conn.their_state is h11.IDLE

    def abort(self) -> None:
        """Close the connection at once."""
        self.connections.discard(self)
        self.transport.abort()

    def _wait(self) -> None:
        self.since = self.loop.time()

    def _check(self) -> None:
        """Close the connection after its time limit; check again after a second."""
        is_sending = self.conn.their_state is h11.SEND_BODY and not self.flow.read_paused
        limit = HEADER_SECONDS if self.is_waiting else BODY_SECONDS if is_sending else math.inf
        if self.loop.time() - self.since > limit:
            self.abort()
        else:
            self._timer = self.loop.call_later(1, self._check)


def settings(app: Starlette) -> uvicorn.Config:
    """Return the settings of the server."""
    return uvicorn.Config(
        app,
        http=Connection,
        ws="none",
        log_level="error",
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MAX_REQUESTS,
        timeout_graceful_shutdown=PATIENCE,
    )


def serve(port: int, announce: Callable[[str], object], *, browser: bool = True) -> None:
    """Serve the web app until the program ends.

    Port 0 selects a free port. `announce` is called with the address, which contains the token.
    """
    with _listening(port) as listening, private_folder() as folder:
        port = listening.getsockname()[1]
        token = secrets.token_urlsafe(24)
        config = settings(build(folder, port, token))
        address = f"http://{HOST}:{port}/?token={token}"
        announce(address)
        # The first process imports everything, which takes seconds.
        threading.Thread(target=jobs.run, args=(work.preload, {}), daemon=True).start()
        if browser:
            threading.Timer(0.5, webbrowser.open, (address,)).start()
        uvicorn.Server(config).run(sockets=[listening])


@contextmanager
def _listening(port: int) -> Iterator[socket.socket]:
    with socket.socket() as listening:
        # A server that has just ended leaves its port for a minute otherwise; on Windows this would share it.
        if os.name == "posix":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((HOST, port))
            listening.listen()  # a browser that is faster than we are waits
        except OSError as error:
            raise ValueError(f"port {port} cannot be used ({error.strerror}). Use another port.") from error
        yield listening


@contextmanager
def private_folder() -> Iterator[Path]:
    """Yield a folder readable only by this user, and remove it at the end.

    Folders of servers that were killed are removed too.
    """
    for old in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        _remove_left(old)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    lock = try_lock(folder / LOCK)
    # Sockets of processes lie here too, if their path is not too long for the system; multiprocessing would leave its
    # own folder behind after a kill.
    processes: dict[str, Any] = vars(multiprocessing.current_process())["_config"]
    before = processes.get("tempdir")
    if len(str(folder)) <= LONGEST_FOLDER:
        processes["tempdir"] = str(folder)
    try:
        yield folder
    finally:
        processes["tempdir"] = before
        if lock is not None:
            lock.close()
        shutil.rmtree(folder, ignore_errors=True)


def _remove_left(old: Path) -> None:
    """Remove the folder of a server that has ended: its lock is free."""
    if old.is_symlink() or not (old / LOCK).is_file() or (hasattr(os, "getuid") and old.stat().st_uid != os.getuid()):
        return
    lock = try_lock(old / LOCK)
    if lock is not None:
        lock.close()
        shutil.rmtree(old, ignore_errors=True)
