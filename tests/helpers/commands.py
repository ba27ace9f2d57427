"""Commands as the tests run them."""

import signal
from typing import Any

import pytest

from c4pipe.cli import main


def run(*command: Any) -> int:
    """Runs a command whose arguments may be paths and numbers; returns its status."""
    return main.main([str(each) for each in command])


def run_tokens(*arguments: Any) -> int:
    """Runs `c4pipe tokens` with one worker; returns its status."""
    return run("tokens", *arguments, "--workers", 1, "--quiet")


def refusal(capsys: pytest.CaptureFixture[str], *command: Any) -> str:
    """Returns the one sentence with which a command ends that can't be done as it is given."""
    assert run(*command) == 2
    said = capsys.readouterr()
    assert said.out == ""
    (sentence,) = said.err.splitlines()
    assert sentence.startswith("c4pipe: ")
    return sentence


def heed_interrupts() -> None:
    """For a new process: Ctrl-C ends it, also if this one runs in a shell's background, where it is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
