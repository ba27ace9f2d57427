"""What text is made of: languages, sentences, words, scripts, n-grams, hashes, MinHash, URLs. No rule is here."""
