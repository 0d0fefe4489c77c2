"""Lexer of CEL: text to tokens with decoded string, bytes and number literals.

Called by ``parser.py``. Invalid characters are reported and skipped, as upstream does, so that one
report can have several errors.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple

from instar.kube.cel.syntax.issues import Issue
from instar.kube.cel.values import INT_MAX, UINT_MAX, Uint

_ESCAPE = r"\\(?:[abfnrtv\"'\\?`]|[xX][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-3][0-7]{2})"
_DOUBLE_BODY = rf'(?:[^\\"\n\r]|{_ESCAPE})*'
_SINGLE_BODY = rf"(?:[^\\'\n\r]|{_ESCAPE})*"
_LONG_BODY = rf"(?:[^\\]|{_ESCAPE})*?"
_STRING = rf"""
    [rR](?:\"\"\"(?s:.)*?\"\"\"|'''(?s:.)*?'''|"[^"\n\r]*"|'[^'\n\r]*')
  | \"\"\"{_LONG_BODY}\"\"\" | '''{_LONG_BODY}''' | "{_DOUBLE_BODY}" | '{_SINGLE_BODY}'
"""
_TOKEN = re.compile(
    rf"""
    (?P<space>[ \t\r\n\f]+|//[^\n]*)
  | (?P<bytes>[bB](?:{_STRING}))
  | (?P<string>{_STRING})
  | (?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+
      |\.[0-9]+(?:[eE][+-]?[0-9]+)?)
  | (?P<uint>(?:0x[0-9a-fA-F]+|[0-9]+)[uU])
  | (?P<int>0x[0-9a-fA-F]+|[0-9]+)
  | (?P<ident>[A-Za-z_][A-Za-z0-9_]*)
  | (?P<escaped>`[A-Za-z0-9_.\-/ ]+`)
  | (?P<op>==|!=|<=|>=|&&|\|\||[-+*/%<>!?:.,()\[\]{{}}])
    """,
    re.VERBOSE,
)
_UNFINISHED = re.compile(
    rf"""[bB]?(?:
    [rR](?:\"\"\"(?s:.)*|'''(?s:.)*|"[^"\n\r]*|'[^'\n\r]*)
  | \"\"\"(?:[^\\]|{_ESCAPE})* | '''(?:[^\\]|{_ESCAPE})* | "{_DOUBLE_BODY} | '{_SINGLE_BODY}
    )""",
    re.VERBOSE,
)
_PARTIAL_ESCAPE = re.compile(
    r"\\(?:[xX][0-9a-fA-F]?|u[0-9a-fA-F]{0,3}|U[0-9a-fA-F]{0,7}|[0-3][0-7]?)?"
)
_ESCAPED = re.compile(r"\\(?:[xX](..)|u(.{4})|U(.{8})|([0-3][0-7]{2})|(.))", re.DOTALL)

_SIMPLE_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_MOST_DIGITS = 24
_OPENING = ("[", "{", "(", ".", "-", "!")
"""More digits than any 64-bit number has; a longer literal is rejected without computing it."""


class Token(NamedTuple):
    """``kind`` is op, ident, escaped, const, wrong or eof; ``text`` is the source form.

    A ``wrong`` token is an invalid literal; ``value`` is its error.
    """

    kind: str
    text: str
    pos: int
    value: Any = None


def begins_value(token: Token) -> bool:
    """Return whether an operand may begin with this token."""
    if token.kind == "op":
        return token.text in _OPENING
    return token.kind in ("const", "wrong") or (token.kind == "ident" and token.text != "in")


def tokenize(source: str) -> tuple[list[Token], list[Issue]]:
    """Split an expression into tokens; return them with the errors found."""
    tokens: list[Token] = []
    issues: list[Issue] = []
    pos, end = 0, len(source)
    match = _TOKEN.match
    while pos < end:
        found = match(source, pos)
        if found is None:
            stop = _first_invalid(source, pos) + 1
            text = f"Syntax error: token recognition error at: '{source[pos:stop]}'"
            issues.append(Issue(pos, text))
            pos = stop
            continue
        kind, text = found.lastgroup, found.group()
        if kind == "op" or kind == "ident" or kind == "escaped":
            tokens.append(Token(kind, text, pos))
        elif kind != "space":
            tokens.append(_literal(str(kind), text, pos))
        pos = found.end()
    tokens.append(Token("eof", "<EOF>", end))
    return tokens, issues


def _first_invalid(source: str, pos: int) -> int:
    """Return the first character that cannot continue a token starting at ``pos``."""
    string = _UNFINISHED.match(source, pos)
    if string is not None:
        escape = _PARTIAL_ESCAPE.match(source, string.end())
        return string.end() if escape is None else escape.end()
    return pos + 1 if source[pos] in "&|=`" else pos


def _literal(kind: str, text: str, pos: int) -> Token:
    try:
        return Token("const", text, pos, _DECODERS[kind](text))
    except ValueError as error:
        return Token("wrong", text, pos, str(error))


def _integer(text: str) -> int:
    # 2**63 itself is legal after a minus; the parser rejects it elsewhere.
    value = _whole(text)
    if value is None or value > INT_MAX + 1:
        raise ValueError("invalid int literal")
    return value


def _unsigned(text: str) -> Uint:
    value = _whole(text[:-1])
    if value is None or value > UINT_MAX:
        raise ValueError("invalid uint literal")
    return Uint(value)


def _whole(text: str) -> int | None:
    digits, base = (text[2:], 16) if text.startswith("0x") else (text, 10)
    digits = digits.lstrip("0") or "0"
    return int(digits, base) if len(digits) <= _MOST_DIGITS else None


def _double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("invalid double literal")
    return value


def _body(text: str) -> tuple[str, bool]:
    """Return the text between the quotes, and whether it is raw."""
    raw = text[0] in "rR"
    if raw:
        text = text[1:]
    width = 3 if len(text) >= 6 and text[:3] in ('"""', "'''") else 1
    return text[width:-width].replace("\r\n", "\n").replace("\r", "\n"), raw


def _text(text: str) -> str:
    body, raw = _body(text)
    if raw or "\\" not in body:
        return body
    return _ESCAPED.sub(_character, body)


def _character(match: re.Match[str]) -> str:
    two, four, eight, octal, simple = match.groups()
    if simple is not None:
        return _SIMPLE_ESCAPES.get(simple, simple)
    code = int(octal, 8) if octal is not None else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise ValueError("invalid unicode code point")
    return chr(code)


def _bytes(text: str) -> bytes:
    body, raw = _body(text[1:])
    if raw or "\\" not in body:
        return body.encode()
    out, at = bytearray(), 0
    for match in _ESCAPED.finditer(body):
        out += body[at : match.start()].encode()
        at = match.end()
        two, four, eight, octal, simple = match.groups()
        if four is not None or eight is not None:
            raise ValueError("unable to unescape string")
        if simple is not None:
            out += _SIMPLE_ESCAPES.get(simple, simple).encode()
        else:
            out.append(int(octal, 8) if octal is not None else int(two, 16))
    return bytes(out + body[at:].encode())


_DECODERS = {
    "int": _integer,
    "uint": _unsigned,
    "float": _double,
    "string": _text,
    "bytes": _bytes,
}


class Cursor:
    """A position in a list of tokens, which ends with eof."""

    __slots__ = ("_at", "_tokens")

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    def peek(self) -> Token:
        return self._tokens[self._at]

    def ahead(self) -> Token:
        """Return the token after the next one."""
        return self._tokens[min(self._at + 1, len(self._tokens) - 1)]

    def behind(self) -> Token:
        """Return the token before the last one read."""
        return self._tokens[self._at - 2]

    def next(self) -> Token:
        token = self._tokens[self._at]
        if token.kind != "eof":
            self._at += 1
        return token

    def is_op(self, text: str) -> bool:
        token = self._tokens[self._at]
        return token.kind == "op" and token.text == text

    def accept(self, text: str) -> bool:
        if self.is_op(text):
            self._at += 1
            return True
        return False
