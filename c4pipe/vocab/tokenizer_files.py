"""`tokenizer.json` and `tokenizer_config.json`: a SentencePiece model as Transformers and tokenizers read it.

The formats are those of the library tokenizers (huggingface/tokenizers, tokenizers/src/: tokenizer/serialization.rs and
the `serialization.rs` of each model) and of `PreTrainedTokenizerBase` in Transformers.
"""

import base64
import json
import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from c4pipe.vocab.model import TOKENIZER, TOKENIZER_CONFIG, sentinel_names

_SPACE = "▁"  # SentencePiece writes a space so
_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE = 2, 3, 4, 6  # ModelProto.SentencePiece.Type in sentencepiece_model.proto
_SPECIAL = (_UNKNOWN, _CONTROL, _USER_DEFINED, _BYTE)
_BPE = 2  # TrainerSpec.ModelType
_SENTINEL = re.compile(r"<extra_id_\d+>")
_SYMBOL_SCORE = -0.1  # of each user-defined piece (SentencePiece: EncodeOptimized in unigram_model.cc)


@dataclass(frozen=True)
class _Model:
    """The content of a model's file: the messages of sentencepiece_model.proto that matter here."""

    pieces: list[tuple[str, float, int]]  # piece, score, type
    is_bpe: bool
    charsmap: bytes  # the rules of normalization, compiled; empty without rules

    def of_type(self, kind: int) -> list[tuple[int, str]]:
        """Returns the ids and pieces of a type."""
        return [(number, piece) for number, (piece, _, type_) in enumerate(self.pieces) if type_ == kind]

    @property
    def symbols(self) -> dict[int, str]:
        """The pieces of `--user-symbols`, by id: the user-defined pieces that are no sentinels."""
        return {number: piece for number, piece in self.of_type(_USER_DEFINED) if not _SENTINEL.fullmatch(piece)}


def tokenizer_files(model: bytes, sentinels: int) -> dict[str, bytes]:
    """Returns the contents of `tokenizer.json` and `tokenizer_config.json`, by name.

    The ids of a text are SentencePiece's, with an end of sequence after them. A special piece in a text, such as
    `</s>` or `<extra_id_0>`, becomes that piece. The sentinels follow the last piece, unless the model itself has them.
    """
    read = _read(model)
    pieces = [piece for piece, *_ in read.pieces]
    if pieces[-1] != "<extra_id_0>":
        pieces += sentinel_names(sentinels)
    symbols = read.symbols
    special = [number for kind in (_UNKNOWN, _CONTROL, _USER_DEFINED) for number, _ in read.of_type(kind)]
    special = sorted({*special, *range(len(read.pieces), len(pieces))} - symbols.keys())
    ((unknown_id, unknown),) = read.of_type(_UNKNOWN)
    tokenizer = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [_added(number, pieces[number]) for number in special],
        "normalizer": _normalizer(read.charsmap),
        "pre_tokenizer": _pre_tokenizer(pieces, symbols.values() if read.is_bpe else ()),
        "post_processor": _end_of_sequence("</s>", pieces.index("</s>")),
        "decoder": _decoder(bool(read.of_type(_BYTE))),
        "model": _bpe(read, pieces, unknown) if read.is_bpe else _unigram(read, pieces, unknown_id),
    }
    config = {
        "additional_special_tokens": sentinel_names(sentinels)[::-1],
        "clean_up_tokenization_spaces": False,
        "eos_token": "</s>",
        "extra_ids": sentinels,
        "model_input_names": ["input_ids", "attention_mask"],  # T5 has no token types
        "pad_token": "<pad>",
        "tokenizer_class": "PreTrainedTokenizerFast",  # it takes tokenizer.json as it is; T5Tokenizer 5 makes its own
        "unk_token": unknown,
    }
    return {TOKENIZER: _json(tokenizer, None), TOKENIZER_CONFIG: _json(config, 1)}


def _json(values: Any, indent: int | None) -> bytes:
    return (json.dumps(values, ensure_ascii=False, indent=indent) + "\n").encode()


def _added(number: int, piece: str) -> dict[str, Any]:
    options = dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
    return {"id": number, "content": piece, **options, "special": True}


def _normalizer(charsmap: bytes) -> dict[str, Any]:
    """Returns SentencePiece's normalization: its rules, one space before each word, no space at the end."""
    rules = {"type": "Precompiled", "precompiled_charsmap": base64.b64encode(charsmap).decode()}
    replacements = (  # Oniguruma's \A and \z are the ends of the text; its ^ and $ those of a line
        ({"Regex": r"\A +"}, ""),
        ({"Regex": " {2,}"}, " "),
    )
    steps = [
        *([rules] if charsmap else []),
        *({"type": "Replace", "pattern": pattern, "content": content} for pattern, content in replacements),
        {"type": "Prepend", "prepend": _SPACE},
        {"type": "Replace", "pattern": {"String": " "}, "content": _SPACE},
        {"type": "Replace", "pattern": {"Regex": rf"{_SPACE}+\z"}, "content": ""},
    ]
    return {"type": "Sequence", "normalizers": steps}


