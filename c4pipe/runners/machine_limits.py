"""How many worker processes this machine allows: its cores, limits of containers and batch systems, its memory.

Sources: https://docs.kernel.org/admin-guide/cgroup-v2.html (`cpu.max`, `memory.max`),
https://docs.kernel.org/scheduler/sched-bwc.html and https://docs.kernel.org/admin-guide/cgroup-v1/memory.html (version
1),
https://slurm.schedmd.com/sbatch.html and https://slurm.schedmd.com/srun.html (the variables of Slurm).
"""

import contextlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from c4pipe.io.words import format_size

WORKER_BYTES = 512 << 20
"""Memory for which one worker is started, and as much for the main process. Measured: 90 to 250 MB a process, at most
(docs/scale.md)."""

PROCESS_BYTES = 1 << 18
"""Stored bytes of inputs for which a process is started; for fewer, to start it takes longer than it saves."""

_NO_LIMIT = 1 << 60  # bytes: version 1 of cgroups writes a number near 2^63 for no limit


class WorkerLimit(NamedTuple):
    """The smallest of several limits.

    Attributes:
        most: how many cores or processes it allows, at least 1.
        reason: the limit in words.
    """

    most: int
    reason: str


def allowed_cores(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> WorkerLimit:
    """Returns the number of cores that this process may use.

    Args:
        root: the folder of `/proc` and `/sys`.
        environ: the environment, which has the variables of Slurm.
    """
    return min(_core_limits(root, environ), key=lambda limit: limit.most)


def allowed_workers(root: Path = Path("/"), environ: Mapping[str, str] = os.environ) -> WorkerLimit:
    """Returns how many worker processes this machine can have: one for each allowed core, as far as memory is enough.

    The arguments are as in `allowed_cores`.
    """
    each = format_size(WORKER_BYTES)
    limits = [
        WorkerLimit(max(1, size // WORKER_BYTES - 1), f"{what} is {format_size(size)}, {each} for each process")
        for size, what in _memory_limits(root, environ)
    ]
    return min([allowed_cores(root, environ), *limits], key=lambda limit: limit.most)


def _core_limits(root: Path, environ: Mapping[str, str]) -> Iterator[WorkerLimit]:
    machine = os.cpu_count() or 1
    yield WorkerLimit(machine, f"this machine has {machine} core{'s' * (machine > 1)}")
    if hasattr(os, "sched_getaffinity"):
        yield WorkerLimit(len(os.sched_getaffinity(0)), f"the CPU affinity of this process, of {machine} cores")
    for folder in _cgroups(root, "cpu"):
        of_version_1 = (*_numbers(folder / "cpu.cfs_quota_us"), *_numbers(folder / "cpu.cfs_period_us"))
        quota, period = _numbers(folder / "cpu.max") or of_version_1 or (-1, 1)
        if quota > 0 and period > 0:
            yield WorkerLimit(math.ceil(quota / period), f"the CPU quota of the cgroup is {quota / period:g} cores")
    for name in ("SLURM_CPUS_PER_TASK", "SLURM_CPUS_ON_NODE"):
        if count := _number(environ.get(name, "")):
            yield WorkerLimit(count, f"{name} is {count}")


def _memory_limits(root: Path, environ: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Yields limits of memory in bytes, and what each of them is."""
    with contextlib.suppress(ValueError, OSError, AttributeError):  # not on each system
        yield os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"), "the memory of this machine"
    for folder in _cgroups(root, "memory"):
        for size in (*_numbers(folder / "memory.max"), *_numbers(folder / "memory.limit_in_bytes")):
            if 0 < size < _NO_LIMIT:
                yield size, "the memory limit of the cgroup"
    if size := _number(environ.get("SLURM_MEM_PER_NODE", "")):
        yield size << 20, "SLURM_MEM_PER_NODE"
    each, cores = (_number(environ.get(f"SLURM_{name}", "")) for name in ("MEM_PER_CPU", "CPUS_PER_TASK"))
    if each and cores:
        yield (each * cores) << 20, "SLURM_MEM_PER_CPU"


def _cgroups(root: Path, controller: str) -> Iterator[Path]:
    """Yields the folders of this process's cgroup and of its parents, of both versions.

    In a container, `/proc/self/cgroup` can name the path of the host: then only the topmost folder exists.
    """
    with contextlib.suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            number, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if number != "0" and controller not in controllers.split(","):
                continue
            mounts = ("", "unified") if number == "0" else (controllers, controller)
            for mount in dict.fromkeys(mounts):
                folder = Path(path.lstrip("/"))
                yield from (root / "sys/fs/cgroup" / mount / above for above in (folder, *folder.parents))


def _numbers(file: Path) -> tuple[int, ...]:
    """Returns the whole numbers in a file of the kernel; empty if the file is missing or has other text."""
    try:
        return tuple(map(int, file.read_text().split()))
    except (OSError, ValueError):
        return ()


def _number(text: str) -> int:
    """Returns a whole number above 0, or 0 for other text."""
    return int(text) if re.fullmatch(r"\d{1,9}", text) else 0
