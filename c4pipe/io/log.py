"""The logger of c4pipe. Without --log and without handlers of the user's own, it writes nowhere."""

import logging

LOG = logging.getLogger("c4pipe")
