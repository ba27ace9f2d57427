"""A program that has a session of Spark Connect and runs graphs in it, as a notebook does: for the test of Connect.

It is a process of its own, because PySpark's classic sessions end where a session of Connect begins.
"""

import json
import sys
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

from c4pipe.errors import C4pipeError, LostDataError
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions
from tests.helpers.flows import Fail, blocks, words


def main() -> None:
    """Prints what came of each graph, as JSON."""
    from pyspark.sql import SparkSession

    url, folder = sys.argv[1], Path(sys.argv[2])
    said: dict[str, str] = {}
    ids: list[str] = []

    class Ids(Progress):
        def runs_as(self, runner_job_id: str) -> None:
            ids.append(runner_job_id)

    def run(name: str, graph: Callable[[Flow], None], master: str | None = None, **settings: str) -> None:
        options = RunnerOptions(runner="spark", spark_master=master, spark_conf=settings)
        try:
            run_job(graph, options, 2, Ids())
            said[name] = ""
        except C4pipeError as error:
            said[name] = f"{type(error).__name__}: {error}"

    def fail(error: BaseException | None) -> Callable[[Flow], None]:
        def graph(flow: Flow) -> None:
            flow.map("Fail", flow.create("One", [1]), Fail(error))

        return graph

    session = SparkSession.builder.remote(url).getOrCreate()
    for name in ("words", "blocks"):
        (folder / name).mkdir()
    run("words", words(["a b a", "", "b c", "dd a"], folder / "words"))
    run("blocks", blocks(folder / "blocks"))
    run("system", fail(OSError(28, "No space left on device", "/c")))
    run("lost", fail(LostDataError("the shuffle lost 3 rows")))
    run("killed", fail(None))
    with patch.object(sys, "version_info", (3, 8, 0, "final", 0)):  # PySpark sends it, and the worker compares
        run("python", fail(None))
    run("classic", lambda flow: None, "local[2]")
    run("another server", lambda flow: None, "sc://other:15002")
    run("this server", lambda flow: None, url)
    run("of the server", lambda flow: None, **{"spark.executor.memory": "2g"})
    run("of the session", lambda flow: None, **{"spark.sql.shuffle.partitions": "3"})
    said["setting"] = session.conf.get("spark.sql.shuffle.partitions") or ""
    said["tags"] = " ".join(session.getTags())
    said["ids"] = " ".join({*ids} - {session.session_id})
    print(json.dumps(said))


if __name__ == "__main__":
    main()
