"""Installs a wheel in clean environments, without a C compiler and in a folder with blanks, and tries what users do.

    python scripts/try_wheel.py dist/c4pipe-*.whl                        # local and reader
    python scripts/try_wheel.py WHEEL --environment setup                # one of ENVIRONMENTS
    python scripts/try_wheel.py WHEEL --site-packages FOLDER             # offline: with the packages of a folder

It runs on the Python that is to be tried, and needs its standard library alone. Packages come from PyPI, with the
hashes of requirements/*.txt. It fails where a C extension was not compiled: both are optional, so a wheel without them
would work, but more slowly.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
KERNELS = ("c4pipe/native/_langdetect.", "c4pipe/native/_text.")
COMPILED = "(text: compiled, langdetect: compiled)"
PAGES_KEPT = 38
"""The pages that recipe `c4` keeps of the sample crawl."""
URL = "https://kitchen.example.com/bread/plain-white-loaf"
TOOLS = ("dirname", "env", "gzip", "readlink", "sh", "uname")
"""What the PATH has beside the environment itself: no compiler."""

KERNELS_SCRIPT = """
import c4pipe.native
assert c4pipe.native.kernels() == {"text": "compiled", "langdetect": "compiled"}, c4pipe.native.kernels()
assert c4pipe.native.lower("\\u00c4B") == "\\u00e4b"
"""

READER_SCRIPT = """
import sys
from pathlib import Path
from c4pipe import read
from c4pipe.objectives import objective
from c4pipe.objectives.batches import Batches
from c4pipe.objectives.tokenizer import Tokenizer

