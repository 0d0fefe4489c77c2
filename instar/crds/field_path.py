"""Walking a schema along a simple path: ``.spec.replicas`` or ``.spec['a.b']``.

Shared by selectable fields and the ``fieldPath`` of a rule. Looks at schemas only.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]

_DELIMITERS = ".[]"


class PathProblem(ValueError):
    """The path leads nowhere; the text says why, in upstream's words."""


class Place(NamedTuple):
    names: tuple[str, ...]
    normal: str
    schema: Schema


def resolve(path: str, schema: Schema, *, keys: bool = True) -> Place:
    """The place a path names. ``keys`` allows ``['k']``; raises ``PathProblem``."""
    names: list[str] = []
    normal = ""
    tokens = _tokens(path)
    for token in tokens:
        if token == ".":
            name = _next(tokens)
            normal = f"{normal}.{name}" if normal else name
        elif token == "[":
            if not keys:
                raise PathProblem("array notation is not allowed")
            name = _quoted(_next(tokens))
            closing = _next(tokens)
            if closing != "]":
                raise PathProblem(f"expected ] but got: {closing}")
            normal = f"{normal}[{name}]"
        else:
            raise PathProblem(f"expected [ or . but got: {token}")
        schema = _step(schema, name)
        names.append(name)
    return Place(tuple(names), normal, schema)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise PathProblem("unexpected end of JSON path")
    return token


def _quoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise PathProblem(f"expected single quoted string but got {token}")
    return token[1:-1].replace("\\'", "'").replace("\\\\", "\\")


def _step(schema: Schema, name: str) -> Schema:
    properties = schema.get("properties")
    found = properties.get(name) if properties else schema.get("additionalProperties")
    if not isinstance(found, Mapping):
        raise PathProblem("does not refer to a valid field")
    return found


def _tokens(path: str) -> Iterator[str]:
    """Delimiters alone, the text between them, and quoted text with its delimiters."""
    start = 0
    while start < len(path):
        end = start + 1
        if path[start] == "'":
            while end < len(path) and not (path[end] == "'" and path[end - 1] != "\\"):
                end += 1
            end += 1
        elif path[start] not in _DELIMITERS:
            while end < len(path) and path[end] not in _DELIMITERS:
                end += 1
        yield path[start:end]
        start = end
