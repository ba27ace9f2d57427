"""The dataset card: what a corpus is, for people, and for the tools of Hugging Face. A pure function of the manifest.

The form is that of the Hub: https://huggingface.co/docs/hub/datasets-cards (a head in YAML, then Markdown), and
https://huggingface.co/docs/hub/datasets-manual-configuration for `configs`.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from c4pipe.corpus.shard_writer import FORMATS, PROBABILITY, SCHEMA
from c4pipe.filters.language import UNKNOWN
from c4pipe.recipes.recipe import Recipe
from c4pipe.recipes.wording import say
from c4pipe.report import card_text
from c4pipe.report.funnel import funnel_table

NAME = "README.md"

_LOADED = ("parquet", "json")
"""The formats that `datasets` loads, the better one first."""

_FIRST_FILES = 5  # WET files that are named
_CRAWLED = re.compile(r"CC-MAIN-(\d{4})(\d{2})\d{8}-")  # a segment's time, in the names of Common Crawl's files
_OLD_CODES = {"iw": "he", "jw": "jv"}  # of ISO 639-1, which CLD3 still has
_FIELDS = {
    "url": "as it was crawled",
    "text": "the lines that the rules left, joined by newlines",
    "timestamp": "when the page was crawled, such as `2019-04-18T10:12:43Z`",
    "language": "code of the language, `und` where it is not known",
    PROBABILITY: "how sure the detector was, from 0 to 1",
}


def card(made: Mapping[str, Any]) -> str:
    """Returns the dataset card of a corpus, in Markdown, given its manifest (see `manifest.make`)."""
    return _Card(made).text()


class _Card:
    def __init__(self, made: Mapping[str, Any]) -> None:
        self._made = made
        self._recipe = Recipe.from_json(made["recipe"])
        self._format = next(name for name in (*_LOADED, *made["formats"]) if name in made["formats"])
        self._stored: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)  # by language and split
        for shard in made["shards"]:
            if shard["path"].endswith(f".{FORMATS[self._format].extension}"):
                language, _, name = shard["path"].partition("/")
                self._stored[language, name.split("-")[1]].update(pages=shard["rows"], files=1, bytes=shard["bytes"])
        self._pages = {place: each["pages"] for place, each in self._stored.items() if each["pages"]}
        self._languages = sorted({language for language, _ in self._pages})
        self._crawled = sum(bool(_CRAWLED.match(file["name"])) for file in made["inputs"])

    def text(self) -> str:
        sections = {
            "Recipe": self._rules(),
            "Numbers": self._numbers(),
            "InputOpener": self._sources(),
            "Format": self._rows(),
            "How to load it": self._loading(),
            "How it was made": self._making(),
            "Known limits": card_text.limits(self._recipe, self._languages, len(self._made["missing"])),
            "Licence": card_text.licence(self._all_crawled),
            "Citation": card_text.CITATION,
        }
        parts = [f"---\n{self._head()}\n---", f"# {_plain(self._title)}", self._about()]
        parts += [f"## {title}\n\n{text}" for title, text in sections.items()]
        return "\n\n".join(parts) + "\n"

    @property
    def _title(self) -> str:
        few = len(self._languages) <= 8
        told = ", ".join(self._languages) if few else f"{len(self._languages)} languages"
        return f"C4 by recipe {self._recipe.name}" + (f": {told}" if told else "")

    @property
    def _all_crawled(self) -> bool:
        """Whether all inputs have names of Common Crawl's files."""
        return self._crawled == len(self._made["inputs"])

    def _head(self) -> str:
        """The head in YAML. Strings are in JSON's quotes, which YAML reads too; so `no` stays a language."""
        lines = [f"pretty_name: {_quoted(self._title)}"]
        codes = {each.partition("-")[0] for each in self._languages if each != UNKNOWN}
        if codes:
            lines += ["language:", *(f"- {_quoted(code)}" for code in sorted(_OLD_CODES.get(c, c) for c in codes))]
        if self._all_crawled:
            lines += ["license: other", "license_name: common-crawl-terms-of-use"]
            lines += [f"license_link: {card_text.TERMS}"]
        else:
            lines += ["license: unknown"]
        lines += ["task_categories:", "- text-generation", "- fill-mask"]
        lines += ["size_categories:", f"- {_size_category(self._kept)}"]
        if self._format in _LOADED and self._languages:
            lines += ["configs:", *self._config("default", self._languages)]
            for language in self._languages:
                lines += self._config(language, [language])
        return "\n".join(lines)

    def _config(self, name: str, languages: Sequence[str]) -> Iterator[str]:
        """The lines of a configuration. A split without pages is left out: `datasets` refuses it."""
        yield f"- config_name: {_quoted(name)}"
        yield "  data_files:"
        for split in ("train", "validation"):
            found = [language for language in languages if (language, split) in self._pages]
            if found:
                yield f"  - split: {split}"
                yield "    path:"
                for language in found:
                    yield f"    - {_quoted(f'{language}/c4-{split}-*.{FORMATS[self._format].extension}')}"

    @property
    def _kept(self) -> int:
        return int(self._made["counts"].get("pages.kept", 0))

    def _about(self) -> str:
        return (
            f"{self._kept:,} web pages with {self._made['counts'].get('bytes.kept', 0):,} bytes of text, cleaned and "
            f"deduplicated by recipe `{_plain(self._recipe.name)}`: {_plain(self._recipe.description)}. "
            "It is made in the way of C4, the corpus of the T5 paper (Raffel et al. 2020, section 2.2)."
        )

    def _rules(self) -> str:
        rows = [
            (f"`{step.rule}`", _plain(step.definition.does.format(**_told(step.parameters))), step.definition.source)
            for _, step in self._recipe.steps()
        ]
        table = _table(("rule", "what it does", "source"), rows)
        return f"In this order. A page or line that is dropped counts for the first rule that drops it.\n\n{table}"

    def _numbers(self) -> str:
        funnel = funnel_table(self._recipe, self._made["counts"])
        rows = list(zip(*([_plain(str(cell).strip()) for cell in each.cells] for each in funnel.columns), strict=True))
        stored = [
            (language, split, f"{each['pages']:,}", f"{each['files']:,}", f"{each['bytes']:,}")
            for (language, split), each in sorted(self._stored.items())
        ]
        heads = ("language", "split", "pages", "files", f"bytes of files ({self._format})")
        return f"{_table(('', 'number', '%'), rows)}\n\n{_table(heads, stored)}"

    def _sources(self) -> str:
        inputs = self._made["inputs"]
        size = sum(file["bytes"] for file in inputs)
        crawled = Counter(_month(file["name"]) for file in inputs)
        first = "\n".join(f"- {_plain(file['name'])}" for file in inputs[:_FIRST_FILES])
        more = len(inputs) - _FIRST_FILES
        return (
            f"{len(inputs):,} WET files of {size:,} bytes. When they were crawled, by their names:\n\n"
            f"{_table(('crawled in', 'WET files'), [(month, f'{n:,}') for month, n in sorted(crawled.items())])}\n\n"
            f"{first}\n{f'- and {more:,} more{chr(10)}' if more > 0 else ''}\n"
            "All are in `manifest.json`, field `inputs`"
            + (
                f"; {len(self._made['missing']):,} that could not be had, in `missing`."
                if self._made["missing"]
                else "."
            )
        )

    def _rows(self) -> str:
        rows = [(f"`{field.name}`", str(field.type), _FIELDS[field.name]) for field in SCHEMA]
        formats = ", ".join(f"`{name}`" for name in self._made["formats"])
        return (
            f"`<language>/c4-<split>-<number>-of-<count>.<extension>`, in {formats}"
            f"{', the same pages in each' if len(self._made['formats']) > 1 else ''}. "
            "Pages are in the order of a hash of their URL, so they are shuffled. A page:\n\n"
            f"{_table(('field', 'type', 'what it is'), rows)}"
        )

    def _loading(self) -> str:
        if not self._pages:
            return "There is no page in it."
        language, split = max(self._pages, key=lambda place: (self._pages[place], place))
        return card_text.loading(self._format, language, split, FORMATS[self._format].extension)

    def _making(self) -> str:
        versions = dict(self._made["versions"])
        others = ", ".join(f"{name} {version}" for name, version in versions.items() if name != "c4pipe")
        return (
            f"With c4pipe {versions['c4pipe']} (recipe fingerprint `{self._made['fingerprint']}`), and {others}. "
            "The same inputs and recipe give the same bytes. `manifest.json` has the recipe, all counts, and the "
            "SHA-256 of each file."
        )


def _month(name: str) -> str:
    match = _CRAWLED.match(name)
    return f"{match[1]}-{match[2]}" if match else "other names"


def _size_category(pages: int) -> str:
    """Returns the Hub's name for a size."""
    ends = [(10**3, "1K"), (10**4, "10K"), (10**5, "100K"), (10**6, "1M"), (10**7, "10M"), (10**8, "100M")]
    ends += [(10**9, "1B"), (10**10, "10B"), (10**11, "100B"), (10**12, "1T")]
    least = ""
    for end, name in ends:
        if pages < end:
            return f"{least}n<{name}"
        least = f"{name}<"
    return "n>1T"


def _told(parameters: Mapping[str, Any]) -> dict[str, str]:
    return {name: say(value) for name, value in parameters.items()}


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _plain(text: str) -> str:
    """Returns a text of one line as Markdown that shows it as it is."""
    return re.sub(r"([\\`*\[\]<>|#]|(?<!\w)_|_(?!\w))", r"\\\1", text)


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Returns a table in Markdown."""
    lines = [list(heads), *map(list, rows)]
    lines.insert(1, ["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
