"""How the steps of a job run: the protocol, the processes of this machine, Apache Beam.

A graph of steps comes in; each runner executes the same graph and reports progress and control totals.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
