"""Writes docs/thresholds.svg: how many pages of the sample crawl have how many sentences, and which c4 keeps.

Run it again after a change to the sample crawl or to the rules of c4.
"""

import sys
import tempfile
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq

import c4pipe

ROOT = Path(__file__).resolve().parents[1]
_MOST = 12  # sentences; more are in the last column
_COLUMN, _HEIGHT, _LEFT, _TOP = 44, 180, 40, 60  # pixels
_KEPT, _DROPPED = "#0072b2", "#e69f00"  # colour-blind readers can tell these apart


def threshold_plot() -> str:
    """Returns the picture as SVG, from the sample crawl as recipe c4 annotates it."""
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder)
        c4pipe.clean_files(
            ROOT / "samples" / "crawl",
            work=target / "work",
            lists=ROOT / "samples" / "lists",
            annotate=target / "annotated",
            workers=1,
        )
        pages = pq.read_table(target / "annotated", columns=["few_sentences_number", "reason"]).to_pylist()
    counts: Counter[tuple[int, bool]] = Counter()
    for page in pages:
        if page["few_sentences_number"] is not None:
            counts[min(page["few_sentences_number"], _MOST), page["reason"] is None] += 1
    return _picture(counts)


def _picture(counts: Counter[tuple[int, bool]]) -> str:
    highest = max(counts[number, True] + counts[number, False] for number in range(_MOST + 1))
    base, width = _TOP + _HEIGHT, _LEFT + _COLUMN * (_MOST + 1) + 20
    parts = [
        f"<rect width='{width}' height='{base + 50}' fill='#fff'/>",
        _text(_LEFT, 20, "Pages of the sample crawl by number of sentences (few_sentences_number)", "start"),
        f"<rect x='{_LEFT}' y='32' width='12' height='12' fill='{_KEPT}'/>",
        _text(_LEFT + 18, 42, "c4 keeps them", "start"),
        f"<rect x='{_LEFT + 140}' y='32' width='12' height='12' fill='{_DROPPED}'/>",
        _text(_LEFT + 158, 42, "some rule of c4 drops them", "start"),
    ]
    for number in range(_MOST + 1):
        x, y = _LEFT + _COLUMN * number, float(base)
        for kept, colour in ((True, _KEPT), (False, _DROPPED)):
            height = _HEIGHT * 0.9 * counts[number, kept] / highest
            y -= height
            parts.append(f"<rect x='{x}' y='{y:.1f}' width='{_COLUMN - 6}' height='{height:.1f}' fill='{colour}'/>")
        total = counts[number, True] + counts[number, False]
        parts.append(_text(x + _COLUMN / 2 - 3, y - 4, str(total)))
        parts.append(_text(x + _COLUMN / 2 - 3, base + 18, f"{number}{' +' if number == _MOST else ''}"))
    for limit in (3, 5):
        x = _LEFT + _COLUMN * limit - 3
        parts.append(f"<path d='M{x} {_TOP} V{base}' stroke='#444' stroke-dasharray='4 3'/>")
        parts.append(_text(x, base + 38, f"at least {limit}"))
    frame = f"viewBox='0 0 {width} {base + 50}' width='{width}' height='{base + 50}'"
    style = "font-family='system-ui, sans-serif' font-size='13'"
    lines = "\n".join(parts)
    return f"<svg xmlns='http://www.w3.org/2000/svg' role='img' {frame} {style}>\n{lines}\n</svg>\n"


def _text(x: float, y: float, text: str, anchor: str = "middle") -> str:
    return f"<text x='{x:.1f}' y='{y:.1f}' text-anchor='{anchor}'>{text}</text>"


def main() -> int:
    """Writes the file."""
    (ROOT / "docs" / "thresholds.svg").write_text(threshold_plot(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
