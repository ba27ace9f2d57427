"""The figures of vocabularies as a picture."""

from collections.abc import Sequence
from html import escape

from c4pipe.vocab.quality import Figures

# Colour-blind readers can tell these apart, too (Okabe and Ito's palette).
_COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9")
_LETTER, _BARS, _BAR, _GAP = 8, 460, 16, 14  # pixels: a letter of a label, the longest bar, a bar's height, a gap


def quality_picture(figures: Sequence[Figures]) -> str:
    """Returns an SVG picture: characters per token as bars, one for each source and vocabulary."""
    vocabularies = list(dict.fromkeys(each.vocabulary for each in figures))
    sources = list(dict.fromkeys(each.source for each in figures))
    colours = {name: _COLOURS[n % len(_COLOURS)] for n, name in enumerate(vocabularies)}
    top = 40 + 20 * len(vocabularies)
    height = top + sum(_BAR * sum(each.source == source for each in figures) + _GAP for source in sources)
    most = max(each.characters_per_token for each in figures) or 1
    left = 20 + _LETTER * max(map(len, sources))
    parts = [_text(0, 16, "Characters per token on held-out pages (more is better)", "font-weight='bold'")]
    for n, name in enumerate(vocabularies):
        parts += [_box(0, 28 + 20 * n, 12, 12, colours[name]), _text(20, 38 + 20 * n, name)]
    y = top
    for source in sources:
        bars = [each for each in figures if each.source == source]
        parts.append(_text(left - 10, y + _BAR * len(bars) / 2 + 4, source, "text-anchor='end'"))
        for each in bars:
            width = _BARS * each.characters_per_token / most
            parts.append(_box(left, y, width, _BAR - 2, colours[each.vocabulary]))
            parts.append(_text(left + width + 6, y + 12, f"{each.characters_per_token:.2f}"))
            y += _BAR
        y += _GAP
    width_of_all = left + _BARS + 64
    frame = f"viewBox='-12 -8 {width_of_all} {height + 16}' width='{width_of_all}' height='{height + 16}'"
    style = "font-family='system-ui, sans-serif' font-size='13'"
    background = f"<rect x='-12' y='-8' width='{width_of_all}' height='{height + 16}' fill='#fff'/>"
    lines = "\n".join([background, *parts])
    return f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {frame} {style}>\n{lines}\n</svg>\n"


def _box(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f"<rect x='{x:.1f}' y='{y:.1f}' width='{width:.1f}' height='{height:.1f}' fill='{colour}'/>"


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' {more}>{escape(text)}</text>"
