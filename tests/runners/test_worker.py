"""What c4pipe's own processes do at their start."""

import platform
import subprocess
import sys
from types import SimpleNamespace

import pytest

from c4pipe.runners import worker

SCRIPT = """
import sys
from c4pipe.runners.worker import lighten

MB = 1 << 20

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096

if sys.argv[1] == "light":
    lighten()
large = bytearray(30 * MB)
del large  # from now on, glibc by itself keeps smaller blocks
blocks = [bytearray(b"x" * (8 * MB)) for _ in range(12)]
most = resident()
del blocks[::2]
print((most - resident()) // MB)
"""


COMPUTE = """
import sys
from c4pipe.runners.worker import lighten

lighten()
import numpy
import pyarrow as pa
import pyarrow.compute as pc

assert pc.is_in(pa.array([1, 2]), value_set=pa.array([2])).to_pylist() == [False, True]
assert pc.count(pa.array([1, None]), "only_null").as_py() == 1
print(pc.count.__doc__.split("\\n")[0], "pydoc" in sys.modules, numpy.empty.__doc__)
"""


def test_arrow_and_numpy_read_no_docstrings() -> None:
    """Arrow's functions take their options as ever, with docstrings that do not list them."""
    run = subprocess.run([sys.executable, "-c", COMPUTE], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("Count the number of null / non-null values. False None\n", "")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another C library gives memory back in its own way")
def test_large_blocks_go_back_to_the_system() -> None:
    returned = [
        int(subprocess.run([sys.executable, "-c", SCRIPT, kind], capture_output=True, check=True).stdout)
        for kind in ("plain", "light")
    ]
    assert returned[0] < 20
    assert returned[1] >= 40


def test_memory_is_released_once_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=0.0)
    clock.monotonic = lambda: clock.now
    released: list[float] = []
    pool = SimpleNamespace(release_unused=lambda: released.append(clock.now))
    monkeypatch.setitem(sys.modules, "pyarrow", SimpleNamespace(default_memory_pool=lambda: pool))
    monkeypatch.setattr(worker, "time", clock)
    monkeypatch.setattr(worker, "_next_release", 10.0)
    for clock.now in (9.9, 10.0, 10.5, 10.9, 11.0, 11.1):
        worker.release_memory()
    assert released == [10.0, 11.0]
