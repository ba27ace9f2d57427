from .ahead import prefetch as prefetch
from .rows import Counts as Counts
from .tokenizer import Tokenizer as Tokenizer
