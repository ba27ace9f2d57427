"""What a user types: one module for each command, and how results are printed.

Arguments come in; the commands call `c4pipe.jobs` and print tables.
"""
