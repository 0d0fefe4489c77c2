"""YAML scalars as Go's YAML library resolves them: ``12:30:45`` is a string, ``y`` is true, ``08``
is eight.

Kubernetes reads YAML 1.1 through that library, which deviates from the specification. Called by
``yaml_text.py`` to read scalars and to decide which need quotes when written.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
import struct
from datetime import date
from typing import Any

PREFIX = "tag:yaml.org,2002:"
_RESOLVED_TAGS = frozenset({"", "str", "bool", "int", "float", "null", "timestamp"})
_WORDS: dict[str, Any] = {
    **dict.fromkeys(
        ("y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"), True
    ),
    **dict.fromkeys(
        ("n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"), False
    ),
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_NUMBER_STARTS = frozenset("+-0123456789")
_INTEGER = re.compile(
    r"[+-]?(?:0[xX](?P<x>[0-9a-fA-F]+)|0[oO]?(?P<o>[0-7]+)|0[bB](?P<b>[01]+)|(?P<d>[1-9][0-9]*|0))"
)
_ODD_BINARY = re.compile(r"0b[+-][01]+")
"""A sign behind the prefix, which the library accepts in binary integers."""
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_DOTTED = re.compile(r"\.[0-9]+(?:_[0-9]+)*(?:[eE][-+]?[0-9]+(?:_[0-9]+)*)?")
_TIMESTAMP = re.compile(
    r"(?P<y>[0-9]{4})-(?P<m>[0-9]{1,2})-(?P<d>[0-9]{1,2})"
    r"(?:(?P<t>[Tt ])(?P<h>[0-9]{1,2}):(?P<min>[0-9]{1,2}):(?P<s>[0-9]{1,2})(?:[.,][0-9]+)?"
    r"(?P<z>Z|[+-][0-9]{2}:[0-9]{2})?)?"
)
_SEXAGESIMAL = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+(?:\.[0-9_]*)?")
_BASES = {"x": 16, "o": 8, "b": 2, "d": 10}
_INT64_MIN, _UINT64_MAX = -(2**63), 2**64 - 1
_NOT_ONE = object()


class YamlError(ValueError):
    """Go's library would not read the document; ``str()`` is its message."""


def scalar(text: str, tag: str, *, plain: bool) -> Any:
    """Return the value of a scalar. ``tag`` is short (``int``), empty if none was given;
    ``plain`` is a scalar without quotes and without a tag."""
    if not tag and not plain:
        return text
    if tag == "binary":
        return _binary(text)
    if tag not in _RESOLVED_TAGS or tag == "str":
        return text
    found, value = resolve(text, timestamps=tag in ("", "timestamp"))
    if tag == "float" and found == "int" and value < 2**63:
        return float(value)
    if tag not in ("", found):
        raise YamlError(f"yaml: cannot decode !!{found} `{text}` as a !!{tag}")
    return value


def resolve(text: str, *, timestamps: bool = True) -> tuple[str, Any]:
    """Return the tag and value of a plain scalar; a timestamp stays text."""
    value = _WORDS.get(text, _NOT_ONE)
    if value is not _NOT_ONE:
        return _tag_of(value), value
    first = text[0]
    if first == ".":
        return ("float", number) if (number := _decimal_float(text)) is not None else ("str", text)
    if first not in _NUMBER_STARTS:
        return "str", text
    if timestamps and _is_timestamp(text):
        return "timestamp", text
    number = _number(text.replace("_", ""))
    return ("str", text) if number is None else (_tag_of(number), number)


def needs_quotes(text: str) -> bool:
    """Return whether some YAML reader would resolve the plain text as another type (base 60
    included)."""
    if text and text[0].isalpha() and text not in _WORDS:
        return False
    return resolve(text)[0] != "str" or _SEXAGESIMAL.fullmatch(text) is not None


