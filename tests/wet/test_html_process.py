"""Text of HTML in a process of its own: hostile pages, limits, what is missing."""

import gc
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.wet import extraction, html
from c4pipe.wet.extraction import EXTRACTORS, choose_extraction, describe_extraction, find_extraction
from c4pipe.wet.html import ExtractedText, TextExtractor

PARAGRAPH = "The history of the town begins in the year 1240, when monks built a mill beside the river. " * 3
ARTICLE = (
    "<html><head><title>Town</title></head><body><nav><ul><li><a href=/>Home</a><li><a href=/b>Contact</a></ul></nav>"
    f"<main><article><h1>Town</h1><p>{PARAGRAPH}</p><ul><li>A mill</ul><img alt=Picture><p>{PARAGRAPH}</p></article>"
    "</main><footer><p>Copyright and imprint</p></footer><script>var x = 1;</script></body></html>"
)
HOSTILE = {
    "deep": b"<div>" * 1_000_000 + b"x",
    "entities": b"<p>" + b"&amp;&notit;&#x10FFFF;" * 500_000,
    "attributes": b"<div " + b" ".join(b"a%d=1" % number for number in range(100_000)) + b">x",
    "options": b"<select>" + b"<option>" * 400_000,
    "formatting": b"<b><i><p>" * 100_000 + b"x",
    "nul": bytes(1_000_000),
    "large": b"<br>" * 4_000_000,
}


def test_each_extractor_finds_its_text() -> None:
    texts = {}
    for name in EXTRACTORS:
        extracted = TextExtractor(find_extraction(name)).extract(ARTICLE.encode(), "")
        assert extracted
        assert extracted.is_valid
        texts[name] = [line.strip() for line in extracted.encoded.decode().splitlines() if line.strip()]
        assert PARAGRAPH.strip() in texts[name]
        assert "var x" not in extracted.encoded.decode()
        assert "Picture" not in texts[name]
    assert {"Home", "Contact", "A mill", "Copyright and imprint"} <= set(texts["all"])
    assert "Home" not in texts["main"] + texts["trafilatura"]


def test_the_text_is_that_of_resiliparse() -> None:
    from resiliparse.extract.html2text import extract_plain_text

    for name, is_main in (("all", False), ("main", True)):
        extracted = TextExtractor(find_extraction(name)).extract(ARTICLE.encode(), "utf-8")
        expected = extract_plain_text(ARTICLE, main_content=is_main, list_bullets=False, alt_texts=False)
        assert extracted == ExtractedText(expected.encode(), True)


def test_one_process_does_many_pages_and_ends_with_its_owner() -> None:
    extractor = TextExtractor(find_extraction("all"))
    numbers = [extractor.extract(b"<p>%d" % number, "") for number in range(100)]
    assert [each and each.encoded for each in numbers] == [b"%d" % number for number in range(100)]
    process = extractor._process
    assert process
    del extractor
    gc.collect()
    assert process.returncode == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("how", ["all", "trafilatura"])
def test_hostile_pages_are_limited_and_the_next_page_is_read(how: str, name: str) -> None:
    extractor = TextExtractor(find_extraction(how), cpu_seconds=0.5)
    extractor.extract(b"<p>warm", "")
    started = time.monotonic()
    extractor.extract(HOSTILE[name], "")
    assert time.monotonic() - started < 15
    assert extractor.extract(ARTICLE.encode(), "") is not None


def test_a_page_that_takes_too_long_has_no_text() -> None:
    extractor = TextExtractor(find_extraction("all"), cpu_seconds=0.2)
    assert extractor.extract(HOSTILE["attributes"], "") is None
    assert extractor.extract(b"<p>Hello", "") == ExtractedText(b"Hello", True)


def test_a_page_that_needs_too_much_memory_has_no_text(monkeypatch: pytest.MonkeyPatch) -> None:
    if sys.platform != "linux":
        pytest.skip("the limit is Linux' own")
    extractor = TextExtractor(find_extraction("all"), memory=400 * 1024**2)
    assert extractor.extract(HOSTILE["large"], "") is None
    assert extractor.extract(b"<p>Hello", "") == ExtractedText(b"Hello", True)


def test_a_process_that_was_killed_from_outside_is_started_again() -> None:
    extractor = TextExtractor(find_extraction("all"))
    assert extractor.extract(b"<p>One", "")
    assert extractor._process
    os.kill(extractor._process.pid, signal.SIGKILL)
    assert extractor.extract(b"<p>Two", "") == ExtractedText(b"Two", True)


def test_other_versions_on_a_worker_are_an_error() -> None:
    with pytest.raises(C4pipeError, match=r"'all: resiliparse 0\.1'.*: it has resiliparse "):
        TextExtractor("all: resiliparse 0.1").extract(b"<p>Hello", "")


def test_an_extraction_names_the_versions() -> None:
    assert find_extraction("main").startswith("main: resiliparse ")
    assert choose_extraction("wet", None) == ""
    assert choose_extraction("warc", None) == find_extraction("all")
    assert describe_extraction("main: resiliparse 2.0.1") == "the main content of its HTML (by resiliparse 2.0.1)"
    with pytest.raises(UsageError, match=r"--extract mian: .*did you mean .main"):
        choose_extraction("warc", "mian")
    with pytest.raises(UsageError, match="--extract main is for WARC files"):
        choose_extraction("wet", "main")


def test_a_missing_library_is_one_sentence(tmp_path: Path) -> None:
    code = "from c4pipe.wet.extraction import find_extraction; find_extraction('main')"
    hidden = "import importlib.metadata as m, sys; real = m.version\n"
    hidden += (
        "def version(name):\n    if name == 'resiliparse': raise m.PackageNotFoundError(name)\n    return real(name)\n"
    )
    outcome = subprocess.run(
        [sys.executable, "-c", f"{hidden}m.version = version\n{code}"], capture_output=True, text=True, check=False
    )
    expected = "WARC files need resiliparse to extract text by 'main': run pip install 'c4pipe[warc]'"
    assert outcome.stderr.splitlines()[-1] == f"c4pipe.errors.UsageError: {expected}"
    assert html.CPU_SECONDS > 5
    assert extraction.DEFAULT_EXTRACTOR in EXTRACTORS
