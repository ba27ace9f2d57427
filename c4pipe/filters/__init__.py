<<<<<<< HEAD
"""The heuristics of C4 as pure functions, one for each rule.

A page rule takes a fact and decides; a line rule takes lines and returns those that are kept.
=======
"""The rules themselves: one pure function for each, and what they need: language, sentences, word and domain lookup.

Lines, texts and URLs come in; the lines that stay, or a decision, go out.
>>>>>>> lead-tests
"""
