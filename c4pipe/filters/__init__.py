"""The rules themselves, and their tools: language, sentences, word and domain lookup.

Lines, texts and URLs come in; the lines that stay, or a decision, go out.
"""
