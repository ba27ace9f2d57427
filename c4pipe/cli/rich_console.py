"""Extensions of Rich: a console on which no text is a command, and a bar with a line below it."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import Progress
from rich.segment import Segment
from rich.text import Text

from c4pipe.io.words import visible


class SafeConsole(Console):
    """Rich's console: Rich's own styles and cursor movements reach the terminal, codes in a text do not."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Yields the pieces of what is printed, each text of them safe to show."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control or text.isprintable() else Segment(visible(text, keep="\n"), style)


class BarWithLine(Progress):
    """A bar, and a line below it."""

    below = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yields the bar, and the line if there is one."""
        yield from super().get_renderables()
        if self.below:
            yield Text(self.below, no_wrap=True, overflow="ellipsis", style="yellow")
