"""The files that describe a finished corpus: the data of its report, the report, and the dataset card."""

from typing import Any

from c4pipe.corpus.manifest import Manifest
from c4pipe.io.atomic import write_text
from c4pipe.io.json_files import write_json
from c4pipe.io.paths import StoragePath
from c4pipe.report import card, html_page
from c4pipe.report.data import DEDUP_DATA, REPORT_DATA

DESCRIPTIONS = (DEDUP_DATA, REPORT_DATA, card.CARD, html_page.REPORT_PAGE)
"""The names of the files."""


def write_descriptions(folder: StoragePath, manifest: Manifest, found: Any, data: Any) -> None:
    """Writes the files beside the shards, given the content of `dedup.json` and of `report.json`. Raises OSError."""
    write_json(folder / DEDUP_DATA, found)
    write_json(folder / REPORT_DATA, data)
    write_text(folder / card.CARD, card.render_card(manifest, data["profile"]["table_bytes"]))
    write_text(folder / html_page.REPORT_PAGE, html_page.render_report(manifest, data))
