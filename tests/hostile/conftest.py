"""What all tests with hostile input share."""

import signal
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def _no_waiting() -> Iterator[None]:
    """A test that waits for a pipe, or takes quadratic time, fails instead of holding up the others."""

    def late(number: int, frame: object) -> None:
        raise AssertionError("it takes minutes")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(180)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)
