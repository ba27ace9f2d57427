"""Models, test sets and lists of URLs: downloads that continue, are checked and are converted."""

import gzip
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from c4pipe.cli import main
from c4pipe.errors import C4pipeError, UsageError
from c4pipe.filters.evaluation_overlap import read_evaluation_file
from c4pipe.io.lock import only_run
from c4pipe.lists import fetch_lists, pinned_lists
from c4pipe.lists.pinned_lists import PINNED_FILES, PinnedList, status_of_lists
from c4pipe.recipes.choose import choose_recipe, gather_lists, needed_lists
from tests.helpers.crawls import ROOT, files_of
from tests.helpers.full_disk import files_of_at_most
from tests.helpers.language_models import LABELS, WORDS, model_bytes
from tests.helpers.loopback import free_port
from tests.helpers.web import Web, serve

LARGE = b"".join(number.to_bytes(4, "big") for number in range(1 << 19))  # 2 MiB
MODEL = PinnedList(
    name="large",
    path="classifiers/large.bin",
    host="models.example.org",
    url="someone/large/resolve/0123abcd/model.bin",
    commit="0123abcd",
    sha256=hashlib.sha256(LARGE).hexdigest(),
    size=len(LARGE),
    licence="MIT",
    form="",
    users="",
)
UNPINNED = MODEL._replace(sha256="")


def pinned_of(name: str, data: bytes, form: str = "") -> PinnedList:
    digest = hashlib.sha256(data).hexdigest()
    return MODEL._replace(path=f"made/{name}", url=f"a/{name}", sha256=digest, size=len(data), form=form)


def part_of(folder: Path) -> Path:
    (path,) = folder.glob(".*.part")
    return path


def ranges(web: Web) -> list[str]:
    """Returns which bytes were asked for, request by request."""
    found = (re.search("(?i)^range: bytes=(.*)$", text, re.MULTILINE) for text in web.received)
    return [each[1].strip() if each else "all" for each in found]


def fetch(folder: Path, web: Web, *lists: PinnedList) -> list[str]:
    lines: list[str] = []
    fetch_lists.fetch(folder, web.url, lines.append, lists)
    return lines


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch_lists, "_NETWORK", fetch_lists._NETWORK._replace(first_pause=0.001))


@pytest.mark.parametrize("pinned", PINNED_FILES, ids=lambda pinned: pinned.path)
def test_a_row_of_the_table_is_consistent(pinned: PinnedList) -> None:
    assert pinned.commit in pinned.url
    assert re.fullmatch("[0-9a-f]{40}|", pinned.commit)
    assert re.fullmatch("[0-9a-f]{64}|", pinned.sha256)
    assert pinned.commit or pinned.sha256
    assert pinned.sha256 or not pinned.form, "convert trusts its input"
    assert pinned.size > 0
    assert pinned.licence
    assert fetch_lists._address(pinned, None) == f"https://{pinned.host}/{pinned.url}"
    same = [
        each
        for each in PINNED_FILES
        if each.path == pinned.path or (each.kind, each.name) == (pinned.kind, pinned.name)
    ]
    assert same == [pinned]
    assert len(f"  own file       {pinned.path:42} 1.23 GB {pinned.licence}") <= 80


