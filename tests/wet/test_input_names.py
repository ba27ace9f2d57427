"""The files that inputs name: none vanishes, whatever its name is and whatever links there are; none is read twice."""

import os
import shutil
from pathlib import Path

import pytest

from c4pipe.errors import UsageError
from c4pipe.wet.inputs import Selection, find_inputs
from tests.helpers.crawls import QUICK, SAMPLES
from tests.helpers.s3 import store_of


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copy(SAMPLES[0], tmp_path / "a.wet.gz")
    (tmp_path / "._a.wet.gz").write_bytes(b"\0\x05\x16\x07")  # macOS writes these on drives of other systems
    return tmp_path


def test_notes_of_macos_are_no_inputs(folder: Path) -> None:
    assert [file.name for file in find_inputs([str(folder)])] == ["a.wet.gz"]


def test_a_name_with_a_dot_is_refused_however_it_is_given(folder: Path) -> None:
    shutil.copy(SAMPLES[0], folder / ".hidden.wet.gz")
    (folder / "list.txt").write_text(f"{folder}/.hidden.wet.gz\n")
    for given in (f"{folder}", f"{folder}/.hidden.wet.gz", f"{folder}/.*.gz", f"@{folder}/list.txt"):
        with pytest.raises(UsageError, match=r"\.wet\.gz': its name begins with a dot, .*: rename it, or leave it out"):
            find_inputs([given])


def test_of_a_folder_in_a_store(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, {"crawl/x/a.wet": b"x", "crawl/x/._a.wet": b"x"}, monkeypatch) as store:
        assert [file.name for file in find_inputs(["s3://crawl/x/"], Selection(network=QUICK))] == ["a.wet"]
        store.put("crawl/x/.hidden.wet", b"x")
        with pytest.raises(UsageError, match="its name begins with a dot"):
            find_inputs(["s3://crawl/x/"], Selection(network=QUICK))


def test_a_folder_of_the_other_kind_is_named(folder: Path) -> None:
    with pytest.raises(UsageError, match=r"in .warc, also with .* after it: leave out --from warc, for it has WET"):
        find_inputs([str(folder)], kind="warc")
    with pytest.raises(UsageError, match=r"in .warc, also with .gz, .zst, .bz2 or .xz after it: it has 1 other file"):
        find_inputs([str(folder)], kind="robotstxt")
    (folder / "a.wet.gz").rename(folder / "a.warc.gz")
    with pytest.raises(UsageError, match=r"in .wet, also with .* after it: add --from warc, for it has WARC files"):
        find_inputs([str(folder)])


def found_in(*patterns: Path | str, kind: str = "wet") -> tuple[list[str], list[str]]:
    notes: list[str] = []
    files = find_inputs(list(map(str, patterns)), on_note=notes.append, kind=kind)
    return [file.name for file in files], notes


