"""The command `lists`: the bad-words and domain lists that recipes use."""

import argparse
import sys
from pathlib import Path

from c4pipe.cli.parser import Command, Parser
from c4pipe.display import format_count, visible


def add_arguments(parser: Parser) -> None:
    """Adds the arguments of the command to its parser."""
    parser.add_argument(
        "action", choices=("fetch", "show"), help="fetch: download the pinned lists; show: print which are downloaded"
    )
    parser.add_argument("--lists", type=Path, metavar="DIR", help="folder of the lists (default: the user's cache)")
    parser.add_argument(
        "--source", metavar="URL", help="a mirror to download from (default: https://raw.githubusercontent.com)"
    )


def run(options: argparse.Namespace) -> None:
    """Downloads the lists, or prints which are downloaded."""
    from c4pipe.recipes import pinned_lists

    folder = options.lists or pinned_lists.cache_dir()
    if options.action == "fetch":
        source = options.source or pinned_lists.SOURCE
        count = pinned_lists.fetch(folder, source, report=lambda line: print(visible(line), file=sys.stderr))
        present = len(pinned_lists.PINNED) - count
        print(visible(f"{format_count(count, 'list')} downloaded, {present} already present: {folder}"))
        return
    print(visible(str(folder)))
    for pinned, status in pinned_lists.show(folder):
        print(f"  {status:13}  {pinned.path:42}  {pinned.commit[:8]}  {pinned.sha256[:12]}")


COMMAND = Command("lists", "download the bad-words and domain lists, or show them", add_arguments, run)
