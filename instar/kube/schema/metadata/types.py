"""Field decoders of ObjectMeta with Go's error messages.

Called by ``object_meta.py``, which decides when to decode, and by ``kube/typed``. A decoder
converts a JSON value to its normal form or raises ``MetaError``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from instar.base.field_errors import go_quote
from instar.base.times import time_text
from instar.kube.api.encoding.go_json_errors import go_type
from instar.kube.schema.validation.numbers import INT64_MAX, INT64_MIN


class MetaError(ValueError):
    """Metadata does not decode; the message is Go's."""


Decoder = Callable[[Any, str, str, list[str]], Any]
"""(value, Go's name of the struct field, path, unknown paths so far) -> normal value.

None means that the field is dropped, as empty fields are.
"""

_RFC3339 = re.compile(
    r"(\d{4})-(\d{2})-(\d{2})T(\d{2}):(\d{2}):(\d{2})(?:[.,]\d+)?(?:Z|([+-])(\d{2}):(\d{2}))",
    re.ASCII,
)
_LAYOUT = "2006-01-02T15:04:05Z07:00"


def wrong(value: Any, where: str, wanted: str) -> MetaError:
    """Return the error of Go's decoder for a value of the wrong JSON type."""
    place = f"Go struct field {where}" if where else "Go value"
    return MetaError(f"json: cannot unmarshal {go_type(value)} into {place} of type {wanted}")


def text(wanted: str = "string") -> Decoder:
    def decode(value: Any, where: str, path: str, unknown: list[str]) -> Any:
        if type(value) is str:
            return value or None
        if value is None:
            return None
        raise wrong(value, where, wanted)

    return decode


