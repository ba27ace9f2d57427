"""Looks at pages and corpora beside the jobs: explain, diff, overlap with evaluation sets, robots.txt, opt-outs.

Corpora, pages and examples of evaluation sets come in; verdicts, differences, matches and counts go out.
"""
