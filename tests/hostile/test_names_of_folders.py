"""Folders and files with names that a library could take for something else than a name, such as a URI or a pattern."""

import ast
import shutil
from pathlib import Path

import pytest

import c4pipe
from c4pipe.cli import main
from c4pipe.read import documents
from tests.helpers.crawls import ROOT, SAMPLES
from tests.helpers.web import serve

NAMES = ("run-10:00", "s3:x", "a%20b #1?", "~t[0-9]*", "-dash", "\u202f\u3000\u00ad\ue000")


def run(*arguments: str) -> None:
    assert main.main([*arguments, "--quiet", "--workers=1"]) == 0, arguments


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_a_folder_of_any_name_is_written_and_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative: an absolute path is never taken for a URI."""
    monkeypatch.chdir(tmp_path)
    corpus = f"./{name}" if name[0] == "-" else name
    Path("crawl").mkdir()
    shutil.copy(SAMPLES[0], f"crawl/{name}.warc.wet.gz")
    Path(f"{name}.toml").write_text('base = "unfiltered"')
    options = (f"--recipe={name}.toml", "--keep-dropped=all", f"--annotate={name}.notes")
    run("build", "crawl", f"--output={name}", *options)
    run("report", corpus)
    assert len(list(documents(corpus))) >= 20
    run("vocab", f"{corpus}/en", "--size=200", f"--output={corpus}/vocabulary")
    run("tokens", corpus, "--vocab", f"{corpus}/vocabulary", "--budget-subset=100")
    run("tokens", corpus, "--vocab", f"{corpus}/vocabulary", "--format=megatron", f"--output={name}.tokens")
    assert main.main(["tokens", f"./{name}.tokens/c4-en-train", "--find=0"]) == 0
    assert main.main(["diff", corpus, corpus]) == 0
    assert main.main(["explain", corpus, "--url", next(documents(corpus))["url"]]) == 0
    examples = ROOT / "samples" / "lists" / "evaluation" / "questions.jsonl"
    run("overlap", corpus, "--against", f"{examples}", f"--output={corpus}/matches.parquet")
    shutil.copy(next(Path(name).glob("en/*train*")), Path(name, "x.parquet"))
    run("import", f"{corpus}/x.parquet", f"--output={corpus}/imported")
    run("overlap", corpus, "--against", f"{corpus}/x.parquet")
    run("dedup", f"{corpus}/_work", f"--output={corpus}/again")


def test_urls_of_any_name_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    pages = SAMPLES[0].read_bytes()
    with serve({"a%20(1)~.warc.wet.gz?Signature=b%2Fc": pages, "%E2%80%AFb.warc.wet.gz": pages}) as web:
        urls = [f"{web.url}/a%20(1)~.warc.wet.gz?Signature=b%2Fc", f"{web.url}/\u202fb.warc.wet.gz"]
        run("build", *urls, "--output=corpus", "--recipe=unfiltered")
        assert "Signature" not in Path("corpus/manifest.json").read_text()
        (shard,) = Path("corpus/en").glob("*train*")
        web.files["a(1).parquet?download=true"] = shard.read_bytes()
        run("import", f"{web.url}/a(1).parquet?download=true", "--output=imported")
    assert len(list(documents("imported"))) == len(list(documents("corpus"))) >= 20


def test_arrow_gets_no_path_of_a_parquet_file() -> None:
    """It takes a path for a URI, if it looks like one. Only one module opens files for it."""
    opens = set()
    for path in Path(c4pipe.__file__).parent.rglob("*.py"):
        nodes = list(ast.walk(ast.parse(path.read_text())))
        calls = {ast.unparse(node.func) for node in nodes if isinstance(node, ast.Call)}
        if any(call.startswith("pq.") and not call.startswith("pq.ParquetSchema") for call in calls):
            opens.add(path.name)
        names = [alias for node in nodes if isinstance(node, ast.Import | ast.ImportFrom) for alias in node.names]
        assert {alias.asname for alias in names if alias.name == "pyarrow.parquet"} <= {"pq"}, path
        assert not {alias.name for alias in names} & {"parquet", "dataset", "pyarrow.dataset"}, path
    assert opens == {"parquet_footer.py"}
