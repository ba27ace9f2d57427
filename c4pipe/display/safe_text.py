"""Text that is safe to show: on a terminal, and in a page for a browser.

Text of web pages, URLs and file names can hold anything. A control character can move the cursor or change colours, a
direction mark can turn a line around, a lone surrogate can't be written at all.
"""

import json
from typing import Any

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
"""Stands for a character that can't be shown."""

JOINERS = "\u200c\u200d"
"""The zero-width joiners, which the spelling of some scripts needs."""


def visible(text: str, keep: str = "") -> str:
    """Returns a text with every character that can be shown, and none that a terminal would obey.

    White space other than the space becomes a space. Any other character that Python does not call printable (control
    and format characters, surrogates, unassigned code points) becomes U+FFFD. The length stays the same.

    Args:
        text: any text.
        keep: characters that stay as they are, such as a newline or `JOINERS`.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() or each in keep else _stand_in(each) for each in text)


def safe_json(values: Any, indent: int | None = None) -> str:
    """Returns values as JSON that a terminal can show, and that means the same.

    A character that `visible` would replace is written as an escape such as `\\u202e`; all others stay readable.
    """
    text = json.dumps(values, indent=indent, ensure_ascii=False)
    return "\n".join(line if line.isprintable() else _escape_line(line) for line in text.split("\n"))


def _escape_line(line: str) -> str:
    return "".join(each if each.isprintable() else _escape(each) for each in line)


def _escape(character: str) -> str:
    """Returns a character as the escapes of JSON: one, or two beyond U+FFFF."""
    units = character.encode("utf-16-be", "surrogatepass").hex()
    return "".join(f"\\u{units[start : start + 4]}" for start in range(0, len(units), 4))


def _stand_in(character: str) -> str:
    return " " if character.isspace() else REPLACEMENT
