"""The lists and the models that rules need: the user's, pinned ones, robots.txt."""
