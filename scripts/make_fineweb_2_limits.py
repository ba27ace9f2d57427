"""Makes c4pipe/filters/fineweb_2.tsv: what FineWeb-2 sets for each language.

    python scripts/make_fineweb_2_limits.py FINEWEB_2 DATATROVE

FINEWEB_2 is a clone of github.com/huggingface/fineweb-2 (Apache 2.0) that has the commit below: its `configs/` have the
limits and stop words. DATATROVE is the folder of the package datatrove 0.10.1 (Apache 2.0): its table
`assets/tokenizer_assignment.csv` has the word tokenizer of each language, and its codes. It needs PyYAML.
"""

import csv
import io
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

COMMIT = "d0defb24f193bb9a5a11b8b14524a03c4858e1b6"
TARGET = Path(__file__).resolve().parents[1] / "c4pipe" / "filters" / "fineweb_2.tsv"
# The columns behind `label`, `codes` and `words`: where a number is in a configuration. Stop words are the others.
NUMBERS: tuple[tuple[Any, ...], ...] = (
    ("language_score",),
    ("dup_line_frac",),
    *(("top_n_grams", size) for size in range(2, 5)),
    *(("dup_n_grams", size) for size in range(5, 11)),
    *((name,) for name in ("line_punct_thr", "new_line_ratio", "min_avg_word_length", "max_avg_word_length")),
    ("max_non_alpha_words_ratio",),
)
TOKENIZERS = {
    "SpaCyTokenizer": "spacy {}",
    "WhitespaceTokenizer": "spacy xx",  # which is how it finds words
    "StanzaTokenizer": "stanza {}",
    "ThaiTokenizer": "pythainlp",
    "KiwiTokenizer": "kiwipiepy",
    "KhmerTokenizer": "khmernltk",
    "LaoTokenizer": "laonlp",
    "TibetanTokenizer": "botok",
    "BurmeseTokenizer": "pyidaungsu",
}


def configurations(repository: Path) -> dict[str, dict[str, Any]]:
    """Returns the configuration of each label."""
    command = ["git", "-C", str(repository), "archive", COMMIT, "configs"]
    packed = subprocess.run(command, capture_output=True, check=True).stdout
    with tarfile.open(fileobj=io.BytesIO(packed)) as files:
        members = [each for each in files if each.name.endswith(".yml")]
        return {Path(each.name).stem: yaml.safe_load(files.extractfile(each) or b"") for each in members}


def words_of(row: Mapping[str, str]) -> str:
    """Returns the name of a language's word tokenizer, as `text/word_tokenizers.py` has it."""
    if row["type"] == "IndicNLPTokenizer":
        return "urdu" if row["tok_code"] == "ur" else "indic"
    return TOKENIZERS[row["type"]].format(row["tok_code"])


def number_at(configuration: Mapping[str, Any], name: str, size: int | None = None) -> float:
    """Returns a number of a configuration. The filters take these as if they were not there: 0 and -1 for some."""
    value: float = configuration[name] if size is None else dict(configuration[name])[size]
    if name == "dup_line_frac" and not value:  # datatrove then has no such filter; no page is above 1
        return 1
    return max(0, value)


def main() -> None:
    """Writes the table."""
    repository, datatrove = map(Path, sys.argv[1:])
    with (datatrove / "assets" / "tokenizer_assignment.csv").open(encoding="utf-8") as table:
        rows = [row for row in csv.DictReader(table) if row["type"]]
    tokenizers: dict[str, Mapping[str, str]] = {}
    codes: dict[str, str] = {}  # a code -> the first label of it, as datatrove takes it
    for row in rows:
        label = f"{row['code_3']}_{row['script']}"
        tokenizers.setdefault(label, row)
        if row["default_script"] == "TRUE":
            codes.setdefault(row["code_3"], label)
            if row["code_1"] and row["default_code_1"] == "TRUE":
                codes.setdefault(row["code_1"], label)
    lines = []
    for label, configuration in sorted(configurations(repository).items()):
        others = " ".join(sorted(code for code, of in codes.items() if of == label))
        numbers = [f"{number_at(configuration, *at):g}" for at in NUMBERS]
        lines.append("\t".join([label, others, words_of(tokenizers[label]), *numbers, *configuration["stopwords"]]))
    TARGET.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{len(lines):,} languages, {TARGET.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
