"""Job 3: text with weights to a SentencePiece vocabulary, as T5's was made (paper, section 3.1.3)."""
