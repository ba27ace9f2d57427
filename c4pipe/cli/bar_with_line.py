"""A bar of Rich with a line of text below it."""

from collections.abc import Iterable

from rich.console import RenderableType
from rich.progress import Progress
from rich.text import Text


class BarWithLine(Progress):
    """The bar.

    Attributes:
        below: the line; empty for none.
    """

    below = ""

    def get_renderables(self) -> Iterable[RenderableType]:
        """Yields the bar, and the line if there is one."""
        yield from super().get_renderables()
        if self.below:
            yield Text(self.below, no_wrap=True, overflow="ellipsis", style="yellow")
