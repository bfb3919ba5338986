"""The web app in Chromium: a whole project by clicks and keys, at all widths."""

import os
import shlex
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
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

# What the project with a built-in example may take.
MAX_CLICKS, MAX_SECONDS = 10, 40
# Reviews of the real table, and its path.
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
    """The program; all its files are removed at the end."""
    folder = tmp_path_factory.mktemp("program")
    found = Program(folder)
    yield found
    found.end()
    assert not list(folder.glob("ordinalq-app-*"))


@pytest.fixture(scope="module")
def chromium(tmp_path_factory, program):
    """One browser for all tests, with the cookie of the program."""
    with Browser(tmp_path_factory.mktemp("saved")) as found:
        found.open(program.address)
        found.wait_for("Estimate distributions over ordered classes")
        assert "token" not in found.address
        yield found


@pytest.fixture
def browser(chromium, program):
    """The browser at the first page; at the end its console is empty, and no other host was asked."""
    chromium.resize()
    begin(chromium, program)
    yield chromium
    only_here(chromium, program)


def begin(browser, program):
    """Go to the first page."""
    browser.open(f"http://127.0.0.1:{program.port}/")
    browser.wait_for("Estimate distributions over ordered classes")


def only_here(browser, program):
    """Check that the console is empty, and that no other host was asked."""
    assert browser.console() == []
    hosts = {urlsplit(address).netloc for address in browser.requested() if address.startswith(("http", "ws"))}
    assert hosts <= {f"127.0.0.1:{program.port}"}


def save(browser, text, name, to, seconds=60):
    """Click on a text, wait for the file that the browser saves, and move it."""
    folder = browser.downloads
    path, end = folder / name, time.monotonic() + seconds
    assert not path.exists()
    browser.click(f"text={text}")
    while not path.exists() or list(folder.glob("*.crdownload")):
        assert time.monotonic() < end, f"{name} was not saved: {list(folder.iterdir())}"
        time.sleep(0.05)
    return path.rename(to / name)


def shots():
    """Return the folder of the documentation if screenshots are to be written."""
    return os.environ.get("ORDINALQ_SCREENSHOTS")


def shoot(browser, name, tmp_path, tallest=2600):
    """Write a screenshot with few colours for the documentation."""
    from PIL import Image

    path = Path(shots() or tmp_path) / f"app_{name}.png"
    browser.screenshot(path, tallest)
    with Image.open(path) as image:
        assert len(image.getcolors(1 << 24)) > 10, "an empty page"
        small = image.convert("RGB").quantize(48, dither=Image.Dither.NONE)
    small.save(path, optimize=True)


@pytest.fixture(scope="module")
def walked(chromium, program, tmp_path_factory):
    """The project with the built-in reviews, from the first page to the report: its address, clicks, seconds, files."""
    folder, browser = tmp_path_factory.mktemp("walked"), chromium
    browser.resize()
    begin(browser, program)
    before, clicks = program.seconds(), browser.clicks
    shoot(browser, "home", folder)
    browser.click("text=Try the reviews")
    browser.wait_for("Use of the columns")
    shoot(browser, "table", folder)
    browser.click("text=Fit model")
    browser.wait_for("Quality of the model")
    browser.wait(lambda: loaded(browser), "the figure of errors")
    shoot(browser, "model", folder)
    browser.click("text=Continue with")
    browser.wait_for("Group by")
    browser.click("text=Estimate")
    browser.wait_for("Compare selected groups")
    browser.click("input[aria-label='compare grinder X']")
    browser.click("input[aria-label='compare kettle X']")
    browser.click("text=Compare selected groups")
    browser.wait_for("Comparison")
    browser.wait(lambda: loaded(browser), "the figures")
    save(browser, "Download report", "report.html", folder)
    clicks, seconds = browser.clicks - clicks, program.seconds() - before
    shoot(browser, "results", folder)
    address = browser.address.rpartition("/results")[0]
    return SimpleNamespace(address=address, clicks=clicks, seconds=seconds, folder=folder)


def loaded(browser):
    """Return whether all figures are loaded."""
    return browser.run("return [...document.images].every(i => i.complete && i.naturalWidth > 0)")


def test_the_walk_with_the_built_in_reviews_takes_ten_clicks(walked, browser, record_property):
    record_property("clicks", walked.clicks)
    record_property("seconds of processor time", round(walked.seconds, 1))
    assert walked.clicks <= MAX_CLICKS
    assert walked.seconds <= MAX_SECONDS
    browser.open(f"{walked.address}/results")
    assert "The mean class of grinder X is" in browser.text()


