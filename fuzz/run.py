"""Fuzzes a target with Atheris, guided by the coverage of c4pipe and Punkt; called by scripts/fuzz.

python fuzz/run.py reader|rules FOLDER SECONDS

What is found lies in FOLDER as crash-*, oom-* or timeout-*: python fuzz/targets.py NAME FILE shows it again.
"""

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["c4pipe", "punkt"]):
    import targets

LIMITS = ["-rss_limit_mb=1024", "-timeout=20", "-max_len=100000", "-len_control=50"]


def main() -> None:
    """Writes the seeds and fuzzes until the time is over, or something is found."""
    name, folder, seconds = sys.argv[1], Path(sys.argv[2]), sys.argv[3]
    check, seeds = targets.TARGETS[name]
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    words = Path(__file__).with_name(f"{name}.dict")
    options = [f"-max_total_time={seconds}", f"-artifact_prefix={folder}/", f"-dict={words}", "-print_final_stats=1"]
    atheris.Setup([sys.argv[0], *LIMITS, *options, str(corpus)], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
