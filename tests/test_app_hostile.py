"""Fifty hostile requests to the web app: all fail, and it keeps running."""

import contextlib
import gzip
import io
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pages import BOUNDARY, TOKEN, Client, form_data, problem, served

from ordinalq.app import jobs, sessions, uploads

STARS = b"size,stars\n" + b"".join(b"%d,%d\n" % (i % 17, i % 3) for i in range(90))
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


@pytest.fixture(scope="module")
def app(tmp_path_factory):
    with served(tmp_path_factory.mktemp("app")) as server:
        yield server
        # After all requests the web app runs, and no file is outside of its folder.
        assert Client(server.port).get("/").status == 200


@pytest.fixture(scope="module")
def owned(app):
    """A project of another user, with a table."""
    client = Client(app.port)
    return client, client.project(client.send("/upload", "stars.csv", STARS))


def raw(app, data, *, wait=5.0):
    """Send bytes as they are and return what comes back."""
    with socket.create_connection(("127.0.0.1", app.port), timeout=wait) as connection:
        connection.sendall(data)
        parts = []
        try:
            while part := connection.recv(65536):
                parts.append(part)
        except (TimeoutError, ConnectionError):
            pass
    return b"".join(parts)


def status(answer):
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0


# Without the token


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/?token=",
        "/?token=wrong",
        "/?token=%00",
        "/w/x?token=" + TOKEN,
        "/static/app.js",
        "/static/../site.py",
        "/upload",
    ],
)
def test_requests_without_the_token_are_rejected(app, path):
    answer = Client(app.port, enter=False).get(path)
    assert answer.status == 403
    assert b"set-cookie" not in bytes(answer.headers).lower()


@pytest.mark.parametrize("cookie", ["x", "", "../../x", "a" * 10_000, "null", "%00"])
def test_a_made_up_cookie_is_none(app, cookie):
    client = Client(app.port, enter=False)
    client.cookie = f"ordinalq-{app.port}={cookie}"
    assert client.get("/").status in (400, 403)


def test_the_cookie_is_kept_from_scripts_and_other_sites(app):
    cookie = Client(app.port, enter=False).ask("GET", f"/?token={TOKEN}").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie


# From elsewhere


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "127.0.0.1",
        "127.0.0.1:1",
        "localhost.evil.example:{}",
        "127.0.0.1:{}.evil.example",
        "[::1]:{}",
        "",
    ],
)
def test_a_wrong_host_is_rejected(app, host):
    answer = Client(app.port).get("/", headers={"Host": host.format(app.port)})
    assert answer.status in (400, 403)


def test_two_hosts_are_rejected(app):
    head = (
        f"GET /?token={TOKEN} HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nHost: evil.example\r\nConnection: close\r\n\r\n"
    )
    assert status(raw(app, head.encode())) in (400, 403)


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://127.0.0.1:{}", None])
def test_a_post_from_another_page_is_rejected(app, owned, origin):
    client, project = owned
    answer = client.post(f"{project}/delete", headers={"Origin": origin and origin.format(app.port)})
    assert answer.status == 403
    assert client.get(project).status == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_a_request_that_another_page_makes_the_browser_send_is_rejected(owned, site):
    client, project = owned
    assert client.get(f"{project}/table", headers={"Sec-Fetch-Site": site}).status == 403
    assert client.post(f"{project}/delete", headers={"Sec-Fetch-Site": site}).status == 403


def test_a_link_from_elsewhere_with_the_token_may_enter(app):
    client = Client(app.port, enter=False)
    assert client.get("/", token=TOKEN, headers={"Sec-Fetch-Site": "cross-site"}).status == 200
    assert client.get("/").status == 200


def test_every_answer_has_the_headers_that_keep_others_out(owned):
    client, project = owned
    for path in ("/", f"{project}/table", "/static/app.css", "/no-such-page"):
        headers = client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["cache-control"] == "no-store"


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_do_nothing(owned, method):
    client, project = owned
    assert client.ask(method, project, headers={"Origin": client.origin}).status == 405


# Paths


