"""The rules themselves: one pure function for each, and what they need: language, sentences, word and domain lookup.

Lines, texts and URLs come in; the lines that stay, or a decision, go out.
"""
