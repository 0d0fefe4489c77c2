"""CEL functions for Kubernetes' named formats: ``format.dns1123Label().validate(text)``.

Collected by ``library/__init__.py``; called by the checker (types), the cost estimate and the
interpreter.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable, Sequence
from datetime import date
from typing import Any

from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import go_quote
from instar.kube.cel.functions import (
    REGEX,
    TRAVERSAL,
    CallSite,
    CostEstimate,
    Overload,
    function,
    method,
    regex_cost,
)
from instar.kube.cel.go_url import parse_request_uri
from instar.kube.cel.time_text import parse_timestamp
from instar.kube.cel.types import STRING, Type, list_of, message, optional_of
from instar.kube.cel.values import NONE, Opaque, OptionalValue, size_of

FORMAT = message("kubernetes.NamedFormat")
Check = Callable[[str], list[str]]

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = rf"{_LABEL}(\.{_LABEL})*"
_DNS1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_VALUE = f"({_QUALIFIED})?"
_UUID = re.compile(r"[0-9a-fA-F]{8}-?(?:[0-9a-fA-F]{4}-?){3}[0-9a-fA-F]{12}")

_LABEL_TEXT = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_SUBDOMAIN_TEXT = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' "
    "or '.', and must start and end with an alphanumeric character"
)
_DNS1035_TEXT = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with "
    "an alphabetic character, and end with an alphanumeric character"
)
_QUALIFIED_TEXT = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with "
    "an alphanumeric character"
)
_VALUE_TEXT = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character"
)


def _pattern_text(text: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"'{example}',  or " for example in examples[:-1]) + f"'{examples[-1]}'"
    return f"{text} (e.g. {shown}, regex used for validation is '{pattern}')"


def _bounded(pattern: str, limit: int, text: str) -> Check:
    compiled = re.compile(pattern)

    def check(value: str) -> list[str]:
        problems = []
        if len(value) > limit:
            problems.append(f"must be no more than {limit} bytes")
        if compiled.fullmatch(value) is None:
            problems.append(text)
        return problems

    return check


dns1123_label = _bounded(_LABEL, 63, _pattern_text(_LABEL_TEXT, _LABEL, "my-name", "123-abc"))
dns1123_subdomain = _bounded(
    _SUBDOMAIN, 253, _pattern_text(_SUBDOMAIN_TEXT, _SUBDOMAIN, "example.com")
)
_dns1035_label = _bounded(
    _DNS1035, 63, _pattern_text(_DNS1035_TEXT, _DNS1035, "my-name", "abc-123")
)
_label_value = _bounded(
    _VALUE, 63, _pattern_text(_VALUE_TEXT, _VALUE, "MyValue", "my_value", "12345")
)
_name_part = re.compile(_QUALIFIED)


def _qualified_name(value: str) -> list[str]:
    problems: list[str] = []
    parts = value.split("/")
    if len(parts) > 2:
        return [
            "a qualified name "
            + _pattern_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
            + " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in dns1123_subdomain(parts[0])]
    name = parts[-1]
    if not name:
        problems.append("name part must be non-empty")
    elif len(name) > 63:
        problems.append("name part must be no more than 63 bytes")
    if _name_part.fullmatch(name) is None:
        text = _pattern_text(_QUALIFIED_TEXT, _QUALIFIED, "MyName", "my.name", "123-abc")
        problems.append(f"name part {text}")
    return problems


def _prefix(check: Check) -> Check:
    """Return the check of a generated name's prefix, which may end in a dash."""
    return lambda value: check(f"{value[:-1]}a" if value.endswith("-") else value)


def _fails(valid: Callable[[str], bool], text: str) -> Check:
    return lambda value: [] if valid(value) else [text]


def _uri(value: str) -> list[str]:
    try:
        parse_request_uri(value)
    except ValueError as error:
        return [f"parse {go_quote(value)}: {error}"]
    return []


def _is_base64(value: str) -> bool:
    try:
        base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def _is_uuid(value: str) -> bool:
    return _UUID.fullmatch(value) is not None


def _is_date(value: str) -> bool:
    try:
        return len(value) == 10 and date.fromisoformat(value) is not None
    except ValueError:
        return False


_CHECKS: dict[str, Check] = {
    "dns1123Label": dns1123_label,
    "dns1123Subdomain": dns1123_subdomain,
    "dns1035Label": _dns1035_label,
    "qualifiedName": _qualified_name,
    "dns1123LabelPrefix": _prefix(dns1123_label),
    "dns1123SubdomainPrefix": _prefix(dns1123_subdomain),
    "dns1035LabelPrefix": _prefix(_dns1035_label),
    "labelValue": _label_value,
    "uri": _uri,
    "uuid": _fails(_is_uuid, "does not match the UUID format"),
    "byte": _fails(_is_base64, "invalid base64"),
    "date": _fails(_is_date, "invalid date"),
    "datetime": _fails(lambda value: parse_timestamp(value) is not None, "invalid datetime"),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    cel_type = "kubernetes.NamedFormat"
    name: str


def _validate(which: Format, value: str) -> OptionalValue:
    problems = _CHECKS[which.name](value)
    return OptionalValue(True, problems) if problems else NONE


def _format_named(name: str) -> OptionalValue:
    return OptionalValue(True, Format(name)) if name in _CHECKS else NONE


_PATTERN_SIZES = {
    **dict.fromkeys(("dns1123Label", "dns1035Label"), 30),
    **dict.fromkeys(("dns1123LabelPrefix", "dns1035LabelPrefix"), 30),
    **dict.fromkeys(("dns1123Subdomain", "dns1123SubdomainPrefix", "qualifiedName"), 60),
    "labelValue": 40,
    "uri": 1103,
    "uuid": 70,
    "byte": 84,
    "date": 71,
    "datetime": 71,
}
_LONGEST_PATTERN = 128
"""Pattern length that upstream assumes for each format, and the maximum."""


def _validation_cost(values: Sequence[Any], _result: Any) -> int:
    which, text = values
    size = _PATTERN_SIZES[which.name] if isinstance(which, Format) else 1
    return regex_cost(size_of(text), size)


def _estimated_validation(site: CallSite) -> CostEstimate:
    text = site.args[0].known().scaled(TRAVERSAL)
    return CostEstimate(text.scaled(_LONGEST_PATTERN * REGEX))


def _constructor(name: str) -> Overload:
    made = Format(name)
    return function(f"format.{name}", (), FORMAT, lambda: made)


def overloads() -> list[Overload]:
    return [
        *(_constructor(name) for name in _CHECKS),
        function("format.named", (STRING,), optional_of(FORMAT), _format_named),
        method(
            "validate",
            (FORMAT, STRING),
            optional_of(list_of(STRING)),
            _validate,
            weigh=_validation_cost,
            estimate=_estimated_validation,
            by_name=True,
        ),
    ]


def type_names() -> list[tuple[str, Type]]:
    return [(FORMAT.name, FORMAT)]
