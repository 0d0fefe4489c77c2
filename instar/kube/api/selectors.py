"""Label and field selectors of query strings: parser and matcher.

Called by ``server/rest`` for list, watch and delete-collection options and by the registry to
filter objects. Parsing raises ``BadRequest`` with upstream's text; matching works on plain label
maps and field getters.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from instar.base.errors import BadRequest
from instar.base.fast_dataclass import dataclass
from instar.base.field_errors import invalid, messages
from instar.kube.api.string_rules import label_value, qualified_name

_TOKEN = re.compile(r"==|!=|[=!,()<>]|[^ \t\r\n=!,()<>]+")
_NUMBER = re.compile(r"[+-]?0*[0-9]{1,19}")
_END = ""
_SYMBOLS = {"==", "!=", "=", "!", ",", "(", ")", ">", "<"}
_FIELD_OPERATOR = re.compile(r"!=|==|=")
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One requirement of a label selector: key, operator, values."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return _MATCHERS[self.operator](self, labels.get(self.key))


@dataclass(frozen=True, slots=True)
class LabelSelector:
    requirements: tuple[Requirement, ...]

    def matches(self, labels: Mapping[str, str]) -> bool:
        return all(requirement.matches(labels) for requirement in self.requirements)

    def equalities(self) -> list[tuple[str, str]]:
        """Return key-value pairs that every match has; an index lookup may start from any of
        them."""
        return [
            (item.key, next(iter(item.values)))
            for item in self.requirements
            if item.operator == "in" and len(item.values) == 1
        ]

    def one_of(self) -> list[tuple[str, str]]:
        """Return pairs of which every match has at least one; empty if the selector names no
        values."""
        named = [item for item in self.requirements if item.operator == "in"]
        fewest = min(named, key=lambda item: len(item.values), default=None)
        return [] if fewest is None else [(fewest.key, value) for value in sorted(fewest.values)]


class FieldTerm(NamedTuple):
    """One term of a field selector."""

    field: str
    negated: bool
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    terms: tuple[FieldTerm, ...]

    def matches(self, fields: Callable[[str], str]) -> bool:
        return all((fields(term.field) == term.value) != term.negated for term in self.terms)

    def exact(self, field: str) -> str | None:
        """Return the value that the selector requires for ``field``, or None."""
        for term in self.terms:
            if term.field == field and not term.negated:
                return term.value
        return None


def parse_label_selector(text: str) -> LabelSelector | None:
    """Parse a label selector; None when it is empty."""
    parser = _LabelParser(text)
    requirements = parser.parse()
    return LabelSelector(tuple(requirements)) if requirements else None


def _integer(value: str | None) -> int | None:
    """Parse an integer as Go does; Python's ``int`` would accept ``1_0``."""
    return int(value) if value is not None and _is_int64(value) else None


def _is_int64(value: str) -> bool:
    if _NUMBER.fullmatch(value) is None:
        return False
    digits = value.lstrip("+-").lstrip("0") or "0"
    return -(2**63) <= (-int(digits) if value[0] == "-" else int(digits)) < 2**63


def _greater(requirement: Requirement, value: str | None) -> bool:
    number = _integer(value)
    return number is not None and number > int(next(iter(requirement.values)))


def _less(requirement: Requirement, value: str | None) -> bool:
    number = _integer(value)
    return number is not None and number < int(next(iter(requirement.values)))


_MATCHERS: dict[str, Callable[[Requirement, str | None], bool]] = {
    "in": lambda requirement, value: value is not None and value in requirement.values,
    "notin": lambda requirement, value: value is None or value not in requirement.values,
    "exists": lambda requirement, value: value is not None,
    "!": lambda requirement, value: value is None,
    ">": _greater,
    "<": _less,
}


