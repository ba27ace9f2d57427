"""Streams as bad as they come, for the tests of the reader."""

import io


class Trickle(io.BytesIO):
    """A stream whose read() gives 1, 2, ... `most`, 1, 2, ... bytes, however many it is asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most
        self.count = 0

    def read(self, size: int | None = -1) -> bytes:
        self.count += 1
        give = 1 + self.count % self.most
        return super().read(give if size is None or size < 0 else min(size, give))


class Failing(io.BytesIO):
    """A stream that can't be read on where it would end."""

    def read(self, size: int | None = -1) -> bytes:
        data = super().read(size)
        if not data:
            raise OSError(5, "Input/output error")
        return data
