"""datatrove's clusters of pages that are nearly the same: the installed package's own MinHash pipeline.

    python parity/near_reference.py PAGES OUT FOLDER

Runs in an environment that has datatrove, without c4pipe. PAGES has a JSON object for each page, with `text`. OUT gets
the number of the cluster of each page, or null. FOLDER is for files of the pipeline.
"""

import json
import sys
from pathlib import Path

from datatrove.data import Document
from datatrove.pipeline.dedup.minhash import (
    MinhashConfig,
    MinhashDedupBuckets,
    MinhashDedupCluster,
    MinhashDedupSignature,
)
from datatrove.utils.hashing import HashConfig

# Of FineWeb's own script, examples/fineweb.py.
CONFIG = MinhashConfig(hash_config=HashConfig(hash_fc="sha1", precision=64))


def main() -> None:
    """Finds the clusters."""
    pages, out, folder = map(Path, sys.argv[1:])
    texts = [json.loads(line)["text"] for line in pages.open(encoding="utf-8")]
    documents = (Document(text=text, id=str(number)) for number, text in enumerate(texts))
    MinhashDedupSignature(str(folder / "signatures"), CONFIG).run(documents)
    for bucket in range(CONFIG.num_buckets):
        step = MinhashDedupBuckets(str(folder / "signatures"), str(folder / "buckets"), config=CONFIG)
        step.run(None, bucket, CONFIG.num_buckets)
    MinhashDedupCluster(str(folder / "buckets"), str(folder / "clusters"), CONFIG, save_cluster_id=True).run()
    clusters: list[int | None] = [None] * len(texts)
    found = folder / "clusters" / "000000.clusters"
    numbers = memoryview(found.read_bytes() if found.exists() else b"").cast("I").tolist()
    for page, cluster in zip(numbers[::2], numbers[1::2], strict=True):
        clusters[page] = cluster
    out.write_text(json.dumps(clusters))


if __name__ == "__main__":
    main()
