"""Job 2: work files to a corpus without duplicates.

Work files come in. Rows of fixed width travel through shuffles, the last rules judge the edited pages, and the corpus is published.
"""
