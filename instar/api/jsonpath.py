"""The JSONPath dialect of printer columns (kubectl's), compiled to "give me all matches".

Supports fields, ``['quoted']``, indices, slices, wildcards, recursive descent and
``[?(@.a=="b")]`` filters; missing keys yield nothing. Pure.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

Step = Callable[[Any], Iterator[Any]]
Finder = Callable[[Any], Iterator[Any]]

_FIELD = re.compile(r"(?:\\.|[^.\[\]\\])+")
_FILTER = re.compile(r"\?\(\s*(.+?)\s*\)", re.DOTALL)
_COMPARISON = re.compile(r"(.+?)\s*(==|!=|<=|>=|<|>)\s*(.+)", re.DOTALL)


class JsonPathError(ValueError):
    """The path is not one this dialect knows."""


def compile_path(path: str) -> Finder:
    """A finder of all matches in document order. Raises ``JsonPathError``."""
    steps = list(_steps(path))

    def find(value: Any) -> Iterator[Any]:
        found: Iterator[Any] = iter((value,))
        for step in steps:
            found = _apply(step, found)
        return found

    return find


def _apply(step: Step, values: Iterator[Any]) -> Iterator[Any]:
    for value in values:
        yield from step(value)


def _steps(path: str) -> Iterator[Step]:
    position = 0
    while position < len(path):
        char = path[position]
        if path.startswith("..", position):
            name, position = _read_field(path, position + 2)
            yield _descend(name)
        elif char == ".":
            if position + 1 >= len(path):
                return
            if path[position + 1] == "[":
                position += 1
                continue
            name, position = _read_field(path, position + 1)
            yield _every if name == "*" else _field(name)
        elif char == "[":
            end = _closing(path, position)
            yield _bracket(path[position + 1 : end].strip())
            position = end + 1
        else:
            raise JsonPathError(f"unexpected {char!r} at {position} in {path!r}")


def _read_field(path: str, start: int) -> tuple[str, int]:
    match = _FIELD.match(path, start)
    if match is None:
        raise JsonPathError(f"a field name is missing at {start} in {path!r}")
    return re.sub(r"\\(.)", r"\1", match.group()), match.end()


def _closing(path: str, start: int) -> int:
    depth, quote = 0, ""
    for position in range(start, len(path)):
        char = path[position]
        if quote:
            quote = "" if char == quote and path[position - 1] != "\\" else quote
        elif char in "'\"":
            quote = char
        elif char == "[":
            depth += 1
        elif char == "]":
            depth -= 1
            if depth == 0:
                return position
    raise JsonPathError(f"unterminated array in {path!r}")


def _bracket(text: str) -> Step:
    if text == "*":
        return _every
    if text[:1] in "'\"" and text[-1:] == text[:1] and len(text) > 1:
        return _field(text[1:-1].replace("\\" + text[0], text[0]))
    if match := _FILTER.fullmatch(text):
        return _filter(match.group(1))
    try:
        if ":" in text:
            return _slice(*(int(part) if part else None for part in text.split(":")))
        if "," in text:
            return _union([int(part) for part in text.split(",")])
        return _union([int(text)])
    except (ValueError, TypeError) as error:
        raise JsonPathError(f"invalid array index {text}") from error


def _field(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _every(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _union(indices: list[int]) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            for index in indices:
                if -len(value) <= index < len(value):
                    yield value[index]

    return step


def _slice(start: int | None, stop: int | None, stride: int | None = None) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from value[start:stop:stride]

    return step


def _descend(name: str) -> Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict):
            if name == "*":
                yield from value.values()
            elif name in value:
                yield value[name]
        children = value.values() if isinstance(value, dict) else value
        if isinstance(value, dict | list):
            for child in children:
                yield from step(child)

    return step


def _filter(text: str) -> Step:
    comparison = _COMPARISON.fullmatch(text)
    if comparison is None:
        exists = _operand(text)

        def present(value: Any) -> Iterator[Any]:
            return (item for item in _items(value) if next(exists(item), None) is not None)

        return present
    left, operator, right = comparison.groups()
    find_left, find_right, compare = _operand(left), _operand(right), _OPERATORS[operator]

    def matching(value: Any) -> Iterator[Any]:
        for item in _items(value):
            a, b = next(find_left(item), None), next(find_right(item), None)
            if a is not None and b is not None and compare(a, b):
                yield item

    return matching


def _items(value: Any) -> Iterator[Any]:
    return iter(value) if isinstance(value, list) else iter(())


def _operand(text: str) -> Finder:
    text = text.strip()
    if text.startswith("@"):
        return compile_path(text[1:])
    literal = _literal(text)

    def constant(_: Any) -> Iterator[Any]:
        yield literal

    return constant


def _literal(text: str) -> Any:
    if text[:1] in "'\"" and text[-1:] == text[:1]:
        return text[1:-1]
    try:
        return json.loads(text)
    except ValueError as error:
        raise JsonPathError(f"unrecognized filter operand {text!r}") from error


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
    def safe(a: Any, b: Any) -> bool:
        try:
            return compare(a, b)
        except TypeError:
            return False

    return safe


_OPERATORS: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda a, b: bool(a == b),
    "!=": lambda a, b: bool(a != b),
    "<": _ordered(lambda a, b: a < b),
    "<=": _ordered(lambda a, b: a <= b),
    ">": _ordered(lambda a, b: a > b),
    ">=": _ordered(lambda a, b: a >= b),
}
