"""docs/gallery.md and its picture: what the recipes make of tests/data today."""

import json

import pytest

from scripts.make_gallery import MEASURED, PAGE, make_texts

pytestmark = pytest.mark.slow


def test_the_page_is_what_the_recipes_make_of_the_test_data() -> None:
    for path, text in make_texts(json.loads(MEASURED.read_text(encoding="utf-8"))).items():
        assert path.read_text(encoding="utf-8") == text, "run: python scripts/make_gallery.py"
    assert PAGE.stat().st_size <= 14_000
