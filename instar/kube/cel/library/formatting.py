"""CEL's ``'text %s'.format([...])``: the clauses %s %d %f %e %b %x %X %o and ``%%``.

Called by ``strings.py``, and by ``checking/literal_validators.py`` for literal templates.
Kubernetes uses version 2 of this library: ``%f`` and ``%e`` write numbers in American English, with
commas between thousands, ``×10⁰³`` and ``∞``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import isinf, isnan
from typing import Any, NamedTuple

from instar.base.field_errors import go_quote
from instar.kube.cel.go_text import double_text
from instar.kube.cel.syntax.ast import CallNode, Const, ListLiteral, MapLiteral, Node
from instar.kube.cel.syntax.issues import Issue
from instar.kube.cel.time_text import format_duration, format_timestamp
from instar.kube.cel.types import CelKind, Type, runtime_name
from instar.kube.cel.values import (
    CelError,
    CostExceeded,
    Duration,
    Flag,
    Timestamp,
    TypeValue,
    as_list,
    is_list,
    type_name,
)

_DEFAULT_PRECISION = 6
_MAX_PRECISION = 1 << 16
_EXPONENT = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_SPECIAL_TEXTS = ("NaN", "Infinity", "-Infinity")


class _Clause(NamedTuple):
    """The value types that a clause accepts, its error for others, and its writer."""

    complaint: str
    kinds: frozenset[str]
    write: Callable[[Any, int | None], str]


def format_text(template: str, arguments: Any) -> str:
    values = as_list(arguments)
    out: list[str] = []
    position = at = 0
    while (mark := template.find("%", at)) >= 0:
        out.append(template[at:mark])
        if template.startswith("%%", mark):
            out.append("%")
            at = mark + 2
            continue
        if position >= len(values):
            raise CelError(f"index {position} out of range")
        clause, precision, at = _read_clause(template, mark)
        out.append(_formatted(clause, values[position], precision))
        position += 1
    out.append(template[at:])
    return "".join(out)


def _formatted(clause: _Clause, value: Any, precision: int | None) -> str:
    kind = type_name(value)
    if kind not in clause.kinds and not (clause.kinds == _DOUBLE and value in _SPECIAL_TEXTS):
        raise CelError(f"error during formatting: {clause.complaint}, was given {kind}")
    return clause.write(value, precision)


def _read_clause(template: str, mark: int) -> tuple[_Clause, int | None, int]:
    """Parse the clause at the percent sign ``mark``; return it with its end."""
    at = mark + 1
    if at >= len(template):
        raise CelError("unexpected end of string")
    precision: int | None = None
    if template[at] == ".":
        precision, at = _read_precision(template, at + 1)
    verb = template[at]
    if verb not in _VERBS:
        raise _unreadable(f'unrecognized formatting clause "{verb}"')
    return _VERBS[verb], precision, at + 1


def _read_precision(template: str, start: int) -> tuple[int, int]:
    at = start
    while at < len(template) and template[at] in "0123456789":
        at += 1
    if at >= len(template):
        raise _unreadable(
            "error while parsing precision: could not find end of precision specifier"
        )
    digits = template[start:at]
    if not digits:
        text = "error while converting precision to integer"
        raise _unreadable(
            f'error while parsing precision: {text}: strconv.Atoi: parsing "": invalid syntax'
        )
    if len(digits) > 8 or int(digits) > _MAX_PRECISION:
        raise CostExceeded
    return int(digits), at


def _unreadable(text: str) -> CelError:
    return CelError(f"could not parse formatting clause: {text}")


# Checks at compile time.


def format_issues(node: CallNode, types: Mapping[int, Type]) -> Iterator[Issue]:
    """Yield the errors of a literal template with a literal list of arguments."""
    template, arguments = node.target, node.args[0]
    if not isinstance(template, Const) or not isinstance(arguments, ListLiteral):
        return
    if type(template.value) is not str:
        return
    try:
        yield from _clause_issues(node.pos, template.value, arguments.items, types)
    except CelError as error:
        yield Issue(node.pos, str(error))


def _clause_issues(
    pos: int, template: str, items: list[Node], types: Mapping[int, Type]
) -> Iterator[Issue]:
    position = at = 0
    while (mark := template.find("%", at)) >= 0:
        if template.startswith("%%", mark):
            at = mark + 2
            continue
        if mark + 1 < len(template) and position >= len(items):
            raise CelError(f"index {position} out of range")
        clause, _, at = _read_clause(template, mark)
        wrong = _unfit(clause, items[position], types)
        if wrong is not None:
            text = f"error during formatting: {clause.complaint}, was given"
            yield Issue(wrong.pos, f"{text} {runtime_name(types[id(wrong)].name)}")
            return
        position += 1
    if len(items) > position:
        counts = f"(expected {position}, got {len(items)})"
        yield Issue(pos, f"too many arguments supplied to string.format {counts}")


def _unfit(clause: _Clause, item: Node, types: Mapping[int, Type]) -> Node | None:
    """Return the first node that the clause cannot write; %s looks into literals."""
    todo = [item]
    while todo:
        node = todo.pop()
        found = types[id(node)]
        name = runtime_name(found.name)
        text_allowed = clause.kinds == _DOUBLE and name == "string"
        if found.kind is not CelKind.DYN and name not in clause.kinds and not text_allowed:
            return node
        if clause.complaint != _STRING:
            return None
        if isinstance(node, ListLiteral):
            todo += reversed(node.items)
        elif isinstance(node, MapLiteral):
            parts = [part for entry in node.entries for part in (entry.key, entry.value)]
            todo += reversed(parts)
    return None


# Writers of the clauses.


def show(value: Any) -> str:
    """Return a value as ``%s`` writes it."""
    match value:
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case Flag():
            return show(value.value)
        case None:
            return "null"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case bytes():
            return _utf8(value)
        case Duration():
            return format_duration(value.nanos)
        case Timestamp():
            return format_timestamp(value.nanos, value.offset)
        case TypeValue():
            return value.name
    if is_list(value):
        return "[" + ", ".join(_inside(item) for item in value) + "]"
    pairs = sorted((_key(name), _inside(item)) for name, item in value.items())
    return "{" + ", ".join(f"{name}:{item}" for name, item in pairs) + "}"


def _utf8(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("error during formatting: could not convert argument to string") from None


def _inside(value: Any) -> str:
    """Return a value inside a list or map, as CEL source."""
    match value:
        case str():
            return go_quote(value)
        case bytes():
            return "b" + go_quote(_utf8(value))
        case float():
            text = _fixed(value, _DEFAULT_PRECISION, group=False)
            return go_quote(text) if isnan(value) or isinf(value) else text
        case Duration():
            return f'duration("{format_duration(value.nanos)}")'
        case Timestamp():
            return f'timestamp("{format_timestamp(value.nanos, value.offset)}")'
    if type_name(value) not in _STRING_KINDS:
        raise CelError(f"error during formatting: no formatting function for {type_name(value)}")
    return show(value)


def _key(value: Any) -> str:
    if isinstance(value, (int, Flag)):
        return show(value)
    if isinstance(value, str):
        return go_quote(value)
    kind = type_name(value)
    raise CelError(f"error during formatting: no formatting function for map key of type {kind}")


def _fixed(number: float, precision: int, *, group: bool = True) -> str:
    special = _special(number, "∞" if group else "Inf")
    if special is not None:
        return special if group or number != float("inf") else f"+{special}"
    return f"{number:,.{precision}f}" if group else f"{number:.{precision}f}"


def _special(number: float, infinity: str) -> str | None:
    if isnan(number):
        return "NaN"
    if isinf(number):
        return infinity if number > 0 else f"-{infinity}"
    return None


def _number(value: Any) -> float:
    return float(value)


def _write_fixed(value: Any, precision: int | None) -> str:
    return _fixed(_number(value), _DEFAULT_PRECISION if precision is None else precision)


def _write_scientific(value: Any, precision: int | None) -> str:
    """Write ``%e``; upstream uses the precision as a width, and always writes six decimals."""
    number = _number(value)
    width = _DEFAULT_PRECISION if precision is None else precision
    special = _special(number, "∞")
    if special is not None:
        return special.rjust(width)
    mantissa, _, exponent = f"{number:.{_DEFAULT_PRECISION}e}".partition("e")
    sign = "-" if exponent.startswith("-") else ""
    power = f"{sign}{exponent.lstrip('+-')}".translate(_EXPONENT)
    return f"{mantissa}×10{power}".rjust(width)


def _write_hex(value: Any, _precision: int | None) -> str:
    if isinstance(value, str):
        return value.encode().hex()
    return value.hex() if isinstance(value, bytes) else format(int(value), "x")


_INTEGERS = frozenset({"int", "uint"})
_STRING_KINDS = _INTEGERS | {
    *("list", "map", "double", "bool", "string", "bytes", "type", "null_type"),
    *("google.protobuf.Timestamp", "google.protobuf.Duration"),
}
_STRING = (
    "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, "
    "durations, and timestamps"
)
_FIXED = "fixed-point clause can only be used on doubles"
_SCIENTIFIC = "scientific clause can only be used on doubles"
_HEX = "only integers, byte buffers, and strings can be formatted as hex"
_DOUBLE = frozenset({"double"})
_HEXABLE = _INTEGERS | {"string", "bytes"}

_VERBS: dict[str, _Clause] = {
    "s": _Clause(_STRING, _STRING_KINDS, lambda value, _precision: show(value)),
    "d": _Clause(
        "decimal clause can only be used on integers",
        _INTEGERS,
        lambda value, _precision: str(int(value)),
    ),
    "f": _Clause(_FIXED, _DOUBLE, _write_fixed),
    "e": _Clause(_SCIENTIFIC, _DOUBLE, _write_scientific),
    "b": _Clause(
        "only integers and bools can be formatted as binary",
        _INTEGERS | {"bool"},
        lambda value, _precision: format(int(value), "b"),
    ),
    "o": _Clause(
        "octal clause can only be used on integers",
        _INTEGERS,
        lambda value, _precision: format(int(value), "o"),
    ),
    "x": _Clause(_HEX, _HEXABLE, _write_hex),
    "X": _Clause(_HEX, _HEXABLE, lambda value, precision: _write_hex(value, precision).upper()),
}
