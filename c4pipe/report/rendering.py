"""Renders the templates in templates/ with Jinja2, in HTML and Markdown."""

import json
import re
from functools import cache
from typing import TYPE_CHECKING, Any

from c4pipe.display.safe_text import JOINERS, visible

if TYPE_CHECKING:
    from jinja2 import Environment

_OF_A_CORPUS = ("report.html", "blocks.html", "card.md", "card_loading.md")
_MARKUP = re.compile(r"([\\`*\[\]<>|#]|(?<!\w)_|_(?!\w))")


def render(template: str, **values: Any) -> str:
    """Returns a template of this folder with values filled in.

    In a template that ends in `.html` every value is escaped, and each character that can't be seen, or that changes
    the direction of the text, is shown as U+FFFD. In one that ends in `.md` the filters `md` and `quoted` do that.
    """
    return _environment().get_template(template).render(**values)


def compile_templates() -> None:
    """Compiles the templates of the report and the card, so that this process renders them faster later."""
    for name in _OF_A_CORPUS:
        _environment().get_template(name)


@cache
def _environment() -> "Environment":
    """Jinja2 is imported here, when the first template is rendered: most processes of a job render none."""
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup, escape

    def breakable(text: str) -> Markup:
        """Returns a name that a narrow column may break behind its underscores and dots."""
        shown = escape(visible(text, keep=f"\n{JOINERS}"))
        return Markup(re.sub(r"(?<=[_./])(?=\w)", "<wbr>", str(shown)))

    environment = Environment(
        loader=PackageLoader("c4pipe.report"),
        autoescape=lambda name: name is not None and name.endswith(".html"),
        undefined=StrictUndefined,
        optimized=False,  # a template is rendered once: to fold its constants takes longer than it saves
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
    """Returns a text in the quotes of JSON, which YAML reads as a string too: the language `no` stays a text."""
    return json.dumps(text, ensure_ascii=False)
