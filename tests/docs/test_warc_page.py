"""docs/warc.md against the code: the kinds of records, and the extractors."""

from c4pipe.wet.extraction import EXTRACTORS
from c4pipe.wet.warc import SKIPPED
from tests.helpers.documents import page, section, table_rows

PAGE = page("docs/warc.md")


def test_the_page_has_each_kind_of_record_as_the_code_words_it() -> None:
    rows = {cells[0].strip("`"): cells[1] for cells in table_rows(section(PAGE, "What is a page")) if "`" in cells[0]}
    assert rows == SKIPPED


def test_the_page_has_each_extractor_with_its_extra() -> None:
    rows = {
        cells[0].strip("-").partition(" ")[0].strip("`"): cells[-1] for cells in table_rows(section(PAGE, "Which text"))
    }
    rows = {name: needs for name, needs in rows.items() if "c4pipe" in needs}
    assert rows == {name: f"`c4pipe[{extra}]`" for name, (extra, _) in EXTRACTORS.items()}
