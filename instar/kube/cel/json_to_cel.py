"""Converters from raw JSON to CEL values, one per schema type.

Called by ``kube/schema/cel_rules/declare.py``, which puts them into ``Declared``. Data that does
not fit its type raises a CelError when an expression reads it, not earlier.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from typing import Any

from instar.kube.cel.declared_types import Declared
from instar.kube.cel.time_text import parse_loose_duration, parse_timestamp
from instar.kube.cel.values import CelError, Duration, ListValue, MapValue, ObjectValue, Timestamp

Convert = Callable[[Any], Any]
_GO_NAMES = {
    bool: "bool", int: "int64", float: "float64", str: "string",
    list: "[]interface {}", dict: "map[string]interface {}",
}  # fmt: skip
_NOT_URL_SAFE = re.compile(r"[^A-Za-z0-9_=-]")


def misfit(expected: str, raw: Any) -> CelError:
    """Return the error for data that does not fit its declared type."""
    if raw is None:
        return CelError("invalid data, got null for schema with nullable=false")
    found = _GO_NAMES.get(type(raw), type(raw).__name__)
    return CelError(f"invalid data, expected {expected}, got {found}")


def plain(kind: type, expected: str) -> Convert:
    def convert(raw: Any) -> Any:
        if type(raw) is kind:
            return raw
        raise misfit(expected, raw)

    return convert


def to_double(raw: Any) -> float:
    if type(raw) is float or type(raw) is int:
        return float(raw)
    raise misfit("float", raw)


def to_scalar(raw: Any) -> Any:
    """Convert an int-or-string value."""
    if type(raw) is int or type(raw) is str:
        return raw
    if raw is None:
        raise misfit("", raw)
    raise CelError("invalid data, expected XIntOrString value to be either a string or integer")


def to_bytes(raw: Any) -> bytes:
    text = _text(raw)
    # Upstream decodes with the URL-safe alphabet although the schema specifies the standard one.
    wrong = _NOT_URL_SAFE.search(text)
    try:
        if wrong is None:
            return base64.urlsafe_b64decode(text)
        at = wrong.start()
    except (binascii.Error, ValueError):
        at = len(text)
    detail = f"illegal base64 data at input byte {at}"
    raise CelError(f"Invalid byte formatted string {text}: {detail}")


def to_timestamp(raw: Any) -> Timestamp:
    text = _text(raw)
    parsed = parse_timestamp(text)
    if parsed is None:
        raise CelError(f'Invalid date-time formatted string {text}: parsing time "{text}"')
    return Timestamp(*parsed)


def to_date(raw: Any) -> Timestamp:
    text = _text(raw)
    parsed = parse_timestamp(f"{text}T00:00:00Z")
    if parsed is None:
        raise CelError(f'Invalid date formatted string {text}: parsing time "{text}"')
    return Timestamp(*parsed)


def to_duration(raw: Any) -> Duration:
    text = _text(raw)
    try:
        return Duration(parse_loose_duration(text))
    except ValueError as error:
        raise CelError(f"Invalid duration {text}: {error}") from None


def _text(raw: Any) -> str:
    if type(raw) is str:
        return raw
    raise misfit("string", raw)


def _wrong_container(expected: str, kind: str, raw: Any) -> CelError:
    if raw is None:
        return misfit(expected, raw)
    return CelError(f"invalid data, expected {expected} for the provided schema with type={kind}")


def to_object(declared: Declared) -> Convert:
    def convert(raw: Any) -> ObjectValue:
        if type(raw) is dict:
            return ObjectValue(raw, declared)
        raise _wrong_container("a map", "object", raw)

    return convert


def to_map(declared: Declared) -> Convert:
    def convert(raw: Any) -> MapValue:
        if type(raw) is dict:
            return MapValue(raw, declared)
        raise _wrong_container("a map", "object", raw)

    return convert


def to_list(declared: Declared) -> Convert:
    def convert(raw: Any) -> ListValue:
        if type(raw) is list:
            return ListValue(raw, declared)
        raise _wrong_container("an array", "array", raw)

    return convert


def or_null(convert: Convert) -> Convert:
    """Return a converter that also accepts null."""
    return lambda raw: None if raw is None else convert(raw)
