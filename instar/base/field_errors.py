"""Field errors: the path, type and message of one problem in an object.

Every validation rule returns ``FieldError`` values and never raises or logs; ``errors.py`` turns
them into a ``Status``. The text of ``body()`` is kube-apiserver's wire format and pinned by tests.
That text is for people: code that decides by an error uses its type, path or code.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from decimal import Decimal
from enum import StrEnum
from typing import Any

from instar.base import limits
from instar.base.fast_dataclass import dataclass

NO_FIELD = "<nil>"
"""What upstream prints for an error that has no path (the root of an object)."""


class FieldErrorType(StrEnum):
    """Type of a field error; the value is the cause's ``reason`` on the wire."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    TOO_MANY = "FieldValueTooMany"
    TOO_LONG = "FieldValueTooLong"
    INTERNAL = "InternalError"


class FieldErrorCode(StrEnum):
    """Machine-readable detail of an error for other code. Not on the wire."""

    UNPRUNED_DEFAULT = "unpruned-default"
    """A default holds fields that pruning would remove."""
    RULES_SKIPPED = "rules-skipped"
    """CEL rules were not run because of other errors."""


_STEPS = re.compile(r"\[[^]]*]?|[^.[\]]+")


class _Omitted:
    """Marks an error that does not show its value (CEL rules on objects and lists)."""

    def __repr__(self) -> str:
        return "OMITTED"


OMITTED = _Omitted()


@dataclass(frozen=True, slots=True)
class FieldError:
    """One problem at one path."""

    kind: FieldErrorType
    field: str
    detail: str = ""
    value: Any = None
    code: FieldErrorCode | None = None
    place: str | None = None
    """Where it is, if upstream's ``field`` does not say so; see ``path``."""

    @property
    def path(self) -> str:
        """The path of the error; empty at the root."""
        if self.place is not None:
            return self.place
        return "" if self.field == NO_FIELD else self.field

    def body(self) -> str:
        return _BODIES[self.kind](self)

    def __str__(self) -> str:
        return f"{self.field}: {self.body()}"

    def cause(self) -> dict[str, str]:
        return {"reason": self.kind.value, "message": self.body(), "field": self.field}


def with_given_empties(errors: Iterable[FieldError], document: Any) -> list[FieldError]:
    """Return the errors with the empty map or list that ``document`` has at their path, as upstream
    quotes it. Decoded objects of built-in kinds have no empty members, so rules quote null."""
    return [
        error if error.value is not None else replace(error, value=_empty_at(document, error.path))
        for error in errors
    ]


def _empty_at(document: Any, path: str) -> Any:
    for part in _STEPS.findall(path):
        place = int(part[1:-1]) if part[0] == "[" and part[1:-1].isdigit() else part
        if isinstance(document, dict):
            document = document.get(place)
        elif isinstance(document, list) and isinstance(place, int) and place < len(document):
            document = document[place]
        else:
            return None
    return document if isinstance(document, dict | list) and not document else None


def required(field: str, detail: str = "") -> FieldError:
    """Return the error of a missing value."""
    return FieldError(FieldErrorType.REQUIRED, field, detail)


def invalid(field: str, value: Any, detail: str, code: FieldErrorCode | None = None) -> FieldError:
    """Return the error of a value that breaks a rule."""
    return FieldError(FieldErrorType.INVALID, field, detail, value, code)


def type_invalid(field: str, value: Any, detail: str) -> FieldError:
    """Return the error of a value of the wrong type."""
    return FieldError(FieldErrorType.TYPE_INVALID, field, detail, value)


def not_supported(field: str, value: Any, supported: Iterable[str]) -> FieldError:
    """Return a NotSupported error. ``supported`` is printed as given; callers sort where upstream
    does."""
    listed = ", ".join(go_quote(item) for item in supported)
    return FieldError(FieldErrorType.NOT_SUPPORTED, field, f"supported values: {listed}", value)


def forbidden(field: str, detail: str) -> FieldError:
    """Return the error of a value that may not be set here."""
    return FieldError(FieldErrorType.FORBIDDEN, field, detail)


def duplicate(field: str, value: Any) -> FieldError:
    """Return the error of a value that a list has twice."""
    return FieldError(FieldErrorType.DUPLICATE, field, "", value)


def missing(field: str, value: Any) -> FieldError:
    """Return a NotFound error for a reference to something that does not exist."""
    return FieldError(FieldErrorType.NOT_FOUND, field, "", value)


def too_many(field: str, actual: int, most: int) -> FieldError:
    """Return the error of a list with too many items."""
    noun = "item" if most == 1 else "items"
    return FieldError(FieldErrorType.TOO_MANY, field, f"must have at most {most} {noun}", actual)


def too_long(field: str, most: int) -> FieldError:
    """Return the error of a text that is too long."""
    noun = "byte" if most == 1 else "bytes"
    return FieldError(FieldErrorType.TOO_LONG, field, f"may not be more than {most} {noun}")


def internal(field: str, detail: str) -> FieldError:
    """Return the error of a check that failed itself."""
    return FieldError(FieldErrorType.INTERNAL, field, detail)


def child(path: str, name: str) -> str:
    """Return ``path.name``; an empty path is the root and adds no dot."""
    return f"{path}.{name}" if path else name


def index(path: str, position: int) -> str:
    """Return the path of a list's item."""
    return f"{path}[{position}]"


def key(path: str, name: str) -> str:
    """Return the path of a map key: ``path[name]``."""
    return f"{path}[{name}]"


