"""The source distribution and the wheel: what is in them, and that the wheel works where nothing can be compiled."""

import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TRY_WHEEL = [sys.executable, str(ROOT / "scripts" / "try_wheel.py")]
NO_SOURCE = shutil.ignore_patterns("__pycache__", "*.so")
BUILD_SDIST = "import sys; from setuptools import build_meta; build_meta.build_sdist(sys.argv[1])"

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs("compiler", "headers"),
]


@pytest.fixture(scope="module")
def sdist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The source distribution of a copy of the project, unpacked."""
    folder = tmp_path_factory.mktemp("sdist")
    copy = folder / "a clone"
    for name in ("c4pipe", "tests/docs", "tests/helpers", "scripts", "samples", "docs", "requirements"):
        shutil.copytree(ROOT / name, copy / name, ignore=NO_SOURCE)
    for path in (*ROOT.glob("*.md"), *(ROOT / name for name in ("LICENSE", "Makefile", "pyproject.toml"))):
        shutil.copy(path, copy)
    subprocess.run([sys.executable, "-c", BUILD_SDIST, str(folder)], cwd=copy, check=True, capture_output=True)
    (archive,) = folder.glob("*.tar.gz")
    with tarfile.open(archive) as files:
        files.extractall(folder, filter="data") if hasattr(tarfile, "data_filter") else files.extractall(folder)
    return folder / archive.name.removesuffix(".tar.gz")


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the source distribution with the build requirements that are installed."""
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-index", "--no-deps", "--no-build-isolation"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(sdist)], check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


def package_files(*endings: str) -> set[str]:
    """The files of the package with these endings, by their paths."""
    files = (path for path in (ROOT / "c4pipe").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(ROOT)) for path in files if path.name.endswith(endings)}


SHIPPED = (".py", ".pyi", "py.typed", ".html", ".md", ".tsv", "encodings.json", "sort.js")


def test_the_source_distribution_has_what_the_build_needs_and_nothing_else(sdist: Path) -> None:
    names = {str(path.relative_to(sdist)) for path in sdist.rglob("*") if path.is_file()}
    made = {name for name in names if name in ("PKG-INFO", "setup.cfg") or name.startswith("c4pipe.egg-info/")}
    others = {"LICENSE", "README.md", "pyproject.toml", "scripts/c4pipe-boot"}
    assert names - made == package_files(*SHIPPED, ".c", ".h") | others


def test_the_wheel_has_the_package_and_nothing_else(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    ending = sysconfig.get_config_var("EXT_SUFFIX")
    kernels = {f"c4pipe/native/{name}{ending}" for name in ("_langdetect", "_text")}
    version = wheel.name.split("-")[1]
    own = {name for name in names if not name.startswith(f"c4pipe-{version}.dist-info/")}
    assert own == package_files(*SHIPPED) | kernels | {f"c4pipe-{version}.data/scripts/c4pipe-boot"}


def test_the_wheel_works_without_a_compiler(wheel: Path) -> None:
    """In an environment of its own, in a folder with blanks; other packages are those of this installation."""
    options = ["--environment", "local", "--site-packages", sysconfig.get_path("purelib")]
    done = subprocess.run([*TRY_WHEEL, str(wheel), *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == f"{wheel.name}: local works"


def test_a_wheel_without_a_kernel_is_refused(wheel: Path, tmp_path: Path) -> None:
    slow = tmp_path / wheel.name
    with zipfile.ZipFile(wheel) as whole, zipfile.ZipFile(slow, "w") as less:
        for name in whole.namelist():
            if not name.startswith("c4pipe/native/_text."):
                less.writestr(name, whole.read(name))
    done = subprocess.run([*TRY_WHEEL, str(slow)], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith(f"try_wheel: {slow.name} has no c4pipe/native/_text.*.so: it was not compiled")
