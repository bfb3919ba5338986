"""Tables at addresses: https:// and s3://, from servers on localhost."""

import http.server
import re
import subprocess
import sys
import threading
from urllib.parse import parse_qs, unquote, urlsplit

import numpy as np
import pandas as pd
import pytest
import seeds

import ordinalq as oq
from ordinalq.cli.main import main
from ordinalq.io.table import open_table

pytest.importorskip("aiohttp")


FIT = ["--target", "stars", "--features", "a,b", "--method", "PACC"]


class Server:
    """Serves files from memory by HTTP with ranges, and lists them as S3 does; ``requests`` has what was sent."""

    def __init__(self):
        self.files, self.requests, self.has_ranges, self.absent, outer = {}, [], True, 404, self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_HEAD(self):
                self.answer(head=True)

            def do_GET(self):
                self.answer(head=False)

            def answer(self, *, head):
                parts = urlsplit(self.path)
                name, wanted = unquote(parts.path).lstrip("/"), self.headers.get("Range")
                query = parse_qs(parts.query, keep_blank_values=True)
                if "list-type" in query:
                    return self.send(
                        200, outer.listing(name, query).encode(), {"Content-Type": "application/xml"}, head
                    )
                content = outer.files.get(name)
                if content is None:
                    return self.send(outer.absent, b"", {}, head)
                more = {"Last-Modified": "Wed, 01 Jan 2025 00:00:00 GMT"}
                more["Accept-Ranges"] = "bytes" if outer.has_ranges else "none"
                status, body = 200, content
                if wanted and outer.has_ranges and not head:
                    first, last = re.fullmatch(r"bytes=(\d*)-(\d*)", wanted).groups()
                    start = int(first) if first else len(content) - int(last)
                    body = content[start : int(last) + 1 if first and last else None]
                    more["Content-Range"] = f"bytes {start}-{start + len(body) - 1}/{len(content)}"
                    status = 206
                outer.requests.append((name, 0 if head else len(body)))
                return self.send(status, body, more, head)

            def send(self, status, body, headers, head):
                self.send_response(status)
                for key, value in {"Content-Length": str(len(body)), "ETag": '"1"', **headers}.items():
                    self.send_header(key, value)
                self.end_headers()
                if not head:
                    self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.place = f"127.0.0.1:{self.http.server_port}"
        self.url = f"http://{self.place}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def listing(self, bucket, query):
        prefix = query.get("prefix", [""])[0]
        bucket = bucket.strip("/")
        keys = [name.removeprefix(f"{bucket}/") for name in self.files if name.startswith(f"{bucket}/{prefix}")]
        contents = "".join(
            f"<Contents><Key>{key}</Key><Size>{len(self.files[f'{bucket}/{key}'])}</Size>"
            "<LastModified>2025-01-01T00:00:00.000Z</LastModified></Contents>"
            for key in sorted(keys)
        )
        count = f"<KeyCount>{len(keys)}</KeyCount><IsTruncated>false</IsTruncated>"
        return f"<ListBucketResult><Name>{bucket}</Name><Prefix>{prefix}</Prefix>{count}{contents}</ListBucketResult>"

    def s3(self, name):
        return f"s3://{name}?endpoint_override={self.place}&scheme=http&region=us-east-1"

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server(monkeypatch):
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "made")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    server = Server()
    yield server
    server.close()


def reviews(rng, n_rows=3000):
    stars = rng.integers(1, 6, n_rows)
    shop = np.array(["north", "south", "west"])[np.arange(n_rows) % 3]
    columns = {"stars": stars, "shop": shop, "a": stars + rng.normal(size=n_rows), "b": rng.normal(size=n_rows)}
    return pd.DataFrame(columns | {"unused": [rng.bytes(40).hex() for _ in range(n_rows)]})


def written(frame, path):
    """Write a frame, Parquet with three row groups, and return the bytes of the file."""
    if path.suffix == ".csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path, index=False, row_group_size=len(frame) // 3)
    return path.read_bytes()


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    written(reviews(seeds.generator(1)), folder / "train.csv")
    assert main(["fit", str(folder / "train.csv"), *FIT, "--out", str(folder / "model.oq")]) == 0
    return folder / "model.oq"


def estimates(model, place, tmp_path, *more):
    out = tmp_path / "estimates.csv"
    assert main(["predict", str(model), str(place), "--by", "shop", "--out", str(out), *more]) == 0
    return out.read_text()


@pytest.mark.parametrize(
    ("scheme", "kind", "n_jobs"),
    [
        ("http", "csv", "1"),
        ("s3", "csv", "1"),
        ("http", "parquet", "1"),
        ("http", "parquet", "2"),
        ("s3", "parquet", "2"),
    ],
)
def test_remote_tables_give_the_estimates_of_local_ones(server, model, rng, tmp_path, scheme, kind, n_jobs):
    path = tmp_path / f"new.{kind}"
    server.files[f"bucket/new.{kind}"] = written(reviews(rng), path)
    address = f"{server.url}/bucket/new.{kind}" if scheme == "http" else server.s3(f"bucket/new.{kind}")
    found = estimates(model, address, tmp_path, "--n-jobs", n_jobs)
    assert server.requests
    assert found == estimates(model, path, tmp_path)


