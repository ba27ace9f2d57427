"""What a corpus is made of, for people: the funnel, the dataset card, and report.html.

A manifest, profiles of the shards and examples come in; Markdown, HTML and JSON go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
