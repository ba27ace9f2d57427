"""The report of a corpus: one page in HTML, without scripts, that loads nothing from elsewhere."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from c4pipe.display.excerpts import short
from c4pipe.recipes.recipe import Recipe
from c4pipe.report.funnel import percent
from c4pipe.report.rendering import render
from c4pipe.report.report_input import ReportInput
from c4pipe.report.report_sections import WORDING_SIZE, report_sections

NAME = "report.html"


def render_report(
    manifest: Mapping[str, Any],
    data: Mapping[str, Any],
    tokens: Mapping[str, Any] = MappingProxyType({}),
    opt_outs: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """Returns the report of a corpus as HTML. The same manifest and data give the same text.

    Args:
        manifest: the corpus' manifest.
        data: the content of its `report.json` (see `report_data.make`).
        tokens: the `totals` of its `tokens.json`; empty where its tokens are not counted.
        opt_outs: the content of its `opt_outs.json`; empty where its opt-outs are not counted.
    """
    recipe = Recipe.from_json(manifest["recipe"])
    report = ReportInput(
        manifest,
        recipe,
        data["profile"],
        data["examples"],
        data["repeats"],
        data["dropped_languages"],
        tokens,
        opt_outs,
        data.get("near_duplicates", ()),
        data.get("copied_hosts", ()),
    )
    return render(
        NAME,
        title=f"Report: C4 by recipe {recipe.name}",
        description=short(recipe.description, WORDING_SIZE),
        facts=_facts(report),
        sections=report_sections(report),
    )


def _facts(report: ReportInput) -> dict[str, str]:
    kept = report.count("pages.kept")
    return {
        "pages kept": f"{kept:,}",
        "of pages read": f"{percent(kept, report.count('pages.read'))} %",
        "text kept": _size(report.count("bytes.kept")),
        "languages": f"{len({name.partition('/')[0] for name in report.profile['pages']}):,}",
        f"{report.recipe.input_format} files": f"{len(report.manifest['inputs']):,}",
    }


def _size(count: int) -> str:
    """Returns a number of bytes with its unit."""
    for unit, power in (("TB", 12), ("GB", 9), ("MB", 6), ("kB", 3)):
        if count >= 10**power:
            return f"{count / 10**power:,.1f} {unit}"
    return f"{count} bytes"