def test_results_are_those_of_the_command_line_to_the_last_digit(walked, browser, tmp_path):
    """Run the commands that the pages show on the tables of the example, and compare."""
    commands = []
    for page in ("results", "model"):
        browser.open(f"{walked.address}/{page}")
        commands += browser.run("return [...document.querySelectorAll('details.command pre')].map(e => e.textContent)")
    browser.open(f"{walked.address}/results")
    for kind in ("CSV", "Parquet", "PNG", "SVG"):
        save(browser, kind, f"estimates.{kind.lower()}", tmp_path)
    for page, name in (("table", "reviews-labelled.csv"), ("new", "reviews-new.csv")):
        browser.open(f"{walked.address}/{page}")
        save(browser, "Download table", name, tmp_path)
    mine = (tmp_path / "estimates.csv").read_bytes()
    for verb in ("fit", "predict"):
        (command,) = [shlex.split(command) for command in commands if f"ordinalq {verb} " in command]
        subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, check=True, capture_output=True)
    assert (tmp_path / "estimates.csv").read_bytes() == mine


def test_the_spectrum_over_time(browser):
    browser.click("text=Try the spectrum")
    browser.wait_for("Use of the columns")
    browser.click("text=Fit model")
    browser.wait_for("Quality of the model")
    browser.click("text=Continue with")
    browser.wait_for("Group by")
    browser.click("text=Estimate")
    browser.wait_for("Over time")
    browser.wait(lambda: loaded(browser), "the figures")
    assert "2024-03-15" in browser.text()


def test_the_report_needs_no_network(walked):
    with Browser() as browser:
        browser.open((walked.folder / "report.html").as_uri())
        assert loaded(browser)
        assert "The mean class of grinder X is" in browser.text()
        assert browser.console() == []
        assert not [address for address in browser.requested() if address.startswith(("http:", "https:"))]


@pytest.fixture(scope="module")
def reviews(tmp_path_factory):
    """Labelled reviews and 30,000 to estimate: real if ORDINALQ_DATA has them."""
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
    folder = tmp_path_factory.mktemp("reviews")
    frame.iloc[N_NEW:].to_parquet(folder / "labelled.parquet")
    frame.iloc[:N_NEW].drop(columns="stars").to_csv(folder / "new.csv", index=False)
    return folder


def test_the_walk_with_thirty_thousand_reviews(program, browser, reviews, tmp_path, record_property):
    before, clicks = program.seconds(), browser.clicks
    browser.keys("#labelled", reviews / "labelled.parquet")
    browser.wait_for("The first 20 rows of 4,")
    assert browser.run("return document.querySelector('#target').value") == "stars"
    assert browser.run("return document.querySelector('#by').value") == "product"
    choose(browser, "[aria-label='use date as']", "out")
    browser.click("text=Fit model")
    browser.wait_for("Fitting the model")
    browser.run("location.reload()")
    browser.wait_for("Fitting the model")
    browser.wait_for("Quality of the model", 600)
    browser.click("text=Continue: new table")
    browser.keys("#sample", reviews / "new.csv")
    browser.wait_for("Group by")
    assert browser.run("return document.querySelector('#by').value") == "product"
    browser.click("text=Estimate")
    browser.wait_for("Compare selected groups", 600)
    assert f"{N_NEW:,} rows" in browser.text()
    choose(browser, "#sort", "items")
    browser.keys("#least", "\ue0090")  # digits are typed behind the 1: at least 10 rows
    browser.click("text=Show")
    browser.wait(lambda: "sort=items" in browser.address, "the order")
    browser.wait(lambda: loaded(browser), "the figure")
    estimates = pd.read_csv(save(browser, "CSV", "estimates.csv", tmp_path))
    record_property("clicks", browser.clicks - clicks)
    record_property("seconds of processor time", round(program.seconds() - before, 1))
    assert estimates["n_items"].sum() == N_NEW
    largest = estimates.sort_values("n_items", ascending=False)["n_items"].iloc[0]
    assert browser.run("return document.querySelector('tbody td.number').textContent") == f"{largest:,}"


def choose(browser, selector, value):
    """Choose an option, as a click on it would."""
    browser.run(
        "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
        "s.dispatchEvent(new Event('change', {bubbles: true}));",
        selector,
        value,
    )
    assert browser.run("return document.querySelector(arguments[0]).value", selector) == value


def test_cancel_and_begin_again(browser, program, reviews):
    browser.keys("#labelled", reviews / "labelled.parquet")
    browser.wait_for("Use of the columns")
    browser.click("text=Fit model")
    browser.wait_for("Fitting the model")
    browser.click("text=Cancel")
    browser.wait_for("The job was cancelled.")
    browser.wait_for("Use of the columns")
    begin(browser, program)
    browser.wait_for("Projects in this session")


def test_a_broken_file_is_reported_next_to_its_field(browser, program, tmp_path):
    (tmp_path / "broken.csv").write_text("a,b\n1,2\n3\n")
    (tmp_path / "table.html").write_text("<h1>no table</h1>")
    browser.keys("#labelled", tmp_path / "table.html")
    browser.wait_for("table.html: expected a file .csv")
    # The browser itself writes down that the server said no.
    assert all("415" in line for line in browser.console())
    begin(browser, program)
    browser.keys("#labelled", tmp_path / "broken.csv")
    browser.wait_for("broken.csv, line 3: expected 2 columns, got 1.")


