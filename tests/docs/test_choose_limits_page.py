"""docs/choose_limits.md: its picture is that of the sample crawl, and its recipe is the file that it names."""

from scripts.make_threshold_plot import threshold_plot
from tests.helpers.documents import ROOT, code_blocks, page


def test_the_picture_is_that_of_the_sample_crawl() -> None:
    assert (ROOT / "docs" / "thresholds.svg").read_text(encoding="utf-8") == threshold_plot()


def test_the_recipe_is_the_file() -> None:
    (shown,) = code_blocks(page("docs/choose_limits.md"), "toml")
    file = (ROOT / "examples" / "recipes" / "five_sentences.toml").read_text(encoding="utf-8")
    assert file.partition("\n")[2] == shown
