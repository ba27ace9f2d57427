"""What the tests of this folder share."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.helpers.commands import run_tokens


@pytest.fixture
def error(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command, which must fail, and gives its sentence."""

    def message(*arguments: Any, status: int = 2) -> str:
        assert run_tokens(*arguments) == status
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return message
