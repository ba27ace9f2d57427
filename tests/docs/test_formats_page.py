"""docs/formats.md against the files of a corpus."""

import json
import re
import shutil
from pathlib import Path

import pyarrow.parquet as pq

from c4pipe.clean import work_folder
from c4pipe.clean.annotated_folder import ANNOTATED_KEY, FILES_LIST
from c4pipe.clean.work_file import WORK_FILE_VERSION as WORK_VERSION
from c4pipe.clean.work_file import WORK_SCHEMA
from c4pipe.cli import main
from c4pipe.corpus import manifest
from c4pipe.corpus.formats.shard_format import CORPUS_SCHEMA
from c4pipe.filters.rules import RULES
from c4pipe.wet.damage import DAMAGE
from tests.helpers.documents import ROOT, first_quotes, page, quoted, section, table_rows

PAGE = page("docs/formats.md")


def counter_patterns() -> list[re.Pattern[str]]:
    names = first_quotes(section(PAGE, "Counters"))
    rules, kinds = "|".join(RULES), "|".join(DAMAGE)
    marks = {"<rule>": f"(?:{rules})", "<kind>": f"(?:{kinds})", "<language>": r"[a-z-]+"}
    parts = [re.split("(<rule>|<kind>|<language>)", name) for name in names]
    return [re.compile("".join(marks.get(part) or re.escape(part) for part in each)) for each in parts]


def test_each_counter_is_described(sample_corpus: Path) -> None:
    counts = json.loads((sample_corpus / manifest.MANIFEST).read_text())["counts"]
    patterns = counter_patterns()
    assert [name for name in counts if not any(each.fullmatch(name) for each in patterns)] == []
    names = {*counts, "pages.cleaned"}  # the last in work files only
    assert [each.pattern for each in patterns if not any(map(each.fullmatch, names))] == []


def test_each_field_of_the_manifest_is_described(sample_corpus: Path) -> None:
    values = json.loads((sample_corpus / manifest.MANIFEST).read_text())
    text = section(PAGE, "manifest.json")
    assert first_quotes(text) == set(values)
    inner = {*values["shards"][0], *values["inputs"][0]}
    assert [field for field in inner if f"`{field}`" not in text] == []
    assert f"| `version` | of this layout: {values['version']}." in text


def test_each_column_is_described() -> None:
    work, _, rest = PAGE.partition("\n## Shards\n")
    for text, schema in ((work, WORK_SCHEMA), (rest.partition("\n## manifest.json\n")[0], CORPUS_SCHEMA)):
        types = {quoted(cells[0])[0]: cells[1] for cells in table_rows(text) if len(cells) == 3 and quoted(cells[0])}
        columns = {f.name: re.sub(r"list<\w+: (\w+)>", r"list of \1", str(f.type)) for f in schema}
        assert types == columns
        assert list(types) == schema.names


def test_each_field_of_a_work_file_is_described(sample_corpus: Path) -> None:
    path = next((sample_corpus / work_folder.WORK_FOLDER).glob("*.parquet"))
    header = json.loads(pq.read_metadata(path).metadata[b"c4pipe"])
    text = PAGE.partition("`c4pipe`, with a JSON object:")[2].partition("\n## ")[0]
    assert first_quotes(text) == set(header)
    assert f"| `version` | of this layout: {WORK_VERSION}." in text


