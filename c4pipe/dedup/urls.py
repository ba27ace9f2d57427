"""The newest capture of each URL: the steps of job 2 that find the others."""

from collections.abc import Iterator

import numpy as np

from c4pipe.clean.work_file import url_rows
from c4pipe.dedup.shuffle import STALE_CAPTURES, URLS
from c4pipe.dedup.step import DedupStep, Made, Received
from c4pipe.filters.duplicates import find_stale_captures
from c4pipe.io.paths import storage_path


class ReadUrls(DedupStep):
    """The files of a group -> its captures, by the bucket of their URL."""

    sends = (URLS,)
    tallied = ("urls",)

    def run(self, received: Received) -> Iterator[Made]:
        """Reads the URL rows of a group, and sends them to their buckets."""
        read = []
        for file, path in received.files:
            read.append(url_rows(storage_path(path), file))
            self._tally("urls", len(read[-1]))
        rows = np.concatenate(read)
        yield URLS.to_buckets(rows[np.argsort(rows["hash"], kind="stable")], self._plan.url_bits)


class FindStaleCaptures(DedupStep):
    """The captures of a bucket -> those that are not the newest of their URL, by the group of their file."""

    sends = (STALE_CAPTURES,)

    def run(self, received: Received) -> Iterator[Made]:
        """Finds the stale captures of a bucket."""
        _, stale = find_stale_captures(received.rows(URLS))
        yield STALE_CAPTURES.to_groups(stale, stale["file"] // self._plan.group)
