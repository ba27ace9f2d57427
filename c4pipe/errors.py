"""The errors that a user can meet. Each has one clear sentence; the command line prints it without a traceback.

C4pipeError            the run can't go on (exit status 1)
├── LostDataError      a runner lost, repeated or changed data (exit status 1)
├── UsageError         the options can't be met (exit status 2)
│   └── DamagedFileError   a file that an earlier job wrote was changed since (exit status 2)
└── JobWritten         the job was written to a file instead of run, as the options ask (exit status 0)
    └── JobSubmitted   the job was submitted to Slurm, and runs without c4pipe's command (exit status 0)

A corpus that lacks WET files which could not be downloaded, or have no record, is no error: exit status 3. Nor is a
corpus without a page: exit status 4.
"""

import re

_SECRETS = re.compile(
    # A `Path` of a URL has one slash; abfs://container@account is no secret, but abfs://user:password@account is.
    r"(?:(?<=://)(?:(?<!abfs://)(?<!abfss://)|(?=[^/?#\s'\":]*:[^/?#\s'\"]*@))|(?<=\w\w:/)(?!/))[^/?#\s'\"]*(?=@)"
    r"|(?<=[?&])([\w.-]{0,40}(?:signature|credential|token|secret|password|passwd|accesskeyid)[\w.-]{0,40}="
    r"|(?:[\w.-]{0,40}[._-])?(?:api)?key=|(?:sig|policy|key-pair-id|auth|authorization|jwt|pwd)=)"
    r"(?:[^&#\s'\"]*[^&#\s'\":;,.)])?",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """Returns a text with `***` in place of user and password, signatures, keys and tokens in its URLs."""
    return _SECRETS.sub(r"\1***", text) if ":/" in text else text


class C4pipeError(Exception):
    """The run can't go on. The message is a sentence for the user, and has no secrets of URLs."""

    exit_status = 1

    def __init__(self, message: object = "") -> None:
        super().__init__(hide_secrets(str(message)))


class LostDataError(C4pipeError):
    """A step received other data than was sent to it: the runner lost, repeated or changed some."""


class UsageError(C4pipeError):
    """The options can't be met. The message shows the wrong value and what to do."""

    exit_status = 2


class DamagedFileError(UsageError):
    """A file that an earlier job wrote can't be read, or was changed since. The message names it."""


class JobWritten(C4pipeError):
    """The job was written to a file, and c4pipe has nothing more to do until that file is run."""

    exit_status = 0


class JobSubmitted(JobWritten):
    """The job was submitted to Slurm, where it runs after the command has ended."""
