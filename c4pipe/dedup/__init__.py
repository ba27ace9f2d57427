"""Job 2: work files to a corpus without duplicates.

Work files come in. Fixed-width rows go through shuffles, the last rules judge edited pages, the corpus is published.
"""
