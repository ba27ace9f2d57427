"""Builds the image of the Dockerfile, and builds the sample corpus with it as its user.

    python scripts/try_image.py
    sudo python3 scripts/try_image.py --chroot      without Docker: needs debootstrap (Debian, Ubuntu), takes minutes

With `--chroot`, each stage is a folder that debootstrap fills with Debian 12 and its Python 3.11, in place of the
official images of Python. In it, the instructions of the Dockerfile run as they stand; those of the stage `worker` do
not. It needs the standard library alone.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGES_KEPT = 38
"""The pages that recipe `c4` keeps of the sample crawl."""
BUILD = ["build", "/samples/crawl", "--lists", "/samples/lists", "--output", "corpus", "--quiet"]
PYTHON = "python3,python3-venv,ca-certificates"
"""What debootstrap adds to Debian, in place of PYTHON_IMAGE."""
COMPILER = ("gcc", "libc6-dev", "python3-dev")
"""What BUILD_IMAGE has besides."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
NETWORK = ("HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "PIP_CERT", "PIP_INDEX_URL", "SSL_CERT_FILE")


@dataclass
class Stage:
    """A stage of a Dockerfile.

    Attributes:
        base: the variable that names its base image.
        name: what stands after `AS`, or nothing.
        steps: the instructions after `FROM`, each with its arguments.
    """

    base: str
    name: str
    steps: list[tuple[str, str]] = field(default_factory=list)

    def last(self, instruction: str) -> str:
        """Returns the arguments of the last instruction of that name, or nothing."""
        return next((given for name, given in reversed(self.steps) if name == instruction), "")


def stages(dockerfile: str) -> list[Stage]:
    """Returns the stages of a Dockerfile.

    Raises:
        ValueError: an instruction is one that this script does not know.
    """
    found: list[Stage] = []
    text = re.sub(r"^\s*#.*\n", "", dockerfile, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        name, given = line.split(maxsplit=1)
        if matched := re.fullmatch(r"FROM \$\{(\w+)\}(?: AS (\w+))?", line):
            found.append(Stage(matched[1], matched[2] or ""))
        elif name not in ("ARG", "COPY", "ENTRYPOINT", "ENV", "RUN", "USER", "VOLUME", "WORKDIR"):
            raise ValueError(f"Dockerfile: {name} is not known here")
        elif found:
            found[-1].steps.append((name, given))
    return found


def context(root: Path = ROOT) -> Iterator[str]:
    """Yields the files that `.dockerignore` leaves in: the last pattern that matches a path, or its folder, counts."""
    lines = (root / ".dockerignore").read_text().splitlines()
    patterns = [line for line in lines if line and not line.startswith("#")]
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name).relative_to(root)
            ignored = False
            for pattern in patterns:
                if _matches(path, pattern.removeprefix("!")):
                    ignored = not pattern.startswith("!")
            if not ignored:
                yield path.as_posix()


def _matches(path: Path, pattern: str) -> bool:
    for part in (path, *path.parents[:-1]):
        name = part.name if pattern.startswith("**/") else part.as_posix()
        words = pattern.removeprefix("**/")
        if fnmatch.fnmatchcase(name, words) and (words != "*" or "/" not in name):
            return True
    return False


class Chroot:
    """Runs the instructions of stages in folders."""

    def __init__(self, folder: Path) -> None:
        """Takes an empty folder for the stages and for the files that `.dockerignore` leaves in."""
        self.folder = folder
        self.stages: dict[str, Path] = {}
        for name in context():
            target = folder / "context" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)

    def base(self, variable: str) -> Path:
        """Returns the folder of a base image; makes it when it is first asked for."""
        target = self.folder / variable
        if not target.exists() and variable == "BUILD_IMAGE":
            subprocess.run(["cp", "-a", str(self.base("PYTHON_IMAGE")), str(target)], check=True)
            install = [
                "apt-get",
                "install",
                "--yes",
                "--no-install-recommends",
                "-qq",
                "--option=Dpkg::Use-Pty=0",
                *COMPILER,
            ]
            self.run(target, {"PATH": PATH, "DEBIAN_FRONTEND": "noninteractive"}, "/", install)
        elif not target.exists():
            options = ["--variant=minbase", f"--include={PYTHON}"]
            print("+ debootstrap", *options, flush=True)
            with (self.folder / "debootstrap.log").open("w") as log:
                subprocess.run(["debootstrap", *options, "bookworm", str(target)], check=True, stdout=log)
            (target / "dev/shm").chmod(0o1777)
            for path in {"/etc/resolv.conf", *filter(None, map(os.environ.get, ("PIP_CERT", "SSL_CERT_FILE")))}:
                (target / path[1:]).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(path, target / path[1:])
        return target

    def build(self, stage: Stage) -> tuple[Path, dict[str, str], str]:
        """Runs the instructions of a stage; returns its folder, its variables, and where its commands run."""
        root = self.folder / f"stage-{len(self.stages)}"
        subprocess.run(["cp", "-a", str(self.base(stage.base)), str(root)], check=True)
        variables = {"PATH": PATH}
        where = "/"
        for name, given in stage.steps:
            print("+", name, given, flush=True)
            if name == "RUN":
                self.run(root, variables, where, ["sh", "-c", given])
            elif name == "ENV":
                variable, _, value = given.partition("=")
                variables[variable] = value.replace("$PATH", variables["PATH"])
            elif name == "WORKDIR":
                where = given
                (root / given[1:]).mkdir(parents=True, exist_ok=True)
            elif name == "COPY":
                self.copy(root, where, given.split())
        self.stages[stage.name] = root
        return root, variables, where

    def copy(self, root: Path, where: str, words: Sequence[str]) -> None:
        """Copies files as COPY does: of a folder, what is in it."""
        source = self.folder / "context"
        if words[0].startswith("--from="):
            source, words = self.stages[words[0].removeprefix("--from=")], words[1:]
        *names, target = words
        into = root / str(Path(where, target))[1:]
        for name in names:
            path = source / name.lstrip("/")
            if path.is_dir():
                into.mkdir(parents=True, exist_ok=True)
                subprocess.run(["cp", "-a", f"{path}/.", str(into)], check=True)
            else:
                place = into / path.name if target.endswith("/") else into
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, place)

    def run(self, root: Path, variables: dict[str, str], where: str, command: Sequence[str], user: str = "0") -> None:
        """Runs a command in a stage, with /proc, and with no variables but these."""
        network = {name: os.environ[name] for name in NETWORK if name in os.environ}
        words = [f"{name}={value}" for name, value in {**network, **variables}.items()]
        inside = shlex.join(["env", "-i", *words, "sh", "-c", 'cd "$0" && exec "$@"', where, *command])
        place = shlex.quote(str(root))
        script = f"mount -t proc proc {place}/proc && exec chroot --userspec={user}:{user} {place} {inside}"
        subprocess.run(["unshare", "--mount", "sh", "-c", script], check=True)


