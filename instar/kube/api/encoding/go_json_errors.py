"""Error messages of Go's JSON decoder for invalid JSON and wrong types.

Called by ``json_text.py`` and ``object_text.py`` (request bodies), ``kube/patches/documents.py``
and the parsers of reviews after orjson has rejected a text, because clients and tests compare
messages with Go's.
"""

from __future__ import annotations

import re
from typing import Any

import re2

from instar.base.field_errors import go_quote

TOO_DEEP = "exceeded max depth"
END = "unexpected end of JSON input"
_SPACE = frozenset(b" \t\r\n")
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_ESCAPE_CHARACTERS = b'"\\/bfnrt'
_DIGITS = b"0123456789"
_HEX = b"0123456789abcdefABCDEF"
_FAR_OFFSET = 1 << 16
"""An error beyond this offset is looked for from a position shortly before it."""


def _linear(pattern: bytes) -> Any:
    """Compile with RE2, so that an unterminated string of escapes takes linear time."""
    options = re2.Options()
    options.encoding = re2.Options.Encoding.LATIN1
    options.dot_nl = True
    return re2.compile(pattern, options)


_STRING = _linear(rb'"(?:[^"\\]|\\.)*"?')
_WELL_FORMED = _linear(rb'"(?:[^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*')
_STRUCTURE = re.compile(rb'"[^"\\]*["\\]?|[\[\]{},]')
_DIGIT_RUN = re.compile(rb"[0-9]*")
_NUMBER = re.compile(rb"-?(?:0|[1-9][0-9]*)(?=[,\]}\s])")
_SPACES = re.compile(rb"[ \t\r\n]*")


_MAX_DEPTH = 1000
"""orjson fails a little above this depth; errors behind it are not searched for."""
_SURROGATE = re.compile(rb"\\u[dD][89abcdefABCDEF][0-9a-fA-F]{2}")


class _InvalidJson(Exception):
    pass


def go_type(value: Any) -> str:
    """Return a JSON value's type as Go's decoder names it."""
    match value:
        case bool():
            return "bool"
        case int() | float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "null"


_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


def go_value_type(value: Any) -> str:
    """Return Go's ``%T`` of a decoded JSON value; a Python converter may return other types."""
    return _GO_TYPES.get(type(value), type(value).__name__)


def syntax_error(data: bytes, near: int = 0) -> str:
    """Return Go's message for the first syntax error, or for text that Go accepts and orjson does
    not.

    ``near`` is where orjson failed: text well before it is valid, so only its brackets are counted.
    """
    scanner = _Scanner(data)
    try:
        scanner.document(near)
    except _InvalidJson as broken:
        return str(broken)
    return _rejected_by_orjson(data)


def _rejected_by_orjson(data: bytes) -> str:
    """Return the message for JSON that Go's scanner accepts: half a surrogate pair, or a number
    beyond float64."""
    if _SURROGATE.search(data):
        return "invalid surrogate pair in string literal"
    return "json: cannot unmarshal number into Go value of type float64"


