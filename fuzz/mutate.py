"""Fuzzes a target without Atheris: random changes of its seeds, for a number of seconds. scripts/sanitize runs it.

python fuzz/mutate.py native|reader|rules SECONDS [SEED]

What fails is written to crash-NAME: python fuzz/targets.py NAME crash-NAME shows it again.
"""

import random
import sys
import time
from pathlib import Path

import targets

_BYTES = b"\0\n\r\x1c [{.AZaz09\x7f\x80\x85\xa8\xc2\xc4\xb0\xe2\x84\xaa\xed\xf0\xff"


def mutated(seed: bytes, rng: random.Random) -> bytes:
    """Returns a copy of some bytes with a few changes: other bytes, and parts removed, repeated or exchanged."""
    data = bytearray(seed[: rng.choice((200, 2000, 8000))])
    for _ in range(rng.randrange(1, 9)):
        first = rng.randrange(len(data) + 1)
        end = min(len(data), first + rng.choice((1, 2, 3, 50)))
        change = rng.randrange(4)
        if change == 0:
            data[first:end] = rng.choices(_BYTES, k=end - first)
        elif change == 1:
            del data[first:end]
        elif change == 2:
            data[first:first] = data[first:end] * rng.choice((1, 2, 40))
        else:
            data[first:first] = rng.choices(_BYTES, k=3)
    return bytes(data)


def main() -> None:
    """Checks changed seeds until the time is over, or something is found."""
    name, seconds = sys.argv[1], float(sys.argv[2])
    rng = random.Random(int(sys.argv[3]) if len(sys.argv) > 3 else 0)
    check, make_seeds = targets.TARGETS[name]
    seeds, count, file = make_seeds(), 0, Path(f"crash-{name}")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        data = mutated(rng.choice(seeds), rng)
        file.write_bytes(data)  # before: an error in C ends the process
        check(data)
        count += 1
    file.unlink(missing_ok=True)
    print(f"{name}: {count} inputs, all well")


if __name__ == "__main__":
    main()