@pytest.mark.parametrize(
    "path",
    [
        "/static/../routes.py",
        "/static/%2e%2e/routes.py",
        "/static/..%2f..%2fcli/main.py",
        "/static//etc/passwd",
        "{project}/file/..%2f..%2flock",
        "{project}/file/%2e%2e%2fmodel.oq",
        "{project}/file/summary.npz",
        "{project}/file//etc/passwd",
        "{project}/../../etc/passwd",
        "/w/..%2f..%2f/table",
        "/w/%00/table",
        "{project}/estimates.svg%00.html",
    ],
)
def test_no_path_leads_to_another_file(owned, path):
    client, project = owned
    answer = client.get(path.format(project=project))
    assert answer.status in (400, 404, 405)
    assert b"root:" not in answer.content


@pytest.mark.parametrize(
    "name",
    [
        "../../../tmp/ordinalq-evil.csv",
        "/etc/cron.d/evil.csv",
        "C:\\evil.csv",
        "a\x00b.csv",
        "a" * 3000 + ".csv",
        "<img src=x onerror=alert(1)>.csv",
    ],
)
def test_file_names_are_not_taken_for_paths_or_pages(app, name):
    client = Client(app.port)
    answer = client.send("/upload", name, STARS)
    assert answer.status in (200, 400)
    if answer.status == 200:
        page = client.get(client.project(answer)).text
        assert "<img src=x" not in page
        assert "/etc/" not in page
    assert not Path("/tmp/ordinalq-evil.csv").exists()
    assert all(path.name.startswith("upload-") for path in app.folder.rglob("*.csv"))


@pytest.mark.parametrize("name", ["evil.html", "evil.py", "evil", ".csv.exe", "model.oq.gz", ""])
def test_other_files_are_not_taken(app, name):
    before = set(app.folder.rglob("*"))
    answer = Client(app.port).send("/upload", name, b"x")
    assert answer.status in (400, 415)
    assert not [path for path in set(app.folder.rglob("*")) - before if path.is_file()]


# Sizes, and what is cut off


def test_an_upload_that_announces_too_much_is_rejected_at_once(app):
    client = Client(app.port)
    head = (
        f"POST /upload HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nOrigin: {client.origin}\r\nCookie: {client.cookie}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {1 << 50}\r\n\r\n"
    )
    assert status(raw(app, head.encode())) == 413


def test_an_upload_that_does_not_end_is_cut_at_the_limit(app, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_FILE", 100_000)
    client = Client(app.port)
    answer = client.send("/upload", "big.csv", b"x" * 150_000)
    assert answer.status == 413
    assert "at most" in problem(answer)
    assert not [path for path in app.folder.rglob("upload-*") if path.stat().st_size > 10_000]


def test_a_full_disk_is_said_and_nothing_is_left(app, monkeypatch):
    monkeypatch.setattr(uploads, "MAX_STORED", 10)
    before = set(app.folder.rglob("upload-*"))
    answer = Client(app.port).send("/upload", "stars.csv", STARS)
    assert answer.status == 413
    assert set(app.folder.rglob("upload-*")) == before


def test_a_connection_that_is_cut_leaves_nothing_behind(app):
    client = Client(app.port)
    before = set(app.folder.rglob("upload-*"))
    head = (
        f"POST /upload HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nOrigin: {client.origin}\r\nCookie: {client.cookie}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: 1000000\r\n\r\n"
    )
    with socket.create_connection(("127.0.0.1", app.port)) as connection:
        connection.sendall(head.encode() + form_data("stars.csv", STARS)[:400])
        time.sleep(0.5)
        # Reset rather than closed.
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    end = time.monotonic() + 10
    while set(app.folder.rglob("upload-*")) != before and time.monotonic() < end:
        time.sleep(0.1)
    assert set(app.folder.rglob("upload-*")) == before
    assert "stars.csv" not in client.get("/").text


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        (b"", f"multipart/form-data; boundary={BOUNDARY}"),
        (b"--wrong\r\n\r\nx", f"multipart/form-data; boundary={BOUNDARY}"),
        (form_data("stars.csv", STARS)[:-30], f"multipart/form-data; boundary={BOUNDARY}"),
        (form_data("stars.csv", STARS), "multipart/form-data"),
        (form_data("stars.csv", STARS), "text/plain"),
        (f"--{BOUNDARY}\r\nX: {'y' * 100_000}\r\n\r\n".encode(), f"multipart/form-data; boundary={BOUNDARY}"),
        (
            form_data("a.csv", STARS)[: -len(BOUNDARY) - 6] + form_data("b.csv", STARS),
            f"multipart/form-data; boundary={BOUNDARY}",
        ),
    ],
)
def test_invalid_forms_are_rejected(app, content, kind):
    before = set(app.folder.rglob("upload-*"))
    answer = Client(app.port).ask("POST", "/upload", content, {"Content-Type": kind})
    assert answer.status in (400, 415)
    assert set(app.folder.rglob("upload-*")) == before


