"""Compiler for the JSONPath dialect of printer columns (kubectl's).

Called by ``kube/crds/validation/columns.py`` to check a path and by
``server/registry/resources/columns.py`` to fill table cells. A path becomes a flat list of steps
(``jsonpath_steps.py``). The parser is a loop; it recurses only into brackets, which upstream's
grammar nests at most twice. Length and number of steps are bounded here.
"""

from __future__ import annotations

import re
from math import isinf
from typing import Any, Protocol

from instar.kube.api import jsonpath_steps as do
from instar.kube.api.jsonpath_steps import Step

MOST_CHARACTERS = 4096
MOST_STEPS = 100
"""Upstream has no bounds; the longest path of a real CRD has a tenth of either."""


class Finder(Protocol):
    """Finds the values of a path."""

    def __call__(self, value: Any, work: do.Work | None = None) -> list[Any]:
        """Return all matches in document order; none when the path fails on this value, or takes
        more work than is left."""
        ...


_INT_MAX = 2**63 - 1
_KEY = re.compile(r"'([^']*)'")
_SLICE = re.compile(r"(-?[0-9]*)(:-?[0-9]*)?(:-?[0-9]*)?")
_FLOAT = re.compile(r"[+-]?([0-9]+(?:\.[0-9]*)?|\.[0-9]+)")
_TERMINATORS = frozenset(" \t\r\n.,[]$@{}")
_OPERATOR_CHARACTERS = frozenset("!<>=")


class JsonPathError(ValueError):
    """The path is not valid in this dialect."""


class JsonPathTooLong(JsonPathError):
    """The path exceeds the length or step limit."""


def compile_path(path: str) -> Finder:
    """Compile a path. Raises ``JsonPathError``."""
    if len(path) > MOST_CHARACTERS:
        raise JsonPathTooLong(f"may not have more than {MOST_CHARACTERS} characters")
    actions = _Reader().template(f"{{{path}}}")

    def find(value: Any, work: do.Work | None = None) -> list[Any]:
        work = work or do.Work()
        try:
            found = [do.walk(action, [value], work) for action in actions]
        except (do.StepFailed, do.TooMuchWork):
            return []
        return found[0]

    return find


class _Reader:
    """Parser for one path, including the parts inside its brackets; counts the steps of all."""

    def __init__(self) -> None:
        self._steps = 0

    def template(self, text: str) -> list[list[Step]]:
        """Return the actions between braces; text around them is not shown in a cell."""
        actions = []
        at = text.find("{")
        while at >= 0:
            action, at = self._action(text, at + 1)
            actions.append(action)
            at = text.find("{", at)
        return actions

    def _part(self, text: str) -> list[Step]:
        """Parse the text inside brackets as a separate action."""
        return self.template(f"{{{text}}}")[0]

    def _action(self, text: str, at: int) -> tuple[list[Step], int]:
        """Parse from after an opening brace to after the closing one."""
        steps: list[Step] = []
        while True:
            if at >= len(text) or text[at] in "\r\n":
                raise JsonPathError("unclosed action")
            if text[at] == "}":
                return steps, at + 1
            if text[at] in " @$":
                at += 1
                continue
            found, at = self._next(text, at, after_descent=steps[-1:] == [do.descend])
            steps += found
            self._count(len(found))

    def _next(self, text: str, at: int, *, after_descent: bool) -> tuple[list[Step], int]:
        char = text[at]
        if text.startswith("[?(", at):
            return self._filter(text, at + 3)
        if text.startswith("..", at):
            if after_descent:
                raise JsonPathError("invalid multiple recursive descent")
            return _descent(text, at + 2)
        if char == "[":
            return self._bracket(text, at + 1)
        if char == ".":
            return _field(text, at + 1)
        if char in "\"'":
            return _quoted(text, at)
        if char in "+-" or char.isdecimal():
            return _number(text, at)
        if char == "_" or char.isalpha():
            return _word(text, at)
        raise JsonPathError(f"unrecognized character in action: {char!r}")

    def _count(self, more: int) -> None:
        self._steps += more
        if self._steps > MOST_STEPS:
            raise JsonPathTooLong(f"may not have more than {MOST_STEPS} steps")

    def _bracket(self, text: str, at: int) -> tuple[list[Step], int]:
        end = text.find("]", at)
        if end < 0 or "\n" in text[at:end]:
            raise JsonPathError("unterminated array")
        inner = text[at:end]
        choices = inner.split(",")
        if len(choices) > 1:
            return [do.union([self._part(f"[{choice.strip(' ')}]") for choice in choices])], end + 1
        key = _KEY.fullmatch(inner)
        if key is not None:
            # Its steps become steps of the outer path and are counted there.
            return _Reader()._part(f".{key.group(1)}"), end + 1
        return [_items(":" if inner == "*" else inner)], end + 1

    def _filter(self, text: str, at: int) -> tuple[list[Step], int]:
        end = _end_of_filter(text, at)
        inner = text[at:end]
        if text[end + 1 : end + 2] != "]":
            raise JsonPathError("unclosed array expect ]")
        parts = _comparison(inner)
        if parts is None:
            return [do.existing(self._part(inner))], end + 2
        left, operator, right = parts
        return [do.comparing(self._part(left), operator, self._part(right))], end + 2