def distinct(errors: Iterable[FieldError], besides: Iterable[FieldError] = ()) -> list[FieldError]:
    """Drop errors with the same text as an earlier one or as one of ``besides``."""
    known = set(map(str, besides))
    found = {text: error for error in errors if (text := str(error)) not in known}
    return list(found.values())


def messages(errors: Sequence[FieldError]) -> str:
    """Join errors as kube-apiserver aggregates them: one bare, several in brackets, no repeats."""
    texts = list(dict.fromkeys(str(error) for error in errors))
    return texts[0] if len(texts) == 1 else "[" + ", ".join(texts) + "]"


def errors_to_report(errors: Sequence[FieldError]) -> Sequence[FieldError]:
    """Return the first errors, as many as one response may contain, but at least one."""
    size = 0
    for number, error in enumerate(errors):
        size += len(str(error))
        if number and (size > limits.MAX_REFUSAL or number >= limits.MAX_ERRORS_TOLD):
            return errors[:number]
    return errors


def render_value(value: Any) -> str:
    """Return a value as Go prints it inside a field error."""
    if isinstance(value, str):
        return go_quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return go_number(value)
    text = _json_text(value)
    for char, escape in JSON_ESCAPED:
        text = text.replace(char, escape)
    return text


def _json_text(value: Any) -> str:
    """Return a value as JSON with Go's numbers."""
    if isinstance(value, dict):
        items = (f"{_json_text(name)}:{_json_text(item)}" for name, item in value.items())
        return "{" + ",".join(items) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(map(_json_text, value)) + "]"
    return go_float(value) if isinstance(value, float) else json.dumps(value, ensure_ascii=False)


JSON_ESCAPED = (
    ("<", "\\u003c"),
    (">", "\\u003e"),
    ("&", "\\u0026"),
    ("\u2028", "\\u2028"),
    ("\u2029", "\\u2029"),
)
"""What Go's JSON encoder escapes inside strings, where ours does not."""


def go_quote(text: str) -> str:
    """Return the text as Go's ``%q`` prints it."""
    quoted = text.translate(_ESCAPES)
    if not quoted.isprintable():
        quoted = "".join(char if char.isprintable() else _unicode_escape(char) for char in quoted)
    return f'"{quoted}"'


def _unicode_escape(char: str) -> str:
    code = ord(char)
    if 0xD800 <= code < 0xE000:
        return "\\ufffd"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_EXACT_FLOAT = 2.0**53


def go_float(value: float) -> str:
    """Return a float64 as Go's JSON encoder writes it: no fraction where there is none, ``e+21``
    forms."""
    if value == int(value) and abs(value) < _EXACT_FLOAT:
        return str(int(value)) if value or str(value) == "0.0" else "-0"
    text = repr(value)
    if "e" not in text:
        return text.removesuffix(".0")
    if 1e-6 <= abs(value) < 1e21:
        # The shortest digits that identify the float, padded with zeros; not its exact decimal
        # value.
        return f"{Decimal(text):f}"
    mantissa, exponent = text.split("e")
    sign = "-" if exponent.startswith("-") else "+"
    return f"{mantissa.removesuffix('.0')}e{sign}{exponent.lstrip('+-').lstrip('0')}"


def go_number(value: float) -> str:
    """Return a number as Go's ``%v`` prints it: floats of a million and more take an exponent."""
    if isinstance(value, int):
        return str(value)
    exact = Decimal(repr(value)).normalize()
    digits, _, power = f"{exact:e}".partition("e")
    exponent = int(power)
    if -4 <= exponent < 6:
        return f"{exact:f}"
    return f"{digits}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"


def go_plain(value: Any) -> str:
    """Return a JSON value as Go's ``%v`` prints it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{k}:{go_plain(v)}" for k, v in sorted(value.items())) + "]"
    if isinstance(value, list):
        return "[" + " ".join(go_plain(item) for item in value) + "]"
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else go_number(value)


_HTML_SAFE = str.maketrans(
    {char: f"\\u{ord(char):04x}" for char in ("<", ">", "&", "\u2028", "\u2029")}
)
"""Go's JSON writer keeps its output safe inside HTML."""
_ESCAPES = str.maketrans(
    {
        **{chr(code): f"\\x{code:02x}" for code in (*range(0x20), 0x7F)},
        '"': '\\"',
        "\\": "\\\\",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\v": "\\v",
    }
)


def _with_value(label: str) -> Callable[[FieldError], str]:
    def body(error: FieldError) -> str:
        shown = "" if error.value is OMITTED else f": {render_value(error.value)}"
        return f"{label}{shown}: {error.detail}" if error.detail else f"{label}{shown}"

    return body


def _without_value(label: str) -> Callable[[FieldError], str]:
    def body(error: FieldError) -> str:
        return f"{label}: {error.detail}" if error.detail else label

    return body


_BODIES: dict[FieldErrorType, Callable[[FieldError], str]] = {
    FieldErrorType.REQUIRED: _without_value("Required value"),
    FieldErrorType.INVALID: _with_value("Invalid value"),
    FieldErrorType.TYPE_INVALID: _with_value("Invalid value"),
    FieldErrorType.NOT_SUPPORTED: _with_value("Unsupported value"),
    FieldErrorType.FORBIDDEN: _without_value("Forbidden"),
    FieldErrorType.DUPLICATE: _with_value("Duplicate value"),
    FieldErrorType.NOT_FOUND: _with_value("Not found"),
    FieldErrorType.TOO_MANY: _with_value("Too many"),
    FieldErrorType.TOO_LONG: _without_value("Too long"),
    FieldErrorType.INTERNAL: _without_value("Internal error"),
}
