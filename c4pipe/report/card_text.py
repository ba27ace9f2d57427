"""What a dataset card says in words: how a corpus is loaded, what it is not fit for, whose the texts are."""

from collections.abc import Sequence

from c4pipe.filters.sentences import punkt_model
from c4pipe.recipes.recipe import Recipe

TERMS = "https://commoncrawl.org/terms-of-use"

CITATION = """\
The rules and the first corpus that was made by them:

```bibtex
@article{raffel2020exploring,
  author = {Colin Raffel and Noam Shazeer and Adam Roberts and Katherine Lee and Sharan Narang and Michael Matena
            and Yanqi Zhou and Wei Li and Peter J. Liu},
  title = {Exploring the Limits of Transfer Learning with a Unified Text-to-Text Transformer},
  journal = {Journal of Machine Learning Research},
  volume = {21},
  number = {140},
  pages = {1--67},
  year = {2020},
  url = {https://jmlr.org/papers/v21/20-074.html}
}
```"""

_DODGE = (
    "[Dodge et al. 2021](https://aclanthology.org/2021.emnlp-main.98/), *Documenting Large Webtext Corpora: A Case "
    "Study on the Colossal Clean Crawled Corpus*"
)


def limits(recipe: Recipe, languages: Sequence[str], missing: int) -> str:
    """Returns the known limits of a corpus, as a list in Markdown.

    Args:
        recipe: how it was made; a limit is told where the recipe has the rule that it comes from.
        languages: codes of the languages that have pages.
        missing: how many of the WET files could not be had.
    """
    found = []
    if missing:
        found.append(f"{missing:,} of the WET files that were asked for could not be had.")
    if recipe.find("bad_words"):
        found.append(
            "The list of bad words takes out more than it is meant to: text by and about minorities goes more often "
            f"than other text, and so does text on health and law. See {_DODGE}. A language without a list is not "
            "filtered."
        )
    else:
        found.append("No list of bad words was applied: there is offensive text in it.")
    if recipe.find("language"):
        found.append(_language_limit(str(recipe.parameters("language")["detector"])))
    if recipe.find("no_terminal_punctuation") or recipe.find("few_words"):
        found.append(
            "The rules favour prose: headings, lists, tables, verse, captions and much of what people say to each "
            "other in forums are gone."
        )
    elif recipe.find("few_sentences") or recipe.find("few_long_lines"):
        found.append("The rules favour prose: pages of short lines or few sentences are gone.")
    if recipe.find("curly_bracket"):
        found.append("A curly bracket costs the page, or the line, so most program code is gone.")
    found += _sentence_limit(recipe, languages)
    found.append(_repetition_limit(recipe))
    if recipe.find("domain_not_listed") or recipe.find("url_not_listed"):
        found.append("Only pages from a list of domains or links are in it: what these are about, it is about.")
    found.append(
        "Nothing was done about personal data, about what is untrue or hateful, about text that programs wrote, and "
        "about pages that test sets of other data were made from."
    )
    return "\n".join(f"- {each}" for each in found)


def _language_limit(detector: str) -> str:
    name = {"langdetect": "langdetect", "cld3": "CLD3"}[detector]
    return (
        f"The language is {name}'s guess for the page as a whole. It errs most on short texts, on languages that are "
        "close to each other, on dialects, and where a page has several languages."
    )


def _sentence_limit(recipe: Recipe, languages: Sequence[str]) -> list[str]:
    models = {recipe.parameters(rule).get("model") for rule in ("few_sentences", "few_sentences_left")} - {None}
    by_language = models == {"language"}
    english = [each for each in languages if each != "en" and (not by_language or punkt_model(each) == "english")]
    if not models or not english:
        return []
    return [f"Sentences are counted with Punkt's English model in other languages too: {', '.join(english)}."]


def _repetition_limit(recipe: Recipe) -> str:
    repeated = recipe.parameters("repeated_span")
    if not repeated:
        return "Only captures of one URL were deduplicated: a text that is at two URLs is in it twice."
    size, unit = repeated["size"], repeated["unit"]
    what = f"{size} {unit}s in a row" if size > 1 else f"a {unit}"
    return (
        f"Only exact repeats of {what} are taken out: near copies stay, and a text can have a gap where something was "
        "taken out."
    )


def licence(all_crawled: bool) -> str:
    """Returns what is to be known about rights in the texts; `all_crawled`: every WET file is Common Crawl's."""
    whose = (
        f"The texts come from Common Crawl, whose [terms of use]({TERMS}) hold for them."
        if all_crawled
        else "Not all WET files have names of Common Crawl's. For those that are Common Crawl's, its "
        f"[terms of use]({TERMS}) hold; for the others, what their makers say."
    )
    return f"{whose} The pages' authors keep their rights in each text: this collection grants none."


def loading(kind: str, language: str, split: str, extension: str) -> str:
    """Returns how to load a corpus, in Markdown.

    Args:
        kind: the format, as `--format` has it.
        language: one that has pages.
        split: one of its splits that has pages.
        extension: what the names of its files end in.
    """
    shard = f"{language}/c4-{split}-*.{extension}"
    if kind == "tfrecord":
        return (
            "The corpus is in TFRecord alone, which `datasets` doesn't load: there are no `configs` above. With "
            f"TensorFlow:\n\n{_code(_TENSORFLOW, shard)}"
        )
    with_datasets = (
        "With [datasets](https://huggingface.co/docs/datasets); without a language, all of them come. A split without "
        f"a page is left out.\n\n{_code(_DATASETS, language, split)}"
    )
    if kind == "json":
        return (
            f"{with_datasets}\n\n`datasets` takes `timestamp` of JSON Lines for a time.\n\nWith the standard library:"
            f"\n\n{_code(_STANDARD_LIBRARY, shard)}"
        )
    return f"{with_datasets}\n\nWith pyarrow:\n\n{_code(_PYARROW, shard)}"


def _code(lines: str, *values: str) -> str:
    return f"```python\n{lines.format(*values)}\n```"


_DATASETS = """\
from datasets import load_dataset

pages = load_dataset("path/of/this/folder", "{}", split="{}")
print(pages[0]["url"], pages[0]["text"])"""

_PYARROW = """\
from glob import glob

import pyarrow.parquet as pq

for file in sorted(glob("{}")):
    for page in pq.read_table(file).to_pylist():
        print(page["url"], page["text"])"""

_STANDARD_LIBRARY = """\
import gzip
import json
from glob import glob

for file in sorted(glob("{}")):
    with gzip.open(file) as lines:
        for page in map(json.loads, lines):
            print(page["url"], page["text"])"""

_TENSORFLOW = """\
import tensorflow as tf

files = tf.data.Dataset.list_files("{}", shuffle=False)
features = {{name: tf.io.FixedLenFeature([], tf.string) for name in ("url", "text")}}
for record in tf.data.TFRecordDataset(files, compression_type="GZIP"):
    page = tf.io.parse_single_example(record, features)
    print(page["url"].numpy().decode(), len(page["text"].numpy().decode()))"""
