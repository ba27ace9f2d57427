"""TFRecord: gzipped records of tf.train.Example. Strings are bytes features, floats have 32 bits, a null is no feature.

Each record is its length (8 bytes, little-endian), a checksum of these, its bytes, and a checksum of these. An Example
is a protobuf message; every field of it that occurs here has wire type 2 (a length, then that many bytes).
"""

import math
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Any, BinaryIO

import google_crc32c
import pyarrow as pa

from c4pipe.corpus.formats.shard_format import (
    CORPUS_SCHEMA,
    PROBABILITY,
    STRINGS,
    DocumentGenerator,
    ShardFormat,
    document,
    open_gzip,
    shard_schema,
    write_records,
)
from c4pipe.io.streams import InputPath
from c4pipe.wet.columns import parse_columns


def encode_example(values: Mapping[str, Any]) -> bytes:
    """Returns a record.

    Args:
        values: its values by name: strings, or their UTF-8; whole numbers, truth values, floats, lists of strings; None
            is left out.
    """
    data = _example(values)
    length = struct.pack("<Q", len(data))
    return b"".join((length, _masked_crc(length), data, _masked_crc(data)))


def split_records(data: BinaryIO) -> Iterator[bytes]:
    """Yields the bytes of each record. Raises ValueError or struct.error if one is damaged."""
    while head := data.read(12):
        length, checksum = struct.unpack("<Q4s", head)
        _check_crc(head[:8], checksum)
        record = data.read(length + 4)
        _check_crc(record[:length], *struct.unpack_from("<4s", record, length))
        yield record[:length]


def decode_example(record: bytes, lists: Collection[str] = ()) -> dict[str, Any]:
    """Returns the values of a record's bytes by name: strings, whole numbers, floats; a list for each of `lists`."""
    values: dict[str, Any] = {}
    ((_, features),) = _fields(record)
    for _, pair in _fields(features):
        (_, name), (_, feature) = _fields(pair)
        ((kind, in_list),) = _fields(feature)
        found = [_value(kind, value) for _, value in _fields(in_list)]
        values[name.decode()] = found if name.decode() in lists else found[0]
    return values


def _value(kind: int, value: bytes) -> Any:
    """Returns a value of a feature: of a bytes list (1), a float list (2) or an int64 list (3), each of one value."""
    if kind == 1:
        return value.decode()
    if kind == 2:
        return struct.unpack("<f", value)[0]
    number = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(value))
    return number - (number >> 63 << 64)


def _masked_crc(data: bytes) -> bytes:
    """Returns the checksum: CRC-32C rotated right by 15 bits, plus a constant; 4 bytes, little-endian."""
    crc = google_crc32c.value(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _check_crc(data: bytes, checksum: bytes) -> None:
    if _masked_crc(data) != checksum:
        raise ValueError("a record is damaged: its CRC-32C differs")


def _example(values: Mapping[str, Any]) -> bytes:
    """Returns a tf.train.Example with its map sorted by key (protobuf itself promises no order)."""
    # field numbers: features 1, feature 1 (map: key 1, value 2)
    features = ((name, _feature(value)) for name, value in sorted(values.items()) if value is not None)
    pairs = (_delimited(1, name.encode()) + _delimited(2, feature) for name, feature in features)
    return _delimited(1, b"".join(_delimited(1, pair) for pair in pairs))


def _feature(value: Any) -> bytes:
    """Returns a feature. A float that 32 bits can't hold becomes infinite."""
    # field numbers: bytes_list 1, float_list 2, int64_list 3, each with value 1 (numbers packed)
    if isinstance(value, bytes):
        return _delimited(1, _delimited(1, value))
    if isinstance(value, float):
        try:
            packed = struct.pack("<f", value)
        except OverflowError:
            packed = struct.pack("<f", math.copysign(math.inf, value))
        return _delimited(2, _delimited(1, packed))
    if isinstance(value, int):
        return _delimited(3, _delimited(1, _varint(value % (1 << 64))))
    texts = [value] if isinstance(value, str) else value
    return _delimited(1, b"".join(_delimited(1, text.encode()) for text in texts))


def _varint(value: int) -> bytes:
    encoded = bytearray()
    while value > 0x7F:
        encoded.append(value & 0x7F | 0x80)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def _delimited(number: int, payload: bytes) -> bytes:
    """Returns a field of wire type 2: tag (for numbers below 16), length as a varint, payload."""
    return bytes((number << 3 | 2,)) + _varint(len(payload)) + payload


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """Yields the number and the payload of each field of a message."""
    at = 0
    while at < len(message):
        number = message[at] >> 3
        at, shift, length = at + 1, 0, 0
        while message[at] > 0x7F:
            length |= (message[at] & 0x7F) << shift
            at, shift = at + 1, shift + 7
        length |= message[at] << shift
        yield number, message[at + 1 : at + 1 + length]
        at += 1 + length


def _encode_rows(rows: pa.Table) -> Iterator[bytes]:
    # Arrow holds strings as UTF-8: cast to binary, they are not decoded and encoded again
    strings = [rows[name].cast(pa.binary()).to_pylist() for name in STRINGS]
    further = rows.schema.names[len(CORPUS_SCHEMA) :]
    more = rows.select(further).to_pylist() if further else [{}] * rows.num_rows
    for *values, probability, others in zip(*strings, rows[PROBABILITY].to_pylist(), more, strict=True):
        yield encode_example({**dict(zip(STRINGS, values, strict=True)), PROBABILITY: probability, **others})


def _read_tfrecord(file: InputPath, first: int, columns: Sequence[str]) -> DocumentGenerator:
    further, names = parse_columns(columns), shard_schema(columns).names
    lists = {each.name for each in further if each.type == "strings"}
    nothing = dict.fromkeys((each.name for each in further), None)
    with open_gzip(file) as content:
        for record in islice(split_records(content), first, None):
            values = nothing | decode_example(record, lists)
            for each in further:
                if each.type == "bool" and values[each.name] is not None:
                    values[each.name] = bool(values[each.name])
            yield document(values, names)


TFRECORD = ShardFormat(
    name="tfrecord",
    write=partial(write_records, encode=_encode_rows),
    read=_read_tfrecord,
    is_exact=False,
)
