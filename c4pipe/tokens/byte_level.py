"""The ids of a byte-level BPE `tokenizer.json` by tiktoken, which needs a fifth of tokenizers' time for the same ids.

Both libraries divide a text into words by a pattern, and join neighbours in each word again and again: those of the
lowest rank, the first of several. But tokenizers joins the pairs of `merges`, and tiktoken all neighbours whose bytes
together are a token. The ids are equal, as

1. what happens in a part of a word until its edge is crossed also happens to this part as a word of its own. So the
   neighbours that become the token T are always the same two: those of the last step of T as a word;
2. tokenizers makes T of the bytes of T, so these two are in `merges`. Tokens for which it doesn't are not tiktoken's;
   with `ignore_merges` they are, as the ids of whole words, but then no two neighbours may become T;
3. `merges` are in the order of the ids of their tokens, and these are the ranks of tiktoken.

A text that has more than the pattern and the tokens, or characters of which the two may know different versions of
Unicode, is for tokenizers.
"""

import re
import sys
import unicodedata
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from c4pipe.io.json_files import parse_json

FastEncoder = Callable[[str], npt.NDArray[Any] | None]

_PRINTABLE = [byte for byte in range(256) if chr(byte).isprintable() and byte != ord(" ")]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
_BYTES = {chr(byte): byte for byte in _PRINTABLE} | {chr(256 + place): byte for place, byte in enumerate(_OTHERS)}
"""The characters of byte-level BPE, with the bytes that they stand for."""

_END = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_CASE = r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]%s[\p{Ll}\p{Lm}\p{Lo}\p{M}]%s(?i:'s|'t|'re|'ve|'m|'ll|'d)?|"
O200K = _CASE % ("*", "+") + _CASE % ("+", "*") + r"\p{N}{1,3}|" + _END.replace(r"\n]*", r"\n/]*")
_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_LLAMA3 = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|" + _END
_QWEN2 = _LLAMA3.replace("{1,3}", "")
_QWEN35 = _QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"\s\p{L}", r"\s\p{L}\p{M}")
_TEKKEN = O200K.replace("{1,3}", "").replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "")
_PATTERNS = {_GPT2, _LLAMA3, _QWEN2, _QWEN35, O200K, _TEKKEN}
"""Patterns that both libraries read alike, and that leave no character out."""


def fast_encoder(data: bytes, tokenizer: Any, special: Mapping[str, int]) -> FastEncoder | None:
    """Returns a function for the ids of a text, which returns None for a text that tokenizers must do; or None if
    tokenizers must do all.

    Args:
        data: the `tokenizer.json`.
        tokenizer: the same as a `tokenizers.Tokenizer`.
        special: the ids of the special tokens, which are no text.

    Raises ImportError if tiktoken is missing.
    """
    from tokenizers import models

    normalizer, words = (_read_state(each) for each in (tokenizer.normalizer, tokenizer.pre_tokenizer))
    # Added tokens that are not special are found in text, too.
    added = [each.content for each in tokenizer.get_added_tokens_decoder().values() if not each.special]
    pattern = _find_pattern(words)
    is_fit = pattern and isinstance(tokenizer.model, models.BPE) and "".join(added).isascii()
    if not is_fit or normalizer not in ({}, {"type": "NFC"}):
        return None
    ranks = _find_ranks(parse_json(data)["model"], tokenizer.model)
    if not ranks:
        return None
    from tiktoken import Encoding

    encoding = Encoding("", pat_str=pattern, mergeable_ranks=ranks, special_tokens=dict(special))
    unsure, names = _find_unsure(pattern), re.compile("|".join(map(re.escape, added)) or "(?!)")

    def encode(text: str) -> npt.NDArray[Any] | None:
        if not text.isascii() and (
            unsure[np.frombuffer(text.encode("utf-32-le", "surrogatepass"), "<u4")].any()
            or (normalizer and not unicodedata.is_normalized("NFC", text))
        ):
            return None
        return None if names.search(text) else encoding.encode_to_numpy(text, disallowed_special=())

    return encode


def _read_state(part: Any) -> dict[str, Any]:
    """Returns a part of a tokenizer as in the JSON file, with all members."""
    return dict(parse_json(part.__getstate__())) if part else {}


def _find_pattern(words: dict[str, Any]) -> str:
    """Returns the pattern of a pre-tokenizer; empty if it has none of `_PATTERNS`, or more than the pattern."""
    parts = words.get("pretokenizers", [words])
    for each in parts:
        each.pop("trim_offsets", None)  # the places of tokens in the text
    pattern = parts[0].get("pattern", {}).get("Regex", "") if len(parts) == 2 else _GPT2
    split = {"type": "Split", "pattern": {"Regex": pattern}, "behavior": "Isolated", "invert": False}
    level = {"type": "ByteLevel", "add_prefix_space": False, "use_regex": len(parts) == 1}
    return pattern if pattern in _PATTERNS and parts == [split, level][-len(parts) :] else ""


def _find_ranks(values: Mapping[str, Any], model: Any) -> dict[bytes, int]:
    """Returns the tokens for tiktoken with their ids, or nothing if the ids of texts could differ: see above."""
    vocabulary, has_words = values["vocab"], model.ignore_merges
    joined = [vocabulary.get("".join(each).replace(" ", ""), -1) for each in values["merges"]]  # "a b", or ["a", "b"]
    model.ignore_merges = False
    sizes = {token: len(model.tokenize(token)) for token in vocabulary if token and _BYTES.keys() >= set(token)}
    model.ignore_merges = has_words
    tokens = [token for token, size in sizes.items() if size == 1 or has_words]
    ranks = {bytes(map(_BYTES.__getitem__, token)): vocabulary[token] for token in tokens}
    is_equal = (
        joined == sorted(joined)
        and not (has_words and 2 in sizes.values())
        and not (model.continuing_subword_prefix or model.end_of_word_suffix)
        and all(bytes([byte]) in ranks for byte in range(256))
        and len({*ranks.values()}) == len(ranks)
    )
    return ranks if is_equal else {}


@cache
def _find_unsure(pattern: str) -> npt.NDArray[np.bool_]:
    """Returns for each character whether it may be a letter, number, mark or blank for only one of the libraries."""
    from tiktoken import Encoding
    from tokenizers import Regex, pre_tokenizers

    unsure = np.ones(sys.maxunicode + 1, bool)
    known = [each for each in map(chr, range(0x20000)) if unicodedata.category(each) not in ("Cn", "Cs")]
    unsure[[*map(ord, known)]] = False
    text, ranks = "".join(known), {bytes([byte]): byte for byte in range(256)}
    for kind in {*re.findall(r"\\p\{\w+\}|\\s", pattern)}:
        encoding = Encoding("", pat_str=f"{kind}+", mergeable_ranks=ranks, special_tokens={})
        split = pre_tokenizers.Split(Regex(f"{kind}+"), "removed", invert=True)
        found = "".join(word for word, _ in split.pre_tokenize_str(text))
        unsure[[*map(ord, {*found} ^ {*encoding.decode(encoding.encode_ordinary(text))})]] = True
    return unsure
