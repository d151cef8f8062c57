"""Chromium without a window, driven through chromedriver: its protocol is plain JSON over HTTP on loopback.

No client library: a few calls are all that is needed, and none of them looks for drivers elsewhere.
"""

import base64
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any, Self

__all__ = ["BROWSER", "DRIVER", "Browser", "BrowserError"]

BROWSER, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
PATIENCE = 60.0  # seconds: the machine may have other things to do
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # as the WebDriver standard names a reference
ARGUMENTS = (
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    *("--disable-default-apps", "--disable-extensions", "--disable-dev-shm-usage", "--hide-scrollbars"),
    *("--no-proxy-server", "--force-device-scale-factor=1", "--disable-features=OptimizationHints,Translate"),
)


class BrowserError(Exception):
    """What the driver said."""


class Browser:
    """A browser with an empty profile; nothing is left of it at the end."""

    def __enter__(self) -> Self:
        assert DRIVER is not None
        assert BROWSER is not None
        self._profile = tempfile.mkdtemp(prefix="stream-hc-browser-")
        self._driver = subprocess.Popen([DRIVER, "--port=0"], stdout=subprocess.PIPE, text=True)
        assert self._driver.stdout is not None
        for line in self._driver.stdout:
            found = re.search(r"successfully on port (\d+)", line)
            if found:
                break
        self._base = f"http://127.0.0.1:{found[1]}/session"
        options = {"binary": BROWSER, "args": [*ARGUMENTS, f"--user-data-dir={self._profile}"]}
        wanted = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        answer = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
        self._base += f"/{answer['sessionId']}"
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._driver.terminate()
            self._driver.wait(20)
            assert self._driver.stdout is not None
            self._driver.stdout.close()
            shutil.rmtree(self._profile, ignore_errors=True)

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        data = None if method in ("GET", "DELETE") else json.dumps(body or {}).encode()
        request = urllib.request.Request(
            self._base + path, data, {"Content-Type": "application/json"}, method=method
        )
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        try:
            with opener.open(request, timeout=PATIENCE) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            with error:
                raise BrowserError(json.load(error)["value"]["message"].partition("\n")[0]) from None

    def open(self, url: str) -> None:
        self._call("POST", "/url", {"url": url})

    def resize(self, width: int, height: int) -> None:
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.devtools("Emulation.setDeviceMetricsOverride", size)

    def use_colours(self, scheme: str) -> None:
        """Have pages believe that somebody prefers "light" or "dark"."""
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        self.devtools("Emulation.setEmulatedMedia", {"features": features})

    def devtools(self, command: str, parameters: dict[str, Any]) -> Any:
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def run(self, script: str, *arguments: Any) -> Any:
        """Return what a piece of JavaScript returns; its arguments are `arguments`."""
        return self._call("POST", "/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script: str, *arguments: Any, seconds: float = PATIENCE) -> Any:
        """Wait until a piece of JavaScript returns something, and return it."""
        until = time.monotonic() + seconds
        while not (found := self.run(script, *arguments)):
            assert time.monotonic() < until, f"waited in vain for: {script}"
            time.sleep(0.1)
        return found

    def text(self, selector: str) -> str:
        """Return the text of an element."""
        return str(self.wait("return document.querySelector(arguments[0])?.textContent", selector))

    def click(self, selector: str) -> None:
        element = self._call("POST", "/element", {"using": "css selector", "value": selector})
        self._call("POST", f"/element/{element[ELEMENT]}/click")

    def press(self, *keys: str) -> None:
        """Press keys, one after the other, on whatever has the focus."""
        strokes = [{"type": kind, "value": key} for key in keys for kind in ("keyDown", "keyUp")]
        actions = [{"type": "key", "id": "keyboard", "actions": strokes}]
        self._call("POST", "/actions", {"actions": actions})

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Save what is seen, or the whole page."""
        options: dict[str, Any] = {"format": "png"}
        if whole:
            size = self.devtools("Page.getLayoutMetrics", {})["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
            options |= {"captureBeyondViewport": True, "clip": clip}
        data = self.devtools("Page.captureScreenshot", options)["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self) -> list[str]:
        """Return what pages have written to the console since the last time."""
        return [entry["message"] for entry in self._call("POST", "/se/log", {"type": "browser"})]

    def requests(self) -> list[str]:
        """Return the addresses that pages have asked for since the last time."""
        entries = self._call("POST", "/se/log", {"type": "performance"})
        messages = [json.loads(entry["message"])["message"] for entry in entries]
        return [
            message["params"]["request"]["url"]
            for message in messages
            if message["method"] == "Network.requestWillBeSent"
        ]
