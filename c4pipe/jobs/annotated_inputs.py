"""Checks the folder into which all pages are annotated."""

from c4pipe.errors import UsageError
from c4pipe.io.paths import StoragePath, storage_path
from c4pipe.jobs.options import CleanOptions


def check_annotate_folder(options: CleanOptions, output: StoragePath | None = None) -> None:
    """Raises UsageError where annotated files are to be written into a folder that has other files.

    Args:
        options: the options of job 1.
        output: the folder of the corpus, which takes no other folders; None without one.
    """
    if options.annotate is None:
        return
    folder = storage_path(options.annotate.folder).absolute()
    for what, other in {"--work": options.work, "--output": output}.items():
        if other is not None and other.absolute() == folder:
            raise UsageError(f"--annotate {options.annotate.folder} is also {what}: give a folder of its own")
    if output is not None and str(folder).startswith(f"{output.absolute()}/"):
        raise UsageError(
            f"--annotate {options.annotate.folder} is inside the folder of the corpus: give a folder outside of it"
        )
