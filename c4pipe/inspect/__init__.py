"""What is looked at beside the jobs: why a page is in a corpus, how two corpora differ, and what lists say about them.

Corpora, pages and examples of evaluation sets come in; verdicts, differences, matches and counts go out.
"""
