# SPDX-FileCopyrightText: The gpuprof developers
# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, spoken to over its pipe: what a page does, measures and looks like."""

import base64
import itertools
import json
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_SECONDS = 60.0


def find() -> str | None:
    """The path of a browser, None where none is installed."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """One process of Chromium and its one tab.

    Attributes:
        events: What the page reported, in order: requests, errors, messages.
    """

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._numbers = itertools.count(1)
        self._buffer = b""
        self._session: str | None = None
        self.events: list[dict] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        # Seconds of the thread, so that what else a machine does is not counted.
        self.call("Performance.enable", timeDomain="threadTicks")

    def call(self, method: str, **params: object) -> dict:
        """One command's result."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict:
        while b"\0" not in self._buffer:
            read = os.read(self._answers, 1 << 20)
            if not read:
                raise RuntimeError("the browser ended")
            self._buffer += read
        message, _, self._buffer = self._buffer.partition(b"\0")
        return json.loads(message)

    def wait_for(self, method: str) -> dict:
        """The next event of that name."""
        until = time.monotonic() + _SECONDS
        while time.monotonic() < until:
            for place, event in enumerate(self.events):
                if event.get("method") == method:
                    return self.events.pop(place)
            self.events.append(self._next())
        raise TimeoutError(method)

    def view(self, width: int, height: int, *, dark: bool = False, scripts: bool = True) -> None:
        """How wide the window is, which theme the system prefers, and whether scripts run."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        theme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.call("Emulation.setEmulatedMedia", features=theme)
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)

    def open(self, path: Path) -> None:
        """Load a file, whole."""
        self.events.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("Page.loadEventFired")

    def run(self, expression: str) -> object:
        """The value of an expression in the page, awaited where it is a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(json.dumps(answer["exceptionDetails"])[:2000])
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings that the page caused so far, and what it asked the network for."""
        self.call("Runtime.evaluate", expression="0")
        found = []
        for event in self.events:
            params = event.get("params", {})
            match event.get("method"):
                case "Log.entryAdded" if params["entry"]["level"] in ("error", "warning"):
                    found.append(params["entry"]["text"])
                case "Runtime.exceptionThrown":
                    found.append(params["exceptionDetails"]["text"])
                case "Runtime.consoleAPICalled" if params["type"] in ("error", "warning"):
                    found.append(str(params["args"]))
                case "Network.requestWillBeSent" if not params["request"]["url"].startswith(
                    ("file:", "data:", "blob:")
                ):
                    found.append(params["request"]["url"])
        return found

    def metrics(self) -> dict[str, float]:
        """Chromium's own counts and seconds of the page."""
        return {item["name"]: item["value"] for item in self.call("Performance.getMetrics")["metrics"]}

    def screenshot(self, path: Path, selector: str | None = None) -> None:
        """A picture of the page, or of one element of it."""
        clip = {}
        if selector:
            script = (
                "(r => ({x: r.x + scrollX, y: r.y + scrollY, width: r.width, height: r.height, scale: 1}))"
                f"(document.querySelector({json.dumps(selector)}).getBoundingClientRect())"
            )
            clip = {"clip": self.run(script), "captureBeyondViewport": True}
        answer = self.call("Page.captureScreenshot", format="png", **clip)
        path.write_bytes(base64.b64decode(answer["data"]))


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser with a profile of its own, ended at the end."""
    path = find()
    if path is None:
        raise FileNotFoundError("no Chromium")
    to_read, to_write = os.pipe()
    answers_read, answers_write = os.pipe()
    with tempfile.TemporaryDirectory() as profile:

        def arrange() -> None:
            # The numbers that Chromium's pipe has.
            os.dup2(to_read, 198)
            os.dup2(answers_write, 199)
            os.dup2(198, 3)
            os.dup2(199, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        options = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run"]
        options += ["--disable-background-networking", "--disable-dev-shm-usage", "--remote-debugging-pipe"]
        process = subprocess.Popen(
            [path, *options, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            close_fds=False,
            preexec_fn=arrange,
        )
        os.close(to_read)
        os.close(answers_write)
        try:
            yield Browser(to_write, answers_read)
        finally:
            process.terminate()
            process.wait(20)
            os.close(to_write)
            os.close(answers_read)
