"""What is printed: text from outside is never a command to the terminal, whichever way it is printed."""

import io
from pathlib import Path

import pytest
from rich.progress import Progress as RichBar
from rich.table import Table
from rich.text import Text

from c4pipe.cli import main
from c4pipe.cli.console import printer
from c4pipe.report.data import read_report_data
from c4pipe.wet.page import Page
from tests.helpers.crawls import LISTS, sample_pages
from tests.helpers.wet import TIMESTAMP, wet_bytes

BAD = "a\x1b[2Jb\x9b31mc\u202ed"
SAFE = "a\ufffd[2Jb\ufffd31mc\ufffdd"


@pytest.mark.parametrize("made", [BAD, Text(BAD, "red"), Table(BAD, title=BAD)])
def test_a_console_prints_no_codes_of_a_text(made: object) -> None:
    file = io.StringIO()
    printer(file).print(made, markup=False)
    assert SAFE in file.getvalue()
    assert file.getvalue().replace("\n", "").isprintable()


def test_a_bar_has_no_codes_of_a_text() -> None:
    file = io.StringIO()
    with RichBar(console=printer(file)) as bar:
        bar.add_task(BAD, total=1)
    assert file.getvalue().startswith(SAFE[:8])
    assert file.getvalue().replace("\n", "").isprintable()


def test_files_that_people_read_have_no_codes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = f"This {BAD} is no sentence at all\n" * 3 + f"A line with {{ and {BAD} in it is here.\n"
    page = Page(f"http://example.com/{BAD}", TIMESTAMP, text)
    (tmp_path / "a.warc.wet.gz").write_bytes(wet_bytes([*sample_pages(), page]))
    output = tmp_path / BAD
    command = ["build", str(tmp_path / "a.warc.wet.gz"), "--lists", str(LISTS), "--workers", "1"]
    assert main.main([*command, "--output", str(output)]) == 0
    printed = capsys.readouterr()
    assert (printed.out + printed.err).replace("\n", "").isprintable()
    for name in ("dedup.json", "report.json", "report.html", "README.md", "manifest.json"):
        assert (output / name).read_text().replace("\n", "").isprintable(), name
    assert repr(BAD)[1:-1] in str(read_report_data(output))
