"""The strings extension, version 2. Positions count code points."""

from __future__ import annotations

from typing import Any

from instar.cel.functions import (
    Overload,
    Shape,
    function,
    method,
    per_byte,
    pieces_shape,
    rewritten,
    same_shape,
)
from instar.cel.library.formatting import format_text
from instar.cel.types import DYN, INT, STRING, list_of
from instar.cel.values import CelError, CostExceeded, as_list
from instar.fields import go_quote

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_LONGEST = 1 << 24
_TO_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(65, 91)})
_TO_UPPER = str.maketrans({chr(c): chr(c - 32) for c in range(97, 123)})


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part)
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
    if start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    return text[start:stop]


def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if separator == "":
        if limit < 0 or limit >= len(text):
            return list(text)
        return [*text[: limit - 1], text[limit - 1 :]]
    return text.split(separator, limit - 1 if limit > 0 else -1)


def _join(parts: Any, separator: str = "") -> str:
    items = as_list(parts)
    _allow(sum(map(len, items)) + len(items) * len(separator))
    return separator.join(items)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if limit < 0 else min(text.count(old), limit)
    _allow(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new, limit)


def _allow(length: int) -> None:
    """The price follows the arguments, the memory the result: ten gigabytes from two strings."""
    if length > _LONGEST:
        raise CostExceeded


def _join_shape(parts: Shape, separator: Shape | None = None) -> Shape:
    each = (parts.element or Shape(parts.size)).size + (separator.size if separator else 0)
    return Shape(parts.size * each)


def _replace_shape(text: Shape, _old: Shape, new: Shape, _count: Shape | None = None) -> Shape:
    return Shape(text.size * max(new.size, 1) + new.size)


def _quoted_shape(text: Shape) -> Shape:
    return Shape(text.size * 2 + 2)


def _format_shape(template: Shape, arguments: Shape) -> Shape:
    each = (arguments.element or Shape(arguments.size)).size
    return Shape(template.size + arguments.size * each)


def overloads() -> list[Overload]:
    texts = list_of(STRING)
    return [
        method("charAt", (STRING, INT), STRING, _char_at, shape=lambda *_: Shape(4)),
        method("indexOf", (STRING, STRING), INT, _index_of, work=per_byte),
        method("indexOf", (STRING, STRING, INT), INT, _index_of, work=per_byte),
        method("lastIndexOf", (STRING, STRING), INT, _last_index_of, work=per_byte),
        method(
            "lastIndexOf",
            (STRING, STRING, INT),
            INT,
            _last_index_of,
            work=per_byte,
        ),
        method(
            "lowerAscii",
            (STRING,),
            STRING,
            lambda t: t.translate(_TO_LOWER),
            work=per_byte,
            shape=same_shape,
        ),
        method(
            "upperAscii",
            (STRING,),
            STRING,
            lambda t: t.translate(_TO_UPPER),
            work=per_byte,
            shape=same_shape,
        ),
        method(
            "trim", (STRING,), STRING, lambda t: t.strip(_SPACE), work=per_byte, shape=same_shape
        ),
        method(
            "replace",
            (STRING, STRING, STRING),
            STRING,
            _replace,
            work=rewritten,
            shape=_replace_shape,
        ),
        method(
            "replace",
            (STRING, STRING, STRING, INT),
            STRING,
            _replace,
            work=rewritten,
            shape=_replace_shape,
        ),
        method("split", (STRING, STRING), texts, _split, work=rewritten, shape=pieces_shape),
        method("split", (STRING, STRING, INT), texts, _split, work=rewritten, shape=pieces_shape),
        method("substring", (STRING, INT), STRING, _substring, work=per_byte, shape=same_shape),
        method(
            "substring", (STRING, INT, INT), STRING, _substring, work=per_byte, shape=same_shape
        ),
        method("join", (texts,), STRING, _join, work=rewritten, traverses=True, shape=_join_shape),
        method(
            "join",
            (texts, STRING),
            STRING,
            _join,
            work=rewritten,
            traverses=True,
            shape=_join_shape,
        ),
        method(
            "format",
            (STRING, list_of(DYN)),
            STRING,
            format_text,
            work=per_byte,
            shape=_format_shape,
        ),
        function("strings.quote", (STRING,), STRING, go_quote, work=per_byte, shape=_quoted_shape),
    ]
