"""The finished corpus: its layout and manifest, writers of shards, the one reader of shards, and `open_corpus`.

Tables of pages come in; shards and a manifest go out, and come in again through the reader.
"""