def test_a_large_download_goes_on_where_it_was_cut(tmp_path: Path) -> None:
    """Each try gets half of the rest; three in a row without a byte end the command."""
    with serve({MODEL.url: LARGE}, lambda path, number: "cut" if number < 2 else "503") as web:
        with pytest.raises(C4pipeError, match=r"\(HTTP status 503, 3 times in a row\): check the network"):
            fetch(tmp_path, web, MODEL)
        assert part_of(tmp_path).read_bytes() == LARGE[: 3 * len(LARGE) // 4]
        web.script, web.received = (lambda path, number: None), []
        lines = fetch(tmp_path, web, MODEL)
        assert ranges(web) == ["0-0", f"{3 * len(LARGE) // 4}-"]
        assert lines == ["classifiers/large.bin: 2.10 MB, licence MIT", "fetched classifiers/large.bin (1 of 1)"]
    assert files_of(tmp_path) == {MODEL.path: LARGE}


def test_a_download_goes_on_behind_a_redirect(tmp_path: Path) -> None:
    """The Hub redirects to another server, each time with another signature."""
    with serve({"x": LARGE}, lambda path, number: "cut" if number < 2 else "503") as cdn, serve({}) as hub:
        hub.redirects[MODEL.url] = f"{cdn.url}/x"
        with pytest.raises(C4pipeError, match=f"Can't fetch {hub.url}/{MODEL.url} "):
            fetch(tmp_path, hub, MODEL)
        left = part_of(tmp_path).stat().st_size
        assert 0 < left < len(LARGE)
        cdn.script, cdn.received = (lambda path, number: None), []
        fetch(tmp_path, hub, MODEL)
        assert ranges(cdn) == ["0-0", f"{left}-"]
    assert files_of(tmp_path) == {MODEL.path: LARGE}


@pytest.mark.parametrize("server", ["ranges", "no ranges"])
def test_a_large_download_goes_on_after_a_kill(server: str, tmp_path: Path) -> None:
    code = (
        "import json, sys; from pathlib import Path; from c4pipe.lists.fetch_lists import fetch;"
        "from c4pipe.lists.pinned_lists import PinnedList;"
        "fetch(Path(sys.argv[1]), sys.argv[2], print, [PinnedList(**json.loads(sys.argv[3]))])"
    )
    with serve({MODEL.url: LARGE}, lambda path, number: "stall" if number == 0 else server) as web:
        command = [sys.executable, "-c", code, str(tmp_path), web.url, json.dumps(MODEL._asdict())]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
            until = time.monotonic() + 60
            while not any(path.stat().st_size for path in tmp_path.glob(".*.part")) and time.monotonic() < until:
                time.sleep(0.01)
            process.kill()
        assert 0 < part_of(tmp_path).stat().st_size < len(LARGE)
        fetch(tmp_path, web, MODEL)
    assert files_of(tmp_path) == {MODEL.path: LARGE}


@pytest.mark.parametrize("left", [LARGE[:999], LARGE, LARGE + b"more", b"other" * 1000], ids=len)
def test_what_is_left_of_a_download(left: bytes, tmp_path: Path) -> None:
    """A good part is completed; a bad one is an error, after which the same command begins anew."""
    with serve({MODEL.url: LARGE}) as web:
        part = tmp_path / f".{hashlib.sha256(f'{web.url}/{MODEL.url}'.encode()).hexdigest()[:16]}.part"
        part.write_bytes(left)
        if not LARGE.startswith(left):
            with pytest.raises(C4pipeError, match=r"SHA-256 of its [\d,]+ bytes is .*…, pinned .*…\)"):
                fetch(tmp_path, web, MODEL)
            assert not part.exists()
        fetch(tmp_path, web, MODEL)
    assert files_of(tmp_path) == {MODEL.path: LARGE}


def test_a_part_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(LARGE[:5])
    folder = tmp_path / "lists"
    folder.mkdir()
    with serve({MODEL.url: LARGE}) as web:
        name = hashlib.sha256(f"{web.url}/{MODEL.url}".encode()).hexdigest()[:16]
        (folder / f".{name}.part").symlink_to(victim)
        fetch(folder, web, MODEL)
    assert victim.read_bytes() == LARGE[:5]
    assert files_of(folder) == {MODEL.path: LARGE}


def test_the_first_download_decides_where_no_digest_is_pinned(tmp_path: Path) -> None:
    with serve({UNPINNED.url: LARGE}) as web:
        fetch(tmp_path, web, UNPINNED)
        assert status_of_lists(tmp_path, [UNPINNED]) == [(UNPINNED, "first download")]
        record = UNPINNED.record(tmp_path)
        digest = hashlib.sha256(LARGE).hexdigest()
        assert record.read_text() == f"{digest}  large.bin\n{digest}  {UNPINNED.url}\n"
        (tmp_path / UNPINNED.path).write_bytes(b"damaged")
        assert status_of_lists(tmp_path, [UNPINNED]) == [(UNPINNED, "other content")]
        fetch(tmp_path, web, UNPINNED)
        assert (tmp_path / UNPINNED.path).read_bytes() == LARGE

        (tmp_path / UNPINNED.path).unlink()
        web.files[UNPINNED.url] = b"new" + LARGE
        with pytest.raises(C4pipeError) as caught:
            fetch(tmp_path, web, UNPINNED)
        assert f"{web.url}/{UNPINNED.url} has changed since its first download (SHA-256 of its 2,097,155" in str(
            caught.value
        )
        assert f"recorded {digest[:12]}…): use a copy of the first one, or delete {record} to" in str(caught.value)
        assert not (tmp_path / UNPINNED.path).exists()
        record.unlink()
        fetch(tmp_path, web, UNPINNED)
        assert (tmp_path / UNPINNED.path).read_bytes() == b"new" + LARGE


def test_two_files_of_one_archive_are_one_download(tmp_path: Path) -> None:
    domains = "".join(f"{hashlib.sha256(bytes([n % 251])).hexdigest()}{n}.example\n" for n in range(40_000)).encode()
    members = {"domains": domains, "urls": b"http://example.org/a\n"}
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    data = packed.getvalue()
    lists = [pinned_of("a.tar", data, f"member {name}")._replace(path=f"made/{name}") for name in members]
    assert len(data) > 1_000_000
    with serve({lists[0].url: data}) as web:
        fetch(tmp_path, web, *lists)
        assert ranges(web) == ["all", "0-0"]
        assert {name: (tmp_path / "made" / name).read_bytes() for name in members} == members
        assert [status for _, status in status_of_lists(tmp_path, lists)] == ["ok", "ok"]
        (tmp_path / "made" / "urls").write_bytes(b"http://example.org/b\n")
        fetch(tmp_path, web, *lists)
        assert (tmp_path / "made" / "urls").read_bytes() == members["urls"]
    assert not list(tmp_path.glob(".*"))


def parquet_of(rows: Sequence[dict[str, Any]]) -> bytes:
    sink = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(list(rows)), sink)
    return sink.getvalue()


