"""The rule on overlap with the user's evaluation sets. A recipe file switches it on.

The examples are files in the folder `evaluation` of the lists folder, or in folders in it. A file of JSON Lines or
plain text has an example on each line; a Parquet file has an example in each row. c4pipe ships no examples.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from c4pipe.errors import UsageError
from c4pipe.filters.checked_page import CheckedPage
from c4pipe.filters.rule import PageRule, Positive, Scripts, Share, parameter_text
from c4pipe.io.file_kinds import JSON_LINES, bare_name
from c4pipe.io.paths import walk_folders
from c4pipe.io.text import lines_in, open_content, open_list, parse_row
from c4pipe.io.words import error_reason, explain_errors, format_count, short
from c4pipe.lists.lists import ListFolder
from c4pipe.text.ngrams import ExampleNgrams, SharedNgrams, ngram_words, split_words
from c4pipe.text.scripts.words import readable_words

_PARQUET = ".parquet"
KNOWN_ENDINGS = (*JSON_LINES, ".txt", _PARQUET)
_PARQUET_ROWS = 1024  # that are in memory at the same time


def read_evaluation_file(path: Path, fields: Sequence[str] = ()) -> Iterator[tuple[int, tuple[bytes, ...]]]:
    """Yields the number of each line or row with an example, from 1, and the words of its fields, as `ngram_words`.

    Fields without a word are left out, and blank lines are no examples.

    Args:
        path: a Parquet file (.parquet), a file of JSON Lines (.jsonl, .ndjson, .json), or else a file of plain text.
            Text and JSON Lines may be compressed (.gz, .zst, .bz2, .xz).
        fields: the fields of JSON Lines, or the columns, to take; () for all texts of a line or row, also inside of
            lists and objects.

    Raises UsageError if the file can't be read, a line is not an object with these fields, or a column is missing.
    """
    rows = _read_parquet(path, fields) if path.name.lower().endswith(_PARQUET) else _read_lines(path, fields)
    for number, row in rows:
        yield number, tuple(filter(None, map(ngram_words, _texts(row))))


def _read_lines(path: Path, fields: Sequence[str]) -> Iterator[tuple[int, Any]]:
    is_json, number = bare_name(path.name).lower().endswith(JSON_LINES), 0
    try:
        with open_content(open_list(path), path.name) as file:
            for number, line in enumerate(lines_in(file), 1):
                if line.strip():
                    yield (
                        number,
                        _parse_line(f"{path}, line {number:,}", line, fields) if is_json else line.decode("utf-8-sig"),
                    )
    except (OSError, ValueError) as error:
        where = f"line {number:,}: " if isinstance(error, UnicodeDecodeError) else ""
        raise UsageError(
            f"the examples {path} can't be read: {where}{error_reason(error)}; "
            "give Parquet, or text or JSON Lines in UTF-8"
        ) from error


def _parse_line(where: str, line: bytes, fields: Sequence[str]) -> list[Any]:
    """Returns the values of a line of JSON. Raises UsageError, with the place, if it lacks a field."""
    row = parse_row(line)
    if row is None:
        raise UsageError(f"{where} is no JSON object: give JSON Lines, with one example on each line")
    if missing := [name for name in fields if name not in row]:
        known = short(", ".join(row), 200) or "none"
        raise UsageError(
            f"{where} has no field {missing[0]!r}, but {known}: give others with --fields, or leave it out"
        )
    return [row[name] for name in fields or row]


def _texts(value: Any) -> Iterator[str]:
    """Yields the texts in a value of JSON, in their order, at any depth."""
    waiting = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, str):
            yield each
        elif isinstance(each, dict):
            waiting += reversed(each.values())
        elif isinstance(each, list):
            waiting += reversed(each)


def _read_parquet(path: Path, fields: Sequence[str]) -> Iterator[tuple[int, Any]]:
    from c4pipe.io.parquet_footer import UNREADABLE, check_columns, open_parquet, rows_in_batch  # Arrow takes a while

    advice = "give a Parquet file, or JSON Lines"
    with explain_errors(f"the examples {path} can't be read", advice, errors=UNREADABLE), open_parquet(path)[0] as file:
        columns = list(fields) or [each.name for each in file.schema_arrow if _has_text(each.type)]
        check_columns(file.schema_arrow, columns)
        batches = file.iter_batches(_PARQUET_ROWS, columns=columns)
        yield from enumerate((row for batch in batches for row in rows_in_batch(batch.select(columns))), 1)


def _has_text(kind: Any) -> bool:
    """Tells whether values of a type are texts, or have texts inside."""
    import pyarrow as pa

    from c4pipe.io.parquet_footer import is_text_type

    if pa.types.is_nested(kind) and not pa.types.is_union(kind):
        return any(_has_text(kind.field(number).type) for number in range(kind.num_fields))
    return is_text_type(kind)


EXAMPLES_FOLDER = "evaluation"
"""The folder of the examples, in a lists folder."""


class EvaluationOverlap(PageRule):
    """Drops pages that share n-grams of words with an evaluation example."""

    name = "evaluation_overlap"
    does = (
        "drops a page that has at least {min_ngrams} of the n-grams of {ngram} words of an evaluation example, and at "
        "least the share {min_share} of them"
    )
    source = (
        "n-grams of 13 words: GPT-3 (Brown et al. 2020), appendix C; shares: PaLM (Chowdhery et al. 2022), section 8"
    )
    stage = "cleaned"
    needs = ("evaluation_examples",)
    ngram: Positive = 13
    min_ngrams: Positive = 1
    min_share: Share = 0.0
    scripts: Scripts = ()
    added = ("scripts",)
    scripts_do = "; tells words of the scripts {scripts} apart without blanks"

    def value(self, page: CheckedPage) -> SharedNgrams | None:
        """Returns the n-grams that the kept lines share with an evaluation example, if they are enough."""
        known = page.tools.once(ExampleNgrams, lambda: self._load_ngrams(page.tools.lists.evaluation_examples))
        words = split_words(ngram_words(page.text), self.scripts, self.ngram)
        found = known.most_shared(words, self.min_ngrams, self.min_share)
        return found and found._replace(text=readable_words(found.text, self.scripts))

    def drops(self, value: SharedNgrams | None) -> bool:
        return value is not None

    def says(self, value: SharedNgrams | None, dropped: bool, page: CheckedPage) -> str:
        if value is None:
            return "it shares too little with each evaluation example"
        places = f"{value.shared:,} of {format_count(value.total, 'n-gram')} of an evaluation example"
        return f"it has {places}; the first: {parameter_text([value.text])}"

    def load_lists(self, lists: ListFolder) -> Mapping[str, Any]:
        r"""Returns the examples, each once, sorted: words, with `\n` between two fields.

        Raises UsageError if no example is long enough, or a file can't be read.
        """
        needs = f"recipe {lists.recipe} has the rule {self.name}, which needs evaluation examples of yours"
        folder = lists.path / EXAMPLES_FOLDER
        tree = walk_folders(folder) if folder.is_dir() else ()
        paths = sorted(path for _, files in tree for path in files if not path.name.startswith("."))
        if not paths:
            raise UsageError(
                f"{needs}: put files of JSON Lines, plain text or Parquet, one example a line, into {folder}, "
                "name another lists folder with --lists DIR, or leave out the rule"
            )
        if other := [path for path in paths if not bare_name(path.name).lower().endswith(KNOWN_ENDINGS)]:
            raise UsageError(
                f"{needs}: {other[0]} ends in none of {', '.join(KNOWN_ENDINGS)}: rename it, or move it away"
            )
        examples = {
            b"\n".join(split_words(field, self.scripts, self.ngram) for field in words).decode()
            for path in paths
            for _, words in read_evaluation_file(path)
        }
        fields = (field for example in examples for field in example.split("\n") if field)
        if not any(field.count(" ") >= self.ngram - 1 for field in fields):
            raise UsageError(f"{needs}: no text of {folder} has {self.ngram} words; give longer ones or lower ngram")
        return {"evaluation_examples": tuple(sorted(examples - {""}))}

    def _load_ngrams(self, examples: Sequence[str]) -> ExampleNgrams:
        return ExampleNgrams([example.encode().split(b"\n") for example in examples], self.ngram)
