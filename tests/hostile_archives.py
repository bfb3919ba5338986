"""Damaged and malicious archives, each in place of one of a data set.

Used by test_download_hostile.py; as a script it writes them into a folder:

    python tests/hostile_archives.py FOLDER
"""

import bz2
import functools
import gzip
import io
import json
import lzma
import struct
import sys
import tarfile
import zipfile
import zlib
from pathlib import Path

import numpy as np

BLOG, VECTORS, REVIEWS = "blogfeedback.zip", "amazon-oq-bk.tar.gz", "Books.json.gz"
DATASETS = {BLOG: "blog-feedback", VECTORS: "amazon-oq-bk", REVIEWS: "amazon-oq-bk-tfidf"}
TABLE = "blogData_train.csv"
TRAINING = "roberta/training_data.txt"
ESCAPE = "\x1b]0;owned\x07\x1b[31m\x9b2J"
NOISE = np.random.default_rng(0).bytes(50_000)
GIGABYTE = 2**30
LEADS_OUT, SPECIAL = "leads out of the folder", "is a link or a special file"
TOO_LARGE, DAMAGED = "refused, because it unpacks to more than", "damaged or incomplete archive"


def zip_of(files):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return stream.getvalue()


def zip_with_mode(name, mode):
    info = zipfile.ZipInfo(name)
    info.create_system = 3
    info.external_attr = mode << 16
    return zip_of({info: "/etc/passwd"})


def tar_of(files, links=(), mode="w:gz", format=tarfile.PAX_FORMAT):  # noqa: A002
    """Return a tar archive of files and of pairs (type, name) of links and devices."""
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode=mode, format=format) as archive:
        for name, content in files.items() if isinstance(files, dict) else files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
        for kind, name in links:
            info = tarfile.TarInfo(name)
            info.type, info.linkname = kind, "/etc/passwd"
            archive.addfile(info)
    return stream.getvalue()


def header(name="x", size=0, kind=b"0", **pax):
    """Return any header of a tar archive, after a pax header if given."""
    info = tarfile.TarInfo(name)
    block = bytearray(info.tobuf(tarfile.GNU_FORMAT))
    block[124:136] = size if isinstance(size, bytes) else b"%011o\0" % size
    block[156:157] = kind
    block[148:156] = b"%06o\0 " % sum(block[:148] + b" " * 8 + block[156:])
    return (extended(pax_records(pax)) if pax else b"") + bytes(block)


def extended(body, kind=b"x"):
    return header("pax", len(body), kind) + body + bytes(-len(body) % 512)


def pax_records(words):
    lines = b""
    for key, value in words.items():
        record = f" {key}={value}\n".encode()
        length = len(record) + len(str(len(record)))
        lines += b"%d%s" % (length + (len(str(length)) > len(str(len(record)))), record)
    return lines


@functools.cache
def deflated(block, times):
    """Return the deflated form of a block that is there many times, which takes no time to make."""
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    once = packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)
    return once * times + zlib.compressobj(9, zlib.DEFLATED, -15).flush()


ZEROS = bytes(2**24)


