"""Job 2: work files to a corpus without duplicates.

Work files come in; a published corpus goes out. Only fixed-width rows are shuffled to find duplicates.
"""
