"""The TFRecord format: records of tf.train.Example with the columns of a corpus, to bytes and back.

Each record is its length (8 bytes, little-endian), a checksum of these, its bytes, and a checksum of these. An Example
is a protobuf message; every field of it that occurs here has wire type 2 (a length, then that many bytes).
"""

import math
import struct
from collections.abc import Collection, Iterator, Mapping
from types import MappingProxyType
from typing import Any, BinaryIO

import google_crc32c

_NONE: Mapping[str, Any] = MappingProxyType({})


def encode(strings: Mapping[str, bytes], float_name: str, value: float, more: Mapping[str, Any] = _NONE) -> bytes:
    """Returns a record.

    Args:
        strings: its strings as UTF-8, by name.
        float_name: the name of a 32-bit float.
        value: the value of it.
        more: further values by name: strings, whole numbers, truth values, floats, lists of strings; None is left out.
    """
    data = _example(strings, float_name, value, more)
    length = struct.pack("<Q", len(data))
    return b"".join((length, _masked_crc(length), data, _masked_crc(data)))


def records(data: BinaryIO) -> Iterator[bytes]:
    """Yields the bytes of each record. Raises ValueError or struct.error where one is damaged."""
    while head := data.read(12):
        length, checksum = struct.unpack("<Q4s", head)
        _check_crc(head[:8], checksum)
        record = data.read(length + 4)
        _check_crc(record[:length], *struct.unpack_from("<4s", record, length))
        yield record[:length]


def decode(record: bytes, lists: Collection[str] = ()) -> dict[str, Any]:
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


def _example(strings: Mapping[str, bytes], float_name: str, value: float, more: Mapping[str, Any] = _NONE) -> bytes:
    """Returns a tf.train.Example with its map sorted by key (protobuf itself promises no order)."""
    # field numbers: features 1, feature 1 (map: key 1, value 2); bytes_list 1, float_list 2, int64_list 3, each with
    # value 1 (numbers packed)
    features = {name: _delimited(1, _delimited(1, string)) for name, string in strings.items()}
    features[float_name] = _feature(value)
    features.update((name, _feature(each)) for name, each in more.items() if each is not None)
    pairs = (_delimited(1, name.encode()) + _delimited(2, features[name]) for name in sorted(features))
    return _delimited(1, b"".join(_delimited(1, pair) for pair in pairs))


def _feature(value: Any) -> bytes:
    """Returns a feature. A float that 32 bits can't hold becomes infinite."""
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
