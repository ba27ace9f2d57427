"""Reports pages that take long."""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator

from c4pipe.io.words import URL_SIZE, format_duration, format_size, short, visible
from c4pipe.wet.page import Page

# A page counts as slow if it takes more than a fixed time, and more than the slowest usual speed explains: a tenth of
# the speed of an old machine in pure Python.
PAGE_SECONDS, PAGE_SPEED = 10.0, 100_000.0  # CPU seconds of any page; bytes of its text that allow one more
LOOK_SECONDS = 1.0  # between two looks


class SlowWatch:
    """A thread that reports once each page that takes long. It serves many small files.

    Set `page` to a page before it is cleaned, and to None after that.
    """

    def __init__(self) -> None:
        self.page: Page | None = None
        self._looks: Iterator[None] | None = None  # at the current file
        self._has_thread = False
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def over(self, source: str, tell: Callable[[str], None]) -> Iterator[None]:
        """Watches the pages of a WET file while the `with` block cleans it."""
        looks = self._look_at(source, tell)
        next(looks)
        with self._lock:
            self._looks = looks
            if not self._has_thread:
                threading.Thread(target=self._watch, name="slow pages", daemon=True).start()
                self._has_thread = True
        try:
            yield
        finally:
            with self._lock:  # no look is under way
                self._looks = self.page = None

    def _watch(self) -> None:
        while True:
            time.sleep(LOOK_SECONDS)
            with self._lock:
                if self._looks is None:
                    self._has_thread = False
                    return
                next(self._looks)

    def _look_at(self, source: str, tell: Callable[[str], None]) -> Iterator[None]:
        seen, seen_at = self.page, 0.0
        while True:
            yield
            cpu, page = time.process_time(), self.page
            if page is not seen:
                seen, seen_at = page, cpu
            elif page is not None and cpu - seen_at > PAGE_SECONDS + page.size / PAGE_SPEED:
                took = format_duration(cpu - seen_at)
                url = visible(short(page.url, URL_SIZE))
                tell(
                    f"a page of {source} takes long: {url}, {took} of CPU for {format_size(page.size)}, and it goes on"
                )
                seen_at = float("inf")
