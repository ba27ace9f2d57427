"""The dataset card: describes a corpus to people, and to the tools of Hugging Face. A pure function of the manifest.

The form is that of the Hub: https://huggingface.co/docs/hub/datasets-cards (a head in YAML, then Markdown), and
https://huggingface.co/docs/hub/datasets-manual-configuration for `configs`. `dataset_info` is what `datasets` compares
with the pages that it loads (`DatasetInfo` in its info.py). The text is in templates/card.md, card_limits.md and
card_loading.md.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from c4pipe.corpus.formats.shard_format import PROBABILITY, shard_schema
from c4pipe.corpus.formats.table import EXTENSIONS, find_format
from c4pipe.corpus.funnel import empty_reasons, empty_warning, funnel_rows, language_funnels, percent
from c4pipe.corpus.labels import counts_by_label
from c4pipe.corpus.layout import SPLITS
from c4pipe.corpus.manifest import OTHER_NAMES, ListedShard, Manifest, sum_inputs
from c4pipe.filters.classifier_rule import ClassifierScore
from c4pipe.filters.column_rules import LabelNotWanted
from c4pipe.filters.corpus_rules import RepeatedSpan
from c4pipe.filters.language import Language
from c4pipe.filters.lines import FewWords
from c4pipe.filters.page_size import FewSentences, FewSentencesLeft
from c4pipe.filters.rules import BLOCKED_URL_RULES, OPT_OUT_RULES
from c4pipe.filters.word_rules import CountRule
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.data import OptOuts, reasons_to_show
from c4pipe.report.rendering import render
from c4pipe.text.languages import OLD_CODES, UNKNOWN, drops_by_language, two_letter_code
from c4pipe.text.scripts.facts import scripts_of
from c4pipe.text.scripts.words import note_on_words
from c4pipe.text.sentences import punkt_model
from c4pipe.wet.extraction import describe_extraction

CARD = "README.md"

_NONE: Mapping[str, int] = MappingProxyType({})
_FIELDS = {
    "url": "as it was crawled",
    "text": "the lines that the rules kept, joined by newlines",
    "timestamp": "when the page was crawled, such as `2019-04-18T10:12:43Z`",
    "language": "code of the language, `und` if it is not known",
    "copies": "how many pages of the inputs were nearly the same as the page, with it",
    PROBABILITY: "how sure the detector was, from 0 to 1",
}
_ORIGIN = {
    "crawl": "the crawl of the file, such as `CC-MAIN-2024-10`",
    "warc_file": "the WET or WARC file that was read",
    "warc_record_id": "the record of the response in the crawl",
    "record_offset": "where the record begins in that file, in bytes",
    "record_length": "its bytes, as they are compressed in that file",
    "digest": "of the record, as the crawl has it",
}
_TEXT_FIELDS = {
    "url": "as it was given, or `file:` with the name of the file and the row",
    "timestamp": "as it was given, or `1970-01-01T00:00:00Z`",
    "source_file": "the file that was read",
    "source_row": "the row or line in that file, from 1; 0 for the whole file",
}

_DETECTORS = {"langdetect": "langdetect", "cld3": "CLD3", "fasttext": "a fastText model"}

_STRING_TIME, _TIME = len("2019-04-18T10:12:43Z") + 4, 8
"""The bytes of a timestamp in a table of Arrow: a string with its offset, and `timestamp[s]`."""


def render_card(manifest: Manifest, table_bytes: Mapping[str, int] = _NONE, opt_outs: OptOuts | None = None) -> str:
    """Returns the dataset card of a corpus, in Markdown.

    Args:
        manifest: of the corpus (see `manifest.make_manifest`).
        table_bytes: of the profile in `report.json`: the bytes of the pages as a table of Arrow, by language/split;
            without them, the card has no `dataset_info`.
        opt_outs: the content of its `opt_outs.json`; None if its opt-outs are not counted.
    """
    recipe, counts, inputs = Recipe.from_json(manifest["recipe"]), manifest["counts"], sum_inputs(manifest)
    fields = _FIELDS | (_TEXT_FIELDS if recipe.input_format == "text" else _ORIGIN)
    fields |= dict.fromkeys(recipe.label_columns, "the best label by a classifier of text")
    best = min(map(find_format, manifest["formats"]), key=lambda each: not each.hub_timestamp)
    extension = EXTENSIONS[best.name]
    stored = _sum_shards(manifest["shards"], extension)
    schema = shard_schema(recipe.columns)
    columns = {each.name: _feature(str(each.type)) for each in schema}
    for (language, split), size in stored.items():
        size["table_bytes"] = table_bytes.get(f"{language}/{split}", 0)
    if best.hub_timestamp not in ("", "string"):
        columns["timestamp"] = _feature(best.hub_timestamp)
        for size in stored.values():
            size["table_bytes"] -= size["pages"] * (_STRING_TIME - _TIME)
    pages = {place: size["pages"] for place, size in stored.items() if size["pages"]}
    languages = sorted({language for language, _ in pages})
    train, validation = SPLITS
    return render(
        "card.md",
        manifest=manifest,
        title=_title(recipe, languages),
        language_codes=_hub_codes(languages),
        all_from_common_crawl=OTHER_NAMES not in inputs.months,
        size_category=_size_category(counts.get("pages.kept", 0)),
        configurations=_make_configurations(stored, languages, extension) if best.hub_timestamp else {},
        columns=columns if table_bytes else {},
        pages=counts.get("pages.kept", 0),
        bytes=counts.get("bytes.kept", 0),
        recipe=recipe,
        is_text=recipe.input_format == "text",
        extraction=describe_extraction(recipe.extraction) if recipe.extraction else "",
        rules=[(rule.name, recipe.sentence(rule), rule.source) for _, rule in recipe.rules()],
        funnel=funnel_rows(recipe, counts),
        languages=[
            (each, stored[each.language, train] + stored[each.language, validation], stored[each.language, validation])
            for each in language_funnels(recipe, counts)
        ],
        labels=counts_by_label(counts),
        has_drops=bool(drops_by_language(counts)),
        percent=percent,
        empty=empty_reasons(recipe, counts),
        inputs=inputs,
        parts=manifest.get("parts", ()),
        formats=manifest["formats"],
        fields=[(each.name, str(each.type), fields.get(each.name, "as the source has it")) for each in schema],
        format=best.name,
        example=_example(pages, extension),
        versions=manifest["versions"],
        refused=reasons_to_show(opt_outs) if opt_outs else {},
        warning=empty_warning(recipe, counts),
        limits=render_limits(recipe, languages, len(manifest["missing"])),
    )


def _sum_shards(shards: Sequence[ListedShard], extension: str) -> dict[tuple[str, str], Counter[str]]:
    """Returns pages, files and bytes by (language, split) of the shards with an extension."""
    stored: dict[tuple[str, str], Counter[str]] = defaultdict(Counter)
    for shard in shards:
        if shard["path"].endswith(f".{extension}"):
            language, _, name = shard["path"].partition("/")
            stored[language, name.split("-")[1]].update(pages=shard["rows"], files=1, bytes=shard["bytes"])
    return stored


def _title(recipe: Recipe, languages: Sequence[str]) -> str:
    names = ", ".join(languages) if len(languages) <= 8 else f"{len(languages)} languages"
    return f"C4 by recipe {recipe.name}" + (f": {names}" if names else "")


def _hub_codes(languages: Sequence[str]) -> list[str]:
    """Returns the Hub's codes of languages, without regions. Languages without such a code are left out."""
    codes = {re.split("[-_]", two_letter_code(language))[0] for language in languages if language != UNKNOWN}
    return sorted(OLD_CODES.get(code, code) for code in codes)


