"""What a view looks like on a terminal."""

import io

from rich.console import Console, RenderableType


def printed(view: RenderableType, width: int = 80, colours: bool = False) -> str:
    """Returns what a view prints on a terminal of that width, without white space at the ends of lines."""
    file = io.StringIO()
    Console(file=file, width=width, force_terminal=colours, color_system="standard" if colours else None).print(view)
    return "\n".join(line.rstrip() for line in file.getvalue().splitlines())
