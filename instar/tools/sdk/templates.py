"""String templates like ``"{spec.host}:{spec.port:int}"``, used to parse and to format a
string.

The rules ``split`` and ``join`` use them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from instar.tools.sdk.errors import ConverterDefinitionError

_INT = r"0|-?[1-9][0-9]*"
"""Only what ``str(int(text))`` gives back unchanged."""
_ANYTHING = ".*?"


class Template:
    """A compiled template. A part ends at the next literal text; the last part takes the rest."""

    def __init__(self, text: str) -> None:
        self.names: list[str] = []
        self.shown = ""
        self._types: list[type] = []
        self._literals: list[str] = []
        self._patterns: list[str] = []
        self._parse(text)
        if not self.names:
            raise ConverterDefinitionError(f"template {text!r} has no {{part}}")
        self._pattern = self._compile(text)
        self._integers = [at for at, wanted in enumerate(self._types) if wanted is int]
        self._form = "%s".join(literal.replace("%", "%%") for literal in self._literals)
        # A string with one separator, whatever its parts are: no need for a pattern.
        plain = self._patterns == [_ANYTHING] * 2 and not (self._literals[0] or self._literals[2])
        self._separator = self._literals[1] if plain else ""

    def split(self, value: Any) -> list[Any] | None:
        """Return the parts, or ``None`` if the string does not match."""
        if not isinstance(value, str):
            return None
        if self._separator:
            left, found, right = value.partition(self._separator)
            return [left, right] if found else None
        match = self._pattern.fullmatch(value)
        if match is None:
            return None
        parts: list[Any] = list(match.groups())
        for at in self._integers:
            parts[at] = int(parts[at])
        return parts

    def join(self, values: Sequence[Any]) -> str | None:
        """Return the string, or ``None`` if a part is missing or has another type."""
        for value, wanted in zip(values, self._types, strict=True):
            if not isinstance(value, wanted) or isinstance(value, bool):
                return None
        return self._form % tuple(values)

    def _parse(self, text: str) -> None:
        literal, position = "", 0
        while position < len(text):
            if text[position : position + 2] in ("{{", "}}"):
                literal, position = literal + text[position], position + 2
            elif text[position] == "{":
                end = _closing(text, position)
                self._add(literal, text[position + 1 : end])
                literal, position = "", end + 1
            else:
                literal, position = literal + text[position], position + 1
        self._literals.append(literal)
        self.shown += literal

    def _add(self, literal: str, part: str) -> None:
        name, _, kind = part.partition(":")
        self._literals.append(literal)
        self.names.append(name)
        self.shown += f"{literal}{{{name.rpartition('.')[2]}}}"
        self._types.append(int if kind == "int" else str)
        self._patterns.append(_INT if kind == "int" else kind or _ANYTHING)

    def _compile(self, text: str) -> re.Pattern[str]:
        source = re.escape(self._literals[0])
        for pattern, literal in zip(self._patterns, self._literals[1:], strict=True):
            source += f"({pattern}){re.escape(literal)}"
        try:
            compiled = re.compile(source, re.DOTALL)
        except re.error as error:
            raise ConverterDefinitionError(f"template {text!r}: {error}") from None
        if compiled.groups != len(self.names):
            raise ConverterDefinitionError(f"template {text!r}: use (?:…) for groups in a part")
        return compiled


def _closing(text: str, start: int) -> int:
    depth = 0
    for position in range(start, len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return position
    raise ConverterDefinitionError(f"template {text!r}: a brace is never closed")