def lines_of(rows: Sequence[dict[str, Any]]) -> bytes:
    return "".join(f"{json.dumps(row)}\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("name", "form", "data"),
    [
        ("t.jsonl", "examples question answer", lines_of([{"question": "Wie?", "answer": "Sö."}])),
        ("t.jsonl.gz", "examples prompt done", gzip.compress(lines_of([{"prompt": "Wie?", "done": "Sö.", "test": 1}]))),
        ("t.jsonl", "examples ctx endings label", lines_of([{"ctx": "Wie?", "endings": ["No.", "Sö."], "label": 1}])),
        (
            "t.parquet",
            "examples question choices answer",
            parquet_of([{"question": "Wie?", "subject": "x", "choices": ["No.", "Sö."], "answer": 1}]),
        ),
        (
            "t.parquet",
            "examples question choices answerKey",
            parquet_of(
                [{"question": "Wie?", "choices": {"text": ["Sö.", "No."], "label": ["B", "A"]}, "answerKey": "B"}]
            ),
        ),
    ],
)
def test_a_test_set_has_question_and_answer_apart(name: str, form: str, data: bytes, tmp_path: Path) -> None:
    pinned = pinned_of(name, data, form)._replace(path="evaluation/made.jsonl")
    with serve({pinned.url: data}) as web:
        fetch(tmp_path, web, pinned)
    path = tmp_path / pinned.path
    assert path.read_text("utf-8") == '{"question": "Wie?", "answer": "Sö."}\n'
    assert list(read_evaluation_file(path, ["question", "answer"])) == [(1, (b"wie", "sö".encode()))]
    assert status_of_lists(tmp_path, [pinned]) == [(pinned, "ok")]