def integer(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    if type(value) is int and INT64_MIN <= value <= INT64_MAX:
        return value
    if value is None:
        return None
    if type(value) in (int, float):
        raise MetaError(
            f"json: cannot unmarshal number {value} into Go struct field {where} of type int64"
        )
    raise wrong(value, where, "int64")


def nonzero_integer(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    """Return an integer of metadata; None for 0, which Go leaves out."""
    return integer(value, where, path, unknown) or None


def boolean(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    if value is None or type(value) is bool:
        return value
    raise wrong(value, where, "bool")


def time(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    if type(value) is not str:
        raise wrong(value, where, "string")
    return canonical_time(value)


def canonical_time(value: str) -> str:
    """Return RFC 3339 in UTC with whole seconds, which is how times are stored."""
    match = _RFC3339.fullmatch(value)
    if match is None:
        raise MetaError(_time_text(value))
    *digits, sign, hours, minutes = match.groups()
    year, month, day, hour, minute, second = (int(part) for part in digits)
    try:
        moment = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
        if sign:
            offset = timedelta(hours=int(hours), minutes=int(minutes))
            moment = moment - offset if sign == "+" else moment + offset
    except ValueError:
        what = _first_out_of_range(year, month, hour, minute, second)
        raise MetaError(f"parsing time {go_quote(value)}: {what} out of range") from None
    except OverflowError:
        raise MetaError(f"parsing time {go_quote(value)}: year out of range") from None
    return time_text(moment)


def _first_out_of_range(year: int, month: int, hour: int, minute: int, second: int) -> str:
    """Return the part that Go reports, in Go's order; the day is last, because it depends on the
    month."""
    parts = (
        ("year", year, 1, 9999),
        ("month", month, 1, 12),
        ("hour", hour, 0, 23),
        ("minute", minute, 0, 59),
        ("second", second, 0, 59),
    )
    return next((word for word, part, least, most in parts if not least <= part <= most), "day")


_TIME_PARTS = (
    (r"\d{4}", "2006"),
    ("-", "-"),
    (r"\d{2}", "01"),
    ("-", "-"),
    (r"\d{2}", "02"),
    ("T", "T"),
    (r"\d{2}", "15"),
    (":", ":"),
    (r"\d{2}", "04"),
    (":", ":"),
    (r"\d{2}(?:[.,]\d+)?", "05"),
    (r"Z|[+-]\d{2}:\d{2}", "Z07:00"),
)


def _time_text(value: str) -> str:
    """Return where Go's parser fails: the part of the layout and the text in its place."""
    rest = value
    for pattern, layout in _TIME_PARTS:
        match = re.match(pattern, rest, re.ASCII)
        if match is None:
            return (
                f'parsing time {go_quote(value)} as "{_LAYOUT}": '
                f'cannot parse {go_quote(rest)} as "{layout}"'
            )
        rest = rest[match.end() :]
    return f"parsing time {go_quote(value)}: extra text: {go_quote(rest)}"


def text_map(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    if type(value) is not dict:
        raise wrong(value, where, "map[string]string")
    clean = {}
    for name in sorted(value):
        item = value[name]
        if item is not None and type(item) is not str:
            raise wrong(item, where, "string")
        clean[name] = item or ""
    return clean or None


def text_list(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    if value is None:
        return None
    if type(value) is not list:
        raise wrong(value, where, "[]string")
    for item in value:
        if item is not None and type(item) is not str:
            raise wrong(item, where, "string")
    return [item or "" for item in value] or None


def raw(value: Any, where: str, path: str, unknown: list[str]) -> Any:
    """Return the value unchanged: its type is not checked here."""
    return value


def struct_list(name: str, fields: dict[str, Decoder], always: tuple[str, ...]) -> Decoder:
    """Return a decoder of a list of structs; fields in ``always`` are written even when empty."""

    def decode(value: Any, where: str, path: str, unknown: list[str]) -> Any:
        if value is None:
            return None
        if type(value) is not list:
            raise wrong(value, where, f"[]v1.{name}")
        stack = where.partition(".")[2]
        clean = []
        for position, item in enumerate(value):
            if item is not None and type(item) is not dict:
                raise wrong(item, where, f"v1.{name}")
            place = f"{path}[{position}]"
            entry = struct(item or {}, name, stack, place, fields, unknown)
            clean.append({**dict.fromkeys(always, ""), **entry})
        return clean or None

    return decode


def struct(
    value: dict[str, Any],
    name: str,
    stack: str,
    path: str,
    fields: dict[str, Decoder],
    unknown: list[str],
) -> dict[str, Any]:
    """Decode field by field, sorted by name, which is Go's order."""
    clean = {}
    for field in sorted(value):
        decode = fields.get(field)
        if decode is None:
            unknown.append(f"{path}.{field}")
            continue
        where = f"{name}.{stack}.{field}" if stack else f"{name}.{field}"
        item = decode(value[field], where, f"{path}.{field}", unknown)
        if item is not None:
            clean[field] = item
    return clean


_OWNER: dict[str, Decoder] = {
    "apiVersion": text(),
    "kind": text(),
    "name": text(),
    "uid": text("types.UID"),
    "controller": boolean,
    "blockOwnerDeletion": boolean,
}
_MANAGED: dict[str, Decoder] = {
    "manager": text(),
    "operation": text("v1.ManagedFieldsOperationType"),
    "apiVersion": text(),
    "time": time,
    "fieldsType": text(),
    "fieldsV1": raw,
    "subresource": text(),
}

FIELDS: dict[str, Decoder] = {
    "name": text(),
    "generateName": text(),
    "namespace": text(),
    "selfLink": text(),
    "uid": text("types.UID"),
    "resourceVersion": text(),
    "generation": nonzero_integer,
    "creationTimestamp": time,
    "deletionTimestamp": time,
    "deletionGracePeriodSeconds": integer,
    "labels": text_map,
    "annotations": text_map,
    "ownerReferences": struct_list("OwnerReference", _OWNER, ("apiVersion", "kind", "name", "uid")),
    "finalizers": text_list,
    "managedFields": struct_list("ManagedFieldsEntry", _MANAGED, ()),
}
