from .funnel import funnel_rows as funnel_rows
from .nothing_kept import nothing_kept as nothing_kept
from .profile import Profiler as Profiler
from .profile import domains as domains
from .rebuild import rebuild_data as rebuild_data
