"""Draws docs/near_duplicates.svg: how probable it is that two pages share a band, by their similarity.

python scripts/make_near_curve.py
"""

from pathlib import Path

from c4pipe.filters.corpus_rules import NearDuplicate
from c4pipe.recipes.presets import RECIPES

PLOT = Path(__file__).parents[1] / "docs" / "near_duplicates.svg"
_LEFT, _TOP, _WIDTH, _HEIGHT = 50, 15, 440, 240
_STEPS = 100


def share_a_band(similarity: float, bands: int, rows: int) -> float:
    """Returns the probability that two signatures have an equal band."""
    return float(1 - (1 - similarity**rows) ** bands)


def curve(bands: int, rows: int, least: float) -> str:
    """Returns the plot as SVG."""

    def place(similarity: float, probability: float) -> str:
        return f"{_LEFT + similarity * _WIDTH:.1f},{_TOP + (1 - probability) * _HEIGHT:.1f}"

    shares = [step / _STEPS for step in range(_STEPS + 1)]
    line = " ".join(place(share, share_a_band(share, bands, rows)) for share in shares)
    lines = ""
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        x, y = _LEFT + tick * _WIDTH, _TOP + (1 - tick) * _HEIGHT
        lines += f'<path d="M{_LEFT} {y:.1f}h{_WIDTH}" stroke="#ccc"/>'
        lines += f'<text x="{_LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{tick:g}</text>'
        lines += f'<text x="{x:.1f}" y="{_TOP + _HEIGHT + 18}" text-anchor="middle">{tick:g}</text>\n'
    limit = _LEFT + least * _WIDTH
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 520 310" width="520" height="310">
<title>Probability of an equal band by similarity: {bands} bands of {rows}</title>
<rect width="520" height="310" fill="#fff"/>
<g font-family="sans-serif" font-size="12" fill="#333">
{lines}<path d="M{limit:.1f} {_TOP}v{_HEIGHT}" stroke="#b45309" stroke-dasharray="4"/>
<text x="{limit - 6:.1f}" y="{_TOP + 14}" text-anchor="end">min_similarity = {least:g}</text>
<polyline points="{line}" fill="none" stroke="#1d4ed8" stroke-width="2"/>
<text x="{_LEFT + _WIDTH // 2}" y="303" text-anchor="middle">similarity of two pages (Jaccard, 5 words in a row)</text>
<text transform="translate(14 {_TOP + _HEIGHT // 2}) rotate(-90)" text-anchor="middle">compared with probability</text>
</g>
</svg>
"""


def plot() -> str:
    """Returns the plot for the recipe `fineweb`."""
    near = RECIPES["fineweb"].need(NearDuplicate).parameters
    return curve(near["bands"], near["rows"], near["min_similarity"])


if __name__ == "__main__":
    PLOT.write_text(plot(), encoding="utf-8")
