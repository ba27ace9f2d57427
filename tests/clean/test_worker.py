"""What a process imports that only cleans: a worker of a runner."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SCRIPT = """
import sys
from pathlib import Path
from c4pipe.clean.dropped_pages import KeepDropped
from c4pipe.clean.steps import CleanWetFile
from c4pipe.io.downloads import NetworkOptions
from c4pipe.recipes.choose import gather_lists
from c4pipe.recipes.presets import C4

samples, work = Path(sys.argv[1]), Path(sys.argv[2])
lists = gather_lists(C4, samples / "lists", ())
lists.save(work / "lists")
dropped = KeepDropped(1.0, str(work / "dropped"))
step = CleanWetFile(C4.to_json(), str(work / "lists"), lists.digests, NetworkOptions(), dropped)
step.setup()
for path in sorted((samples / "crawl").iterdir()):
    list(step.process(((str(path), str(work / f"{path.name}.parquet")),)))
print("\\n".join(sys.modules))
"""

FORBIDDEN = ("rich", "apache_beam", "c4pipe.cli", "c4pipe.inspect", "c4pipe.report", "c4pipe.jobs", "c4pipe.dedup")


def test_a_worker_imports_no_views(tmp_path: Path) -> None:
    """It cleans files, and writes examples and dropped pages, without Rich, explanation views and reports."""
    command = [sys.executable, "-c", SCRIPT, str(ROOT / "samples"), str(tmp_path)]
    modules = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    written = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    for kind in ("wet.gz.parquet", "wet.gz.examples.json", "wet.gz.clean.parquet"):
        assert sum(name.endswith(kind) for name in written) == 3, kind
    assert "c4pipe.clean.evaluate" in modules
    assert [name for name in modules if any(name == each or name.startswith(f"{each}.") for each in FORBIDDEN)] == []