def test_linked_folders_are_searched(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    for name in ("b.wet.gz", "b.txt"):
        shutil.copy(SAMPLES[1], other / name)
    (folder / "2019").symlink_to(other)
    for pattern in (folder, folder / "*", folder / "**/*.wet.gz"):
        assert found_in(pattern)[0] == ["a.wet.gz", "b.wet.gz"]
    assert found_in(folder / "**/*")[0] == ["a.wet.gz", "b.txt", "b.wet.gz"]
    wet = f"left out in {folder}: 2 other files (2 .wet.gz); .wet: c4pipe build reads WET files"
    assert found_in(folder, kind="text") == (["2019-b.txt"], [wet])
    assert found_in(folder / "*9", kind="text")[0] == ["b.txt"]


def test_what_is_left_out_in_a_folder_is_said(tmp_path: Path) -> None:
    read = ["A.JSONL", "b.ndjson", "c.Parquet", "d.json.BZ2", "e.txt.xz", "f.ndjson.zst"]
    names = ["B.WET.GZ", "a.wet.bz2", "c.csv", "d.tar.gz", "e.csv", "noend", "v1.2"]
    about = ["README", "license.txt", "notes.md", ".hidden.csv", "_about.csv"]
    for name in (*read, *names, *about, "dataset_infos.json"):
        (tmp_path / name).write_text(name)
    found, (note,) = found_in(tmp_path, kind="text")
    assert found == [*read, "license.txt"]
    assert note.startswith(f"left out in {tmp_path}: 8 other files (2 .csv, 1 ")
    assert note.endswith("and 2 more); .csv: write it as Parquet or JSON Lines, for example with DuckDB or PyArrow")
    assert found_in(tmp_path)[0] == ["B.WET.GZ", "a.wet.bz2"]
    (tmp_path / "saved").mkdir()
    (tmp_path / "saved" / "data-00000-of-00001.arrow").write_bytes(b"a")
    words = r"it has 1 other file \(1 .arrow\); .arrow: write it as Parquet, in Python: datasets.load_from_disk"
    with pytest.raises(UsageError, match=words):
        found_in(tmp_path / "saved", kind="text")


@pytest.mark.parametrize("kind", ["wet", "text"])
def test_a_compressed_copy_beside_a_file_is_left_out_and_said(tmp_path: Path, kind: str) -> None:
    end = {"wet": ".wet", "text": ".jsonl"}[kind]
    names = [f"a{end}", f"a{end}.gz", f"b{end}.GZ", f"b{end}.bz2", f"c{end}.xz"]
    for name in names:
        (tmp_path / name).write_text(name)
    for pattern in (tmp_path, tmp_path / "*"):
        found, notes = found_in(pattern, kind=kind)
        assert found == [f"a{end}", f"b{end}.GZ", f"c{end}.xz"]
        assert notes == [
            f"{tmp_path}/a{end}.gz is left out (one of 2 such files): it is taken for a compressed copy of the file "
            "beside it; rename it if not"
        ]
    assert found_in(*(tmp_path / name for name in names), kind=kind) == (sorted(names), [])


@pytest.mark.parametrize("pattern", ["", "**/*.wet.gz", "*/**/*.wet.gz", "**/**/*.wet.gz", "**"])
def test_loops_of_links_end(folder: Path, pattern: str) -> None:
    (folder / "s").mkdir()
    for name in ("s1", "s2", "s/s3", "s/s4"):
        (folder / name).symlink_to(folder)
    names, notes = found_in(folder / pattern)
    assert names == ["a.wet.gz"]
    assert notes
    assert all("are one folder: it is searched once" in note for note in notes if "a.wet.gz" not in note)


def test_a_file_with_two_names_is_read_once(folder: Path) -> None:
    (folder / "b.wet.gz").symlink_to("a.wet.gz")
    (folder / "c.wet.gz").hardlink_to(folder / "a.wet.gz")
    names, notes = found_in(folder, folder / "c.wet.gz")
    assert names == ["a.wet.gz"]
    note = f"{folder}/b.wet.gz and {folder}/a.wet.gz are one file: it is read once"
    assert notes == [f"{note} (one of 2 such pairs)"]
    assert found_in(folder / "a.wet.gz", folder / "b.wet.gz")[1] == [note]


def test_a_link_to_nothing_is_named(folder: Path) -> None:
    (folder / "2019").symlink_to("gone")
    assert found_in(folder) == (
        ["a.wet.gz"],
        [f"{folder}/2019 is left out: it is a link to gone, which can't be opened"],
    )
    with pytest.raises(UsageError, match=r"/2019': it is a link to gone: no such file or directory; restore it, or"):
        found_in(folder / "*")
    (folder / "b.wet.gz").symlink_to("b.wet.gz")
    with pytest.raises(UsageError, match=r"b\.wet\.gz': it is a link to b\.wet\.gz: .*; restore it, or leave it out"):
        found_in(folder)


def test_what_is_no_file_is_named(folder: Path) -> None:
    os.mkfifo(folder / "b.wet.gz")
    for pattern in (folder, folder / "*.gz", folder / "b.wet.gz"):
        with pytest.raises(UsageError, match=r"b\.wet\.gz': it is neither a file nor a folder"):
            found_in(pattern)


@pytest.mark.parametrize("pattern", ["crawl", "crawl/**/*.wet.gz", "crawl/*/*.wet.gz"])
def test_a_folder_that_can_not_be_read_is_named(folder: Path, pattern: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "crawl" / "locked").mkdir(parents=True)
    shutil.copy(SAMPLES[0], folder / "crawl")
    for path in (folder, folder / "crawl"):
        path.chmod(0o755)
    (folder / "crawl" / "locked").chmod(0)
    monkeypatch.chdir(folder)
    user = os.geteuid()
    os.seteuid(user or 65534)  # root may read all folders
    try:
        with pytest.raises(UsageError, match=r"crawl/locked: permission denied; make it readable, or leave it out"):
            found_in(pattern)
    finally:
        os.seteuid(user)
        (folder / "crawl" / "locked").chmod(0o755)


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://h/x/a%20(1)~.wet.gz?Signature=ab%2Fc/d#e", "a%20(1)~.wet.gz"),
        ("s3://b/\u3000/a (1)?.wet.gz", "a (1)?.wet.gz"),
        ("s3://b/\u202f\u00ad\u200d\ue000.wet", "\u202f\u00ad\u200d\ue000.wet"),
    ],
)
def test_of_urls(url: str, name: str) -> None:
    assert [file[:2] for file in find_inputs([url])] == [(url, name)]


NAMES = [
    *(
        "\u00a0a\u00a0",
        "a\u202fb",
        "\u3000a",
        "a\u00adb",
        "\U0001f469\u200d\U0001f4bb",
        "\ue000",
        "cafe\u0301",
        "caf\u00e9",
    ),
    *(
        "[x]",
        "a (1)",
        " a ",
        "a%20b",
        'it\'s "a"',
        "-a",
        "a:b",
        "s3:a",
        "a #1",
        "#1",
        "a\\b",
        "~",
        "$HOME",
        "@a",
        "{a,b}",
        "CC-MAIN",
    ),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_files_of_any_name_are_found(
    name: str, encoding: str, end: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, file = Path(f"./{name}"), f"{name}.wet.gz"
    folder.mkdir()
    (folder / file).write_bytes(b"")
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    Path("list").write_bytes((mark + end.join(("# all", f"{folder}/{file}", ""))).encode(encoding))
    relative = f"./{name}" if name[0] in "@" else name
    for given in (relative, f"{relative}/{file}", f"{tmp_path}/{name}", f"{relative}/*.wet.gz", "@list"):
        assert [found[1] for found in find_inputs([given])] == [file], given


def test_a_list_in_damaged_utf_16_is_named(folder: Path) -> None:
    for data in (b"\xff\xfea\0b", b"\xff\xfe\0\xdca\0"):
        (folder / "list").write_bytes(data)
        with pytest.raises(
            UsageError, match=r"input @.*/list can't be read: .*; give a text file with one input a line"
        ):
            find_inputs([f"@{folder}/list"])


def test_the_order_is_that_of_the_names(folder: Path) -> None:
    for name in ("b", "B", "\u00e9", "e\u0301", "10", "9"):
        shutil.copy(SAMPLES[0], folder / f"{name}.wet.gz")
    names = sorted(path.name for path in folder.glob("[!.]*.gz"))
    assert found_in(folder)[0] == found_in(*sorted(folder.glob("[!.]*"), reverse=True))[0] == names
