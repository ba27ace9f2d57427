"""Bytes of a WET, WARC or text file to pages: gzip members, record headers, text of HTML, damage, quarantine.

A stream of bytes comes in; `Page` and `Damage` objects go out, in the order of the file.
"""
