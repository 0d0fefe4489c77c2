"""Compile errors of CEL, framed like upstream's: line, column, caret.

Raised by the parser, the checker and the interpreter's compiler.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from instar.base.fast_dataclass import dataclass

NOWHERE = -1
"""Position of an issue without one: upstream shows line -1."""
MOST_ISSUES = 100
_LONGEST_LINE = 16384


@dataclass(frozen=True, slots=True)
class Issue:
    """An error of an expression, with its position."""

    pos: int
    text: str


class BadExpression(Exception):
    """The text does not parse or type-check; ``str()`` is the framed report."""

    def __init__(self, source: str, issues: Iterable[Issue]) -> None:
        found = list(issues)
        self.issues = sorted(found[:MOST_ISSUES], key=lambda issue: issue.pos)
        lines = _Lines(source)
        shown = [lines.frame(issue) for issue in self.issues]
        if len(found) > MOST_ISSUES:
            shown.append(f"{len(found) - MOST_ISSUES} more errors were truncated")
        super().__init__("\n".join(shown))


class BadProgram(Exception):
    """The expression is well typed, but cannot be compiled to a program."""


class _Lines:
    def __init__(self, source: str) -> None:
        self._source = source
        self._lines = source.split("\n")

    def frame(self, issue: Issue) -> str:
        if issue.pos == NOWHERE:
            return f"ERROR: <input>:-1:0: {issue.text}"
        if not self._source:
            return f"ERROR: <input>:1:0: {issue.text}"
        pos = min(issue.pos, len(self._source))
        number = self._source.count("\n", 0, pos)
        column = pos - (self._source.rfind("\n", 0, pos) + 1)
        head = f"ERROR: <input>:{number + 1}:{column + 1}: {issue.text}"
        line = self._lines[number]
        if len(line.encode()) > _LONGEST_LINE:
            return head
        line = line.replace("\t", " ")
        caret = "".join("." if char.isascii() else "．" for char in line[:column])
        mark = "＾" if not line[column : column + 1].isascii() else "^"
        return f"{head}\n | {line}\n | {caret}{mark}"


def undeclared_message(name: str) -> str:
    return f"undeclared reference to '{name}' (in container '')"


def no_overload_message(name: str, actual: Sequence[object], member: bool) -> str:
    shown = [str(each) for each in actual]
    signature = f"{shown[0]}.({', '.join(shown[1:])})" if member else f"({', '.join(shown)})"
    return f"found no matching overload for '{name}' applied to '{signature}'"
