from .files import TokenFiles as TokenFiles
from .files import write_token_files as write_token_files
from .folder import DocumentPlace as DocumentPlace
from .folder import find_pages as find_pages
