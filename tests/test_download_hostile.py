"""Hostile archives: none writes outside of its folder, runs long or grows; all end with one clear line."""

import re
import tarfile
from pathlib import Path

import hostile_archives
import pytest
from apart import ends_with_one_clear_line, said_by
from hostile_archives import DATASETS, TABLE, tar_of, zip_of

from ordinalq.datasets import download

pytestmark = pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs processes to end")


def test_hostile_archives_end_with_one_clear_line_and_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setenv("ORDINALQ_CACHE", str(tmp_path / "cache"))
    said_by(["extract", "none", "--out", str(tmp_path / "out")])  # so that all is imported
    names = []
    for name, file, content, message in hostile_archives.made():
        names.append(name)
        path = tmp_path / "folder" / file
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
        command = ["extract", DATASETS[file], "--data", str(path), "--out", str(tmp_path / "out")]
        err = ends_with_one_clear_line(name, command)
        assert re.search(message, err), (name, err)
        path.unlink()
        left = [other for other in tmp_path.rglob("*") if other.is_file() and not other.name.endswith(f"-{TABLE}")]
        assert not left, (name, left)
    assert len(names) == len(set(names)) >= 40
    assert not Path("/tmp/evil.txt").exists()


LONG = "/".join(["folder" * 10] * 4)


@pytest.mark.parametrize("format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
@pytest.mark.parametrize("packing", ["", "gz", "xz", "bz2"])
def test_tar_archives_of_all_formats_are_read_as_the_standard_library_reads_them(tmp_path, format, packing):  # noqa: A002
    names = ["a.txt", "b/c.txt", "empty", "d" * 100] + [LONG + "/x", f"{LONG}/ü"] * (format != tarfile.USTAR_FORMAT)
    names += ["/".join(["e" * 50] * 3)]
    files = {name: bytes(range(256)) * i + b"end" * (i % 2) for i, name in enumerate(names)}
    (tmp_path / "a").write_bytes(tar_of({"folder/": b""} | files, mode=f"w:{packing}", format=format))
    found = {str(name): stream.read() for name, stream in download.members(tmp_path / "a") if str(name) != "folder"}
    assert found == files


def test_zip_archives_are_read_with_their_folders(tmp_path):
    files = {"a.txt": b"one", f"{LONG}/b.txt": bytes(10**6), "empty": b""}
    (tmp_path / "a").write_bytes(zip_of({"folder/": b""} | files))
    assert {str(name): stream.read() for name, stream in download.members(tmp_path / "a")} == files


def test_members_that_are_not_read_are_passed_over(tmp_path):
    (tmp_path / "a").write_bytes(tar_of({"a": bytes(1000), "b": b"x", "c": bytes(5000), "d": b"end"}))
    names = [(str(name), stream.read(1)) for name, stream in download.members(tmp_path / "a")]
    assert names == [("a", b"\0"), ("b", b"x"), ("c", b"\0"), ("d", b"e")]


def test_extracted_files_are_whole_or_absent(tmp_path):
    (tmp_path / "a.zip").write_bytes(zip_of({"folder/x.csv": b"1,2\n", "y.csv": b""}))
    assert download.extract(tmp_path / "a.zip", "x.csv", tmp_path / "new" / "x").read_bytes() == b"1,2\n"
    with pytest.raises(ValueError, match=r"a\.zip: expected an archive with z\.csv, but it has none"):
        download.extract(tmp_path / "a.zip", "z.csv", tmp_path / "new" / "z")
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["x"]
