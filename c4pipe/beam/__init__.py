"""The parts of c4pipe as Apache Beam transforms, for your own pipelines.

Paths of WET files or a PCollection of pages come in; PCollections of pages, or a published corpus, go out.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
