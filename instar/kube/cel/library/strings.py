"""CEL strings extension, version 2. Positions count code points.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from instar.kube.cel.checking.cost_ranges import MOST, Range
from instar.kube.cel.functions import (
    TRAVERSAL,
    Argument,
    CallSite,
    CostEstimate,
    Overload,
    estimated_same_size,
    first_argument_cost,
    function,
    method,
    read_write_cost,
)
from instar.kube.cel.library.formatting import format_text
from instar.kube.cel.library.lists import estimated_traversal, traversal_cost
from instar.kube.cel.syntax.ast import Const
from instar.kube.cel.types import DYN, INT, STRING, Type, list_of
from instar.kube.cel.values import CelError, CostExceeded, as_list, size_of

_SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_LONGEST = 1 << 24
_TEXTS = list_of(STRING)
_QUOTED = str.maketrans(
    {
        "\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
        "\v": "\\v", "\\": "\\\\", '"': '\\"',
    }
)  # fmt: skip
_TO_LOWER = str.maketrans({chr(c): chr(c + 32) for c in range(65, 91)})
_TO_UPPER = str.maketrans({chr(c): chr(c - 32) for c in range(97, 123)})


def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if start is None:
        return text.rfind(part) if part else len(text)
    if not part:
        return start
    if start < 0:
        raise CelError(f"index out of range: {start}")
    return -1 if start >= len(text) else text.rfind(part, 0, start + len(part))


def _substring(text: str, start: int, end: int | None = None) -> str:
    stop = len(text) if end is None else end
    if end is not None and start > stop:
        raise CelError(f"invalid substring range. start: {start}, end: {stop}")
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= stop <= len(text):
        raise CelError(f"index out of range: {stop}")
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
    _check_length(sum(map(len, items)) + len(items) * len(separator))
    return separator.join(items)


def _replace(text: str, old: str, new: str, limit: int = -1) -> str:
    count = text.count(old) if limit < 0 else min(text.count(old), limit)
    _check_length(len(text) + count * (len(new) - len(old)))
    return text.replace(old, new, limit)


def _check_length(length: int) -> None:
    """Limit a result's length: its memory is not covered by the cost of the arguments (10 GB
    from two strings)."""
    if length > _LONGEST:
        raise CostExceeded


def _quote(text: str) -> str:
    return '"' + text.translate(_QUOTED) + '"'


def _estimated_replace(site: CallSite) -> CostEstimate:
    text, old, new = site.receiver(), site.args[0].known(), site.args[1].known()
    most = _replacement_counts(text.high, old.low, new.high, longer=new.high > old.low)
    least = _replacement_counts(text.low, old.high, new.low, longer=new.low < old.high)
    count, kept = Range(least[0], most[0]), Range(least[1], most[1])
    return CostEstimate(text.scaled(2 * TRAVERSAL), count.times(new).plus(kept))


def _replacement_counts(text: int, old: int, new: int, *, longer: bool) -> tuple[int, int]:
    """Return the number of replacements in the cost, and the part of the text that adds to it."""
    if old == 0:
        return min(text + 1, MOST), text
    return (-(-text // old), 0) if longer else (0, text)


def _estimated_split(site: CallSite) -> CostEstimate:
    text = site.receiver()
    most = text.high
    if len(site.args) > 1:
        most = _literal_int(site.args[1], most)
    return CostEstimate(text.scaled(2 * TRAVERSAL), Range(0, most))


def _literal_int(argument: Argument, otherwise: int) -> int:
    node = argument.node
    if isinstance(node, Const) and type(node.value) is int:
        return node.value & MOST
    return otherwise


def _estimated_join(site: CallSite) -> CostEstimate:
    parts = site.receiver()
    size = parts.times(site.element()[1])
    if site.args:
        between = Range(max(parts.low - 1, 0), max(parts.high - 1, 0))
        size = size.plus(site.args[0].known().times(between))
    return CostEstimate(size.scaled(TRAVERSAL), size)


def _estimated_quote(site: CallSite) -> CostEstimate:
    size = site.args[0].known()
    longest = size.high * 2 + 2 & MOST
    return CostEstimate(size.scaled(TRAVERSAL), Range(size.low + 2, longest))


def _estimated_format(site: CallSite) -> CostEstimate:
    return CostEstimate(site.receiver().scaled(TRAVERSAL))


def _join_cost(_values: Sequence[Any], result: Any) -> int:
    return read_write_cost(size_of(result))


def _same_size_method(name: str, params: tuple[Type, ...], impl: Callable[..., str]) -> Overload:
    return method(
        name,
        params,
        STRING,
        impl,
        work=first_argument_cost,
        estimate=estimated_same_size,
        by_name=True,
    )


def _replace_method(*more: Type) -> Overload:
    return method(
        "replace",
        (STRING, STRING, STRING, *more),
        STRING,
        _replace,
        work=read_write_cost,
        estimate=_estimated_replace,
        by_name=True,
    )


def _split_method(*more: Type) -> Overload:
    return method(
        "split",
        (STRING, STRING, *more),
        _TEXTS,
        _split,
        work=read_write_cost,
        estimate=_estimated_split,
        by_name=True,
    )


def _join_method(*more: Type) -> Overload:
    return method(
        "join",
        (_TEXTS, *more),
        STRING,
        _join,
        weigh=_join_cost,
        estimate=_estimated_join,
        by_name=True,
    )


def _index_method(name: str, impl: Callable[..., int], *more: Type) -> Overload:
    return method(
        name,
        (STRING, STRING, *more),
        INT,
        impl,
        weigh=traversal_cost,
        estimate=estimated_traversal,
        by_name=True,
    )


def overloads() -> list[Overload]:
    return [
        method("charAt", (STRING, INT), STRING, _char_at),
        _index_method("indexOf", _index_of),
        _index_method("indexOf", _index_of, INT),
        _index_method("lastIndexOf", _last_index_of),
        _index_method("lastIndexOf", _last_index_of, INT),
        _same_size_method("lowerAscii", (STRING,), lambda text: text.translate(_TO_LOWER)),
        _same_size_method("upperAscii", (STRING,), lambda text: text.translate(_TO_UPPER)),
        _same_size_method("trim", (STRING,), lambda text: text.strip(_SPACE)),
        _same_size_method("substring", (STRING, INT), _substring),
        _same_size_method("substring", (STRING, INT, INT), _substring),
        _replace_method(),
        _replace_method(INT),
        _split_method(),
        _split_method(INT),
        _join_method(),
        _join_method(STRING),
        method(
            "format",
            (STRING, list_of(DYN)),
            STRING,
            format_text,
            work=first_argument_cost,
            estimate=_estimated_format,
        ),
        function(
            "strings.quote",
            (STRING,),
            STRING,
            _quote,
            work=first_argument_cost,
            estimate=_estimated_quote,
        ),
    ]
