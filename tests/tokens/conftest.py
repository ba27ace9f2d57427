"""What several modules of tests about tokens use."""

from collections.abc import Callable

import pytest

from tests.helpers.commands import run_tokens


@pytest.fixture
def error(capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs the command `tokens`, which must fail, and gives its sentence."""

    def message(*arguments: object, status: int = 2) -> str:
        assert run_tokens(*arguments) == status
        (line,) = capsys.readouterr().err.splitlines()
        return line

    return message
