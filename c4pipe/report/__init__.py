"""Describes a corpus to people: the funnel, the dataset card, and report.html.

A manifest, profiles of the shards and examples come in; Markdown, HTML and JSON go out.
"""
