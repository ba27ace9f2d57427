"""Which rules, with which parameters, in which order: the rule table, recipes, TOML files, word and domain lists.

A name or a file comes in; a `Recipe` with its lists goes out.
"""
