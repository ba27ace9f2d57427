"""The command `tokens`: the number of tokens of a corpus, a subset of some tokens, and files of token ids."""

import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from c4pipe.cli.console import new_table, printer, say, styled
from c4pipe.cli.options import TerminalOptions, refuse_job_file
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import shared_fields
from c4pipe.io.words import format_count
from c4pipe.runners.runner_options import RunnerOptions
from c4pipe.tokens.options import TokenFileOptions, TokenOptions, mix_of

if TYPE_CHECKING:
    from rich.table import Table

    from c4pipe.read.curve import CurveTimes

_TARGET = ("target_tokens", "max_repeat")


@dataclass(frozen=True, kw_only=True)
class TokensOptions(TerminalOptions, RunnerOptions, TokenOptions):
    """The options of the command."""


def run(options: TokensOptions) -> None:
    """Counts the tokens of a corpus, or writes its token files, or finds a page in them; prints the outcome."""
    corpus = options.corpus or ""
    mix_of(options.corpus, options.plan, options.weights)
    files, around = ("format", "output", "length", "weights"), ("end_of_document", "begin_of_document")
    if options.find is not None:
        others = ("vocabulary", "budget_subset", "best_first", *files, *around, "runner", "plan", "lists", *_TARGET)
        _refuse_options(options, "--find", *others)
        _find(corpus, options.find)
        return
    if options.vocabulary is None:
        raise UsageError("tokens needs a vocabulary: name its folder with --vocab (see c4pipe tokens --help)")
    targets = _TARGET if (options.plan, options.weights) == (None, None) else ()
    if options.format is None:
        _refuse_options(options, "a count of tokens", "output", "length", "weights", *targets)
        _count(options, corpus, options.vocabulary)
        return
    _refuse_options(options, "--format", "budget_subset", "best_first", "plan", "lists", *targets)
    if options.output is None:
        raise UsageError("--format needs a folder for the files: name it with --output")
    chosen = TokenFileOptions(**shared_fields(options, TokenFileOptions))
    _write_files(options, replace(chosen, weights=_with_target(options, options.weights)))


def _with_target(options: TokensOptions, weights: Mapping[Any, Any] | None) -> Mapping[Any, Any] | None:
    """Returns weights with the values of the options of a target."""
    from c4pipe.tokens.subset import parse_tokens

    if weights is None:
        return None
    target, most = options.target_tokens, options.max_repeat
    more = {"target_tokens": parse_tokens("--target-tokens", target)} if target is not None else {}
    return {**weights, **more, **({"max_repeat": most} if most is not None else {})}


def _refuse_options(options: TokensOptions, action: str, *names: str) -> None:
    """Raises UsageError if one of the named options is given."""
    for name in names:
        if getattr(options, name) is not None:
            option = "--vocab" if name == "vocabulary" else f"--{name.replace('_', '-')}"
            raise UsageError(f"{option} is not for {action}: leave out one of them (see c4pipe tokens --help)")


def _count(options: TokensOptions, name: str, vocabulary: str) -> None:
    """Counts the tokens of a corpus, writes a subset with `--budget-subset`, and prints both; or plans a mix."""
    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus.labels import sum_label_tokens
    from c4pipe.io.paths import storage_path
    from c4pipe.read.mix_file import parse_mix
    from c4pipe.runners.runner import check_runner
    from c4pipe.tokens import count, subset
    from c4pipe.tokens.tokenizer import open_tokenizer

    if not name:
        _refuse_options(options, "a mix", "budget_subset")
    else:
        _refuse_options(options, "a count of one corpus", "lists")
    corpus = storage_path(name)
    wanted = options.budget_subset
    size = subset.parse_tokens("--budget-subset", wanted) if wanted is not None else None
    training = subset.parse_tokens("--training-tokens", options.training_tokens)
    if size is None:
        _refuse_options(options, "a count of tokens", "best_first")
    train = subset.open_one_language(corpus) if size is not None else None  # checked before the tokens are counted
    best = subset.open_best(train, options.best_first) if train and options.best_first is not None else None
    check_runner(options)
    tokenizer = open_tokenizer(vocabulary, options.end_of_document, options.begin_of_document)
    plan, progress, console = _with_target(options, options.plan), make_progress(options), printer(sys.stdout)
    if not name:
        mix = parse_mix(plan or {})
        plans = count.plan_mix(mix, tokenizer, options, progress)
        if options.lists is not None:
            from c4pipe.tokens.lists import write_lists

            for sentence in write_lists(storage_path(options.lists), mix, plans, tokenizer):
                progress.note(sentence)
        if not options.quiet:
            console.print(curve_table(plans))
        return
    counts, planned = count.count_tokens(corpus, tokenizer, options, progress, plan)
    written = subset.write_subset(train, tokenizer, counts, size, best) if train and size else None
    if options.quiet:
        return
    console.print(tokens_table(counts))
    if labels := sum_label_tokens(counts["totals"]):
        table = new_table("label", numbers=("tokens",), pad_edge=True, padding=(0, 2, 0, 0))
        for label, tokens in labels.items():
            table.add_row(styled(label), f"{tokens:,}")
        console.print(table)
    if planned:
        console.print(curve_table([(name, planned)]))
    if written:
        content = f"{format_count(written.documents, 'document')}, {format_count(written.tokens, 'token')}"
        say(f"subset: {written.file} ({content})")
        times = format_count(written.epochs(training), "time")
        say(f"a training of {training:,} tokens reads it {times}, the last time perhaps in part")