@pytest.mark.parametrize(
    "content", [b"a=" + b"x" * (2 << 20), b"&".join(b"a=1" for _ in range(6000)), b"target=%ff%fe", b"\xff\xfe"]
)
def test_forms_that_are_too_large_or_not_text_are_rejected(owned, content):
    client, project = owned
    assert client.ask("POST", f"{project}/fit", content, FORM).status in (400, 413)


def test_headers_without_end_are_rejected(app):
    answer = raw(app, b"GET / HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 100_000)
    assert status(answer) in (0, 400, 431)


@pytest.mark.parametrize(
    "data", [b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\x00" * 100, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
)
def test_invalid_requests_are_rejected(app, data):
    assert status(raw(app, data, wait=2.0)) in (0, 400, 403, 405, 505)


# Values


@pytest.mark.parametrize(
    ("action", "fields"),
    [
        ("fit", {"target": "no such column"}),
        ("fit", {"target": "stars", "by": "../x"}),
        ("fit", [("target", "stars"), ("class", "0"), ("class", "0"), ("class", "1")]),
        ("fit", [("target", "stars"), ("target", "size")]),
        ("fit", {"target": "stars", "method": "os:system"}),
        ("fit", {"target": "stars", "method": "PACC", "budget": "best"}),
        ("fit", {"target": "stars", "use.0": "number:evil"}),
        ("read", {"encoding": "../x"}),
        ("read", {"which": "sample"}),
        ("predict", {"by": "size"}),
        ("compare", {"group": "0"}),
        ("plan", {"width": "nan"}),
        ("use", {}),
    ],
)
def test_values_that_no_page_offers_are_rejected(owned, action, fields):
    client, project = owned
    answer = client.post(f"{project}/{action}", fields)
    assert answer.status == 400
    assert problem(answer)


@pytest.mark.parametrize(
    "query", ["sort=%00", "page=99999999999999999999", "least=-1", "find=%3Cscript%3E", "page=%D9%A1"]
)
def test_addresses_that_make_no_sense_show_a_page(owned, query):
    client, project = owned
    assert client.ask("GET", f"{project}/results?{query}").status in (200, 303)


# Files


def bomb():
    """Return a Parquet file of some kilobytes that unpacks to gigabytes."""
    text = pa.array(["x" * 1_000_000]).dictionary_encode()
    chunk = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3000, dtype=np.int32)), text.dictionary)
    stream = io.BytesIO()
    pq.write_table(pa.table({"text": chunk, "stars": np.arange(3000) % 3}), stream, compression="zstd")
    return stream.getvalue()


@pytest.mark.skipif(sys.platform != "linux", reason="other systems do not limit the memory of a process")
def test_a_bomb_in_parquet_ends_only_its_own_job(app, monkeypatch):
    content = bomb()
    assert len(content) < 100_000
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(jobs, "MEMORY", (1 << 30) / total)
    client = Client(app.port)
    page = client.get(client.project(client.send("/upload", "bomb.parquet", content)))
    assert "memory" in problem(page)
    assert client.get("/").status == 200


