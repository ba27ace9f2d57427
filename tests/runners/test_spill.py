"""What travels between steps: bytes, or where they wait in a file."""

from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from c4pipe.runners.spill import Spill, SpillingStep
from tests.helpers.s3 import store_of

PIECES = st.lists(st.one_of(st.binary(max_size=30), st.builds(lambda n, b: b * n, st.integers(500, 3000), st.binary())))


@given(PIECES)
def test_what_was_sent_is_received(tmp_path_factory: pytest.TempPathFactory, data: list[bytes]) -> None:
    folder = str(tmp_path_factory.getbasetemp() / "spill")
    for sender, receiver in ((Spill(folder), Spill(folder)), (Spill(""), Spill(""))):
        places = [sender.send(each) for each in data]
        assert list(receiver.receive(reversed(places))) == data[::-1]
        sender.close()
        assert list(receiver.receive(places)) == data
        receiver.close()


def test_what_is_large_waits_in_one_file(tmp_path: Path) -> None:
    with closing(Spill(str(tmp_path / "s"))) as spill:
        places = [spill.send(bytes([number]) * 100_000) for number in range(20)]
        assert sum(map(len, places)) < 2000
        (file,) = (tmp_path / "s").iterdir()
        assert file.stat().st_size == 2_000_000
        assert [each[:1] for each in spill.receive(places)] == [bytes([number]) for number in range(20)]


def test_machines_that_share_a_folder_read_whole_files(tmp_path: Path) -> None:
    """Another machine sees a file of NFS when it is closed, and holds no file open for each element of a step."""
    url = f"file://{tmp_path / 's'}"
    with closing(Spill(url)) as sender, closing(Spill(url)) as receiver:
        places = [sender.send(b"a" * 100), sender.send(b"b" * 100)]
        sender.commit()
        places.append(sender.send(b"c" * 100))
        sender.commit()
        files = sorted(file.stat().st_size for file in (tmp_path / "s").iterdir())
        open_files = len(list(Path("/proc/self/fd").iterdir()))
        assert [each[:1] for each in receiver.receive(places)] == [b"a", b"b", b"c"]
        assert len(list(Path("/proc/self/fd").iterdir())) == open_files
    assert files == [100, 200]


class _Send(SpillingStep):
    """A group -> data, to buckets; some of a group are small, and a bucket may get several."""

    outputs = ("data", "others", "numbers")
    sums = ("numbers",)

    def process(self, element: tuple[int, list[tuple[int, bytes]]]) -> Iterator[tuple[str, Any]]:
        group, parts = element
        yield "numbers", group
        for bucket, data in parts:
            yield "others" if bucket % 2 else "data", (bucket, self._spill.send(data))


class _Receive(SpillingStep):
    """Messages of two outputs -> their data."""

    outputs = sums = ("data",)

    def process(self, element: tuple[int, dict[str, list[bytes]]]) -> Iterator[tuple[str, Any]]:
        bucket, messages = element
        yield "data", (bucket, sorted(self._spill.receive(chain.from_iterable(messages.values()))))


def _process_run(step: SpillingStep, elements: list[Any]) -> list[tuple[str, Any]]:
    step.setup()
    try:
        return list(step.process_run(elements))
    finally:
        step.teardown()


def _pass_through_store(groups: list[list[tuple[int, bytes]]], run: int) -> list[tuple[int, list[bytes]]]:
    """Sends data from groups to buckets through a store, in runs of so many groups and buckets."""
    sent: list[tuple[str, Any]] = []
    for first in range(0, len(groups), run):
        elements = list(enumerate(groups))[first : first + run]
        sent += _process_run(_Send("s3://bucket/s"), elements)
    assert [value for name, value in sent if name == "numbers"] == list(range(len(groups)))
    by_bucket: dict[int, dict[str, list[bytes]]] = {}
    for name, value in sent:
        if name != "numbers":
            by_bucket.setdefault(value[0], {}).setdefault(name, []).append(value[1])
    buckets, received = sorted(by_bucket.items()), []
    for first in range(0, len(buckets), run):
        received += _process_run(_Receive("s3://bucket/s"), buckets[first : first + run])
    return [value for _, value in received]


