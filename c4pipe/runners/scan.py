"""The one way to scan all files of an input: workers make a part of each file, and the command joins the parts.

Parts wait on disk. A command that was stopped goes on from the complete parts.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, Generic, TypeVar, cast

from c4pipe.errors import C4pipeError, DamagedFileError, LostDataError
from c4pipe.io.atomic import clear_abandoned, make_folder, write_bytes
from c4pipe.io.json_files import decode_checked_json, parse_json, read_intact_json, write_checked_json
from c4pipe.io.paths import StoragePath, list_names, read_file, remove_tree, storage_path
from c4pipe.io.words import explain_errors
from c4pipe.runners.events import Progress
from c4pipe.runners.flow import Flow, Step
from c4pipe.runners.runner import run_job
from c4pipe.runners.runner_options import RunnerOptions

IDENTITY = "of.json"
"""The file in a folder of parts that describes the request: parts of another request can't be used."""

Item = TypeVar("Item")
Content = TypeVar("Content")


def prepare_folder(folder: StoragePath, identity: Mapping[str, Any]) -> None:
    """Makes a folder of parts ready: removes the parts of another request, and the incomplete files of a killed run.

    The folder above it is locked (`lock.only_run`): no other run uses it, and no link stands for it.

    Args:
        folder: the folder of the parts.
        identity: the inputs and options of the request, as JSON values.
    """
    wanted = parse_json(json.dumps(identity))
    if read_intact_json(folder / IDENTITY, dict) != wanted:
        remove_tree(folder)
        make_folder(folder)
        write_checked_json(folder / IDENTITY, wanted)
    clear_abandoned(folder)


class ScanStep(Step, Generic[Item, Content]):
    """(item to scan, path of its part) -> nothing. The part appears complete or not at all."""

    advice = ""
    """The end of the error for a part that can't be written: advice to the user."""

    def scan(self, item: Item) -> bytes:
        """Returns the bytes of the part of an item, in a worker."""
        raise NotImplementedError

    def read(self, part: StoragePath, item: Item) -> Content:
        """Returns the content of the part of an item, in the command's process; by default, an `encode_checked_json`.

        Raises DamagedFileError if the part differs from the bytes that `scan` returned for this item.
        """
        return cast(Content, decode_checked_json(read_file(part), part, dict))

    def process(self, element: tuple[Item, str]) -> Sequence[tuple[str, Any]]:
        """Writes a part. Raises C4pipeError if that is not possible."""
        item, target = element
        data = self.scan(item)
        with explain_errors(f"{target} can't be written", self.advice, C4pipeError):
            write_bytes(storage_path(target), data)
        return ()


@dataclass(frozen=True)
class Scan(Generic[Item, Content]):
    """A scan of all files of an input.

    Attributes:
        name: the name of the step in the runner.
        step: makes the parts and reads them.
        folder: the folder of the parts.
        items: the files to scan, by the name of the part, in the order of the join.
    """

    name: str
    step: ScanStep[Item, Content]
    folder: StoragePath
    items: Mapping[str, Item]

    def written(self) -> int:
        """Returns how many parts are written."""
        return len(list_names(self.folder) & self.items.keys())

    def run(self, runner: RunnerOptions, progress: Progress, job: str = "") -> None:
        """Writes the parts that are missing or damaged.

        Args:
            runner: the runner of the scan.
            progress: shows how many parts are written.
            job: the name of the job in progress events; "" if the caller shows the progress.

        Raises C4pipeError if a part can't be made, LostDataError if the runner ended without all parts.
        """
        tasks = [(item, str(self.folder / name)) for name, item in self._missing().items()]

        def graph(flow: Flow) -> None:
            flow.map(self.name, flow.create("Files", tasks), self.step)

        if tasks:
            watched = progress.wait(job, self.folder, len(self.items), self.written) if job else nullcontext()
            with watched:
                run_job(graph, runner, len(tasks), progress)
        if (written := self.written()) < len(self.items):
            raise LostDataError(
                f"the runner ended with {written:,} of {len(self.items):,} parts: run the command again; all workers "
                f"need the folder {self.folder}"
            )

    def parts(self) -> Iterator[Content]:
        """Yields the content of all parts, in order. Raises DamagedFileError if a part was changed since."""
        return (self.step.read(self.folder / name, item) for name, item in self.items.items())

    def _missing(self) -> dict[str, Item]:
        """Returns the items without a part, by the name of the part. Removes damaged parts: progress counts files."""
        present = list_names(self.folder)
        missing = {}
        for name, item in self.items.items():
            try:
                if name in present:
                    self.step.read(self.folder / name, item)
                    continue
            except DamagedFileError:
                (self.folder / name).unlink(missing_ok=True)
            missing[name] = item
        return missing