def test_only_the_needed_columns_of_parquet_are_transferred(server, model, rng, tmp_path):
    content = written(reviews(rng, 20_000), tmp_path / "new.parquet")
    server.files["new.parquet"] = content
    estimates(model, f"{server.url}/new.parquet", tmp_path)
    assert sum(size for _, size in server.requests) < len(content) / 2


def test_parquet_of_a_server_without_ranges_is_copied(server, model, rng, tmp_path):
    server.files["new.parquet"] = written(reviews(rng), tmp_path / "new.parquet")
    server.has_ranges = False
    found = estimates(model, f"{server.url}/new.parquet", tmp_path)
    assert found == estimates(model, tmp_path / "new.parquet", tmp_path)


def test_folders_of_s3_are_tables_with_columns_from_their_names(server, model, rng, tmp_path):
    frame = reviews(rng)
    for shop, rows in frame.groupby("shop"):
        folder = tmp_path / "data" / f"shop={shop}"
        folder.mkdir(parents=True)
        content = written(rows.drop(columns="shop"), folder / "part.parquet")
        server.files[f"bucket/data/shop={shop}/part.parquet"] = content
    server.files["bucket/data/_notes.parquet"] = b"not a table"
    assert estimates(model, server.s3("bucket/data"), tmp_path) == estimates(model, tmp_path / "data", tmp_path)


def test_fit_reads_an_address(server, rng, tmp_path, capsys):
    server.files["train.csv"] = written(reviews(rng), tmp_path / "train.csv")
    models = [tmp_path / "remote.oq", tmp_path / "local.oq"]
    for place, path in zip((f"{server.url}/train.csv?token=secret", tmp_path / "train.csv"), models, strict=True):
        assert main(["fit", str(place), *FIT, "--out", str(path)]) == 0
    assert "secret" not in capsys.readouterr().out
    remote, local = map(oq.load_model, models)
    np.testing.assert_array_equal(*(model.quantifier_.held_out_.S for model in (remote, local)))


@pytest.mark.parametrize("place", ["/absent.parquet", "/absent.csv"])
def test_absent_files_and_servers_get_one_line_without_secrets(server, model, tmp_path, capsys, place):
    for address in (f"{server.url}{place}?token=secret", f"http://127.0.0.1:1{place}?token=secret"):
        assert main(["predict", str(model), address]) != 0
        error = capsys.readouterr().err.strip()
        assert error.count("\n") == 0
        assert place in error
        assert "secret" not in error


@pytest.mark.parametrize("status", [403, 500])
def test_errors_of_servers_are_not_taken_for_absent_files(server, model, capsys, status):
    for name in ("new.parquet", "new.csv"):
        server.absent = 404
        assert main(["predict", str(model), f"{server.url}/{name}"]) != 0
        assert capsys.readouterr().err.strip() == f"ordinalq: {server.url}/{name}: no such file."
        server.absent = status
        assert main(["predict", str(model), f"http://me:secret@{server.place}/{name}?token=secret"]) != 0
        error = capsys.readouterr().err.strip()
        assert error.startswith(f"ordinalq: {server.url}/{name} cannot be read: status {status}")
        assert "secret" not in error
    assert main(["predict", str(model), "http://127.0.0.1:1/new.csv?token=secret"]) != 0
    error = capsys.readouterr().err.strip()
    assert error.startswith("ordinalq: http://127.0.0.1:1/new.csv cannot be read: ")
    assert "secret" not in error


@pytest.mark.parametrize("status", [403, 404])
def test_errors_while_parts_are_read_name_the_file_without_secrets(server, rng, tmp_path, status):
    server.files["new.parquet"] = written(reviews(rng), tmp_path / "new.parquet")
    table = open_table(f"{server.url}/new.parquet?token=secret")
    assert "a" in table.columns()
    server.files.clear()
    server.absent = status
    with pytest.raises(ConnectionError) as caught:
        table.read(["a"])
    assert str(caught.value).startswith(f"{server.url}/new.parquet cannot be read: status {status}")
    assert "secret" not in str(caught.value)


def test_absent_files_of_s3_get_one_line(server, model, capsys):
    assert main(["predict", str(model), server.s3("bucket/absent.parquet")]) != 0
    assert capsys.readouterr().err.strip() == "ordinalq: s3://bucket/absent.parquet: no such file."


def test_copies_of_remote_text_are_limited(server, model, rng, tmp_path, capsys):
    server.files["new.csv"] = written(reviews(rng), tmp_path / "new.csv")
    assert main(["predict", str(model), f"{server.url}/new.csv", "--max-spool", "0.0001"]) != 0
    assert "expected at most 0.0001 GB, got more. Use --max-spool" in capsys.readouterr().err


def test_without_the_extra_one_line_names_it(model):
    blocked = (
        "import sys; sys.modules['aiohttp'] = None; from ordinalq.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    command = [sys.executable, "-c", blocked, "predict", str(model), "https://127.0.0.1:1/a.parquet"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0
    expected = 'reading https:// files needs aiohttp. Install it with: pip install "ordinalq[remote]"'
    assert done.stderr.strip() == f"ordinalq: {expected}"
