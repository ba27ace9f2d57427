"""The section of the report on opt-outs: what today's lists would refuse of the corpus."""

from collections.abc import Iterator

from c4pipe.report.blocks import Block, Paragraph, Row, Table
from c4pipe.report.funnel import percent
from c4pipe.report.report_input import ReportInput

TOGETHER = "together"
"""The name of the pages that any of the lists refuses, among the reasons."""


def opt_outs(report: ReportInput) -> Iterator[Block]:
    """Yields the pages and bytes that are refused, and the hosts with most of them; nothing where none are counted."""
    if not report.opt_outs:
        return
    refused, hosts = report.opt_outs["refused"], report.opt_outs["hosts"]
    digests = ", ".join(f"{name} {digest[:12]}" for name, digest in sorted(report.opt_outs["lists"].items()))
    yield Paragraph(
        "Pages of the corpus that the lists given to `c4pipe report --opt-outs` would refuse. A page can count for "
        f"several reasons. Lists, by SHA-256: {digests}."
    )
    heads = ("pages", "% of pages", "bytes of text", "% of bytes")
    rows = [_row(report, name, each["pages"], each["bytes"], name == TOGETHER) for name, each in refused.items()]
    yield Table("Pages that would be refused", ("reason", *heads), rows)
    if hosts:
        cut = "; the numbers are lower bounds" if report.opt_outs["hosts_cut"] else ""
        of_hosts = [_row(report, each["host"], each["pages"], each["bytes"]) for each in hosts]
        yield Table(f"The hosts with most of these pages{cut}", ("host", *heads), of_hosts)


def _row(report: ReportInput, name: str, pages: int, size: int, total: bool = False) -> Row:
    kept, kept_bytes = report.count("pages.kept"), report.count("bytes.kept")
    cells = f"{pages:,}", percent(pages, kept), f"{size:,}", percent(size, kept_bytes)
    return Row(name, cells, total=total)
