"""The ratios of results.md as a picture, ratios.svg, which is drawn again whenever results.md is written."""

import math
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

FILE = Path(__file__).resolve().parent / "results.md"
PICTURE = FILE.with_name("ratios.svg")
RATIO = re.compile(
    r"^- (cpu|wall) of (\S+ / \S+), (at least|at most) ([\d.]+): (?:met|missed|NOT met), it is ([\d.]+)", re.MULTILINE
)
LEFT, WIDTH, STEP, SPACE = 270, 400, 22, 52  # SPACE is above the first bar of a panel


class Ratio(NamedTuple):
    """A ratio with a goal: what it is of, on which side of its goal it shall be, the goal and the value."""

    name: str
    side: str
    goal: float
    value: float


def ratios(text: str) -> list[Ratio]:
    """Returns the ratios with goals, given results.md. A ratio that two sections have is named with its section."""
    found: dict[str, Ratio] = {}
    for section in text.split("\n## ")[1:]:
        for figure, of, side, goal, value in RATIO.findall(section):
            name = of + ", seconds" * (figure == "wall")
            name += f", {section.partition(chr(10))[0]}" * (name in found)
            found[name] = Ratio(name, side, float(goal), float(value))
    return list(found.values())


def panel(title: str, top: int, shown: Sequence[Ratio], scale: Callable[[float], float]) -> str:
    """Returns a bar for each ratio, with a line for its goal; `scale` is from 0 on."""
    most = scale(max((max(each.goal, each.value) for each in shown), default=2.0)) * 1.05
    body = f'<text x="{LEFT}" y="{top - 12}" font-weight="bold">{title}</text>\n'
    for y, each in enumerate(shown):
        at = top + y * STEP
        length, goal = (max(0.0, WIDTH * scale(number) / most) for number in (each.value, each.goal))
        body += f'<text x="{LEFT - 8}" y="{at + 13}" text-anchor="end">{each.name}</text>'
        body += f'<rect x="{LEFT}" y="{at + 2}" width="{length:.1f}" height="14" fill="#1d4ed8"/>'
        body += f'<path d="M{LEFT + goal:.1f} {at}v18" stroke="#b45309" stroke-width="2"/>'
        body += f'<text x="{LEFT + WIDTH + 8}" y="{at + 13}">{each.value:.2f}, goal {each.goal:g}</text>\n'
    return body


def picture(text: str) -> str:
    """Returns the ratios as SVG, given results.md: those that shall be large, then those that shall be small."""
    found = ratios(text)
    large, small = ([each for each in found if each.side == side] for side in ("at least", "at most"))
    second = 2 * SPACE + STEP * len(large)
    height = second + STEP * len(small) + 14
    body = panel("the first divided by the second, logarithmic: longer bars are better", SPACE, large, math.log)
    body += panel("the first divided by the second: shorter bars are better", second, small, float)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" width="800" height="{height}">
<title>Ratios of results.md, with their goals as lines</title>
<rect width="800" height="{height}" fill="#fff"/>
<g font-family="sans-serif" font-size="12" fill="#333">
{body}</g>
</svg>
"""


def draw() -> None:
    """Writes the picture of results.md."""
    PICTURE.write_text(picture(FILE.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    draw()
