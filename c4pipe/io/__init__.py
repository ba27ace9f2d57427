"""Files and the network: paths on this machine and in object stores, downloads with retries, atomic files, cache, locks.

Paths and URLs come in; streams of bytes and complete files go out.
"""
