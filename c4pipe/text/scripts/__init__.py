"""Facts about scripts: what ends a sentence, and how words are told apart."""
