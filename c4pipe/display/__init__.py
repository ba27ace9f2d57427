"""Text for people: sizes, numbers and durations, excerpts of long texts, and text that is safe to print on a terminal.

Values come in, strings go out. Nothing here reads or writes a file.
"""
