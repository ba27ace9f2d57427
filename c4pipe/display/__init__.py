"""What people see, whatever shows it: safe text, excerpts of texts, sizes and times.

In come texts and numbers, out go short, printable strings.
"""
