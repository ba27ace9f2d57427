"""What differs between two corpora.

Two finished corpora come in; counts and example pages that differ go out.
"""
