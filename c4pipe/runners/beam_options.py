"""Beam's own options, as its parser knows them."""

import contextlib
import io
from collections.abc import Sequence
from typing import Any

from c4pipe.errors import UsageError


class BeamOptions:
    """The options of all Beam runners. Makes Beam import its parts, which takes about two seconds."""

    def __init__(self) -> None:
        from apache_beam.options.pipeline_options import PipelineOptions

        parsers: list[Any] = []  # a callback of Beam's gets the parser of all options
        values = PipelineOptions([]).get_all_options(add_extra_args_fn=parsers.append)
        self.names = [f"--{name}" for name in values]
        """The names of the options, such as `--flink_master`."""
        self._parser = parsers[0]

    def unknown(self, arguments: Sequence[str]) -> list[str]:
        """Returns the arguments that Beam does not know: options of another program, and values without an option.

        Raises UsageError where a known option has a wrong value or none.
        """
        printed = io.StringIO()
        try:
            with contextlib.redirect_stderr(printed):
                rest: list[str] = self._parser.parse_known_args(list(arguments))[1]
        except SystemExit:
            message = printed.getvalue().rstrip().rpartition("error: ")[2]
            raise UsageError(f"Beam can't use its options: {message}") from None
        return rest
