from collections.abc import Callable

VERSION: int

class Detector:
    def __init__(
        self,
        profiles: tuple[bytes, ...],
        normalize: Callable[[str], str],
        draws: bytes,
        compensated: bool,
    ) -> None: ...
    def guess(self, text: str, prepared: bool) -> tuple[int, float] | None: ...
