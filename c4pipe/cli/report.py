"""The command `report`: writes a missing report of a corpus, or the report of an earlier version again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from c4pipe.cli.console import say
from c4pipe.cli.options import CorpusArgument, TerminalOptions, path_or_url
from c4pipe.cli.parser import Command
from c4pipe.errors import UsageError
from c4pipe.io.options import Option
from c4pipe.io.words import format_count
from c4pipe.runners.runner_options import RunnerOptions, WorkerOptions

if TYPE_CHECKING:
    from c4pipe.io.paths import StoragePath
    from c4pipe.report.data import OptOuts


@dataclass(frozen=True, kw_only=True)
class ReportOptions(TerminalOptions, WorkerOptions, CorpusArgument):
    """The options of the command."""

    opt_outs: Annotated[
        Path | None,
        Option(
            "a lists folder: also count which pages its lists of opt-outs and of robots.txt files would refuse",
            "DIR",
            parse=Path,
        ),
    ] = None
    domains: Annotated[
        "StoragePath | None",
        Option("also write pages and bytes of all registered domains to this file", "FILE.parquet", parse=path_or_url),
    ] = None
    vocabulary: Annotated[str | None, Option("for --domains: also count tokens", "MODEL", flag="--vocab")] = None
    eu_summary: Annotated[
        "StoragePath | None",
        Option("also write a draft of the EU's public summary of training content", "FILE.md", parse=path_or_url),
    ] = None
    lists: Annotated[
        Path | None,
        Option("lists folder, for --domains and --eu-summary", "DIR", otherwise="the user's cache", parse=Path),
    ] = None


def run(options: ReportOptions) -> None:
    """Writes `report.html` of a corpus, and a missing `report.json`. With `--opt-outs`, also `opt_outs.json` and the
    dataset card; with `--domains` and `--eu-summary`, these files. Raises UsageError if the folder is no corpus, an
    option can't be met, or shards that are needed can't be read.
    """
    from c4pipe.cli.progress import make_progress
    from c4pipe.corpus.opened import find_manifest, open_corpus
    from c4pipe.inspect import domains
    from c4pipe.inspect.opt_outs import count_opt_outs, read_opt_outs
    from c4pipe.io.atomic import write_text
    from c4pipe.io.lock import only_run
    from c4pipe.report import card, eu_summary, html_page
    from c4pipe.report.data import read_report_data
    from c4pipe.report.rebuild import rebuild_data
    from c4pipe.tokens import count
    from c4pipe.tokens.tokenizer import open_tokenizer

    rules = _load_suffixes(options)
    tokenizer = open_tokenizer(options.vocabulary) if options.vocabulary is not None else None
    folder = options.corpus.absolute()
    corpus_manifest = find_manifest(options.corpus)
    runner, progress = RunnerOptions(workers=options.workers), make_progress(options)
    with only_run(folder):
        if options.opt_outs is not None:
            count_opt_outs(open_corpus(folder), folder, options.opt_outs, runner, progress)
        counts = corpus_manifest["counts"]
        data = read_report_data(folder, counts)
        if data is None:
            rebuild_data(open_corpus(folder), folder, runner, progress)
            data = read_report_data(folder, counts)
            assert data  # it was written, or an error was raised
        tokens = count.read_counts(folder)
        refused = read_opt_outs(folder)
        if options.opt_outs is not None:
            sizes = data["profile"]["table_bytes"]
            write_text(folder / card.CARD, card.render_card(corpus_manifest, sizes, refused))
        page = html_page.render_report(
            corpus_manifest, data, tokens.get("totals", {}), refused, tokens.get("plans", ())
        )
        write_text(folder / html_page.REPORT_PAGE, page)
        if rules:
            corpus = open_corpus(folder)
            totals = domains.write_domains(corpus, options.domains, rules, runner, progress, tokenizer)
            if options.eu_summary is not None:
                sums = data["profile"], totals, tokens.get("totals", {}), refused
                write_text(options.eu_summary, eu_summary.render_summary(corpus, *sums))
    if not options.quiet:
        if options.opt_outs is not None and refused:
            _print_refused(refused, counts.get("pages.kept", 0))
        say(f"report: {options.corpus / html_page.REPORT_PAGE}")
        for path in filter(None, (options.domains, options.eu_summary)):
            say(f"written: {path}")


def _load_suffixes(options: ReportOptions) -> list[str]:
    """Checks the options on domains, and returns the rules of public suffixes; none if no domains are asked for."""
    from c4pipe.filters.url_rules import load_public_suffixes
    from c4pipe.io.atomic import check_output
    from c4pipe.lists.pinned_lists import lists_dir

    given = {"--domains": (options.domains, ".parquet"), "--eu-summary": (options.eu_summary, ".md")}
    outputs = [(path, option, ending) for option, (path, ending) in given.items() if path is not None]
    for output in outputs:
        check_output(*output)
    if (options.vocabulary is not None and options.domains is None) or (options.lists is not None and not outputs):
        raise UsageError("--vocab is for --domains, --lists for --domains and --eu-summary: give one, or leave it out")
    return load_public_suffixes(lists_dir(options.lists), outputs[0][1]) if outputs else []


def _print_refused(opt_outs: "OptOuts", pages: int) -> None:
    """Prints the number of refused pages by reason."""
    from c4pipe.report.data import reasons_to_show

    shown = reasons_to_show(opt_outs)
    for name, refused in shown.items():
        say(f"{name}: {refused['pages']:,} of {pages:,} pages, {refused['bytes']:,} bytes of text")
    if left := len(opt_outs["refused"]) - len(shown):
        say(f"{format_count(left, 'other reason')}: no page")


COMMAND = Command(ReportOptions, run, examples=("c4pipe report corpus", "c4pipe report corpus --domains d.parquet"))
