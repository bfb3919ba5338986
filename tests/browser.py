"""A real Chromium, driven through its driver by the WebDriver protocol: the few commands that the tests need."""

import base64
import http.client
import json
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# Enough for a machine that does other things too.
PATIENCE = 240


def missing():
    """Return which programs are missing for a browser, or nothing."""
    names = [("chromium", "chromium-browser", "google-chrome"), ("chromedriver",)]
    return [group[0] for group in names if not any(map(shutil.which, group))]


class Browser:
    """A browser without a window; use it in a with statement.

    Parameters
    ----------
    downloads : Path, default=None
        Where files go that are saved.
    """

    def __init__(self, downloads=None):
        self.downloads = downloads
        self._profile = tempfile.TemporaryDirectory(prefix="chromium-", ignore_cleanup_errors=True)
        self._driver = subprocess.Popen(
            ["chromedriver", "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        port = next(int(line.split()[-1].rstrip(".")) for line in self._driver.stdout if "successfully on port" in line)
        self._address = ("127.0.0.1", port)
        arguments = ["headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", "no-first-run"]
        # No request of the browser's own, and no other host but the tests' server.
        arguments += [
            "disable-background-networking",
            "disable-component-update",
            "disable-sync",
            "no-default-browser-check",
        ]
        arguments += [f"user-data-dir={self._profile.name}"]
        options = {"args": arguments, "prefs": {"download.prompt_for_download": False}}
        if downloads is not None:
            options["prefs"]["download.default_directory"] = str(downloads)
        wanted = {"goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}
        self._session = ""
        made = self._send("POST", "/session", {"capabilities": {"alwaysMatch": wanted}})
        self._session = f"/session/{made['sessionId']}"
        self.clicks = 0
        self.resize()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self._send("DELETE", self._session)
        finally:
            self._driver.terminate()
            self._driver.wait()
            self._driver.stdout.close()
            self._profile.cleanup()

    def _send(self, method, path, body=None):
        connection = http.client.HTTPConnection(*self._address, timeout=PATIENCE)
        content = None if body is None else json.dumps(body)
        connection.request(method, path, content, {"Content-Type": "application/json"})
        answer = json.loads(connection.getresponse().read())["value"]
        connection.close()
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(f"{answer['error']}: {answer['message'].splitlines()[0]}")
        return answer

    def _do(self, path, **body):
        return self._send("POST", f"{self._session}{path}", body)

    def _cdp(self, command, **parameters):
        return self._do("/goog/cdp/execute", cmd=command, params=parameters)

    def resize(self, width=1000, height=800, *, dark=False, media=""):
        """Set the size in pixels, light or dark, and the medium (screen or print)."""
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
        self._cdp("Emulation.setDeviceMetricsOverride", **size)
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self._cdp("Emulation.setEmulatedMedia", media=media, features=scheme)

    def open(self, address):
        """Go to an address."""
        self._do("/url", url=address)

    @property
    def address(self):
        """Current address of the browser."""
        return self._send("GET", f"{self._session}/url")

    def run(self, script, *arguments):
        """Run a script and return what it returns."""
        return self._do("/execute/sync", script=script, args=list(arguments))

    def find(self, selector):
        """Return the first element of a selector, or the first that has a text: "text=..."."""
        kind, _, text = selector.partition("=")
        how = {"using": "css selector", "value": selector}
        if kind == "text":
            path = (
                f"//*[self::a or self::button or self::summary or self::label][contains(normalize-space(.), '{text}')]"
            )
            how = {"using": "xpath", "value": path}
        return self._do("/element", **how)

    def click(self, selector):
        """Click on an element; clicks are counted."""
        self._do(f"/element/{self.find(selector)[ELEMENT]}/click")
        self.clicks += 1

    def keys(self, selector, text):
        """Type into an element; into one of files, their paths."""
        self._do(f"/element/{self.find(selector)[ELEMENT]}/value", text=str(text))

    def press(self, *keys):
        """Press keys, one after the other."""
        actions = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        self._do("/actions", actions=[{"type": "key", "id": "keyboard", "actions": actions}])

    def text(self, selector="body"):
        """Return the text of an element as it is seen."""
        return self.run("return document.querySelector(arguments[0]).innerText", selector)

    def wait(self, condition, what, seconds=PATIENCE):
        """Wait until a function of the browser is true."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if found := condition():
                    return found
            except RuntimeError:  # between two pages
                pass
            time.sleep(0.1)
        raise AssertionError(f"{what} did not come; at {self.address}: {self.text()[:2000]}")

    def wait_for(self, text, seconds=PATIENCE):
        """Wait until a page has a text."""
        return self.wait(lambda: text in self.text(), text, seconds)

    def screenshot(self, path, tallest=6000):
        """Write a screenshot as PNG, up to a height."""
        box = self._cdp("Page.getLayoutMetrics")["cssContentSize"]
        clip = {"x": 0, "y": 0, "width": box["width"], "height": min(box["height"], tallest), "scale": 1}
        shot = self._cdp("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        Path(path).write_bytes(base64.b64decode(shot["data"]))

    def console(self):
        """Return the messages of the console since the last look."""
        return [f"{entry['level']}: {entry['message']}" for entry in self._do("/se/log", type="browser")]

    def requested(self):
        """Return the addresses that were asked for since the last look."""
        messages = [json.loads(entry["message"])["message"] for entry in self._do("/se/log", type="performance")]
        sent = [message for message in messages if message["method"] == "Network.requestWillBeSent"]
        return [message["params"]["request"]["url"] for message in sent]
