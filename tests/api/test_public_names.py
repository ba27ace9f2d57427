"""What `import c4pipe` gives: exactly the public names, at once, and nothing heavy before a name is used."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import c4pipe

ROOT = Path(__file__).resolve().parents[2]
PUBLIC = [
    "Between",
    "C4pipeError",
    "CheckedPage",
    "Cleaner",
    "Corpus",
    "FileOverlap",
    "JobWritten",
    "LineRule",
    "LineVerdict",
    "LostDataError",
    "Match",
    "Overlap",
    "PageRule",
    "PageVerdict",
    "ProgressEvent",
    "Recipe",
    "RuleVerdict",
    "UsageError",
    "__version__",
    "add_files",
    "build_corpus",
    "clean_files",
    "dedup_files",
    "explain_text",
    "find_overlap",
    "import_text",
    "open_corpus",
    "train_vocabulary",
    "write_token_files",
]


def python(code: str, folder: Path = ROOT, path: str = str(ROOT), *options: str) -> str:
    """What a new Python process prints, which finds the package by PYTHONPATH."""
    environment = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, *options, "-c", code]
    ran = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout.strip()


def test_the_public_names() -> None:
    assert c4pipe.__all__ == PUBLIC
    assert set(PUBLIC) <= set(dir(c4pipe))


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_a_name_is_documented_and_no_folder(name: str) -> None:
    """`c4pipe.dedup` is a package: a function of that name would hide it."""
    assert getattr(c4pipe, name).__doc__
    assert not (ROOT / "c4pipe" / name).exists()


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="No c4pipe attribute build"):
        getattr(c4pipe, "build")  # noqa: B009 (mypy knows that it is not there)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert c4pipe.__version__ == version("c4pipe")


def test_a_star_import_gives_all_names() -> None:
    assert python(f"from c4pipe import *; print([name for name in {PUBLIC} if name not in globals()])") == "[]"


def test_the_import_loads_nothing_heavy() -> None:
    code = "import sys; before = set(sys.modules); import c4pipe; print(*sorted(set(sys.modules) - before))"
    loaded = python(code).split()
    assert [name for name in loaded if name.startswith("c4pipe")] == ["c4pipe"]
    assert not {name.partition(".")[0] for name in loaded} & {"numpy", "pyarrow", "rich", "apache_beam", "urllib3"}


def test_python_m_c4pipe() -> None:
    command = [sys.executable, "-m", "c4pipe", "--version"]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert ran.stdout.startswith(f"c4pipe {c4pipe.__version__}")


def test_python_started_above_a_clone_named_c4pipe(tmp_path: Path) -> None:
    """The folder of the clone has the name of the package; an installed package must win over it.

    `package-dir` in pyproject.toml makes an editable install a plain path, which is searched before the clone's folder
    is taken for a package without __init__.py.
    """
    clone = tmp_path / "c4pipe"
    clone.mkdir()
    for name in ("c4pipe", "pyproject.toml", "README.md", "tests"):
        (clone / name).symlink_to(ROOT / name)
    assert 'package-dir = { "" = "." }' in (clone / "pyproject.toml").read_text()
    code = "import c4pipe; print(c4pipe.__file__, c4pipe.UsageError.__name__, callable(c4pipe.build_corpus))"
    file, error, callable_ = python(code, folder=tmp_path, path=str(clone)).split()
    assert Path(file) == clone / "c4pipe" / "__init__.py"
    assert (error, callable_) == ("UsageError", "True")
    # What would go wrong: without the installed path, the folder above the clone hides the package.
    assert python("import c4pipe; print(c4pipe.__file__)", tmp_path, "", "-S") == "None"
