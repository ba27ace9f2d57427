"""Job 1: each page to a verdict, each WET file to one work file.

Pages and a recipe come in; verdicts, traces of how they came about, and work files go out.
"""
