"""The heuristics of C4 as pure functions, one for each rule.

A page rule takes a fact and decides; a line rule takes lines and returns those that are kept.
"""