corpus, model, kept = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
assert len({page["url"] for page in read.documents(corpus, seed=1)}) == kept
assert len(read.random_access(corpus)) == kept
tokenizer = Tokenizer(model)
batches = Batches(read.documents(corpus, seed=1), tokenizer, objective.span_corruption(tokenizer.ids), size=2)
assert next(iter(batches))["inputs"].shape == (2, 512)
"""


@dataclass(frozen=True)
class Environment:
    """An environment of Python with the wheel in it, and the folder in which its commands run."""

    folder: Path
    home: Path

    @property
    def bin(self) -> Path:
        """The folder of its commands."""
        return self.folder / "bin"

    def run(self, *command: str) -> str:
        """Runs a command of the environment and returns what it prints; a CalledProcessError shows the rest."""
        print("+", *(word if "\n" not in word else "..." for word in command), flush=True)
        names = ("HOME", "HTTPS_PROXY", "LANG", "PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE", "TMPDIR")
        variables = {name: os.environ[name] for name in names if name in os.environ}
        variables |= {"CC": "/nonexistent", "CXX": "/nonexistent", "PYTHONNOUSERSITE": "1"}
        variables["PATH"] = f"{self.bin}{os.pathsep}{self.home / 'tools'}"
        for compiler in ("cc", "gcc", "clang", "c++"):
            assert not shutil.which(compiler, path=variables["PATH"])
        done = subprocess.run(
            [str(self.bin / command[0]), *command[1:]],
            cwd=self.home,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            sys.exit(f"{done.stdout}{done.stderr}\ntry_wheel: {command} ended with exit status {done.returncode}")
        return done.stdout

    def pip_install(self, *arguments: str) -> None:
        """Installs packages with the environment's own pip."""
        self.run("python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments)


def check_files(wheel: Path) -> None:
    """Ends with a message where a kernel is not in the wheel."""
    names = zipfile.ZipFile(wheel).namelist()
    for kernel in KERNELS:
        if not any(name.startswith(kernel) and name.endswith(".so") for name in names):
            sys.exit(f"try_wheel: {wheel.name} has no {kernel}*.so: it was not compiled; build it with a C compiler")


def make_environment(name: str, wheel: Path, home: Path, site_packages: Path | None) -> Environment:
    """Makes an environment, given the name of its requirements (`kernels` has none), and installs the wheel into it."""
    environment = Environment(home / f"environment {name}", home)
    venv.create(environment.folder, with_pip=site_packages is None, symlinks=True)
    if site_packages is not None:
        (packages,) = environment.folder.glob("lib/python*/site-packages")
        (packages / "others.pth").write_text(f"{site_packages}\n")
        own = ["--python", str(environment.bin / "python"), "install", "--no-index", "--no-deps", "--quiet"]
        subprocess.run([sys.executable, "-m", "pip", *own, "--ignore-installed", str(wheel)], check=True)
        return environment
    if name != "kernels":
        requirements = ROOT / "requirements"
        environment.pip_install("--require-hashes", "--requirement", str(requirements / "build.txt"))
        options = ("--require-hashes", "--no-build-isolation", "--use-pep517")
        environment.pip_install(*options, "--requirement", str(requirements / f"{name}.txt"))
    environment.pip_install("--no-index", "--no-deps", str(wheel))
    return environment


def check_installed(environment: Environment) -> None:
    """The package is imported from the environment, and both kernels are compiled."""
    file = environment.run("python", "-c", "import c4pipe; print(c4pipe.__file__)").strip()
    assert Path(file).resolve().is_relative_to(environment.folder.resolve()), file
    environment.run("python", "-c", KERNELS_SCRIPT)
    assert os.access(environment.bin / "c4pipe-boot", os.X_OK)


def check_jobs(environment: Environment, option: str, value: str) -> None:
    """The commands of a user: a corpus of the sample crawl with an option, why a page is in it, a vocabulary."""
    home = environment.home
    shown = environment.run("c4pipe", "--version").splitlines()[0]
    assert shown.endswith(COMPILED), shown
    lists = ("--lists", "the samples/lists")
    build = ("build", "the samples/crawl", *lists, "--output", "a corpus", "--quiet", option, value)
    environment.run("c4pipe", *build)
    assert (home / "a corpus" / "report.html").stat().st_size > 10_000
    explained = environment.run("c4pipe", "explain", "a corpus", "--url", URL)
    assert URL in explained, explained
    environment.run("python", "-m", "c4pipe", "vocab", "a corpus/en", "--size", "300", "--output", "a vocabulary")
    check_reader(environment)


def check_reader(environment: Environment) -> None:
    """`c4pipe.read` and `c4pipe.objectives` on the corpus that `check_jobs` built."""
    environment.run("python", "-c", READER_SCRIPT, "a corpus", "a vocabulary/spm.model", str(PAGES_KEPT))


def try_kernels(environment: Environment) -> None:
    """The wheel alone."""


def try_local(environment: Environment) -> None:
    """All dependencies but Beam: a local run needs none."""
    check_jobs(environment, "--workers", "2")


def try_setup(environment: Environment) -> None:
    """All dependencies: on this machine's processes, and on Beam."""
    for option, value in (("--workers", "2"), ("--runner", "DirectRunner")):
        for name in ("a corpus", "a vocabulary"):
            shutil.rmtree(environment.home / name, ignore_errors=True)  # what `local` or the other run made
        check_jobs(environment, option, value)


ENVIRONMENTS: dict[str, Callable[[Environment], None]] = {
    "kernels": try_kernels,
    "local": try_local,
    "setup": try_setup,
    "reader": check_reader,
}
"""By the name of their requirements. `reader` reads what `local` or `setup` built before it."""


def main() -> None:
    """Tries the wheel in each environment."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("wheel", type=Path)
    parser.add_argument("--environment", action="append", choices=ENVIRONMENTS)
    parser.add_argument("--site-packages", type=Path)
    options = parser.parse_args()
    names = options.environment or ["local", "reader"]
    wheel: Path = options.wheel.resolve(strict=True)
    check_files(wheel)
    with tempfile.TemporaryDirectory(prefix="try a wheel ") as folder:
        home = Path(folder)
        shutil.copytree(ROOT / "samples", home / "the samples")
        (home / "tools").mkdir()
        for tool in TOOLS:
            found = shutil.which(tool)
            if found:
                (home / "tools" / tool).symlink_to(found)
        for name in names:
            environment = make_environment(name, wheel, home, options.site_packages)
            check_installed(environment)
            ENVIRONMENTS[name](environment)
            print(f"{wheel.name}: {name} works", flush=True)


if __name__ == "__main__":
    main()
