"""The tokenizer of a corpus' tokens: a file of one of three libraries, and the ids around each document.

The libraries are SentencePiece, tokenizers (`tokenizer.json`, the form of Transformers and the Hugging Face Hub) and
tiktoken. Text is text for each of them: `</s>` in a page never becomes the token that ends a document. The ids around
documents are counted: a page with another number of them is an error.
"""

import os
import re
import string
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.errors import C4pipeError, UsageError
from c4pipe.io.atomic import write_bytes
from c4pipe.io.json_files import read_json
from c4pipe.io.paths import StoragePath, list_names, read_file, storage_path
from c4pipe.io.words import error_reason, explain_errors, short, short_repr, suggestion
from c4pipe.objectives.rows import TokenRows, starts_of
from c4pipe.text.long_runs import cut_runs
from c4pipe.tokens.byte_level import O200K, fast_encoder
from c4pipe.vocab.model import MODEL, TOKENIZER, TOKENIZER_CONFIG, SentencePieceModel, load_model, read_description

SENTENCEPIECE, TOKENIZERS, TIKTOKEN = "sentencepiece", "tokenizers", "tiktoken"

# Of c4pipe; Transformers; T5's and Llama's slow tokenizers.
_FILES = (MODEL, TOKENIZER, "spiece.model", "tokenizer.model")
_CONFIGS = (TOKENIZER_CONFIG, "special_tokens_map.json")
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_RANKS = re.compile(rb"[A-Za-z0-9+/]+=* \d+\r?\n")  # a line of a tiktoken file: the bytes of a token, and its rank
_BYTE = re.compile("<0x[0-9A-F]{2}>")
_MOST_IDS = 1 << 32  # in the files of all layouts, and in the libraries
_PROBE = "\U000f0000\0 a<"  # a character that no vocabulary has, and others: a wrong file fails before any page
_LONG_RUN = re.compile(r"(?<!\s)\s{100000,}|(?<!\S)\S{100000,}")
_ENDS = ("<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>")  # of GPT-2; Llama 2 and T5; Llama 3; Gemma

_GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s"
_CL100K = (
    r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|"
    r"\s+(?!\S)|\s"
)
_OPENAI: Mapping[str, tuple[str, int]] = {
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930": (_GPT2, 50256),  # r50k_base, also of GPT-2
    "94b5ca7dff4d00767bc256fdd1b27e5b17361d7b8a5f968547f9f23eb70d2069": (_GPT2, 50256),  # p50k_base
    "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7": (_CL100K, 100257),  # cl100k_base
    "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d": (O200K, 199999),  # o200k_base
}
"""The pattern and the id of `<|endoftext|>` of OpenAI's files, by SHA-256 (tiktoken_ext/openai_public.py)."""


_STOPS = (KeyboardInterrupt, SystemExit)  # all other exceptions are the libraries'; a panic of Rust is no Exception


@dataclass(frozen=True)
class _Loaded:
    """A tokenizer in memory: function for texts, number of ids, special tokens with ids, the token that ends a
    document, if the file names it, and the fields of `TokenizerFile`.
    """

    encode: Callable[[Sequence[str]], Iterable[npt.NDArray[Any]]]
    size: int
    special: Mapping[str, int]
    end: str | None = None
    faster: str = ""
    note: str = ""


class DocumentTokenizer:
    """A loaded tokenizer, with the ids before and after each document."""

    def __init__(self, loaded: _Loaded, begin: int | None, end: int) -> None:
        self._loaded = loaded
        kind = np.int32 if max(loaded.size - 1, end, begin or 0) < 1 << 31 else np.uint32
        self._begin = [np.array([each], kind) for each in ([] if begin is None else [begin])]
        self._end = np.array([end], kind)

    def encode(self, texts: Sequence[str], urls: Sequence[str]) -> TokenRows:
        """Returns the ids of documents, a row for each, with the ids around it. It uses one core.

        Raises C4pipeError, with the URL or the first words of the document, if the library fails, or if its ids of the
        text have one of the ids around documents.
        """
        rows = list[npt.NDArray[Any]]()
        try:
            for row in self._loaded.encode(texts):
                if any((row == each).any() for each in (*self._begin, self._end)):
                    raise ValueError("its text has the id of a token around documents")
                rows.append(row)
        except _STOPS:
            raise
        except BaseException as error:
            page = urls[len(rows)] or repr(short(texts[len(rows)], 80))
            reason = error_reason(error).rstrip(".")
            raise C4pipeError(
                f"{page} can't be tokenized: {reason}: leave the page out (c4pipe takedown), or change --vocab"
            ) from None
        joined = [each for row in rows for each in (*self._begin, row, self._end)]  # faster than `framed`
        values = np.concatenate([self._end[:0], *joined], dtype=self._end.dtype, casting="unsafe")
        more = len(self._begin) + 1
        return TokenRows(values, starts_of([len(row) + more for row in rows]))


