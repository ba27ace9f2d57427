"""What a job says about dropped pages that it can't keep, since their files were done before."""

from collections.abc import Sequence

from c4pipe.clean.dropped_pages import KeepDropped, sources_without_dropped
from c4pipe.runners.events import Progress


def note_unaudited(keep: KeepDropped, sources: Sequence[str], job: str, progress: Progress) -> None:
    """Notes for how many files, already done by a job, the dropped pages were not kept."""
    if lacking := sources_without_dropped(keep, sources, job):
        progress.note(
            f"{job} was done before for {len(lacking)} of {len(sources)} files, without --keep-dropped, and is not "
            f"done again: the pages that it dropped from these are not in {keep.folder}"
        )
