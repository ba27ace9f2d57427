"""A Slurm on this machine: a controller and two nodes that share no /tmp, in a folder, as processes of the caller.

Root is needed, as each node has its own /tmp by a mount. The packages are those of Debian or Ubuntu: scripts/slurm.
"""

import contextlib
import os
import secrets
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tests.helpers.loopback import free_port

ROOT = Path(__file__).resolve().parents[2]
SYSTEM_PATH = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")
NODES = ("a", "b")
CORES = 4  # of each node, whatever this machine has

CONFIGURATION = """\
ClusterName=c4pipe
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock,cred_expire=5
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd-%n.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerType=sched/builtin
SchedulerParameters=batch_sched_delay=0,sched_interval=2
SlurmdParameters=config_overrides
ReturnToService=2
KillWait=2
MaxArraySize={largest_array}
NodeName=a NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[1]} CPUs={cores} RealMemory=64000
NodeName=b NodeAddr=127.0.0.1 NodeHostname={host} Port={ports[2]} CPUs={cores} RealMemory=64000
PartitionName=cpu Nodes=a,b Default=YES MaxTime=INFINITE State=UP
"""

# A node's own /tmp. Where the clone or its environment is below /tmp, each is mounted into the new /tmp again.
OWN_TMP = """\
set -eu
hold=$1 tmp=$2 && shift 2
number=0
for path in $KEPT; do
    number=$((number + 1))
    mkdir -p "$hold/$number" && mount --bind "$path" "$hold/$number"
done
mount --bind "$tmp" /tmp
number=0
for path in $KEPT; do
    number=$((number + 1))
    mkdir -p "$path" && mount --bind "$hold/$number" "$path"
done
exec "$@"
"""


def missing_programs() -> list[str]:
    """Returns the programs of Slurm that this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=SYSTEM_PATH) is None]


class Cluster(NamedTuple):
    """A Slurm that runs.

    Attributes:
        shared: a folder that all nodes see.
        environment: the environment variables of its clients.
    """

    shared: Path
    environment: dict[str, str]

    def run(self, *command: str, seconds: float = 60) -> "subprocess.CompletedProcess[str]":
        """Runs a command in the shared folder."""
        return subprocess.run(
            command, cwd=self.shared, env=self.environment, capture_output=True, text=True, timeout=seconds, check=False
        )

    def output(self, *command: str) -> str:
        """What a command prints that must succeed."""
        ended = self.run(*command)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    def queue(self) -> list[tuple[str, str]]:
        """The queued and running tasks: id and state. Slurm shows an ended task as completing for a moment more."""
        states = "--states=PENDING,CONFIGURING,RUNNING,SUSPENDED"
        lines = self.output("squeue", states, "--array", "--noheader", "--format=%i %T").splitlines()
        return [(line.split()[0], line.split()[1]) for line in lines]

    def wait(self, seconds: float = 60) -> None:
        """Waits until nothing is queued or runs."""
        until = time.monotonic() + seconds
        while queue := self.queue():
            assert time.monotonic() < until, f"still in the queue: {queue}"
            time.sleep(0.2)


@contextlib.contextmanager
def slurm_cluster(largest_array: int = 1001, shared: Path | None = None) -> Iterator[Cluster]:
    """Starts a Slurm of two nodes, and ends all of its processes.

    Args:
        largest_array: how many tasks an array may have.
        shared: a folder that all nodes see, also where it is below /tmp; None for a new one.
    """
    folder = Path(tempfile.mkdtemp(prefix="c4pipe-slurm-", dir="/var/tmp"))
    processes = list[subprocess.Popen[bytes]]()
    try:
        yield from _cluster(folder, largest_array, shared or folder / "shared", processes)
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in reversed(processes):
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(folder)


def _cluster(
    folder: Path, largest_array: int, shared: Path, processes: "list[subprocess.Popen[bytes]]"
) -> Iterator[Cluster]:
    folder.chmod(0o755)
    for name in ("state", "shared", *NODES, *(f"{node}-{kind}" for node in NODES for kind in ("tmp", "hold"))):
        (folder / name).mkdir()
    (folder / "munge.key").write_bytes(secrets.token_bytes(128))
    (folder / "munge.key").chmod(0o600)
    ports = [free_port() for _ in range(1 + len(NODES))]
    text = CONFIGURATION.format(
        host=socket.gethostname(), ports=ports, folder=folder, cores=CORES, largest_array=largest_array
    )
    (folder / "slurm.conf").write_text(text)
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "SBATCH"))}
    environment |= {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": SYSTEM_PATH, "PYTHONPATH": str(ROOT)}
    environment["KEPT"] = shlex.join({str(path) for path in (ROOT, shared) if path.is_relative_to("/tmp")})

    def start(*command: str) -> None:
        with (folder / f"{len(processes)}.log").open("wb") as log:
            processes.append(
                subprocess.Popen(command, env=environment, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
            )

    files = {"key-file": "munge.key", "socket": "munge.sock", "pid-file": "munge.pid", "seed-file": "munge.seed"}
    start("munged", "--foreground", "--force", *(f"--{name}={folder / file}" for name, file in files.items()))
    start("slurmctld", "-D", "-c")
    for node in NODES:
        tmp = ("unshare", "--mount", "--propagation", "private", "sh", "-c", OWN_TMP, "sh")
        start(*tmp, str(folder / f"{node}-hold"), str(folder / f"{node}-tmp"), "slurmd", "-D", "-N", node)
    cluster = Cluster(shared, environment)
    until = time.monotonic() + 30
    while cluster.run("sinfo", "--noheader", "--format=%T").stdout.split() != ["idle"]:
        if time.monotonic() > until:
            raise RuntimeError("\n".join(path.read_text(errors="replace")[-2000:] for path in folder.glob("*.log")))
        time.sleep(0.2)
    yield cluster
    cluster.run("scancel", "--user=root")
    with contextlib.suppress(AssertionError):
        cluster.wait(15)
