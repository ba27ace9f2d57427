"""The pages of a list that a takedown leaves out, and the examples that the new report may still show."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.url_rules import find_opt_out
from c4pipe.io.paths import StoragePath
from c4pipe.io.text import lines_of
from c4pipe.io.words import error_reason
from c4pipe.lists.addresses import opt_out_entry
from c4pipe.lists.lists import has_key, sorted_keys
from c4pipe.report.data import make_dedup_data, read_dedup_data
from c4pipe.text.hashes import U64, normalise_url, url_key

_CUT = 99  # characters of the shortest URL that is shortened in a report


@dataclass(frozen=True)
class PageList:
    """The pages of a list.

    Attributes:
        kind: `urls` for whole URLs; `domains` for hosts, with their subdomains, and hosts with a path.
        sha256: of the files, with a line end between two.
        keys: the keys of its entries, sorted.
        scheme: how the corpus removes the scheme of URLs (`Recipe.page_keys`).
    """

    kind: str
    first: str
    sha256: str
    keys: U64
    scheme: str

    def has(self, url: str) -> bool:
        """Tells whether the list has a URL."""
        if self.kind == "domains":
            return find_opt_out(url, self.keys) is not None
        return has_key(self.keys, url_key(normalise_url(url, self.scheme)))


def read_page_list(kind: str, paths: Sequence[Path], scheme: str) -> PageList:
    """Returns the pages of lists, files with one URL or one host on each line.

    Raises UsageError if a file can't be read, has no entry, or an entry that is no host.
    """
    first, keys = "", list[int]()
    try:
        for path in paths:
            before = len(keys)
            for line in filter(None, map(str.strip, lines_of(path))):
                first = first or line
                try:
                    entry = opt_out_entry(line) if kind == "domains" else normalise_url(line, scheme)
                except ValueError as error:
                    raise UsageError(f"--{kind} {path}: {line[:200]!a} can't be used: {error}") from None
                keys.append(url_key(entry))
            if len(keys) == before:
                raise UsageError(f"--{kind} {path} has no entry: give one on each line")
        digest = hashlib.sha256(b"\n".join(path.read_bytes() for path in paths)).hexdigest()
    except (OSError, ValueError) as error:
        raise UsageError(f"--{kind} {path} can't be read: {error_reason(error)}; give a text file") from error
    return PageList(kind, first[:200], digest, sorted_keys(keys), scheme)


def unlisted_findings(folder: StoragePath, listed: PageList) -> dict[str, Any]:
    """Returns the content of `dedup.json` without examples that show a listed page."""
    found: Any = read_dedup_data(folder) or make_dedup_data({})
    hosts = [(each, f"https://{each['host']}/ https://{each['of']}/") for each in found.get("copied_hosts", ())]
    clusters = [each for each in found.get("near_duplicates", ()) if not _shows(listed, each["url"])]
    more = {"near_duplicates": clusters, "copied_hosts": [each for each, urls in hosts if not _shows(listed, urls)]}
    return {
        **{name: value for name, value in found.items() if name not in ("sha256", *more)},
        **{name: value for name, value in more.items() if value},
        "examples": unlisted_examples(listed, found["examples"]),
    }


def unlisted_examples(listed: PageList, examples: Mapping[str, Sequence[Any]]) -> dict[str, list[Any]]:
    """Returns the examples of a report, by rule, that show no listed page."""
    left = {
        rule: [each for each in pages if not _shows(listed, f"{each['url']} {each['fact']}")]
        for rule, pages in examples.items()
    }
    return {rule: pages for rule, pages in left.items() if pages}


def _shows(listed: PageList, words: str) -> bool:
    """Tells whether one of some words is a listed URL. A URL that was shortened may be listed."""
    return any((each.endswith("…") and len(each) > _CUT) or listed.has(each) for each in words.split())