class _LabelParser:
    """Token-by-token parser that follows upstream's, because that order decides each error
    message."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek() == _END:
            return requirements
        if not self._may_begin(self._peek()):
            raise _unexpected_token(self._peek(), "!, identifier, or 'end of string'")
        while True:
            requirements.append(self._requirement())
            token = self._next()
            if token == _END:
                return requirements
            if token != ",":
                raise _unexpected_token(token, "',' or 'end of string'")
            if not self._may_begin(self._peek()):
                raise _unexpected_token(self._peek(), "identifier after ','")

    def _requirement(self) -> Requirement:
        try:
            return self._read_requirement()
        except BadRequest as error:
            raise BadRequest(f"unable to parse requirement: {error.message}") from error

    def _read_requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        key = self._next()
        if not _is_identifier(key):
            raise _unexpected_token(key, "identifier")
        problems = qualified_name(key)
        if problems:
            raise BadRequest(str(invalid("<nil>", key, "; ".join(problems))))
        if negated:
            return Requirement(key, "!")
        if self._peek() in (_END, ","):
            return Requirement(key, "exists")
        return self._operation(key, self._next())

    def _operation(self, key: str, operator: str) -> Requirement:
        if operator in ("in", "notin"):
            return Requirement(key, operator, _check_requirement(key, self._set()))
        if operator in ("=", "==", "!="):
            values = _check_requirement(key, {self._exact()})
            return Requirement(key, "notin" if operator == "!=" else "in", values)
        if operator in (">", "<"):
            return Requirement(
                key, operator, _check_requirement(key, {self._exact()}, integer=True)
            )
        raise _unexpected_token(operator, _OPERATORS)

    def _exact(self) -> str:
        if self._peek() in (_END, ","):
            return ""
        token = self._next()
        if not _is_identifier(token):
            raise _unexpected_token(token, "identifier")
        return token

    def _set(self) -> set[str]:
        opening = self._next()
        if opening != "(":
            raise BadRequest(f"found '{opening}' expected: '('")
        if self._peek() == ")":
            self._next()
            return {""}
        if self._peek() != "," and not _is_identifier(self._peek()):
            raise _unexpected_token(self._peek(), "',', ')' or identifier")
        values = self._identifiers()
        self._next()
        return values

    def _identifiers(self) -> set[str]:
        """Parse values up to the closing bracket; nothing between commas is an empty value."""
        values: set[str] = set()
        while True:
            token = self._next()
            if _is_identifier(token):
                values.add(token)
                if self._peek() not in (",", ")"):
                    raise _unexpected_token(self._peek(), "',' or ')'")
            elif token == ",":
                if not values:
                    values.add("")
                if self._peek() in (",", ")"):
                    values.add("")
                if self._peek() == ",":
                    self._next()
            else:
                raise _unexpected_token(token, "',', or identifier")
            if self._peek() == ")":
                return values

    def _may_begin(self, token: str) -> bool:
        return token == "!" or _is_identifier(token)

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _next(self) -> str:
        token = self._tokens[self._position]
        self._position += token != _END
        return token


def _is_identifier(token: str) -> bool:
    return token != _END and token not in _SYMBOLS


def _unexpected_token(found: str, expected: str) -> BadRequest:
    return BadRequest(f"found '{found}', expected: {expected}")


def _check_requirement(key: str, values: set[str], *, integer: bool = False) -> frozenset[str]:
    found = []
    for position, value in enumerate(sorted(values)):
        if integer and not _is_int64(value):
            detail = "for 'Gt', 'Lt' operators, the value must be an integer"
            found.append(invalid(f"values[{position}]", value, detail))
        problems = label_value(value)
        if problems:
            found.append(invalid(f"values[{position}][{key}]", value, "; ".join(problems)))
    if found:
        raise BadRequest(messages(found))
    return frozenset(values)


def _tokens(text: str) -> list[str]:
    """Return the tokens, ended by an empty string; a NUL also ends them."""
    return [*_TOKEN.findall(text.partition("\0")[0]), _END]


def parse_field_selector(text: str) -> FieldSelector | None:
    """Parse the query parameter ``fieldSelector``; None if it selects everything."""
    terms = tuple(_field_term(part, text) for part in _split_terms(text) if part)
    return FieldSelector(terms) if terms else None


def _field_term(text: str, whole: str) -> FieldTerm:
    found = _FIELD_OPERATOR.search(text)
    if found is None:
        raise BadRequest(f"invalid selector: '{whole}'; can't understand '{text}'")
    value = _unescape(text[found.end() :])
    return FieldTerm(text[: found.start()], found[0] == "!=", value)


def _split_terms(text: str) -> list[str]:
    """Split at commas that are not escaped by a backslash."""
    parts, start, escaped = [], 0, False
    for position, char in enumerate(text):
        if char == "," and not escaped:
            parts.append(text[start:position])
            start = position + 1
        escaped = char == "\\" and not escaped
    return [*parts, text[start:]]


def _unescape(value: str) -> str:
    out: list[str] = []
    escaped = False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{char}")
            out.append(char)
            escaped = False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            out.append(char)
    if escaped:
        raise BadRequest("invalid field selector: invalid escape sequence: \\")
    return "".join(out)
