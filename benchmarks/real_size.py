"""Builds of files of real size: CPU, time, memory, disk, bytes read and written, and what `c4pipe plan` said before.

    python benchmarks/make_crawl.py CRAWL --files 100 --pages 40000
    python benchmarks/real_size.py CRAWL [--recipes c4,tfds,fineweb] [--kill c4] [--workers 2] [--lists DIR]
        [--folder DIR] [--draw]

Each recipe is cleaned and deduplicated, one after the other. Once a second, the script looks at the memory of all
processes and at the files of the run. `--kill` builds a recipe again and kills all processes in the middle of each job;
the same command then goes on, and the shards must be the same. `--draw` writes docs/real_size.svg, and the table of
docs/scale.md with what is before it.
"""

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from measuring import DATA, ENVIRON, adopt_orphans, cpu_of_children, folder_bytes, machine, tree_bytes, wait_for_all

DOCS = Path(__file__).parents[1] / "docs"
PICTURE, PAGE = DOCS / "real_size.svg", DOCS / "scale.md"
COLORS = ("#1d4ed8", "#b45309", "#047857")

PLAN = """
import json, sys
from c4pipe.jobs.clean_plan import plan_clean
from c4pipe.jobs.options import PlanOptions
from c4pipe.jobs.plan import make_plan
from c4pipe.runners.events import Progress
options, progress = PlanOptions(**json.loads(sys.argv[1])), Progress(None)
plan = make_plan(plan_clean(options.clean, progress), ["parquet"], options.measure, options.cores, progress).estimate
print(json.dumps({
    "clean": plan.cost.clean_seconds * plan.scale, "dedup": plan.cost.dedup_seconds * plan.scale,
    "disk": plan.disk_bytes,
}))
"""
"""What `c4pipe plan` prints, as JSON: CPU seconds, pages and bytes."""


class Sample(NamedTuple):
    """A moment of a run: seconds since its start, bytes of memory of all processes, bytes on disk."""

    seconds: float
    memory: int
    disk: int


class Job(NamedTuple):
    """What a job took: seconds, CPU seconds, bytes that all processes read and wrote, and its samples."""

    wall: float
    cpu: float
    read: int
    written: int
    samples: list[Sample]


def run_job(command: Sequence[str], folder: Path, kill_after: float = 0) -> Job:
    """Runs a command to its end, or kills all of its processes after some seconds."""
    cpu, (read, written), started = cpu_of_children(), bytes_moved(), time.monotonic()
    samples = []
    process = subprocess.Popen(command, env=ENVIRON, start_new_session=True)
    while process.poll() is None:
        seconds = time.monotonic() - started
        samples.append(Sample(seconds, tree_bytes(process.pid), folder_bytes(folder)))
        if kill_after and seconds > kill_after:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            break
        time.sleep(1.0)
    else:
        if process.returncode:
            sys.exit(f"{' '.join(command)} ended with status {process.returncode}")
        if kill_after:
            sys.exit("the job ended before it was killed")
    wall = time.monotonic() - started
    wait_for_all()
    samples.append(Sample(wall, 0, folder_bytes(folder)))
    after = bytes_moved()
    return Job(wall, cpu_of_children() - cpu, after[0] - read, after[1] - written, samples)


def bytes_moved() -> tuple[int, int]:
    """Returns the bytes that this process and its ended children have read and written by system calls."""
    fields = dict(line.split(": ") for line in Path("/proc/self/io").read_text().splitlines())
    return int(fields["rchar"]), int(fields["wchar"])


def plan(crawl: Path, recipe: str, lists: Path, workers: int) -> dict[str, float]:
    """Returns what `c4pipe plan` says of a build."""
    options = {"inputs": [str(crawl)], "recipe": recipe, "lists": str(lists), "cores": workers}
    command = [sys.executable, "-c", PLAN, json.dumps(options)]
    done = subprocess.run(command, env=ENVIRON, stdout=subprocess.PIPE, check=True)
    return dict[str, float](json.loads(done.stdout))


