"""The draft of the EU's summary: the template's fields in their order, the numbers of the corpus, and marked gaps."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.corpus.opened import open_corpus
from c4pipe.report.data import read_report_data
from c4pipe.report.eu_summary import MOST_OF_SME, DomainTotals, render_summary
from tests.helpers.reports import SAMPLES
from tests.helpers.warc import HTML_HEAD, response, write_warc

FIELDS = """\
1. General information
1.3. Modalities, overall training data size and other characteristics
Modality
Training data size
Types of content
Latest date of data acquisition/collection for model training:
Description of the linguistic characteristics of the overall training data:
Other relevant characteristics of the overall training data:
2. List of data sources
2.1. Publicly available datasets
Have you used publicly available datasets to train the model?
If yes, specify the modality(ies) of the content covered by the datasets concerned:
List of large publicly available datasets:
General description of other publicly available datasets not listed above:
Additional comments (optional):
2.3. Data crawled and scraped from online sources
Were crawlers used by the provider or on behalf of?
If yes, specify crawler name(s)/identifier(s):
Purposes of the crawler(s):
General description of crawler behaviour:
Period of data collection:
Comprehensive description of the type of content and online sources crawled:
Type of modality covered:
Summary of the most relevant domain names crawled:
Additional comments (optional):
3. Data processing aspects
3.1. Respect of reservation of rights from text and data mining exception or limitation
Are you a Signatory to the Code of Practice for general-purpose AI models that includes commitments to respect \
reservations of rights from the TDM exception or limitation?
Describe the measures implemented before model training to respect reservations of rights from the TDM exception or \
limitation before and during data collection, including the opt-out protocols and solutions honoured by the provider \
or, as applicable, by third parties from which datasets have been obtained:
3.2. Removal of illegal content
General description of measures taken:
""".splitlines()
"""The names of the template of C(2025) 8311 final, Annex, for the sections that a corpus can fill."""


PERIOD = ["2024-02-21T00:00:00Z", "2024-03-05T00:00:00Z"]


@pytest.fixture(scope="module")
def crawl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The corpus of the sample crawl, whose files have names as Common Crawl gives them."""
    folder = tmp_path_factory.mktemp("crawl")
    for path in (SAMPLES / "crawl").iterdir():
        shutil.copy(path, folder / path.name.replace("SAMPLE-", "CC-MAIN-20240220211055-"))
    command = ["build", str(folder), "--lists", str(SAMPLES / "lists"), "--output", str(folder / "corpus"), "--quiet"]
    assert main.main([*command, "--workers", "1"]) == 0
    return folder / "corpus"


def render(corpus: Path, totals: DomainTotals, tokens: Any = (), opt_outs: Any = None) -> str:
    data = read_report_data(corpus)
    assert data
    return render_summary(open_corpus(corpus), data["profile"], totals, dict(tokens), opt_outs)


def part(text: str, field: str) -> str:
    """Returns what stands after the name of a field, up to the next name or heading."""
    return re.split(r"\n(?:\*\*|#)", text.partition(f"**{field}")[2])[0]


def test_the_fields_are_the_templates_in_its_order(crawl: Path) -> None:
    text = render(crawl, DomainTotals(1, ["example.com"], PERIOD))
    names = re.findall(r"^#{2,3} (.*)$|(?:^|\| )\*\*(.*?)\*\*", "## " + text.partition("\n## ")[2], re.MULTILINE)
    assert [heading or name for heading, name in names] == FIELDS
    assert "C(2025) 8311 final" in text
    assert "copies of the template of July 2025, C(2025) 5235" in text, "what could not be checked is said"
    assert "\n**" not in text.replace("\n\n**", ""), "each field is a paragraph of its own"


def test_common_crawl_is_a_public_dataset(crawl: Path) -> None:
    text = render(crawl, DomainTotals(1, ["example.com"], PERIOD))
    counts = json.loads((crawl / "manifest.json").read_text())["counts"]
    assert "☒ Yes" in part(text, "Have you used publicly available datasets")
    assert "Common Crawl, <https://commoncrawl.org>, crawled in 2024-02 (3 files)." in part(text, "List of large")
    assert f"of {counts['pages.read']:,} pages in all input files, {counts['pages.kept']:,} were kept" in text
    assert "☒ No, as far as this corpus goes" in part(text, "Were crawlers used")
    assert "none of the provider" in part(text, "If yes, specify crawler name(s)")
    assert "02/2024 to 03/2024" in part(text, "Period of data collection")
    assert f"{counts['pages.dropped.bad_words']} pages" in part(text, "General description of measures taken")
    assert f"{counts['bytes.kept']:,} bytes of text" in text


