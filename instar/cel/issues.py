"""What is wrong with an expression, framed like the Go compiler does: line, column, caret."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Issue:
    pos: int
    text: str


class BadExpression(Exception):
    """The text does not parse or does not type-check; ``str()`` is the framed report."""

    def __init__(self, source: str, issues: list[Issue]) -> None:
        self.issues = sorted(issues, key=lambda issue: issue.pos)
        super().__init__("\n".join(_frame(source, issue) for issue in self.issues))


class BadProgram(Exception):
    """The expression is well typed, but no program can be made of it."""


def _frame(source: str, issue: Issue) -> str:
    pos = min(issue.pos, len(source))
    start = source.rfind("\n", 0, pos) + 1
    end = source.find("\n", pos)
    line = source[start : end if end >= 0 else len(source)]
    number = source.count("\n", 0, pos) + 1
    column = pos - start
    caret = "." * column + "^"
    return f"ERROR: <input>:{number}:{column + 1}: {issue.text}\n | {line}\n | {caret}"
