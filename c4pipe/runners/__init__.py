"""How a job runs: in processes of this machine, or on a Beam runner.

In come a graph of steps and options, out come the effects of the steps and events about their progress.
"""
