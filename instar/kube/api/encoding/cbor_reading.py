"""Reads CBOR as kube-apiserver does: to the values that the same object has in JSON.

``server/rest/bodies.py`` calls it for bodies of requests. Byte strings are texts; the tags for
later encodings make base64 or hexadecimal texts of them, the tags of times RFC 3339. Rejected are
repeated keys, keys that are no texts, numbers without a form in JSON, and data after the item.
"""

from __future__ import annotations

import math
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterator
from struct import unpack
from typing import Any

from instar.base.errors import RequestTooLarge
from instar.base.field_errors import go_quote
from instar.base.limits import MAX_BODY, MAX_DEPTH
from instar.kube.api.encoding.cbor_times import TimeError, epoch_text, rfc3339_text
from instar.kube.api.encoding.go_text import GO_TEXT

_TYPES = (
    "positive integer",
    "negative integer",
    "byte string",
    "UTF-8 text string",
    "array",
    "map",
    "tag",
    "primitives",
)
_POSITIVE, _NEGATIVE, _BYTES, _TEXT, _ARRAY, _MAP, _TAG, _PRIMITIVE = range(8)
_BREAK = 0xFF
_INDEFINITE = -1
_LONGEST = 2**63
_LEAST_JSON = 3
"""Bytes of an empty map or array in JSON, with its comma. In CBOR it has one."""
_SIMPLE = {20: False, 21: True, 22: None}
_FLOATS = {25: ">e", 26: ">f", 27: ">d"}
_TIME_TEXT, _TIME_EPOCH = 0, 1
_BIGNUMS = (2, 3)
Encoding = Callable[[bytes], bytes]
_ENCODINGS: dict[int, Encoding] = {
    21: lambda data: urlsafe_b64encode(data).rstrip(b"="),
    22: b64encode,
    23: lambda data: data.hex().encode(),
}
"""Tags that say how a byte string becomes a text."""
_END = "unexpected EOF"
_UNWANTED = "cbor: data item of cbor type {} is not accepted by protocol: "


class MalformedCbor(ValueError):
    """The bytes are not one CBOR item; ``str()`` is upstream's message."""


class UnacceptableCbor(ValueError):
    """A CBOR item with a part that has no place in an object; ``str()`` is upstream's message."""

    def __init__(self, text: str, value: Any, *, at_top: bool) -> None:
        super().__init__(text)
        self.value = value
        """What could be read."""
        self.at_top = at_top
        """Whether the part is a key of the outermost map, so that even the kind is uncertain."""


def read_cbor(data: bytes) -> Any:
    """Return the value of an item. Raises ``MalformedCbor``, ``UnacceptableCbor`` or
    ``RequestTooLarge``."""
    if not data:
        raise MalformedCbor("EOF")
    reader = _Reader(data)
    value = reader.item(0, None)
    if reader.at != len(data):
        more = len(data) - reader.at
        text = f"cbor: {more} bytes of extraneous data starting at index {reader.at}"
        raise MalformedCbor(text)
    if reader.problem:
        raise UnacceptableCbor(reader.problem, value, at_top=reader.at_top)
    return value


def items(data: bytes) -> Iterator[bytes]:
    """Split a sequence into its items, however large and deep they are. Raises
    ``MalformedCbor``."""
    reader = _Reader(data)
    while reader.at < len(data):
        start = reader.at
        reader.skip()
        yield data[start : reader.at]


def type_name(data: bytes) -> str:
    """Return the name of the type of a well-formed document, below its tags."""
    reader = _Reader(data)
    while True:
        major, _, _ = reader.head()
        if major != _TAG:
            return _TYPES[major]


