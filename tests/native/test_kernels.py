"""Which kernels run: compiled, Python where nothing was compiled, and an error where an extension is broken."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from c4pipe.native import EXTENSION_VERSION, kernels, langdetect_kernel, load_extension, text_kernel

PACKAGE = Path(__file__).resolve().parents[2] / "c4pipe"
SHOW = "from c4pipe.native import kernels; print(kernels())"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package without its C extensions; returns its folder `native`."""
    shutil.copytree(PACKAGE, tmp_path / "c4pipe", ignore=shutil.ignore_patterns("*.so", "*.pyd", "__pycache__"))
    return tmp_path / "c4pipe" / "native"


def shown(folder: Path, code: str = SHOW) -> subprocess.CompletedProcess[str]:
    """Prints the kernels of a copy of the package, or runs other code with it."""
    return subprocess.run(
        [sys.executable, "-c", code],
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


@pytest.mark.parametrize("values", [{}, {"VERSION": EXTENSION_VERSION - 1}, {"VERSION": EXTENSION_VERSION + 1}])
def test_an_extension_of_other_sources_is_an_error(values: dict[str, int], monkeypatch: pytest.MonkeyPatch) -> None:
    extension = ModuleType("c4pipe.native._other")
    extension.__file__ = "_other.so"
    monkeypatch.setitem(sys.modules, extension.__name__, extension)
    vars(extension).update(values)
    with pytest.raises(ImportError) as raised:
        load_extension("c4pipe.native._other")
    assert str(raised.value) == (
        "the C extension c4pipe.native._other was compiled of other sources than those of this c4pipe: "
        "install c4pipe again (in a clone: make setup), or delete _other.so"
    )
    vars(extension)["VERSION"] = EXTENSION_VERSION
    assert load_extension("c4pipe.native._other") is extension


@pytest.mark.needs("extensions")
def test_an_extension_of_other_sources_is_told_wherever_it_is_needed(copy: Path) -> None:
    assert text_kernel
    file = Path(str(text_kernel.__file__))
    shutil.copy(file, copy / file.name)
    code = copy / "__init__.py"
    version = f"VERSION = {EXTENSION_VERSION}\n"
    code.write_text(code.read_text("utf-8").replace(version, f"VERSION = {EXTENSION_VERSION + 1}\n"), "utf-8")
    run = shown(copy, "from c4pipe.recipes.recipe import Recipe")
    assert run.stderr.splitlines()[-1].startswith(
        "ImportError: the C extension c4pipe.native._text was compiled of other sources than those of this c4pipe: "
    )


def test_the_version_goes_up_with_the_interface() -> None:
    """Where this fails, add 1 to the version in `native/__init__.py` and both C files, and put the new pair here."""
    stubs = b"".join((PACKAGE / "native" / f"{name}.pyi").read_bytes() for name in ("_langdetect", "_text"))
    assert (EXTENSION_VERSION, hashlib.sha256(stubs).hexdigest()[:8]) == (10, "9a62a586")
    for name in ("langdetect.c", "text/module.c"):
        assert f"\n#define VERSION {EXTENSION_VERSION} " in (PACKAGE / "native" / name).read_text("utf-8")


def test_an_extension_that_was_not_compiled() -> None:
    assert load_extension("c4pipe.native._nothing") is None
