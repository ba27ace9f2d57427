"""Pretraining examples: token ids to inputs and targets, packed to batches of arrays. NumPy alone, no Beam."""