def test_files_of_several_hosts_from_one_mirror(tmp_path: Path) -> None:
    """A mirror has each file at the path of its own host."""
    lists = [pinned_of(f"{n}", b"%d" % n)._replace(host=f"h{n}.example.org", url=f"o/r/{n}") for n in range(3)]
    with serve({"cache/o/r/0": b"0", "cache/o/r/1": b"1"}) as web:
        with pytest.raises(C4pipeError, match=r"/cache/o/r/2 \(HTTP status 404 .*`--source URL`"):
            fetch_lists.fetch(tmp_path, f"{web.url}/cache/", lists=lists)
        assert [status for _, status in status_of_lists(tmp_path, lists)] == ["ok", "ok", "missing"]


@pytest.mark.parametrize("pinned", [MODEL, UNPINNED._replace(path="evaluation/gsm8k.jsonl")])
def test_a_file_of_the_user_stays(pinned: PinnedList, tmp_path: Path) -> None:
    path = tmp_path / pinned.path
    path.parent.mkdir()
    path.write_bytes(b"mine")
    assert status_of_lists(tmp_path, [pinned]) == [(pinned, "own file")]
    with serve({pinned.url: LARGE}) as web:
        assert "not fetched" in fetch(tmp_path, web, pinned)[0]
    assert files_of(tmp_path) == {pinned.path: b"mine"}


def test_own_lists_of_blocked_urls_stay(tmp_path: Path) -> None:
    recipe = choose_recipe(ROOT / "examples/recipes/fineweb_urls.toml")
    own = {"blocked/adult/domains": b"example.org\n", "blocked/public_suffix_list.dat": b"org\n"}
    for path, data in own.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_bytes(data)
    statuses = {pinned.path: status for pinned, status in status_of_lists(tmp_path, needed_lists(recipe))}
    assert statuses == {
        "blocked/datatrove/domains": "own file",
        "blocked/datatrove/urls": "missing",
        "blocked/datatrove/banned_words.txt": "missing",
        "blocked/datatrove/soft_banned_words.txt": "missing",
        "blocked/datatrove/banned_subwords.txt": "missing",
        "blocked/public_suffix_list.dat": "own file",
    }
    stay = [pinned for pinned in needed_lists(recipe) if statuses[pinned.path] == "own file"]
    lines: list[str] = []
    assert fetch_lists.fetch(tmp_path, None, lines.append, stay) == 0
    assert lines == [
        f"not fetched: {pinned.path}, as there is a file of yours: move it away for this one" for pinned in stay
    ]
    assert files_of(tmp_path) == own


