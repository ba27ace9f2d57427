"""What travels between steps: bytes, or where they wait in a file."""

from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from c4pipe.runners.spill import Spill
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


def test_a_store_holds_what_was_sent(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        store_of(moto, {"bucket/other": b""}, monkeypatch),
        closing(Spill("s3://bucket/s")) as sender,
        closing(Spill("s3://bucket/s")) as receiver,
    ):
        data = [bytes([number]) * 5000 for number in range(40)]
        places = [sender.send(each) for each in data]
        sender.commit()
        places.append(sender.send(b"not committed" * 100))
        assert list(receiver.receive(reversed(places[:-1]))) == data[::-1]
        with pytest.raises(OSError, match="there is no such file"):
            list(receiver.receive(places[-1:]))


def test_each_block_is_one_request_to_a_store(moto: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/storage.md has these numbers."""
    with store_of(moto, {"bucket/other": b""}, monkeypatch) as store, closing(Spill("s3://bucket/s")) as receiver:
        groups, buckets = 5, 8
        sent = []
        for group in range(groups):
            with closing(Spill("s3://bucket/s")) as sender:
                sent.append([sender.send(bytes([group, bucket]) * 100) for bucket in range(buckets)])
                sender.commit()
        assert sum(store.asked.values()) == 3 * groups
        store.asked.clear()
        for bucket in range(buckets):
            received = list(receiver.receive([blocks[bucket] for blocks in sent]))
            assert received == [bytes([group, bucket]) * 100 for group in range(groups)]
        kinds = Counter(asked.partition(" ")[0] for asked in store.asked.elements())
        assert kinds == {"GET": groups * buckets, "HEAD": groups}


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
