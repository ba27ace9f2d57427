"""The rules, one family a file. Lines, texts and URLs come in; the lines that stay, or a decision, go out."""
