"""Why a page is in a corpus, or not.

A URL with a corpus, or a page with a recipe, comes in; the verdict of each rule goes out.
"""
