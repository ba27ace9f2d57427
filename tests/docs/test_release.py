"""The version of the project: the files that have it agree, and what is wrong before a release is a sentence."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.check_release import problems

ROOT = Path(__file__).resolve().parents[2]
FILES = ("pyproject.toml", "CITATION.cff", "CHANGELOG.md")
REPOSITORY = "https://github.com/c4pipe/c4pipe"


def test_the_files_agree() -> None:
    assert problems(ROOT) == []


def test_the_links_lead_to_one_repository() -> None:
    paths = [ROOT / "CITATION.cff", ROOT / "CHANGELOG.md", ROOT / ".github" / "ISSUE_TEMPLATE" / "config.yml"]
    for path in [*paths, ROOT / "pyproject.toml"]:
        found = set(re.findall(r"https://[\w.]+/[\w-]+/c4pipe\b", path.read_text()))
        assert found == {REPOSITORY} or (path not in paths and not found), path


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The three files, of a version that is ready to be released."""
    for name in FILES:
        shutil.copy(ROOT / name, tmp_path)
    edit(tmp_path, "pyproject.toml", r'^version = ".*"$', 'version = "9.8.7"')
    edit(tmp_path, "CITATION.cff", r"^version: .*$(\ndate-released: .*$)?", "version: 9.8.7\ndate-released: 2031-02-03")
    edit(tmp_path, "CHANGELOG.md", r"^## \[Unreleased\]$", "## [Unreleased]\n\n## [9.8.7] - 2031-02-03")
    edit(tmp_path, "CHANGELOG.md", r"\.\.\.HEAD$", f"...v9.8.7\n[Unreleased]: {REPOSITORY}/compare/v9.8.7...HEAD")
    edit(tmp_path, "CHANGELOG.md", r"^\[Unreleased\]: ", "[9.8.7]: ")
    return tmp_path


def edit(folder: Path, name: str, pattern: str, replacement: str) -> None:
    text, count = re.subn(pattern, lambda _: replacement, (folder / name).read_text(), count=1, flags=re.MULTILINE)
    assert count == 1
    (folder / name).write_text(text)


def test_a_version_that_is_ready(project: Path) -> None:
    assert problems(project) == problems(project, "v9.8.7") == []


@pytest.mark.parametrize(
    ("name", "pattern", "replacement", "message"),
    [
        ("pyproject.toml", r'^version = ".*"$', 'version = "9.8"', "not three numbers"),
        (
            "pyproject.toml",
            r'^version = ".*"$',
            'version = "9.8.6"',
            "before the newest section of CHANGELOG.md, 9.8.7",
        ),
        (
            "CITATION.cff",
            "^version: .*$",
            "version: 9.8.6",
            "CITATION.cff: version 9.8.6, but pyproject.toml has 9.8.7",
        ),
        ("CITATION.cff", "^date-released: .*\n", "", "date-released missing, but CHANGELOG.md has 2031-02-03"),
        ("CHANGELOG.md", "^## .9.8.7.*$", "", 'no section "## [9.8.7] - YYYY-MM-DD"'),
        ("CHANGELOG.md", "^## .9.8.7. - ", "## 9.8.7, ", "unknown heading ## 9.8.7, 2031-02-03"),
        ("CHANGELOG.md", "^## .9.8.7..*$", "## [9.8.7]", "section 9.8.7 has no date"),
        ("CHANGELOG.md", r"^## \[Unreleased\]\n", "", 'the first section must be "## [Unreleased]"'),
        ("CHANGELOG.md", r"^## \[0.1.0\]", "## [10.0.0]", "the newest version must come first"),
        ("CHANGELOG.md", "^### Fixed$", "### Repaired", "### Repaired is none of"),
        ("CHANGELOG.md", r"^\[9.8.7\]: .*$", "", "no link [9.8.7] to .../compare/v0.1.0...v9.8.7"),
    ],
)
def test_what_is_wrong_is_a_sentence(project: Path, name: str, pattern: str, replacement: str, message: str) -> None:
    edit(project, name, pattern, replacement)
    assert [each for each in problems(project, "v9.8.7") if message in each]


def test_a_tag_that_is_not_the_version_stops_the_release() -> None:
    script = [sys.executable, "scripts/check_release.py"]
    fine = subprocess.run(script, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (fine.returncode, fine.stdout, fine.stderr) == (0, "", "")
    wrong = subprocess.run([*script, "v9.9.9"], cwd=ROOT, capture_output=True, text=True, check=False)
    assert wrong.returncode == 1
    assert "tag v9.9.9: pyproject.toml has version" in wrong.stderr