def _pre_tokenizer(pieces: Sequence[str], symbols: Iterable[str]) -> dict[str, Any]:
    """Returns the pre-tokenizer that splits a text before each space, since pieces have a space only as their first
    character, and around symbols: they take part in no merge.
    """

    def split(pattern: dict[str, str], behavior: str) -> dict[str, Any]:
        return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": False}

    steps = [split({"String": _SPACE}, "MergedWithNext")]
    if longest_first := sorted(symbols, key=len, reverse=True):
        steps.insert(0, split({"Regex": "|".join(map(re.escape, longest_first))}, "Isolated"))
    if "<" not in pieces:
        # An unknown character costs more than a special piece, also where normalization makes "</s>" of others.
        name = "<(?=(?:/s|pad|unk|extra_id_[0-9]+|0x[0-9A-F]{2})>)"
        steps.append(split({"Regex": name}, "MergedWithPrevious"))
    return {"type": "Sequence", "pretokenizers": steps} if len(steps) > 1 else steps[0]


def _end_of_sequence(piece: str, number: int) -> dict[str, Any]:
    end = {"SpecialToken": {"id": piece, "type_id": 0}}
    first, second = ({"Sequence": {"id": name, "type_id": 0}} for name in "AB")
    return {
        "type": "TemplateProcessing",
        "single": [first, end],
        "pair": [first, end, second, end],
        "special_tokens": {piece: {"id": piece, "ids": [number], "tokens": [piece]}},
    }


def _decoder(has_bytes: bool) -> dict[str, Any]:
    words = {"type": "Metaspace", "replacement": _SPACE, "prepend_scheme": "always", "split": True}
    return {"type": "Sequence", "decoders": [{"type": "ByteFallback"}, words]} if has_bytes else words


def _unigram(read: _Model, pieces: Sequence[str], unknown_id: int) -> dict[str, Any]:
    """Returns the pieces with their scores.

    SentencePiece never takes a special piece for text, but tokenizers does if the score is good. So special pieces get
    a worse score than their characters have.
    """
    symbols = read.symbols
    special = {number for kind in _SPECIAL for number, _ in read.of_type(kind)} - symbols.keys()
    scores = [_SYMBOL_SCORE if n in symbols else score for n, (_, score, _) in enumerate(read.pieces)]
    bad = min(scores) * max(map(len, pieces)) - 1.0
    scores += [bad] * (len(pieces) - len(scores))
    vocab = [[piece, bad if n in special else scores[n]] for n, piece in enumerate(pieces)]
    has_bytes = bool(read.of_type(_BYTE))
    return {"type": "Unigram", "unk_id": unknown_id, "vocab": vocab, "byte_fallback": has_bytes}


def _bpe(read: _Model, pieces: Sequence[str], unknown: str) -> dict[str, Any]:
    """Returns the pieces, and all pairs that form a piece, in the order of the scores of these pieces."""
    ordinary = {piece: -score for piece, score, type_ in read.pieces if type_ not in _SPECIAL}
    merges = [
        [piece[:cut], piece[cut:]]
        for piece in sorted(ordinary, key=ordinary.__getitem__)
        for cut in range(1, len(piece))
        if piece[:cut] in ordinary and piece[cut:] in ordinary
    ]
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": unknown,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": True,
        "byte_fallback": bool(read.of_type(_BYTE)),
        **({"ignore_merges": True} if read.symbols else {}),  # a symbol is a piece that no merges make
        "vocab": {piece: number for number, piece in enumerate(pieces)},
        "merges": merges,
    }


def _read(model: bytes) -> _Model:
    """Reads a model's file without sentencepiece's module for messages, which depends on the version of protobuf."""
    pieces, is_bpe, charsmap = [], False, b""
    for number, value in _fields(model):
        if number == 1:
            fields: dict[int, Any] = {2: b"\0\0\0\0", 3: 1, **dict(_fields(value))}
            pieces.append((fields[1].decode(), struct.unpack("<f", fields[2])[0], fields[3]))
        elif number == 2:
            is_bpe = dict(_fields(value)).get(3) == _BPE
        elif number == 3:
            charsmap = dict(_fields(value)).get(2, b"")
    return _Model(pieces, is_bpe, charsmap)


def _fields(message: bytes) -> Iterator[tuple[int, Any]]:
    """Yields the number and value of each field of a message of Protocol Buffers: an int, or bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value = shift = 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if key & 7 == 2 else {1: 8, 5: 4}[key & 7]
        yield key >> 3, message[place : place + size]
        place += size