def build(
    crawl: Path, recipe: str, folder: Path, lists: Path, workers: int, kill: Sequence[Job] = ()
) -> tuple[list[Job], Any]:
    """Builds a corpus, and returns what its jobs took, and its manifest.

    Each job is killed after half the time that the same job took in `kill`, and started again.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    end = ["--workers", str(workers), "--quiet"]
    both = (
        ["clean", str(crawl), "--work", str(folder / "work"), "--recipe", recipe, "--lists", str(lists), *end],
        ["dedup", str(folder / "work"), "--output", str(folder / "corpus"), *end],
    )
    jobs = []
    for number, arguments in enumerate(both):
        command = [sys.executable, "-m", "c4pipe", *arguments]
        if kill:
            jobs.append(run_job(command, folder, kill[number].wall / 2))
        jobs.append(run_job(command, folder))
    return jobs, json.loads((folder / "corpus" / "manifest.json").read_bytes())


def say(recipe: str, jobs: list[Job], said: dict[str, float], manifest: Any) -> None:
    """Prints what a build took beside what the plan said."""
    counts = manifest["counts"]
    print(
        f"{recipe}: {counts['pages.read']:,} pages, {counts['bytes.read']:,} bytes of text, "
        f"{counts['pages.kept']:,} kept"
    )
    for name, job in zip(("clean", "dedup"), jobs, strict=True):
        memory = max(each.memory for each in job.samples)
        print(
            f"  {name}: {job.wall:,.0f} s, {job.cpu:,.0f} s of CPU (planned {said[name]:,.0f}, "
            f"{job.cpu / said[name] - 1:+.0%}), memory {memory / 1e6:,.0f} MB, read {job.read / 1e9:,.2f} GB, "
            f"written {job.written / 1e9:,.2f} GB"
        )
    cpu, planned = sum(job.cpu for job in jobs), said["clean"] + said["dedup"]
    disk = max(each.disk for job in jobs for each in job.samples)
    print(
        f"  both: {cpu:,.0f} s of CPU (planned {planned:,.0f}, {cpu / planned - 1:+.0%}), "
        f"{cpu / 3600 / (counts['bytes.read'] / 1e12):.2f} CPU-hours a TB of text, disk {disk / 1e9:,.2f} GB "
        f"(planned {said['disk'] / 1e9:,.2f} at most)",
        flush=True,
    )


def column(jobs: Sequence[Job], counts: dict[str, int]) -> dict[str, str]:
    """Returns the column of a recipe in the table of docs/scale.md, by the names of its rows."""
    cells = {"pages in the corpus": f"{counts['pages.kept']:,}"}
    for name, job in zip(("clean", "dedup"), jobs, strict=True):
        cells |= {f"{name}, seconds": f"{job.wall:,.0f}", f"{name}, CPU seconds": f"{job.cpu:,.0f}"}
        cells[f"{name}, memory of all processes"] = f"{max(each.memory for each in job.samples) / 1e6:,.0f} MB"
        read, written = (f"{size / 1e9:,.2f}" for size in (job.read, job.written))
        if name == "clean":
            cells["clean, written"] = f"{written} GB"
        else:
            cells["dedup, read and written"] = f"{read} and {written} GB"
    cells["disk at once"] = f"{max(each.disk for job in jobs for each in job.samples) / 1e9:,.2f} GB"
    hours = sum(job.cpu for job in jobs) / 3600 / counts["bytes.read"] * 1e12
    return cells | {"**both, CPU-hours a TB of text**": f"**{hours:.1f}**"}


def made_table(made: dict[str, tuple[list[Job], dict[str, int]]], crawl: Path, workers: int, where: str) -> str:
    """Returns the beginning of the section of docs/scale.md: what was built on which machine, and the table."""
    files, stored = len([*crawl.glob("*.wet.gz")]), folder_bytes(crawl)
    (_, counts), *_ = made.values()
    columns = [column(*each) for each in made.values()]
    return "\n".join(
        [
            f"`python benchmarks/real_size.py` builds {files:,} WET files of {counts['pages.read'] // files:,} pages "
            f"({counts['bytes.read'] / 1e9:.1f} GB of text, {stored / 1e9:.1f} GB as stored) with {workers} workers:",
            f"{where}.",
            "",
            f"| | {' | '.join(f'`{recipe}`' for recipe in made)} |",
            "|---" + "|--:" * len(made) + "|",
            *(f"| {' | '.join([name, *(each[name] for each in columns)])} |" for name in columns[0]),
        ]
    )


def write_table(table: str, page: Path = PAGE) -> None:
    """Puts the table and what is before it into the section of docs/scale.md."""
    text = page.read_text(encoding="utf-8")
    whole = re.compile(r"(?<=^## Files of real size\n\n).*?^\| \*\*both.*?$", re.MULTILINE | re.DOTALL)
    page.write_text(whole.sub(lambda _: table, text), encoding="utf-8")


def picture(runs: dict[str, list[Job]]) -> str:
    """Returns memory and disk of all builds over time, as SVG."""
    top, width, height = 30, 330, 200
    series: dict[str, list[Sample]] = {}
    for recipe, jobs in runs.items():
        start = 0.0
        for job in jobs:
            moved = [Sample(start + each.seconds, each.memory, each.disk) for each in job.samples]
            series[recipe] = [*series.get(recipe, []), *moved]
            start += job.wall
    longest = max(samples[-1].seconds for samples in series.values())
    body = ""
    for left, title, column in ((50, "memory of all processes, GB", 1), (450, "files of the run, GB", 2)):
        most = max(each[column] for samples in series.values() for each in samples) / 1e9
        body += f'<text x="{left}" y="18">{title}</text>\n'
        for part in range(5):
            y = top + height * (1 - part / 4)
            body += f'<path d="M{left} {y:.1f}h{width}" stroke="#ccc"/>'
            body += f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{most * part / 4:.2g}</text>'
            x = left + width * part / 4
            body += (
                f'<text x="{x:.1f}" y="{top + height + 18}" text-anchor="middle">{longest / 60 * part / 4:.0f}</text>\n'
            )
        body += f'<text x="{left + width // 2}" y="{top + height + 36}" text-anchor="middle">minutes</text>\n'
        for samples, color in zip(series.values(), COLORS, strict=False):
            step = max(1, len(samples) // 300)
            points = " ".join(
                f"{left + width * each.seconds / longest:.1f},{top + height * (1 - each[column] / 1e9 / most):.1f}"
                for each in samples[::step]
            )
            body += f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="1.5"/>\n'
    for number, (recipe, color) in enumerate(zip(series, COLORS, strict=False)):
        body += f'<text x="{300 + 90 * number}" y="{top + height + 36}" fill="{color}">{recipe}</text>\n'
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 280" width="800" height="280">
<title>Memory and disk of builds of files of real size, over time</title>
<rect width="800" height="280" fill="#fff"/>
<g font-family="sans-serif" font-size="12" fill="#333">
{body}</g>
</svg>
"""