def key_text(key: Any) -> str:
    """Return a map key as JSON text."""
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return "true" if key else "false"
    if isinstance(key, int) and key < 2**63:
        return str(key)
    if isinstance(key, float):
        return _short_float(key)
    kind = "%!s(<nil>)" if key is None else "uint64"
    raise YamlError(f"unsupported map key of type: {kind}, key: {_go_value(key)}")


def json_number(value: float) -> float | int:
    """Return a float as it is after JSON encoding, where a float without fraction is an integer."""
    if not math.isfinite(value):
        name = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
        raise YamlError(f"json: unsupported value: {name}")
    return int(value) if value.is_integer() and -(2.0**63) <= value < 2.0**63 else value


def _tag_of(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float"


def _binary(text: str) -> str:
    """Decode base64 as Go does: line ends are skipped, and invalid UTF-8 is replaced."""
    try:
        data = base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError) as error:
        raise YamlError("yaml: !!binary value contains invalid base64 data") from error
    return data.decode(errors="replace")


def _number(text: str) -> int | float | None:
    whole = _INTEGER.fullmatch(text)
    if whole is not None:
        base = _BASES[whole.lastgroup or "d"]
        digits = whole[whole.lastgroup or "d"].lstrip("0")
        if len(digits) <= 64:  # more digits are no 64-bit number in any base
            value = int(digits or "0", base)
            value = -value if text[0] == "-" else value
            if _INT64_MIN <= value <= _UINT64_MAX:
                return value
    if _ODD_BINARY.fullmatch(text) is not None and len(text) <= 3 + 64:
        value = int(text[2:], 2)
        return value if _INT64_MIN <= value < 2**63 else None
    return _finite(text) if _FLOAT.fullmatch(text) is not None else None


def _decimal_float(text: str) -> float | None:
    return _finite(text) if _DOTTED.fullmatch(text) is not None else None


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def _is_timestamp(text: str) -> bool:
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        return False
    if found["t"] is not None:
        zoned = found["z"] is not None
        if zoned == (found["t"] == " ") or int(found["h"]) > 23:
            return False
        if int(found["min"]) > 59 or int(found["s"]) > 59:
            return False
        if zoned and found["z"] != "Z" and (int(found["z"][1:3]) > 24 or int(found["z"][4:]) > 60):
            return False
    try:
        # The calendar repeats every 400 years, and Python has no year 0.
        date(int(found["y"]) or 400, int(found["m"]), int(found["d"]))
    except ValueError:
        return False
    return True


def _short_float(value: float) -> str:
    """Return the fewest digits that identify a float32, as the library writes float keys."""
    if not math.isfinite(value):
        return ".nan" if math.isnan(value) else ".inf" if value > 0 else "-.inf"

    def single(number: float) -> bytes:
        try:
            return struct.pack("f", number)
        except OverflowError:
            return struct.pack("f", math.inf if number > 0 else -math.inf)

    wanted = single(value)
    if math.isinf(struct.unpack("f", wanted)[0]):
        return ".inf" if value > 0 else "-.inf"
    digits = next(n for n in range(1, 18) if n == 17 or single(float(f"{value:.{n}g}")) == wanted)
    return go_g(float(f"{value:.{digits}g}"))


def go_g(value: float) -> str:
    """Return Go's shortest ``%g``: with an exponent of at least two digits from a million on."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, rest = ("-", -value) if value < 0 else ("", value)
    mantissa, _, exponent = f"{rest!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = len(whole.lstrip("0")) if whole.strip("0") else -len(fraction) + len(digits)
    point += int(exponent or "0")
    digits = digits.rstrip("0") or "0"
    if -4 <= point - 1 < 6:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{digits}"
        padded = digits.ljust(point, "0")
        return sign + padded[:point] + (f".{padded[point:]}" if len(padded) > point else "")
    tail = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{tail}e{'-' if point < 1 else '+'}{abs(point - 1):02d}"


def _go_value(key: Any) -> str:
    return "<nil>" if key is None else hex(key)
