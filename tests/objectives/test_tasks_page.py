"""The examples of supervised tasks in docs/objectives.md run, and print what the page says."""

import io
from contextlib import redirect_stdout
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from tests.docs.not_run import NOT_RUN
from tests.helpers.doc_examples import expected_lines, python_blocks

PAGE = Path(__file__).parents[2] / "docs" / "objectives.md"


def test_the_examples_of_the_page(
    tmp_path: Path, model_file: Path, small_corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "corpus-vocab").mkdir()
    (tmp_path / "corpus-vocab" / "spm.model").write_bytes(model_file.read_bytes())
    (tmp_path / "corpus").symlink_to(small_corpus)
    monkeypatch.chdir(tmp_path)
    skipped = [code for page, code, _ in NOT_RUN if page == "docs/objectives.md"]
    names: dict[str, object] = {}
    for block in python_blocks(PAGE, "Supervised tasks"):
        if not any(fnmatchcase(block, code) for code in skipped):
            printed = io.StringIO()
            with redirect_stdout(printed):
                exec(compile(block, PAGE.name, "exec"), names)
            assert printed.getvalue().splitlines() == expected_lines(block)
