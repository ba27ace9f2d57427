"""Gets the engines once into a cache: Spark, Flink, Beam's job servers for them, and Prism.

By package clients alone: pip for Spark, Maven for the Java parts, Go for Prism and a stand-in for Google's storage.
Versions are pinned here and in the poms, each file's SHA-256 in `sha256.txt`; Go compares what it gets with its
checksum database. `C4PIPE_ENGINES` names another folder than the user's cache.
"""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterable
from functools import cached_property
from pathlib import Path

HERE = Path(__file__).parent
SPARK = "3.5.6"
PRISM = "github.com/apache/beam/sdks/v2/go/cmd/prism@v2.77.0"
BOOT = "github.com/apache/beam/sdks/v2/python/container@v2.77.0"
"""Beam's `boot`, the entry point of its images for workers."""
GCS = "github.com/fsouza/fake-gcs-server@v1.56.1"
_TOOLS = {"java": "Java", "mvn": "Maven", "go": "Go"}
_SIGNATURES = (".SF", ".RSA", ".DSA")


class Engines:
    """Where the engines are. Each one is fetched when it is first asked for, unless it is in the cache."""

    @cached_property
    def spark(self) -> Path:
        """The home of Spark 3.5, which Beam's runner needs, with its PySpark."""
        need("java")
        home = cache() / f"spark-{SPARK}"
        if not (home / "python").exists():
            _get_spark(cache(), home)
        return home

    @cached_property
    def spark_jar(self) -> Path:
        """Beam's runner for Spark with all it needs but Spark."""
        return _runner("spark", cache())

    @cached_property
    def flink_jar(self) -> Path:
        """Beam's runner for Flink with all it needs, Flink among it."""
        return _runner("flink", cache())

    @cached_property
    def prism(self) -> Path:
        """The Prism binary."""
        return built(PRISM)


def fetch() -> Engines:
    """Gets what is not in the cache yet, and returns where all of it is."""
    folder = cache()
    have_jars = all((folder / f"{engine}-runner.jar").exists() for engine in ("spark", "flink"))
    need("java", *(() if have_jars else ("mvn",)), *(() if _program(PRISM).exists() else ("go",)))
    engines = Engines()
    for _ in (engines.spark, engines.spark_jar, engines.flink_jar, engines.prism):
        pass
    return engines


def cache() -> Path:
    """Returns the folder of the engines."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(os.environ.get("C4PIPE_ENGINES") or Path(base) / "c4pipe" / "engines")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _program(package: str) -> Path:
    return cache() / package.partition("@")[0].rpartition("/")[2]


def built(package: str) -> Path:
    """Returns the program of a Go package, `path/of/package@version`; builds it where it is not in the cache."""
    program = _program(package)
    if not program.exists():
        need("go")
        print(f"building {package}", flush=True)
        subprocess.run(["go", "install", package], check=True, env={**os.environ, "GOBIN": str(program.parent)})
    return program


def need(*tools: str) -> None:
    """Ends the program with a sentence where a tool is not installed."""
    if wanting := [tool for tool in tools if not shutil.which(tool)]:
        names = ", ".join(f"{_TOOLS[tool]} ({tool})" for tool in wanting)
        sys.exit(f"engines: this machine has no {names}: install it, and run the same command again")


def _get_spark(folder: Path, target: Path) -> None:
    print(f"getting Spark {SPARK}", flush=True)
    pip = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--no-deps"]
    archive = folder / f"pyspark-{SPARK}.tar.gz"
    subprocess.run([*pip, "--no-binary", "pyspark", f"pyspark=={SPARK}", "-d", str(folder)], check=True)
    _check([archive])
    parts = folder / "spark.parts"
    shutil.rmtree(parts, ignore_errors=True)
    with tarfile.open(archive) as tar:
        tar.extractall(parts, filter="data")
    home, python = parts / f"pyspark-{SPARK}" / "deps", parts / f"pyspark-{SPARK}"
    for script in (home / "bin").iterdir():
        script.chmod(0o755)
    (home / "python").mkdir()
    for name in ("pyspark", "lib"):  # as in Spark's own archive
        (python / name).replace(home / "python" / name)
    shutil.rmtree(target, ignore_errors=True)
    home.replace(target)
    shutil.rmtree(parts)
    archive.unlink()


def _runner(engine: str, folder: Path) -> Path:
    """Returns Beam's runner for an engine as one jar."""
    jar = folder / f"{engine}-runner.jar"
    need("java", *(() if jar.exists() else ("mvn",)))
    if not jar.exists():
        print(f"getting Beam's runner for {engine}", flush=True)
        parts = folder / f"{engine}.parts"
        shutil.rmtree(parts, ignore_errors=True)
        maven = ["mvn", "--quiet", "--batch-mode", "--file", str(HERE / f"{engine}.xml")]
        subprocess.run([*maven, "dependency:copy-dependencies", f"-DoutputDirectory={parts}"], check=True)
        jars = sorted(parts.glob("*.jar"))
        _check(jars)
        _merge(jars, jar)
        shutil.rmtree(parts)
    return jar


def _check(paths: Iterable[Path]) -> None:
    pinned = {line[66:]: line[:64] for line in (HERE / "sha256.txt").read_text().splitlines()}
    for path in paths:
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        if pinned.get(path.name) != sha256:
            sys.exit(f"{path} has SHA-256 {sha256}, {HERE / 'sha256.txt'} says {pinned.get(path.name)}")


def _merge(jars: Iterable[Path], target: Path) -> None:
    """Writes one jar of many. Lists of services are joined, of other files that occur twice the first counts."""
    seen: set[str] = set()
    joined: dict[str, list[bytes]] = {}
    temporary = target.with_suffix(".tmp")
    with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as merged:
        merged.writestr("META-INF/MANIFEST.MF", "Manifest-Version: 1.0\r\n\r\n")
        for jar in jars:
            with zipfile.ZipFile(jar) as source:
                for name in source.namelist():
                    if name.startswith("META-INF/services/") or name == "reference.conf":
                        joined.setdefault(name, []).append(source.read(name))
                    elif name not in seen and not name.endswith(("/", "MANIFEST.MF", *_SIGNATURES)):
                        seen.add(name)
                        merged.writestr(name, source.read(name))
        for name, parts in joined.items():
            merged.writestr(name, b"\n".join(parts) + b"\n")
    temporary.replace(target)


if __name__ == "__main__":
    fetch()
    print(cache())