def _make_configurations(
    stored: Mapping[tuple[str, str], Counter[str]], languages: Sequence[str], extension: str
) -> dict[str, dict[str, list[Any]]]:
    """Returns the files of the configurations of `datasets`, by split: all languages together, then each language.

    A split without pages is left out, because `datasets` refuses it.
    """
    configurations: dict[str, dict[str, list[Any]]] = {name: {} for name in ("default", *languages) if languages}
    for split in SPLITS:
        for language in languages:
            if (size := stored[language, split])["pages"]:
                for name in ("default", language):
                    files = {**size, "path": _files(language, split, extension)}
                    configurations[name].setdefault(split, []).append(files)
    return configurations


def _feature(kind: str) -> str:
    """Returns a type of Arrow as `datasets` writes it in YAML."""
    return "list: string" if kind.startswith("list") else f"dtype: {kind.replace('double', 'float64')}"


def _files(language: str, split: str, extension: str) -> str:
    return f"{language}/c4-{split}-*.{extension}"


def _example(pages: Mapping[tuple[str, str], int], extension: str) -> dict[str, str] | None:
    """Returns the language and split with the most pages, and their files as a glob; None if no page was kept."""
    if not pages:
        return None
    language, split = max(pages, key=lambda place: (pages[place], place))
    return {"language": language, "split": split, "files": _files(language, split, extension)}


def _size_category(pages: int) -> str:
    """Returns the Hub's name for a number of pages."""
    ends = ("1K", "10K", "100K", "1M", "10M", "100M", "1B", "10B", "100B", "1T")
    number = min(len(ends), max(0, len(str(pages)) - 3))
    if number == len(ends):
        return "n>1T"
    return f"{ends[number - 1]}<n<{ends[number]}" if number else f"n<{ends[0]}"


def render_limits(recipe: Recipe, languages: Sequence[str], missing: int) -> str:
    """Returns the known limits of a corpus as a list in Markdown, given the languages with pages, and how many input
    files could not be fetched or have no record.
    """
    rules = [rule for _, rule in recipe.rules()]
    return render(
        "card_limits.md",
        recipe=recipe,
        missing=missing,
        detector=_DETECTORS[recipe.need(Language).detector],
        words=note_on_words(recipe.need(FewWords).scripts),
        counts_words=any(isinstance(rule, CountRule) for rule in rules),
        english_model=_find_counted_as_english(recipe, languages),
        span=recipe.find(RepeatedSpan),
        block_lists=any(isinstance(rule, BLOCKED_URL_RULES) for rule in rules),
        opt_out_lists=any(isinstance(rule, OPT_OUT_RULES) for rule in rules),
        classified=any(isinstance(each, ClassifierScore | LabelNotWanted) and not each.made_columns for each in rules),
    )


def _find_counted_as_english(recipe: Recipe, languages: Sequence[str]) -> list[str]:
    """Returns the languages other than English whose sentences Punkt's English model counts."""
    sentences = recipe.find(FewSentences)
    counting = [rule for rule in (sentences, recipe.find(FewSentencesLeft)) if rule]
    by_language = {rule.model for rule in counting} == {"language"}
    scripts = sentences.scripts if sentences else ()
    return [
        each
        for each in languages
        if counting
        and two_letter_code(each) != "en"
        and (not by_language or punkt_model(each) == "english")
        and not {*scripts_of([each])}.intersection(scripts)
    ]
