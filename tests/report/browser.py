"""Headless Chromium for tests, driven over a pipe by the DevTools protocol: no driver, no port, no package.

Messages are JSON objects that end with a NUL byte, written to the browser's file descriptor 3 and read from its 4.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any

FLAGS = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--remote-debugging-pipe"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars"),
)
PATIENCE = 30.0  # seconds until a silent browser counts as broken


def find_chromium() -> str | None:
    """Where the browser is, if there is one."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class Browser:
    """One page in one browser; ``with Browser() as page: page.open(path)``."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._last = 0
        self._buffer = b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def put_pipes_in_place() -> None:  # runs in the child; by way of high numbers, as either may be 3 or 4 already
            ends = fcntl.fcntl(to_read, fcntl.F_DUPFD, 20), fcntl.fcntl(to_write, fcntl.F_DUPFD, 20)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [str(find_chromium()), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=put_pipes_in_place,
            pass_fds=(3, 4),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_read)
        os.close(to_write)
        self._session: str | None = None
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")
        self.resize(1200, 900)

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE)
        os.close(self._read)
        os.close(self._write)
        self._profile.cleanup()

    def send(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method and wait for its answer."""
        self._last += 1
        message = {"id": self._last, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._last:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return dict(answer["result"])
            self.events.append(answer)

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            if not select.select([self._read], [], [], PATIENCE)[0]:
                raise TimeoutError("the browser does not answer")
            received = os.read(self._read, 1 << 16)
            if not received:
                raise ConnectionError("the browser has gone")
            self._buffer += received
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))

    def open(self, path: Path) -> None:
        """Load a file and wait until it is ready; earlier events are forgotten."""
        self.events.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait(lambda: self.run("document.readyState") == "complete" and self.run("location.protocol") == "file:")

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def wait(self, ready: Callable[[], Any]) -> None:
        """Ask again until it is true."""
        end = time.monotonic() + PATIENCE
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError("the page does not get there")
            time.sleep(0.02)

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key, such as "Enter" or "Tab"."""
        code = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32}.get(key, 0)
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", text=text or {"Enter": "\r", " ": " "}.get(key, ""), **common
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Enter text where the focus is."""
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click the middle of an element with the mouse, scrolled into view."""
        script = (
            "(e => { e.scrollIntoView({block: 'center', behavior: 'instant'}); const r = e.getBoundingClientRect();"
            f" return [r.x + r.width / 2, r.y + r.height / 2] }})(document.querySelector({json.dumps(selector)}))"
        )
        x, y = self.run(script)
        self.click_at(x, y)

    def click_at(self, x: float, y: float) -> None:
        """Click a point of the window."""
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def resize(self, width: int, height: int, scale: float = 1) -> None:
        """Set the window's size."""
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=scale, mobile=False
        )

    def media(self, kind: str = "", scheme: str = "light") -> None:
        """Show the page as on "screen" or in "print", light or dark."""
        self.send(
            "Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save what is to be seen, or the whole page."""
        picture = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def complaints(self) -> list[str]:
        """What the page has written to the console as warning or error, and uncaught exceptions."""
        found = []
        for event in self.events:
            what = event.get("params", {})
            if event.get("method") == "Runtime.exceptionThrown":
                found.append(str(what["exceptionDetails"].get("exception", what)))
            elif event.get("method") == "Runtime.consoleAPICalled" and what["type"] in ("warning", "error", "assert"):
                found.append(str(what["args"]))
            elif event.get("method") == "Log.entryAdded" and what["entry"]["level"] in ("warning", "error"):
                found.append(what["entry"]["text"])
        return found

    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return list(asked)
