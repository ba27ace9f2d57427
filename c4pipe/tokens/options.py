"""The options of the command `tokens` and of the function `write_token_files`. Making a record reads no file."""

from argparse import ArgumentTypeError
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Annotated, Any

from c4pipe.errors import UsageError
from c4pipe.io.options import Option, PathArgument
from c4pipe.io.words import FILE_ERRORS, explain_errors
from c4pipe.runners.runner_options import RunnerOptions

_CORPUS = "folder of a finished corpus, or of one of its languages"
_VOCABULARY = Option(
    "the tokenizer: its folder, its file (SentencePiece, tokenizer.json or tiktoken), or ORG/NAME of the Hub",
    "MODEL",
    flag="--vocab",
)
_END = Option("special token after each document", "TOKEN", otherwise="the one that the tokenizer's files name")
_BEGIN = Option("special token before each document", "TOKEN", otherwise="none")
_FORMAT = Option(
    "write all token ids: megatron (.bin and .idx for Megatron-LM and NeMo), npy (an array of packed rows), llmc (.bin "
    "with a header), nanogpt (train.bin and val.bin) or olmo (.npy without a header)",
    "F",
)
_OUTPUT = Option("for --format: folder for the files, on this machine or mounted here; all workers need it", "DIR")
_LENGTH = Option("for --format npy: tokens of a row", "N")


def parse_weights(text: str) -> Mapping[Any, Any]:
    """Returns weights: `1:1,2:2,100:0.5` by copies, `score@0.4:0,1:2` by quantiles, `score` for a target, or the table
    in a TOML file, for a mix with the name of the file (see `parse_mix`).

    Raises ArgumentTypeError for another form.
    """
    if text.lower().endswith(".toml"):
        from c4pipe.read.mix_file import read_mix_table  # NumPy comes with it

        with explain_errors(f"{text} can't be read", kind=ArgumentTypeError, errors=FILE_ERRORS):
            return read_mix_table(text)
    if text.isidentifier():
        return {"column": text}
    column, _, table = text.rpartition("@")
    number = float if column else int
    try:
        pairs = [(number(size), float(weight)) for size, weight in (each.split(":") for each in table.split(","))]
    except ValueError:
        pairs = []
    if not pairs or len(dict(pairs)) < len(pairs):
        raise ArgumentTypeError(
            f"{text!r} is no table COPIES:TIMES with each number of copies once, such as 1:1,2:2,100:8; nor "
            "COLUMN@END:TIMES, such as score@0.4:0,0.9:1,1:7; nor a file that ends in .toml"
        )
    return {"column": column, "quantiles": [list(pair) for pair in pairs]} if column else dict(pairs)


def mix_of(corpus: PathArgument | None, *weights: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """Returns the weights that are a mix, None for a corpus. Raises UsageError for both, and for none of them."""
    mix = next((each for each in weights if each and "sources" in each), None)
    if corpus is None and mix is None:
        raise UsageError("the following arguments are required: CORPUS (see c4pipe tokens --help)")
    if corpus is not None and mix is not None:
        raise UsageError(f"a mix names its corpora: leave out {corpus}, or the mix (see c4pipe tokens --help)")
    return mix


_WEIGHTS = Option(
    "for --format: how often a document of the train split is written, by its number of copies, such as 1:1,2:2,100:8 "
    "(the corpus needs the column copies, --copies); or by the quantiles of a column, such as "
    "score@0.4:0,0.9:1,1:7; or a column for --target-tokens; or a TOML file, also of a mix of several corpora",
    "TABLE",
    otherwise="each document once",
    parse=parse_weights,
)


@dataclass(frozen=True)
class TokenFileOptions(RunnerOptions):
    """Token files: a corpus to files of ids. `files.write` checks the options."""

    corpus: Annotated[
        PathArgument | None,
        Option(f"{_CORPUS}; also a URL of a store or a web server; None for a mix in --weights", positional=True),
    ]
    vocabulary: Annotated[PathArgument, _VOCABULARY]
    _: KW_ONLY
    output: Annotated[PathArgument, _OUTPUT]
    format: Annotated[str, _FORMAT] = "megatron"
    length: Annotated[int | None, _LENGTH] = None
    end_of_document: Annotated[str | None, _END] = None
    begin_of_document: Annotated[str | None, _BEGIN] = None
    weights: Annotated[Mapping[Any, Any] | None, _WEIGHTS] = None


_CORPUS_OR_FILES = Option(
    f"{_CORPUS}; for --find, files that --format wrote", "CORPUS", "the sources of a mix", positional=True, nargs="?"
)


@dataclass(frozen=True, kw_only=True)
class TokenOptions:
    """A count of tokens, a subset, token files, or a search in token files: the command `tokens`."""

    corpus: Annotated[str | None, _CORPUS_OR_FILES] = None
    vocabulary: Annotated[str | None, _VOCABULARY] = None
    budget_subset: Annotated[
        str | None,
        Option("also write a list of the first documents that have this many tokens together, such as 2^29", "TOKENS"),
    ] = None
    best_first: Annotated[
        str | None,
        Option(
            "for --budget-subset: take the documents with the largest numbers of a column, such as one of --score",
            "COLUMN",
            otherwise="the first ones of the corpus",
        ),
    ] = None
    training_tokens: Annotated[
        str, Option("tokens of the planned training; the command says how often it reads the subset", "TOKENS")
    ] = "2^35"
    format: Annotated[str | None, _FORMAT] = None
    output: Annotated[str | None, _OUTPUT] = None
    length: Annotated[int | None, _LENGTH] = None
    end_of_document: Annotated[str | None, _END] = None
    begin_of_document: Annotated[str | None, _BEGIN] = None
    weights: Annotated[Mapping[Any, Any] | None, _WEIGHTS] = None
    plan: Annotated[
        Mapping[Any, Any] | None,
        Option(
            "print how many documents and tokens weights by a column take, and keep this plan in tokens.json: "
            "COLUMN@END:TIMES, a column for --target-tokens, or a TOML file, also of a mix of several corpora; "
            "--weights by tokens needs the plan",
            "TABLE",
            parse=parse_weights,
        ),
    ] = None
    target_tokens: Annotated[
        str | None,
        Option(
            "for --plan and --weights, instead of quantiles: the tokens to read in an epoch, such as 2_000_000_000; "
            "documents with larger numbers of the column are read more often, as in Olmo 3",
            "TOKENS",
        ),
    ] = None
    max_repeat: Annotated[
        float | None,
        Option("for --target-tokens: the most times that a document is read", "N", otherwise="the file's number, or 7"),
    ] = None
    lists: Annotated[str | None, Option("for --plan of a mix: folder for lists for other trainers", "DIR")] = None
    find: Annotated[
        int | None,
        Option("print the page of document N of files that --format wrote, or the pages in row N of an npy file", "N"),
    ] = None
