"""The blocks of a report as data, and the templates in templates/, which Jinja2 renders as HTML and Markdown.

A section has paragraphs, tables and examples; each is rendered by the template that is named like its class. All texts
in them are plain text: Jinja2 escapes them when the page is rendered.
"""

import base64
import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from c4pipe.corpus.funnel import FunnelRow
from c4pipe.io.words import JOINERS, visible

if TYPE_CHECKING:
    from jinja2 import Environment, Template


class Paragraph(NamedTuple):
    """A paragraph of text."""

    text: str


class ShareBar(NamedTuple):
    """A bar in the last column of a table. It repeats a number of its row, so it needs no text.

    `width` and `start` are shares of the column, from 0 to 1. `kind`, `kept` or `dropped`, decides the colour.
    """

    width: float
    start: float = 0.0
    kind: str = "kept"


class StepCurve(NamedTuple):
    """A curve of steps in the last column of a table.

    `steps` has start, width and height of each step, as shares of the column and of the largest height.
    """

    steps: Sequence[tuple[float, float, float]]


class TableRow(NamedTuple):
    """A row of a table: its name, with a small `note` below, and the `id` that the name links to; texts as cells; a bar
    or a curve after them. A total is in bold letters.
    """

    name: str
    cells: tuple[str, ...]
    bar: ShareBar | StepCurve | None = None
    note: str = ""
    link: str = ""
    total: bool = False


class Table(NamedTuple):
    """A table of rows; `chart` is the head of a last column with bars. Without `numbers`, its cells are texts."""

    caption: str
    heads: tuple[str, ...]
    rows: Sequence[TableRow]
    chart: str = ""
    numbers: bool = True


LanguageCells = Mapping[str, tuple[str, float | None]]
"""The cells of a language by the head of their column: a text, and the number that it is sorted by (None: the text)."""


class LanguageRow(NamedTuple):
    """A row of a table of languages; `funnel` is the table that the name opens. A total is in bold letters."""

    name: str
    code: str
    cells: LanguageCells
    funnel: Table | None = None
    total: bool = False


class LanguageTable(NamedTuple):
    """A table of languages, which `templates/sort.js` sorts by the head that is clicked; `ends` stay at the end."""

    caption: str
    rows: Sequence[LanguageRow]
    ends: Sequence[LanguageRow]


class Examples(NamedTuple):
    """Pages under a heading that opens and closes.

    `name` is the `id` of the element, `note` small text after the heading. Pages are mappings with `url`, `timestamp`,
    `fact` (a sentence, or ""), `text` (pieces; every second is marked) and perhaps `command` (explains the page).
    """

    name: str
    title: str
    note: str
    pages: Sequence[Mapping[str, Any]]


ReportBlock = Paragraph | Table | LanguageTable | Examples


class ReportSection(NamedTuple):
    """A section of the report; `name` is the `id` that links lead to. Without blocks it is left out."""

    name: str
    title: str
    blocks: Sequence[ReportBlock] = ()


def funnel_chart(caption: str, what: str, rows: Iterable[FunnelRow], notes: Mapping[str, tuple[str, str]]) -> Table:
    """Returns one section of a funnel as a table. The bar of a row shows what is left, or what a rule dropped.

    Args:
        caption: of the table.
        what: the things that are counted, in the plural.
        rows: the rows of one section; the first row is the number of things read.
        notes: a note and a link by the row's name; either may be empty.
    """
    table_rows, left = [], 0
    for row in rows:
        number, bar = row.signed, share_bar(row.number, row.whole)
        if row.kind == "changed":
            number, bar = f"{row.signed} changed", ShareBar(0.0)
        elif row.kind in ("dropped", "skipped"):
            left -= row.number
            bar = share_bar(row.number, row.whole, "dropped", left)
        else:
            left = row.number
        note, link = notes.get(row.name, ("", ""))
        is_total = row.kind in ("read", "kept")
        table_rows.append(TableRow(row.name, (number, row.percent), bar, note, link, is_total))
    return Table(caption, ("step", what, "%"), table_rows, chart=f"of all {what}")


def share_bar(part: int, whole: int, kind: str = "kept", start: int = 0) -> ShareBar:
    """Returns a bar that fills its column by the share of a part in a whole, from `start` of the whole on."""
    return ShareBar(min(1.0, part / whole), start / whole, kind) if whole else ShareBar(0.0)


_MARKUP = re.compile(r"([\\`*\[\]<>|#]|(?<!\w)_|_(?!\w))")


def render(template: str, **values: Any) -> str:
    """Returns a template of this folder with values filled in.

    In a template that ends in `.html` every value is escaped, and each character that can't be seen, or that changes
    the direction of the text, is shown as U+FFFD. In one that ends in `.md` the filters `md` and `quoted` do that.
    """
    return _environment().get_template(template).render(**values)


def sort_script_digest() -> str:
    """Returns the digest of `templates/sort.js` in the form of a content security policy: no other script may run."""
    digest = hashlib.sha256((_TEMPLATES / "sort.js").read_bytes()).digest()
    return f"sha256-{base64.b64encode(digest).decode()}"


_TEMPLATES = Path(__file__).with_name("templates")


class _TemplateCode(SourceFileLoader):
    """Makes the code of a template. Python keeps it in `__pycache__`, like that of modules: to make it takes 0.05 s."""

    def __init__(self, environment: "Environment", name: str) -> None:
        super().__init__(name, str(_TEMPLATES / name))
        self._environment = environment

    def path_stats(self, path: str) -> Mapping[str, Any]:
        """Returns a size and a time. The time differs if the template, the environment or Jinja2 has changed."""
        from jinja2 import compiler

        others = [Path(each).stat() for each in (__file__, compiler.__file__)]
        own = super().path_stats(path)
        return {**own, "mtime": own["mtime"] + sum(each.st_mtime + each.st_size for each in others)}

    def source_to_code(self, data: Any, path: Any) -> Any:  # type: ignore[override]
        """Returns the code of a template, given its bytes."""
        return self._environment.compile(data.decode(), self.name, path)


@cache
def _environment() -> "Environment":
    """Jinja2 is imported here, when the first template is rendered: most processes of a job render none."""
    from jinja2 import BaseLoader, Environment, StrictUndefined
    from markupsafe import Markup, escape

    class Loader(BaseLoader):
        def load(self, environment: Environment, name: str, globals: Any = None) -> "Template":
            """Returns a template, given its name and values for all templates."""
            code: Any = _TemplateCode(environment, name).get_code(name)
            return environment.template_class.from_code(environment, code, globals or {})

    def breakable(text: str) -> Markup:
        """Returns a name that a narrow column may break after its underscores and dots."""
        shown = escape(visible(text, keep=f"\n{JOINERS}"))
        return Markup(re.sub(r"(?<=[_./])(?=\w)", "<wbr>", str(shown)))

    environment = Environment(
        loader=Loader(),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        finalize=lambda value: value if isinstance(value, Markup) else visible(str(value), keep=f"\n{JOINERS}"),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(md=as_markdown, quoted=quoted, number="{:,}".format, breakable=breakable)
    return environment


def as_markdown(text: str) -> str:
    """Returns a text of one line as Markdown that shows it as it is."""
    return _MARKUP.sub(r"\\\1", text)


def quoted(text: str) -> str:
    """Returns a text in the quotes of YAML, with escapes as in JSON: the language `no` stays a text."""
    whole = json.dumps(text, ensure_ascii=False)
    return "".join(each if each.isprintable() else f"\\U{ord(each):08x}" for each in whole)
