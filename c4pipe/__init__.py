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

`__init__.pyi` lists the names. Each is imported when it is first used.
"""

from functools import cache
from typing import Any


@cache
def _faces() -> tuple[Any, list[str]]:
    """Returns a function that imports a public name, and all these names. Commands need neither."""
    import lazy_loader

    find, _, names = lazy_loader.attach_stub(__name__, __file__)
    return find, sorted([*names, "__version__"])


def __getattr__(name: str) -> Any:
    """Returns a public name (PEP 562). Raises AttributeError for any other name."""
    if name == "__version__":
        from importlib.metadata import version

        return version("c4pipe")
    find, names = _faces()
    return names if name == "__all__" else find(name)


def __dir__() -> list[str]:
    return _faces()[1]
