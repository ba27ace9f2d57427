from .comparison import KINDS as KINDS
from .comparison import Diff as Diff
from .comparison import compare as compare
from .comparison import split_name as split_name
