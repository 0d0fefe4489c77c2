"""Layout of generated source text: an expression is on one line if it fits, else one part per line.

Used by ``modules.py`` and the generators in ``styles/``.
"""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from inspect import cleandoc
from typing import Any

from instar.base.fast_dataclass import dataclass

WIDTH = 100
INDENT = "    "


@dataclass(frozen=True, slots=True)
class LayoutGroup:
    """A bracket with its parts: a call, a subscript, a list or a dict."""

    opening: str
    parts: tuple[Expr, ...]
    closing: str
    comma: bool = True
    """Whether parts on their own lines end in a comma; in ``list[…]`` that would make a tuple."""


@dataclass(frozen=True, slots=True)
class Join:
    """Texts and groups side by side."""

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class LongString:
    """A string that may be split into one piece per line."""

    value: str


Expr = str | LayoutGroup | Join | LongString


def flat(expr: Expr) -> str:
    """Return the source text of an expression on one line."""
    match expr:
        case LayoutGroup(opening, parts, closing):
            return f"{opening}{', '.join(map(flat, parts))}{closing}"
        case Join(parts):
            return "".join(map(flat, parts))
        case LongString(value):
            return text(value)
    return expr


def lay_out(expr: Expr, indent: str = "", *, after: int = 0) -> str:
    """Return ``expr`` from column ``len(indent)`` on; ``after`` columns follow its last line."""
    line = flat(expr)
    if len(indent) + len(line) + after <= WIDTH or isinstance(expr, str):
        return line
    if isinstance(expr, LongString):
        return _pieces(expr.value, indent)
    if isinstance(expr, Join):
        return _lay_out_join(expr, indent, after)
    if not expr.parts:
        return line
    inner = indent + INDENT
    comma = "," if expr.comma else ""
    lines = [f"{inner}{lay_out(part, inner, after=len(comma))}{comma}" for part in expr.parts]
    return "\n".join([expr.opening, *lines, indent + expr.closing])


def _lay_out_join(expr: Join, indent: str, after: int) -> str:
    """Lay out a join; the last bracket is broken first."""
    groups = [place for place, part in enumerate(expr.parts) if not isinstance(part, str)]
    if not groups:
        return flat(expr)
    last = groups[-1]
    before = "".join(map(flat, expr.parts[:last]))
    behind = "".join(map(flat, expr.parts[last + 1 :]))
    group = expr.parts[last]
    if not isinstance(group, LayoutGroup):
        return before + lay_out(group, indent, after=after + len(before) + len(behind)) + behind
    opened = LayoutGroup(before + group.opening, group.parts, group.closing, group.comma)
    return lay_out(opened, indent, after=after + len(behind)) + behind


def _pieces(value: str, indent: str) -> str:
    """Split at line ends and spaces; a text with neither stays whole."""
    inner = indent + INDENT
    if "\n" not in value and len(inner) + len(text(value)) <= WIDTH:
        return f"(\n{inner}{text(value)}\n{indent})"
    pieces: list[str] = []
    for line in value.splitlines(keepends=True):
        pieces.extend(_cut(line, WIDTH - len(inner) - 6))
    if len(pieces) == 1:
        return text(value)
    return "\n".join(["(", *(f"{inner}{text(piece)}" for piece in pieces), f"{indent})"])


def _cut(line: str, width: int) -> list[str]:
    """Return pieces that join to the line again."""
    pieces = [""]
    for word in line.split(" "):
        if len(pieces[-1]) + len(word) > width and pieces[-1]:
            pieces.append("")
        pieces[-1] += f"{word} "
    pieces[-1] = pieces[-1][:-1]
    return [piece for piece in pieces if piece]


def call(name: str, arguments: Mapping[str, Expr]) -> LayoutGroup:
    """Return a call with keyword arguments."""
    parts = tuple(Join((f"{key}=", value)) for key, value in arguments.items())
    return LayoutGroup(f"{name}(", parts, ")")


def subscript(name: str, *parts: Expr) -> LayoutGroup:
    """Return ``name[…]``."""
    return LayoutGroup(f"{name}[", parts, "]", comma=len(parts) > 1)


def literal(value: Any) -> Expr:
    """Return a JSON value as Python source."""
    if isinstance(value, Mapping):
        pairs = tuple(Join((f"{text(str(key))}: ", literal(each))) for key, each in value.items())
        return LayoutGroup("{", pairs, "}")
    if isinstance(value, list | tuple):
        return LayoutGroup("[", tuple(map(literal, value)), "]")
    return LongString(value) if isinstance(value, str) else repr(value)


def text(value: str) -> str:
    """Return a string literal with the quotes that need less escaping; raw if it has many
    backslashes."""
    quote = "'" if value.count('"') > value.count("'") else '"'
    plain = value.isprintable() and quote not in value and not value.endswith("\\")
    if plain and "\\" in value:
        return f"r{quote}{value}{quote}"
    return f"{quote}{_escape(value, quote)}{quote}"


def _escape(value: str, quote: str) -> str:
    out = []
    for letter in value:
        if letter in (quote, "\\"):
            out.append(f"\\{letter}")
        elif letter.isprintable():
            out.append(letter)
        else:
            out.append(repr(letter)[1:-1])
    return "".join(out)


def docstring(description: str, indent: str) -> list[str]:
    """Return the lines of a docstring, or none. Long lines are wrapped, so line breaks may
    differ."""
    lines = _wrapped(cleandoc(description).strip(), WIDTH - len(indent) - 3)
    if not lines:
        return []
    body = "\n".join(lines)
    prefix = ""
    if "\\" in body and body.isprintable() and '"""' not in body:
        prefix = "r"
    else:
        body = "\n".join(_escape(line, "\\").replace('"""', '\\"""') for line in lines)
    alone = len(lines) == 1 and len(indent) + len(prefix) + len(body) + 6 <= WIDTH
    if alone and not body.endswith(('"', "\\")):
        return [f'{indent}{prefix}"""{body}"""']
    first, *others = body.split("\n")
    space = " " if first.startswith('"') else ""
    inner = [f"{indent}{line}" if line else "" for line in others]
    return [f'{indent}{prefix}"""{space}{first}', *inner, f'{indent}"""']


def _wrapped(description: str, width: int) -> list[str]:
    lines: list[str] = []
    for line in description.splitlines():
        lines.extend(_wrapped_line(line.expandtabs(4).rstrip(), width))
    return lines


def _wrapped_line(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    body = line.lstrip()
    margin = line[: len(line) - len(body)]
    hanging = margin + ("  " if body.startswith(("- ", "* ")) else "")
    return textwrap.wrap(
        body,
        width,
        initial_indent=margin,
        subsequent_indent=hanging,
        break_long_words=False,
        break_on_hyphens=False,
    )
