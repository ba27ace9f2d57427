"""c4pipe builds a C4 pretraining corpus from Common Crawl WET files.

build_corpus       WET files to a corpus
clean_files        job 1 alone: WET files to work files
dedup_files        job 2 alone: work files to a corpus
add_files          work files to a new part of a finished corpus
import_text        other text to a corpus: Parquet, JSON Lines, plain text
open_corpus        a finished corpus: its manifest, counts and shards
Cleaner            the filters of a recipe on any text
find_overlap       what a corpus shares with evaluation examples
explain_text       what each rule of a recipe decides about a text
train_vocabulary   a SentencePiece vocabulary from corpora and other text
write_token_files  the token ids of a corpus, for Megatron-LM and other trainers
Recipe             the rules of a corpus, with their parameters and their order

PageRule           a rule on pages of your own; LineRule, a rule on lines; Between, the limits of a number

Types of their values: CheckedPage, Corpus, FileOverlap, LineVerdict, Match, Overlap, PageVerdict, ProgressEvent and
RuleVerdict.

Each name is imported when it is first used: `import c4pipe` alone imports the errors only.
"""

from c4pipe.errors import C4pipeError, JobWritten, LostDataError, UsageError

TYPE_CHECKING = False  # true for type checkers; the module `typing` takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from c4pipe.clean.evaluate import RuleVerdict
    from c4pipe.clean.text_cleaner import Cleaner
    from c4pipe.clean.trace import LineVerdict, PageVerdict
    from c4pipe.corpus.opened import Corpus, open_corpus
    from c4pipe.filters.checked_page import CheckedPage
    from c4pipe.filters.rule import Between, LineRule, PageRule
    from c4pipe.inspect.overlap import FileOverlap, Match, Overlap, find_overlap
    from c4pipe.jobs.api import add_files, build_corpus, clean_files, dedup_files, explain_text, import_text
    from c4pipe.recipes.recipe import Recipe
    from c4pipe.runners.events import ProgressEvent
    from c4pipe.tokens import write_token_files
    from c4pipe.vocab import train_vocabulary

    __version__: str

__all__ = [
    "Between",
    "C4pipeError",
    "CheckedPage",
    "Cleaner",
    "Corpus",
    "FileOverlap",
    "JobWritten",
    "LineRule",
    "LineVerdict",
    "LostDataError",
    "Match",
    "Overlap",
    "PageRule",
    "PageVerdict",
    "ProgressEvent",
    "Recipe",
    "RuleVerdict",
    "UsageError",
    "__version__",
    "add_files",
    "build_corpus",
    "clean_files",
    "dedup_files",
    "explain_text",
    "find_overlap",
    "import_text",
    "open_corpus",
    "train_vocabulary",
    "write_token_files",
]

_MODULES = {
    "Between": "c4pipe.filters.rule",
    "CheckedPage": "c4pipe.filters.checked_page",
    "Cleaner": "c4pipe.clean.text_cleaner",
    "Corpus": "c4pipe.corpus.opened",
    "FileOverlap": "c4pipe.inspect.overlap",
    "LineRule": "c4pipe.filters.rule",
    "LineVerdict": "c4pipe.clean.trace",
    "Match": "c4pipe.inspect.overlap",
    "Overlap": "c4pipe.inspect.overlap",
    "PageRule": "c4pipe.filters.rule",
    "PageVerdict": "c4pipe.clean.trace",
    "ProgressEvent": "c4pipe.runners.events",
    "Recipe": "c4pipe.recipes.recipe",
    "RuleVerdict": "c4pipe.clean.evaluate",
    "add_files": "c4pipe.jobs.api",
    "build_corpus": "c4pipe.jobs.api",
    "clean_files": "c4pipe.jobs.api",
    "dedup_files": "c4pipe.jobs.api",
    "explain_text": "c4pipe.jobs.api",
    "find_overlap": "c4pipe.inspect.overlap",
    "import_text": "c4pipe.jobs.api",
    "open_corpus": "c4pipe.corpus.opened",
    "train_vocabulary": "c4pipe.vocab.job",
    "write_token_files": "c4pipe.tokens.files",
}
"""The modules of the names that are imported when they are first used."""


def _import_public(name: str) -> "Any":
    """Imports a public name when it is first used (PEP 562)."""
    value: Any
    if name == "__version__":
        from importlib.metadata import version

        value = version("c4pipe")
    elif name in _MODULES:
        from importlib import import_module

        value = getattr(import_module(_MODULES[name]), name)
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # a type checker sees the imports above, and no other name
    __getattr__ = _import_public


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