@pytest.mark.languages
def test_languages_of_a_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["lists", "show", "--lists", str(tmp_path), "--recipe", "fineweb-2", "--languages", "tha_Thai"]
    assert main.main([*command, "--language-model", "glotlid"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "  missing        language_models/glotlid.bin                1.69 GB Apache-2.0"
    ]


@pytest.mark.parametrize(
    ("recipe", "paths"),
    [
        ("fineweb", ["blocked/datatrove/domains", "language_models/lid.176.bin"]),
        pytest.param("fineweb-2", ["language_models/glotlid.bin"], marks=pytest.mark.languages),
        (ROOT / "examples/recipes/dclm_baseline.toml", ["classifiers/dclm.bin", "language_models/lid.176.bin"]),
        ("c4", ["ldnoobw/en.25e679f0"]),
        ("dolma-c4", ["ldnoobw/en.5faf2ba4", "language_models/lid.176.bin"]),
    ],
)
def test_a_recipe_gets_what_its_authors_used(recipe: str | Path, paths: list[str]) -> None:
    found = [pinned.path for pinned in needed_lists(choose_recipe(recipe))]
    assert [path for path in found if path in paths or not path.startswith("blocked/")] == paths


def test_names_options_and_licences(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    """What a user sees: terms before the download, the options that use the files, one sentence for a wrong name."""
    model = model_bytes(WORDS, LABELS)
    lists = (
        pinned_of("x", model)._replace(name="free", path="classifiers/free.bin", licence="CC-BY-NC-SA-4.0"),
        pinned_of("x", model)._replace(name="two", path="language_models/two.bin", licence="unknown"),
        pinned_of("y", lines_of([{"q": "a", "a": "b"}]), "examples q a")._replace(name="t", path="evaluation/t.jsonl"),
    )
    monkeypatch.setattr(pinned_lists, "PINNED_FILES", lists)
    with serve({"a/x": model, "a/y": lines_of([{"q": "a", "a": "b"}])}) as web:
        options = ["--classifier", "free", "--language-model", "two", "--evaluation", "t", "--source", web.url]
        assert main.main(["lists", "fetch", "--lists", str(tmp_path), *options]) == 0
    printed = capsys.readouterr()
    path = tmp_path / "evaluation" / "FILE"
    assert " ".join(printed.out.split()) == (
        f"3 files downloaded, 0 already present: {tmp_path} "
        "to use free.bin: --score NAME=FILE, or model = 'FILE' in a recipe file "
        "to use two.bin: --language-model FILE "
        f"to use t.jsonl: c4pipe overlap CORPUS --against {path}, or the rule evaluation_overlap"
    )
    assert printed.err.splitlines() == [
        "classifiers/free.bin: 363 B, licence CC-BY-NC-SA-4.0, which forbids commercial use",
        "fetched classifiers/free.bin (1 of 3)",
        "language_models/two.bin: 363 B, licence unknown: read the terms on the page of its publisher",
        "fetched language_models/two.bin (2 of 3)",
        "fetched evaluation/t.jsonl (3 of 3)",
    ]
    assert main.main(["lists", "show", "--lists", str(tmp_path)]) == 0
    assert capsys.readouterr().out.splitlines()[1:2] == [
        "  ok             classifiers/free.bin                         363 B CC-BY-NC-SA-4.0"
    ]
    recipe = choose_recipe("noblocklist", ["eng_Latn"], "two.bin")
    found = gather_lists(recipe, tmp_path, (), "two.bin").language_model
    assert found
    assert found.path == str(tmp_path / "language_models/two.bin")
    monkeypatch.chdir(tmp_path)
    Path("two.bin").write_bytes(model)  # a path comes first
    found = gather_lists(recipe, tmp_path, (), "two.bin").language_model
    assert found
    assert found.path == str(tmp_path / "two.bin")


def test_a_full_disk_and_another_run(tmp_path: Path) -> None:
    with serve({MODEL.url: LARGE}) as web:
        with files_of_at_most(1 << 20), pytest.raises(C4pipeError, match=r"\): make room or change the folder\.$"):
            fetch(tmp_path, web, MODEL)
        assert part_of(tmp_path).stat().st_size <= 1 << 20
        with only_run(tmp_path), pytest.raises(UsageError, match=r"another run of c4pipe .* wait until it ends"):
            fetch(tmp_path, web, MODEL)
        fetch(tmp_path, web, MODEL)
    assert files_of(tmp_path) == {MODEL.path: LARGE}


def test_a_mirror_that_nobody_runs(tmp_path: Path) -> None:
    with pytest.raises(C4pipeError, match=r"Connection refused, 3 times in a row\): check the network, name a mirror"):
        fetch_lists.fetch(tmp_path, f"http://127.0.0.1:{free_port()}", lists=[MODEL])
    assert not list(tmp_path.iterdir())
