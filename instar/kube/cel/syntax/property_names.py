"""Property names as an expression writes them: CEL identifiers are narrower than JSON keys."""

from __future__ import annotations

import re

RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
"""Words that are no variables; behind a dot they are fields like any other."""
KEYWORDS = frozenset({"in", "true", "false", "null"})

_REACHABLE = re.compile(r"[a-zA-Z_./-][a-zA-Z0-9_./-]*", re.ASCII)
_SPECIAL = re.compile(r"__|\.|-|/")
_ESCAPES = {"__": "__underscores__", ".": "__dot__", "-": "__dash__", "/": "__slash__"}


def escape(name: str) -> str | None:
    """The identifier of a property; None when no expression can reach it."""
    if name in RESERVED or name in KEYWORDS:
        return f"__{name}__"
    if _REACHABLE.fullmatch(name) is None:
        return None
    return _SPECIAL.sub(lambda match: _ESCAPES[match.group()], name)
