"""The application: which address leads where."""

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

from ordinalq.app import actions, downloads, pages
from ordinalq.app.guard import Guard
from ordinalq.app.sessions import Session, Walk
from ordinalq.app.site import HERE, Site
from ordinalq.app.uploads import Refused

Endpoint = Callable[[Request, Site, Walk], Awaitable[Response]]


def build(folder: Path, port: int, token: str) -> Starlette:
    """Return the application, served on this port: requests for another are refused, as are browsers without the token.

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
    app.add_exception_handler(404, lambda request, error: _problem(site, "No such page.", 404))
    app.state.site = site
    return app


def _problem(site: Site, text: str, status: int, walk: Walk | None = None) -> Response:
    return site.page("problem.html", status, problem=text, walk=walk)


def _routes(site: Site) -> list[BaseRoute]:
    def free(endpoint: Callable[[Request, Site, Session], Awaitable[Response]]) -> Any:
        """Give an endpoint of no walk what it needs."""

        async def answer(request: Request) -> Response:
            return await _answered(endpoint(request, site, request.state.session), site, None)

        return answer

    def walking(endpoint: Endpoint, while_busy: Endpoint | None = None) -> Any:
        """Give an endpoint of a walk what it needs; the walks of others do not exist."""

        async def answer(request: Request) -> Response:
            walk = request.state.session.walks.get(request.path_params["key"])
            if walk is None:
                return _problem(site, "This work does not exist, or was deleted.", 404)
            walk.settle()
            chosen = while_busy if walk.is_busy and while_busy is not None else endpoint
            return await _answered(chosen(request, site, walk), site, walk)

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
        "/file/{name}": downloads.file,
        "/report.html": downloads.report,
        "/{name}.{kind}": downloads.picture,
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
        Route("/", free(pages.home)),
        Route("/upload", free(actions.upload), methods=["POST"]),
        Route("/example", free(actions.example), methods=["POST"]),
        *(Route(f"/w/{{key}}{path}", walking(endpoint, pages.working)) for path, endpoint in steps.items()),
        *(Route(f"/w/{{key}}{path}", walking(endpoint)) for path, endpoint in files.items()),
        *(Route(f"/w/{{key}}{path}", walking(one, actions.busy), methods=["POST"]) for path, one in posts.items()),
        *(Route(f"/w/{{key}}{path}", walking(one), methods=["POST"]) for path, one in ends.items()),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]


async def _answered(answer: Awaitable[Response], site: Site, walk: Walk | None) -> Response:
    """Return the answer, or say why there is none; a browser that has gone needs none."""
    try:
        return await answer
    except Refused as error:
        return _problem(site, str(error), error.status, walk)
    except ClientDisconnect:
        return Response(status_code=400)