@dataclass(frozen=True, repr=False)
class TokenizerFile:
    """The file of a tokenizer and its properties, as plain values that travel to workers.

    Attributes:
        library: the package that reads the file.
        sha256: the SHA-256 of the file in hex; for tiktoken, of the file and the pattern after it.
        size: the number of ids.
        end: the id after each document.
        begin: the id before each document; None for nothing.
        pattern: for tiktoken, the regular expression that divides a text into words.
        faster: the package that makes the same ids of most texts; empty if there is none.
        note: a sentence for the user, if that package is missing.
    """

    file: str
    library: str
    sha256: str
    size: int
    end: int
    begin: int | None = None
    pattern: str = ""
    faster: str = ""
    note: str = ""

    def __repr__(self) -> str:
        return short_repr(self, self.file, self.library, f"{self.size:,} ids", f"sha256 {self.sha256[:12]}")

    @property
    def packages(self) -> dict[str, str]:
        """The versions of the packages that make the ids."""
        return {name: version(name) for name in (self.library, self.faster) if name}

    @property
    def versions(self) -> dict[str, str]:
        """The packages with their versions, which decide the ids, for the identity of parts."""
        return {"library": ", ".join(f"{name} {number}" for name, number in self.packages.items())}

    def copied(self, folder: StoragePath) -> "TokenizerFile":
        """Copies the file into a folder of all workers, and returns the tokenizer of the copy. Raises C4pipeError if
        the copy can't be written.
        """
        copy = folder / "_tokenizer"
        with explain_errors(f"{copy} can't be written", kind=C4pipeError):
            write_bytes(copy, read_file(storage_path(self.file)))
        return replace(self, file=str(copy))

    def load(self) -> DocumentTokenizer:
        """Loads the tokenizer in a worker. Raises UsageError if the file was changed since the command began."""
        os.environ["TOKENIZERS_PARALLELISM"] = "false"  # each worker is a process of its own
        data = read_file(storage_path(self.file))
        if _digest(data, self.pattern) != self.sha256:
            raise UsageError(f"{self.file} was changed while it was in use: run the same command again")
        return DocumentTokenizer(_load(self.file, self.library, data, self.pattern, {}), self.begin, self.end)


def open_tokenizer(vocabulary: str, end: str | None = None, begin: str | None = None) -> TokenizerFile:
    """Looks a tokenizer up, and the special tokens around each document.

    Args:
        vocabulary: the file of a tokenizer, the folder of one, or the id of a repository on the Hugging Face Hub.
        end: the name of the token after each document; None for the one that the files of the tokenizer name.
        begin: the name of the token before each document; None for nothing.

    Raises UsageError if there is no such file, its library is missing or can't read it, or it has no such token.
    """
    file = _find(vocabulary)
    with explain_errors(f"--vocab {file} can't be read"):
        data = read_file(file)
    pattern, special, library = "", dict[str, int](), SENTENCEPIECE
    if file.name.lower().endswith(".json"):
        library = TOKENIZERS
    elif file.name.lower().endswith(".tiktoken") or _RANKS.match(data):
        library = TIKTOKEN
        pattern, special = _pattern(file, data)
    else:
        load_model(file)  # checks it, also against vocab.json
    loaded = _load(str(file), library, data, pattern, special)
    default = None if end else _default_end(file, loaded)
    names = ", ".join(map(repr, list(loaded.special)[:20])) or "none"
    ids = dict[str, int]()
    for option, name in (("--end-of-document", end or default), ("--begin-of-document", begin)):
        if name is None and option == "--end-of-document":
            raise UsageError(f"{file} names no token for the end of a document: give {option} with one of its {names}")
        if name is not None and name not in loaded.special:
            near = suggestion(name, loaded.special)
            raise UsageError(f"{option} {name}: {file} has no such special token{near}; its special tokens: {names}")
        if name is not None:
            ids[option] = loaded.special[name]
    end_id, begin_id = ids["--end-of-document"], ids.get("--begin-of-document")
    path = file.absolute()  # a worker may run in any folder
    about = (str(path), library, _digest(data, pattern), loaded.size, end_id, begin_id, pattern)
    return TokenizerFile(*about, loaded.faster, loaded.note)


def _digest(data: bytes, pattern: str) -> str:
    return sha256(data + pattern.encode()).hexdigest()