def _descent(text: str, at: int) -> tuple[list[Step], int]:
    if at < len(text) and (text[at] == "_" or text[at].isalpha() or text[at].isdecimal()):
        found, at = _field(text, at)
        return [do.descend, *found], at
    return [do.descend], at


def _field(text: str, at: int) -> tuple[list[Step], int]:
    """Parse a name up to the next delimiter; a backslash escapes delimiters."""
    end = at
    while end < len(text) and text[end] not in _TERMINATORS:
        end += 2 if text[end] == "\\" else 1
    end = min(end, len(text))
    name = text[at:end]
    return [do.every if name == "*" else do.field(name.replace("\\", ""))], end


def _word(text: str, at: int) -> tuple[list[Step], int]:
    end = at
    while end < len(text) and text[end] not in _TERMINATORS:
        end += 1
    word = text[at:end]
    if word in ("true", "false"):
        return [do.constant(word == "true")], end
    # ``range`` and ``end`` loop over output, which a cell does not have.
    return [do.unknown_word], end


def _number(text: str, at: int) -> tuple[list[Step], int]:
    end = at + 1 if text[at] in "+-" else at
    while end < len(text) and (text[end] == "." or text[end].isdecimal()):
        end += 1
    return [do.constant(_literal(text[at:end]))], end


def _literal(text: str) -> int | float:
    if not text.isascii() or _FLOAT.fullmatch(text) is None:
        raise JsonPathError(f"cannot parse number {text}")
    if "." not in text and len(text) <= 20 and abs(int(text)) <= _INT_MAX:
        return int(text)
    number = float(text)
    if isinf(number):
        raise JsonPathError(f"cannot parse number {text}")
    return number


def _items(text: str) -> Step:
    match = _SLICE.fullmatch(text)
    if match is None:
        raise JsonPathError(f"invalid array index {text}")
    start, stop, stride = match.groups()
    first = _index(start) if start else None
    if stop is None:
        return do.items(first, (first or 0) + 1, None, single=True)
    last, step = (_index(part[1:]) if part and part != ":" else None for part in (stop, stride))
    return do.items(first, last, step, single=False)


def _index(text: str) -> int:
    if text == "-" or len(text) > 20 or abs(int(text)) > _INT_MAX:
        raise JsonPathError(f"array index {text} is not a number")
    return int(text)


def _end_of_filter(text: str, at: int) -> int:
    """Return the position of the closing parenthesis. Upstream supports one quoted text in a
    filter."""
    quote, closed = "", False
    for end in range(at, len(text)):
        char = text[end]
        if char == "\n":
            break
        if char in "\"'":
            if not quote:
                quote = char
            elif char == quote and text[end - 1] != "\\":
                closed = True
        elif char == ")" and bool(quote) == closed:
            return end
    raise JsonPathError("unterminated filter")


def _comparison(text: str) -> tuple[str, str, str] | None:
    """Return left side, operator and right side; None for a filter that tests existence."""
    size = len(text)
    start = next((at for at in range(size) if text[at] in _OPERATOR_CHARACTERS), size)
    end = start
    while end < size and text[end] in _OPERATOR_CHARACTERS:
        end += 1
    if end == size:
        end -= 1  # the right side is never empty
    if start == 0 or end <= start:
        return None
    return text[:start], text[start:end], text[end:]


def _quoted(text: str, at: int) -> tuple[list[Step], int]:
    quote, end = text[at], at + 1
    while end < len(text) and (text[end] != quote or text[end - 1] == "\\"):
        if text[end] == "\n":
            break
        end += 1
    if end >= len(text) or text[end] != quote:
        raise JsonPathError("unterminated quoted string")
    return [do.text(_unquoted(text[at + 1 : end], quote))], end + 1


_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{3}|.?)", re.DOTALL)
_SIMPLE_ESCAPES = dict(zip("abfnrtv\\", "\a\b\f\n\r\t\v\\", strict=True))


def _unquoted(text: str, quote: str) -> str:
    """Return the content of a Go string literal."""

    def plain(match: re.Match[str]) -> str:
        escape = match.group(1)
        if escape == quote:
            return quote
        if escape in _SIMPLE_ESCAPES:
            return _SIMPLE_ESCAPES[escape]
        base = 16 if escape[:1] in ("x", "u", "U") else 8
        digits = escape[1:] if base == 16 else escape
        code = int(digits, base) if len(escape) > 2 else -1
        if not 0 <= code <= (0x10FFFF if escape[0] in "uU" else 0xFF):
            raise JsonPathError(f"unquote string {text} error invalid syntax")
        return chr(code)

    return _ESCAPE.sub(plain, text)
