"""HDFS through Arrow, with the same answers as Arrow's other file systems. Tested with Hadoop 3.4 and pyarrow 25.

It needs Hadoop's client on the machine: `JAVA_HOME`, `CLASSPATH`, and `libhdfs.so` in `HADOOP_HOME` or
`ARROW_LIBHDFS_DIR`.
"""

import os
from typing import Any

from pyarrow import fs


class Hdfs:
    """The methods of `pyarrow.fs.FileSystem` that c4pipe uses. A path that does not exist raises FileNotFoundError."""

    def __init__(self, bucket: str) -> None:
        """Takes `host:port`, or "" for the HDFS that Hadoop's configuration names. Raises OSError."""
        if not os.environ.get("CLASSPATH"):  # without it, the process crashes
            raise OSError("CLASSPATH must name Hadoop's jars (hadoop classpath --glob); libhdfs reads it")
        # Without -Xrs, the Java machine that starts here would handle Ctrl-C itself.
        os.environ["LIBHDFS_OPTS"] = f"{os.environ.get('LIBHDFS_OPTS', '')} -Xrs".strip()
        self._fs: Any = fs.FileSystem.from_uri(f"hdfs://{bucket}/")[0] if bucket else fs.HadoopFileSystem("default")

    def get_file_info(self, query: Any) -> Any:
        """Returns the `pyarrow.fs.FileInfo` of a path, or a list of them for a `pyarrow.fs.FileSelector`."""
        # For a path, and where a missing folder is allowed, Arrow reports every error of HDFS as "not found".
        if isinstance(query, fs.FileSelector):
            try:
                return self._fs.get_file_info(fs.FileSelector(query.base_dir, recursive=query.recursive))
            except FileNotFoundError:
                if query.allow_not_found:
                    return []
                raise
        info = self._fs.get_file_info(query)
        if info.type == fs.FileType.NotFound:
            try:
                self._fs.get_file_info(fs.FileSelector(query))
            except FileNotFoundError:
                return info
            raise OSError("HDFS answered first that the path does not exist, and then that it exists")
        return info

    def _check(self, path: str) -> None:
        if self.get_file_info(path).type == fs.FileType.NotFound:
            raise FileNotFoundError(path)

    def open_input_file(self, path: str) -> Any:
        """Opens a file for reading."""
        self._check(path)  # else Java prints its stack
        return self._fs.open_input_file(path)

    def open_output_stream(self, path: str, compression: str | None) -> Any:
        """Opens a file for writing."""
        return self._fs.open_output_stream(path, compression=compression)

    def move(self, path: str, target: str) -> None:
        """Renames a file and replaces an existing one."""
        self._fs.move(path, target)

    def delete_file(self, path: str) -> None:
        """Removes a file."""
        self._check(path)
        self._fs.delete_file(path)

    def delete_dir(self, path: str) -> None:
        """Removes a folder and everything in it."""
        self._check(path)
        self._fs.delete_dir(path)
