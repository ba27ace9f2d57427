"""The command `vocab-report`: how well vocabularies fit held-out pages."""

import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import new_table, note, printer, styled
from c4pipe.cli.options import QuietOptions, Shown, path_or_url
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option
from c4pipe.vocab.request import SourceOptions

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.io.paths import StoragePath
    from c4pipe.vocab.quality import Figures
    from c4pipe.vocab.sources import Source

FIGURES, PICTURE = "quality.json", "quality.svg"
"""The files that it writes."""


@dataclass(frozen=True, kw_only=True)
class _ComparisonOptions:
    compare: Annotated[
        Sequence["StoragePath"],
        Option(
            "another vocabulary or SentencePiece model to compare with; can be repeated",
            "MODEL",
            repeated=True,
            parse=path_or_url,
        ),
    ] = ()
    output: Annotated[
        "StoragePath | None", Option("folder for quality.json and quality.svg", "DIR", parse=path_or_url)
    ] = None


@dataclass(frozen=True, kw_only=True)
class _VocabularyOptions:
    vocabulary: Annotated[
        "StoragePath",
        Option(
            "the folder of a vocabulary, or the file of a SentencePiece model",
            "VOCABULARY",
            positional=True,
            parse=path_or_url,
        ),
    ]


@dataclass(frozen=True, kw_only=True)
class VocabReportOptions(QuietOptions, _ComparisonOptions, SourceOptions, _VocabularyOptions):
    """The options of the command."""

    json_progress = False


def run(options: VocabReportOptions) -> None:
    """Measures a vocabulary, and others beside it, and prints their figures."""
    from c4pipe.vocab.model import model_file

    models = [model_file(path) for path in (options.vocabulary, *options.compare)]
    measure(options, options.weighted_sources, models, options.output)


def measure(
    options: Shown,
    sources: Sequence["Source"],
    models: Sequence["StoragePath"],
    output: "StoragePath | None",
) -> None:
    """Measures models on the held-out pages of sources, prints a table, and writes the files if a folder is given."""
    from c4pipe.io.atomic import make_folder, write_text
    from c4pipe.vocab.quality import Vocabulary, held_out, quality_picture
    from c4pipe.vocab.sources import find_pages, source_labels

    vocabularies = [Vocabulary(name, file) for name, file in zip(_names(models), models, strict=True)]
    figures: list[Figures] = []
    for label, source in zip(source_labels(sources), sources, strict=True):
        texts = held_out(find_pages(source, held_out=True))
        if texts:
            figures += [each.measure(label, texts) for each in vocabularies]
        elif options.json_progress or not options.quiet:
            note(f"{source.path} has no held-out page, so nothing is measured on it", options.json_progress)
    if not figures:
        return
    if not options.quiet:
        printer(sys.stdout).print(quality_table(figures))
    if output is not None:
        make_folder(output)
        write_text(output / FIGURES, json.dumps([each.to_json() for each in figures], indent=1) + "\n")
        write_text(output / PICTURE, quality_picture(figures))


def _names(models: Sequence["StoragePath"]) -> list[str]:
    """Returns a name for each model: that of its file or folder, with a number where several have the same."""
    from c4pipe.vocab.quality import model_name

    names = [model_name(file) for file in models]
    repeated = {name for name in names if names.count(name) > 1}
    return [f"{name} ({n})" if name in repeated else name for n, name in enumerate(names, 1)]


def quality_table(figures: Sequence["Figures"]) -> "Table":
    """Returns a table of figures: a row for each source and vocabulary, grouped by source."""
    table = new_table()
    table.add_column("held-out\npages of", no_wrap=True)
    table.add_column("vocabulary", no_wrap=True)
    for column in ("tokens", "characters\nper token", "tokens\nper word", "unknown", "pieces\nused"):
        table.add_column(column, justify="right", no_wrap=True)
    first: Figures | None = None  # of the source
    for each in figures:
        is_first = first is None or each.source != first.source
        first = each if is_first else first
        assert first is not None
        change = "" if is_first else f" ({each.tokens / first.tokens - 1:+.1%})"
        table.add_row(
            styled(f"{each.source} ({each.pages:,})" if is_first else ""),
            styled(each.vocabulary),
            f"{each.tokens:,}{change}",
            f"{each.characters_per_token:.2f}",
            f"{each.tokens_per_word:.2f}",
            f"{each.unknown_share:.3%}",
            f"{each.used_share:.1%}",
        )
    return table


COMMAND = Command(VocabReportOptions, run, examples=("c4pipe vocab-report vocabulary corpus/en",))
