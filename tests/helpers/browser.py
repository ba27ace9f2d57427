"""A real Chromium without a window, for tests: driven by its DevTools protocol, over two pipes."""

import base64
import contextlib
import fcntl
import json
import os
import re
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
SECONDS = 60

# Chromium reads commands from descriptor 3 and answers on 4.
_START = (
    "import os, sys; os.dup2(int(sys.argv[1]), 3); os.dup2(int(sys.argv[2]), 4); os.execv(sys.argv[3], sys.argv[3:])"
)


def find_browser() -> str | None:
    """Returns the path of a browser of this machine, or None."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Tab:
    """A tab of the browser.

    Attributes:
        requests: the URLs that its page asked for, its own among them.
        errors: what its console said.
    """

    def __init__(self, read: int, write: int) -> None:
        self._read, self._write = read, write
        self._buffer = b""
        self._number = 0
        self._session = ""
        self._loaded = 0
        self.requests: list[str] = []
        self.errors: list[str] = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method: str, **parameters: Any) -> Any:
        """Sends a command and returns its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while (answer := self._next()).get("id") != self._number:
            pass
        assert "error" not in answer, (method, answer["error"])
        return answer["result"]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + SECONDS
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, end - time.monotonic()))
            assert ready, "the browser does not answer"
            data = os.read(self._read, 1 << 16)
            assert data, "the browser has ended"
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        self._note(message.get("method"), message.get("params", {}))
        return message

    def _note(self, event: str | None, values: dict[str, Any]) -> None:
        if event == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])
        elif event == "Log.entryAdded":
            self.errors.append(values["entry"]["text"])
        elif event == "Runtime.exceptionThrown":
            self.errors.append(str(values["exceptionDetails"]))
        elif event == "Page.loadEventFired":
            self._loaded += 1

    def open(self, page: Path | str) -> None:
        """Opens a file or a URL, and waits until it is loaded."""
        self.requests.clear()
        self.errors.clear()
        before = self._loaded
        self.send("Page.navigate", url=page if isinstance(page, str) else page.absolute().as_uri())
        while self._loaded == before:
            self._next()

    def tell(self, script: str) -> Any:
        """Returns the value of a script's expression in the page; waits for a promise."""
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result["exceptionDetails"]
        return result["result"].get("value")

    def wait(self, script: str) -> Any:
        """Returns the value of an expression in the page as soon as it is true; the page works in real time."""
        end = time.monotonic() + SECONDS
        while not (value := self.tell(script)):
            assert time.monotonic() < end, script
            time.sleep(0.05)
        return value

    def show(self, width: int, height: int = 800, dark: bool = False, medium: str = "screen") -> None:
        """Sets the size of the window, and light, dark or paper."""
        self.send("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.send("Emulation.setEmulatedMedia", media=medium, features=[scheme])

    def press(self, key: str, code: int, text: str = "") -> None:
        """Presses a key and lets it go."""
        values = {"key": key, "code": key, "windowsVirtualKeyCode": code}
        self.send("Input.dispatchKeyEvent", type="keyDown" if text else "rawKeyDown", text=text, **values)
        self.send("Input.dispatchKeyEvent", type="keyUp", **values)

    def printed_pages(self) -> int:
        """Returns the number of pages of paper (A4) that the page takes."""
        data = self.send("Page.printToPDF", paperWidth=8.27, paperHeight=11.69)["data"]
        return len(re.findall(rb"/Type\s*/Page\b", base64.b64decode(data)))

    def picture(self, path: Path, whole: bool = False) -> None:
        """Writes a picture of the window, or of the whole page, as PNG."""
        data = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        path.write_bytes(base64.b64decode(data))


@contextlib.contextmanager
def browser(folder: Path) -> Iterator[Tab]:
    """Starts the browser of this machine, which keeps its files in a folder, and gives a tab of it."""
    path = find_browser()
    assert path, "a test with a browser has the marker `browser`"
    theirs_read, ours_write = os.pipe()
    ours_read, theirs_write = os.pipe()
    high = [fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (theirs_read, theirs_write)]  # clear of 3 and 4
    for each in (theirs_read, theirs_write):
        os.close(each)
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", f"--user-data-dir={folder}"]
    options += ["--hide-scrollbars", "--no-first-run", "--disable-extensions", "--disable-dev-shm-usage"]
    command = [sys.executable, "-c", _START, *map(str, high), path, *options]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, pass_fds=high, stdout=log, stderr=log)
        for each in high:
            os.close(each)
        try:
            yield Tab(ours_read, ours_write)
        finally:
            os.close(ours_write)
            os.close(ours_read)
            process.terminate()
            process.wait(SECONDS)
