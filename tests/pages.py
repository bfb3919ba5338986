"""The page in a thread, and a client of it without a browser: what tests of it share."""

import http.client
import json
import re
import socket
import threading
import time
from contextlib import contextmanager
from html import unescape
from types import SimpleNamespace
from urllib.parse import urlencode, urlsplit

import uvicorn

from ordinalq.app.server import build, settings

TOKEN = "the-token-of-the-tests"
BOUNDARY = "----boundary-of-the-tests"


@contextmanager
def served(folder):
    """Serve the web app in a thread; yield its port and the application."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()  # who comes before the thread waits
        port = listening.getsockname()[1]
        app = build(folder, port, TOKEN)
        server = uvicorn.Server(settings(app))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
        thread.start()
        try:
            yield SimpleNamespace(port=port, site=app.state.site, folder=folder)
        finally:
            server.should_exit = True
            thread.join(10)


class Answer(SimpleNamespace):
    """Response: status, headers, content, and the path after redirections."""

    @property
    def text(self):
        return self.content.decode()

    def json(self):
        return json.loads(self.content)


class Client:
    """Browser: stores the cookie, sends its origin, follows redirections."""

    def __init__(self, port, *, enter=True):
        self.port = port
        self.origin = f"http://127.0.0.1:{port}"
        self.cookie = None
        if enter:
            assert self.get("/", token=TOKEN).status == 200
            assert self.cookie

    def ask(self, method, path, content=None, headers=None):
        """Send one request."""
        sent = {} if self.cookie is None else {"Cookie": self.cookie}
        sent |= {"Origin": self.origin} if method == "POST" else {}
        sent |= headers or {}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        connection.request(method, path, content, {name: value for name, value in sent.items() if value is not None})
        response = connection.getresponse()
        answer = Answer(status=response.status, headers=response.headers, content=response.read(), path=path)
        connection.close()
        if "set-cookie" in response.headers:
            self.cookie = response.headers["set-cookie"].partition(";")[0]
        return answer

    def get(self, path, headers=None, **query):
        answer = self.ask("GET", path + (f"?{urlencode(query)}" if query else ""), headers=headers)
        return self.get(urlsplit(answer.headers["location"]).path) if answer.status == 303 else answer

    def post(self, path, fields=(), headers=None):
        """Send a form; fields are a dict, or pairs."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._followed(self.ask("POST", path, urlencode(fields), kind | (headers or {})))

    def send(self, path, name, content, headers=None):
        """Send a file."""
        kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
        return self._followed(self.ask("POST", path, form_data(name, content), kind | (headers or {})))

    def _followed(self, answer):
        return self.get(urlsplit(answer.headers["location"]).path) if answer.status == 303 else answer

    def project(self, answer):
        """Return the address of the project of a response, after its job."""
        project = re.match(r"/w/[0-9a-f]{32}", answer.path)[0]
        self.done(project)
        return project

    def done(self, project, seconds=240):
        """Wait for the job of a project, and return the next page."""
        end = time.monotonic() + seconds
        while self.get(f"{project}/job").json()["state"] == "running":
            assert time.monotonic() < end, self.get(project).text
            time.sleep(0.05)
        return self.get(project)


def form_data(name, content):
    """Return a form with a file, as browsers send it."""
    quoted = name.replace('"', "%22").encode()
    head = b'Content-Disposition: form-data; name="file"; filename="' + quoted + b'"'
    kind = b"Content-Type: application/octet-stream"
    mark = f"--{BOUNDARY}".encode()
    return b"\r\n".join([mark, head, kind, b"", content, mark + b"--", b""])


def problem(answer):
    """Return what a page says is wrong."""
    found = re.search(r'role="alert"><p>(.*?)</p>', answer.text, re.DOTALL)
    return unescape(found[1]) if found else ""
