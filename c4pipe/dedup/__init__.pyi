from .dedup_plan import DedupPlan as DedupPlan
from .dedup_progress import watch_dedup as watch_dedup
from .near_pages import BAND_ROW as BAND_ROW
from .publishers import STAGING as STAGING
from .shard import write_shard as write_shard
from .shuffle import bucket_bits as bucket_bits
from .shuffle import group_size as group_size
from .steps import dedup_work_files as dedup_work_files
