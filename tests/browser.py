"""Headless Chromium for tests, controlled by the DevTools protocol over a pipe.

Messages are JSON objects terminated by a NUL byte. The browser reads them from file descriptor 3 and answers on 4.
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
PATIENCE = 30.0  # seconds to wait for an answer


def find_chromium() -> str | None:
    """Return the path of the browser, or ``None`` if it is not installed."""
    return next(
        (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
    )


class Browser:
    """A browser with one page: ``with Browser() as page: page.open(path)``."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self._last = 0
        self._buffer = b""
        self._profile = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def redirect_pipes() -> None:  # in the child; through high numbers, as either pipe may already be 3 or 4
            ends = fcntl.fcntl(to_read, fcntl.F_DUPFD, 20), fcntl.fcntl(to_write, fcntl.F_DUPFD, 20)
            os.dup2(ends[0], 3)
            os.dup2(ends[1], 4)

        self._process = subprocess.Popen(
            [str(find_chromium()), *FLAGS, f"--user-data-dir={self._profile.name}", "about:blank"],
            preexec_fn=redirect_pipes,
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
        """Call a DevTools method and return its result."""
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
                raise TimeoutError("no answer from the browser")
            received = os.read(self._read, 1 << 16)
            if not received:
                raise ConnectionError("the browser exited")
            self._buffer += received
        message, self._buffer = self._buffer.split(b"\0", 1)
        return dict(json.loads(message))

    def open(self, address: Path | str) -> None:
        """Load a file or a URL, wait until it is ready and clear earlier events."""
        self.send(
            "Page.navigate", url="about:blank"
        )  # so that no late event of the last page is taken for one of this page
        self.wait(lambda: self.run("location.protocol") == "about:")
        self.events.clear()
        url = address.resolve().as_uri() if isinstance(address, Path) else address
        self.send("Page.navigate", url=url)
        self.wait(lambda: self.run("document.readyState") == "complete" and self.run("location.protocol") != "about:")

    def run(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", script))
        return answer["result"].get("value")

    def wait(self, ready: Callable[[], Any]) -> None:
        """Wait until ``ready()`` is true."""
        end = time.monotonic() + PATIENCE
        while not ready():
            if time.monotonic() > end:
                raise TimeoutError("condition not reached")
            time.sleep(0.02)

    def press(self, key: str, text: str = "") -> None:
        """Press and release a key, for example "Enter" or "Tab"."""
        code = {"Enter": 13, "Tab": 9, "Escape": 27, " ": 32}.get(key, 0)
        common = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": code}
        self.send(
            "Input.dispatchKeyEvent", type="keyDown", text=text or {"Enter": "\r", " ": " "}.get(key, ""), **common
        )
        self.send("Input.dispatchKeyEvent", type="keyUp", **common)

    def type(self, text: str) -> None:
        """Type text into the focused element."""
        self.send("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Scroll an element into view and click its center."""
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
        """Emulate "screen" or "print" media and a light or dark color scheme."""
        self.send(
            "Emulation.setEmulatedMedia", media=kind, features=[{"name": "prefers-color-scheme", "value": scheme}]
        )

    def screenshot(self, path: Path, *, whole: bool = False) -> None:
        """Save the viewport, or the whole page."""
        picture = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(picture["data"]))

    def errors(self) -> list[str]:
        """Return console warnings and errors and uncaught exceptions."""
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
        """Return the URLs that the page requested."""
        asked = [e["params"]["request"]["url"] for e in self.events if e.get("method") == "Network.requestWillBeSent"]
        return list(asked)