def test_classes_are_ordered_by_keys_and_by_dragging(browser, tmp_path):
    frame = pd.DataFrame({"size": range(90), "grade": ["gold", "bronze", "silver"] * 30})
    frame.to_csv(tmp_path / "grades.csv", index=False)

    def order():
        return browser.run(
            "return [...document.querySelectorAll('[data-classes=grade] .name')].map(e => e.textContent)"
        )

    browser.keys("#labelled", tmp_path / "grades.csv")
    browser.wait_for("Put the classes in order")
    assert order() == ["gold", "bronze", "silver"]
    browser.run("document.querySelector(\"[aria-label='move gold down']\").focus()")
    browser.press(" ", " ")
    assert order() == ["bronze", "silver", "gold"]
    assert browser.text("[data-classes=grade] [data-status-text]") == "gold is now number 3 of 3"
    browser.run(DRAG, "[data-classes=grade] li:nth-child(3)", "[data-classes=grade] li:nth-child(1)")
    assert order() == ["gold", "bronze", "silver"]
    sent = "return [...document.querySelectorAll('[data-classes=grade] input[name=class]')].map(e => e.value)"
    assert browser.run(sent) == ["0", "1", "2"]


DRAG = """
const [from, to] = [...arguments].map(s => document.querySelector(s));
const data = new DataTransfer(), box = to.getBoundingClientRect();
const fire = (kind, on) => on.dispatchEvent(
    new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer: data, clientY: box.top + 2}));
fire("dragstart", from); fire("dragover", to); fire("drop", to); fire("dragend", from);
"""


def pages(browser, walked):
    """Go through all pages of the project; yields their names."""
    for name in ("home", "table", "model", "new", "results"):
        browser.open(walked.address.rpartition("/w/")[0] + "/" if name == "home" else f"{walked.address}/{name}")
        browser.wait(lambda: loaded(browser), "the figures")
        yield name


@pytest.mark.parametrize("dark", [False, True])
def test_all_steps_can_be_read_on_a_phone(walked, browser, tmp_path, dark):
    browser.resize(390, 800, dark=dark)
    for name in pages(browser, walked):
        wide = browser.run("return document.documentElement.scrollWidth - window.innerWidth")
        assert wide <= 0, f"{name}: {wide} pixels too wide"
    shoot(browser, f"phone_{'dark' if dark else 'light'}", tmp_path, 1200)
    ground = browser.run("return getComputedStyle(document.body).backgroundColor")
    assert ground == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")


@pytest.mark.parametrize("width", [390, 1280])
def test_long_names_of_groups_leave_all_classes_in_view(walked, browser, width):
    browser.open(f"{walked.address}/results")
    browser.resize(width, 800)
    name = "Kindle Oasis E-reader with Leather Charging Cover, 6 High-Resolution Display (300 ppi), Wi-Fi, Merlot " * 2
    browser.run("for (const e of document.querySelectorAll('th .name')) e.textContent = arguments[0]", name)
    right = "return Math.max(...[...document.querySelectorAll(arguments[0])].map(e => e.getBoundingClientRect().right))"
    assert browser.run(right, "table.cards-on-phone tbody td") <= browser.run(right, "main")


def test_paper_has_the_results_and_no_buttons(walked, browser):
    browser.open(f"{walked.address}/results")
    browser.resize(800, 1100, dark=True, media="print")
    seen = "return [...document.querySelectorAll(arguments[0])].filter(e => e.offsetParent).length"
    assert browser.run(seen, "button, input, nav, .actions a") == 0
    assert browser.run(seen, "table.cards-on-phone tbody tr") == 8
    assert browser.run("return getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


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
def test_everything_has_a_name_enough_contrast_and_a_place_in_the_order_of_keys(walked, browser, dark):
    browser.resize(dark=dark)
    for name in pages(browser, walked):
        assert browser.run(NAMELESS) == [], name
        assert browser.run(CONTRAST) == [], name
        assert browser.run("return document.querySelectorAll('h1').length") == 1, name
        # By the tabulator to the first link, which skips the rest.
        browser.press("\ue004")
        assert browser.run("return document.activeElement.textContent") == "Skip to content", name


def test_two_browsers_and_two_tabs_do_not_mix(walked, browser, program):
    with Browser() as other:
        other.open(program.address)
        other.wait_for("Estimate distributions")
        other.open(walked.address)
        other.wait_for("This project does not exist")
    browser.click("text=Try the spectrum")
    browser.wait_for("Use of the columns")
    assert "energy" in browser.text("#target")
    browser.open(f"{walked.address}/table")
    browser.wait_for("reviews-labelled.csv")
    assert "stars" in browser.text("#target")
