"""What MkDocs does beside its own work: one set of Markdown pages is right on GitHub and in the site.

The pages of docs/ link to files outside of it, such as ../ARCHITECTURE.md and ../examples/pretrain.py. Each of these
files becomes a page below project/, and the links lead there. The menu has the sections and tables of docs/README.md,
and so has llms.txt, the list of all pages for language models (https://llmstxt.org).
"""

import json
import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from scripts.notebook_page import notebook_page  # noqa: E402 - MkDocs runs this file by its path

INDEX = "docs/README.md"
OUTSIDE = "project/"
LANGUAGES = {".py": "python", ".sh": "sh", ".toml": "toml", ".json": "json", "Dockerfile": "dockerfile"}
LINK = re.compile(r"(\]\()((?![a-z]+:)[^)\s#]+)(#[^)\s]*)?(\))")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Makes the menu of the index: a section for each heading that has a table, with the links of its first column."""
    config.mdx_configs["toc"]["slugify"] = github_slug
    config.nav = [{"Documentation": "README.md"}]
    for heading, rows in index_sections():
        config.nav.append({heading: [{title: page} for title, page, _ in rows]})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds a page for each file outside of docs/ to which a page links, also one that was added."""
    pages = [f"docs/{file.src_uri}" for file in files.documentation_pages()]
    known = set(pages)
    for source in pages:  # it grows
        for match in LINK.finditer(read(source) if source.endswith(".md") else ""):
            target = outside(source, match[2])
            if not target.startswith("docs/") and target not in known:
                if not (ROOT / target).exists():
                    raise PluginError(f"{source} links to {match[2]}, which does not exist")
                known.add(target)
                pages.append(target)
                files.append(File.generated(config, page_of(target), content=content_of(target)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads the links to the pages of the site, and adds the docstrings to the page of the API."""
    source = source_of(page.file.src_uri)

    def lead(match: re.Match[str]) -> str:
        target = page_of(outside(source, match[2]))
        relative = posixpath.relpath(target, posixpath.dirname(page.file.src_uri) or ".")
        return f"{match[1]}{relative}{match[3] or ''}{match[4]}"

    led = LINK.sub(lead, markdown)
    return with_docstrings(led) if source == "docs/api.md" else led


def on_post_build(config: MkDocsConfig) -> None:
    """Writes llms.txt: all pages of the menu, each with what the index says about it."""
    lines = [f"# {config.site_name}", f"\n> {config.site_description}"]
    for heading, rows in index_sections():
        lines.append(f"\n## {heading}\n")
        lines += [f"- [{title}]({page.removesuffix('.md')}.html): {about}" for title, page, about in rows]
    Path(config.site_dir, "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def index_sections() -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The sections of the index that list pages: their heading, and of each page its title, path and description."""
    sections = []
    for part in read(INDEX).split("\n## ")[1:]:
        found = re.findall(r"^\| *\[([^]]+)\]\(([^)#]+)\)[^|]*\| *(.+?) *\|$", part, re.MULTILINE)
        rows = [(title, page_of(outside(INDEX, target)), about) for title, target, about in found]
        if rows:
            sections.append((part.partition("\n")[0], rows))
    return sections


def with_docstrings(markdown: str) -> str:
    """Puts below each table of names the docstrings of these names."""
    parts = re.split(r"(?=^##+ )", markdown, flags=re.MULTILINE)
    return "\n".join("\n".join([part, *(f"::: {name}\n" for name in names_of(part))]) for part in parts)


def names_of(markdown: str) -> list[str]:
    """The names of the package in the first column of a page's tables."""
    return re.findall(r"^\| `(c4pipe\.[\w.]+)` \|", markdown, re.MULTILINE)


def content_of(path: str) -> str:
    """The Markdown of a file outside of docs/: its own, a notebook's, or its text as code."""
    if path.endswith(".md"):
        return read(path)
    if path.endswith(".ipynb"):
        return notebook_page(json.loads(read(path)))
    names = [path]
    if (ROOT / path).is_dir():
        below = sorted(each for each in (ROOT / path).rglob("*") if each.is_file() and "__pycache__" not in each.parts)
        names = [each.relative_to(ROOT).as_posix() for each in below]
    return f"# {path}\n\n" + "\n".join(map(as_code, names))


def as_code(path: str) -> str:
    """A file as a block of code, below its name."""
    name = Path(path)
    language = LANGUAGES.get(name.suffix or name.name, "text")
    return f"`{path}`\n\n````{language}\n{read(path).rstrip()}\n````\n"


def outside(source: str, target: str) -> str:
    """The path of a link's target, from the root of the project."""
    return posixpath.normpath(posixpath.join(posixpath.dirname(source), target))


def page_of(path: str) -> str:
    """The page of the site for a path from the root of the project."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return f"{OUTSIDE}{path}" if path.endswith(".md") else f"{OUTSIDE}{path}.md"


def source_of(page: str) -> str:
    """The path from the root of the project for a page of the site that is Markdown there, too."""
    return page.removeprefix(OUTSIDE) if page.startswith(OUTSIDE) else f"docs/{page}"


def github_slug(text: str, separator: str) -> str:
    """The anchor of a heading, as GitHub makes it."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", separator)


def read(path: str) -> str:
    """The text of a file of the project."""
    return (ROOT / path).read_text(encoding="utf-8")