class _Scanner:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def document(self, near: int) -> None:
        """Scan the document with an explicit stack of containers instead of recursion."""
        stack: list[int] = []
        if near < _FAR_OFFSET or not self._skip(stack, near - _FAR_OFFSET // 2):
            self._value(stack)
        while stack:
            self._after_value(stack)
        if self._peek() is not None:
            self._fail("after top-level value")

    def _skip(self, stack: list[int], until: int) -> bool:
        """Continue after the first value that ends after ``until``; False (and no change) if none
        does."""
        data, at = self._data, 0
        while (token := _STRUCTURE.search(data, at)) is not None:
            start, at = token.span()
            byte = data[start]
            if data[at - 1] == ord("\\"):
                at = _STRING.match(data, start).end()
            elif byte in b"[{":
                stack.append(byte)
            elif byte in b"]}" and stack:
                stack.pop()
            elif byte == ord(",") and start > until:
                self._at = start
                return True
        stack.clear()
        return False

    def _after_value(self, stack: list[int]) -> None:
        byte = self._peek()
        in_object = stack[-1] == ord("{")
        where = "after object key:value pair" if in_object else "after array element"
        if byte == (ord("}") if in_object else ord("]")):
            self._at += 1
            stack.pop()
        elif byte == ord(","):
            self._at += 1
            if in_object:
                self._key()
            self._value(stack)
        else:
            self._fail(where)

    def _value(self, stack: list[int]) -> None:
        byte = self._peek()
        while byte in (ord("{"), ord("[")):
            self._at += 1
            closing = ord("}") if byte == ord("{") else ord("]")
            if self._peek() == closing:
                self._at += 1
                return
            stack.append(byte)
            if len(stack) > _MAX_DEPTH:
                raise _InvalidJson(TOO_DEEP)
            if byte == ord("{"):
                self._key()
            byte = self._peek()
        if byte == ord('"'):
            self._string()
        elif byte in _LITERALS:
            self._literal(_LITERALS[byte])
        elif byte is not None and (byte in _DIGITS or byte == ord("-")):
            self._number()
        else:
            self._fail("looking for beginning of value")

    def _key(self) -> None:
        if self._peek() != ord('"'):
            self._fail("looking for beginning of object key string")
        self._string()
        if self._peek() != ord(":"):
            self._fail("after object key")
        self._at += 1

    def _string(self) -> None:
        """Move past the closing quote, or to the first invalid byte."""
        self._at = _WELL_FORMED.match(self._data, self._at).end()
        byte = self._byte()
        if byte == ord("\\"):
            self._escape()
        elif byte != ord('"'):
            self._fail("in string literal")
        self._at += 1

    def _escape(self) -> None:
        self._at += 1
        byte = self._byte()
        if byte == ord("u"):
            for _ in range(4):
                self._at += 1
                if self._byte() not in _HEX:
                    self._fail("in \\u hexadecimal character escape")
        elif byte not in _ESCAPE_CHARACTERS:
            self._fail("in string escape code")

    def _literal(self, word: bytes) -> None:
        for position, expected in enumerate(word):
            if self._byte() != expected:
                self._fail(f"in literal {word.decode()} (expecting '{chr(word[position])}')")
            self._at += 1

    def _number(self) -> None:
        whole = _NUMBER.match(self._data, self._at)
        if whole is not None:
            self._at = whole.end()
            return
        if self._byte() == ord("-"):
            self._at += 1
            if self._byte() not in _DIGITS:
                self._fail("in numeric literal")
        if self._byte() == ord("0"):
            self._at += 1
        else:
            self._digits()
        if self._raw() == ord("."):
            self._at += 1
            if self._byte() not in _DIGITS:
                self._fail("after decimal point in numeric literal")
            self._digits()
        if self._raw() in (ord("e"), ord("E")):
            self._at += 1
            if self._byte() in b"+-":
                self._at += 1
            if self._byte() not in _DIGITS:
                self._fail("in exponent of numeric literal")
            self._digits()

    def _digits(self) -> None:
        digits = _DIGIT_RUN.match(self._data, self._at)
        self._at = digits.end() if digits is not None else self._at

    def _peek(self) -> int | None:
        if self._raw() in _SPACE:
            spaces = _SPACES.match(self._data, self._at)
            self._at = spaces.end() if spaces is not None else self._at
        return self._raw()

    def _raw(self) -> int | None:
        return self._data[self._at] if self._at < len(self._data) else None

    def _byte(self) -> int:
        byte = self._raw()
        if byte is None:
            raise _InvalidJson(END)
        return byte

    def _fail(self, where: str) -> None:
        byte = self._byte()
        shown = "'\\''" if byte == 0x27 else "'\"'" if byte == 0x22 else _quoted_byte(byte)
        raise _InvalidJson(f"invalid character {shown} {where}")


def _quoted_byte(byte: int) -> str:
    return "'" + go_quote(chr(byte))[1:-1] + "'"
