"""The page in a real Chromium: the whole walk, by clicks and keys, at all widths; a silent console, no other host."""

import os
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np
import pandas as pd
import psutil
import pytest
from browser import Browser, missing

pytestmark = [
    pytest.mark.slow,
    pytest.mark.browser,
    pytest.mark.skipif(bool(missing()), reason=f"without {', '.join(missing())}: `make browser-test` installs them"),
]

# What the walk with a built-in example may take.
MAX_CLICKS, MAX_SECONDS = 10, 40
# Reviews of the real table, and where it is.
N_NEW = 30_000
REAL = "amazon_consumer_reviews.parquet"


class Program:
    """`ordinalq app` as users run it."""

    def __init__(self, folder):
        command = [sys.executable, "-m", "ordinalq", "app", "--port", "0", "--no-browser"]
        environment = os.environ | {"TMPDIR": str(folder), "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        self.address = self.process.stdout.readline().strip()
        self.port = urlsplit(self.address).port

    def end(self):
        """End it as the system does."""
        self.process.terminate()
        self.process.wait(30)
        self.process.stdout.close()

    def seconds(self):
        """Return the processor time of the program and all its processes so far."""
        own = psutil.Process(self.process.pid)
        total = 0.0
        for process in (own, *own.children(recursive=True)):
            times = process.cpu_times()
            total += times.user + times.system + times.children_user + times.children_system
        return total


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    """The program; at its end all its files are gone."""
    folder = tmp_path_factory.mktemp("program")
    found = Program(folder)
    yield found
    found.end()
    assert not list(folder.glob("ordinalq-app-*"))


def only_here(browser, program):
    """Check that the console is empty, and that no other host was asked."""
    assert browser.console() == []
    hosts = {urlsplit(address).netloc for address in browser.requested() if address.startswith(("http", "ws"))}
    assert hosts == {f"127.0.0.1:{program.port}"}


def saved(folder, name, seconds=60):
    """Wait for a file that the browser saves."""
    path, end = folder / name, time.monotonic() + seconds
    while not path.exists() or list(folder.glob("*.crdownload")):
        assert time.monotonic() < end, f"{name} was not saved: {list(folder.iterdir())}"
        time.sleep(0.1)
    return path


def shots():
    """Return the folder of the pictures of the documentation, if they are to be made anew."""
    return os.environ.get("ORDINALQ_SCREENSHOTS")


def shoot(browser, name, tmp_path, tallest=2600):
    """Take a picture of the page, with few colours: it is for the documentation."""
    from PIL import Image

    path = Path(shots() or tmp_path) / f"app_{name}.png"
    browser.screenshot(path, tallest)
    with Image.open(path) as picture:
        assert len(picture.getcolors(1 << 24)) > 10, "an empty page"
        small = picture.convert("RGB").quantize(48, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


def test_the_walk_with_the_built_in_reviews(program, tmp_path, record_property):
    with Browser(980, 800, downloads=tmp_path) as browser:
        browser.open(program.address)
        browser.wait_for("How are your items distributed")
        assert "token" not in browser.address
        before = program.seconds()
        shoot(browser, "home", tmp_path)
        browser.click("text=Try the reviews")
        browser.wait_for("What each column is taken for")
        shoot(browser, "table", tmp_path)
        browser.click("text=Learn from this table")
        browser.wait_for("What the model can do")
        browser.wait(lambda: loaded(browser), "the picture of the errors")
        shoot(browser, "model", tmp_path)
        browser.click("text=Go on with")
        browser.wait_for("One estimate for each")
        browser.click("text=Estimate")
        browser.wait_for("Compare the groups that are ticked")
        browser.click("input[aria-label='compare grinder X']")
        browser.click("input[aria-label='compare kettle X']")
        browser.click("text=Compare the groups")
        browser.wait_for("Comparison")
        browser.wait(lambda: loaded(browser), "the pictures")
        browser.click("text=Report to mail")
        saved(tmp_path, "report.html")
        clicks, seconds = browser.clicks, program.seconds() - before
        shoot(browser, "results", tmp_path)
        assert "The mean class of grinder X is" in browser.text()
        record_property("clicks", clicks)
        record_property("seconds of processor time", round(seconds, 1))
        assert clicks <= MAX_CLICKS
        assert seconds <= MAX_SECONDS
        for kind in ("CSV", "Parquet", "PNG", "SVG"):
            browser.click(f"text={kind}")
            saved(tmp_path, f"estimates.{kind.lower()}")
        same_as_command_line(browser, tmp_path)
        only_here(browser, program)


def loaded(browser):
    """Say whether all pictures of the page are there."""
    return browser.run("return [...document.images].every(i => i.complete && i.naturalWidth > 0)")


def same_as_command_line(browser, folder):
    """Run the commands that the pages show on the tables of the example, and compare."""
    commands = browser.run("return [...document.querySelectorAll('details.command pre')].map(e => e.textContent)")
    walk = browser.address.rpartition("/results")[0]
    browser.open(f"{walk}/model")
    commands += browser.run("return [...document.querySelectorAll('details.command pre')].map(e => e.textContent)")
    for page, name in (("table", "reviews-labelled.csv"), ("new", "reviews-new.csv")):
        browser.open(f"{walk}/{page}")
        browser.click("text=Take this table home")
        saved(folder, name)
    mine = (folder / "estimates.csv").read_bytes()
    for verb in ("fit", "predict"):
        (command,) = [shlex.split(command) for command in commands if f"ordinalq {verb} " in command]
        subprocess.run([sys.executable, "-m", *command], cwd=folder, check=True, capture_output=True)
    assert (folder / "estimates.csv").read_bytes() == mine


def test_the_spectrum_and_the_report_without_a_network(program, tmp_path):
    with Browser(1100, 900, downloads=tmp_path) as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        browser.click("text=Try the spectrum")
        browser.wait_for("What each column is taken for")
        browser.click("text=Learn from this table")
        browser.wait_for("What the model can do")
        browser.click("text=Go on with")
        browser.wait_for("One estimate for each")
        browser.click("text=Estimate")
        browser.wait_for("Over time")
        browser.wait(lambda: loaded(browser), "the pictures")
        browser.click("text=Report to mail")
        report = saved(tmp_path, "report.html")
        only_here(browser, program)
    with Browser(1100, 900) as browser:
        browser.open(report.as_uri())
        assert loaded(browser)
        assert "2024-03-15" in browser.text()
        assert browser.console() == []
        assert not [address for address in browser.requested() if address.startswith(("http:", "https:"))]


def real_reviews():
    """Return labelled reviews, and 30,000 to estimate: real ones where ORDINALQ_DATA has them, else made-up ones."""
    source = Path(os.environ.get("ORDINALQ_DATA", "")) / REAL
    if source.is_file():
        columns = ["name", "reviews.date", "reviews.title", "reviews.text", "reviews.rating"]
        frame = pd.read_parquet(source, columns=columns).dropna(subset="reviews.rating")
        frame.columns = ["product", "date", "title", "text", "stars"]
        frame["stars"] = frame["stars"].astype(int)
        frame["date"] = frame["date"].astype(str).str[:10]
    else:
        rng = np.random.default_rng(0)
        n = N_NEW + 4000
        stars = rng.choice(5, size=n, p=[0.05, 0.05, 0.1, 0.3, 0.5]) + 1
        words = np.array([f"{'abcdef'[i]}{j}" for i in range(6) for j in range(300)]).reshape(6, 300)
        texts = [" ".join(np.append(rng.choice(words[s], 5), rng.choice(words[0], 12))) for s in stars]
        products = [f"product {i}" for i in rng.integers(40, size=n)]
        frame = pd.DataFrame({"product": products, "date": "2024-01-05", "title": "x", "text": texts, "stars": stars})
    frame = frame.sample(frac=1, random_state=0)
    return frame.iloc[N_NEW:], frame.iloc[:N_NEW].drop(columns="stars")


def test_the_walk_with_thirty_thousand_reviews(program, tmp_path):
    labelled, new = real_reviews()
    labelled.to_parquet(tmp_path / "labelled.parquet")
    new.to_csv(tmp_path / "new.csv", index=False)
    with Browser(1100, 900, downloads=tmp_path) as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        browser.keys("#labelled", tmp_path / "labelled.parquet")
        browser.wait_for(f"The first 20 rows of {len(labelled):,}")
        assert browser.run("return document.querySelector('#target').value") == "stars"
        choose(browser, "#by", "product")
        choose(browser, "[aria-label='use date as']", "out")
        browser.click("text=Advanced")
        choose(browser, "#budget", "fast")
        browser.click("text=Learn from this table")
        browser.wait_for("Learning from your labels")
        browser.run("location.reload()")
        browser.wait_for("Learning from your labels")
        browser.wait_for("What the model can do", 600)
        browser.click("text=Go on: a new table")
        browser.keys("#sample", tmp_path / "new.csv")
        browser.wait_for("One estimate for each")
        choose(browser, "#by", "product")
        browser.click("text=Estimate")
        browser.wait_for("Compare the groups", 600)
        assert f"{N_NEW:,} rows" in browser.text()
        choose(browser, "#sort", "items")
        browser.keys("#least", "\ue0090")  # digits are typed behind the 1: at least 10 rows
        browser.click("text=Show")
        browser.wait(lambda: "sort=items" in browser.address, "the order")
        browser.wait(lambda: loaded(browser), "the picture")
        browser.click("text=CSV")
        estimates = pd.read_csv(saved(tmp_path, "estimates.csv"))
        assert estimates["n_items"].sum() == N_NEW
        largest = estimates.sort_values("n_items", ascending=False)["product"].iloc[0]
        first = browser.run("return document.querySelector('tbody th').textContent")
        assert first == str(largest)
        only_here(browser, program)


def choose(browser, selector, value):
    """Choose an option, as a click on it would."""
    browser.run(
        "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change', {bubbles: true}));",
        selector,
        value,
    )
    assert browser.run("return document.querySelector(arguments[0]).value", selector) == value


def test_cancel_and_begin_again(program, tmp_path):
    labelled, _ = real_reviews()
    labelled.to_parquet(tmp_path / "labelled.parquet")
    with Browser() as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        browser.keys("#labelled", tmp_path / "labelled.parquet")
        browser.wait_for("What each column is taken for")
        browser.click("text=Learn from this table")
        browser.wait_for("Learning from your labels")
        browser.click("text=Cancel")
        browser.wait_for("Cancelled.")
        browser.wait_for("What each column is taken for")
        browser.click("text=ordinalq")
        browser.wait_for("Your work in this session")
        only_here(browser, program)


def test_a_broken_file_is_answered_where_it_was_chosen(program, tmp_path):
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "picture.html").write_text("<h1>no table</h1>")
    with Browser() as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        browser.keys("#labelled", tmp_path / "picture.html")
        browser.wait_for("Picture.html: expected a file .csv")
        # The browser itself writes down that the server said no.
        assert all("415" in line for line in browser.console())
        browser.run("location.reload()")
        browser.wait(lambda: browser.run("return document.readyState") == "complete", "the page")
        browser.keys("#labelled", tmp_path / "broken.csv")
        browser.wait_for("Broken.csv, line 3: expected 2 columns, got 1.")
        only_here(browser, program)


def test_words_are_put_in_order_by_keys_and_by_dragging(program, tmp_path):
    frame = pd.DataFrame({"size": range(90), "grade": ["good", "bad", "fair"] * 30})
    frame.to_csv(tmp_path / "grades.csv", index=False)

    def order(browser):
        return browser.run(
            "return [...document.querySelectorAll('[data-classes=grade] .name')].map(e => e.textContent)"
        )

    with Browser() as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        browser.keys("#labelled", tmp_path / "grades.csv")
        browser.wait_for("Put these words in order")
        assert order(browser) == ["good", "bad", "fair"]
        browser.run("document.querySelector(\"[aria-label='good later']\").focus()")
        browser.press(" ", " ")
        assert order(browser) == ["bad", "fair", "good"]
        assert browser.text("[data-classes=grade] [data-told]") == "good is now number 3 of 3"
        browser.run(DRAG, "[data-classes=grade] li:nth-child(3)", "[data-classes=grade] li:nth-child(1)")
        assert order(browser) == ["good", "bad", "fair"]
        sent = "return [...document.querySelectorAll('[data-classes=grade] input[name=class]')].map(e => e.value)"
        assert browser.run(sent) == ["0", "1", "2"]
        only_here(browser, program)


DRAG = """
const [from, to] = [...arguments].map(s => document.querySelector(s));
const data = new DataTransfer(), box = to.getBoundingClientRect();
const fire = (kind, on) => on.dispatchEvent(
    new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data, clientY: box.top + 2}));
fire("dragstart", from); fire("dragover", to); fire("drop", to); fire("dragend", from);
"""


@pytest.mark.parametrize("dark", [False, True])
def test_all_steps_can_be_read_on_a_phone(program, tmp_path, dark):
    with Browser(390, 800, dark=dark) as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        walk(browser, lambda name: narrow(browser, name))
        shoot(browser, f"phone_{'dark' if dark else 'light'}", tmp_path, 1200)
        ground = browser.run("return getComputedStyle(document.body).backgroundColor")
        assert ground == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
        only_here(browser, program)


def walk(browser, at):
    """Go through all steps with the built-in reviews."""
    at("home")
    browser.click("text=Try the reviews")
    browser.wait_for("What each column is taken for")
    at("table")
    browser.click("text=Learn from this table")
    browser.wait_for("What the model can do")
    at("model")
    browser.click("text=Go on with")
    browser.wait_for("One estimate for each")
    choose(browser, "#by", "date:month")
    at("new")
    browser.click("text=Estimate")
    browser.wait_for("Over time")
    browser.wait(lambda: loaded(browser), "the picture")
    at("results")


def narrow(browser, name):
    """Check that nothing is wider than the screen, and that text is large enough."""
    wide = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
    assert wide <= 0, f"{name}: {wide} pixels too wide"


# Kinds of elements that must have a name, and the contrast that text must have (WCAG 2, level AA).
NAMELESS = """
return [...document.querySelectorAll('a, button, input:not([type=hidden]), select, progress, img, [role=img]')]
  .filter(e => !e.closest('[hidden]') && !(e.labels && e.labels.length) && !e.getAttribute('aria-label')
    && !e.getAttribute('alt') && !e.textContent.trim())
  .map(e => e.outerHTML.slice(0, 100));
"""
CONTRAST = """
const light = c => { const v = c.map(x => x / 255).map(x => x <= .03928 ? x / 12.92 : ((x + .055) / 1.055) ** 2.4);
  return .2126 * v[0] + .7152 * v[1] + .0722 * v[2]; };
const rgb = s => s.match(/[\\d.]+/g).map(Number);
const ground = e => { for (; e; e = e.parentElement) { const c = rgb(getComputedStyle(e).backgroundColor);
  if (c.length < 4 || c[3] > 0) return c.slice(0, 3); } return [255, 255, 255]; };
const found = [];
for (const e of document.querySelectorAll('main *, header *, footer *')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.offsetParent || e.closest('svg') || e.disabled) continue;
  const a = light(rgb(getComputedStyle(e).color).slice(0, 3)), b = light(ground(e));
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) found.push(ratio.toFixed(2) + ' ' + e.outerHTML.slice(0, 80));
}
return found;
"""


@pytest.mark.parametrize("dark", [False, True])
def test_everything_has_a_name_enough_contrast_and_a_place_in_the_order_of_keys(program, dark):
    def check(name):
        assert browser.run(NAMELESS) == [], name
        assert browser.run(CONTRAST) == [], name
        headings = browser.run("return [...document.querySelectorAll('h1')].length")
        assert headings == 1, name
        # By the tabulator to the first link, which skips the rest.
        browser.press("\ue004")
        assert browser.run("return document.activeElement.textContent") == "Skip to the content", name

    with Browser(dark=dark) as browser:
        browser.open(program.address)
        browser.wait_for("How are your items")
        walk(browser, check)
        only_here(browser, program)


def test_two_browsers_and_two_tabs_do_not_mix(program):
    with Browser() as one, Browser() as two:
        for browser in (one, two):
            browser.open(program.address)
            browser.wait_for("How are your items")
        one.click("text=Try the spectrum")
        one.wait_for("What each column is taken for")
        two.open(one.address)
        two.wait_for("This work does not exist")
        first = one.address
        one.open(f"http://127.0.0.1:{program.port}/")
        one.click("text=Try the reviews")
        one.wait_for("What each column is taken for")
        assert "stars" in one.text("#target")
        one.open(first)
        one.wait_for("spectrum-labelled.csv")
        assert re.search("energy", one.text("#target"))
