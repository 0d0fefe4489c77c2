"""Escaping of JSON property names to CEL identifiers (``__dash__``, reserved words).

Called by the schema's CEL declarations and the parser.
"""

from __future__ import annotations

import re

RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
"""Reserved words that cannot be variables; after a dot they are ordinary fields."""
KEYWORDS = frozenset({"in", "true", "false", "null"})

_REACHABLE_NAME = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", re.ASCII)
_ESCAPED_PARTS = re.compile(r"__|\.|-|/")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape(name: str) -> str | None:
    """Return the identifier of a property; None if no expression can access it."""
    if name in RESERVED or name in KEYWORDS:
        return f"__{name}__"
    if _REACHABLE_NAME.fullmatch(name) is None:
        return None
    return _ESCAPED_PARTS.sub(lambda match: _ESCAPES[match.group()], name)
