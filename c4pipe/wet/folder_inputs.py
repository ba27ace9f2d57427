"""Which files in a folder are inputs, by the ends of their names, and what is said about the others."""

import re
from collections import Counter
from collections.abc import Sequence

from c4pipe.errors import UsageError
from c4pipe.io.file_kinds import PACKED, bare_name, with_packings
from c4pipe.io.words import first_of, format_count
from c4pipe.wet.extraction import TEXT_ENDINGS

WET_ENDINGS = with_packings(".wet")
"""The endings of WET files that are searched in folders, in small letters or capitals; a path or glob may name any."""

WARC_ENDINGS = with_packings(".warc")
"""The endings of WARC files that are searched in folders."""

ENDINGS = {"wet": WET_ENDINGS, "warc": WARC_ENDINGS, "robotstxt": WARC_ENDINGS, "text": TEXT_ENDINGS}
"""The endings of each kind of input."""

DESCRIBING = ".", "_"
"""Beginnings of the names of files, and of their folders, that describe text."""

_ABOUT = re.compile(r"[._]|readme|licen[cs]e|.*\.md$", re.IGNORECASE)  # files about a folder: nobody misses them
_NO_DATA = ("dataset_dict.json", "dataset_info.json", "dataset_infos.json", "state.json")  # of the library datasets
_ADVICE = {
    r"\.wet": "c4pipe build reads WET files",
    r"\.warc": "c4pipe build --from warc reads WARC files",
    r"\.(zip|tar|tgz|7z|rar)": "unpack it first",
    r"\.arrow": "write it as Parquet, in Python: datasets.load_from_disk(FOLDER).to_parquet(FILE)",
    r"\.([ct]sv|feather|orc|avro|xlsx?)": "write it as Parquet or JSON Lines, for example with DuckDB or PyArrow",
    r"\.(html?|xml|pdf|docx?|epub)": "write its text into a file that ends in .txt or .jsonl",
}


def is_input(path: str, kind: str) -> bool:
    """Tells whether a path in a folder is an input of a kind (ENDINGS); `._*` are macOS' notes on other files."""
    *folders, name = path.split("/")
    if kind == "text" and (name in _NO_DATA or any(each.startswith(DESCRIBING) for each in (*folders, name))):
        return False
    return name.lower().endswith(ENDINGS.get(kind, ())) and not name.startswith("._")


def find_advice(name: str) -> str:
    """Returns what to do with a file of another format, with the end of its name before it; "" if nothing is known."""
    for ending, advice in _ADVICE.items():
        if match := re.search(rf"{ending}$", bare_name(name).lower()):
            return f"{match[0]}: {advice}"
    return ""


def describe_others(names: Sequence[str]) -> str:
    """Returns how many files there are besides inputs, by the ends of their names: `2 other files (1 .csv, 1 .pdf)`.

    Advice follows, if there is any: `; .csv: ...`. "" if all of them describe a folder.
    """
    ends = Counter(_end_of(name) for name in names if not _ABOUT.match(name))
    shown = ", ".join(first_of([f"{count:,} {end}" for end, count in ends.most_common()]))
    advice = next(filter(None, (find_advice(end) for end, _ in ends.most_common())), "")
    return f"{format_count(ends.total(), 'other file')} ({shown})" + f"; {advice}" * bool(advice) if ends else ""


def _end_of(name: str) -> str:
    """Returns the end of a name that tells the format, such as `.csv` or `.tar.gz`; the whole name without one."""
    end = re.search(r"\.[a-z0-9]*[a-z][a-z0-9]*$", bare_name(name), re.IGNORECASE)
    return name if name in _NO_DATA or not end else name[end.start() :].lower()


def find_copies(paths: Sequence[str]) -> list[str]:
    """Returns the files that are compressed and lie beside themselves: with the same name but for the compression."""
    forms: dict[str, str] = {}
    for path in sorted(paths, key=len):
        forms.setdefault(bare_name(path), path)
    originals = {*forms.values()}
    return [path for path in paths if path not in originals]


def describe_endings(kind: str) -> str:
    """Returns the endings of a kind of input in words."""
    *first, last = (each for each in ENDINGS[kind] if not each.endswith(PACKED))
    plain = f"{', '.join(first)} or {last}" if first else last
    return f"{plain}, also with {', '.join(PACKED[:-1])} or {PACKED[-1]} after it" + ", but for .parquet" * bool(first)


def folder_error(folder: str, names: Sequence[str], kind: str) -> UsageError:
    """Returns the error of a folder without inputs of a kind, given the names of its files."""
    other, advice = {
        "wet": ("warc", "add --from warc, for it has WARC files"),
        "warc": ("wet", "leave out --from warc, for it has WET files"),
        "text": ("wet", "use c4pipe build, for it has WET files"),
    }.get(kind, ("", ""))
    if not any(is_input(name, other) for name in names):
        others = describe_others(names)
        advice = f"it has {others}" if ";" in others else "give another folder, or name the files themselves"
    return UsageError(f"the folder {folder} has no file whose name ends in {describe_endings(kind)}: {advice}")
