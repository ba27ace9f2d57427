"""What datatrove decides about pages by FineWeb-2's pipeline: the installed package's own filters, as JSON Lines.

    python parity/fineweb_2_reference.py PAGES OUT TABLE LABELS MODEL

Runs in an environment that has datatrove, without c4pipe. PAGES has a JSON object for each page, with `label`, its true
language, and `text`. TABLE is c4pipe/filters/fineweb_2.tsv. MODEL is a fastText model that is trained here on some of
the pages, in place of GlotLID. LABELS are the languages to keep. OUT gets for each page the reason, as datatrove
names it, or null; "error" where datatrove itself fails. Without MODEL (""), the language of each page is its label.
"""

import json
import sys
from pathlib import Path
from typing import Any

import fasttext
from datatrove.data import Document
from datatrove.pipeline.filters import (
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LambdaFilter,
    LanguageFilter,
)
from datatrove.pipeline.filters.base_filter import get_filter_result

NUMBERS = (
    *("language_score", "dup_line_frac", "top_2", "top_3", "top_4"),
    *("dup_5", "dup_6", "dup_7", "dup_8", "dup_9", "dup_10"),
    *("line_punct_thr", "new_line_ratio", "min_avg_word_length", "max_avg_word_length", "max_non_alpha_words_ratio"),
)


def configurations(table: Path) -> dict[str, dict[str, Any]]:
    """Returns the numbers and stop words of each label."""
    found = {}
    for line in table.read_text(encoding="utf-8").rstrip("\n").split("\n"):
        label, _, _, *values = line.split("\t")
        numbers = map(float, values[: len(NUMBERS)])
        found[label] = {**dict(zip(NUMBERS, numbers, strict=True)), "stopwords": values[len(NUMBERS) :]}
    return found


def train(rows: list[dict[str, str]], model: Path) -> None:
    """Writes a model that knows the languages of some pages, not too well."""
    examples = model.with_suffix(".txt")
    chosen = [row for number, row in enumerate(rows) if number % max(3, len(rows) // 400) == 0]
    texts = (f"__label__{row['label']} {' '.join(row['text'].split())[:400]}" for row in chosen)
    examples.write_text("\n".join(texts), encoding="utf-8")
    # eleven threads: as in datatrove_reference.py
    options = {"epoch": 100, "dim": 8, "minn": 1, "maxn": 3, "bucket": 20_000, "lr": 0.5, "thread": 11, "verbose": 0}
    fasttext.train_supervised(str(examples), **options).save_model(str(model))


def filters_of(label: str, config: dict[str, Any]) -> list[Any]:
    """Returns the filters of fineweb-2-pipeline.py for a language, in their order."""
    least = config["language_score"]
    return [
        LambdaFilter(filter_function=lambda doc: doc.metadata["language_score"] >= least),
        GopherRepetitionFilter(
            language=label,
            dup_para_frac=0,
            dup_line_char_frac=0,
            dup_para_char_frac=0,
            dup_line_frac=config["dup_line_frac"],
            top_n_grams=[(size, config[f"top_{size}"]) for size in range(2, 5)],
            dup_n_grams=[(size, config[f"dup_{size}"]) for size in range(5, 11)],
        ),
        FineWebQualityFilter(
            language=label,
            short_line_thr=999,
            char_duplicates_ratio=0.1,
            line_punct_thr=config["line_punct_thr"],
            new_line_ratio=config["new_line_ratio"],
        ),
        GopherQualityFilter(
            language=label,
            max_avg_word_length=config["max_avg_word_length"],
            min_avg_word_length=config["min_avg_word_length"],
            stop_words=config["stopwords"],
            max_non_alpha_words_ratio=config["max_non_alpha_words_ratio"],
            min_stop_words=2,
        ),
    ]


def main() -> None:
    """Trains the model and filters the pages."""
    pages, out, table = map(Path, sys.argv[1:4])
    labels, model = sys.argv[4].split(","), sys.argv[5]
    rows = [json.loads(line) for line in pages.read_text(encoding="utf-8").splitlines()]
    detect = LanguageFilter(backend="glotlid", label_only=True, keep_top_pairs_threshold=0.01)
    if model:
        train(rows, Path(model))
        detect.model._model = fasttext.FastText._FastText(model)
    every = configurations(table)
    filters = {label: filters_of(label, every[label]) for label in labels}
    with out.open("w", encoding="utf-8") as decided:
        for row in rows:
            doc = Document(text=row["text"], id="", metadata={"language_score": 1.0})
            label = row["label"]
            if model:
                detect.filter(doc)
                label = f"{doc.metadata['language']}_{doc.metadata['language_script']}"
            reason = None if label in filters else "language"
            for place, each in enumerate(filters.get(label, ())):
                try:
                    kept, reason = get_filter_result(each.filter(doc))
                except Exception:
                    kept, reason = False, "error"
                if not kept:
                    reason = reason if place else "language"
                    break
            decided.write(json.dumps(reason) + "\n")


if __name__ == "__main__":
    main()
