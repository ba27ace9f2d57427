"""Only the server that forks the workers of a command imports this module: it loads the workers' modules once.

The server has it imported while the command itself makes its plan (see `runners.start_server`).
"""

import gc

from c4pipe.runners.worker import lighten

lighten()

from c4pipe.clean import steps as clean_steps  # noqa: E402
from c4pipe.dedup import graph as dedup_steps  # noqa: E402
from c4pipe.text.languages import make_detector  # noqa: E402

make_detector("langdetect", 0.0)  # the rules load it at their first use; later callers get this object

gc.freeze()  # workers share this memory as long as nobody writes to it; a search for cycles would write

__all__ = ["clean_steps", "dedup_steps"]