def _write_files(options: TokensOptions, file_options: TokenFileOptions) -> None:
    """Writes the token files of a corpus, and prints their totals."""
    refuse_job_file(options.beam, "tokens --format has two")
    from c4pipe.cli.progress import make_progress
    from c4pipe.tokens import files

    started, output = time.monotonic(), Path(file_options.output)
    manifest = files.write(file_options, make_progress(options))
    if options.quiet:
        return
    printer(sys.stdout).print(tokens_table(manifest))
    size = format_count(sum(each["bytes"] for each in manifest["files"]), "byte")
    files_written = format_count(len(manifest["files"]), "file")
    say(f"token files: {output} ({files_written}, {size}, {time.monotonic() - started:,.1f} s)")


def _find(folder: str, number: int) -> None:
    """Prints the pages of a document or row of token files."""
    from c4pipe.tokens.folder import find_pages

    for place in find_pages(folder, number):
        where = f"document {place.document:,}: {place.shard}, row {place.row:,}"
        say(f"{where}, {format_count(place.tokens, 'token')}, {place.url}")


def tokens_table(counts: Mapping[str, Any]) -> "Table":
    """Returns the totals of `tokens.json` as a table."""
    table = new_table("language", "split", numbers=("documents", "tokens"), pad_edge=True, padding=(0, 2, 0, 0))
    for language, splits in counts["totals"].items():
        for split, total in splits.items():
            table.add_row(styled(language), styled(split), f"{total['documents']:,}", f"{total['tokens']:,}")
    return table


def curve_table(planned: Sequence[tuple[str, "CurveTimes"]]) -> "Table":
    """Returns how many tokens the buckets of plans have, and how many are taken of them, as a table.

    Neighbours that are read equally often are one bucket.

    `planned` has the path of each source of a mix and its plan, or "" and the plan of a corpus.
    """
    import numpy as np

    names = _short_names([path for path, _ in planned])
    numbers = ("bucket", "tokens", "times", "taken")
    table = new_table("source", "label", numbers=numbers, pad_edge=True, padding=(0, 2, 0, 0))
    table.columns[0].no_wrap = False
    there = taken = 0.0
    for name, (_, times) in zip(names, planned, strict=True):
        for label in times.labels:
            total = max(1, sum(label.tokens))
            buckets = zip(label.times, np.cumsum(label.tokens) / total, label.tokens, strict=True)
            for repeats, same in groupby(buckets, itemgetter(0)):
                _, ends, sizes = zip(*same, strict=True)
                tokens = sum(sizes)
                there, taken = there + tokens, taken + tokens * repeats
                if tokens:
                    row = (f"{ends[-1]:.1%}", f"{tokens:,}", f"{round(repeats, 3):g}", f"{tokens * repeats:,.0f}")
                    table.add_row(styled(name), styled(label.label or ""), *row)
    table.add_row("all", "", "", f"{there:,.0f}", f"{taken / max(1, there):.3f}", f"{taken:,.0f}", style="bold")
    return table


def _short_names(paths: Sequence[str]) -> list[str]:
    """Returns the shortest ends of paths that differ."""
    parts = [Path(path).absolute().parts for path in paths]  # "." has a name, too
    for count in range(1, max(map(len, parts)) + 1):
        names = [str(Path(*each[-count:])) for each in parts]
        if len(set(names)) == len(names):
            break
    return names


COMMAND = Command(
    TokensOptions,
    run,
    examples=(
        "c4pipe tokens corpus --vocab vocabulary --budget-subset 2^29",
        "c4pipe tokens corpus --vocab vocabulary --format megatron --output tokens",
        "c4pipe tokens corpus --vocab tokenizer.json --end-of-document '<|endoftext|>'",
        "c4pipe tokens corpus --vocab vocabulary --plan score --target-tokens 2_000_000_000",
    ),
)
