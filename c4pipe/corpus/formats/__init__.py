"""The formats of shards: one a file, and the table of their names."""
