"""c4pipe builds a C4 pretraining corpus from Common Crawl WET files."""

__version__ = "0.1.0"