def test_a_warc_file_of_ones_own_is_crawled_data(tmp_path: Path) -> None:
    page = "<p>" + "The garden has a gate of old wood, and the path behind it leads to the sea. " * 9 + "</p>"
    refused = response("https://example.com/a", page, {**HTML_HEAD, "Content-Usage": "train-ai=n"})
    records = [refused, *(response(f"https://example.com/{n}", page + str(n)) for n in range(3))]
    warc, recipe = write_warc(tmp_path / "mine.warc.gz", records), tmp_path / "mine.toml"
    recipe.write_text('base = "unfiltered"\non = ["usage_refused"]\n')
    command = [
        "build",
        str(warc),
        "--from",
        "warc",
        "--usage",
        "--recipe",
        str(recipe),
        "--output",
        str(tmp_path / "c"),
    ]
    assert main.main([*command, "--workers", "1", "--quiet"]) == 0
    text = render(tmp_path / "c", DomainTotals(1, ["example.com"], PERIOD))
    assert part(text, "Have you used publicly available datasets to train the model?**").startswith(
        " `[to be filled in"
    )
    assert "warcinfo" in part(text, "If yes, specify crawler name(s)")
    for field in ("Purposes of the crawler(s)", "General description of crawler behaviour", "Were crawlers used"):
        assert "`[to be filled in: " in part(text, field)
    measures = part(text, "Describe the measures")
    assert 'refuses the usage "train-ai", by the column usage: 1 page.' in measures.replace("\\", "")


def test_rules_on_opt_outs_are_measures(tmp_path: Path) -> None:
    (tmp_path / "lists" / "blocked").mkdir(parents=True)
    (tmp_path / "lists" / "blocked" / "opt_outs").write_text("example.net\n")
    (tmp_path / "mine.toml").write_text('base = "unfiltered"\non = ["opted_out"]\n')
    command = ["build", str(SAMPLES / "crawl"), "--recipe", str(tmp_path / "mine.toml"), "--lists"]
    assert (
        main.main([*command, str(tmp_path / "lists"), "--output", str(tmp_path / "c"), "--workers", "1", "--quiet"])
        == 0
    )
    dropped = json.loads((tmp_path / "c" / "manifest.json").read_text())["counts"]["pages.dropped.opted_out"]
    assert dropped > 1
    said = part(render(tmp_path / "c", DomainTotals(0, [])), "Describe the measures")
    assert "no rule on" not in said
    assert f"is in a list of opt-outs: {dropped} pages.\n" in said


def test_texts_have_no_times_and_no_domains(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("The garden has a gate of old wood.")
    c4pipe.import_text(tmp_path / "a.txt", output=tmp_path / "c", workers=1)
    text = render(tmp_path / "c", DomainTotals(0, [], ["1970-01-01T00:00:00Z"]))
    assert "the corpus has no times" in part(text, "Period of data collection")
    assert "`[to be filled in: the languages: the corpus does not know" in part(text, "Description of the linguistic")
    assert "No page of this corpus has a host name. `[to be filled in" in part(text, "Summary of the most relevant")
    assert "1 document of text" in part(text, "Comprehensive description")


@pytest.mark.parametrize(
    ("domains", "top", "of_sme", "listed"),
    [(1, 1, 1, 1), (20, 2, 1, 2), (21, 3, 2, 3), (12_345, 1_235, 618, 1_000), (50_000_000, 5_000_000, 1_000, 1_000)],
)
def test_the_top_domains(sample_corpus: Path, domains: int, top: int, of_sme: int, listed: int) -> None:
    largest = [f"site{n}.example" for n in range(min(domains, MOST_OF_SME))]
    said = part(render(sample_corpus, DomainTotals(domains, largest)), "Summary of the most relevant")
    assert f"the first {top:,}, for such an enterprise the first {of_sme:,}." in said
    assert f" {domains:,} registered domain" in said
    assert re.findall(r"^\d+\. (.*)$", said, re.MULTILINE) == largest[:listed]
    assert (f"a link to a file with the first {top:,} rows" in said) == (top > listed)


@pytest.mark.parametrize(
    ("tokens", "words"),
    [
        (10**9 - 1, "less than 1 billion tokens"),
        (10**9, "1 billion to 10 trillion tokens"),
        (10**13, "more than 10 trillion tokens"),
    ],
)
def test_the_ranges_of_tokens(sample_corpus: Path, tokens: int, words: str) -> None:
    totals = {"en": {"train": {"documents": 1, "tokens": tokens - 1}, "validation": {"documents": 1, "tokens": 1}}}
    assert f"☒ Text | {tokens:,} tokens: {words}, " in render(sample_corpus, DomainTotals(0, []), totals)
    assert "c4pipe tokens counts them" in render(sample_corpus, DomainTotals(0, []))