def zeros(size=GIGABYTE):
    return deflated(ZEROS, size // len(ZEROS))


def gzipped(raw, size):
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + raw + struct.pack("<2L", 0, size % 2**32)


def raw_zip(entries, *, method=8, flags=0, local=True):
    """Return a zip archive of raw data (name, packed, stated size); without `local`, all members are the first one."""
    body, directory, place = [], [], 0
    for name, packed, size in entries:
        name = name if isinstance(name, bytes) else name.encode()
        fields = (flags, method, 0, 33, 0, len(packed), size, len(name))
        at = place if local else 0
        directory += [struct.pack("<4s6H3L5H2L", b"PK\1\2", 20, 20, *fields, *(0,) * 5, at), name]
        if local or not body:
            body += [struct.pack("<4s5H3L2H", b"PK\3\4", 20, *fields, 0), name, packed]
            place += 30 + len(name) + len(packed)
    packed, n = b"".join(directory), min(len(directory) // 2, 65535)
    return b"".join(body) + packed + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, n, n, len(packed), place, 0)


def changed(content, at, byte=b"\xff"):
    return content[:at] + byte + content[at + 1 :]


def npz():
    stream = io.BytesIO()
    np.savez_compressed(stream, x=np.zeros(10**6))
    return stream.getvalue()


def review(**more):
    return json.dumps({"reviewText": "good " * 50, "overall": 5.0, "helpful": [1, 2]} | more).encode() + b"\n"


def zips():
    """Yield name, content and what the answer must say of hostile zip archives."""
    for name in ("../evil.txt", "/tmp/evil.txt", "..\\evil.txt", "C:/evil.txt", "a/C:/evil.txt", "a.txt:evil"):
        yield f"zip: {name}", zip_of({"good.txt": b"", name: b"x"}), LEADS_OUT
    yield "zip: escape sequences", zip_of({f"../{ESCAPE}": b"x"}), LEADS_OUT
    yield "zip: a name of 60,000 characters", zip_of({"../" + "x" * 60_000: b"x"}), LEADS_OUT
    yield "zip: no name", zip_of({".": b"x"}), "is a file without a name"
    for what, mode in {"link": 0o120777, "device": 0o020666, "pipe": 0o010666}.items():
        yield f"zip: {what}", zip_with_mode(TABLE, mode), SPECIAL
    yield "zip: two of one name", raw_zip([(TABLE, b"", 0)] * 2), "is there twice"
    yield "zip: a bomb", raw_zip([(TABLE, zeros(), GIGABYTE)]), TOO_LARGE
    yield "zip: a bomb with a false size", raw_zip([(TABLE, zeros(), 10**6)]), DAMAGED
    overlap = [(f"{i}", zeros(2**24), 2**24) for i in range(20)]
    yield "zip: members that share their bytes", raw_zip(overlap, local=False), "refused|damaged"
    yield (
        "zip: two hundred thousand members",
        raw_zip([(f"{i:06}", b"", 0) for i in range(200_000)], local=False),
        "refused",
    )
    yield "zip: small files", zip_of({f"{i}": bytes(2**20) for i in range(40)}), TOO_LARGE
    yield "zip: folders only", zip_of({"a/": b"", "a/b/": b""}), "it holds no file"
    yield "zip: empty", zip_of({}), "it holds no file"
    yield "zip: truncated", zip_of({TABLE: NOISE})[:-3000], DAMAGED
    yield "zip: a changed byte", changed(zip_of({TABLE: NOISE}), 1000), DAMAGED
    yield "zip: encrypted", raw_zip([(TABLE, b"xx", 2)], flags=1), "password"
    yield "zip: an unknown method", raw_zip([(TABLE, b"xx", 2)], method=77), DAMAGED
    yield "zip: bzip2", raw_zip([(TABLE, bz2.compress(bytes(10**6)), 2**26)], method=12), TOO_LARGE
    yield "zip: lzma", raw_zip([(TABLE, lzma.compress(bytes(10**6)), 2**26)], method=14), TOO_LARGE
    yield "zip: a name that is not text", raw_zip([(b"\xff\xfe", b"", 0)], flags=0x800), DAMAGED
    yield "zip: a list that is elsewhere", changed(zip_of({TABLE: b"1"}), -6, b"\xff"), DAMAGED
    yield "zip: another name", zip_of({"blogData_test.csv": b"1,2\n"}), f"expected an archive with {TABLE}"
    yield "zip: a zip", zip_of({"blogfeedback.zip": zip_of({TABLE: b"1"})}), f"expected an archive with {TABLE}"
    yield "zip: arrays", zip_of({TABLE: npz()}), "expected 281 columns"
    yield "zip: a line of numbers", zip_of({TABLE: b"1," * 2**23}), "expected 281 columns"
    first = b",".join([b"0"] * 281) + b"\n"
    yield "zip: a line of numbers after another", zip_of({TABLE: first + b"1," * 2**23}), "line 2: expected 281 columns"
    yield "zip: rows of zeros", zip_of({TABLE: first * 20_000}), "every class must have at least 3 items"
    yield "zip: no archive", b"<html>busy</html>", DAMAGED
    yield "zip: nothing", b"", "it holds no file|damaged"


def tars():
    """Yield name, content and what the answer must say of hostile tar archives."""
    yield "tar: ..", tar_of({"a/../../evil.txt": b"x"}), LEADS_OUT
    yield "tar: absolute", tar_of({"/tmp/evil.txt": b"x"}), LEADS_OUT
    yield "tar: .. in a pax header", gzip.compress(header(path="../evil.txt")), LEADS_OUT
    yield "tar: no name", tar_of({"./.": b"x"}), "is a file without a name"
    kinds = {"link": b"2", "hard link": b"1", "device": b"3", "disk": b"4", "pipe": b"6", "anything": b"Z"}
    for what, kind in kinds.items():
        yield f"tar: {what}", tar_of({}, [(kind, TRAINING)]), SPECIAL
    yield "tar: holes", gzip.compress(header(TRAINING, **{"GNU.sparse.size": 2**60})), SPECIAL
    yield "tar: two of one name", tar_of([(TRAINING, b"0 1\n")] * 2, mode="w"), "expected a label|is there twice"
    yield "tar: two others of one name", tar_of([("x", b"")] * 2), "is there twice"
    huge = header("pax", GIGABYTE, b"x")
    for kind in (b"x", b"g", b"L"):
        content = gzipped(deflated(header("pax", GIGABYTE, kind), 1)[:-2] + zeros(), GIGABYTE)
        yield f"tar: a header {kind.decode()} of a gigabyte", content, "one of its headers has 1,073,741,824 bytes"
    for packing, pack in {"xz": lzma.compress, "bz2": bz2.compress}.items():
        yield f"tar: a header of a gigabyte, {packing}", pack(huge + bytes(2**20)), "one of its headers has"
    yield "tar: a chain of headers", gzip.compress(extended(b"12 path=a/b\n") * 20_000), "it holds no file"
    yield "tar: a header of digits", gzip.compress(extended(b"1" * 16_000) * 100 + header()), DAMAGED
    yield "tar: a header that does not end", gzip.compress(extended(b"99 path=x\n")), DAMAGED
    yield "tar: a size below zero", gzip.compress(header(TRAINING, b"\xff" * 12)), "refused|damaged"
    below = extended(b"11 size=-1\n") + header(TRAINING)
    yield "tar: a size below zero in words", gzip.compress(below), DAMAGED
    yield "tar: a size of words", gzip.compress(extended(b"12 size=big\n") + header(TRAINING)), DAMAGED
    yield (
        "tar: a size of 8 exabytes",
        gzip.compress(header(TRAINING, b"\x80" + b"\0" * 3 + b"\x7f" + b"\xff" * 7)),
        TOO_LARGE,
    )
    yield "tar: a bomb", gzipped(deflated(header("a.txt", GIGABYTE), 1)[:-2] + zeros(), GIGABYTE), TOO_LARGE
    yield "tar: a folder that is a bomb", gzipped(deflated(header("a", GIGABYTE, b"5"), 1)[:-2] + zeros(), 0), TOO_LARGE
    yield "tar: members without end", gzipped(deflated(header("x/", 0, b"5"), 200_000), 0), "more than 40,000 members"
    yield "tar: a wrong sum", gzip.compress(changed(header(TRAINING), 0)), DAMAGED
    yield "tar: truncated", tar_of({TRAINING: NOISE})[:-30_000], DAMAGED
    yield "tar: truncated after packing", tar_of({"a": NOISE}, mode="w")[:20_000], DAMAGED
    yield "tar: packed twice", gzip.compress(tar_of({TRAINING: b"0 1\n"})), DAMAGED
    yield "tar: no archive", gzip.compress(b"<html>busy</html>" * 100), DAMAGED
    yield "tar: rubbish after gzip's mark", b"\x1f\x8b" + NOISE, DAMAGED
    yield "tar: rubbish after bzip's mark", b"BZh9" + NOISE, DAMAGED
    yield "tar: rubbish after xz's mark", b"\xfd7zXZ\0" + NOISE, DAMAGED
    yield "tar: empty", tar_of({}), "it holds no file"
    yield "tar: a line of zeros", tar_of({TRAINING: b"0" * 2**24}), "expected a label and 768 numbers, got 1 columns"
    yield "tar: arrays", tar_of({TRAINING: npz()}), "expected a label and 768 numbers"
    row = b"0 " + b"1 " * 768 + b"\n"
    yield "tar: one row for ever", tar_of({TRAINING: row * 20_000}), "app/dev_samples is missing"
    yield "tar: prevalences without end", tar_of({"roberta/app/dev_prevalences.txt": b"1" * 2**23}), "refused"


def reviews():
    """Yield name, content and what the answer must say of hostile packed reviews."""
    line = "line 1: expected a review in JSON"
    yield "gz: zeros", gzipped(zeros(), GIGABYTE), line
    yield "gz: brackets", gzip.compress(b"[" * 10**6), line
    yield "gz: figures", gzip.compress(b'{"overall": ' + b"1" * 10**6 + b"}"), line
    yield "gz: empty objects", gzipped(deflated(b"{}\n" * 2**20, 100), 0), "none of 100000 reviews"
    yield "gz: one review for ever", gzipped(deflated(review() * 2**12, 60), 0), TOO_LARGE
    yield "gz: truncated", gzip.compress(review() * 1000)[:-20], "is incomplete"
    yield "gz: a changed byte", changed(gzip.compress(review() + NOISE), 20_000), "line|is incomplete"
    yield "gz: not packed", review(), "is incomplete"
    yield "gz: packed twice", gzip.compress(gzip.compress(review())), line
    yield "gz: a zip", zip_of({"Books.json": review()}), "is incomplete"
    odd = ({"0": 1}, [], [1e999], "[", "[[[[", "²", None)
    yield "gz: odd votes", gzip.compress(b"".join(review(helpful=h) for h in odd)), "none of 7 reviews"
    yield "gz: odd stars", gzip.compress(review(overall=[5])), "expected 'overall' to be 1..5"
    yield "gz: half a character", gzip.compress(b'{"reviewText": "\xff"}\n'), line


def made():
    """Yield name, file name, content and what the answer must say."""
    for file, cases in {BLOG: zips, VECTORS: tars, REVIEWS: reviews}.items():
        for name, content, message in cases():
            yield name, file, content, message


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for number, (_, file, content, _) in enumerate(made()):
        (folder / f"{number:02}").mkdir(parents=True)
        (folder / f"{number:02}" / file).write_bytes(content)
