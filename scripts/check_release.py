"""Checks that the files of the project agree on its version: pyproject.toml, CITATION.cff and CHANGELOG.md.

    python scripts/check_release.py             # while changes are collected for a version
    python scripts/check_release.py v1.2.3      # before that version is published

It needs nothing but Python 3.11. With a tag, the changelog must have a dated section of the version.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

HEADING = re.compile(r"^## \[(?P<name>[^\]]+)\](?: - (?P<date>\d{4}-\d\d-\d\d))?$", re.MULTILINE)
_SECOND_HEADING = re.compile(r"^## .*$", re.MULTILINE)
_VERSION = re.compile(r"\d+\.\d+\.\d+")
_KINDS = ["Changed", "Added", "Deprecated", "Removed", "Fixed", "Security"]


def problems(root: Path, tag: str | None = None) -> list[str]:
    """Returns a sentence for each thing in which the files of a folder do not agree with each other, or with a tag."""
    version = _field(root / "pyproject.toml", r'^version = "(.+)"$')
    cited = _field(root / "CITATION.cff", r"^version: (.+)$")
    cited_date = _field(root / "CITATION.cff", r"^date-released: (.+)$")
    changelog = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    dates = {match["name"]: match["date"] for match in HEADING.finditer(changelog)}
    found = _changelog_problems(changelog)
    if not _VERSION.fullmatch(version):
        found.append(f"pyproject.toml: version {version} is not three numbers, as 1.2.3")
    if cited != version:
        found.append(f"CITATION.cff: version {cited}, but pyproject.toml has {version}")
    if tag is not None and tag != f"v{version}":
        found.append(f"tag {tag}: pyproject.toml has version {version}, so the tag must be v{version}")
    if version not in dates:
        if tag is not None:
            found.append(f'CHANGELOG.md: no section "## [{version}] - YYYY-MM-DD"')
        if cited_date:
            found.append(f"CITATION.cff: date-released {cited_date}, but CHANGELOG.md has no section of {version}")
    elif cited_date != dates[version]:
        found.append(f"CITATION.cff: date-released {cited_date or 'missing'}, but CHANGELOG.md has {dates[version]}")
    released = [name for name in dates if name != "Unreleased"]
    if released and _VERSION.fullmatch(version) and _numbers(released[0]) > _numbers(version):
        found.append(f"pyproject.toml: version {version} is before the newest section of CHANGELOG.md, {released[0]}")
    return found


def _changelog_problems(changelog: str) -> list[str]:
    """Returns what is not as Keep a Changelog says: headings, their order, and the links at the end."""
    headings = [match[0] for match in _SECOND_HEADING.finditer(changelog)]
    matches = list(HEADING.finditer(changelog))
    known = {match[0] for match in matches}
    found = [f"CHANGELOG.md: unknown heading {heading}" for heading in headings if heading not in known]
    names = [match["name"] for match in matches]
    if names[:1] != ["Unreleased"]:
        found.append('CHANGELOG.md: the first section must be "## [Unreleased]"')
    versions = names[1:]
    wrong = [name for name in versions if not _VERSION.fullmatch(name)]
    found += [f"CHANGELOG.md: {name} is not three numbers, as 1.2.3" for name in wrong]
    found += [f"CHANGELOG.md: section {match['name']} has no date" for match in matches[1:] if not match["date"]]
    if not wrong and versions != sorted(set(versions), key=_numbers, reverse=True):
        found.append("CHANGELOG.md: the newest version must come first, and each version once")
    kinds = re.findall(r"^### (.*)$", changelog, re.MULTILINE)
    found += [f"CHANGELOG.md: ### {kind} is none of {', '.join(_KINDS)}" for kind in kinds if kind not in _KINDS]
    for name, older in zip(names, [*names[1:], ""], strict=True):
        end = "HEAD" if name == "Unreleased" else f"v{name}"
        target = f"compare/v{older}...{end}" if older else f"releases/tag/{end}"
        if not re.search(rf"^\[{re.escape(name)}\]: https://\S+/{re.escape(target)}$", changelog, re.MULTILINE):
            found.append(f"CHANGELOG.md: no link [{name}] to .../{target} at its end")
    return found


def _field(path: Path, pattern: str) -> str:
    match = re.search(pattern, path.read_text(encoding="utf-8"), re.MULTILINE)
    return match[1].strip() if match else ""


def _numbers(version: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", version)]


if __name__ == "__main__":
    messages = problems(ROOT, *sys.argv[1:2])
    print(*messages, sep="\n", file=sys.stderr, end="\n" if messages else "")
    sys.exit(1 if messages else 0)
