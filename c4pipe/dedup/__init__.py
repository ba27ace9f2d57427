"""Job 2: work files to a corpus without duplicates.

Work files come in. Fixed-width rows travel through shuffles, the last rules judge the edited pages, the corpus is published.
"""
