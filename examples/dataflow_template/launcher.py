"""A Dataflow Flex Template: builds a corpus with a transform of its own between those of c4pipe.

Dataflow starts this program in the template's image, to put the graph together (docs/beam.md). It also runs here:

    python launcher.py --inputs samples/crawl --output corpus --lists samples/lists
"""

import argparse
import re
from collections.abc import Sequence

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions

from c4pipe.beam import CleanPages, KeepNewest, Page, ReadPages, RemoveRepeatedSpans, WriteCorpus
from c4pipe.recipes.choose import choose_recipe


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser of the template's parameters; metadata.json describes the same ones."""
    parser = argparse.ArgumentParser(description="Builds a C4 corpus from WET files.")
    parser.add_argument("--inputs", required=True, help="crawls, URLs, paths or folders of WET files, with commas")
    parser.add_argument("--files", help="a slice of a crawl's files, such as 0:100")
    parser.add_argument("--output", required=True, help="the folder of the corpus")
    parser.add_argument("--recipe", default="c4", help="a recipe's name")
    parser.add_argument("--lists", help="the folder with the bad-words lists")
    parser.add_argument("--formats", default="parquet", help="formats of the shards, with commas")
    parser.add_argument("--shards", type=int, help="train shards for each language")
    parser.add_argument("--exclude_urls", help="a regular expression: pages with such a URL are left out")
    return parser


def build(root: beam.Pipeline, options: argparse.Namespace) -> beam.PCollection:
    """Adds the transforms to a pipeline, and returns the path of the manifest."""
    recipe = choose_recipe(options.recipe)
    scheme, _ = recipe.page_keys
    pages = root | "Read pages" >> ReadPages(options.inputs.split(","), files=options.files)
    if options.exclude_urls:
        pages |= "Exclude URLs" >> beam.Filter(is_wanted, options.exclude_urls).with_output_types(Page)
    newest = pages | "Clean pages" >> CleanPages(recipe, lists=options.lists) | "Keep newest" >> KeepNewest(scheme)
    spans = RemoveRepeatedSpans.by_recipe(recipe, lists=options.lists)
    write = WriteCorpus(options.output, options.formats, shards=options.shards, recipe=recipe, lists=options.lists)
    return newest | "Remove repeated spans" >> spans | "Write corpus" >> write


def is_wanted(page: Page, exclude_urls: str) -> bool:
    """Tells whether the URL of a page is not excluded."""
    return re.search(exclude_urls, page.url) is None


def main(arguments: Sequence[str] | None = None) -> None:
    """Puts the pipeline together, and starts it. On Dataflow this returns at once, as a template must."""
    options, beam_options = make_parser().parse_known_args(arguments)
    pipeline = beam.Pipeline(options=PipelineOptions(beam_options))
    build(pipeline, options)
    pipeline.run()


if __name__ == "__main__":
    main()