def test_each_column_and_field_of_annotated_pages_is_described(tmp_path: Path) -> None:
    crawl, lists = ROOT / "samples" / "crawl", ROOT / "samples" / "lists"
    folders = ["--work", str(tmp_path / "work"), "--annotate", str(tmp_path / "pages"), "--language-labels", "2"]
    assert main.main(["clean", str(crawl), "--lists", str(lists), *folders, "--workers", "1", "--quiet"]) == 0
    text = section(PAGE, "Annotated pages")
    rows = {quoted(cells[0])[0]: cells[1] for cells in table_rows(text) if len(cells) == 3 and quoted(cells[0])}
    table = pq.read_table(tmp_path / "pages")
    kinds = ("_fired", "_number", "_lines")
    for field in table.schema:
        name = next((f"<rule>{kind}" for kind in kinds if field.name.endswith(kind)), field.name)
        if name != "language_labels":
            assert str(field.type) in rows[name].split(" or ")
    assert set(rows) - set(table.column_names) == {f"<rule>{kind}" for kind in kinds}
    header = json.loads(pq.read_metadata(next((tmp_path / "pages").glob("*.parquet"))).metadata[ANNOTATED_KEY])
    names = {*header, *json.loads((tmp_path / "pages" / FILES_LIST).read_text())}
    assert [name for name in names if f"`{name}`" not in text] == []


def test_each_field_of_what_dedup_found_is_described(sample_corpus: Path) -> None:
    found = json.loads((sample_corpus / "dedup.json").read_text())
    text = section(PAGE, "dedup.json")
    assert found["repeats"]
    inner = {"near_duplicates", *found["repeats"][0]}
    assert [field for field in (*found, *inner) if f"`{field}`" not in text] == []
    assert f"`format` (`{found['format']}`), `version` ({found['version']})" in text


def test_each_field_of_the_report_is_described(sample_corpus: Path) -> None:
    report = json.loads((sample_corpus / "report.json").read_text())
    text = section(PAGE, "report.json")
    assert first_quotes(text) == set(report["profile"])
    assert [field for field in report if f"`{field}`" not in text] == []


def test_each_field_of_a_vocabulary_and_of_token_counts_is_described(small_corpus: Path, tmp_path: Path) -> None:
    corpus = shutil.copytree(small_corpus, tmp_path / "corpus")
    more = ["--output", str(tmp_path / "vocab"), "--size", "300", "--workers", "1", "--quiet"]
    assert main.main(["vocab", str(corpus / "en"), *more]) == 0
    vocabulary = json.loads((tmp_path / "vocab" / "vocab.json").read_text())
    text = section(PAGE, "vocab.json")
    assert first_quotes(text) == set(vocabulary)
    inner = {*vocabulary["sources"][0], *vocabulary["training_data"][0]}
    assert [field for field in inner if f"`{field}`" not in text] == []
    assert f"| `format`, `version` | `{vocabulary['format']}`, {vocabulary['version']} |" in text

    more = ["--vocab", str(tmp_path / "vocab"), "--budget-subset", "1000", "--workers", "1", "--quiet"]
    assert main.main(["tokens", str(corpus / "en"), *more]) == 0
    tokens = json.loads((corpus / "tokens.json").read_text())
    subset = json.loads((corpus / "subset-en-1000.json").read_text())
    for layout, length in (("megatron", []), ("npy", ["--length", "9"])):
        arguments = [*more[:2], "--format", layout, *length, "--output", str(tmp_path / layout), *more[-3:]]
        assert main.main(["tokens", str(corpus / "en"), *arguments]) == 0
        files = json.loads((tmp_path / layout / "manifest.json").read_text())
        names = {*files, *files["files"][0], *files["totals"]["en"]["train"]}
        text = section(PAGE, "Token files")
        assert [name for name in names if f"`{name}`" not in text] == []
        assert f"| `format`, `version` | `{files['format']}`, {files['version']} |" in text
    schema = pq.read_schema(tmp_path / "npy" / "c4-en-train_documents.parquet")
    rows = {quoted(cells[0])[0]: cells[1] for cells in table_rows(text) if len(cells) == 3 and quoted(cells[0])}
    assert rows == {field.name: str(field.type) for field in schema}

    for heading, values in (("tokens.json", tokens), ("subset-&lt;language&gt;-&lt;tokens&gt;.json", subset)):
        text = section(PAGE, heading)
        # only with --begin-of-document, --best-first, --plan
        assert first_quotes(text) - {"bos", "best_first", "plans"} == set(values)
        assert f"| `format`, `version` | `{values['format']}`, {values['version']} |" in text