DATA = st.builds(lambda n, b: b * n, st.integers(20, 200), st.binary())
SENT = st.lists(st.lists(st.tuples(st.integers(0, 9), DATA)))


@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(SENT, st.integers(1, 4), st.sampled_from([100, 1 << 20]))
def test_a_store_gives_what_was_sent(
    moto: str, monkeypatch: pytest.MonkeyPatch, groups: list[list[tuple[int, bytes]]], run: int, request_bytes: int
) -> None:
    monkeypatch.setattr("c4pipe.runners.spill._REQUEST_BYTES", request_bytes)
    expected: dict[int, list[bytes]] = {}
    for bucket, data in chain.from_iterable(groups):
        expected.setdefault(bucket, []).append(data)
    with store_of(moto, {"bucket/other": b""}, monkeypatch):
        assert _pass_through_store(groups, run) == sorted((each, sorted(data)) for each, data in expected.items())


def test_neighbouring_blocks_are_one_request_to_a_store(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/storage.md has these numbers: a run of groups writes a file, and a run of buckets asks it for a range."""
    groups = [[(bucket, bytes([group, bucket]) * 100) for bucket in range(12)] * 2 for group in range(9)]
    with store_of(moto, {"bucket/other": b""}, monkeypatch) as store:
        received = _pass_through_store(groups, run=3)
        asked = list(store.asked.elements())
    assert [len(data) for _, data in received] == [2 * 9] * 12
    files, readers, outputs = 3, 4, 2
    kinds = Counter(each.partition(" ")[0] for each in asked if not each.startswith(("PUT", "POST")))
    assert kinds == {"HEAD": files * readers, "GET": files * readers * outputs}
    assert len(asked) - kinds.total() == 3 * files


def test_a_store_without_what_was_sent_is_told(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with store_of(moto, {"bucket/other": b""}, monkeypatch), closing(Spill("s3://bucket/s")) as spill:
        place = spill.send(b"not uploaded" * 100)
        with pytest.raises(OSError, match="there is no such file"):
            spill.fetch([place])


def test_what_is_small_travels_itself(tmp_path: Path) -> None:
    spill = Spill(str(tmp_path / "s"))
    assert list(spill.receive([spill.send(b"small")])) == [b"small"]
    assert not (tmp_path / "s").exists()


def test_senders_do_not_mix(tmp_path: Path) -> None:
    senders = [Spill(str(tmp_path)) for _ in range(3)]
    places = [sender.send(bytes([number]) * 5000) for number in range(9) for sender in senders]
    with closing(Spill(str(tmp_path))) as receiver:
        received = list(receiver.receive(places))
    for sender in senders:
        sender.close()
    assert received == [bytes([number]) * 5000 for number in range(9) for _ in senders]


def test_two_senders_that_draw_one_number_do_not_mix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 64 random bits, two are hardly ever equal: then the second sender fails."""
    monkeypatch.setattr("c4pipe.runners.spill.os.urandom", bytes)
    with closing(Spill(str(tmp_path))) as first, closing(Spill(str(tmp_path))) as second:
        place = first.send(b"a" * 100)
        with pytest.raises(FileExistsError):
            second.send(b"b" * 100)
        assert list(first.receive([place])) == [b"a" * 100]


def test_a_file_that_was_cut_is_told(tmp_path: Path) -> None:
    with closing(Spill(str(tmp_path))) as spill:
        place = spill.send(b"x" * 5000)
        (file,) = tmp_path.iterdir()
        file.write_bytes(b"x" * 4999)
        with pytest.raises(OSError, match="ends before byte 5,000"):
            list(spill.receive([place]))
    file.unlink()
    with pytest.raises(FileNotFoundError):
        list(Spill(str(tmp_path)).receive([place]))
