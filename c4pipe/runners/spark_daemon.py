"""The parent of the Python workers of an executor of Spark, if the command c4pipe started Spark: they start faster.

Spark's archive of PySpark has no compiled modules: PySpark's own parent compiles them at each start, for half a second.
Workers are forks of this process, which has imported their modules, without pandas (see `lighten`).
"""

import runpy
import sys
from importlib.metadata import distributions
from itertools import product
from pathlib import Path


def prefer_installed() -> None:
    """Moves Spark's archives to the end of the import path if the installed PySpark has their version."""
    archives = [path for path in sys.path if Path(path).name.startswith(("pyspark.zip", "py4j-", "spark-core"))]
    both = product(archives, distributions(name="pyspark"))
    if any(path.endswith(f"-{installed.version}.jar") for path, installed in both):
        sys.path.sort(key=archives.__contains__)


if __name__ == "__main__":
    prefer_installed()
    for module in ("c4pipe.jobs.worker_imports", "pyspark.daemon"):
        runpy.run_module(module, run_name="__main__")
