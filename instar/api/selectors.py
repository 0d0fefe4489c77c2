"""Label and field selectors: the grammar of the query string, and matching against plain maps.

Parsing raises ``BadRequest`` with upstream's text. Matching knows nothing of storage or versions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from instar.api.strings import label_value, qualified_name
from instar.errors import BadRequest
from instar.fields import invalid

_TOKEN = re.compile(r"\s*(==|!=|=|!|,|\(|\)|>|<|[^\s=!,()<>]+)")
_NUMBER = re.compile(r"[+-]?[0-9]{1,19}")
_SYMBOLS = {"==", "!=", "=", "!", ",", "(", ")", ">", "<"}
_OPERATORS = "in, notin, =, ==, !=, gt, lt"


@dataclass(frozen=True, slots=True)
class Requirement:
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
        """Pairs every match must carry; an index may start from any of them."""
        return [
            (item.key, next(iter(item.values)))
            for item in self.requirements
            if item.operator == "in" and len(item.values) == 1
        ]


class FieldTerm(NamedTuple):
    field: str
    negated: bool
    value: str


@dataclass(frozen=True, slots=True)
class FieldSelector:
    terms: tuple[FieldTerm, ...]

    def matches(self, fields: Callable[[str], str]) -> bool:
        return all((fields(term.field) == term.value) != term.negated for term in self.terms)

    def exact(self, field: str) -> str | None:
        """The value ``field`` must have, if the selector says so."""
        for term in self.terms:
            if term.field == field and not term.negated:
                return term.value
        return None


def parse_label_selector(text: str) -> LabelSelector | None:
    """None when there is nothing to select by."""
    parser = _LabelParser(text)
    requirements = parser.parse()
    return LabelSelector(tuple(requirements)) if requirements else None


def _integer(value: str | None) -> int | None:
    """As Go reads a number: Python's own reading would take ``1_0`` for ten."""
    return int(value) if value is not None and _NUMBER.fullmatch(value) else None


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
    """Recursive descent over tokens; every error text is upstream's."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._position = 0

    def parse(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        if self._peek() == "":
            return requirements
        while True:
            requirements.append(self._requirement())
            token = self._next()
            if token == "":
                return requirements
            if token != ",":
                raise BadRequest(f"found '{token}', expected: ',' or 'end of string'")
            if self._peek() in _SYMBOLS - {"!"} or self._peek() == "":
                self._fail(self._peek(), "identifier after ','")

    def _requirement(self) -> Requirement:
        negated = self._peek() == "!"
        if negated:
            self._next()
        key = self._next()
        if key in _SYMBOLS or key == "":
            self._fail(key, "identifier")
        self._check_key(key)
        if negated:
            return Requirement(key, "!")
        if self._peek() in ("", ","):
            return Requirement(key, "exists")
        return self._operation(key, self._next())

    def _operation(self, key: str, operator: str) -> Requirement:
        if operator in ("in", "notin"):
            return Requirement(key, operator, self._checked(key, self._set()))
        if operator in ("=", "==", "!="):
            values = self._checked(key, [self._exact()])
            return Requirement(key, "notin" if operator == "!=" else "in", values)
        if operator in (">", "<"):
            value = self._exact()
            if _integer(value) is None:
                error = invalid(
                    "values[0]",
                    value,
                    "for 'Gt', 'Lt' operators, the value must be an integer",
                )
                raise BadRequest(f"unable to parse requirement: {error}")
            return Requirement(key, operator, frozenset((value,)))
        return self._fail(operator, _OPERATORS)

    def _exact(self) -> str:
        token = self._peek()
        if token in ("", ","):
            return ""
        if token in _SYMBOLS:
            self._fail(token, "identifier")
        return self._next()

    def _set(self) -> list[str]:
        if self._next() != "(":
            self._fail(self._tokens[self._position - 1], "'('")
        values: list[str] = []
        expect_value = True
        while True:
            token = self._next()
            if token == ")":
                return [*values, ""] if expect_value else values
            if token == "," and not expect_value:
                expect_value = True
            elif token == ",":
                values.append("")
            elif token in _SYMBOLS or token == "":
                self._fail(token, "',', ')' or identifier")
            else:
                values.append(token)
                expect_value = False

    def _check_key(self, key: str) -> None:
        for message in qualified_name(key):
            raise BadRequest(f"unable to parse requirement: {invalid('<nil>', key, message)}")

    def _checked(self, key: str, values: list[str]) -> frozenset[str]:
        for position, value in enumerate(values):
            for message in label_value(value):
                error = invalid(f"values[{position}][{key}]", value, message)
                raise BadRequest(f"unable to parse requirement: {error}")
        return frozenset(values)

    def _peek(self) -> str:
        return self._tokens[self._position]

    def _next(self) -> str:
        token = self._tokens[self._position]
        self._position += bool(token)
        return token

    def _fail(self, found: str, expected: str) -> Requirement:
        raise BadRequest(f"unable to parse requirement: found '{found}', expected: {expected}")


def _tokens(text: str) -> list[str]:
    """Tokens, ended by the empty string."""
    return [*(match.group(1) for match in _TOKEN.finditer(text)), ""]


def parse_field_selector(text: str) -> FieldSelector | None:
    terms = tuple(_field_term(part) for part in _split_unescaped(text, ",") if part)
    return FieldSelector(terms) if terms else None


def _field_term(text: str) -> FieldTerm:
    for position in range(len(text)):
        for operator in ("!=", "==", "="):
            if text.startswith(operator, position):
                value = _unescape(text[position + len(operator) :])
                return FieldTerm(text[:position], operator == "!=", value)
    raise BadRequest(f"invalid selector: '{text}'; can't understand '{text}'")


def _split_unescaped(text: str, separator: str) -> list[str]:
    parts, current, escaped = [], "", False
    for char in text:
        if char == separator and not escaped:
            parts.append(current)
            current = ""
        else:
            current += char
        escaped = char == "\\" and not escaped
    return [*parts, current]


def _unescape(value: str) -> str:
    out, escaped = "", False
    for char in value:
        if escaped:
            if char not in "\\,=":
                raise BadRequest(f"invalid field selector: invalid escape sequence: \\{char}")
            out, escaped = out + char, False
        elif char == "\\":
            escaped = True
        elif char in ",=":
            raise BadRequest(f"invalid field selector: unescaped character in value: {ord(char)}")
        else:
            out += char
    if escaped:
        raise BadRequest("invalid field selector: invalid escape sequence: \\")
    return out
