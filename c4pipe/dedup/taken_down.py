"""What earlier takedowns left out of a corpus stays out: the corpus keeps hashes of the listed addresses."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, TypedDict, cast

import numpy as np

from c4pipe.corpus.manifest import Takedown
from c4pipe.errors import UsageError
from c4pipe.filters.url_rules import find_opt_out
from c4pipe.io.json_files import Digest, choice, read_json, write_json
from c4pipe.io.paths import StoragePath, check_inner, storage_path
from c4pipe.lists.addresses import compared_address
from c4pipe.lists.lists import Lists, has_key, load_lists
from c4pipe.report.data import DedupData, PageExample
from c4pipe.text.hashes import U64, url_key

TAKEDOWNS = "_takedowns"
"""The folder, inside a corpus, of the hashes of what takedowns listed."""

_CONTENT = "takedowns.json"  # names the takedowns and the files of hashes; it is written last
_LISTS = {
    "urls": "blocked_urls",
    "domains": "opt_outs",
}  # the hashes in `Lists`, by the kind of a takedown

_CUT = 99  # characters of the shortest URL that is shortened in a report


class _Stored(TypedDict):
    format: Annotated[str, choice("c4pipe takedowns")]
    version: Annotated[int, choice(1)]
    takedowns: Sequence[Takedown]
    lists: Mapping[Annotated[str, choice(*_LISTS.values())], Digest]


@dataclass(frozen=True)
class TakenDown:
    """What takedowns listed. It can be pickled.

    Attributes:
        folder: the folder with the hashes.
        takedowns: the takedowns, as the manifest has them.
        lists: the digests of the hashes, by name.
    """

    folder: str
    takedowns: Sequence[Takedown]
    lists: Mapping[str, str]

    @cached_property
    def listed(self) -> Lists:
        """The hashes."""
        return load_lists(storage_path(self.folder), self.lists)

    def has(self, url: str) -> bool:
        """Tells whether a takedown listed a URL."""
        listed = self.listed
        return has_key(listed.blocked_urls, url_key(compared_address(url))) or bool(
            len(listed.opt_outs) and find_opt_out(url, listed.opt_outs)
        )


def find_taken_down(corpus: StoragePath) -> TakenDown | None:
    """Returns what the takedowns of a corpus listed; None without any. Raises UsageError if it can't be read."""
    check_inner(corpus, TAKEDOWNS)
    folder = corpus.absolute() / TAKEDOWNS
    stored = read_json(folder / _CONTENT, _Stored)
    if stored is None:
        return None
    try:
        load_lists(folder, stored["lists"])
    except UsageError as error:
        raise UsageError(f"{folder} lacks hashes of takedowns, or has other ones: copy the folder again") from error
    return TakenDown(str(folder), stored["takedowns"], stored["lists"])


def store_taken_down(corpus: StoragePath, before: TakenDown | None, takedown: Any, keys: U64) -> None:
    """Writes what all takedowns of a corpus listed, given the earlier ones and the new one with its hashes."""
    check_inner(corpus, TAKEDOWNS)
    old, name = before.listed if before else Lists(), _LISTS[takedown["kind"]]
    changed: Any = {name: np.union1d(getattr(old, name), keys)}
    lists = replace(old, **changed)
    lists.save(corpus / TAKEDOWNS)
    takedowns = [*(before.takedowns if before else ()), takedown]
    values: _Stored = {"format": "c4pipe takedowns", "version": 1, "takedowns": takedowns, "lists": lists.digests}
    write_json(corpus / TAKEDOWNS / _CONTENT, values)


def unlisted_findings(found: DedupData, listed: Any) -> DedupData:
    """Returns the content of `dedup.json` without what shows a page that `listed.has`."""
    values: dict[str, Any] = {name: value for name, value in found.items() if name != "sha256"}
    clusters = values.pop("near_duplicates", ())
    clusters = [each for each in clusters if not _shows(listed, each["url"], each.get("other_url", each["url"]))]
    values |= {"near_duplicates": clusters} if clusters else {}
    return cast(DedupData, {**values, "examples": unlisted_examples(found["examples"], listed)})


def unlisted_examples(examples: Mapping[str, Sequence[PageExample]], listed: Any) -> dict[str, list[Any]]:
    """Returns the examples of a report, by rule, that show no page that `listed.has`."""
    left = {
        rule: [each for each in pages if not _shows(listed, each["url"], *_places_in(each["fact"]))]
        for rule, pages in examples.items()
    }
    return {rule: pages for rule, pages in left.items() if pages}


def _places_in(fact: str) -> Sequence[str]:
    """Returns what may be a URL in a fact: each word, and all before `stays`, as a URL can have blanks."""
    return *fact.split(), fact.partition(" stays; ")[0]


def _shows(listed: Any, *urls: str) -> bool:
    """Tells whether one of these is a listed URL. A URL that was shortened may be listed."""
    return any((each.endswith("…") and len(each) > _CUT) or listed.has(each) for each in urls)
