from .clean_pages import CleanPages as CleanPages
from .keep_newest import KeepNewest as KeepNewest
from .page_schema import CleanedPages as CleanedPages
from .page_schema import DroppedPage as DroppedPage
from .page_schema import Page as Page
from .read_pages import ReadPages as ReadPages
from .remove_repeated_spans import RemoveRepeatedSpans as RemoveRepeatedSpans
from .write_corpus import WriteCorpus as WriteCorpus