@pytest.mark.parametrize("name", ["pickle.oq", "zip.oq", "script.oq"])
def test_a_forged_model_is_rejected_as_on_the_command_line(app, name):
    stream = io.BytesIO()
    if name == "pickle.oq":
        stream.write(b"\x80\x04\x95cos\nsystem\n(S'touch /tmp/ordinalq-evil'\ntR.")
    else:
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("meta.json", "0" * 10_000_000 if name == "zip.oq" else '{"format": 1}')
            archive.writestr("model.skops", b"")
    client = Client(app.port)
    page = client.get(client.project(client.send("/upload", name, stream.getvalue())))
    assert "expected a model of ordinalq" in problem(page) or "must not be compressed" in problem(page)
    assert not Path("/tmp/ordinalq-evil").exists()


def test_a_compressed_file_that_is_not_a_table_is_reported(app):
    client = Client(app.port)
    page = client.get(client.project(client.send("/upload", "t.csv.gz", gzip.compress(STARS)[:40])))
    assert problem(page).startswith("t.csv.gz")


SCRIPT = "<script>alert(1)</script>"


def test_scripts_in_columns_classes_and_groups_are_text(app):
    rng = np.random.default_rng(0)
    n = 240
    grade = rng.integers(3, size=n)
    frame = pd.DataFrame(
        {
            f"size{SCRIPT}": (grade + rng.normal(0, 0.5, n)).round(2),
            f'group"{SCRIPT}': rng.choice([f"a{SCRIPT}", "b' onload=x", "{{ 7 * 7 }}"], n),
            f"grade{SCRIPT}": np.array([f"0{SCRIPT}", "1&amp;", '2"'])[grade],
        }
    )
    client = Client(app.port)
    content = frame.to_csv(index=False).encode()
    project = client.project(client.send("/upload", f"x{SCRIPT}.csv".replace("/", ""), content))
    _, group, target = frame.columns
    seen = list(dict.fromkeys(frame[target]))
    fields = [
        ("target", target),
        *(("class", seen.index(word)) for word in sorted(seen)),
        ("method", "PACC"),
        ("use.1", "out"),
    ]
    client.post(f"{project}/fit", fields)
    model = client.done(project)
    assert "Quality of the model" in model.text, problem(model)
    client.send(f"{project}/sample", "new.csv", frame.drop(columns=target).to_csv(index=False).encode())
    new = client.done(project)
    client.post(f"{project}/predict", {"by": group})
    results = client.done(project)
    report = client.get(f"{project}/report.html")
    for page in (client.get(f"{project}/table"), model, new, results, report):
        assert page.status == 200
        assert SCRIPT not in page.text
        assert "&lt;script&gt;" in page.text
        assert "onload=x'" not in page.text.replace("&#39;", "")
    assert "49" not in results.text.split("{{ 7 * 7 }}")[0][-5:]
    assert "{{ 7 * 7 }}" in results.text
    assert SCRIPT.encode() not in client.get(f"{project}/estimates.svg").content


# Two at once, and too many


def test_a_project_runs_one_job_at_a_time(app):
    client = Client(app.port)
    rows = b"size,stars\n" + b"".join(b"%d,%d\n" % (i % 97, i % 5) for i in range(200_000))
    answer = client.send("/upload", "long.csv", rows)
    project = answer.path.rpartition("/table")[0] or answer.path
    second = client.post(f"{project}/read", {"encoding": "utf-8"})
    assert second.status in (200, 409)
    client.post(f"{project}/cancel")
    client.post(f"{project}/delete")


def test_more_work_than_the_machine_can_do_is_rejected(app, monkeypatch):
    monkeypatch.setattr(sessions, "MAX_JOBS", 0)
    answer = Client(app.port).send("/upload", "stars.csv", STARS)
    assert answer.status == 429
    assert "jobs are running" in problem(answer)


def test_too_many_projects_and_sessions_are_rejected(app, monkeypatch):
    client = Client(app.port)
    monkeypatch.setattr(sessions, "MAX_PROJECTS", 0)
    assert client.send("/upload", "stars.csv", STARS).status == 429
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 0)
    assert Client(app.port, enter=False).get("/", token=TOKEN).status == 429


# Connections


