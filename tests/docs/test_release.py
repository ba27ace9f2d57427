"""The version of the project: the files that have it agree."""

import re
from pathlib import Path

from scripts.check_release import problems

ROOT = Path(__file__).resolve().parents[2]
REPOSITORY = "https://github.com/c4pipe/c4pipe"


def test_the_files_agree() -> None:
    assert problems(ROOT) == []


def test_the_links_lead_to_one_repository() -> None:
    paths = [ROOT / "CITATION.cff", ROOT / "CHANGELOG.md", ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"]
    for path in [*paths, ROOT / "pyproject.toml"]:
        found = set(re.findall(r"https://[\w.]+/[\w-]+/c4pipe\b", path.read_text()))
        assert found == {REPOSITORY} or (path not in paths and not found), path