def _find(vocabulary: str) -> StoragePath:
    """Returns the file of a tokenizer."""
    path = storage_path(vocabulary)
    if isinstance(path, Path) and not path.exists():
        if not _HUB_ID.fullmatch(vocabulary):
            raise UsageError(
                f"{path} does not exist: give the folder of a vocabulary, a tokenizer's file, or ORG/NAME of the Hub"
            )
        path = _downloaded(vocabulary)
    elif not path.is_dir():
        # c4pipe's own tokenizer.json: its ids are those of the model beside it but for some combining marks
        is_own = path.name == TOKENIZER and read_description(path.parent) and (path.parent / MODEL).exists()
        return path.parent / MODEL if is_own else path
    names = list_names(path)
    found = [name for name in _FILES if name in names] or sorted(name for name in names if name.endswith(".tiktoken"))
    if not found:
        raise UsageError(f"--vocab {vocabulary} has no tokenizer: neither {', '.join(_FILES)} nor a .tiktoken file")
    return path / found[0]


def _downloaded(repository: str) -> Path:
    """Returns the folder of a repository's tokenizer, downloaded from the Hugging Face Hub into its cache."""
    missing = f"--vocab {repository} is neither a file nor a folder here, and"
    try:
        from huggingface_hub import errors, snapshot_download
        from huggingface_hub.utils import disable_progress_bars
    except ImportError:
        raise UsageError(f"{missing} the Hub needs a package: run pip install 'c4pipe[tokenizers]'") from None
    disable_progress_bars()  # the command has its own
    names = [*_FILES[1:], *_CONFIGS, "*.tiktoken"]
    try:
        return Path(snapshot_download(repository, allow_patterns=names))
    except errors.RepositoryNotFoundError:
        raise UsageError(f"{missing} the Hub has no such repository, or it is private: check the name") from None
    except (OSError, ValueError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
        raise UsageError(f"{missing} it can't be downloaded from the Hub: {reason}") from None


def _load(file: str, library: str, data: bytes, pattern: str, special: Mapping[str, int]) -> _Loaded:
    """Loads a tokenizer from the bytes of its file. Raises UsageError if it can't be read."""
    try:
        if library == SENTENCEPIECE:
            model = SentencePieceModel(data)
            end = model.pieces[model.eos_id] if model.eos_id >= 0 else None
            return _Loaded(model.encode, model.size, model.control, end)
        loaded = _load_json(data) if library == TOKENIZERS else _load_ranks(data, pattern, special)
        list(loaded.encode([_PROBE]))
        return loaded
    except UsageError as error:
        raise UsageError(f"{file} can't be used: {error}; give another --vocab") from None
    except _STOPS:
        raise
    except ImportError:
        raise UsageError(f"{file} needs the package {library}: run pip install 'c4pipe[tokenizers]'") from None
    except BaseException as error:
        reason = error_reason(error).rstrip(".")
        raise UsageError(
            f"{file} can't be read by the package {library}: {reason}; it may need a newer {library}"
        ) from None


def _load_json(data: bytes) -> _Loaded:
    from tokenizers import Regex, Tokenizer, models, pre_tokenizers

    tokenizer = Tokenizer.from_buffer(data)
    tokenizer.no_truncation()
    tokenizer.no_padding()
    tokenizer.post_processor = None
    tokenizer.encode_special_tokens = True  # as text
    _check_growth(tokenizer.normalizer)
    model = tokenizer.model
    if isinstance(model, models.BPE):
        model.dropout = None
    added = tokenizer.get_added_tokens_decoder()
    special = {token.content: number for number, token in added.items() if token.special}
    pieces, has_bytes = tokenizer.get_vocab(with_added_tokens=False), getattr(model, "byte_fallback", False)
    _check_special(special, pieces)
    # The model itself can make a special token of its characters: then the first of them is split off, as in the files
    # of c4pipe. Most texts have none, so the others are encoded once more.
    names = {*special, *(filter(_BYTE.fullmatch, pieces) if has_bytes else ())} & pieces.keys()
    found = {name: pieces[name] for name in names if [each.value for each in model.tokenize(name)] == [name]}
    words = tokenizer.pre_tokenizer
    first = "|".join(f"{re.escape(name[0])}(?={re.escape(name[1:])})" for name in found)
    split = [pre_tokenizers.Split(Regex(first), "merged_with_previous")]
    apart = pre_tokenizers.Sequence([words, *split] if words else split)
    faster, note = None, ""
    try:
        faster = None if found else fast_encoder(data, tokenizer, special)
    except ImportError:
        note = "tiktoken is missing, so tokens take about 5 times as long: run pip install 'c4pipe[tokenizers]'"

    def encode(texts: Sequence[str]) -> Iterable[npt.NDArray[Any]]:
        for text in texts:  # one at a time: the library needs 170 bytes of memory for each token
            has_run = len(text) >= 100_000 and _LONG_RUN.search(text)
            if (row := faster(text) if faster and not has_run else None) is not None:
                yield row
                continue
            for tokenizer.pre_tokenizer in (words, apart):
                (encoding,) = tokenizer.encode_batch_fast([text], add_special_tokens=False)
                ids = np.array(encoding.ids, np.uint32)
                if not np.isin(ids, [*found.values()]).any():
                    break
            yield ids

    size = max([*tokenizer.get_vocab().values(), -1]) + 1
    return _Loaded(encode, size, special, faster=TIKTOKEN if faster else "", note=note)


def _check_growth(normalizer: Any) -> None:
    """Raises UsageError if a normalizer makes more than 32 characters of one: a page would need too much memory."""
    state = normalizer.__getstate__().decode() if normalizer else ""
    steps = list(normalizer) if '"normalizers":' in state else [normalizer] * bool(normalizer)
    for probe in {*string.printable, *state, *re.findall('"String":"(.+?)"', state)}:
        text = probe
        for step in steps:
            text = step.normalize_str(text)
            if len(text) > 32 * len(probe):  # NFKC: 18
                raise UsageError(f"its normalizer makes more than 32 characters of one, such as {probe[:20]!r}")


def _load_ranks(data: bytes, pattern: str, special: Mapping[str, int]) -> _Loaded:
    from base64 import b64decode

    from tiktoken import Encoding

    pairs = [line.split() for line in data.splitlines() if line]
    ranks = {b64decode(token): int(rank) for token, rank in pairs}
    numbers = {each for each in ranks.values() if 0 <= each < _MOST_IDS}
    if len(numbers) < len(pairs) or any(bytes([each]) not in ranks for each in range(256)):
        raise UsageError("each of its lines needs another rank below 2^32, and each of the 256 bytes a token")
    _check_special(special, ranks)
    encoding = Encoding("", pat_str=pattern, mergeable_ranks=ranks, special_tokens=dict(special))

    def encode(texts: Sequence[str]) -> Iterable[npt.NDArray[Any]]:
        for text in texts:
            pieces = cut_runs(text, _LONG_RUN, 100_000)  # the library fails on a million blanks
            yield np.concatenate([encoding.encode_to_numpy(each, disallowed_special=()) for each in pieces])

    return _Loaded(encode, encoding.n_vocab, special)


def _check_special(special: Mapping[str, int], pieces: Mapping[Any, int]) -> None:
    """Raises UsageError if a special token has the id of another piece of the vocabulary."""
    ids = {number for piece, number in pieces.items() if piece not in special}
    if taken := [name for name, number in special.items() if number in ids]:
        raise UsageError(f"its special token {taken[0]!r} has the id of other text")


def _pattern(file: StoragePath, data: bytes) -> tuple[str, dict[str, int]]:
    """Returns the pattern and the special tokens of a tiktoken file: from the JSON file beside it, or OpenAI's."""
    beside = file.parent / f"{file.name.removesuffix('.tiktoken')}.json"
    values: dict[str, Any] = read_json(beside, dict) or {}
    if not values and (known := _OPENAI.get(sha256(data).hexdigest())):
        return known[0], {_ENDS[0]: known[1]}
    pattern, special = values.get("pat_str"), values.get("special_tokens")
    ids = special.values() if isinstance(special, dict) else [None]
    if not (pattern and isinstance(pattern, str)) or not all(
        type(each) is int and 0 <= each < _MOST_IDS for each in ids
    ):
        raise UsageError(
            f'{file} has only ranks: write {beside} with the members "pat_str" (the pattern that divides a text into '
            'words) and "special_tokens" (an object: names with ids below 2^32), as the arguments of tiktoken.Encoding'
        )
    return pattern, dict(special or {})


def _default_end(file: StoragePath, loaded: _Loaded) -> str | None:
    """Returns the name of the token that ends a document: from the configuration, or the only usual name."""
    if loaded.end is not None:
        return loaded.end
    for name in _CONFIGS:
        value = (read_json(file.parent / name, dict) or {}).get("eos_token")
        value = value.get("content") if isinstance(value, dict) else value
        if isinstance(value, str) and value in loaded.special:
            return value
    usual = [name for name in _ENDS if name in loaded.special]
    return usual[0] if len(usual) == 1 else None