def is_closed(connection):
    connection.settimeout(5)
    try:
        return connection.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_silent_connections_do_not_lock_the_owner_out(app, owned):
    client, project = owned
    with contextlib.ExitStack() as stack:
        silent = [stack.enter_context(socket.create_connection(("127.0.0.1", app.port))) for _ in range(200)]
        start = time.monotonic()
        for _ in range(3):
            assert client.get(f"{project}/table").status == 200
        assert time.monotonic() - start < 2
        assert is_closed(silent[0])


@pytest.mark.parametrize("head", [b"", b"GET / HTTP/1.1\r\nHost: x", b"POST /upload HTTP/1.1\r\nContent-Le"])
def test_a_connection_without_a_whole_request_is_closed(app, monkeypatch, head):
    monkeypatch.setattr("ordinalq.app.server.HEADER_SECONDS", 0.5)
    with socket.create_connection(("127.0.0.1", app.port)) as connection:
        connection.sendall(head)
        assert is_closed(connection)


def test_an_upload_that_stops_is_closed_and_one_that_goes_on_is_not(app, owned, monkeypatch):
    monkeypatch.setattr("ordinalq.app.server.BODY_SECONDS", 1.5)
    client, _ = owned
    body = form_data("stars.csv", STARS)
    head = (
        f"POST /upload HTTP/1.1\r\nHost: 127.0.0.1:{app.port}\r\nOrigin: {client.origin}\r\nCookie: {client.cookie}\r\n"
        f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    address = ("127.0.0.1", app.port)
    with socket.create_connection(address) as stopped, socket.create_connection(address) as slow:
        stopped.sendall(head + body[:50])
        slow.sendall(head)
        for start in range(0, len(body), len(body) // 4 + 1):
            time.sleep(0.7)
            slow.sendall(body[start : start + len(body) // 4 + 1])
        assert is_closed(stopped)
        slow.settimeout(5)
        assert slow.recv(20).startswith(b"HTTP/1.1 303")


# The program itself


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_the_program_removes_its_files_when_it_is_ended(tmp_path, number):
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ordinalq", "app", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        try:
            address = urlsplit(program.stdout.readline().strip())
            client = Client(address.port, enter=False)
            assert client.get(f"/?{address.query}").status == 200
            assert client.send("/upload", "stars.csv", STARS).status == 200
            (folder,) = tmp_path.glob("ordinalq-app-*")
            assert folder.stat().st_mode & 0o077 == 0
            assert list(folder.rglob("upload-*"))
            program.send_signal(number)
            program.wait(30)
        finally:
            program.kill()
    assert not list(tmp_path.glob("ordinalq-app-*"))


@pytest.fixture
def short_path():
    """Return a folder whose name is short enough for sockets in it."""
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


def test_a_program_that_is_killed_leaves_only_its_own_folder(short_path):
    tmp_path = short_path
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "ordinalq", "app", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as program:
        address = urlsplit(program.stdout.readline().strip())
        client = Client(address.port, enter=False)
        assert client.get(f"/?{address.query}").status == 200
        client.project(client.send("/upload", "stars.csv", STARS))
        program.kill()
        program.wait(30)
    assert {path.name.rpartition("-")[0] for path in tmp_path.iterdir()} == {"ordinalq-app"}


def test_files_of_a_program_that_was_killed_are_removed_by_the_next(tmp_path, monkeypatch):
    from ordinalq.app.server import private_folder

    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with private_folder() as alive:
        (tmp_path / "ordinalq-app-dead").mkdir()
        (tmp_path / "ordinalq-app-dead" / "lock").touch()
        (tmp_path / "ordinalq-app-dead" / "upload-x.csv").touch()
        (tmp_path / "ordinalq-app-other").mkdir()
        with private_folder() as second:
            left = {path.name for path in tmp_path.iterdir()}
        assert left == {alive.name, second.name, "ordinalq-app-other"}
    assert {path.name for path in tmp_path.iterdir()} == {"ordinalq-app-other"}


def test_a_port_that_is_taken_is_said(app, capsys):
    from ordinalq.cli import main

    assert main(["app", "--port", str(app.port), "--no-browser"]) == 2
    assert f"port {app.port} cannot be used" in capsys.readouterr().err
