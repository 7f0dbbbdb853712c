"""Chromium, driven through chromedriver's WebDriver protocol with only the standard library."""

import base64
import contextlib
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
# No proxy of the surroundings stands between the tests and what they talk to.
OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))
ARGUMENTS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--no-proxy-server",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    # Nothing but this machine can be reached, so that a page that asks elsewhere is seen to fail.
    "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
]


def programs():
    """Chromium and its driver; None where one of them is missing."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    driver = shutil.which("chromedriver")
    return (chromium, driver) if chromium and driver else None


class Browser:
    """A window of a fresh Chromium. `scripts=False`: pages run none of theirs."""

    def __init__(self, scripts=True):
        chromium, driver = programs()
        self.folder = Path(tempfile.mkdtemp(prefix="simic-browser-"))
        self.downloads = self.folder / "downloads"
        self.downloads.mkdir()
        self.driver = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        port = next(filter(None, (re.search(r"successfully on port (\d+)", line) for line in self.driver.stdout))).group(1)
        self.address = f"http://127.0.0.1:{port}/session"
        preferences = {"download.default_directory": str(self.downloads)}
        if not scripts:
            preferences["profile.managed_default_content_settings.javascript"] = 2
        options = {
            "binary": chromium,
            "args": [*ARGUMENTS, f"--user-data-dir={self.folder / 'profile'}"],
            "prefs": preferences,
        }
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"performance": "ALL", "browser": "ALL"},
            "unhandledPromptBehavior": "ignore",
        }
        try:
            session = self.ask("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        except Exception:
            self.close()
            raise
        self.address += "/" + session["sessionId"]
        self.size(1280, 800)
        # Away from Chromium's own first page, and what it asked for forgotten.
        self.open("about:blank")
        self.requests()
        self.errors()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        with contextlib.suppress(OSError):
            self.ask("DELETE", "")
        self.driver.terminate()
        self.driver.wait()
        self.driver.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def ask(self, method, path, body=None):
        data = None if method != "POST" else json.dumps(body or {}).encode()
        request = urllib.request.Request(self.address + path, data, {"Content-Type": "application/json"}, method=method)
        try:
            with OPENER.open(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            problem = json.load(error)["value"]
            raise RuntimeError(f"{problem['error']}: {problem['message']}") from None

    def cdp(self, command, **parameters):
        """A command of the DevTools protocol."""
        return self.ask("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def open(self, address):
        self.ask("POST", "/url", {"url": str(address)})

    def run(self, script, *arguments):
        """Result of a script of the test; it runs where the page's scripts are off as well."""
        return self.ask("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, *arguments, seconds=20):
        """Until a script returns something true."""
        end = time.monotonic() + seconds
        while not (value := self.run(script, *arguments)):
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {script}")
            time.sleep(0.05)
        return value

    def find(self, selector):
        return self.ask("POST", "/element", {"using": "css selector", "value": selector})[ELEMENT]

    def click(self, selector):
        self.ask("POST", f"/element/{self.find(selector)}/click")

    def keys(self, selector, keys):
        """Types into an element."""
        self.ask("POST", f"/element/{self.find(selector)}/value", {"text": keys})

    def press(self, key):
        """Types where the focus is."""
        actions = [{"type": kind, "value": key} for kind in ("keyDown", "keyUp")]
        self.ask("POST", "/actions", {"actions": [{"type": "key", "id": "keys", "actions": actions}]})

    def pointer(self, *actions):
        """Moves `(x, y)` of the window, and "down", "up"."""
        steps = [
            {"type": "pointerMove", "x": round(action[0]), "y": round(action[1]), "duration": 50}
            if isinstance(action, tuple)
            else {"type": f"pointer{action.title()}", "button": 0}
            for action in actions
        ]
        self.ask("POST", "/actions", {"actions": [{"type": "pointer", "id": "mouse", "actions": steps}]})

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def media(self, **features):
        """Of `prefers_color_scheme="dark"` and the like."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.cdp("Emulation.setEmulatedMedia", features=named)

    def screenshot(self, path, whole=False):
        picture = self.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        Path(path).write_bytes(base64.b64decode(picture["data"]))

    def print(self):
        """The page as a PDF."""
        return base64.b64decode(self.cdp("Page.printToPDF", printBackground=True, preferCSSPageSize=True)["data"])

    def dialog(self):
        """The text of an open alert, if there is one."""
        try:
            return self.ask("GET", "/alert/text")
        except RuntimeError:
            return None

    def errors(self):
        """Errors on the console since it was last asked."""
        return [entry["message"] for entry in self.ask("POST", "/se/log", {"type": "browser"}) if entry["level"] == "SEVERE"]

    def requests(self):
        """Addresses that were asked for since it was last asked."""
        entries = [json.loads(entry["message"])["message"] for entry in self.ask("POST", "/se/log", {"type": "performance"})]
        return [each["params"]["request"]["url"] for each in entries if each["method"] == "Network.requestWillBeSent"]

    def downloaded(self, name, seconds=10):
        """The text of a file that the page has saved."""
        path, end = self.downloads / name, time.monotonic() + seconds
        while not path.exists() and time.monotonic() < end:
            time.sleep(0.05)
        time.sleep(0.1)
        return path.read_text()


def screenshots():
    """Where pictures of the pages are wanted, if anywhere."""
    folder = os.environ.get("SIMIC_ENGINE_SCREENSHOTS")
    if folder:
        Path(folder).mkdir(parents=True, exist_ok=True)
    return Path(folder) if folder else None
