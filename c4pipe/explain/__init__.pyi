from .captures import CaptureVerdict as CaptureVerdict
from .captures import CorpusExplainer as CorpusExplainer
from .captures import Loss as Loss
from .captures import UnitVerdict as UnitVerdict
from .page_input import STANDARD_INPUT as STANDARD_INPUT
from .page_input import find_pages as find_pages
