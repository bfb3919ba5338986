"""Downloads over HTTP on localhost: resumed, checked, unpacked safely; a fake of each published layout is loaded."""

import concurrent.futures
import gzip
import hashlib
import http.server
import io
import json
import subprocess
import sys
import threading
import time
import tracemalloc
import zipfile

import h5py
import numpy as np
import pandas as pd
import platformdirs
import pytest
from hostile_archives import tar_of, zip_of
from lequa_files import texts, write_archives
from numpy.testing import assert_allclose, assert_array_equal

import ordinalq as oq
from ordinalq.datasets import CATALOG, amazon, download, fact, lequa, regression, text
from ordinalq.datasets.download import fetch, find_local


class Server:
    """Serves files from memory; knows ranges, and can break off after some bytes."""

    def __init__(self):
        self.files = {}
        self.etags = {}
        self.break_after = []  # bytes after which the next answers end, one entry per answer
        self.requests = []  # (path, Range header)
        self.delay = 0  # seconds before an answer
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                outer.answer(self)

            def log_message(self, *_):
                pass

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.01,))
        self.thread.start()

    def answer(self, handler):
        path, wanted = handler.path.lstrip("/"), handler.headers.get("Range")
        self.requests.append((path, wanted))
        time.sleep(self.delay)
        if path not in self.files:
            handler.send_error(404)
            return
        content = self.files[path]
        etag = self.etags.get(path, f'"{hashlib.md5(content).hexdigest()}"')
        start = 0
        if wanted and handler.headers.get("If-Range") == etag:
            start = int(wanted.removeprefix("bytes=").removesuffix("-"))
            if start >= len(content):
                handler.send_error(416)
                return
            handler.send_response(206)
            handler.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        else:
            handler.send_response(200)
        handler.send_header("ETag", etag)
        handler.send_header("Content-Length", str(len(content) - start))
        handler.end_headers()
        end = start + self.break_after.pop(0) if self.break_after else len(content)
        handler.wfile.write(content[start:end])

    def close(self):
        self.http.shutdown()
        self.http.server_close()
        self.thread.join()


