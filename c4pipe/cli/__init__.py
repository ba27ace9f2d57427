"""The command line: one module for each command, and the tables and progress bars that it prints.

In come arguments, out go text on the terminal and an exit status. Only this room imports Rich.
"""
