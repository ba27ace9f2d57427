from .funnel import funnel_rows as funnel_rows
from .nothing_kept import nothing_kept as nothing_kept
from .opt_out_counts import count_opt_outs as count_opt_outs
from .opt_out_counts import read_opt_outs as read_opt_outs
from .profile import Profiler as Profiler
from .profile import domains as domains
from .rebuild import rebuild_data as rebuild_data
from .rendering import compile_templates as compile_templates
