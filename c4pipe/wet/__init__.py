"""Bytes of a WET file to pages: gzip members, record headers, damage, quarantine.

A stream of bytes comes in; `Page` and `Damage` objects go out, in the order of the file.
"""
