"""How many workers a machine allows: affinity, containers, Slurm, memory."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from c4pipe.runners.machine_limits import WORKER_BYTES, allowed_cores, allowed_workers
from tests.helpers.machine import Need, lack

MIB = 1 << 20


def write(root: Path, files: Mapping[str, str]) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    return root


@pytest.fixture(autouse=True)
def large_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 36)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(36)), raising=False)
    monkeypatch.setattr(os, "sysconf", lambda name: {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 64 << 18}[name])


CGROUPS = {
    "version 2": {"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/cpu.max": "200000 100000\n"},
    "version 2, of a folder above": {
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/b/cpu.max": "max 100000\n",
        "sys/fs/cgroup/a/cpu.max": "150000 100000\n",
    },
    "version 2, in a container that does not see the host's path": {
        "proc/self/cgroup": "0::/kubepods/pod1\n",
        "sys/fs/cgroup/cpu.max": "200000 100000\n",
    },
    "version 1": {
        "proc/self/cgroup": "5:cpuset:/\n4:cpu,cpuacct:/docker/1\n0::/\n",
        "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us": "200000\n",
        "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000\n",
    },
    "version 1, by the short name of the controller": {
        "proc/self/cgroup": "4:cpu,cpuacct:/\n",
        "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "110000\n",
        "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
    },
}


@pytest.mark.parametrize("files", CGROUPS.values(), ids=CGROUPS)
def test_a_quota_of_a_cgroup_limits_the_cores(files: Mapping[str, str], tmp_path: Path) -> None:
    limit = allowed_cores(write(tmp_path, files), {})
    assert limit.most == 2
    assert "CPU quota of the cgroup" in limit.reason


def test_half_a_core_is_one_worker(tmp_path: Path) -> None:
    root = write(tmp_path, {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "50000 100000\n"})
    assert allowed_cores(root, {}) == (1, "the CPU quota of the cgroup is 0.5 cores")


@pytest.mark.parametrize(
    "files",
    [
        {},
        {"proc/self/cgroup": "0::/\n"},
        {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/cpu.max": "max 100000\n", "sys/fs/cgroup/memory.max": "max\n"},
        {
            "proc/self/cgroup": "2:cpu:/\n3:memory:/\n",
            "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "-1\n",
            "sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
            "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
        },
    ],
)
def test_without_a_limit_each_core_has_a_worker(files: Mapping[str, str], tmp_path: Path) -> None:
    assert allowed_workers(write(tmp_path, files), {}) == (36, "this machine has 36 cores")


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({"SLURM_CPUS_PER_TASK": "1", "SLURM_CPUS_ON_NODE": "36"}, 1),
        ({"SLURM_CPUS_ON_NODE": "4"}, 4),
        ({"SLURM_CPUS_PER_TASK": "8", "SLURM_MEM_PER_NODE": "2048"}, 3),
        ({"SLURM_CPUS_PER_TASK": "8", "SLURM_MEM_PER_CPU": "256"}, 3),
        ({"SLURM_CPUS_PER_TASK": "none"}, 36),
    ],
)
def test_slurm_limits_workers(environ: Mapping[str, str], count: int, tmp_path: Path) -> None:
    assert allowed_workers(tmp_path, environ).most == count


def test_memory_of_a_cgroup_limits_workers(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/a\n", "sys/fs/cgroup/a/memory.max": f"{4 * WORKER_BYTES}\n"}
    limit = allowed_workers(write(tmp_path, files), {})
    assert limit == (3, "the memory limit of the cgroup is 2.15 GB, 537 MB for each process")
    assert allowed_cores(tmp_path, {}).most == 36


def test_little_memory_is_still_one_worker(tmp_path: Path) -> None:
    files = {"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": f"{100 * MIB}\n"}
    assert allowed_workers(write(tmp_path, files), {}).most == 1


def show(*before: str) -> str:
    code = "from c4pipe.runners.machine_limits import allowed_workers as a; print(*a(environ={}))"
    command = [*before, sys.executable, "-c", code]
    return subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout


@pytest.mark.skipif(sys.platform != "linux", reason="taskset is a command of Linux")
def test_the_affinity_of_a_real_process() -> None:
    core = min(os.sched_getaffinity(os.getpid()))
    assert show("taskset", "-c", str(core)).startswith("1 ")


@pytest.mark.skipif(sys.platform != "linux", reason="taskset is a command of Linux")
def test_the_log_says_which_limit_decides(tmp_path: Path) -> None:
    core = str(min(os.sched_getaffinity(os.getpid())))
    crawl = Path(__file__).resolve().parents[2] / "samples" / "crawl"
    command = [
        sys.executable,
        "-m",
        "c4pipe",
        "clean",
        str(crawl),
        "--recipe",
        "noblocklist",
        "--work",
        str(tmp_path / "work"),
    ]
    command += ["--log", str(tmp_path / "log"), "--quiet"]
    subprocess.run(["taskset", "-c", core, *command], check=True, timeout=120)
    assert "runner: this machine, 1 process (the CPU affinity of this process" in (tmp_path / "log").read_text()


@pytest.fixture
def real_cgroup() -> Iterator[str]:
    """The path of a real cgroup with a quota of half a core, as a command that enters it."""
    for folder, quota, period in (
        ("/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"),
        ("/sys/fs/cgroup", "cpu.max", "50000 100000"),
    ):
        group = Path(folder) / f"c4pipe-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError:
            continue
        try:
            (group / quota).write_text(period)
        except OSError:
            group.rmdir()
            continue
        yield str(group / "cgroup.procs")
        group.rmdir()
        return
    lack(Need(bool, "cgroup that this user can limit", "run the command as root, outside of a container"))


def test_the_quota_of_a_real_cgroup(real_cgroup: str) -> None:
    shown = show("sh", "-c", f'echo $$ > {real_cgroup}; exec "$@"', "sh")
    assert shown == "1 the CPU quota of the cgroup is 0.5 cores\n"
