"""What is installed: versions with hashes for every Python, the same ones everywhere, and nothing beside them."""

import re
import sys
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
PYTHONS = ("3.10", "3.11", "3.12", "3.13", "3.14")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXTRAS = PROJECT["project"]["optional-dependencies"]
SETS: dict[str, tuple[str, ...]] = {
    "setup": (),
    "check": ("check",),
    "test": ("test",),
    "all": ("all",),
    "parity": ("parity",),
    "spark": ("spark",),
    "engines": ("ray", "spark"),
    "docs": ("docs",),
    "fuzz": ("fuzz",),
}
LOCKS = [*SETS, "local", "reader", "build", "audit", "release"]


def entries(path: Path) -> list[tuple[Requirement, int]]:
    """The requirements of a file, each with the number of its hashes."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE).replace("\\\n", "")
    lines = [line for line in text.splitlines() if line.strip()]
    return [(Requirement(line.partition(" --hash=")[0]), line.count("--hash=sha256:")) for line in lines]


def pins(path: Path, python: str) -> dict[str, str]:
    """The version of each package that a file gives to a Python on Linux, by name."""
    chosen = [each for each, _ in entries(path) if applies(each, python)]
    names = [canonicalize_name(each.name) for each in chosen]
    assert len(set(names)) == len(names)
    return {name: str(each.specifier) for name, each in zip(names, chosen, strict=True)}


def applies(requirement: Requirement, python: str) -> bool:
    """Whether a requirement is one for a Python on Linux."""
    environment = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": "linux"}
    return requirement.marker is None or requirement.marker.evaluate(environment)


def wanted(extras: tuple[str, ...], python: str) -> dict[str, Requirement]:
    """The requirements of the project with some extras for a Python, by name."""
    found: dict[str, Requirement] = {}
    lines = list(PROJECT["project"]["dependencies"])
    for extra in extras:
        lines += EXTRAS[extra]
    while lines:
        each = Requirement(lines.pop())
        if each.name == "c4pipe":
            lines += [line for extra in each.extras for line in EXTRAS[extra]]
        elif applies(each, python):
            found[canonicalize_name(each.name)] = each
    return found


@pytest.mark.parametrize("name", [*LOCKS, "torch", "torch-current"])
def test_every_version_has_hashes(name: str) -> None:
    for requirement, hashes in entries(ROOT / "requirements" / f"{name}.txt"):
        (specifier,) = requirement.specifier
        assert specifier.operator == "=="
        assert hashes, requirement


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("name", SETS)
def test_a_lock_has_what_the_project_asks_for(name: str, python: str) -> None:
    """After a change of pyproject.toml: scripts/lock."""
    locked = pins(ROOT / "requirements" / f"{name}.txt", python)
    for package, requirement in wanted(SETS[name], python).items():
        assert requirement.specifier.contains(locked[package].removeprefix("=="), prereleases=True), requirement


@pytest.mark.parametrize("python", PYTHONS)
def test_a_local_run_has_all_dependencies_but_beam(python: str) -> None:
    local, everything = (pins(ROOT / "requirements" / f"{name}.txt", python) for name in ("local", "setup"))
    assert local.keys() & wanted((), python).keys() == wanted((), python).keys() - {"apache-beam"}
    assert local.items() <= everything.items()
    assert not local.keys() & {"apache-beam", "grpcio", "protobuf", "requests"}


@pytest.mark.parametrize("python", PYTHONS)
def test_all_locks_have_the_same_versions(python: str) -> None:
    everything = pins(ROOT / "constraints.txt", python)
    for name in LOCKS:
        assert pins(ROOT / "requirements" / f"{name}.txt", python).items() <= everything.items()


def test_what_builds_the_package_is_locked() -> None:
    locked = pins(ROOT / "requirements" / "build.txt", "3.11")
    for line in PROJECT["build-system"]["requires"]:
        requirement = Requirement(line)
        assert requirement.specifier.contains(locked[requirement.name].removeprefix("=="))


@pytest.mark.parametrize("path", ["Makefile", "Dockerfile", "scripts/install", "scripts/torch"])
def test_nothing_is_downloaded_without_a_hash(path: str) -> None:
    text = (ROOT / path).read_text().replace("\\\n", " ")
    text = re.sub(r"^(#|pip\(\)).*", "", text, flags=re.MULTILINE)
    commands = re.findall(r"pip (?:install|wheel|--)[^&|\n]*", text)
    for command in commands:
        assert "--require-hashes" in command or "--no-deps" in command, command
        assert "--no-build-isolation" in command or "--no-deps" not in command, command
    assert commands or path == "Makefile"


def test_actions_are_pinned_by_commit() -> None:
    """Each with its version in words, and each action in one version everywhere."""
    lines = [
        line.partition("uses: ")[2]
        for path in sorted((ROOT / ".github" / "workflows").glob("*.yml"))
        for line in path.read_text().splitlines()
        if "uses:" in line
    ]
    assert len(lines) > 10
    assert [line for line in lines if not re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)] == []
    assert len(set(lines)) == len({line.partition("@")[0] for line in lines})


def test_only_the_jobs_that_publish_can_write() -> None:
    allowed = {"wheels.yml": ["id-token"], "site.yml": ["pages", "id-token"]}
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        top, _, jobs = path.read_text().partition("\njobs:\n")
        assert "\npermissions:\n  contents: read\n" in top
        assert re.findall(r"(\S+): write", top) == []
        assert re.findall(r"(\S+): write", jobs) == allowed.get(path.name, [])


def test_hooks_download_nothing() -> None:
    """Their versions are those of the lock: each is a program of .venv, or a script that calls some."""
    text = (ROOT / ".pre-commit-config.yaml").read_text()
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert set(re.findall(r"language: (\S+)", text)) == {"system"}
    entries = re.findall(r"entry: (\S+)", text)
    assert len(entries) == text.count("- id: ")
    assert [entry for entry in entries if not entry.startswith((".venv/bin/", "scripts/"))] == []
    assert all((ROOT / entry).exists() for entry in entries if entry.startswith("scripts/"))
