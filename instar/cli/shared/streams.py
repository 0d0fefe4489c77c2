"""Makes standard input and output work in every locale; called first by ``cli/main.py``.

Like kubectl, commands read and write UTF-8 in files and pipes. A terminal keeps its own encoding:
characters that it does not have are written as ASCII (``→`` becomes ``->``), so that no output ends
in a ``UnicodeEncodeError``.
"""

from __future__ import annotations

import codecs
import io
import sys

_ASCII = {
    "…": "...",
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "–": "-",
    "—": "-",
    "·": "-",
    "•": "*",
    "✓": "ok",
    "✗": "x",
    "×": "x",
    "≥": ">=",
    "≤": "<=",
    "“": '"',
    "”": '"',
    "‘": "'",
    "’": "'",
    "█": "#",
    "│": "|",
    "─": "-",
    "━": "-",
    "╸": "-",
    "╺": "-",
    "└": "`",
    "├": "|",
}
_HANDLER = "instar.ascii"


def to_ascii(error: UnicodeError) -> tuple[str, int]:
    """Codec error handler: the usual ASCII spelling of a character, or its escape."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end]
    return "".join(map(_spelled, text)), error.end


def _spelled(char: str) -> str:
    if char in _ASCII:
        return _ASCII[char]
    return char.encode("ascii", "backslashreplace").decode()


def prepare_streams() -> None:
    """Set up ``sys.stdin``, ``sys.stdout`` and ``sys.stderr``; may be called again."""
    codecs.register_error(_HANDLER, to_ascii)
    if isinstance(sys.stdin, io.TextIOWrapper):
        sys.stdin.reconfigure(encoding="utf-8")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            encoding = stream.encoding if stream.isatty() else "utf-8"
            stream.reconfigure(encoding=encoding, errors=_HANDLER)