class _Reader:
    """Reads item after item; notes the first part that is well-formed but not acceptable."""

    __slots__ = ("at", "at_top", "data", "problem", "room")

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0
        self.room = MAX_BODY // _LEAST_JSON
        """Maps and arrays that the largest body can hold in JSON; each takes 64 bytes of memory."""
        self.problem, self.at_top = "", False

    def item(self, depth: int, later: Encoding | None) -> Any:
        """``later``: how byte strings here become texts; None: they are texts."""
        major, info, number = self.head()
        tags = 0
        while major == _TAG:
            tags = _deeper(tags)
            if number in _BIGNUMS:
                raise MalformedCbor(f"{_UNWANTED.format('tag')}bignum")
            if number in (_TIME_TEXT, _TIME_EPOCH):
                return self._time(number, depth)
            later = _ENCODINGS.get(number, later)
            major, info, number = self.head()
        if major == _BYTES:
            data = self._string(major, number)
            return (data if later is None else later(data)).decode("utf-8", GO_TEXT)
        if major == _TEXT:
            return self._utf8(self._string(major, number))
        if major == _MAP:
            return self._map(number, _deeper(depth), later)
        if major == _ARRAY:
            return self._array(number, _deeper(depth), later)
        if major == _PRIMITIVE:
            return self._primitive(info, number)
        return self._integer(major, number)

    def skip(self) -> None:
        """Pass over an item."""
        open_: list[int] = [1]
        """Items that are still to come of each collection that has begun."""
        while open_:
            if open_[-1] == _INDEFINITE and self._ends():
                open_.pop()
                continue
            if open_[-1] == 0:
                open_.pop()
                continue
            major, _, number = self.head()
            if major == _TAG:
                continue
            if open_[-1] > 0:
                open_[-1] -= 1
            if major in (_BYTES, _TEXT):
                self._string(major, number)
            elif major in (_ARRAY, _MAP):
                members = 2 * number if major == _MAP and number > 0 else number
                open_.append(members)

    def head(self) -> tuple[int, int, int]:
        """The type of an item, the size of its argument and the argument."""
        data, at = self.data, self.at
        if at >= len(data):
            raise MalformedCbor(_END)
        major, info = data[at] >> 5, data[at] & 31
        self.at = at = at + 1
        if info < 24:
            return major, info, info
        if info < 28:
            self.at = end = at + (1 << (info - 24))
            if end > len(data):
                raise MalformedCbor(_END)
            return major, info, int.from_bytes(data[at:end], "big")
        if info == 31 and major == _PRIMITIVE:
            raise MalformedCbor('cbor: unexpected "break" code')
        if info == 31 and major in (_BYTES, _TEXT, _ARRAY, _MAP):
            return major, info, _INDEFINITE
        text = f"cbor: invalid additional information {info} for type {_TYPES[major]}"
        raise MalformedCbor(text)

    def _refuse(self, text: str) -> None:
        self.problem = self.problem or text

    def _string(self, major: int, length: int) -> bytes:
        if length == _INDEFINITE:
            return b"".join(self._chunks(major))
        if length >= _LONGEST:
            text = f"cbor: {_TYPES[major]} length {length} is too large, causing integer overflow"
            raise MalformedCbor(text)
        start, end = self.at, self.at + length
        if end > len(self.data):
            raise MalformedCbor(_END)
        self.at = end
        return self.data[start:end]

    def _chunks(self, major: int) -> Iterator[bytes]:
        while not self._ends():
            found, _, length = self.head()
            if found != major:
                raise MalformedCbor(
                    f"cbor: wrong element type {_TYPES[found]} for indefinite-length "
                    f"{_TYPES[major]}"
                )
            if length == _INDEFINITE:
                text = f"cbor: indefinite-length {_TYPES[major]} chunk is not definite-length"
                raise MalformedCbor(text)
            yield self._string(major, length)

    def _ends(self) -> bool:
        """Whether an item of indefinite length ends here."""
        if self.at >= len(self.data):
            raise MalformedCbor(_END)
        ended = self.data[self.at] == _BREAK
        self.at += ended
        return ended

    def _utf8(self, data: bytes) -> str:
        try:
            return data.decode()
        except UnicodeDecodeError:
            self._refuse("cbor: invalid UTF-8 string")
            return ""

    def _positions(self, major: int, length: int) -> Iterator[int]:
        if length >= _LONGEST:
            raise MalformedCbor(
                f"cbor: {_TYPES[major]} length {length} is too large, it would cause integer "
                "overflow"
            )
        at = 0
        while at < length if length != _INDEFINITE else not self._ends():
            yield at
            at += 1

    def _array(self, length: int, depth: int, later: Encoding | None) -> list[Any]:
        found: list[Any] = []
        self._make_room()
        for _ in self._positions(_ARRAY, length):
            found.append(self.item(depth, later))  # noqa: PERF401 - a frame less for each level
        return found

    def _map(self, length: int, depth: int, later: Encoding | None) -> dict[str, Any]:
        found: dict[str, Any] = {}
        self._make_room()
        for position in self._positions(_MAP, length):
            key = self._key(depth, later)
            value = self.item(depth, later)
            if key in found and not self.problem:
                self.problem = (
                    f"cbor: found duplicate map key {go_quote(key)} at map element index {position}"
                )
                self.at_top = depth == 1
            found.setdefault(key, value)
        return found

    def _make_room(self) -> None:
        self.room -= 1
        if self.room < 0:
            raise RequestTooLarge("the object has more maps and lists than JSON of that size")

    def _key(self, depth: int, later: Encoding | None) -> str:
        start = self.at
        key = self.item(depth, later)
        if isinstance(key, str):
            return key
        kind = type_name(self.data[start : self.at])
        self._refuse(f"cbor: cannot unmarshal {kind} into Go value of type string")
        return ""

    def _integer(self, major: int, number: int) -> int:
        value = number if major == _POSITIVE else -1 - number
        if number >= _LONGEST:
            self._refuse(
                f"cbor: cannot unmarshal {_TYPES[major]} into Go value of type int64 "
                f"({value} overflows Go's int64)"
            )
        return value

    def _time(self, number: int, depth: int) -> str:
        start = self.at
        major, info, _ = self.head()
        self.at = start
        wanted = "text string" if number == _TIME_TEXT else "integer or floating-point number"
        fits = major == _TEXT
        if number == _TIME_EPOCH:
            fits = major in (_POSITIVE, _NEGATIVE) or (major == _PRIMITIVE and info in _FLOATS)
        # What does not fit may begin with such a tag again: it counts as a level.
        value = self.item(depth if fits else _deeper(depth), None)
        if not fits:
            told = f"cbor: tag number {number} must be followed by {wanted}, got {_TYPES[major]}"
            self._refuse(told)
            return ""
        try:
            return rfc3339_text(value) if number == _TIME_TEXT else epoch_text(value)
        except TimeError as error:
            self._refuse(f"cbor: {error}")
            return ""

    def _primitive(self, info: int, number: int) -> float | bool | None:
        if info in _FLOATS:
            return self._float(_FLOATS[info], 1 << (info - 24))
        if info == 24 and number < 32:
            raise MalformedCbor(f"cbor: invalid simple value {number} for type primitives")
        if number not in _SIMPLE:
            text = f"simple value {number} is not recognized"
            self._refuse(_UNWANTED.format("primitives") + text)
        return _SIMPLE.get(number)

    def _float(self, form: str, size: int) -> float:
        value: float = unpack(form, self.data[self.at - size : self.at])[0]
        if math.isfinite(value):
            return value
        what = "NaN" if math.isnan(value) else "infinity"
        raise MalformedCbor(f"{_UNWANTED.format('primitives')}floating-point {what}")


def _deeper(depth: int) -> int:
    if depth >= MAX_DEPTH:
        raise MalformedCbor(f"cbor: exceeded max nested level {MAX_DEPTH}")
    return depth + 1
