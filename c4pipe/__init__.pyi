from .clean.evaluate import RuleVerdict as RuleVerdict
from .clean.text_cleaner import Cleaner as Cleaner
from .clean.trace import LineVerdict as LineVerdict
from .clean.trace import PageVerdict as PageVerdict
from .corpus.opened import Corpus as Corpus
from .corpus.opened import open_corpus as open_corpus
from .errors import C4pipeError as C4pipeError
from .errors import JobWritten as JobWritten
from .errors import LostDataError as LostDataError
from .errors import UsageError as UsageError
from .filters.checked_page import CheckedPage as CheckedPage
from .filters.rule import Between as Between
from .filters.rule import LineRule as LineRule
from .filters.rule import PageRule as PageRule
from .inspect.overlap import FileOverlap as FileOverlap
from .inspect.overlap import Match as Match
from .inspect.overlap import Overlap as Overlap
from .inspect.overlap import find_overlap as find_overlap
from .jobs.api import add_files as add_files
from .jobs.api import build_corpus as build_corpus
from .jobs.api import clean_files as clean_files
from .jobs.api import dedup_files as dedup_files
from .jobs.api import explain_text as explain_text
from .jobs.api import import_text as import_text
from .recipes.recipe import Recipe as Recipe
from .runners.events import ProgressEvent as ProgressEvent
from .tokens.files import write_token_files as write_token_files
from .vocab.job import train_vocabulary as train_vocabulary

__all__: list[str]
__version__: str
