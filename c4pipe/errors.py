"""The errors a user can meet. Each carries one clear sentence; the command line prints it without a traceback.

C4pipeError            the run can't go on (exit status 1)
├── LostDataError      a shuffle gave back less, or other, than went in
├── UsageError         what was asked for can't be done (exit status 2)
└── JobWritten         a job was written to a file instead of run, as was asked for (exit status 0)

A corpus that is complete but for files that could not be had is no error: exit status 3.
"""


class C4pipeError(Exception):
    """The run can't go on. The message is a sentence for the user."""

    exit_status = 1


class LostDataError(C4pipeError):
    """A step received other data than was sent to it: the engine lost or repeated some."""


class UsageError(C4pipeError):
    """What was asked for can't be done. The message shows the offending value and what to do."""

    exit_status = 2


class JobWritten(C4pipeError):
    """There is nothing more to do until the job in a file was run."""

    exit_status = 0
