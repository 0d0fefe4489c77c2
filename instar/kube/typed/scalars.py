"""Typed decoders of scalars: numbers, texts, bytes, times, quantities, raw JSON.

Called by ``reading.py``.
"""

from __future__ import annotations

import binascii
import re
from base64 import b64decode, b64encode
from collections.abc import Callable
from typing import Any

from instar.base.field_errors import go_quote
from instar.kube.api.encoding.go_base64 import corrupt_at
from instar.kube.protobuf.json_forms import MessageShape
from instar.kube.quantities import QuantityError, canonical_quantity
from instar.kube.schema.metadata.types import MetaError, canonical_time
from instar.kube.typed.errors import Place, TypedError, misfit

Read = Callable[[Any, Place, list[str]], Any]
"""(value, position, unknown paths found so far) → the value as it is stored."""

_INT32, _INT64 = 1 << 31, 1 << 63
_MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_MICRO_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(\.\d{6})(Z|[+-]\d\d:\d\d)", re.ASCII)


def _text(value: Any, place: Place, unknown: list[str]) -> str:
    if type(value) is not str:
        raise misfit(value, place, "string")
    return value


def _boolean(value: Any, place: Place, unknown: list[str]) -> bool:
    if type(value) is not bool:
        raise misfit(value, place, "bool")
    return value


def _integer(bound: int, name: str) -> Read:
    def read(value: Any, place: Place, unknown: list[str]) -> int:
        if type(value) is int:
            if -bound <= value < bound:
                return value
            raise misfit(value, place, name, str(value))
        if type(value) is float:
            if value.is_integer() and -bound <= value < bound:
                return int(value)
            raise misfit(value, place, name, f"{value:g}")
        raise misfit(value, place, name)

    return read


def _double(value: Any, place: Place, unknown: list[str]) -> int | float:
    if type(value) not in (int, float):
        raise misfit(value, place, "float64")
    number: int | float = value
    return number


def _bytes(value: Any, place: Place, unknown: list[str]) -> str:
    """Decode standard base64; line breaks are dropped."""
    if type(value) is not str:
        raise misfit(value, place, "[]uint8")
    text = value.encode().replace(b"\n", b"").replace(b"\r", b"")
    try:
        return b64encode(b64decode(text, validate=True)).decode()
    except (binascii.Error, ValueError):
        raise TypedError(
            f"illegal base64 data at input byte {corrupt_at(value.encode())}"
        ) from None


def _time(value: Any, place: Place, unknown: list[str]) -> Any:
    if type(value) is not str:
        raise misfit(value, place, "string")
    try:
        return canonical_time(value)
    except MetaError as error:
        raise TypedError(str(error)) from None


def _micro_time(value: Any, place: Place, unknown: list[str]) -> Any:
    if type(value) is not str:
        raise misfit(value, place, "string")
    match = _MICRO_TIME.fullmatch(value)
    if match is None:
        raise TypedError(_micro_time_error(value))
    try:
        moment = canonical_time(match[1] + match[3])
    except MetaError as error:
        raise TypedError(str(error)) from None
    return f"{moment[:-1]}{match[2]}Z"


def _micro_time_error(value: str) -> str:
    """Return Go's message: the part of the layout that failed, and the text there."""
    layout = (
        (r"\d{4}", "2006"), ("-", "-"), (r"\d{2}", "01"), ("-", "-"), (r"\d{2}", "02"), ("T", "T"),
        (r"\d{2}", "15"), (":", ":"), (r"\d{2}", "04"), (":", ":"), (r"\d{2}", "05"),
        (r"\.\d{6}(?!\d)", ".000000"), (r"Z|[+-]\d{2}:\d{2}", "Z07:00"),
    )  # fmt: skip
    rest = value
    for pattern, part in layout:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return (
                f'parsing time {go_quote(value)} as "{_MICRO_LAYOUT}": '
                f'cannot parse {go_quote(rest)} as "{part}"'
            )
        rest = rest[match.end() :]
    return f"parsing time {go_quote(value)}: extra text: {go_quote(rest)}"


def _quantity(value: Any, place: Place, unknown: list[str]) -> str:
    if type(value) not in (str, int, float):
        raise TypedError(str(QuantityError(_QUANTITY_FORM)))
    try:
        return canonical_quantity(value)
    except QuantityError as error:
        raise TypedError(str(error)) from None


_QUANTITY_FORM = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def _int_or_string(value: Any, place: Place, unknown: list[str]) -> int | str:
    if type(value) is str:
        return value
    number: int = SCALAR_READERS["int32"](value, place, unknown)
    return number


def _raw(value: Any, place: Place, unknown: list[str]) -> Any:
    return value


SCALAR_READERS: dict[str, Read] = {
    "string": _text,
    "bool": _boolean,
    "int32": _integer(_INT32, "int32"),
    "int64": _integer(_INT64, "int64"),
    "double": _double,
    "bytes": _bytes,
}
SPECIAL_READERS: dict[MessageShape, Read] = {
    MessageShape.TIME: _time,
    MessageShape.MICRO_TIME: _micro_time,
    MessageShape.QUANTITY: _quantity,
    MessageShape.INT_OR_STRING: _int_or_string,
    MessageShape.RAW: _raw,
}
