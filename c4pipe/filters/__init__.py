"""The heuristics of C4: pure functions, one for each rule, and the step that applies them to a WET file."""
