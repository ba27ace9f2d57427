"""Files and the network: local and remote paths, downloads with retries, atomic files, cache, locks.

Paths and URLs come in; streams of bytes and complete files go out.
"""
