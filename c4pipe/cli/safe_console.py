"""A console on which no text is a command, wherever it comes from: tables, bars and lines alike."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from c4pipe.display.safe_text import visible


class SafeConsole(Console):
    """Rich's console. Only Rich's own styles and cursor movements reach the terminal, no codes of a text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yields the pieces of what is printed, each text of them safe to show."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(visible(text, keep="\n"), style)
