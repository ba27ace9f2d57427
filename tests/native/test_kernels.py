"""Which kernels run: compiled, Python where nothing was compiled, and an error where an extension is broken."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from c4pipe.native import kernels, langdetect_kernel, load_extension, text_kernel

PACKAGE = Path(__file__).resolve().parents[2] / "c4pipe"
SHOW = "from c4pipe.native import kernels; print(kernels())"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package without its C extensions; returns its folder `native`."""
    shutil.copytree(PACKAGE, tmp_path / "c4pipe", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    return tmp_path / "c4pipe" / "native"


def shown(folder: Path) -> subprocess.CompletedProcess[str]:
    """Prints the kernels of a copy of the package."""
    return subprocess.run(
        [sys.executable, "-c", SHOW],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder.parents[1])},
    )


def test_kernels_of_this_installation() -> None:
    expected = {"text": text_kernel, "langdetect": langdetect_kernel}
    assert kernels() == {name: "compiled" if module else "python" for name, module in expected.items()}


def test_without_extensions_python_runs(copy: Path) -> None:
    run = shown(copy)
    assert (run.stdout, run.stderr) == ("{'text': 'python', 'langdetect': 'python'}\n", "")


@pytest.mark.parametrize("name", ["_text", "_langdetect"])
def test_a_broken_extension_is_an_error(copy: Path, name: str) -> None:
    """A file that is no shared library, as an interrupted build leaves it."""
    (copy / f"{name}.abi3.so").write_bytes(b"not a shared library")
    run = shown(copy)
    assert run.returncode == 1
    last = run.stderr.splitlines()[-1]
    assert last.startswith(f"ImportError: the C extension c4pipe.native.{name} can't be loaded (")
    assert last.endswith("): install c4pipe again, or delete the file")
    assert f"{name}.abi3.so" in last


def test_a_module_that_an_extension_needs_is_an_error(copy: Path) -> None:
    """Only the extension itself may be missing."""
    (copy / "_text.py").write_text("import a_module_that_nobody_has")
    run = shown(copy)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "ModuleNotFoundError: No module named 'a_module_that_nobody_has'"


def test_an_extension_that_was_not_compiled() -> None:
    assert load_extension("c4pipe.native._nothing") is None
