"""Resolves a simple field path (``.spec.replicas``, ``.spec['a.b']``) in a raw schema.

Called by the validation of selectable fields (``kube/crds/validation``) and by the CEL rules for
their ``fieldPath``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

Schema = Mapping[str, Any]

_DELIMITERS = ".[]"
_ESCAPE = re.compile(r"\\.")
_ESCAPES = {
    "a": "\a",
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    "v": "\v",
    "'": "'",
    "\\": "\\",
}


class PathProblem(ValueError):
    """The path does not resolve; the text is upstream's."""


class ResolvedField(NamedTuple):
    """The field names of a path and the schema at its end."""

    names: tuple[str, ...]
    normal: str
    schema: Schema


def resolve(path: str, schema: Schema, *, keys: bool = True) -> ResolvedField:
    """Return the schema that a path names. ``keys`` allows ``['k']``. Raises ``PathProblem``."""
    names: list[str] = []
    normal = ""
    tokens = _tokens(path)
    for token in tokens:
        if token == "[":
            if not keys:
                raise PathProblem("array notation is not allowed")
            name = _unquoted(_next(tokens))
        elif token == ".":
            name = _next(tokens)
        else:
            raise PathProblem(f"expected [ or . but got: {token}")
        schema, normal = _step(schema, name, normal)
        names.append(name)
        if token == "[" and (closing := _next(tokens)) != "]":
            raise PathProblem(f"expected ] but got {closing}")
    return ResolvedField(tuple(names), normal, schema)


def _next(tokens: Iterator[str]) -> str:
    token = next(tokens, None)
    if token is None:
        raise PathProblem("unexpected end of JSON path")
    return token


def _unquoted(token: str) -> str:
    if len(token) < 2 or token[0] != "'" or token[-1] != "'":
        raise PathProblem(f"expected single quoted string but got {token}")
    return _ESCAPE.sub(_character, token[1:-1])


def _character(match: re.Match[str]) -> str:
    written = match.group()
    if written[1] not in _ESCAPES:
        raise PathProblem(f"invalid string literal: invalid escape char {written}")
    return _ESCAPES[written[1]]


def _step(schema: Schema, name: str, normal: str) -> tuple[Schema, str]:
    """Descend by one name; the schema, not the notation, decides whether it is a property or a map
    key."""
    properties = schema.get("properties")
    if properties is not None:
        found, normal = properties.get(name), f"{normal}.{name}" if normal else name
    else:
        found, normal = schema.get("additionalProperties"), f"{normal}[{name}]"
    if not isinstance(found, Mapping):
        raise PathProblem("does not refer to a valid field")
    return found, normal


def _tokens(path: str) -> Iterator[str]:
    """Yield delimiters, the text between them, and quoted text with its delimiters."""
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
