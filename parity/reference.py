"""What TensorFlow Datasets makes of WET files: the installed package's own C4, as JSON Lines.

    python parity/reference.py CONFIG OUT LISTS FILE ... [--links FILE]

Nothing of it is copied here: the steps are the ones that its builder composes. It is given what it would download
(the WET files, the lists, the sentence tokenizer's model, the list of public suffixes), and runs in one thread.
"""

# ruff: noqa: E402
import argparse
import json
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import gcld3

gcld3.NNetLanguageIdentifier(100, 10_000)  # before TensorFlow, whose symbols it takes for its own otherwise: a crash

import apache_beam as beam
import nltk.tokenize.punkt
import punkt
import tensorflow  # noqa: F401  with this module, and not when the package first needs it: compare.py forks its process
import tldextract
from apache_beam.options.pipeline_options import DirectOptions, PipelineOptions
from apache_beam.runners.portability.fn_api_runner.fn_runner import FnApiRunner
from tensorflow_datasets.text import c4, c4_utils

from c4pipe.lists.pinned_lists import REALNEWS, bad_words_file


def sentence_tokenizer() -> Any:
    """Returns NLTK's Punkt with the English model that c4pipe uses."""
    model = punkt.load_model("english")
    parameters = nltk.tokenize.punkt.PunktParameters()
    parameters.abbrev_types = set(model.abbrev_types)
    parameters.collocations = set(model.collocations)
    parameters.sent_starters = set(model.sent_starters)
    parameters.ortho_context.update({word: int(flags) for word, flags in model.ortho_context.items()})
    return nltk.tokenize.punkt.PunktSentenceTokenizer(parameters)


def pages_of(
    config: Any, pipeline: beam.Pipeline, files: list[str], lists: Path, links: Path | None, folder: Path
) -> Any:
    """Adds the package's own steps to a pipeline and returns their pages, split and all.

    Args:
        config: one of the builder's configurations.
        pipeline: the pipeline.
        files: paths of WET files.
        lists: the folder of the bad words and domains.
        links: a file of URLs, for `webtextlike`.
        folder: an empty folder, for what the package expects in its own.
    """
    downloads = folder / "c4_wet_files"
    downloads.mkdir()
    for file in files:
        (downloads / Path(file).name).symlink_to(Path(file).resolve())
    (folder / "wet.paths").write_text("".join(f"{Path(file).name}\n" for file in files))
    given: dict[str, Any] = {
        "wet_path_urls": [str(folder / "wet.paths")],
        "badwords": {lang: str(lists / str(bad_words_file(lang))) for lang in c4._BADWORDS_LANGS},
        "realnews_domains": str(lists / REALNEWS),
        "openwebtext_urls_zip": str(folder),
    }
    if links:
        urls = folder / "OpenWebText" / "Version 1" / "URLs"
        urls.mkdir(parents=True)
        (urls / "links.txt").symlink_to(links.resolve())
    builder = SimpleNamespace(builder_config=config)
    return c4.C4._get_pages_pcollection(builder, pipeline, given, SimpleNamespace(download_dir=str(folder)))


def row(page: Any) -> str:
    """Returns a page as a line of JSON, with the side that the builder puts it on."""
    is_validation = c4_utils.get_hashed_url_filter_fn(predicate_fn=lambda number: number % 1000 == 0)
    values = {
        "url": page.url,
        "text": page.text,
        "timestamp": page.timestamp,
        "language": page.language,
        "split": "validation" if is_validation(page) else "train",
    }
    return json.dumps(values, ensure_ascii=False)


def write_pages(config: str, out: Path, lists: Path, files: list[str], links: Path | None) -> None:
    """Runs one configuration, and writes its pages to the file `out`. See `pages_of` for the arguments."""
    c4_utils._SENTENCE_TOKENIZER = sentence_tokenizer()
    tldextract.extract = tldextract.TLDExtract(suffix_list_urls=())
    chosen = next(each for each in c4.C4.BUILDER_CONFIGS if each.name == config)
    rows: list[str] = []
    with TemporaryDirectory() as folder:
        options = PipelineOptions(["--no_pipeline_type_check"])  # the package's own hints are wrong for the domains
        options.view_as(DirectOptions).direct_num_workers = 1
        with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
            pages = pages_of(chosen, pipeline, files, lists, links, Path(folder))
            _ = pages | beam.Map(row) | beam.io.WriteToText(f"{folder}/rows", shard_name_template="")
        rows = sorted(Path(f"{folder}/rows").read_text(encoding="utf-8").split("\n"))
    out.write_text("".join(f"{each}\n" for each in rows if each), encoding="utf-8")


def main() -> None:
    """Runs one configuration."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("config", choices=[config.name for config in c4.C4.BUILDER_CONFIGS])
    parser.add_argument("out", type=Path)
    parser.add_argument("lists", type=Path)
    parser.add_argument("files", nargs="+")
    parser.add_argument("--links", type=Path)
    arguments = parser.parse_args()
    write_pages(**vars(arguments))


if __name__ == "__main__":
    main()
