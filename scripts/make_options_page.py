"""Writes docs/options.md, the reference page of all commands and options, from the parser of the command line."""

from pathlib import Path

from c4pipe.cli.main import COMMANDS
from c4pipe.cli.options_page import options_page

PAGE = Path(__file__).resolve().parents[1] / "docs" / "options.md"

if __name__ == "__main__":
    PAGE.write_text(options_page(COMMANDS), encoding="utf-8")
