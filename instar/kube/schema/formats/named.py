"""Table of the supported string formats and their validators.

Called by schema validation, CRD warnings and the reviewer. Names compare without dashes; callers
ignore unknown names.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date

from instar.kube.cel.time_text import parse_loose_duration
from instar.kube.schema.formats.check_digits import is_credit_card, is_isbn, is_isbn10, is_isbn13
from instar.kube.schema.formats.network import (
    is_cidr,
    is_email,
    is_hostname,
    is_ipv4,
    is_ipv6,
    is_mac,
    is_request_uri,
)

Format = Callable[[str], bool]

NUMERIC_FORMATS = frozenset({"int32", "int64", "float", "double"})
"""Enforced on numbers by ``kube/schema/validation/numbers.py``; ignored on strings."""


def canonical(name: str) -> str:
    return name.replace("-", "")


def is_supported(name: str) -> bool:
    return canonical(name) in NUMERIC_FORMATS or canonical(name) in FORMATS


def string_format(name: str) -> Format | None:
    """Return the format of that name; dashes do not matter. None if it is unknown."""
    return FORMATS.get(canonical(name))


def _matches(pattern: str, flags: int = 0) -> Format:
    match = re.compile(pattern, re.ASCII | flags).fullmatch
    return lambda text: match(text) is not None


_HEX = "[0-9a-f]"
_DATE = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_TIME = re.compile(
    r"([01]\d|2[0-3]):[0-5]\d:[0-5]\d([.,]\d+)?(z|[+-]\d{2}:\d{2})", re.ASCII | re.IGNORECASE
)


def _is_date(text: str) -> bool:
    match = _DATE.fullmatch(text)
    if match is None:
        return False
    year, month, day = (int(part) for part in match.groups())
    # The calendar repeats every 400 years, and Python has no year 0.
    return _is_day(year or 400, month, day)


def _is_day(year: int, month: int, day: int) -> bool:
    try:
        date(year, month, day)
    except ValueError:
        return False
    return True


def _is_date_time(text: str) -> bool:
    if len(text) < 11 or text[10] not in "Tt":
        return False
    return _is_date(text[:10]) and _TIME.fullmatch(text, 11) is not None


def _is_duration(text: str) -> bool:
    try:
        parse_loose_duration(text)
    except ValueError:
        return False
    return True


def _is_base64(text: str) -> bool:
    return bool(text) and len(text) % 4 == 0 and _base64(text)


_base64 = _matches(r"[A-Za-z0-9+/]*={0,2}")
_CHANNEL = r"\s*(0|[1-9]\d?|1\d\d|2[0-4]\d|25[0-5])\s*"
_SHORT_NAME = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_short_name = _matches(_SHORT_NAME)
_long_name = _matches(rf"{_SHORT_NAME}(\.{_SHORT_NAME})*")


def _uuid(third: str, fourth: str) -> Format:
    return _matches(rf"{_HEX}{{8}}-?{_HEX}{{4}}-?{third}-?{fourth}-?{_HEX}{{12}}", re.IGNORECASE)


FORMATS: dict[str, Format] = {
    "bsonobjectid": _matches("[0-9a-fA-F]{24}"),
    "uri": is_request_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "mac": is_mac,
    "uuid": _uuid(f"{_HEX}{{4}}", f"{_HEX}{{4}}"),
    "uuid3": _uuid(f"3{_HEX}{{3}}", f"{_HEX}{{4}}"),
    "uuid4": _uuid(f"4{_HEX}{{3}}", f"[89ab]{_HEX}{{3}}"),
    "uuid5": _uuid(f"5{_HEX}{{3}}", f"[89ab]{_HEX}{{3}}"),
    "isbn": is_isbn,
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "ssn": _matches(r"\d{3}[- ]\d{2}[- ]\d{4}"),
    "hexcolor": _matches("#?([0-9a-fA-F]{3}|[0-9a-fA-F]{6})"),
    "rgbcolor": _matches(rf"rgb\({_CHANNEL},{_CHANNEL},{_CHANNEL}\)"),
    "byte": _is_base64,
    "password": lambda text: True,
    "date": _is_date,
    "datetime": _is_date_time,
    "duration": _is_duration,
    "k8sshortname": lambda text: len(text) <= 63 and _short_name(text),
    "k8slongname": lambda text: len(text) <= 253 and _long_name(text),
}
