"""Results of a validation, as plain values that can be sent between processes.

Made by ``validate.py``, merged by ``run.py``, shown by ``render.py``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import field
from enum import StrEnum

from instar.base.fast_dataclass import dataclass


class ValidationLevel(StrEnum):
    ERROR = "error"
    """A server would reject the object."""
    WARNING = "warning"
    """A server would accept it with a warning."""
    UNKNOWN = "unknown"
    """The kind is unknown, so there is no verdict."""


@dataclass(frozen=True, slots=True)
class ValidationFinding:
    """One result of a validation, with file and line."""

    level: ValidationLevel
    message: str
    file: str
    line: int
    subject: str = ""
    """``Widget default/one``; empty where a document is not an object."""
    field: str = ""

    def __str__(self) -> str:
        where = f"{self.file}:{self.line}" if self.line else self.file
        told = f"{self.field}: {self.message}" if self.field else self.message
        return f"{where}: {self.level}: {self.subject + ': ' if self.subject else ''}{told}"


@dataclass(slots=True)
class ValidatedObject:
    """One document and its findings."""

    subject: str
    file: str
    line: int
    findings: list[ValidationFinding]

    @property
    def level(self) -> ValidationLevel | None:
        """Return the worst level; None without findings."""
        levels = {finding.level for finding in self.findings}
        return next((level for level in ValidationLevel if level in levels), None)


@dataclass(slots=True)
class Verdicts:
    """All documents of a run."""

    judged: list[ValidatedObject] = field(default_factory=list)
    problems: list[ValidationFinding] = field(default_factory=list)
    """Input that could not be validated: unreadable text, CRDs that a server would reject."""
    unreadable: bool = False
    """Whether a text could not be parsed, so that the verdict is incomplete."""

    def add(self, others: Iterable[ValidatedObject]) -> None:
        self.judged += others

    def count(self, level: ValidationLevel | None) -> int:
        return sum(each.level is level for each in self.judged)

    @property
    def findings(self) -> list[ValidationFinding]:
        return [*self.problems, *(one for each in self.judged for one in each.findings)]

    def exit_code(self, *, strict: bool, unknown_is_fine: bool) -> int:
        """Return 2 for unreadable input or input without objects, 1 for a refusal, else 0."""
        if self.unreadable or not self.judged:
            return 2
        return int(self.fails(strict=strict, unknown_is_fine=unknown_is_fine))

    def fails(self, *, strict: bool, unknown_is_fine: bool) -> bool:
        levels = {finding.level for finding in self.findings}
        bad = {ValidationLevel.ERROR}
        if strict:
            bad.add(ValidationLevel.WARNING)
        if not unknown_is_fine:
            bad.add(ValidationLevel.UNKNOWN)
        return bool(levels & bad)
