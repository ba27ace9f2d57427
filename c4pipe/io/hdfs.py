"""HDFS by Arrow, made to answer as Arrow's other file systems do. Hadoop 3.4 and pyarrow 25 were tried.

Needs Hadoop's client on the machine: `JAVA_HOME`, `CLASSPATH`, and `libhdfs.so` (`HADOOP_HOME` or `ARROW_LIBHDFS_DIR`).
"""

import os
from typing import Any

from pyarrow import fs


class Hdfs:
    """The calls of `pyarrow.fs.FileSystem` that c4pipe uses. Paths that are not there raise FileNotFoundError."""

    def __init__(self, bucket: str) -> None:
        """Takes `host:port`, or nothing for the one that Hadoop's configuration names. Raises OSError."""
        if not os.environ.get("CLASSPATH"):  # without it, the process crashes
            raise OSError("CLASSPATH must name Hadoop's jars (hadoop classpath --glob); libhdfs reads it")
        # The machine of Java's that is started here would take Ctrl-C for itself.
        os.environ["LIBHDFS_OPTS"] = f"{os.environ.get('LIBHDFS_OPTS', '')} -Xrs".strip()
        self._fs: Any = fs.FileSystem.from_uri(f"hdfs://{bucket}/")[0] if bucket else fs.HadoopFileSystem("default")

    def get_file_info(self, asked: Any) -> Any:
        """Returns what is known of a path, or of what a selector finds."""
        # Asked for a path, or where not found is allowed, Arrow takes every error of HDFS for "not found".
        if isinstance(asked, fs.FileSelector):
            try:
                return self._fs.get_file_info(fs.FileSelector(asked.base_dir, recursive=asked.recursive))
            except FileNotFoundError:
                if asked.allow_not_found:
                    return []
                raise
        info = self._fs.get_file_info(asked)
        if info.type == fs.FileType.NotFound:
            try:
                self._fs.get_file_info(fs.FileSelector(asked))
            except FileNotFoundError:
                return info
            raise OSError("it was not found, then it was")
        return info

    def _check(self, path: str) -> None:
        if self.get_file_info(path).type == fs.FileType.NotFound:
            raise FileNotFoundError(path)

    def open_input_file(self, path: str) -> Any:
        """Opens a file to be read."""
        self._check(path)  # or Java's stack is printed
        return self._fs.open_input_file(path)

    def open_output_stream(self, path: str, compression: str | None) -> Any:
        """Opens a file to be written."""
        return self._fs.open_output_stream(path, compression=compression)

    def move(self, path: str, target: str) -> None:
        """Renames a file, over one that is there."""
        self._fs.move(path, target)

    def delete_file(self, path: str) -> None:
        """Removes a file."""
        self._check(path)
        self._fs.delete_file(path)

    def delete_dir(self, path: str) -> None:
        """Removes a folder with all that is in it."""
        self._check(path)
        self._fs.delete_dir(path)
