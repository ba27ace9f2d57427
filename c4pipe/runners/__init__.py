"""How the steps of a job run: the protocol, the processes of this machine, Apache Beam.

A graph of steps comes in; each runner executes the same graph and reports progress and control totals.
"""