@pytest.fixture
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Each test has its own cache and no folder of local copies."""
    monkeypatch.delenv("ORDINALQ_DATA", raising=False)
    monkeypatch.setenv("ORDINALQ_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def sha256(content):
    return "sha256:" + hashlib.sha256(content).hexdigest()


def resumed_at(wanted):
    return int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted else 0


CONTENT = bytes(range(256)) * 4000  # one megabyte


# Transfers ------------------------------------------------------------------------------------------------------------


def test_fetched_file_is_kept_and_not_fetched_again(server, cache):
    server.files["a.bin"] = CONTENT
    for _ in range(2):
        path = fetch(f"{server.url}/a.bin", "a.bin", sha256(CONTENT))
    assert path == cache / "a.bin"
    assert path.read_bytes() == CONTENT
    assert server.requests == [("a.bin", None)]
    assert [p.name for p in cache.iterdir()] == ["a.bin"]


def test_broken_transfer_resumes_within_the_call(server):
    server.files["a.bin"] = CONTENT
    server.break_after = [300_000, 200_000]
    path = fetch(f"{server.url}/a.bin", "a.bin")
    assert path.read_bytes() == CONTENT
    starts = [resumed_at(wanted) for _, wanted in server.requests]
    assert starts[0] == 0
    # What came before the break is not fetched again, save for the last packet.
    assert 200_000 < starts[1] <= 300_000
    assert starts[1] + 100_000 < starts[2] <= starts[1] + 200_000


def test_broken_transfer_resumes_in_the_next_call(server, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.files["a.bin"] = CONTENT
    server.break_after = [300_000]
    with pytest.raises(ConnectionError, match=r"cannot be reached.*put it as a\.bin"):
        fetch(f"{server.url}/a.bin", "a.bin", sha256(CONTENT))
    assert fetch(f"{server.url}/a.bin", "a.bin", sha256(CONTENT)).read_bytes() == CONTENT
    assert 200_000 < resumed_at(server.requests[1][1]) <= 300_000


def test_file_that_changed_meanwhile_is_fetched_from_the_beginning(server, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.files["a.bin"] = CONTENT
    server.break_after = [300_000]
    with pytest.raises(ConnectionError):
        fetch(f"{server.url}/a.bin", "a.bin")
    server.files["a.bin"] = CONTENT[::-1]
    assert fetch(f"{server.url}/a.bin", "a.bin").read_bytes() == CONTENT[::-1]


def test_part_of_another_address_is_not_continued(server, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.files |= {"old.bin": CONTENT, "new.bin": CONTENT[::-1]}
    server.etags = {"old.bin": '"same"', "new.bin": '"same"'}
    server.break_after = [300_000]
    with pytest.raises(ConnectionError):
        fetch(f"{server.url}/old.bin", "a.bin")
    assert fetch(f"{server.url}/new.bin", "a.bin").read_bytes() == CONTENT[::-1]
    assert server.requests[1] == ("new.bin", None)


def in_threads(n, work):
    """Results of `work`, done by n threads at the same moment."""
    barrier = threading.Barrier(n)

    def start(_):
        barrier.wait()
        return work()

    with concurrent.futures.ThreadPoolExecutor(n) as threads:
        return list(threads.map(start, range(n)))


def test_two_at_once_fetch_a_file_once(server, cache, monkeypatch, caplog):
    monkeypatch.setattr(download, "POLL_SECONDS", 0.01)
    server.files["a.bin"] = CONTENT
    server.delay = 0.2
    paths = in_threads(4, lambda: fetch(f"{server.url}/a.bin", "a.bin", sha256(CONTENT)))
    assert paths == [cache / "a.bin"] * 4
    assert paths[0].read_bytes() == CONTENT
    assert server.requests == [("a.bin", None)]
    assert [path.name for path in cache.iterdir()] == ["a.bin"]
    assert "a.bin is being fetched by another process: waiting for it" in caplog.text


def test_another_process_that_fetches_is_waited_for(server, cache):
    server.files["a.bin"] = CONTENT
    server.delay = 0.5
    code = f"from ordinalq.datasets.download import fetch; fetch('{server.url}/a.bin', 'a.bin')"
    processes = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(2)]
    assert [process.wait(60) for process in processes] == [0, 0]
    assert (cache / "a.bin").read_bytes() == CONTENT
    assert server.requests == [("a.bin", None)]


def test_lock_of_a_process_that_died_does_not_block(server, cache):
    server.files["a.bin"] = CONTENT
    cache.mkdir()
    (cache / "a.bin.lock").touch()
    assert fetch(f"{server.url}/a.bin", "a.bin").read_bytes() == CONTENT


def test_transfer_that_cannot_be_continued_begins_anew(server, monkeypatch):
    monkeypatch.setattr(download, "ATTEMPTS", 1)
    server.etags["a.bin"] = '"same"'  # a server that does not notice that the file shrank
    server.files["a.bin"] = CONTENT
    server.break_after = [300_000]
    with pytest.raises(ConnectionError):
        fetch(f"{server.url}/a.bin", "a.bin")
    server.files["a.bin"] = CONTENT[:1000]
    with pytest.raises(ConnectionError, match="cannot continue after byte"):
        fetch(f"{server.url}/a.bin", "a.bin")
    assert fetch(f"{server.url}/a.bin", "a.bin").read_bytes() == CONTENT[:1000]


def test_wrong_checksum_is_rejected_and_deletes_nothing_else(server, cache):
    server.files["a.bin"] = CONTENT
    cache.mkdir()
    (cache / "b.bin").write_bytes(b"another file")
    with pytest.raises(ValueError, match=r"does not have the expected checksum sha256:.* and was refused"):
        fetch(f"{server.url}/a.bin", "a.bin", sha256(b"something else"))
    assert [p.name for p in cache.iterdir()] == ["b.bin"]
    assert (cache / "b.bin").read_bytes() == b"another file"


def test_damaged_file_in_the_cache_is_fetched_again(server, cache):
    server.files["a.bin"] = CONTENT
    cache.mkdir()
    (cache / "a.bin").write_bytes(CONTENT[:1000])
    assert fetch(f"{server.url}/a.bin", "a.bin", sha256(CONTENT).upper().replace("SHA256", "sha256")) == cache / "a.bin"
    assert (cache / "a.bin").read_bytes() == CONTENT
    assert [p.name for p in cache.iterdir()] == ["a.bin"]


def test_cache_is_the_folder_of_the_system_unless_named(cache, monkeypatch):
    assert download.cache_folder() == cache
    monkeypatch.delenv("ORDINALQ_CACHE")
    assert download.cache_folder() == platformdirs.user_cache_path("ordinalq")


def test_errors_without_file_or_network_name_the_file_and_its_folder(server):
    with pytest.raises(ConnectionError, match=r"put it as a\.bin into the folder named by ORDINALQ_DATA.*404"):
        fetch(f"{server.url}/a.bin", "a.bin")
    with pytest.raises(ConnectionError, match=r"cannot be reached.*on another machine"):
        fetch("http://127.0.0.1:9/a.bin", "a.bin")


def test_local_copies_go_before_downloads(tmp_path, monkeypatch, cache):
    folder = tmp_path / "data"
    folder.mkdir()
    cache.mkdir()
    assert find_local(["a*.csv"]) is None
    (cache / "a1.csv").touch()
    assert find_local(["a*.csv"]) == cache / "a1.csv"
    monkeypatch.setenv("ORDINALQ_DATA", str(folder))
    (folder / "a2.csv").touch()
    assert find_local(["a*.csv"]) == folder / "a2.csv"
    assert find_local(["b.csv"], folder / "a2.csv") == folder / "a2.csv"
    with pytest.raises(FileNotFoundError, match=r"must hold one of b\.csv"):
        find_local(["b.csv"], folder)
    with pytest.raises(FileNotFoundError, match="no such file or folder"):
        find_local(["b.csv"], tmp_path / "nowhere")
    monkeypatch.setenv("ORDINALQ_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="ORDINALQ_DATA must name a folder"):
        find_local(["a*.csv"])


# Archives -------------------------------------------------------------------------------------------------------------


# The published layouts ------------------------------------------------------------------------------------------------


def csv_text(table, header=None):
    lines = [",".join(f"{value:.6g}" for value in row) for row in table]
    return "\n".join([*([header] if header else []), *lines, ""]).encode()


def arff_text(table, names):
    attributes = "".join(f"@attribute {name} real\n" for name in names)
    return b"% a comment\n@RELATION fake\n" + attributes.encode() + b"@data\n" + csv_text(table)


def publish_openml(server, monkeypatch, data_id, content, target):
    monkeypatch.setattr(download, "OPENML", f"{server.url}/json")
    server.files["file.arff"] = content
    description = {
        "url": f"{server.url}/file.arff",
        "md5_checksum": hashlib.md5(content).hexdigest(),
        "default_target_attribute": target,
    }
    server.files[f"json/{data_id}"] = json.dumps({"data_set_description": description}).encode()


def test_fried_of_openml(server, monkeypatch, rng):
    table = np.column_stack([rng.uniform(size=(200, 10)), rng.uniform(-1, 31, 200)])
    names = [*(f"X{i}" for i in range(1, 11)), "Y"]
    publish_openml(server, monkeypatch, 564, arff_text(table, names), "Y")
    dataset = oq.datasets.load_dataset("fried-openml")
    assert dataset.feature_names == tuple(names[:-1])
    assert sum(len(part.y) for part in (dataset.train, dataset.validation, dataset.test)) == 200
    assert dataset.train.X.dtype == np.float32
    oq.datasets.load_dataset("fried-openml")  # from the cache
    assert [path for path, _ in server.requests] == ["json/564", "file.arff"]


def test_yolanda_takes_the_target_that_openml_names(server, monkeypatch, rng):
    table = np.column_stack([rng.integers(1922, 2012, 300), rng.normal(size=(300, 100))])
    names = ["year", *(f"f{i}" for i in range(100))]
    publish_openml(server, monkeypatch, 42705, arff_text(table, names), "year")
    dataset = oq.datasets.load_dataset("yolanda")
    assert dataset.feature_names == tuple(names[1:])
    assert dataset.edges[[0, -1]].tolist() == [1922, 2011]
    counts = sum(np.bincount(part.y) for part in (dataset.train, dataset.validation, dataset.test))
    assert_array_equal(counts, np.histogram(table[:, 0], np.linspace(1922, 2011, 11))[0])
    again = oq.datasets.load_dataset("yolanda")  # from the cache, which still knows the target
    assert_array_equal(again.train.X, dataset.train.X)
    assert len(server.requests) == 2


def test_openml_file_with_another_checksum_is_rejected(server, monkeypatch):
    publish_openml(server, monkeypatch, 564, b"@data\n", "Y")
    server.files["file.arff"] = b"something else"
    with pytest.raises(ValueError, match="expected checksum md5:"):
        oq.datasets.load_dataset("fried-openml")


def blog_table(rng):
    """280 features and the number of comments, spread over all bins."""
    return np.column_stack([rng.integers(0, 9, (300, 280)), rng.integers(0, 100, 300)])


def publish_uci(server, monkeypatch, path, archive):
    monkeypatch.setattr(regression, "UCI", server.url)
    monkeypatch.setattr(regression, "BLOG_SHA256", sha256(archive))
    server.files[path] = archive


def test_blog_feedback_of_uci(server, monkeypatch, rng):
    table = blog_table(rng)
    archive = zip_of({"blogData_train.csv": csv_text(table), "blogData_test-2012.02.01.csv": b"1,2\n"})
    publish_uci(server, monkeypatch, "304/blogfeedback.zip", archive)
    server.break_after = [1000]  # and it resumes
    dataset = oq.datasets.load_dataset("blog-feedback")
    assert len(dataset.feature_names) == 280
    counts = sum(np.bincount(part.y) for part in (dataset.train, dataset.validation, dataset.test))
    expected = np.histogram(np.minimum(table[:, -1], 81), np.linspace(0, 81, 11))[0]
    assert_array_equal(counts, expected)
    assert "outside of [0, 81]" in dataset.notes[0]


def damaged(lines, number, change):
    lines = lines.split(b"\n")
    lines[number - 1] = change(lines[number - 1])
    return b"\n".join(lines)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda line: line + b",7", r"blogData_train\.csv, line 17: expected 281 columns, got 282"),
        (lambda line: line.rpartition(b",")[0], r"blogData_train\.csv, line 17: expected 281 columns, got 280"),
        (lambda line: b"many" + line[1:], r"blogData_train\.csv, line 17: expected a number in column 1, got 'many'"),
        (lambda line: b"nan" + line[1:], r"blogData_train\.csv, line 17: expected a number in column 1, got 'nan'"),
        (lambda line: b"" + line[1:], r"blogData_train\.csv, line 17: expected a number in column 1, got ''"),
        (lambda line: b"\xff" + line[1:], r"blogData_train\.csv, line 17: expected a number in column 1"),
    ],
)
def test_damaged_blog_file_is_named_with_its_line(server, monkeypatch, rng, change, message):
    archive = zip_of({"blogData_train.csv": damaged(csv_text(blog_table(rng)), 17, change)})
    publish_uci(server, monkeypatch, "304/blogfeedback.zip", archive)
    with pytest.raises(ValueError, match=message):
        oq.datasets.load_dataset("blog-feedback")


def test_blog_archive_without_the_file_is_rejected(server, monkeypatch):
    publish_uci(server, monkeypatch, "304/blogfeedback.zip", zip_of({"readme": b""}))
    with pytest.raises(ValueError, match=r"expected an archive with blogData_train\.csv"):
        oq.datasets.load_dataset("blog-feedback")


def test_paper_settings_explain_when_no_span_exists(server, monkeypatch, rng):
    publish_uci(server, monkeypatch, "304/blogfeedback.zip", zip_of({"blogData_train.csv": csv_text(blog_table(rng))}))
    with pytest.raises(ValueError, match="blog-feedback has no span with 10 bins of at least 1000 items"):
        oq.datasets.load_dataset("blog-feedback", settings="paper")


def news_csv(rng, columns=regression.NEWS_COLUMNS):
    table = np.column_stack([rng.normal(size=(300, len(columns) - 1)), rng.integers(1, 30_000, 300)])
    rows = [f"http://example.org/{i}, " + ", ".join(f"{v:.6g}" for v in row) for i, row in enumerate(table)]
    return "\n".join(["url, " + ", ".join(columns), *rows, ""]).encode()


def publish_news(server, monkeypatch, content):
    archive = zip_of({"OnlineNewsPopularity/OnlineNewsPopularity.csv": content, "OnlineNewsPopularity/x.names": b""})
    publish_uci(server, monkeypatch, "332/online+news+popularity.zip", archive)


def test_online_news_of_uci(server, monkeypatch, rng):
    publish_news(server, monkeypatch, news_csv(rng))
    dataset = oq.datasets.load_dataset("online-news-popularity")
    assert len(dataset.feature_names) == 59
    assert dataset.feature_names[0] == "timedelta"
    assert "300 of the 39,644 published items" in dataset.notes[0]
    assert "1/2, 1/4, 1/4" in dataset.split


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda rng: news_csv(rng, regression.NEWS_COLUMNS[1:]),
            r"Popularity\.csv, line 1: 1 of 60 columns are missing: 'timed",
        ),
        (
            lambda rng: damaged(news_csv(rng), 5, lambda line: line + b",1"),
            r"Popularity\.csv, line 5: expected 61 columns, got 62",
        ),
        (
            lambda rng: damaged(news_csv(rng), 5, lambda line: line.rpartition(b",")[0]),
            r"Popularity\.csv, line 5: expected 61 columns, got 60",
        ),
        (
            lambda rng: damaged(news_csv(rng), 5, lambda line: line + b"k"),
            r"line 5: expected a number in column 'shares'",
        ),
    ],
)
def test_damaged_news_file_is_named_with_its_line(server, monkeypatch, rng, make, message):
    publish_news(server, monkeypatch, make(rng))
    with pytest.raises(ValueError, match=message):
        oq.datasets.load_dataset("online-news-popularity")


def events(rng, n=600):
    table = {name: rng.uniform(1, 2, n) for name in fact.COLUMNS}
    table[fact.ENERGY] = 10 ** rng.uniform(2.3, 4.3, n)
    return table


def hdf5_of(path, table):
    with h5py.File(path, "w") as file:
        for name, values in table.items():
            file.create_dataset(f"events/{name}", data=values, compression="gzip")
    return path.read_bytes()


def test_fact_events_from_hdf5(server, monkeypatch, rng, tmp_path):
    table = events(rng)
    table["size"][:5] = [0, np.nan, np.inf, -1, 0]
    server.files["gamma.hdf5"] = hdf5_of(tmp_path / "made.hdf5", table | {"night": np.arange(600)})
    monkeypatch.setattr(fact, "URL", f"{server.url}/gamma.hdf5")
    dataset = oq.datasets.load_dataset("fact-oq")
    assert "5 of 600 events have a feature that is not finite and were left out" in dataset.notes
    assert dataset.feature_names == fact.FEATURES
    assert dataset.train.X.dtype == np.float32
    assert_allclose(dataset.edges, np.arange(2.4, 4.21, 0.15))
    counts = sum(np.bincount(part.y) for part in (dataset.train, dataset.validation, dataset.test))
    energies = np.clip(np.log10(table[fact.ENERGY][5:]), 2.4, 4.2)
    assert_array_equal(counts, np.histogram(energies, dataset.edges)[0])
    X = dict(zip(fact.FEATURES, dataset.train.X.T, strict=True))
    assert_allclose(X["log_size"], np.log(X["size"]), atol=1e-6)
    assert_allclose(X["size_area"], X["size"] / (np.pi * X["width"] * X["length"]), rtol=1e-5)
    assert X["cog_r"].min() >= np.sqrt(2) * 0.999


def test_fact_features_of_an_event_computed_by_hand():
    row = np.arange(1.0, 20.0)  # cog_x, cog_y and the energy come last
    row[[fact.COLUMNS.index(name) for name in ("size", "width", "length", "cog_x", "cog_y")]] = 100, 2, 5, 3, -4
    row[-1] = 1000
    X, log_energy = fact.features(row[None])
    assert_allclose(log_energy, [3])
    assert_array_equal(X[0, :16], row[:16])
    # ln 100, 10 pi, 100 / (10 pi), sqrt(9 + 16)
    assert fact.FEATURES[16:] == ("log_size", "area", "size_area", "cog_r")
    assert_allclose(X[0, 16:], [4.6051702, 31.4159265, 3.1830989, 5], rtol=1e-6)


def test_spans_and_columns_are_the_published_ones():
    assert regression.SPAN == (-0.523, 30.054)
    assert regression.YOLANDA_SPAN == (1922, 2011)
    assert regression.BLOG_SPAN == (0, 81)
    assert regression.NEWS_SPAN == (1, 27_700)
    assert regression.BLOG_COLUMNS == 281
    assert len(set(regression.NEWS_COLUMNS)) == 60
    assert regression.NEWS_COLUMNS[-1] == "shares"
    assert len(set(fact.COLUMNS)) == 19
    assert len(set(fact.FEATURES)) == 20
    assert [len(columns) for columns in (*regression.FRIED_COLUMNS, *regression.YOLANDA_COLUMNS)] == [11, 11, 101]


def test_fact_protocols_follow_the_spectrum(server, monkeypatch, rng, tmp_path):
    server.files["gamma.hdf5"] = hdf5_of(tmp_path / "made.hdf5", events(rng))
    monkeypatch.setattr(fact, "URL", f"{server.url}/gamma.hdf5")
    dataset = oq.datasets.load_dataset("fact-oq")
    assert (dataset.sampling.n_validation, dataset.sampling.n_test, dataset.sampling.app_oq) == (2000, 5000, 0.05)
    assert oq.datasets.load_dataset("fact-oq", settings="paper").sampling.n_validation == 1000
    real = dataset.samples("real", "validation").prevalences
    assert len(real) == 2000
    assert real.min() >= 0.003  # at least three items of each class
    assert_allclose(real.mean(axis=0), oq.datasets.published.fact_spectrum().p, atol=0.004)
    assert_allclose(np.mean(oq.simplex.jaggedness(real)), 0.0125, atol=0.0006)
    assert dataset.acceptance.max() == 1
    areas = oq.datasets.published.fact_spectrum().effective_areas
    assert_allclose(dataset.acceptance * areas.max(), areas)
    assert (np.diff(dataset.acceptance[:7]) > 0).all()


def test_fact_events_from_a_table_keep_only_the_gammas(rng, tmp_path):
    frame = pd.DataFrame(events(rng)).assign(sample=["gamma"] * 400 + ["proton"] * 200)
    frame.to_parquet(tmp_path / "fact.parquet")
    dataset = oq.datasets.load_dataset("fact-oq", data=tmp_path)
    assert sum(len(part.y) for part in (dataset.train, dataset.validation, dataset.test)) == 400
    frame.drop(columns="width").to_parquet(tmp_path / "fact.parquet")
    with pytest.raises(ValueError, match="1 of 19 columns are missing: 'width'"):
        oq.datasets.load_dataset("fact-oq", data=tmp_path)
    frame.assign(sample="proton").to_parquet(tmp_path / "fact.parquet")
    with pytest.raises(ValueError, match="expected events with sample == 'gamma'"):
        oq.datasets.load_dataset("fact-oq", data=tmp_path)


def test_damaged_fact_files_are_named(rng, tmp_path):
    path = tmp_path / "fact.hdf5"
    content = hdf5_of(path, events(rng))
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"fact\.hdf5: damaged or incomplete HDF5 file"):
        oq.datasets.load_dataset("fact-oq", data=path)
    table = events(rng)
    del table["leakage1"]
    hdf5_of(path, table)
    with pytest.raises(ValueError, match=r"fact\.hdf5.*1 of 19 columns are missing: 'leakage1'"):
        oq.datasets.load_dataset("fact-oq", data=path)
    hdf5_of(path, table | {"leakage1": np.ones((600, 2))})
    with pytest.raises(ValueError, match=r"expected 600 numbers in events/leakage1, got shape \(600, 2\)"):
        oq.datasets.load_dataset("fact-oq", data=path)
    with h5py.File(path, "w") as file:
        file.create_dataset("runs", data=[1])
    with pytest.raises(ValueError, match=r"expected an HDF5 group 'events', got \['runs'\]"):
        oq.datasets.load_dataset("fact-oq", data=path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"@relation x\n@attribute a real\n", r"fried\.arff: expected an ARFF file, but it has no line @data"),
        (b"@attribute a {red, green}\n", r"fried\.arff, line 1: expected a numeric attribute, got '{red, green}'"),
        (b"@attribute a real\n@data\n", r"fried\.arff: expected rows of 1 numbers, but there are none"),
        (b"@attribute 'a b' real\n@attribute c\tREAL\n@data\n1,2\n\n3,x\n", r"fried\.arff, line 6: expected a number"),
        (
            b"@attribute 'a b' real\n@attribute c\tREAL\n@data\n1,2\n",
            r"fried\.arff, line 1: 11 of 11 columns are missing",
        ),
    ],
)
def test_damaged_arff_file_is_named_with_its_line(tmp_path, content, message):
    (tmp_path / "fried.arff").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        oq.datasets.load_dataset("fried-openml", data=tmp_path)


def test_arff_header_without_an_end_does_not_fill_the_memory(tmp_path):
    (tmp_path / "fried.arff").write_bytes(b"%" + bytes(2**24))
    tracemalloc.start()
    with pytest.raises(ValueError, match="it has no line @data"):
        oq.datasets.load_dataset("fried-openml", data=tmp_path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**22


# Amazon-OQ-BK ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def vectors():
    """The published tree in small: 40 training rows, pools of 30 rows, three protocols with 3 and 4 samples of 20."""
    rng = np.random.default_rng(5)

    def rows(n, first_label):
        values = rng.normal(size=(n, amazon.N_FEATURES))
        labels = (first_label + np.arange(n)) % 5
        return [f"{label} " + " ".join(f"{v:.6f}" for v in row) for label, row in zip(labels, values, strict=True)]

    pools = {"dev": rows(30, 0), "test": rows(30, 2)}
    files = {"roberta/training_data.txt": rows(40, 1)}
    drawn = {}
    for protocol in ("app", "app-oq", "real"):
        for pool, n_samples in (("dev", 3), ("test", 4)):
            index = rng.integers(0, 30, (n_samples, 20))
            drawn[protocol, pool] = index
            table = ["id,0,1,2,3,4"]
            for i, sample in enumerate(index):
                files[f"roberta/{protocol}/{pool}_samples/{i}.txt"] = [pools[pool][j] for j in sample]
                labels = [int(pools[pool][j][0]) for j in sample]
                p = np.bincount(labels, minlength=5) / 20
                table.append(f"{i + (protocol == 'app-oq')}," + ",".join(f"{v:.3f}" for v in p))
            files[f"roberta/{protocol}/{pool}_prevalences.txt"] = table
    return {name: ("\n".join(lines) + "\n").encode() for name, lines in files.items()}, pools, drawn


def publish_zenodo(server, monkeypatch, archive, key="amazon-oq-bk.zip"):
    monkeypatch.setattr(download, "ZENODO", f"{server.url}/records")
    server.files[key] = archive
    file = {
        "key": key,
        "checksum": f"md5:{hashlib.md5(archive).hexdigest()}",
        "links": {"self": f"{server.url}/{key}"},
    }
    server.files[f"records/{amazon.RECORD}"] = json.dumps({"files": [{"key": "readme.md"}, file]}).encode()


@pytest.mark.parametrize(("pack", "key"), [(zip_of, "amazon-oq-bk.zip"), (tar_of, "v0.2.1.tar.gz")])
def test_published_vectors_become_distinct_items_and_indices(server, monkeypatch, vectors, pack, key, caplog):
    files, pools, drawn = vectors
    publish_zenodo(server, monkeypatch, pack({f"v0.2.1/{name}": content for name, content in files.items()}), key)
    server.break_after = [10**6, 5000]  # the record in full, the archive breaks off
    dataset = oq.datasets.load_dataset("amazon-oq-bk")
    assert "does not agree" not in caplog.text
    assert dataset.protocols == ("APP", "APP-OQ", "real")
    assert dataset.train.X.shape == (40, 768)
    used = {pool: {j for (_, p), index in drawn.items() if p == pool for j in index.ravel()} for pool in pools}
    assert len(dataset.validation.y) == len(used["dev"]) <= 30
    for (protocol, pool), index in drawn.items():
        name = amazon.POOLS[pool]
        samples = dataset.samples(amazon.PROTOCOLS[protocol], name)
        items = getattr(dataset, name)
        for b, sample in enumerate(index):
            lines = [pools[pool][j].split() for j in sample]
            assert_array_equal(items.y[samples.index(b)], [int(line[0]) for line in lines])
            expected = np.array([line[1:] for line in lines], dtype=np.float32)
            assert_array_equal(items.X[samples.index(b)], expected)
    n_requests = len(server.requests)
    oq.datasets.load_dataset("amazon-oq-bk")  # from the cache, without asking anybody
    assert len(server.requests) == n_requests


def test_vectors_are_converted_once(tmp_path, vectors, monkeypatch):
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(vectors[0]))
    first = oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    monkeypatch.setattr(amazon, "convert_vectors", None)  # not called again
    assert_array_equal(oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path).test.X, first.test.X)


def test_vectors_are_read_from_an_unpacked_folder(tmp_path, vectors):
    folder = tmp_path / "unpacked"
    with zipfile.ZipFile(io.BytesIO(zip_of(vectors[0]))) as archive:
        archive.extractall(folder)
    for data in (folder, folder / "roberta"):
        assert oq.datasets.load_dataset("amazon-oq-bk", data=data).train.X.shape == (40, 768)


def test_merged_keys_find_the_same_rows(tmp_path, vectors, monkeypatch):
    # Merging after every file instead of every quarter of a million rows must not change the result.
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(vectors[0]))
    plain = oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    monkeypatch.setattr(amazon, "MERGE_ROWS", 1)
    monkeypatch.setenv("ORDINALQ_CACHE", str(tmp_path / "other"))
    merged = oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    assert_array_equal(merged.test.X, plain.test.X)
    assert_array_equal(merged.samples("real", "test").items, plain.samples("real", "test").items)


SAMPLE = "roberta/app/dev_samples/1.txt"


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        (
            SAMPLE,
            lambda line: line + b" 0.5",
            r"dev_samples/1\.txt, line 3: expected a label and 768 numbers, got more columns",
        ),
        (SAMPLE, lambda line: b"5" + line[1:], r"dev_samples/1\.txt, line 3: expected a label 0\.\.4, got '5'"),
        (SAMPLE, lambda line: line[:-3] + b"x.5", r"dev_samples/1\.txt, line 3: expected numbers"),
        (
            SAMPLE,
            lambda line: line.rpartition(b" ")[0] + b" nan",
            r"dev_samples/1\.txt, line 3: expected finite numbers",
        ),
        ("roberta/training_data.txt", lambda line: line[:50], r"training_data\.txt, line 3: expected a label and 768"),
        (
            "roberta/real/test_prevalences.txt",
            lambda _: b"2,0.1",
            r"prevalences\.txt, line 3: expected 6 columns, got 2",
        ),
        ("roberta/real/test_prevalences.txt", lambda _: b"2,a,1,1,1,1", r"prevalences\.txt, line 3: expected numbers"),
    ],
)
def test_damaged_vectors_are_named_with_file_and_line(tmp_path, cache, vectors, name, change, message):
    files = dict(vectors[0])
    files[name] = damaged(files[name], 3, change)
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(files))
    with pytest.raises(ValueError, match=message):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    assert not list(cache.glob("*"))  # no half conversion


def test_incomplete_vectors_are_rejected(tmp_path, vectors, caplog):
    path = tmp_path / "amazon-oq-bk.zip"
    files = {name: content for name, content in vectors[0].items() if name != SAMPLE}
    path.write_bytes(zip_of(files))
    with pytest.raises(ValueError, match=r"expected the files 0\.txt to 2\.txt, but 1\.txt is missing"):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    path.write_bytes(zip_of(vectors[0] | {SAMPLE: b"\n".join(vectors[0][SAMPLE].split(b"\n")[:5])}))
    with pytest.raises(ValueError, match=r"1\.txt: expected 20 lines as in 0\.txt, got 5"):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    path.write_bytes(zip_of({"roberta/readme.txt": b""}))
    with pytest.raises(ValueError, match=r"expected roberta/training_data\.txt"):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    path.write_bytes(zip_of(vectors[0])[:-500])
    with pytest.raises(ValueError, match="damaged or incomplete archive"):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    table = vectors[0]["roberta/app/dev_prevalences.txt"].split(b"\n")
    table[1], table[2] = table[2], table[1]
    path.write_bytes(zip_of(vectors[0] | {"roberta/app/dev_prevalences.txt": b"\n".join(table)}))
    oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    assert "app/dev_prevalences.txt does not agree with the labels" in caplog.text


@pytest.mark.parametrize("absent", ["app/test", "real/dev"])
def test_vectors_without_samples_are_rejected(tmp_path, cache, vectors, absent):
    files = {name: content for name, content in vectors[0].items() if f"roberta/{absent}_samples" not in name}
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(files))
    with pytest.raises(ValueError, match=f"incomplete archive, roberta/{absent}_samples is missing; fetch it again"):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    assert not list(cache.glob("*"))


def test_vectors_in_a_file_of_absurd_size_are_rejected(tmp_path, vectors, monkeypatch):
    path = tmp_path / "amazon-oq-bk.zip"
    path.write_bytes(zip_of(vectors[0]))
    with monkeypatch.context() as patch:
        patch.setattr(amazon, "MAX_PREVALENCES", 100)
        with pytest.raises(ValueError, match=r"prevalences\.txt: refused, because it has more than 100 bytes"):
            oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    path.write_bytes(zip_of(vectors[0] | {SAMPLE: b"\n" * 10**6}))
    with pytest.raises(ValueError, match=r"1\.txt, line 1: expected a label and 768 numbers, got 0 columns"):
        oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)


def test_vectors_are_converted_by_several_at_once(tmp_path, cache, vectors):
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(vectors[0]))
    datasets = in_threads(3, lambda: oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path))
    for dataset in datasets:
        assert_array_equal(dataset.test.X, datasets[0].test.X)
    assert len(list(cache.iterdir())) == 1


def test_amazon_samples_are_those_of_the_paper(tmp_path, vectors, prevalences):
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(vectors[0]))
    (tmp_path / "reviews.json").write_bytes(json_lines([review(i, 1 + i % 5) for i in range(100)]))
    published = oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    raw = oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=tmp_path / "reviews.json")
    for sampling in (published.sampling, raw.sampling):
        assert (sampling.n_validation, sampling.n_test, sampling.sample_size) == (1000, 5000, 1000)
        assert (sampling.rounding, sampling.min_per_class, sampling.small_pool) == ("truncate", 0, "replace")
        assert sampling.app_oq == 0.5


def test_repeated_training_rows_stay_repeated(tmp_path, vectors):
    files = dict(vectors[0])
    lines = files["roberta/training_data.txt"].splitlines(keepends=True)
    files["roberta/training_data.txt"] += lines[3] * 2
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(files))
    train = oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path).train
    assert train.X.shape == (42, 768)
    assert_array_equal(train.X[[40, 41]], train.X[[3, 3]])
    assert_array_equal(train.y[[40, 41]], train.y[[3, 3]])


def test_rows_in_two_parts_are_reported(tmp_path, vectors, caplog):
    files = dict(vectors[0])
    line = files["roberta/app/test_samples/0.txt"].split(b"\n")[0]
    files["roberta/training_data.txt"] += line + b"\n"
    (tmp_path / "amazon-oq-bk.zip").write_bytes(zip_of(files))
    oq.datasets.load_dataset("amazon-oq-bk", data=tmp_path)
    assert "1 rows occur in two of training, validation and test" in caplog.text


def test_lequa_is_fetched_from_its_record(server, monkeypatch, tmp_path, rng):
    write_archives(tmp_path, texts(rng))
    files = []
    for path in sorted(tmp_path.glob("*.zip")):
        server.files[path.name] = path.read_bytes()
        checksum = f"md5:{hashlib.md5(path.read_bytes()).hexdigest()}"
        files.append({"key": path.name, "checksum": checksum, "links": {"self": f"{server.url}/{path.name}"}})
    monkeypatch.setattr(download, "ZENODO", f"{server.url}/records")
    server.files[f"records/{lequa.RECORD}"] = json.dumps({"files": files}).encode()
    fetched, local = oq.datasets.load_lequa(), oq.datasets.load_lequa(tmp_path)
    assert_array_equal(fetched.test.X, local.test.X)
    server.files[f"records/{lequa.RECORD}"] = json.dumps({"files": files[:1]}).encode()
    with pytest.raises(ValueError, match=r"expected T3\.train_dev\.zip, got T3\.test\.zip; put T3\.train_dev\.zip"):
        download.zenodo_files(lequa.RECORD, lequa.ARCHIVES, "put T3.train_dev.zip there")


def test_zenodo_record_without_an_archive_is_explained(server, monkeypatch):
    monkeypatch.setattr(download, "ZENODO", f"{server.url}/records")
    server.files[f"records/{amazon.RECORD}"] = json.dumps({"files": [{"key": "readme.md"}]}).encode()
    with pytest.raises(ValueError, match=r"expected one archive, got readme\.md; put the archive of https://zenodo"):
        oq.datasets.load_dataset("amazon-oq-bk")


# Raw reviews ----------------------------------------------------------------------------------------------------------

BOOKS = ["dreadful", "boring", "readable", "pleasant", "marvellous"]


def review(i, star, **more):
    text = f"This {BOOKS[star - 1]} book has number {i % 11} . " * 8
    return {"reviewText": text, "overall": float(star), "asin": f"B{i % 7}", "helpful": [1, 2]} | more


def json_lines(reviews):
    return "".join(json.dumps(r) + "\n" for r in reviews).encode()


@pytest.fixture
def prevalences(server, monkeypatch):
    table = b"0.10000\t0.10000\t0.20000\t0.30000\t0.30001\n0.00000\t0.05000\t0.05000\t0.10000\t0.80000\n"
    server.files["prevalences.csv"] = table
    monkeypatch.setattr(amazon, "PREVALENCE_URL", f"{server.url}/prevalences.csv")
    monkeypatch.setattr(amazon, "PREVALENCE_SHA256", sha256(table))


def test_raw_reviews_are_filtered_split_encoded_and_sampled(server, monkeypatch, prevalences):
    reviews = [review(i, 1 + i % 5) for i in range(200)]
    reviews += [review(0, 3, reviewText="short"), review(0, 3, helpful=[0, 9]), review(0, 3, helpful=None)]
    server.files["Books.json.gz"] = gzip.compress(json_lines(reviews))
    monkeypatch.setattr(amazon, "REVIEW_URL", f"{server.url}/Books.json.gz")
    dataset = oq.datasets.load_dataset("amazon-oq-bk-tfidf")
    assert [len(part.y) for part in (dataset.train, dataset.validation, dataset.test)] == [100, 50, 50]
    assert dataset.notes == (
        "of 203 reviews, 1 with fewer than 200 characters and 1 others without a useful vote were left out",
        "reviews left out because their votes are unreadable: 1",
    )
    assert "marvellous book" in dataset.feature_names
    assert dataset.protocols == ("APP", "APP-OQ", "real")
    assert dataset.sampling.app_oq == 0.5
    real = np.unique(dataset.samples("real", "validation").prevalences, axis=0)
    # Rounded down, and the rest goes to the five stars.
    assert_allclose(real, [[0, 0.05, 0.05, 0.1, 0.8], [0.099, 0.099, 0.199, 0.299, 0.304]])


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_reviews_in_a_table_give_the_same_data_set(tmp_path, prevalences, ending):
    reviews = [review(i, 1 + i % 5) for i in range(100)]
    (tmp_path / "reviews.json").write_bytes(json_lines(reviews))
    frame = pd.DataFrame(reviews).assign(helpful="[1, 2]")
    path = tmp_path / f"reviews.{ending}"
    frame.to_csv(path, index=False) if ending == "csv" else frame.to_parquet(path)
    expected = oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=tmp_path / "reviews.json")
    dataset = oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=path)
    assert_array_equal(dataset.train.X.toarray(), expected.train.X.toarray())
    frame.drop(columns="helpful").to_parquet(tmp_path / "poor.parquet")
    with pytest.raises(ValueError, match="columns are missing: 'helpful'"):
        oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=tmp_path / "poor.parquet")


def test_reviews_without_network_name_the_place_of_the_prevalences(tmp_path, monkeypatch):
    monkeypatch.setattr(amazon, "PREVALENCE_URL", "http://127.0.0.1:9/prevalences.csv")
    path = tmp_path / "reviews.json"
    path.write_bytes(json_lines([review(i, 1 + i % 5) for i in range(100)]))
    message = (
        r"put it as prevalence_votes1_reviews100\.csv next to the reviews or into the folder named by ORDINALQ_DATA\. "
    )
    with pytest.raises(ConnectionError, match=message):
        oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=path)
    path.write_bytes(b"{not json}\n")  # what is here is read before anything is fetched
    with pytest.raises(ValueError, match="expected a review in JSON"):
        oq.datasets.load_dataset("amazon-oq-bk-tfidf", data=path)


def test_votes_of_both_releases_are_read():
    votes = amazon._useful_votes
    assert (
        votes({"helpful": [3, 5]}) == votes({"helpful": "[3, 5]"}) == votes({"vote": "3"}) == votes({"vote": 3.0}) == 3
    )
    assert votes({"vote": "1,234"}) == 1234
    assert votes({}) == votes({"vote": None}) == votes({"vote": float("nan")}) == votes({"helpful": [0, 4]}) == 0
    assert votes({"helpful": "[, 36]"}) is None
    assert votes({"vote": "many"}) is None


def test_random_subset_of_reviews_is_uniform_and_noted(tmp_path):
    path = tmp_path / "reviews.json"
    # Early and late reviews must have the same chance: the first 200 have one star, the others five.
    path.write_bytes(json_lines([review(i, 1 if i < 200 else 5) for i in range(400)]))
    early = []
    for seed in range(40):
        reviews = amazon.read_reviews(path, 100, seed)
        assert reviews.notes[-1] == "a random 100 of 400 suitable reviews were kept"
        early.append(np.sum(reviews.y == 0))
    assert_allclose(np.mean(early), 50, atol=2.8)  # four standard errors of a hypergeometric mean


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (b"{not json}", r"reviews\.json, line 3: expected a review in JSON"),
        (b"[1, 2]", r"reviews\.json, line 3: expected a review"),
        (
            json_lines([review(1, 1, overall=7)]).strip(),
            r"reviews\.json, line 3: expected 'overall' to be 1\.\.5, got 7",
        ),
    ],
)
def test_damaged_reviews_are_named_with_their_line(tmp_path, line, message):
    path = tmp_path / "reviews.json"
    path.write_bytes(damaged(json_lines([review(i, 1 + i % 5) for i in range(10)]), 3, lambda _: line))
    with pytest.raises(ValueError, match=message):
        amazon.read_reviews(path, 100, 0)


def test_truncated_reviews_are_named_with_their_line(tmp_path):
    path = tmp_path / "reviews.json.gz"
    content = gzip.compress(
        json_lines([review(i, 1, asin=hashlib.md5(str(i).encode()).hexdigest()) for i in range(500)])
    )
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(ValueError, match=r"reviews\.json\.gz, after line \d+: the file is incomplete"):
        amazon.read_reviews(path, 100, 0)


def test_damaged_prevalences_are_named_with_their_line(tmp_path):
    path = tmp_path / "amazon_books_prevalences.tsv"
    for content, message in [
        ("0.2\t0.2\t0.2\t0.2\t0.2\n0.2\t0.2\n", "line 2: expected 5 columns, got 2"),
        ("0.2\t0.2\t0.2\t0.2\tmore\n", "line 1: expected numbers"),
        ("0.2\t0.2\t0.2\t0.2\t0.9\n", "sum to one"),
    ]:
        path.write_text(content)
        with pytest.raises(ValueError, match=message):
            amazon.book_prevalences(tmp_path)


# Names under which the files are published: a folder that holds one is as good as the file itself.
PUBLISHED = {
    "fried": ("fried.arff", "dataset_564.pq"),
    "fried-openml": ("fried.arff", "dataset_564.pq"),
    "yolanda": ("Yolanda.arff", "dataset_42705.pq"),
    "blog-feedback": ("blogfeedback.zip", "BlogFeedback.zip"),
    "online-news-popularity": ("online+news+popularity.zip", "OnlineNewsPopularity.zip"),
    "amazon-oq-bk": ("amazon-oq-bk.zip", "amazon-oq-bk.tar.gz", "v0.2.1.zip"),
    "amazon-oq-bk-tfidf": ("Books.json.gz", "reviews_Books.json.gz", "Books_5.json.gz", "reviews_Books_5.json.gz"),
    "amazon-oq-bk-roberta": ("Books.json.gz", "reviews_Books.json.gz"),
    "fact-oq": ("gamma_simulations_facttools_dl2.hdf5",),
    "lequa2024-t3": ("T3.train_dev.zip",),
}


def write_published(path, dataset, rng, vectors):
    """Write a small file in the published layout of a data set."""
    if dataset.startswith(("fried", "yolanda")):
        d, low, high = (10, -1, 31) if dataset.startswith("fried") else (100, 1922, 2012)
        names = regression.FRIED_COLUMNS[0] if d == 10 else regression.YOLANDA_COLUMNS[0]
        table = np.round(np.column_stack([rng.uniform(size=(500, d)), np.linspace(low, high - 1, 500)]), 3)
        if path.suffix == ".pq":
            pd.DataFrame(table, columns=list(names)).to_parquet(path)
        else:
            path.write_bytes(arff_text(table, names))
    elif dataset == "blog-feedback":
        path.write_bytes(zip_of({"blogData_train.csv": csv_text(blog_table(rng))}))
    elif dataset == "online-news-popularity":
        path.write_bytes(zip_of({"OnlineNewsPopularity/OnlineNewsPopularity.csv": news_csv(rng)}))
    elif dataset == "amazon-oq-bk":
        path.write_bytes((zip_of if path.suffix == ".zip" else tar_of)(vectors[0]))
    elif dataset == "fact-oq":
        hdf5_of(path, events(rng))
    elif dataset == "lequa2024-t3":
        write_archives(path.parent, texts(rng))
    else:
        path.write_bytes(gzip.compress(json_lines([review(i, 1 + i % 5) for i in range(100)])))


@pytest.mark.parametrize(("dataset", "name"), [(key, name) for key, names in PUBLISHED.items() for name in names])
def test_a_folder_with_the_published_file_is_as_good_as_the_file(
    dataset, name, tmp_path, rng, vectors, prevalences, monkeypatch
):
    monkeypatch.setattr("ordinalq.datasets.text.RobertaVectors", text.tfidf)  # needs no model
    (tmp_path / "readme.txt").write_text("something else")
    write_published(tmp_path / name, dataset, rng, vectors)
    by_folder, by_file = (oq.datasets.load_dataset(dataset, data=path) for path in (tmp_path, tmp_path / name))
    for part in ("train", "validation", "test"):
        X, same = getattr(by_folder, part).X, getattr(by_file, part).X
        assert (same != X).sum() == 0
        assert_array_equal(getattr(by_folder, part).y, getattr(by_file, part).y)
    [entry] = [entry for entry in CATALOG if entry.name == dataset]
    assert entry.where(tmp_path) == ("built in" if dataset == "fried" else str(tmp_path / name))


def test_every_data_set_of_the_catalog_has_a_published_name():
    assert set(PUBLISHED) == {entry.name for entry in CATALOG}
