"""Text to tokens, with CEL's string, bytes and number literals already decoded."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from instar.cel.issues import BadExpression, Issue
from instar.cel.values import Uint

_TOKEN = re.compile(
    r"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<string>(?:[rR][bB]|[bB][rR]|[rRbB])?(?:\"\"\"|\'\'\'|"|'))
  | (?P<float>[0-9]*\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{}])
    """,
    re.VERBOSE,
)

RESERVED = frozenset(
    {
        *("as", "break", "const", "continue", "else", "for", "function", "if", "import", "let"),
        *("loop", "package", "namespace", "return", "var", "void", "while"),
    }
)
KEYWORDS = frozenset({"in", "true", "false", "null"})

_SIMPLE_ESCAPES = {
    "a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11,
    "\\": 92, "?": 63, '"': 34, "'": 39, "`": 96,
}  # fmt: skip
_HEX_ESCAPES = {"x": 2, "X": 2, "u": 4, "U": 8}


class Token(NamedTuple):
    """``kind`` is op, ident, const or eof; ``text`` is the source form."""

    kind: str
    text: str
    pos: int
    value: Any = None


def tokenize(source: str) -> list[Token]:
    tokens: list[Token] = []
    pos = 0
    while pos < len(source):
        match = _TOKEN.match(source, pos)
        if match is None:
            raise _unrecognised(source, pos, pos + 1)
        kind, text = str(match.lastgroup), match.group()
        if kind == "string":
            token = _string(source, pos, text)
            tokens.append(token)
            pos += len(token.text)
            continue
        if kind in ("op", "ident"):
            tokens.append(Token(kind, text, pos))
        elif kind != "space":
            tokens.append(Token("const", text, pos, _number(source, kind, text, pos)))
        pos = match.end()
    tokens.append(Token("eof", "<EOF>", len(source)))
    return tokens


def _number(source: str, kind: str, text: str, pos: int) -> Any:
    if kind == "float":
        return float(text)
    digits = text.rstrip("uU") if kind == "uint" else text
    value = int(digits, 16 if digits.startswith("0x") else 10)
    if kind == "uint":
        if value >= 1 << 64:
            raise BadExpression(source, [Issue(pos, "invalid uint literal")])
        return Uint(value)
    # 2**63 itself is legal behind a minus; the parser rejects it elsewhere.
    if value > 1 << 63:
        raise BadExpression(source, [Issue(pos, "invalid int literal")])
    return value


def _string(source: str, pos: int, opening: str) -> Token:
    prefix = opening.rstrip("\"'").lower()
    quote = opening[len(prefix) :]
    raw, binary = "r" in prefix, "b" in prefix
    start = at = pos + len(opening)
    while not source.startswith(quote, at):
        if at >= len(source) or (len(quote) == 1 and source[at] in "\r\n"):
            raise _unrecognised(source, pos, at)
        at += 2 if source[at] == "\\" and not raw else 1
    body = source[start:at]
    end = at + len(quote)
    text = source[pos:end]
    if binary:
        return Token("const", text, pos, _decode_bytes(source, body, raw, start))
    return Token("const", text, pos, body if raw else _decode(source, body, start))


def _decode(source: str, body: str, start: int) -> str:
    if "\\" not in body:
        return body
    return "".join(
        chr(code) for code, _ in _code_points(source, body, start, largest_octal=0x10FFFF)
    )


def _decode_bytes(source: str, body: str, raw: bool, start: int) -> bytes:
    if raw or "\\" not in body:
        return body.encode()
    out = bytearray()
    for code, is_byte in _code_points(source, body, start, largest_octal=0xFF):
        out += bytes([code]) if is_byte else chr(code).encode()
    return bytes(out)


def _code_points(
    source: str, body: str, start: int, *, largest_octal: int
) -> list[tuple[int, bool]]:
    """Each character with a flag: written as a byte (``\\x``, octal) or as itself."""
    out: list[tuple[int, bool]] = []
    at = 0
    while at < len(body):
        char = body[at]
        if char != "\\":
            out.append((ord(char), False))
            at += 1
            continue
        escape = body[at + 1 : at + 2]
        if escape in _SIMPLE_ESCAPES:
            out.append((_SIMPLE_ESCAPES[escape], False))
            at += 2
            continue
        digits, base = _escape_digits(body, at, escape)
        try:
            code = int(digits, base)
        except ValueError:
            raise _unrecognised(source, start - 1, start + at + 2) from None
        if code > largest_octal or 0xD800 <= code <= 0xDFFF:
            raise _unrecognised(source, start - 1, start + at + 2)
        out.append((code, escape in "xX" or base == 8))
        at += 1 + len(digits) + (1 if base == 16 else 0)
    return out


def _escape_digits(body: str, at: int, escape: str) -> tuple[str, int]:
    if escape in _HEX_ESCAPES:
        width = _HEX_ESCAPES[escape]
        digits = body[at + 2 : at + 2 + width]
        return (digits if len(digits) == width else "", 16)
    digits = body[at + 1 : at + 4]
    return (digits if len(digits) == 3 else "", 8)


def _unrecognised(source: str, pos: int, end: int) -> BadExpression:
    text = f"Syntax error: token recognition error at: '{source[pos:end]}'"
    return BadExpression(source, [Issue(pos, text)])