def try_in_chroot(folder: Path) -> Path:
    """Builds the stages that the last one needs, and the sample corpus in it; returns the folder of the corpus."""
    chroot = Chroot(folder)
    found = stages((ROOT / "Dockerfile").read_text())
    for stage in found:
        if stage.name != "worker":
            root, variables, where = chroot.build(stage)
    shutil.copytree(ROOT / "samples", root / "samples")
    command = [*json.loads(found[-1].last("ENTRYPOINT")), *BUILD]
    print("+", *command, flush=True)
    chroot.run(root, variables, where, command, user=found[-1].last("USER"))
    return root / where[1:] / "corpus"


def try_in_docker(folder: Path) -> Path:
    """Builds the image, and the sample corpus in a container of it; returns the folder of the corpus."""
    subprocess.run(["docker", "build", "--tag", "c4pipe-tried", str(ROOT)], check=True)
    data = folder / "data"
    data.mkdir()
    data.chmod(0o777)
    mounts = ["--volume", f"{ROOT / 'samples'}:/samples:ro", "--volume", f"{data}:/data"]
    subprocess.run(["docker", "run", "--rm", *mounts, "c4pipe-tried", *BUILD], check=True)
    return data / "corpus"


def main() -> None:
    """Ends with status 1 where a step fails or the corpus is not the right one."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chroot", action="store_true", help="without Docker, as root")
    options = parser.parse_args()
    if options.chroot and (os.geteuid() or not shutil.which("debootstrap")):
        sys.exit("--chroot needs root, and debootstrap: apt-get install debootstrap")
    with tempfile.TemporaryDirectory(prefix="c4pipe-image-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        corpus = (try_in_chroot if options.chroot else try_in_docker)(folder)
        manifest = json.loads((corpus / "manifest.json").read_text())
        owner = (corpus / "manifest.json").stat().st_uid
        kept = manifest["counts"]["pages.kept"]
        if (kept, owner) != (PAGES_KEPT, 1000):
            sys.exit(f"the corpus has {kept} pages of user {owner}, not {PAGES_KEPT} of user 1000")
        print(f"the image built a corpus of {kept} pages, as user {owner}", flush=True)


if __name__ == "__main__":
    main()
