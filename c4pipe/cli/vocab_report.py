"""The command `vocab-report`: measures vocabularies on held-out pages."""

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import new_table, note, printer, styled
from c4pipe.cli.options import QuietOptions, Shown, path_or_url
from c4pipe.cli.parser import Command
from c4pipe.io.options import Option
from c4pipe.io.words import first_of
from c4pipe.vocab.request import SourceOptions

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.io.paths import StoragePath
    from c4pipe.vocab.quality import Figures
    from c4pipe.vocab.sources import TrainingText

FIGURES_FILE = "quality.json"
"""The name of the file of figures."""

NO_PIECE = 0.01
"""A source with a larger share of tokens that stand for characters without a piece gets a note."""


@dataclass(frozen=True, kw_only=True)
class VocabReportOptions(QuietOptions, SourceOptions):
    """The options of the command."""

    vocabulary: Annotated[
        "StoragePath",
        Option(
            "the folder of a vocabulary, or the file of a SentencePiece model",
            "VOCABULARY",
            positional=True,
            parse=path_or_url,
        ),
    ]
    compare: Annotated[
        Sequence["StoragePath"],
        Option("another vocabulary or SentencePiece model to compare with", "MODEL", repeated=True, parse=path_or_url),
    ] = ()
    output: Annotated["StoragePath | None", Option("folder for quality.json", "DIR", parse=path_or_url)] = None


def run(options: VocabReportOptions) -> None:
    """Measures vocabularies, and prints their figures."""
    from c4pipe.vocab.model import model_file
    from c4pipe.vocab.sources import languages_of

    models = [model_file(path) for path in (options.vocabulary, *options.compare)]
    sources = [each for source in options.weighted_sources for each in languages_of(source)]
    measure(options, sources, models, options.output)


def measure(
    options: Shown, sources: Sequence["TrainingText"], models: Sequence["StoragePath"], output: "StoragePath | None"
) -> None:
    """Measures models on the held-out pages of sources, prints a table, and writes quality.json into a folder."""
    from c4pipe.io.atomic import make_folder, write_text
    from c4pipe.vocab.quality import Vocabulary, held_out
    from c4pipe.vocab.sources import find_reading, source_labels

    vocabularies = [Vocabulary(name, file) for name, file in zip(_names(models), models, strict=True)]
    figures: list[Figures] = []
    empty: list[str] = []
    for label, source in zip(source_labels(sources), sources, strict=True):
        texts = held_out(find_reading(source, held_out=True))
        if texts:
            figures += [each.measure(label, texts) for each in vocabularies]
        else:
            empty.append(str(source.path))
    if options.json_progress or not options.quiet:
        for text in _notes(empty, figures):
            note(text, options.json_progress)
    if not figures:
        return
    if not options.quiet:
        printer(sys.stdout).print(quality_table(figures))
    if output is not None:
        make_folder(output)
        write_text(output / FIGURES_FILE, json.dumps([each.to_json() for each in figures], indent=1) + "\n")


def _notes(empty: Sequence[str], figures: Sequence["Figures"]) -> Iterator[str]:
    """Yields a sentence about sources without held-out pages, and one about missing pieces."""
    if empty:
        yield f"{', '.join(first_of(empty))}: no page is held out, so nothing is measured"
    lacking = [each for each in figures if each.no_piece_share > NO_PIECE]
    if lacking:
        lacking.sort(key=lambda each: -each.no_piece_share)
        shares = [f"{each.source} ({each.no_piece_share:.1%}, {each.vocabulary})" for each in lacking]
        named = ", ".join(first_of(shares))
        yield (
            f"more than {NO_PIECE:.0%} of the tokens are unknown or single bytes in {named}: train with a --coverage "
            "nearer to 1, or give these languages more weight"
        )


def _names(models: Sequence["StoragePath"]) -> list[str]:
    """Returns the name of each model's file or folder, with a number if several models have the same name."""
    from c4pipe.vocab.quality import model_name

    names = [model_name(file) for file in models]
    repeated = {name for name in names if names.count(name) > 1}
    return [f"{name} ({n})" if name in repeated else name for n, name in enumerate(names, 1)]


def quality_table(figures: Sequence["Figures"]) -> "Table":
    """Returns a row for each source and vocabulary, grouped by source. A single vocabulary has no column."""
    alone = len({each.vocabulary for each in figures}) == 1
    columns = ("tokens", "characters\nper token", "tokens\nper word", "unknown\nor bytes", "pieces\nused")
    table = new_table("held-out\npages of", *(() if alone else ("vocabulary",)), numbers=columns)
    first: Figures | None = None  # of the source
    for each in figures:
        is_first = first is None or each.source != first.source
        first = each if is_first else first
        assert first is not None
        change = "" if is_first else f" ({each.tokens / first.tokens - 1:+.1%})"
        table.add_row(
            styled(f"{each.source} ({each.pages:,})" if is_first else ""),
            *(() if alone else (styled(each.vocabulary),)),
            f"{each.tokens:,}{change}",
            f"{each.characters_per_token:.2f}",
            "-" if each.tokens_per_word is None else f"{each.tokens_per_word:.2f}",
            f"{each.no_piece_share:.3%}",
            f"{each.used_share:.1%}",
        )
    return table


COMMAND = Command(
    VocabReportOptions,
    run,
    examples=("c4pipe vocab-report vocabulary corpus/en", "c4pipe vocab-report vocabulary corpus"),
)
