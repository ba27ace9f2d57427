from .dedup_plan import DedupPlan as DedupPlan
from .publishers import STAGING as STAGING
from .publishers import publisher as publisher
from .shard import write_shard as write_shard
from .shuffle import bucket_bits as bucket_bits
from .shuffle import group_size as group_size
from .steps import dedup_work_files as dedup_work_files