def main() -> None:
    """Plans and builds each recipe, and prints what it took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("crawl", type=Path)
    parser.add_argument("--recipes", default="c4,tfds,fineweb")
    parser.add_argument("--kill", choices=["c4", "tfds", "fineweb"], help="recipe to build again, with kills")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--lists", type=Path, default=DATA / "lists")
    parser.add_argument("--folder", type=Path, help="where to work; kept if it is given")
    parser.add_argument("--draw", action="store_true", help=f"write {PICTURE.name}, and the table of {PAGE.name}")
    options = parser.parse_args()
    adopt_orphans()
    where = machine()
    print(where, flush=True)
    folder = options.folder or Path(tempfile.mkdtemp(prefix="c4pipe-real-"))
    runs: dict[str, list[Job]] = {}
    made, shards = dict[str, tuple[list[Job], dict[str, int]]](), {}
    for recipe in options.recipes.split(","):
        said = plan(options.crawl, recipe, options.lists, options.workers)
        runs[recipe], manifest = build(options.crawl, recipe, folder / recipe, options.lists, options.workers)
        shards[recipe], made[recipe] = manifest["shards"], (runs[recipe], manifest["counts"])
        say(recipe, runs[recipe], said, manifest)
        (folder / f"{recipe}.json").write_text(json.dumps([said, runs[recipe]]))
        shutil.rmtree(folder / recipe)
    if options.draw:
        PICTURE.write_text(picture(runs), encoding="utf-8")
        write_table(made_table(made, options.crawl, options.workers, where))
    if recipe := options.kill:
        jobs, manifest = build(
            options.crawl, recipe, folder / recipe, options.lists, options.workers, kill=runs[recipe]
        )
        cpu = [sum(job.cpu for job in each) for each in (jobs, runs[recipe])]
        same = "the same shards" if manifest["shards"] == shards[recipe] else "OTHER SHARDS"
        print(f"{recipe}, killed in the middle of both jobs: {same}, {cpu[0]:,.0f} s of CPU instead of {cpu[1]:,.0f}")
        if manifest["shards"] != shards[recipe]:
            sys.exit(1)
        shutil.rmtree(folder / recipe)
    if not options.folder:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
