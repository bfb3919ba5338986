"""A table of 1 GB in the web app: upload, preview, estimate, little memory."""

import http.client
import os
import threading
import time

import numpy as np
import pandas as pd
import psutil
import pytest
from pages import BOUNDARY, Client
from test_browser import Program

pytestmark = pytest.mark.slow

N_BYTES = int(os.environ.get("ORDINALQ_LARGE", 1 << 30))
MAX_MEMORY = 1 << 30


class Memory(threading.Thread):
    """The largest memory of a program and all its processes together; pages that they share count once."""

    def __init__(self, pid):
        super().__init__(daemon=True)
        self.pid = pid
        self.most = 0
        self.over = threading.Event()

    def run(self):
        while not self.over.wait(0.2):
            own = psutil.Process(self.pid)
            total = 0
            for process in (own, *own.children(recursive=True)):
                try:
                    total += process.memory_full_info().pss
                except psutil.Error:  # has just ended
                    continue
            self.most = max(self.most, total)


def numbers(n, rng):
    grade = rng.integers(5, size=n)
    columns = {f"x{i}": (grade + rng.normal(0, 1.5, n)).round(4) for i in range(6)}
    return pd.DataFrame({"shop": rng.integers(200, size=n), **columns, "stars": grade + 1})


def texts(n, rng):
    """Reviews of 80 words, of which a dozen tell the stars."""
    grade = rng.integers(5, size=n)
    own, common = (np.array([f"{start}{i}" for i in range(5000)]) for start in ("tells", "says"))
    said = [" ".join([*own[1000 * g + rng.integers(1000, size=12)], *common[rng.zipf(1.3, 68) % 5000]]) for g in grade]
    return pd.DataFrame({"shop": rng.integers(200, size=n), "review": said, "stars": grade + 1})


def send(client, path, file):
    """Send a file without holding it in memory."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="new.csv"\r\n\r\n'.encode()
    tail = f"\r\n--{BOUNDARY}--\r\n".encode()
    connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=600)
    connection.putrequest("POST", path)
    for name, value in {
        "Origin": client.origin,
        "Cookie": client.cookie,
        "Content-Type": f"multipart/form-data; boundary={BOUNDARY}",
        "Content-Length": str(len(head) + file.stat().st_size + len(tail)),
    }.items():
        connection.putheader(name, value)
    connection.endheaders(head)
    with file.open("rb") as stream:
        while block := stream.read(1 << 20):
            connection.send(block)
    connection.send(tail)
    with connection.getresponse() as answer:
        assert answer.status == 303
        answer.read()
    connection.close()


# A microsecond for each row of numbers with PACC; the default's stack takes some hundred, and texts are fewer rows.
@pytest.mark.parametrize(("rows", "n", "method"), [(numbers, 100_000, "PACC"), (texts, 20_000, "")])
def test_a_table_of_one_gigabyte_takes_less_memory_than_that(tmp_path, record_property, rows, n, method):
    rng = np.random.default_rng(0)
    program = Program(tmp_path)
    try:
        client = Client(program.port, enter=False)
        assert client.get(program.address.rpartition(str(program.port))[2]).status == 200
        labelled = rows(4000, rng)
        project = client.project(client.send("/upload", "labelled.csv", labelled.to_csv(index=False).encode()))
        fields = [("target", "stars"), ("by", "shop"), ("method", method), *(("class", i) for i in range(5))]
        client.post(f"{project}/fit", fields)
        assert "Quality of the model" in client.done(project).text
        part = rows(n, rng).drop(columns="stars").to_csv(index=False).encode()
        header, _, body = part.partition(b"\n")
        with (tmp_path / "new.csv").open("wb") as stream:
            stream.write(header + b"\n")
            n_parts = -(-N_BYTES // len(body))
            for _ in range(n_parts):
                stream.write(body)
        memory = Memory(program.process.pid)
        memory.start()
        before = time.monotonic()
        send(client, f"{project}/sample", tmp_path / "new.csv")
        client.done(project)
        sent = time.monotonic()
        client.post(f"{project}/predict", {"by": "shop"})
        page = client.done(project, 3000).text
        done = time.monotonic()
        memory.over.set()
        memory.join()
        assert "200 groups by shop" in page
        record_property("rows", n * n_parts)
        record_property("seconds to send", round(sent - before))
        record_property("seconds to estimate", round(done - sent))
        record_property("MB of memory", memory.most >> 20)
        assert memory.most < MAX_MEMORY
    finally:
        program.end()
